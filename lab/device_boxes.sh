#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records black boxes of named faults on one GPU: lab/device_boxes.sh OUT FOLDER_OF_PLUGIN FAULT...
# Every job has an MPS daemon of its own: a client that is killed takes the others of its daemon with it.
set -u
out=$1 plugin=$2
shift 2
for fault in "$@"; do
  boxes=/dev/shm/tacet-lab/$fault
  rm -rf "$boxes"; mkdir -p "$boxes"
  export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-$fault CUDA_MPS_LOG_DIRECTORY=/tmp/mps-$fault
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
  nvidia-cuda-mps-control -d
  NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so TACET_BOX_DIR=$boxes TACET_BOX_MB=1 \
    lab/run_local.sh 4 "/tmp/lab/$fault" 25 --fault "$fault" --steps 60 --rank 2
  echo quit | nvidia-cuda-mps-control
  (cd "$boxes" && find . -name '*.box' | tar cf - -T - | gzip -9) > "$out/boxes_$fault.tar.gz"
  echo "== $fault: $(find "$boxes" -name '*.box' | wc -l) boxes"; tail -n 2 /tmp/lab/"$fault"/stdout_rank0.log
done
