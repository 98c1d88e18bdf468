#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the seventh set of jobs (user_job7.py): user_jobs7.sh OUT [AT_ONCE] [CASE ...]
# Each case leaves in OUT/NN/ what its user would have. Ways to start:
#   run    torchrun, console.log                      tee    torchrun --log-dir logs --tee 3, and console.log
#   rerun  as run, with --max-restarts 1              teere  as tee, with --max-restarts 1
#   redir  torchrun --log-dir logs --redirects 3      spawn  python with mp.spawn, console.log
#   loop   a process per rank, one output for all     files  a process per rank in the background, worker.R.out
#   mpi    a process per rank, [1,R]<stdout>: in front of its lines, job.out    srun   as mpi, with R: in front, slurm.out
# With:    none, warn, info (NCCL_DEBUG), fr (flight records nccl_trace_rank_R)
# Limit:   seconds after which the case is killed, or own: the user's own timeout (45 s, SIGTERM).
# LAB_PYTHON (python3), LAB_TORCHRUN (torchrun); LAB_DEVICE=cpu takes gloo and leaves MPS out. LAB_LIMIT replaces the 75 s.
set -u
out=$1 at_once=${2:-8} here=$(cd "$(dirname "$0")" && pwd)
[ "$at_once" -gt 8 ] && at_once=8
[ $# -ge 2 ] && shift 2 || shift
only=" $* "
python=${LAB_PYTHON:-python3}
read -r -a torchrun <<<"${LAB_TORCHRUN:-torchrun}"
mkdir -p "$out"; out=$(cd "$out" && pwd)
export PYTHONUNBUFFERED=1 PYTHONIOENCODING=utf-8
record() {
  local name=$1 script=$2 ranks=$3 way=$4 with=$5 most=$6 folder=$out/$1 scratch=/tmp/lab7-$1-$$ begin=$SECONDS code=0 mps=1 r q pid environment
  local port=$((21000 + 10#$name * 200 + RANDOM % 200)) pids=() bound=(timeout -s KILL "${LAB_LIMIT:-75}") options=()
  [ "$most" = own ] && bound=(timeout -k 5 45)
  rm -rf "$folder" "$scratch"; mkdir -p "$folder" "$scratch/data" "$scratch/mps"
  cp "$here/user_job7.py" "$scratch/$script"
  export LAB_JOB=seven-$name-$$ LAB_SCRATCH=$scratch/data CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
  [ "${LAB_DEVICE:-cuda}" = cpu ] && mps=0
  if [ $mps = 1 ]; then nvidia-cuda-mps-control -d; else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
  case $with in
    warn | info) export NCCL_DEBUG=${with^^} ;;
    fr) export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$folder/nccl_trace_rank_" ;;
  esac
  case $way in
    rerun) options=(--max_restarts 1) ;;
    tee) options=(--log_dir "$folder/logs" --tee 3) ;;
    teere) options=(--log_dir "$folder/logs" --tee 3 --max_restarts 1) ;;
    redir) options=(--log_dir "$folder/logs" --redirects 3) ;;
  esac
  local job=("$scratch/$script" --case "$name")
  case $way in
    run | rerun | tee | teere | redir) "${bound[@]}" "${torchrun[@]}" --nproc_per_node "$ranks" --master_port "$port" "${options[@]}" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    spawn) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "${bound[@]}" "$python" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    loop | files | mpi | srun)
      for ((r = 0; r < ranks; ++r)); do
        (
          set -o pipefail
          export RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
          [ "$name$r" = 342 ] && unset RANK
          case $way in
            loop) exec "${bound[@]}" "$python" "${job[@]}" >>"$folder/train.log" 2>&1 ;;
            files) exec "${bound[@]}" "$python" "${job[@]}" >"$folder/worker.$r.out" 2>&1 ;;
            mpi) "${bound[@]}" "$python" "${job[@]}" 2> >(sed -u "s/^/[1,$r]<stderr>:/" >>"$folder/job.out") | sed -u "s/^/[1,$r]<stdout>:/" >>"$folder/job.out" ;;
            srun) "${bound[@]}" "$python" "${job[@]}" 2>&1 | sed -u "s/^/$r: /" >>"$folder/slurm.out" ;;
          esac
        ) &
        pids+=($!)
      done
      for q in "${pids[@]}"; do wait "$q" || code=$?; done
      sleep 0.3 ;;
  esac
  for environment in $(grep -lsz "^LAB_JOB=$LAB_JOB$" /proc/[0-9]*/environ); do
    pid=$(cut -d/ -f3 <<<"$environment"); [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -9 "$pid" 2>/dev/null
  done
  [ $mps = 1 ] && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  rm -rf "$scratch"
  echo "$name done $((SECONDS - begin)) s exit $code"
}
# The longest first.
while read -r name script ranks way with most; do
  [ -z "$name" ] && continue
  [ "$only" != "  " ] && [[ $only != *" $name "* ]] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.3; done
  record "$name" "$script" "$ranks" "$way" "$with" "$most" </dev/null &
done <<'LIST'
15 main.py 3 loop none own
21 train_enc.py 3 files none own
28 train.py 3 redir none own
35 train_sensors.py 3 teere none 75
01 ppo.py 4 run info 75
02 hubert.py 4 files none 75
04 resume.py 4 redir info 75
05 attn.py 4 tee none 75
07 stages.py 4 run none 75
10 train.py 3 run warn 75
16 train_wav.py 4 files none 75
18 run_clm.py 3 tee none 75
19 pp.py 4 run warn 75
24 heat.py 4 srun fr 75
25 detect.py 3 run fr 75
27 moe.py 4 run fr 75
29 gan.py 3 run none 75
34 probe.py 3 files none 75
36 train_lm.py 4 tee fr 75
37 ctr.py 3 mpi none 75
38 train_ner.py 3 run warn 75
40 pretrain.py 3 loop none 75
03 tabular.py 3 run none 75
06 relex.py 3 tee none 75
08 run_energy.py 3 spawn none 75
09 train.py 3 tee info 75
11 elastic.py 3 rerun none 75
12 transfer.py 3 spawn none 75
13 regress.py 3 run none 75
14 main.py 3 mpi none 75
17 train.py 3 run none 75
20 train.py 3 files none 75
22 train_small.py 3 spawn none 75
23 train_ddpm.py 3 srun none 75
26 judge.py 3 srun none 75
30 rl.py 3 tee warn 75
31 features.py 3 run none 75
32 amp.py 3 redir none 75
33 train_sd.py 3 run none 75
39 export.py 3 loop none 75
LIST
wait
