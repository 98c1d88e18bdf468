#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the eighth set of jobs (user_job8.py): user_jobs8.sh OUT [AT_ONCE] [CASE ...]
# Each case leaves in OUT/NN/ what its user would have. Ways to start:
#   run    torchrun, console.log                      tee    torchrun --log-dir logs --tee 3, and console.log
#   rerun  as run, with --max-restarts 1              redir  torchrun --log-dir logs --redirects 3
#   sum    as redir, but the logs are lost            spawn  python with mp.spawn, console.log
#   loop   a process per rank, one output for all     files  a process per rank in the background, worker.R.out
#   mpi    a process per rank, [1,R]<stdout>: in front of its lines, job.out    srun   as mpi, with R: in front, slurm.out
# With:    none, warn, info (NCCL_DEBUG), coll (INFO with subsystem COLL), fr (flight records nccl_trace_rank_R), detail (TORCH_DISTRIBUTED_DEBUG=DETAIL)
# Limit:   seconds after which the case is killed; with T the user's own timeout (SIGTERM), with I Ctrl-C (SIGINT).
# Extra:   dropN: rank N is not started; dupN: rank N is started with RANK=N-1; addrN: another MASTER_ADDR for rank N; busy: the
#          port is taken; nohost: no NCCL_HOSTID; nomps: without MPS; killN, stopN: SIGKILL, SIGSTOP for rank N while it runs;
#          term: ended as by Slurm; stacks: SIGUSR1 (faulthandler) to all ranks 6 s before the limit; look: pyspy_rankR.txt then;
#          afterN: 6 s after rank N is up instead
# LAB_PROGRAM (user_job8.py), LAB_LIST (a file in place of the list below), LAB_SET (a word) and LAB_MOST (AT_ONCE is at most that, 8) are for other sets.
# LAB_PYTHON (python3), LAB_TORCHRUN (torchrun); LAB_DEVICE=cpu takes gloo and leaves MPS out. LAB_LIMIT replaces the limits.
set -u
out=$1 at_once=${2:-8} here=$(cd "$(dirname "$0")" && pwd)
[ "$at_once" -gt "${LAB_MOST:-8}" ] && at_once=${LAB_MOST:-8}
[ $# -ge 2 ] && shift 2 || shift
only=" $* "
program=${LAB_PROGRAM:-$here/user_job8.py}
python=${LAB_PYTHON:-python3}
read -r -a torchrun <<<"${LAB_TORCHRUN:-torchrun}"
mkdir -p "$out"; out=$(cd "$out" && pwd)
export PYTHONUNBUFFERED=1 PYTHONIOENCODING=utf-8 OMP_NUM_THREADS=1
ranks_of() { # [RANK]: the processes of the ranks of this job, or of one
  local file pid
  for file in $(grep -lsz "^LAB_JOB=$LAB_JOB$" /proc/[0-9]*/environ); do
    grep -qsz "^RANK=${1:-[0-9]*}$" "$file" || continue
    pid=$(cut -d/ -f3 <<<"$file")
    case $(cat "/proc/$pid/comm" 2>/dev/null) in timeout | bash | sh | sed | "") continue ;; esac
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -- --case && echo "$pid"
  done
}
onlook() { # what happens to a job, or is asked of it, while it runs
  local extra=,$1, begin=$SECONDS r q
  [[ $extra =~ ,(kill|stop)([0-9]), ]] && what=${BASH_REMATCH[1]} r=${BASH_REMATCH[2]} || what= r=
  [[ $extra == *,term,* ]] && what=term r=0
  if [ -n "$what" ]; then
    until [ -e "$scratch/data/up-$r" ] || [ $((SECONDS - begin)) -gt 50 ]; do sleep 0.3; done
    sleep 2
    case $what in
      kill) kill -9 $(ranks_of "$r") ;;
      stop) kill -STOP $(ranks_of "$r") ;;
      term)
        echo "slurmstepd: error: *** STEP 88213.0 ON gn07 CANCELLED AT $(date +%FT%T) DUE TO TIME LIMIT ***" >>"$folder/slurm.out"
        kill -TERM $(ranks_of) ;;
    esac
  fi
  [[ $extra == *,stacks,* || $extra == *,look,* ]] || return
  local pause=$(($2 - 6 - (SECONDS - begin)))
  if [[ $extra =~ ,after([0-9]), ]]; then
    until [ -e "$scratch/data/up-${BASH_REMATCH[1]}" ] || [ $((SECONDS - begin)) -gt 50 ]; do sleep 0.3; done
    pause=6
  fi
  [ "$pause" -gt 0 ] && sleep "$pause"
  if [[ $extra == *,stop* ]]; then
    echo "    PID STAT CMD" >"$folder/ps.txt"
    for q in $(ranks_of); do
      echo "$(printf %7d "$q") $(awk '/^State:/ {print $2}' "/proc/$q/status")    $(tr '\0' ' ' <"/proc/$q/cmdline" | sed 's/ --case.*//; s|/[^ ]*/||g') # rank $(tr '\0' '\n' <"/proc/$q/environ" | sed -n 's/^RANK=//p')" >>"$folder/ps.txt"
    done
  fi
  [[ $extra == *,look,* ]] && touch "$scratch/data/dump"
  [[ $extra == *,stacks,* ]] && kill -USR1 $(ranks_of)
}
record() {
  local name=$1 script=$2 ranks=$3 way=$4 with=$5 most=$6 extra=,$7, folder=$out/$1 scratch=/tmp/run-$1-$$ begin=$SECONDS code=0 mps=1 r q pid environment
  local port=$((20100 + 10#$name * 170 + RANDOM % 170)) pids=() limit=${LAB_LIMIT:-${6#[TI]}} options=() what
  local bound=(timeout -s KILL "$limit")
  [ "${most:0:1}" = T ] && bound=(timeout -k 5 "$limit")
  [ "${most:0:1}" = I ] && bound=(timeout -k 5 -s INT "$limit" env --default-signal=INT) # a job in the background has SIGINT ignored
  rm -rf "$folder" "$scratch"; mkdir -p "$folder" "$scratch/data" "$scratch/mps"
  cp "$program" "$scratch/$script"
  export LAB_JOB=${LAB_SET:-eight}-$name-$$ LAB_SCRATCH=$scratch/data LAB_KEEP=$folder CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
  [ "${LAB_DEVICE:-cuda}" = cpu ] || [[ $extra == *,nomps,* ]] && mps=0
  [[ $extra == *,nohost,* ]] && export LAB_ONE_HOST=1
  if [ $mps = 1 ]; then nvidia-cuda-mps-control -d; else unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY; fi
  case $with in
    warn | info) export NCCL_DEBUG=${with^^} ;;
    detail) export TORCH_DISTRIBUTED_DEBUG=DETAIL ;;
    coll) export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL ;;
    fr) export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$folder/nccl_trace_rank_" ;;
  esac
  case $way in
    rerun) options=(--max_restarts 1) ;;
    tee) options=(--log_dir "$folder/logs" --tee 3) ;;
    redir) options=(--log_dir "$folder/logs" --redirects 3) ;;
    sum) options=(--log_dir "$scratch/logs" --redirects 3) ;;
  esac
  [[ $extra == *,busy,* ]] && { "$python" -m http.server "$port" --bind 0.0.0.0 >/dev/null 2>&1 & sleep 2; }
  [ "$7" != - ] && { onlook "$7" "$limit" & }
  local job=("$scratch/$script" --case "$name")
  case $way in
    run | rerun | tee | redir | sum) "${bound[@]}" "${torchrun[@]}" --nproc_per_node "$ranks" --master_port "$port" "${options[@]}" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    spawn) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "${bound[@]}" "$python" "${job[@]}" >"$folder/console.log" 2>&1 || code=$? ;;
    loop | files | mpi | srun)
      for ((r = 0; r < ranks; ++r)); do
        [[ $extra == *,drop$r,* ]] && continue
        (
          set -o pipefail
          export RANK=$r LOCAL_RANK=$r LAB_SEAT=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
          [[ $extra == *,dup$r,* ]] && export RANK=$((r - 1)) LOCAL_RANK=$((r - 1))
          [[ $extra == *,addr$r,* ]] && export MASTER_ADDR=gpu-node-03.cluster.internal
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
list() {
  if [ -n "${LAB_LIST:-}" ]; then cat "$LAB_LIST"; return; fi
  cat <<'LIST'
06 simulate.py 4 srun none 75 term
17 train_curve.py 3 run none 75 -
27 train_lm.py 4 run none 75 kill2
33 train_docs.py 4 mpi none 75 -
52 train_video.py 3 files none 75 -
12 envs.py 4 files none 60 stop2,stacks
14 train_points.py 4 files none 60 nomps
21 train_ddp.py 4 loop none 60 drop3
34 detect.py 3 run fr 60 look,nomps,after1
43 train.py 3 srun none 60 addr2
51 main_ddp.py 3 run warn 60 nohost
56 train_ddp.py 3 run none 60 busy
08 train_gcn.py 4 srun none 75 -
40 nmt.py 3 tee info 75 -
02 train_stream.py 3 files none T50 stacks
04 train.py 3 run fr 70 -
07 ring.py 4 run none T50 look
09 finetune_bars.py 3 tee warn 70 -
11 train_seg.py 3 files none 70 -
15 sr.py 3 srun none 70 -
16 train_compiled.py 4 tee none 70 -
19 autobatch.py 3 srun none 70 -
22 train_nli.py 4 run none 70 -
23 train_t5.py 3 rerun none 70 -
24 train_shards.py 4 srun fr 70 -
25 train_imgs.py 3 run none 70 -
26 reports.py 4 tee fr 70 -
28 train_heads.py 4 tee none 70 -
29 finetune_sp.py 3 spawn none 70 -
30 finetune.py 4 files coll 70 -
32 train.py 3 tee info 70 -
36 train.py 4 tee fr 70 -
38 pipeline.py 3 files fr 70 -
39 train_report.py 3 tee none T50 look
41 train_zero.py 3 run fr 70 -
42 tickets.py 3 run info 70 -
44 cifar.py 3 run fr 70 -
45 train_ctr.py 4 files none T50 stacks
46 train_cached.py 4 run none T50 stacks
47 apex_like.py 3 loop none 70 -
48 train_mt.py 3 run warn 70 -
49 train_reg.py 3 mpi none 70 -
53 classify.py 3 run none 70 -
54 ddp_mnist.py 3 files warn T50 dup2
55 train_vq.py 3 run none 70 -
58 train_log.py 3 redir none T50 look
59 train_join.py 4 files fr 70 -
01 finetune.py 3 redir none 60 -
03 train_avg.py 3 loop none 60 -
05 train.py 4 run none 60 -
10 traffic.py 4 mpi none 60 -
13 pretrain_mlp.py 3 spawn none 60 -
18 train.py 3 sum none 60 -
20 train_ts.py 3 files none 60 -
31 multitask.py 3 run none 60 -
35 train.py 3 run none 60 -
37 birds.py 4 run none 60 -
50 train_flash.py 3 rerun none 60 -
57 train_ocr.py 3 tee none 60 -
60 train_tok.py 3 tee none 60 -
LIST
}
# The longest first.
while read -r name script ranks way with most extra; do
  [ -z "$name" ] && continue
  [ "$only" != "  " ] && [[ $only != *" $name "* ]] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.3; done
  record "$name" "$script" "$ranks" "$way" "$with" "$most" "$extra" </dev/null &
done < <(list)
wait
