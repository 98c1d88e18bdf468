#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records jobs with one slowed rank, and the same jobs without, on one GPU: lab/stragglers.sh OUT [FOLDER_OF_PLUGIN]
# Four ranks share the GPU through MPS and pass for four nodes. Each job leaves traces, timed flight records, black boxes
# and Inspector-format lines (of our plugin) and the length of every step; with INSPECTOR=FILE.so a second round of some
# jobs is recorded by NCCL Inspector itself. Jobs run one after the other, or they would slow each other; while one runs,
# the next one already loads PyTorch and waits at its gate. OUT/records.tar.xz and OUT/traces.tar.xz.* hold everything.
# LAB_READ=PROGRAM lets that tacet read everything on the spot (OUT/table.md) and leaves the traces out: of many jobs they are large.
# LAB_TRACES=REGEX then keeps the traces of jobs whose names match.
# LAB_LIST names a file with other jobs, LAB_JOB the program that runs them (straggler_models.py for straggler_list_6.txt to
# straggler_list_11.txt, straggler_models2.py for straggler_list_12.txt); a sixth column of a job names its own.
# No job is started later than LAB_SECONDS after the beginning.
# LAB_SHARE=24 gives every rank that share of the multiprocessors in percent, as if it had a GPU of its own: otherwise ranks run
# faster while another one waits, and slower while it computes more, and a delay costs less or more than it would on a cluster.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=${LAB_JOB:-straggler_job.py}
out=$1 plugin=${2:-} work=$(mktemp -d /dev/shm/stragglers.XXXXXX)
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -n "$plugin" ] && plugin=$(cd "$plugin" && pwd)
# NAME LOOP DELAY PERCENT RANK [PROGRAM]. The healthy ones come first: the delays are shares of their steps.
list="healthy_ddp ddp none 0 0
healthy_fsdp fsdp none 0 0
healthy_mesh mesh none 0 0
healthy_free free none 0 0
healthy_pipe pipe none 0 0
healthy_ddp_again ddp none 0 0
healthy_mesh_again mesh none 0 0
healthy_fsdp_again fsdp none 0 0
ddp_host_15 ddp host 15 2
ddp_host_30 ddp host 30 0
ddp_host_60 ddp host 60 3
ddp_gpu_60 ddp gpu 60 3
ddp_loader_25 ddp loader 25 1
ddp_sometimes_20 ddp sometimes 20 2
ddp_bursts_30 ddp bursts 30 3
fsdp_host_40 fsdp host 40 1
fsdp_gpu_50 fsdp gpu 50 0
fsdp_loader_60 fsdp loader 60 2
fsdp_bursts_40 fsdp bursts 40 3
mesh_host_20 mesh host 20 3
mesh_gpu_50 mesh gpu 50 1
mesh_sometimes_25 mesh sometimes 25 0
free_gpu_40 free gpu 40 2
free_work_30 free work 30 3
free_host_60 free host 60 1
pipe_host_30 pipe host 30 2
pipe_gpu_50 pipe gpu 50 1"
[ -n "${LAB_LIST:-}" ] && list=$(cat "$LAB_LIST")  # another list, in a file
list=$(grep -v '^#' <<<"$list")
[ -n "${LAB_ONLY:-}" ] && list=$(grep -E "$LAB_ONLY" <<<"$list")  # LAB_ONLY='fsdp': those alone
again="healthy_ddp ddp none 0 0
ddp_host_30 ddp host 30 0
fsdp_gpu_50 fsdp gpu 50 0
mesh_sometimes_25 mesh sometimes 25 0"

export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
mkdir -p "$work/mps"
nvidia-cuda-mps-control -d
[ -n "${LAB_SHARE:-}" ] && export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$LAB_SHARE
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=4 LOCAL_RANK=0 NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_MAX_NCHANNELS=2 NCCL_DEBUG=WARN
export TORCH_NCCL_ENABLE_TIMING=1 TORCH_FR_BUFFER_SIZE=4000 OMP_NUM_THREADS=2

started=() # of the job that waits
launch() { # NAME LOOP DELAY PERCENT RANK [PROGRAM]: the ranks load PyTorch and wait for $work/gate/NAME
  local folder=$work/rec/$1 rank
  mkdir -p "$folder" "$(dirname "$work/gate/$1")"
  export MASTER_PORT=$((20000 + RANDOM % 20000)) LAB_OUT=$folder LAB_GATE=$work/gate/$1 LAB_BASE=$work/rec/healthy_$2/step_rank0.json
  started=()
  for rank in 0 1 2 3; do
    RANK=$rank NCCL_HOSTID=node$rank timeout -s KILL 120 nice -n 19 python3 "$here/${6:-$program}" --loop "$2" --delay "$3" --percent "$4" \
      --rank "$5" >"$folder/stdout_rank$rank.log" 2>&1 &
    started+=($!)
  done
}

use_ours() {
  [ -z "$plugin" ] && return
  export NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so TACET_BOX_DIR=$work/rec/$1/live_boxes TACET_BOX_KB=512 TACET_JSON_DIR=$work/rec/$1/live_inspector
  mkdir -p "$TACET_BOX_DIR" "$TACET_JSON_DIR"
}

use_inspector() {
  export NCCL_PROFILER_PLUGIN=$INSPECTOR NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$work/rec/$1/live_inspector \
    NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500000
  mkdir -p "$NCCL_INSPECTOR_DUMP_DIR"
}

let_run() { # NAME PID...: opens the gate and waits for the end
  local name=$1 pid
  shift
  touch "$work/gate/$name"
  for pid in "$@"; do
    wait "$pid" || echo "$name: a rank failed: $(tail -qn 1 "$work/rec/$name"/stdout_rank*.log | tail -n 1)"
  done
  [ -f "$work/rec/$name/step_rank0.json" ] &&
    python3 -c "import json, sys; d = json.load(open(sys.argv[2])); print(f'{sys.argv[1]}: step {d[\"plain_ms\"]:.2f} ms, traced {d[\"traced_ms\"]:.2f} ms;', \
       f'then with the delay {d[\"with_ms\"]:.2f} ms, without {d[\"without_ms\"]:.2f} ms, traced without {d[\"traced_without_ms\"]:.2f} ms' + \
       (f'; cost {d[\"cost_ms\"]:.2f} +- {d[\"cost_error_ms\"]:.2f} ms, of the recorded steps {d[\"recorded_cost_ms\"]:.2f} +- {d[\"recorded_cost_error_ms\"]:.2f} ms, {d[\"seconds\"]:.1f} s' if 'recorded_cost_ms' in d else ''))" \
      "$name" "$work/rec/$name/step_rank0.json"
}

run_all() { # PREFIX RECORDER, jobs on stdin
  local waiting="" pids=() name loop delay percent rank job begin=$SECONDS
  while read -r name loop delay percent rank job; do
    [ "$SECONDS" -ge "${LAB_SECONDS:-100000}" ] && break
    "$2" "$1$name"
    launch "$1$name" "$loop" "$delay" "$percent" "$rank" "$job" </dev/null
    [ -n "$waiting" ] && let_run "$waiting" "${pids[@]}"
    waiting=$1$name pids=("${started[@]}")
  done
  [ -n "$waiting" ] && let_run "$waiting" "${pids[@]}"
  echo "jobs of ${2#use_}: $((SECONDS - begin)) s"
}

run_all "" use_ours <<<"$list"
if [ -n "${INSPECTOR:-}" ]; then
  unset TACET_BOX_DIR TACET_JSON_DIR
  run_all inspector/ use_inspector <<<"$again"
fi
echo quit | timeout 10 nvidia-cuda-mps-control
rm -rf "$work"/rec/*/live_* "$work"/rec/inspector/*/live_*
find "$work/rec" -type f -size 0 -delete
rm -f "$work"/rec/inspector/*/trace_rank*.json  # those of the first round tell the same
[ -n "${LAB_READ:-}" ] && python3 "$here/straggler_table.py" "$LAB_READ" "$work/rec" >"$out/table.md" 2>&1
[ -n "${LAB_READ:-}" ] && find "$work/rec" -name 'trace_rank*.json' | grep -vE "/(${LAB_TRACES:-.^})/" | xargs -r rm
(cd "$work/rec" && find . -name 'trace_rank*.json' | sort >"$work/traces" && find . -type f ! -name 'trace_rank*.json' | sort >"$work/records")
tar -C "$work/rec" -cf - -T "$work/records" | xz -T0 -6 >"$out/records.tar.xz"
# In parts: cat traces.tar.xz.* | tar -xJ
tar -C "$work/rec" -cf - -T "$work/traces" | xz -T0 -6 | split -b 15M - "$out/traces.tar.xz."
ls -l "$out"
rm -rf "$work"
