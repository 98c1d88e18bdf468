#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sweeps of three collectives with 4 and 8 ranks, NCCL's own choice first, then each algorithm and protocol forced in turn:
#   lab/sweep.sh OUT [RANKS...]
# The ranks share one GPU through MPS and pass for as many nodes, so that all traffic goes over sockets. Each folder holds
# tables in the form of nccl-tests and NCCL's log of rank 0; `tacet bandwidth OUT` reads them. Jobs run one after the
# other, or they would slow each other; while one measures, the next one loads PyTorch and waits at its gate.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
gates=$(mktemp -d) ranks=("${@:-4}")
[ $# = 0 ] && ranks=(4 8)
# NAME ALGORITHM PROTOCOL OPERATIONS
ways="default - - all_reduce,all_gather,reduce_scatter
ring_ll Ring LL all_reduce,all_gather,reduce_scatter
ring_ll128 Ring LL128 all_reduce,all_gather,reduce_scatter
ring_simple Ring Simple all_reduce,all_gather,reduce_scatter
tree_ll Tree LL all_reduce
tree_ll128 Tree LL128 all_reduce
tree_simple Tree Simple all_reduce
pat_simple PAT Simple all_gather,reduce_scatter"
export CUDA_MPS_PIPE_DIRECTORY=$gates/mps CUDA_MPS_LOG_DIRECTORY=$gates/mps MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
mkdir -p "$gates/mps"
command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d

started=()
launch() { # RANKS NAME ALGORITHM PROTOCOL OPERATIONS
  local folder=$out/$1_ranks/$2 rank
  mkdir -p "$folder"
  started=()
  export MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=$1 LAB_GATE=$gates/$1_$2
  for ((rank = 0; rank < $1; ++rank)); do
    (
      [ "$3" != - ] && export NCCL_ALGO=$3 NCCL_PROTO=$4
      [ $rank = 0 ] && export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING NCCL_DEBUG_FILE=$folder/nccl.log
      RANK=$rank NCCL_HOSTID=node$rank exec timeout -s KILL 90 python3 "$here/sweep_job.py" "$folder" "$5"
    ) >"$folder/output_rank$rank.txt" 2>&1 &
    started+=($!)
  done
}
let_run() { # GATE PID...
  local name=$1 pid begin=$SECONDS failed=""
  shift
  touch "$gates/$name"
  for pid in "$@"; do wait "$pid" || failed=" FAILED"; done
  echo "$name: $((SECONDS - begin)) s$failed"
}
waiting="" pids=()
for count in "${ranks[@]}"; do
  while read -r name algorithm protocol operations; do
    launch "$count" "$name" "$algorithm" "$protocol" "$operations" </dev/null
    [ -n "$waiting" ] && let_run "$waiting" "${pids[@]}"
    waiting=${count}_$name pids=("${started[@]}")
  done <<<"$ways"
done
let_run "$waiting" "${pids[@]}"
command -v nvidia-cuda-mps-control >/dev/null && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
find "$out" -name 'output_rank*.txt' -size 0 -delete
rm -rf "$gates"
