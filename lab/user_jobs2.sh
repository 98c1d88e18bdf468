#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the second set of jobs with mistakes that users make, in ten styles of program (user_job2.py; user_job3.py where MISTAKE begins with new_, user_job4.py with more_):
#   lab/user_jobs2.sh OUT [AT_ONCE] [LIST]
# A line of LIST: NAME MISTAKE RANKS GUILTY WAY [TIMEOUT] [STEPS] [VARIABLE=VALUE ...]. WAY is how it is started and what is left:
#   output, info, warn, redirects, tee, ranks, files, records, limit   as in user_jobs.sh
#   mixed         torchrun --tee 3, the last 60 lines of what it printed, ranks in front of the lines
#   last30        the last 30 lines of one output             spawn       mp.spawn without torchrun, one output
#   stacks        one output with ranks in front; all Python stacks some 6 s after the mistake (stacks_bare: no ranks in front)
#   records_some  one output and the flight records of all ranks but the guilty one
#   boxes         one output and, with LAB_PLUGIN set, what that profiler plugin writes to NAME/boxes
#   preempt       one output; SIGUSR1 to the ranks, SIGTERM to torchrun 4 s later, and the scheduler's line
#   cancel        one output; Ctrl-C to all after a few steps (or after training, where the job waits for it)
# LAB_PYTHON (python3) and LAB_TORCHRUN (torchrun) may name others; LAB_DEVICE=cpu leaves MPS out.
set -u
out=$1 at_once=${2:-8} here=$(cd "$(dirname "$0")" && pwd)
list=${3:-$here/user_jobs2.list}
python=${LAB_PYTHON:-python3}
read -r -a torchrun <<<"${LAB_TORCHRUN:-torchrun}"
small=/tmp/lab-small-disk2
mkdir -p "$out" $small && { mountpoint -q $small || mount -t tmpfs -o size=8m tmpfs $small 2>/dev/null; }
out=$(cd "$out" && pwd)
export LAB_SMALL_DISK=$small PYTHONUNBUFFERED=1
# A background job of a shell ignores SIGINT and passes that on; this gives it back, and a process group of its own.
fresh=("$python" -c 'import os,signal,sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.setsid()
signal.alarm(70)
os.execvp(sys.argv[1], sys.argv[1:])')
ranks_of() { # the processes of this job that have a rank, in the order of ranks: PID RANK
  local environment pid
  for environment in $(grep -lsz "^LAB_JOB=$1$" /proc/[0-9]*/environ); do
    pid=$(cut -d/ -f3 <<<"$environment")
    cat "$environment" 2>/dev/null | tr '\0' '\n' | sed -n "s/^RANK=/$pid /p" | while read -r p r; do
      cat "/proc/$p/cmdline" 2>/dev/null | grep -qa "user_job[234].py" && ! cat "/proc/$(awk '{print $4}' "/proc/$p/stat" 2>/dev/null)/environ" 2>/dev/null | tr '\0' '\n' | grep -q '^RANK=' && echo "$p $r"
    done
  done | sort -k2n
}
wait_for() { # FILE PATTERN SECONDS
  local i
  for ((i = 0; i < $3 * 2; ++i)); do grep -qE "$2" "$1" 2>/dev/null && return 0; sleep 0.5; done
  return 1
}
one() { timeout -s KILL 75 "$@" >"$folder/train.log" 2>&1; }
record() {
  local name=$1 mistake=$2 ranks=$3 guilty=$4 way=$5 timeout=$6 steps=$7 folder=$out/$1 begin=$SECONDS code=0
  local variables=${*:8}
  local program=user_job2.py; case $mistake in new_*) program=user_job3.py ;; more_*) program=user_job4.py ;; esac
  local port=$((20000 + RANDOM % 12000)) job=("$here/$program" "$mistake" --guilty "$guilty" --timeout "$timeout" --steps "$steps")
  rm -rf "$folder" "/tmp/lab-scratch-$name"
  mkdir -p "$folder" "/tmp/mps2-$name"
  export LAB_JOB=$name LAB_SCRATCH=/tmp/lab-scratch-$name
  [ -n "$variables" ] && export ${variables?}
  export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps2-$name CUDA_MPS_LOG_DIRECTORY=/tmp/mps2-$name
  local mps=1
  # A fault of one client of MPS is a fault of all: these take turns on the GPU instead.
  case $mistake in gpt_label | gpt_illegal | gpt_shm) mps=0 ;; esac
  [ "${LAB_DEVICE:-cuda}" = cpu ] && mps=0
  [ $mps = 1 ] && nvidia-cuda-mps-control -d
  local run=("${torchrun[@]}" --nproc_per_node "$ranks" --master_port "$port")
  case $mistake in
    gpt_elastic_* | more_rerun) run+=(--max_restarts 1) ;;
    more_rdzv) run+=(--nnodes 2 --rdzv_backend c10d --rdzv_endpoint "127.0.0.1:$port" --rdzv_id 7 --rdzv_conf join_timeout=20,timeout=20) ;;
  esac
  if [ "$mistake" = gpt_shm ]; then
    run=(unshare -m sh -c 'mount -t tmpfs -o size=24m tmpfs /dev/shm || { echo "lab: cannot mount"; exit 99; }; exec "$@"' sh "${run[@]}")
  fi
  case $way in
    output) one "${run[@]}" "${job[@]}" || code=$? ;;
    info | warn) export NCCL_DEBUG=${way^^}; one "${run[@]}" "${job[@]}" || code=$? ;;
    records | records_some)
      export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE="$folder/nccl_trace_rank_"
      one "${run[@]}" "${job[@]}" || code=$?
      [ "$way" = records_some ] && rm -f "$folder/nccl_trace_rank_$guilty" ;;
    boxes)
      [ -n "${LAB_PLUGIN:-}" ] && { mkdir -p "$folder/boxes"; export NCCL_PROFILER_PLUGIN=$LAB_PLUGIN TACET_BOX_DIR=$folder/boxes; }
      one "${run[@]}" "${job[@]}" || code=$? ;;
    limit)
      timeout -s TERM -k 20 45 "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 || code=$?
      echo "slurmstepd: error: *** STEP 90417.0 ON gpu-7 CANCELLED AT $(date +%Y-%m-%dT%H:%M:%S) DUE TO TIME LIMIT ***" >>"$folder/train.log" ;;
    redirects) timeout -s KILL 75 "${run[@]}" --log_dir "$folder/logs" --redirects 3 "${job[@]}" >"$folder/launcher.log" 2>&1 || code=$? ;;
    tee) timeout -s KILL 75 "${run[@]}" --log_dir "$folder/logs" --tee 3 "${job[@]}" >"$folder/launcher.log" 2>&1 || code=$? ;;
    mixed)
      timeout -s KILL 75 "${run[@]}" --log_dir "/tmp/lab-scratch-$name/logs" --tee 3 "${job[@]}" >"/tmp/lab-scratch-$name.log" 2>&1 || code=$?
      tail -n 60 "/tmp/lab-scratch-$name.log" >"$folder/train.log"; rm -f "/tmp/lab-scratch-$name.log" ;;
    last30)
      timeout -s KILL 75 "${run[@]}" "${job[@]}" >"/tmp/lab-scratch-$name.log" 2>&1 || code=$?
      tail -n 30 "/tmp/lab-scratch-$name.log" >"$folder/train.log"; rm -f "/tmp/lab-scratch-$name.log" ;;
    spawn) LAB_SPAWN=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port one "$python" "${job[@]}" || code=$? ;;
    stacks | stacks_bare)
      export LAB_STACKS=1 LAB_MARK=/tmp/lab-mark-$name
      rm -f "$LAB_MARK"
      [ "$way" = stacks ] && run+=(--log_dir "/tmp/lab-scratch-$name/logs" --tee 3)
      one "${run[@]}" "${job[@]}" &
      local started=$!
      for ((i = 0; i < 100; ++i)); do [ -e "$LAB_MARK" ] && break; kill -0 $started 2>/dev/null || break; sleep 0.5; done
      [ -e "$LAB_MARK" ] && { sleep 6; ranks_of "$name" | while read -r pid r; do kill -USR1 "$pid" 2>/dev/null; sleep 0.25; done; }
      wait $started || code=$?
      rm -f "$LAB_MARK" ;;
    preempt)
      "${fresh[@]}" "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 &
      local started=$!
      wait_for "$folder/train.log" "step 8|batch 8" 45
      case $mistake in gpt_*) ranks_of "$name" | while read -r pid r; do kill -USR1 "$pid" 2>/dev/null; done; sleep 4 ;; esac
      echo "slurmstepd: error: *** JOB 90418 ON gpu-7 CANCELLED AT $(date +%Y-%m-%dT%H:%M:%S) DUE TO PREEMPTION ***" >>"$folder/train.log"
      kill -TERM $started 2>/dev/null
      wait $started || code=$? ;;
    cancel)
      "${fresh[@]}" "${run[@]}" "${job[@]}" >"$folder/train.log" 2>&1 &
      local started=$!
      case $mistake in *healthy*) wait_for "$folder/train.log" "press Ctrl-C" 55 ;; *) wait_for "$folder/train.log" "step 8" 45 ;; esac
      sleep 2
      kill -INT -- "-$started" 2>/dev/null
      wait $started || code=$? ;;
    ranks | files)
      [ "$way" = files ] && export NCCL_DEBUG=INFO NCCL_DEBUG_FILE="$folder/nccl.%h.%p.log"
      local pids=() r p
      for ((r = 0; r < ranks; ++r)); do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
          timeout -s KILL 60 "$python" "${job[@]}" >"$folder/rank$r.log" 2>&1 &
        pids+=($!)
      done
      for p in "${pids[@]}"; do wait "$p" || code=$?; done ;;
    *) echo "$name: no such way: $way"; code=98 ;;
  esac
  [ "$mistake" = more_oomkill ] && echo "slurmstepd: error: Detected 1 oom_kill event in StepId=90421.0. Some of the step tasks have been OOM Killed." >>"$folder/train.log"
  local environment pid
  for environment in $(grep -lsz "^LAB_JOB=$name$" /proc/[0-9]*/environ); do
    pid=$(cut -d/ -f3 <<<"$environment"); [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && kill -9 "$pid" 2>/dev/null
  done
  [ $mps = 1 ] && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  rm -rf "/tmp/lab-scratch-$name" "/tmp/mps2-$name"
  echo "$name done $((SECONDS - begin)) exit $code"
}
while read -r name mistake ranks guilty way timeout steps variables; do
  [ -z "$name" ] || [ "${name#\#}" != "$name" ] && continue
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.3; done
  record "$name" "$mistake" "$ranks" "$guilty" "$way" "${timeout:-12}" "${steps:-24}" $variables </dev/null &
done <"$list"
wait
