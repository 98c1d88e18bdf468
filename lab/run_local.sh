#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs lab/fault_job.py with several ranks on one GPU: each rank gets its own NCCL_HOSTID, so NCCL takes it for a node of
# its own and uses the network. usage: lab/run_local.sh RANKS FOLDER SECONDS [arguments of fault_job.py]
# Leaves what a user would have afterwards: NCCL logs, flight records, output and stacks of every rank, NCCL RAS answers.
# Ends after SECONDS with SIGKILL for all ranks, as a scheduler would. Environment variables are passed on;
# LAB_RANK_ENV="R:NAME=VALUE ..." sets some for single ranks only.
set -u
ranks=$1 folder=$2 seconds=$3
shift 3
mkdir -p "$folder"
here=$(cd "$(dirname "$0")" && pwd)
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=$ranks
export NCCL_MAX_NCHANNELS=${NCCL_MAX_NCHANNELS:-2} NCCL_DEBUG=${NCCL_DEBUG:-WARN} NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
ras_port=$((10000 + RANDOM % 9000))
export NCCL_RAS_ADDR=127.0.0.1:$ras_port LAB_OUT=$folder
export TORCH_FR_BUFFER_SIZE=${TORCH_FR_BUFFER_SIZE:-2000} TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE=$folder/nccl_trace_rank_
pids=()
for ((rank = 0; rank < ranks; ++rank)); do
  own=()
  for setting in ${LAB_RANK_ENV:-}; do [ "${setting%%:*}" = "$rank" ] && own+=("${setting#*:}"); done
  env RANK=$rank LOCAL_RANK=0 NCCL_HOSTID=node$rank NCCL_DEBUG_FILE="$folder/nccl_rank$rank.log" "${own[@]}" \
    python3 "$here/fault_job.py" "$@" >"$folder/stdout_rank$rank.log" 2>&1 &
  pids+=($!)
done
end=$((SECONDS + seconds)) asked=0
while [ $SECONDS -lt $end ]; do
  alive=0
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && alive=1; done
  [ $alive = 0 ] && break
  if [ -n "${LAB_RAS_S:-}" ] && [ $asked = 0 ] && [ $((end - SECONDS)) -le $((seconds - LAB_RAS_S)) ]; then
    asked=1
    python3 "$here/ask_ras.py" "$ras_port" "$folder"
  fi
  sleep 1
done
for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
wait 2>/dev/null
find "$folder" -maxdepth 1 -size 0 -delete
exit 0
