#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the package with apt in a bare Debian 12 (a chroot that debootstrap makes), so that what it depends on has to be named
# in it; then tool, plugin, man pages and completions, and that nothing is left after it is removed.
# usage: tests/dist/deb_test.sh PACKAGE.deb
# Needs root and debootstrap. Prints PASS or FAIL for each, ends with the number of failures.
set -u
cd "$(dirname "$0")/../.."
package=$(realpath "$1") base=$PWD/build-dist/base-bookworm failures=0
[ "$(id -u)" = 0 ] || { echo "SKIP needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "SKIP debootstrap is not here"; exit 77; }
judge() { if [ "$2" = 0 ]; then echo "PASS $1: $3"; else echo "FAIL $1: $3"; failures=$((failures + 1)); fi; }

tests/dist/debian_base.sh "$base" || exit 1
work=$(mktemp -d build-dist/deb-root.XXXXXX) && root=$PWD/$work/root
trap 'umount "$root/dev" "$root/proc" 2>/dev/null; mountpoint -q "$root/dev" || rm -rf "$work"' EXIT
cp -a "$base" "$root" && cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev" || { echo "SKIP cannot mount into a chroot"; exit 77; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy=$http_proxy} "$@"; }
last() { tail -1 "$work/said" | cut -c1-200; }

inside apt-get update -qq > "$work/said" 2>&1; judge "package lists" $? "$(last)"
cp "$package" "$root/tmp/"
inside apt-get install -y -qq --no-install-recommends "/tmp/$(basename "$package")" > "$work/said" 2>&1
judge "apt install" $? "$(inside dpkg-query -W -f '${Package} ${Version} ${Architecture} ${Status}' tacet), $(grep -c '^Setting up' "$work/said") packages"
inside sh -c 'ldd /usr/bin/tacet "$(tacet plugin-path)"' > "$work/said" 2>&1; ! grep -q 'not found' "$work/said"
judge "every library is there" $? "$(grep -c '=>' "$work/said") of them"
inside tacet --version > "$work/said" 2>&1; judge "version" $? "$(cat "$work/said")"
cp -r tests/corpus/dead_rank tests/corpus/straggler "$root/tmp/"
inside tacet diagnose /tmp/dead_rank > "$work/said" 2>&1; code=$?
[ $code = 1 ] && grep -q 'rank' "$work/said"; judge "diagnose" $? "exit $code, $(head -1 "$work/said")"
inside tacet profile /tmp/straggler > "$work/said" 2>&1; code=$?
[ $code = 0 ] && [ "$(wc -l < "$work/said")" -gt 10 ]; judge "profile" $? "exit $code, $(grep -m1 . "$work/said")"
plugin=$(inside tacet plugin-path 2>&1); [ -f "$root$plugin" ]; judge "plugin-path" $? "$plugin"
inside dpkg -S "$plugin" > "$work/said" 2>&1; judge "the plugin is the package's" $? "$(last)"
# By its name alone, as NCCL_PROFILER_PLUGIN=tacet looks for it. The loader tells what it misses and goes on without.
loaded=$(inside LD_BIND_NOW=1 LD_PRELOAD=libnccl-profiler-tacet.so true 2>&1); [ -z "$loaded" ]; judge "plugin loads by its name" $? "${loaded:-every symbol is there}"
pages=$(inside sh -c 'gzip -t /usr/share/man/man1/tacet*.1.gz && ls /usr/share/man/man1/tacet*.1.gz | wc -l'); judge "man pages" $? "$pages"
inside bash -n /usr/share/bash-completion/completions/tacet; judge "completion" $? "bash"
inside apt-get purge -y -qq tacet > "$work/said" 2>&1; judge "apt purge" $? "$(last)"
left=$(find "$root/usr" "$root/etc" "$root/var/lib/dpkg/info" -iname '*tacet*'); [ -z "$left" ]; judge "nothing is left" $? "${left:-clean}"
echo "failures: $failures"
exit $failures
