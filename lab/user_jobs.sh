#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records jobs with mistakes that users make, started the ways users start them and with what users keep:
#   lab/user_jobs.sh OUT [AT_ONCE] [LIST]
# A line of LIST: NAME MISTAKE RANKS GUILTY WAY [TIMEOUT] [STEPS]. WAY is how it is started and what is left of it:
#   output       torchrun, everything in one file            redirects  --log-dir with --redirects 3, and torchrun's own words
#   tee          --log-dir with --tee 3                      info, warn one file, with NCCL_DEBUG=INFO or WARN
#   ranks        one process and one file per rank           files      the same with NCCL_DEBUG_FILE
#   records      one file and flight records                 limit      one file, ended from outside after 45 s
set -u
out=$1 at_once=${2:-5} here=$(cd "$(dirname "$0")" && pwd)
list=${3:-$here/user_jobs.list}
small=/tmp/lab-small-disk
mkdir -p "$out" $small && mount -t tmpfs -o size=8m tmpfs $small 2>/dev/null
export LAB_SMALL_DISK=$small PYTHONUNBUFFERED=1
record() {
  local name=$1 mistake=$2 ranks=$3 guilty=$4 way=$5 timeout=${6:-12} steps=${7:-24} folder=$out/$1
  local port=$((20000 + RANDOM % 20000)) job=("$here/user_job.py" "$mistake" --guilty "$guilty" --timeout "$timeout" --steps "$steps")
  mkdir -p "$folder" "/tmp/mps-$name"
  export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-$name CUDA_MPS_LOG_DIRECTORY=/tmp/mps-$name LAB_JOB=$name
  nvidia-cuda-mps-control -d
  local run=(torchrun --nproc-per-node "$ranks" --master-port "$port")
  [ "$mistake" = port_taken ] && { python3 -c "import socket,time;s=socket.socket();s.bind(('',$port));s.listen();time.sleep(40)" & }
  [ "$mistake" = node_missing ] && run=(torchrun --nnodes 2 --node-rank 0 --nproc-per-node "$ranks" --rdzv-backend c10d --rdzv-id "$name" \
    --rdzv-endpoint "127.0.0.1:$port" --rdzv-conf join_timeout=15)
  case $way in
    output) timeout -s KILL 75 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 ;;
    info) NCCL_DEBUG=INFO timeout -s KILL 75 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 ;;
    warn) NCCL_DEBUG=WARN timeout -s KILL 75 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 ;;
    records) TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" \
      timeout -s KILL 75 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 ;;
    limit) timeout -s TERM -k 20 45 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1; echo "slurmstepd: error: *** JOB 88121 ON gpu-1 CANCELLED AT $(date +%Y-%m-%dT%H:%M:%S) DUE TO TIME LIMIT ***" >>"$folder/train.log" ;;
    redirects) timeout -s KILL 75 "${run[@]}" --log-dir "$folder/logs" --redirects 3 "${job[@]}" >"$folder/launcher.log" 2>&1 ;;
    tee) timeout -s KILL 75 "${run[@]}" --log-dir "$folder/logs" --tee 3 "${job[@]}" >"$folder/launcher.log" 2>&1 ;;
    ranks | files)
      [ "$way" = files ] && export NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$folder/nccl.%h.%p.log"
      for ((r = 0; r < ranks; ++r)); do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout -s KILL 60 python3 "${job[@]}" >"$folder/rank$r.log" 2>&1 &
      done
      wait $(jobs -rp) ;;
  esac
  for environment in $(grep -lsz "^LAB_JOB=$name$" /proc/[0-9]*/environ); do
    pid=$(cut -d/ -f3 <<<"$environment"); [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -9 "$pid" 2>/dev/null
  done
  echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  echo "$name done"
}
while read -r name mistake ranks guilty way timeout steps; do
  [ -z "$name" ] || [ "${name#\#}" != "$name" ] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.3; done
  record "$name" "$mistake" "$ranks" "$guilty" "$way" "${timeout:-12}" "${steps:-24}" </dev/null &
done <"$list"
wait
