#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records black boxes of named faults on one GPU: lab/device_boxes.sh OUT FOLDER_OF_PLUGIN FAULT...
# Leaves OUT/FAULT/*.box.gz, small enough to be test data, as they are after SIGKILL of all ranks: a fault that ends or
# stops one rank is seen by the others for as long as they live. RANKS (4), GUILTY (2), SECONDS_EACH (30) and BOX_KB (256)
# may be set.
# Every job has an MPS daemon of its own: a client that is killed takes the others of its daemon with it. Ranks that are to
# be killed or stopped share the GPU by time slices instead, and PyTorch's watchdog is kept from ending their peers, who
# would be gone before they have seen it.
set -u
out=$1 plugin=$2
shift 2
ranks=${RANKS:-4} guilty=${GUILTY:-2} seconds=${SECONDS_EACH:-30}
failed=0
for fault in "$@"; do
  boxes=/dev/shm/tacet-lab/$fault logs=/tmp/lab/$fault
  rm -rf "$boxes" "$logs"; mkdir -p "$boxes" "$out/$fault"
  case $fault in killed | segfault | exits | frozen) apart=1 ;; *) apart=0 ;; esac
  if [ $apart = 1 ]; then
    export TORCH_NCCL_ASYNC_ERROR_HANDLING=0
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  else
    unset TORCH_NCCL_ASYNC_ERROR_HANDLING
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-$fault CUDA_MPS_LOG_DIRECTORY=/tmp/mps-$fault
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
    nvidia-cuda-mps-control -d
  fi
  NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so TACET_BOX_DIR=$boxes TACET_BOX_KB=${BOX_KB:-256} \
    lab/run_local.sh "$ranks" "$logs" "$seconds" --fault "$fault" --steps 60 --timeout 600 --rank "$guilty"
  [ $apart = 1 ] || echo quit | nvidia-cuda-mps-control
  rm -f "$out/$fault"/*.box.gz
  find "$boxes" -name '*.box' -exec sh -c 'gzip -9n < "$1" > "$2/$(basename "$1").gz"' _ {} "$out/$fault" \;
  written=$(find "$out/$fault" -name '*.box.gz' | wc -l)
  [ "$written" = "$ranks" ] || failed=1
  echo "== $fault: $written boxes, $(du -ck "$out/$fault"/*.box.gz | tail -1 | cut -f1) KiB"
  tail -n 2 "$logs"/stdout_rank0.log
  rm -rf "$boxes"
done
exit $failed
