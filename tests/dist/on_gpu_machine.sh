#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries tarball and wheel on a machine with a GPU and PyTorch and nothing else of the project's: diagnose, profile, the
# agent, and the plugin in a job of two ranks over NCCL. Then compiles every source with the machine's own g++.
# usage: tests/dist/on_gpu_machine.sh DIST_FOLDER [SECONDS for the sources, default 75]
# DIST_FOLDER holds tacet-*-linux-ARCH.tar.gz, the wheel, and in headers/ those of the libraries.
# Prints PASS or FAIL for each; ends with the number of failures.
set -u
cd "$(dirname "$0")/../.."
dist=$(cd "$1" && pwd) seconds=${2:-75} machine=$(uname -m)
work=$(mktemp -d /tmp/tacet-dist.XXXXXX) failures=0 agent=
trap '[ -n "$agent" ] && kill "$agent" 2>/dev/null; rm -rf "$work"' EXIT
judge() { # name, 0 for good, what is shown
  if [ "$2" = 0 ]; then echo "PASS $1: $3"; else echo "FAIL $1: $3"; failures=$((failures + 1)); fi
}
one_line() { tail -n "${2:-1}" "$1" | tr '\n' ' ' | cut -c1-300; }

. /etc/os-release; echo "on: $PRETTY_NAME, $(ldd --version | head -1), $(g++ --version 2>/dev/null | head -1)"

mkdir "$work/tar" && tar -xzf "$dist"/tacet-*-linux-"$machine".tar.gz -C "$work/tar" --strip-components=1
judge "tarball unpacks" $? "$(ls "$work/tar" | tr '\n' ' ')"
tacet=$work/tar/bin/tacet
"$tacet" --version > "$work/version" 2>&1
judge "version" $? "$(cat "$work/version")"

"$tacet" diagnose tests/golden/rank_stuck_in_data_loader/input > "$work/diagnose" 2>&1; code=$?
grep -q "^HANG  rank 2" "$work/diagnose" && [ $code = 1 ]
judge "tarball: diagnose" $? "exit $code, $(head -1 "$work/diagnose")"
"$tacet" profile tests/corpus/straggler > "$work/profile" 2>&1; code=$?
[ $code = 0 ] && [ "$(wc -l < "$work/profile")" -gt 10 ]
judge "tarball: profile" $? "exit $code, $(grep -m1 . "$work/profile" | cut -c1-120)"

# pip wherever it puts things; without pip, what pip would do.
if ! python3 -m pip install --quiet --no-index --no-deps --break-system-packages --prefix "$work/wheel" "$dist"/tacet-*"$machine".whl > "$work/pip" 2>&1; then
  echo "note: pip refused ($(one_line "$work/pip")); unpacking by hand"
  python3 -m zipfile -e "$dist"/tacet-*"$machine".whl "$work/unzipped"
  mkdir -p "$work/wheel" && cp -r "$work"/unzipped/*.data/data/. "$work/wheel/" && mkdir "$work/wheel/bin" &&
    install -m 755 "$work"/unzipped/*.data/scripts/tacet "$work/wheel/bin/"
fi
wheel_tacet=$(find "$work/wheel" -path '*/bin/tacet' | head -1)
plugin=$("${wheel_tacet:-false}" plugin-path 2>&1); [ -f "$plugin" ]
judge "wheel: plugin-path" $? "$plugin"
"${wheel_tacet:-false}" diagnose tests/corpus/dead_rank > "$work/diagnose2" 2>&1; code=$?
[ $code = 1 ]
judge "wheel: diagnose" $? "exit $code, $(head -1 "$work/diagnose2")"

boxes=$work/boxes; mkdir "$boxes"
"$tacet" agent --boxes "$boxes" --listen 127.0.0.1:0 --interval 200 > "$work/agent" 2>&1 & agent=$!
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2 NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=INFO
export NCCL_PROFILER_PLUGIN=$plugin TACET_BOX_DIR=$boxes
ranks=()
for rank in 0 1; do
  RANK=$rank LOCAL_RANK=0 NCCL_HOSTID=node$rank NCCL_DEBUG_FILE=$work/nccl$rank.log \
    timeout -s KILL 70 python3 tests/dist/nccl_job.py 8 > "$work/rank$rank" 2>&1 & ranks+=($!)
done
# While it runs: the metrics of the agent, until they tell of both ranks.
url=$(grep -o 'http://[^ ]*' "$work/agent"); seen=1
for _ in $(seq 1 240); do
  url=${url:-$(grep -o 'http://[^ ]*' "$work/agent")}
  python3 - "$url/metrics" > "$work/metrics" 2>/dev/null <<'P'
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=2).read().decode())
P
  [ "$(grep -oE 'rank="[01]"' "$work/metrics" | sort -u | wc -l)" = 2 ] && { seen=0; break; }
  kill -0 "${ranks[0]}" 2>/dev/null || break
  sleep 0.3
done
code=0; for pid in "${ranks[@]}"; do wait "$pid" || code=$?; done
judge "plugin in a real job of two ranks" $code "$(one_line "$work/rank0"); $(one_line "$work/rank1")"
judge "agent sees both ranks while they run" $seen "$(grep -c '^[a-z]' "$work/metrics") metrics at $url, $(one_line "$work/agent")"
written=$(find "$boxes" -name '*.box' | wc -l)
grep -qi "profiler.*tacet\|tacet" "$work"/nccl0.log; loaded=$?
[ "$written" = 2 ] && [ $loaded = 0 ]
judge "black boxes" $? "$written boxes; NCCL says: $(grep -i -m1 'profiler' "$work/nccl0.log" | cut -c1-160)"
"$tacet" diagnose --format json "$boxes" > "$work/box.json" 2> "$work/box.err"; code=$?
python3 - "$work/box.json" > "$work/box.said" 2>&1 <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
print(report["verdict"]["status"], report["job"]["world_size"], "ranks:", report["verdict"]["headline"])
# Two processes take turns on one GPU, so one of them may come late to every operation.
assert report["verdict"]["status"] in ("healthy", "slow", "undetermined") and report["job"]["world_size"] == 2
P
judge "diagnose of the boxes" $? "exit $code, $(one_line "$work/box.said")"
kill "$agent"; wait "$agent"; code=$?; agent=
judge "agent ends on SIGTERM" $code "exit $code"

if command -v g++ >/dev/null; then
  export TACET_HEADERS=$dist/headers TACET_SECONDS=$seconds
  # The programs first, then their tests.
  { find src plugin -name '*.cc' ! -name '*_test.cc'; find src tests bench -name '*_test.cc' -o -path 'tests/*.cc' -o -path 'bench/*.cc'; } |
    sort -u -k1,1 --stable | awk '{ print /_test\.cc$|^tests|^bench/ ? 1 : 0, $0 }' | sort -s -n -k1,1 | cut -d' ' -f2 |
    scripts/check_headers.sh g++ > "$work/sources" 2>&1; code=$?
  grep -v '^g++' "$work/sources" | head -40
  judge "every source with $(g++ -dumpfullversion)" $code "$(one_line "$work/sources")"
fi
echo "failures: $failures"
exit $failures
