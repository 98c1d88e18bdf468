#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries tarball and wheel in a system of another age: a chroot of Debian 11 (glibc 2.31, Python 3.9) with nothing installed
# but Python. diagnose, profile, agent, and the plugin in a job of the stand-in for NCCL that the tests use.
# usage: tests/dist/other_system_test.sh ARCH DIST_FOLDER [SUITE, default bullseye]
# Needs root and debootstrap; for another processor than this machine's also qemu-user-static. The chroot is kept in
# build-dist/chroot-SUITE-ARCH. Prints PASS or FAIL for each, ends with the number of failures.
set -u
cd "$(dirname "$0")/../.."
machine=$1 dist=$(cd "$2" && pwd) suite=${3:-bullseye}
case $machine in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; *) echo "usage: $0 x86_64|aarch64 DIST_FOLDER [SUITE]" >&2; exit 2 ;; esac
root=$PWD/build-dist/chroot-$suite-$machine failures=0
[ "$(id -u)" = 0 ] || { echo "SKIP needs root for a chroot"; exit 77; }
command -v debootstrap >/dev/null || { echo "SKIP debootstrap is not here"; exit 77; }
judge() { if [ "$2" = 0 ]; then echo "PASS $1: $3"; else echo "FAIL $1: $3"; failures=$((failures + 1)); fi; }

inside=(chroot "$root")
if [ "$machine" != "$(uname -m)" ]; then
  emulator=$(command -v "qemu-$machine-static") || { echo "SKIP qemu-$machine-static is not here"; exit 77; }
fi
if [ ! -e "$root/.complete" ]; then
  rm -rf "$root"
  if [ "$machine" = "$(uname -m)" ]; then
    debootstrap --variant=minbase --include=python3-minimal,libpython3-stdlib --arch="$debian" "$suite" "$root" \
      "${TACET_DEBIAN_MIRROR:-http://deb.debian.org/debian}" > "$root.log" 2>&1 || { tail -5 "$root.log"; exit 1; }
  else
    # Unpacked, not configured: enough for the loader, the C library, a shell and Python.
    debootstrap --foreign --variant=minbase --include=python3-minimal,libpython3-stdlib --arch="$debian" "$suite" "$root" \
      "${TACET_DEBIAN_MIRROR:-http://deb.debian.org/debian}" > "$root.log" 2>&1 || { tail -5 "$root.log"; exit 1; }
    for package in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  fi
  touch "$root/.complete"
fi
# The emulator goes in as a program; what a shell starts inside would need binfmt_misc, so each program is started by it.
if [ "$machine" != "$(uname -m)" ]; then
  install -m 755 "$emulator" "$root/emulator"
  inside=(chroot "$root" /emulator)
fi

# As a container has them.
mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev" || { echo "SKIP cannot mount into a chroot"; exit 77; }
trap 'umount "$root/dev" "$root/proc"' EXIT

work=$root/tmp/tacet
rm -rf "$work" && mkdir -p "$work/tar" "$work/wheel/bin" "$work/boxes"
tar -xzf "$dist"/tacet-*-linux-"$machine".tar.gz -C "$work/tar" --strip-components=1
cp -r tests/golden/rank_stuck_in_data_loader/input "$work/hang"
cp -r tests/corpus/straggler "$work/straggler"
version=$("${inside[@]}" "$(realpath -m --relative-to="$root" "$root/lib/$machine-linux-gnu/libc.so.6" | sed 's,^,/,')" 2>/dev/null | head -1)
[ -n "$version" ] || version=$(strings "$root/lib/$machine-linux-gnu/libc.so.6" 2>/dev/null | grep -m1 'GNU C Library')
echo "in: $(. "$root/etc/os-release" && echo "$PRETTY_NAME"), $machine, $version"

tacet=(/tmp/tacet/tar/bin/tacet)
said=$("${inside[@]}" "${tacet[@]}" --version 2>&1); judge "version" $? "$said"
said=$("${inside[@]}" "${tacet[@]}" diagnose /tmp/tacet/hang 2>&1); code=$?
[ $code = 1 ] && grep -q '^HANG  rank 2' <<< "$said"; judge "diagnose" $? "exit $code, $(head -1 <<< "$said")"
said=$("${inside[@]}" "${tacet[@]}" profile /tmp/tacet/straggler 2>&1); code=$?
[ $code = 0 ] && [ "$(wc -l <<< "$said")" -gt 10 ]; judge "profile" $? "exit $code, $(head -1 <<< "$said")"
said=$("${inside[@]}" "${tacet[@]}" diagnose /tmp/nowhere 2>&1); code=$?
[ $code = 2 ]; judge "an error is told" $? "exit $code, $(head -1 <<< "$said")"

# As pip does it: scripts into bin, data into the prefix, the package beside them.
python3 -m zipfile -e "$dist"/tacet-*"$machine".whl "$work/unzipped"
cp -r "$work"/unzipped/tacet-*.data/data/. "$work/wheel/" && install -m 755 "$work"/unzipped/tacet-*.data/scripts/tacet "$work/wheel/bin/"
mkdir -p "$work/wheel/packages" && cp -r "$work/unzipped/tacet" "$work/wheel/packages/"
said=$("${inside[@]}" /tmp/tacet/wheel/bin/tacet plugin-path 2>&1); code=$?
[ $code = 0 ] && [ "$said" = /tmp/tacet/wheel/lib/libnccl-profiler-tacet.so ]; judge "wheel: plugin-path" $? "$said"
# The plugin into a Python of that age, as into PyTorch's.
cat > "$work/load.py" <<'P'
import ctypes, sys
plugin = ctypes.CDLL(sys.argv[1])
names = [n for n in range(1, 8) if hasattr(plugin, "ncclProfiler_v%d" % n)]
assert names, "no ncclProfiler_v*"
print("ncclProfiler versions", names, "in Python", sys.version.split()[0])
P
python=$(cd "$root" && ls usr/bin/python3.[0-9]* | grep -E 'python3\.[0-9]+$' | head -1)
said=$("${inside[@]}" "/$python" /tmp/tacet/load.py /tmp/tacet/wheel/lib/libnccl-profiler-tacet.so 2>&1); judge "plugin loads into Python" $? "$(tail -1 <<< "$said")"

# A job of the stand-in for NCCL, watched by the agent. The host program is built with the same compiler and libraries.
host=build-dist/plugin_host-$machine
if [ ! -e "$host" ] || [ -n "$(find tests/plugin -newer "$host" -name '*.cc' | head -1)" ]; then
  clang++-16 --target="$machine-linux-gnu" --sysroot="build-dist/sysroot-$machine" -fuse-ld=lld -static-libstdc++ -static-libgcc -std=c++20 -O1 -I. -Isrc \
    -include src/portable/old_math_names.h tests/plugin/{plugin_host,fake_nccl,fake_proxy,loaded_plugin,shared_arena,box_folder}.cc \
    src/portable/later_glibc.cc -o "$host" -lpthread -ldl -lm || { judge "the stand-in builds" 1 "see above"; exit $failures; }
fi
cp "$host" "$work/plugin_host"
"${inside[@]}" "${tacet[@]}" agent --boxes /tmp/tacet/boxes --listen 127.0.0.1:0 --interval 200 > "$work/agent" 2>&1 & agent=$!
sleep 2
TACET_BOX_DIR=/tmp/tacet/boxes TACET_JOB=age "${inside[@]}" /tmp/tacet/plugin_host --plugin /tmp/tacet/tar/lib/libnccl-profiler-tacet.so \
  --ranks 2 --steps 400 --pause-us 20000 > "$work/job" 2>&1 & job=$!
url=$(grep -o 'http://[^ ]*' "$work/agent"); seen=1
for _ in $(seq 1 60); do
  url=${url:-$(grep -o 'http://[^ ]*' "$work/agent")}
  python3 -c 'import sys,urllib.request; print(urllib.request.urlopen(sys.argv[1],timeout=5).read().decode())' "$url/metrics" > "$work/metrics" 2>/dev/null
  [ "$(grep -oE 'rank="[01]"' "$work/metrics" | sort -u | wc -l)" = 2 ] && { seen=0; break; }
  sleep 0.3
done
judge "agent sees both ranks" $seen "$url, $(grep -c '^[a-z]' "$work/metrics") metrics; $(tail -1 "$work/agent")"
wait $job; code=$?
judge "plugin in a job" $code "$(tail -1 "$work/job"), $(find "$work/boxes" -name '*.box' | wc -l) boxes"
kill -TERM $agent; wait $agent; code=$?
judge "agent ends on SIGTERM" $code "exit $code"
said=$("${inside[@]}" "${tacet[@]}" diagnose --json /tmp/tacet/boxes 2>&1); code=$?
python3 -c 'import json,sys; r=json.loads(sys.argv[1]); print(r["verdict"]["headline"]); sys.exit(r["job"]["world_size"] != 2 or r["verdict"]["status"] not in ("healthy", "undetermined"))' "$said" > "$work/said" 2>&1
judge "diagnose of the boxes" $? "exit $code, $(tail -1 "$work/said")"
echo "failures: $failures"
exit $failures
