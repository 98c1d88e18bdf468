#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Speed and memory of tacet, beside the limit or the peer measured in the same run. See bench/README.md.
set -euo pipefail
export LC_ALL=C

usage() {
  cat <<'TEXT'
usage: bench/run.sh [--quick] [--only LETTERS] [--build DIR] [--work DIR] [--fr-analyser DIR] [--trace FILE] [--hta DIR]
  --quick            small inputs, one run each: does everything still run? (under a minute)
  --build DIR        where tacet and the bench programs lie (default: build-bench)
  --work DIR         where inputs are written (default: a new folder under TMPDIR, removed at the end)
  --only LETTERS     some parts only, by their letters in bench/README.md: --only cg
  --fr-analyser DIR  PyTorch's flight_recorder package: torch/distributed/flight_recorder or tools/flight_recorder
  --trace FILE       a torch.profiler trace (.json.gz) of one rank, from which eight ranks are made; without it they are generated
  --hta DIR          the sources of Holistic Trace Analysis; PYTHON (default python3) must have pandas, plotly, networkx, psutil
TEXT
}

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench work= analyser= trace= hta= only=abcdefghi quick=0
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    --build) build=$(cd "$2" && pwd); shift ;;
    --work) mkdir -p "$2"; work=$(cd "$2" && pwd); shift ;;
    --fr-analyser) analyser=$(cd "$2" && pwd); shift ;;
    --trace) trace=$(realpath "$2"); shift ;;
    --hta) hta=$(cd "$2" && pwd); shift ;;
    --only) only=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
if [ -z "$work" ]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/tacet-bench.XXXXXX")
  trap 'rm -rf "$work"' EXIT
fi
tacet=$build/tacet
makers=$build/bench
for program in "$tacet" "$makers/make_flight_records" "$makers/make_nccl_log" "$makers/make_torch_trace" "$makers/parser_bench" /usr/bin/time; do
  [ -x "$program" ] || { echo "bench: $program is missing; \`make bench\` builds what is needed" >&2; exit 2; }
done
if [ $quick = 1 ]; then runs=1; else runs=5; fi

# The median wall time and the highest peak memory of several runs: sets $seconds and $peak (MB). tacet ends with 1 where
# it found something, so only 2 and above are failures.
measure() {
  local times=() run status
  peak=0
  for ((run = 0; run < ${measured_runs:-$runs}; ++run)); do
    local before after memory
    before=$(date +%s%N)
    status=0
    /usr/bin/time -v -o "$work/time" "$@" >"$work/out" 2>"$work/err" || status=$?
    after=$(date +%s%N)
    [ "$status" -le 1 ] || { echo "bench: exit $status from: $*" >&2; tail -3 "$work/err" >&2; exit 1; }
    times+=($(((after - before) / 1000)))
    memory=$(awk '/Maximum resident/ {print int($NF / 1000)}' "$work/time")
    [ "$memory" -le "$peak" ] || peak=$memory
  done
  seconds=$(printf '%s\n' "${times[@]}" | sort -n | awk '{t[NR] = $1} END {printf "%.3f", t[int((NR + 1) / 2)] / 1e6}')
}
# Two commands in turn, the fastest run of each: what else the machine does then meets both. Sets $own and $own_peak of
# the first, $peer and $peer_peak of the second.
race() { # words of the first command, --, words of the second
  local first=() run
  while [ "$1" != -- ]; do first+=("$1"); shift; done
  shift
  own= peer= own_peak=0 peer_peak=0
  for ((run = 0; run < ${race_runs:-$runs}; ++run)); do
    measured_runs=1 measure "$@"
    peer=$(least "$peer" "$seconds") peer_peak=$((peak > peer_peak ? peak : peer_peak))
    measured_runs=1 measure "${first[@]}"
    own=$(least "$own" "$seconds") own_peak=$((peak > own_peak ? peak : own_peak))
  done
}
least() { awk -v a="$1" -v b="$2" 'BEGIN {print (a == "" || b + 0 < a + 0) ? b : a}'; }
wanted() { [[ $only == *$1* ]]; }
bytes_of() { find "$1" -type f -printf '%s\n' | awk '{sum += $1} END {printf "%.0f", sum}'; }
row() { # what, bytes, remark; uses $seconds and $peak
  local rate
  rate=$(awk -v b="$2" -v s="$seconds" 'BEGIN {printf (b > 0 ? "%.0f" : "-"), b / 1e6 / s}')
  printf '%-44s %9.1f %9s %8s %8s  %s\n' "$1" "$(awk -v b="$2" 'BEGIN {print b / 1e6}')" "$seconds" "$rate" "$peak" "$3"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}'; }
# Goals are for the full inputs.
verdict() { if [ $quick = 1 ]; then echo 'not judged'; elif awk "BEGIN {exit !($1)}"; then echo met; else echo MISSED; fi; }

processor=$(lscpu | awk -F: '/^Model name/ {gsub(/^ +/, "", $2); print $2; exit}')
echo "tacet $("$tacet" --version | awk '{print $NF; exit}') on $(nproc) cores of $processor ($(uname -m)); median of $runs, of pairs the fastest of $runs"
printf '\n%-44s %9s %9s %8s %8s  %s\n' input MB seconds MB/s 'peak MB' 'limit or peer, and the goal'

# (a) Flight records against PyTorch's own analyser.
if wanted a; then
ranks=256 entries=2000
[ $quick = 0 ] || { ranks=32 entries=200; }
"$makers/make_flight_records" "$work/fr" $ranks $entries
size=$(bytes_of "$work/fr")
measure "$tacet" diagnose "$work/fr"
own=$seconds own_peak=$peak
row "flight records $ranks x $entries" "$size" ""
if [ -n "$analyser" ]; then
  # The package imports itself by its full name, from the folder above torch/ or tools/.
  case $analyser in
    */torch/distributed/flight_recorder) module=torch.distributed.flight_recorder.fr_trace top=${analyser%/torch/*} ;;
    */tools/flight_recorder) module=tools.flight_recorder.fr_trace top=${analyser%/tools/*} ;;
    *) echo "bench: $analyser ends in neither torch/distributed/flight_recorder nor tools/flight_recorder" >&2; exit 2 ;;
  esac
  measured_runs=$([ $quick = 1 ] && echo 1 || echo 3)
  PYTHONPATH=$top measure python3 -m $module "$work/fr"
  unset measured_runs
  row "  the same, $module" "$size" "tacet $(ratio "$seconds" "$own") times faster (goal 50: $(verdict "$seconds >= 50 * $own")), in 1/$(ratio "$peak" "$own_peak") of the memory (goal 1/5: $(verdict "$peak >= 5 * $own_peak"))"
else
  echo "  PyTorch's analyser: not measured (--fr-analyser DIR)"
fi
rm -rf "$work/fr"
fi

# (b) A large job.
if wanted b; then
ranks=4096 entries=2000
[ $quick = 0 ] || { ranks=128 entries=500; }
"$makers/make_flight_records" "$work/fr" $ranks $entries
size=$(bytes_of "$work/fr")
measure "$tacet" diagnose "$work/fr"
row "flight records $ranks x $entries" "$size" "goal < 10 s: $(verdict "$seconds < 10"), < 2 GB: $(verdict "$peak < 2000")"
rm -rf "$work/fr"
fi

# (c) NCCL logs against wc -l. Reading the file once beforehand puts it into memory for both.
if wanted c; then
megabytes=500
[ $quick = 0 ] || megabytes=40
for shape in merged files; do
  "$makers/make_nccl_log" "$work/nccl.$shape" 8 $megabytes $shape
  size=$(bytes_of "$work/nccl.$shape")
  find "$work/nccl.$shape" -type f -exec cat {} + >/dev/null
  race "$tacet" diagnose "$work/nccl.$shape" -- find "$work/nccl.$shape" -type f -exec wc -l {} +
  seconds=$peer peak=$peer_peak
  row "wc -l, NCCL log of 8 ranks, $shape" "$size" ""
  seconds=$own peak=$own_peak
  row "NCCL log of 8 ranks, $shape" "$size" "$(ratio "$peer" "$own") of the speed of wc -l (goal 0.33: $(verdict "3 * $peer >= $own"))"
  rm -rf "$work/nccl.$shape"
done
fi

# (d) Start-up: the mean over many runs, the shell's own fork included.
if wanted d; then
count=50
before=$(date +%s%N)
for ((run = 0; run < count; ++run)); do "$tacet" --version >/dev/null; done
seconds=$(awk -v n=$((($(date +%s%N) - before) / count)) 'BEGIN {printf "%.4f", n / 1e9}')
peak=$(/usr/bin/time -f %M "$tacet" --version 2>&1 >/dev/null | awk '{print int($1 / 1000)}')
row "start-up (tacet --version, mean of $count)" 0 "goal < 20 ms: $(verdict "$seconds < 0.02")"

fi

# (e) Nothing may be quadratic in ranks.
if wanted e; then
series="512 1024 2048 4096"
[ $quick = 0 ] || series="64 128 256"
first=
for ranks in $series; do
  "$makers/make_flight_records" "$work/fr" "$ranks" 500
  size=$(bytes_of "$work/fr")
  measure "$tacet" diagnose "$work/fr"
  each=$(awk -v s="$seconds" -v r="$ranks" 'BEGIN {print s / r * 1e3}')
  first=${first:-$each}
  row "flight records $ranks x 500" "$size" "$(printf %.3f "$each") ms a rank, $(ratio "$each" "$first") of the smallest job's"
  rm -rf "$work/fr"
done

fi

# (g) Traces of eight ranks: tacet profile against a sequential gunzip, and against Holistic Trace Analysis.
if wanted g; then
  mkdir -p "$work/eight"
  if [ -n "$trace" ]; then
    for rank in 0 1 2 3 4 5 6 7; do
      zcat "$trace" | sed "s/\(\"distributedInfo\": *{.*\"rank\": *\)[0-9]*/\1$rank/" | gzip >"$work/eight/trace_rank$rank.json.gz"
    done
  else
    "$makers/make_torch_trace" "$work/eight" 8 $([ $quick = 1 ] && echo 3 || echo 35) gz
  fi
  size=$(zcat "$work"/eight/*.gz | wc -c)
  race "$tacet" profile "$work/eight" -- bash -c "gunzip -c $work/eight/*.gz | wc -c"
  seconds=$peer peak=$peer_peak
  row "gunzip -c | wc -c, traces of 8 ranks" "$size" ""
  seconds=$own peak=$own_peak
  row "tacet profile, traces of 8 ranks" "$size" "$(ratio "$peer" "$own") times as fast as gunzip (goal 1: $(verdict "$own <= $peer"))"
  if [ -n "$hta" ]; then
    race_runs=$([ $quick = 1 ] && echo 1 || echo 3)
    race "$tacet" profile "$work/eight" -- "${PYTHON:-python3}" "$root/bench/hta_peer.py" "$hta" "$work/eight"
    unset race_runs
    seconds=$peer peak=$peer_peak
    row "  the same, Holistic Trace Analysis" "$size" "tacet $(ratio "$peer" "$own") times faster (goal 15: $(verdict "$peer >= 15 * $own")), in 1/$(ratio "$peer_peak" "$own_peak") of the memory"
  else
    echo "  Holistic Trace Analysis: not measured (--hta DIR)"
  fi
  rm -rf "$work/eight"
fi

# (h) Traces of more than a gigabyte of text: memory must stay under a tenth of it.
if wanted h; then
  megabytes=1100
  [ $quick = 0 ] || megabytes=30
  for shape in "json full" "gz full" "json lean" "gz lean"; do
    "$makers/make_torch_trace" "$work/large" 1 $megabytes $shape
    measured_runs=1 measure "$tacet" profile "$work/large"
    row "trace of $megabytes MB of text, $shape" $((megabytes * 1000000)) "memory $(ratio "$peak" "$megabytes") of the text (goal 0.10: $(verdict "10 * $peak < $megabytes"))"
    rm -rf "$work/large"
  done
fi

# (i) The set-up logs of a large job.
if wanted i; then
  nodes=256 peers=1300
  [ $quick = 0 ] || { nodes=8 peers=20; }
  mkdir -p "$work/setup"
  "$makers/make_setup_logs" "$work/setup" $nodes $peers
  size=$(bytes_of "$work/setup")
  find "$work/setup" -type f -exec cat {} + >/dev/null
  measure "$tacet" topology "$work/setup"
  row "set-up logs of $((nodes * 8)) ranks, topology" "$size" "goal < 3 s: $(verdict "$seconds < 3")"
  measure "$tacet" predict "$work/setup"
  row "the same, predict" "$size" "goal < 3 s: $(verdict "$seconds < 3")"
  rm -rf "$work/setup"
fi

# (f) Every parser by itself, on one core.
if wanted f; then
  echo
  "$makers/parser_bench" $([ $quick = 1 ] && echo 5 || echo 50)
fi
