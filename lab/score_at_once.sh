#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All faults of `tacet lab` with NCCL on one GPU, several jobs at once, each under its own MPS daemon:
#   TACET=path/to/tacet lab/score_at_once.sh OUT [SEEDS] [AT_ONCE] [SECONDS] [FAULTS...]
# Seeds 1 to SEEDS, or from LAB_FIRST_SEED on.
# Leaves OUT/table.txt (a line per fault and seed) and OUT/wrong.tar.gz (the folders of verdicts that were not right).
# All faults run with the first seed before the second begins; what was not reached within SECONDS is left out.
set -u
out=$1 seeds=${2:-3} at_once=${3:-8} limit=${4:-540} tacet=${TACET:-tacet}
shift 4 2>/dev/null || shift $#
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d /tmp/lab-score.XXXXXX) faults=("$@")
[ ${#faults[@]} = 0 ] && mapfile -t faults < <("$tacet" lab list | awk '/^[a-z]/ { print $1 }')
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_MAX_NCHANNELS=2
one() { # FAULT SEED
  local name=$1-$2 left=$((limit - SECONDS))
  [ $left -lt 25 ] && return
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps-$name CUDA_MPS_LOG_DIRECTORY=$work/mps-$name
  mkdir -p "$work/mps-$name"
  command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d
  timeout -k 5 "$left" "$tacet" lab score --backend "${LAB_BACKEND:-nccl}" --ranks 4 --seeds 1 --seed "$2" --faults "$1" --output "$work/$name" >"$work/$name.txt" 2>&1
  local code=$?
  command -v nvidia-cuda-mps-control >/dev/null && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  { grep -E "^(right|WRONG|skipped) " "$work/$name.txt" || echo "no verdict: $1, seed $2, exit code $code"; } >>"$out/table.txt"
  [ $code = 1 ] && echo "$name" "$name.txt" >>"$work/wrong"
}
for ((seed = ${LAB_FIRST_SEED:-1}; seed <= seeds; ++seed)); do
  for fault in "${faults[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.2; done
    one "$fault" $seed </dev/null &
  done
done
wait
sort "$out/table.txt"
echo "$((SECONDS)) s"
[ -s "$work/wrong" ] && tr ' ' '\n' <"$work/wrong" | tar -C "$work" -czf "$out/wrong.tar.gz" -T -
rm -rf "$work"
