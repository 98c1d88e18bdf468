#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time without a plugin, with ours and, where INSPECTOR names its library, with NCCL Inspector, interleaved:
#   [INSPECTOR=FILE.so] [LOOP=ddp] lab/measure_cost.sh FOLDER_OF_PLUGIN [ROUNDS] [STEPS]
# The order turns with every round, so that none is always the first on a cold GPU. Prints every round, then the median,
# the least and the most of each kind.
set -u
plugin=$1 rounds=${2:-5} steps=${3:-400} loop=${LOOP:-ddp}
kinds=(none ours)
[ -n "${INSPECTOR:-}" ] && kinds+=(inspector)
results=$(mktemp)
export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-cost CUDA_MPS_LOG_DIRECTORY=/tmp/mps-cost TACET_BOX_DIR=/dev/shm/tacet-cost
measure() {
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$TACET_BOX_DIR" /tmp/lab/inspector
  case $1 in
    none) export NCCL_PROFILER_PLUGIN=none ;;
    ours) export NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so ;;
    inspector) export NCCL_PROFILER_PLUGIN=$INSPECTOR ;;
  esac
  unset NCCL_INSPECTOR_ENABLE
  [ "$1" = inspector ] && export NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=/tmp/lab/inspector \
    NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500000
  rm -rf /tmp/lab/cost
  nvidia-cuda-mps-control -d
  lab/run_local.sh 4 /tmp/lab/cost "${SECONDS_EACH:-90}" --loop "$loop" --steps "$steps" --measure
  echo quit | nvidia-cuda-mps-control
  # A plugin that was asked for and left nothing was not loaded, and its figure would be the one without any.
  left=-
  [ "$1" = ours ] && left=$(find "$TACET_BOX_DIR" -name '*.box' | wc -l)
  [ "$1" = inspector ] && left=$(find /tmp/lab/inspector -type f | wc -l)
  ms=$(sed -n 's/^measured: median step \([0-9.]*\) ms.*/\1/p' /tmp/lab/cost/stdout_rank0.log)
  echo "round $round $1 ${ms:-failed} ms, files $left"
  [ -n "$ms" ] && [ "$left" != 0 ] && echo "$1 $ms" >> "$results"
  rm -rf "$TACET_BOX_DIR" /tmp/lab/inspector
}
for ((round = 0; round < rounds; ++round)); do
  for ((i = 0; i < ${#kinds[@]}; ++i)); do measure "${kinds[(i + round) % ${#kinds[@]}]}"; done
done
for kind in "${kinds[@]}"; do
  sort -k2 -n "$results" | awk -v kind="$kind" '$1 == kind { ms[n++] = $2 }
    END { if (n) printf "%-9s %d rounds: median %.3f ms, %.3f to %.3f\n", kind, n, n % 2 ? ms[(n-1)/2] : (ms[n/2-1]+ms[n/2])/2, ms[0], ms[n-1]
          else print kind, "no rounds" }'
done
rm -f "$results"
