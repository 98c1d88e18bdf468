#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image from the tarballs as `make image` does, with buildah and without a registry: the base is a Debian 12 that
# debootstrap makes. Then diagnose and agent inside it, and whether the plugin loads.
# usage: tests/dist/image_test.sh DIST_FOLDER
# Needs root, buildah and debootstrap. Prints PASS or FAIL for each, ends with the number of failures.
set -u
cd "$(dirname "$0")/../.."
dist=$(cd "$1" && pwd) base=$PWD/build-dist/base-bookworm failures=0
[ "$(id -u)" = 0 ] || { echo "SKIP needs root"; exit 77; }
for program in buildah debootstrap; do command -v $program >/dev/null || { echo "SKIP $program is not here"; exit 77; }; done
judge() { if [ "$2" = 0 ]; then echo "PASS $1: $3"; else echo "FAIL $1: $3"; failures=$((failures + 1)); fi; }

work=$(mktemp -d)
store() { buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
trap 'rm -rf "$work"' EXIT
tests/dist/debian_base.sh "$base" || exit 1
from=$(store from scratch) && store add -q "$from" "$base" / >/dev/null && store commit -q "$from" localhost/base >/dev/null
judge "base" $? "Debian $(cat "$base/etc/debian_version")"

# Where buildah is the only engine, `make image` takes it.
mkdir "$work/only" && for program in make sh nproc sed buildah; do ln -s "$(command -v $program)" "$work/only/"; done
said=$(PATH=$work/only make -n image 2>&1 | grep -o '^[^ ]*/buildah build'); judge "make image finds its engine" $? "$said"
store build --isolation chroot --build-arg BASE=localhost/base -t tacet -f deploy/kubernetes/Containerfile "$dist" > "$work/build" 2>&1
judge "image" $? "$(tail -1 "$work/build")"
size() { store inspect --type image "$1" | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["OCIv1"]["rootfs"]["diff_ids"]))'; }
[ "$(size tacet)" = $(($(size localhost/base) + 1)) ]; judge "one layer on top of the base" $? "$(size tacet) layers"
entry=$(store inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}}' tacet)
[ "$entry" = tacet ]; judge "entry point" $? "$entry"

box=$(store from tacet) && root=$(store mount "$box") || { judge "container" 1 "see above"; exit $failures; }
[ -z "$(find "$root/tmp" -name 'tacet-*' | head -1)" ]; judge "no tarball left behind" $? "$(ls "$root/tmp" | wc -l) files in /tmp"
inside() { store run --isolation chroot "$box" -- "$@"; }
said=$(inside tacet --version 2>&1); judge "version" $? "$said"
cp -r tests/golden/rank_stuck_in_data_loader/input "$root/tmp/hang"
said=$(inside tacet diagnose /tmp/hang 2>&1); code=$?
[ $code = 1 ] && grep -q '^HANG  rank 2' <<< "$said"; judge "diagnose" $? "exit $code, $(head -1 <<< "$said")"
said=$(inside tacet plugin-path 2>&1); [ "$said" = /usr/local/lib/libnccl-profiler-tacet.so ] && [ -e "$root$said" ]; judge "plugin-path" $? "$said"
# The loader tells what it misses and goes on without, so silence is what counts.
loaded=$(inside env LD_BIND_NOW=1 LD_PRELOAD="$said" true 2>&1); [ -z "$loaded" ]; judge "plugin loads" $? "${loaded:-every symbol is there}"
mkdir -p "$root/tmp/boxes"
inside tacet agent --boxes /tmp/boxes --listen 127.0.0.1:0 > "$work/agent" 2>&1 & agent=$!
url=
for _ in $(seq 1 50); do url=$(grep -o 'http://[^ ]*' "$work/agent") && break; sleep 0.2; done
python3 -c 'import sys,urllib.request; print(urllib.request.urlopen(sys.argv[1],timeout=5).read().decode())' "$url/metrics" > "$work/metrics" 2>&1
grep -q '^tacet_' "$work/metrics"; judge "agent serves metrics" $? "$url, $(grep -c '^tacet_' "$work/metrics") metrics"
# The signal goes to the program alone: buildah, which waits for it, has the same words in its command line.
below() { local child; for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do echo "$child"; below "$child"; done; }
program=$(for process in $(below $agent); do grep -qx tacet "/proc/$process/comm" && echo "$process"; done)
kill -TERM ${program:-$agent}
wait $agent; code=$?
judge "agent ends on SIGTERM" $code "exit $code"
store rm -a >/dev/null
echo "failures: $failures"
exit $failures
