#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the sixth set of jobs (user_job6.py): user_jobs6.sh OUT [AT_ONCE] [CASE ...]
# Each case leaves in OUT/NN/ what its user would have. Ways to start:
#   run    torchrun, console.log                      tee    torchrun --log-dir logs --tee 3, and console.log
#   redir  torchrun --log-dir logs --redirects 3      spawn  python with mp.spawn, console.log
#   loop   a process per rank, one output for all     files  a process per rank in the background, task_R.log
#   mpi    a process per rank, [1,R]<stdout>: in front of its lines, job.out    srun   as mpi, with R: in front, slurm.out
# With:    none, warn, info, coll (NCCL_DEBUG), fr (flight records nccl_trace_rank_R)
# LAB_PYTHON (python3), LAB_TORCHRUN (torchrun); LAB_DEVICE=cpu takes gloo and leaves MPS out. LAB_LIMIT: seconds of a case (40).
set -u
out=$1 at_once=${2:-10} here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] && shift 2 || shift
only=" $* "
python=${LAB_PYTHON:-python3} limit=${LAB_LIMIT:-40}
read -r -a torchrun <<<"${LAB_TORCHRUN:-torchrun}"
mkdir -p "$out"; out=$(cd "$out" && pwd)
export PYTHONUNBUFFERED=1 PYTHONIOENCODING=utf-8
record() {
  local name=$1 script=$2 ranks=$3 way=$4 with=$5 folder=$out/$1 scratch=/tmp/lab6-$1-$$ begin=$SECONDS code=0 mps=1 r p pid environment holder=
  local port=$((21000 + 10#$name * 200 + RANDOM % 200)) pids=()
  rm -rf "$folder" "$scratch"; mkdir -p "$folder" "$scratch/data" "$scratch/mps"
  cp "$here/user_job6.py" "$scratch/$script"
  export LAB_JOB=six-$name-$$ LAB_SCRATCH=$scratch/data CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
  [ "${LAB_DEVICE:-cuda}" = cpu ] && mps=0
  if [ $mps = 1 ]; then nvidia-cuda-mps-control -d; else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
  case $with in
    warn | info) export NCCL_DEBUG=${with^^} ;;
    coll) export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL ;;
    fr) export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$folder/nccl_trace_rank_" ;;
  esac
  if [ "$name" = 25 ]; then
    # An older run still has the port.
    "$python" -c "import socket, time; s = socket.create_server(('0.0.0.0', $port)); time.sleep(60)" & holder=$!
    sleep 1
  fi
  local job=("$scratch/$script" --case "$name") run=(timeout -s KILL "$limit" "${torchrun[@]}" --nproc_per_node "$ranks" --master_port "$port")
  case $way in
    run) "${run[@]}" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    tee) "${run[@]}" --log_dir "$folder/logs" --tee 3 "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    redir) "${run[@]}" --log_dir "$folder/logs" --redirects 3 "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    spawn) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout -s KILL "$limit" "$python" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    loop | files | mpi | srun)
      for ((r = 0; r < ranks; ++r)); do
        (
          set -o pipefail
          export RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
          [ "$name$r" = 152 ] && RANK=1
          [ "$name" = 30 ] && MASTER_ADDR=trainer-head-0.cluster.internal
          case $way in
            loop) exec timeout -s KILL "$limit" "$python" "${job[@]}" >>"$folder/train.log" 2>&1 ;;
            files) exec timeout -s KILL "$limit" "$python" "${job[@]}" >"$folder/task_$r.log" 2>&1 ;;
            mpi) timeout -s KILL "$limit" "$python" "${job[@]}" 2> >(sed -u "s/^/[1,$r]<stderr>:/" >>"$folder/job.out") | sed -u "s/^/[1,$r]<stdout>:/" >>"$folder/job.out" ;;
            srun) timeout -s KILL "$limit" "$python" "${job[@]}" 2>&1 | sed -u "s/^/$r: /" >>"$folder/slurm.out" ;;
          esac
        ) &
        pids+=($!)
      done
      for p in "${pids[@]}"; do wait "$p" || code=$?; done
      sleep 0.3 ;;
  esac
  [ -n "$holder" ] && kill "$holder" 2>/dev/null
  for environment in $(grep -lsz "^LAB_JOB=$LAB_JOB$" /proc/[0-9]*/environ); do
    pid=$(cut -d/ -f3 <<<"$environment"); [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -9 "$pid" 2>/dev/null
  done
  [ $mps = 1 ] && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  rm -rf "$scratch"
  echo "$name done $((SECONDS - begin)) s exit $code"
}
# The longest first.
while read -r name script ranks way with; do
  [ -z "$name" ] && continue
  [ "$only" != "  " ] && [[ $only != *" $name "* ]] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.3; done
  record "$name" "$script" "$ranks" "$way" "$with" </dev/null &
done <<'LIST'
34 train.py 3 loop none
15 probe.py 3 files warn
07 train_nmt.py 3 files none
02 stages.py 4 run fr
37 pipe.py 2 run fr
11 train.py 4 run fr
08 wide.py 3 tee fr
04 churn.py 4 run fr
20 train_fsdp.py 4 tee info
22 pbt.py 3 run coll
16 train.py 3 run warn
29 sentiment.py 3 redir warn
36 distill.py 4 tee none
24 recsys.py 3 redir none
30 probe.py 3 files none
19 train.py 3 srun none
40 train_shards.py 4 redir none
05 kws.py 3 files none
03 segment.py 3 mpi none
32 telemetry.py 4 files none
31 resmlp.py 3 run info
39 embed.py 3 run none
10 pretrain.py 3 tee none
17 lm.py 4 run none
35 fit.py 3 spawn none
27 treenet.py 4 run none
14 graphs.py 3 run none
09 train_tp.py 4 redir none
21 bandit.py 3 run none
12 finetune.py 4 run none
26 train_ema.py 3 srun none
23 train.py 3 spawn none
28 tracked.py 3 loop none
01 charlm.py 3 run none
18 uneven.py 3 mpi none
06 half.py 4 run none
13 tune.py 3 redir none
33 train_ln.py 3 run none
38 fraud.py 3 tee none
25 main.py 3 run none
LIST
wait
