#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sweeps of three collectives with 4 and 8 ranks, NCCL's own choice first, then each algorithm and protocol forced in turn:
#   lab/sweep.sh OUT [RANKS...]
# The ranks share one GPU through MPS and pass for as many nodes, so that all traffic goes over sockets. Each folder holds
# tables in the form of nccl-tests and NCCL's log of rank 0; `tacet bandwidth OUT` reads them. Jobs run one after the
# other, and none loads while another measures: in a sweep recorded with overlap, two runs of one way differed by 84 % in
# the median. The first job is run twice, since the first ones of that sweep were slower than all others.
# PAT needs one rank per node, which is so here, and has no all_reduce: what ranks agree on goes over gloo.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
scratch=$(mktemp -d) ranks=("${@:-4}")
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
export CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps MASTER_ADDR=127.0.0.1 OMP_NUM_THREADS=1
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-$NCCL_SOCKET_IFNAME}
mkdir -p "$scratch/mps"
command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d

run_job() { # RANKS NAME ALGORITHM PROTOCOL OPERATIONS
  local folder=$out/$1_ranks/$2 rank pid pids=() begin=$SECONDS failed=""
  mkdir -p "$folder"
  export MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=$1
  for ((rank = 0; rank < $1; ++rank)); do
    (
      [ "$3" != - ] && export NCCL_ALGO=$3 NCCL_PROTO=$4
      [ $rank = 0 ] && export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING NCCL_DEBUG_FILE=$folder/nccl.log
      RANK=$rank NCCL_HOSTID=node$rank exec timeout -s KILL 90 python3 "$here/sweep_job.py" "$folder" "$5"
    ) >"$folder/output_rank$rank.txt" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=" FAILED"; done
  echo "$1_$2: $((SECONDS - begin)) s$failed"
}
warm=""
for count in "${ranks[@]}"; do
  while read -r name algorithm protocol operations; do
    [ -n "$warm" ] || LAB_LARGEST=65536 run_job "$count" "$name" "$algorithm" "$protocol" "$operations" </dev/null
    warm=1
    run_job "$count" "$name" "$algorithm" "$protocol" "$operations" </dev/null
  done <<<"$ways"
done
command -v nvidia-cuda-mps-control >/dev/null && echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
find "$out" -name 'output_rank*.txt' -size 0 -delete
rm -rf "$scratch"
