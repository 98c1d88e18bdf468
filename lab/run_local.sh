#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs lab/fault_job.py with several ranks on one GPU: each rank gets its own NCCL_HOSTID, so NCCL takes it for a node of
# its own and uses the network. usage: lab/run_local.sh RANKS FOLDER SECONDS [arguments of fault_job.py]
# Ends after SECONDS with SIGKILL for all ranks, as a scheduler would. Environment variables are passed on.
set -u
ranks=$1 folder=$2 seconds=$3
shift 3
mkdir -p "$folder"
here=$(cd "$(dirname "$0")" && pwd)
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=$ranks
export NCCL_MAX_NCHANNELS=${NCCL_MAX_NCHANNELS:-2} NCCL_DEBUG=${NCCL_DEBUG:-WARN} NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
pids=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=0 NCCL_HOSTID=node$rank NCCL_DEBUG_FILE="$folder/nccl_rank$rank.log" \
    python3 "$here/fault_job.py" "$@" >"$folder/stdout_rank$rank.log" 2>&1 &
  pids+=($!)
done
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
  alive=0
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && alive=1; done
  [ $alive = 0 ] && break
  sleep 1
done
for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
wait 2>/dev/null
exit 0
