#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records many incidents, several at a time: lab/campaign.sh LIST OUT [AT_ONCE] [FOLDER_OF_PLUGIN]
# A line of LIST: NAME|RANKS|SECONDS|ENVIRONMENT|ARGUMENTS. Every job has an MPS daemon of its own, for a client that is
# killed takes the others of its daemon with it. RANKS may read torchrun:N: then torchrun starts them, in one output.
set -u
list=$1 out=$2 at_once=${3:-6} plugin=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
record() {
  local name=$1 ranks=$2 seconds=$3 settings=$4 arguments=$5 folder=$out/$1
  mkdir -p "$folder/boxes" "/tmp/mps-$name"
  export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-$name CUDA_MPS_LOG_DIRECTORY=/tmp/mps-$name
  nvidia-cuda-mps-control -d
  [ -n "$plugin" ] && export NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so TACET_BOX_DIR=$folder/boxes TACET_BOX_MB=1
  # shellcheck disable=SC2086
  if [ "${ranks#torchrun:}" != "$ranks" ]; then
    env $settings LAB_OUT="$folder" NCCL_DEBUG_FILE="$folder/nccl_%p.log" TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" \
      TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 timeout -s KILL "$seconds" \
      torchrun --nproc-per-node "${ranks#torchrun:}" --master-port $((20000 + RANDOM % 20000)) "$here/fault_job.py" $arguments >"$folder/output.log" 2>&1
  else
    env ${settings//,/ } "$here/run_local.sh" "$ranks" "$folder" "$seconds" $arguments
  fi
  # torchrun's workers lead sessions of their own: a stopped one outlives it and keeps the MPS daemon.
  for environment in $(grep -lsz "^LAB_OUT=$folder$" /proc/[0-9]*/environ); do kill -9 "$(cut -d/ -f3 <<<"$environment")" 2>/dev/null; done
  echo quit | timeout 10 nvidia-cuda-mps-control
  echo "$name done"
}
while IFS='|' read -r name ranks seconds settings arguments; do
  [ -z "$name" ] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.5; done
  record "$name" "$ranks" "$seconds" "$settings" "$arguments" </dev/null &
done <"$list"
wait
