#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the fifth set of jobs (user_job5.py): user_jobs5.sh OUT [AT_ONCE] [CASE ...]
# Each case leaves in OUT/NN/ what its user would have. Ways to start:
#   run    torchrun, console.log                      tee    torchrun --log-dir logs --tee 3, and console.log
#   redir  torchrun --log-dir logs --redirects 3      spawn  python with mp.spawn, console.log
#   loop   a process per rank, one output for all     files  a process per rank in the background, rank_R.out
# With:    none, warn, info (NCCL_DEBUG), fr (flight records nccl_trace_rank_R)
# LAB_PYTHON (python3), LAB_TORCHRUN (torchrun); LAB_DEVICE=cpu takes gloo and leaves MPS out. LAB_LIMIT: seconds of a case (40).
set -u
out=$1 at_once=${2:-8} here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] && shift 2 || shift
only=" $* "
python=${LAB_PYTHON:-python3} limit=${LAB_LIMIT:-40}
read -r -a torchrun <<<"${LAB_TORCHRUN:-torchrun}"
mkdir -p "$out"; out=$(cd "$out" && pwd)
export PYTHONUNBUFFERED=1 PYTHONIOENCODING=utf-8
record() {
  local name=$1 script=$2 ranks=$3 way=$4 with=$5 folder=$out/$1 scratch=/tmp/lab5-$1-$$ begin=$SECONDS code=0 mps=1 r p pid environment
  local port=$((21000 + 10#$name * 200 + RANDOM % 200)) first=0 pids=()
  rm -rf "$folder" "$scratch"; mkdir -p "$folder" "$scratch/data" "$scratch/mps"
  cp "$here/user_job5.py" "$scratch/$script"
  export LAB_JOB=five-$name-$$ LAB_SCRATCH=$scratch/data CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
  # A fault of one client of MPS is a fault of all, and MPS has its own idea of CUDA_VISIBLE_DEVICES.
  case $name in 24 | 35) mps=0 ;; esac
  [ "${LAB_DEVICE:-cuda}" = cpu ] && mps=0
  if [ $mps = 1 ]; then nvidia-cuda-mps-control -d; else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
  case $with in
    warn | info) export NCCL_DEBUG=${with^^} ;;
    fr) export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$folder/nccl_trace_rank_" ;;
  esac
  local job=("$scratch/$script" --case "$name") run=(timeout -s KILL "$limit" "${torchrun[@]}" --nproc_per_node "$ranks" --master_port "$port")
  case $way in
    run) "${run[@]}" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    tee) "${run[@]}" --log_dir "$folder/logs" --tee 3 "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    redir) "${run[@]}" --log_dir "$folder/logs" --redirects 3 "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    spawn) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout -s KILL "$limit" "$python" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    loop | files)
      [ "$name" = 13 ] && first=1
      for ((r = first; r < ranks; ++r)); do
        (
          export RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
          [ "$name$r" = 331 ] && MASTER_ADDR=192.0.2.15
          [ "$name" = 24 ] && export CUDA_VISIBLE_DEVICES=$r
          if [ "$way" = loop ]; then file=$folder/all.out; else file=$folder/rank_$r.out; fi
          exec timeout -s KILL "$limit" "$python" "${job[@]}" >>"$file" 2>&1
        ) &
        pids+=($!)
      done
      for p in "${pids[@]}"; do wait "$p" || code=$?; done ;;
  esac
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
16 train_tp.py 4 redir info
33 probe.py 3 files none
13 probe.py 4 loop none
24 regress.py 3 files none
02 train_dual_encoder.py 3 redir info
12 pairs.py 4 run warn
08 wave.py 4 run fr
06 train_ae.py 3 spawn none
18 ppo.py 3 run none
25 pinn.py 3 run none
34 vae.py 4 run fr
22 captions.py 4 tee fr
31 unet.py 3 run fr
04 train_lm.py 3 tee fr
10 tabular.py 3 loop none
28 train.py 3 files warn
05 forecast.py 3 files none
11 scans.py 4 files none
09 vit.py 4 run none
23 train_cnn.py 3 run none
32 gnn.py 4 run none
21 longdoc.py 4 run none
35 products.py 3 run none
30 train_asr.py 4 tee none
19 native.py 3 redir none
14 flow.py 4 tee none
07 digits.py 3 run none
26 ranker.py 4 run none
29 multitask.py 3 run none
38 tabular.py 3 loop none
03 autobatch.py 3 run none
15 viewer.py 3 files none
20 train.py 4 spawn none
27 search.py 3 run warn
36 vgg.py 3 spawn none
17 resume.py 3 run none
01 run_glue.py 3 redir none
37 launch.py 3 spawn none
LIST
wait
