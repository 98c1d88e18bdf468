#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_gloo.sh OUT RANKS FAULT RANK [detail]: one gloo job on this host, no GPU needed. Each rank is ended after LIMIT_S (40) seconds.
set -u
out=$1 ranks=$2 fault=$3 guilty=$4
mkdir -p "$out"
here=$(cd "$(dirname "$0")" && pwd)
export LAB_OUT=$out WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=${MASTER_PORT:-$((20000 + $$ % 20000))} OMP_NUM_THREADS=1
[ "${5:-}" = detail ] && export TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank timeout -s KILL "${LIMIT_S:-40}" "${PYTHON:-python3}" "${GLOO_JOB:-$here/gloo_job.py}" "$fault" "$guilty" >"$out/stdout_rank$rank.log" 2>&1 &
done
wait
find "$out" -name 'stack_rank*' -empty -delete
