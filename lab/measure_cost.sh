#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Step time without a plugin and with ours, interleaved: lab/measure_cost.sh FOLDER_OF_PLUGIN [ROUNDS] [STEPS]
set -u
plugin=$1 rounds=${2:-5} steps=${3:-400}
for ((round = 0; round < rounds; ++round)); do
  for kind in none ours; do
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps-cost CUDA_MPS_LOG_DIRECTORY=/tmp/mps-cost
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" /dev/shm/tacet-cost
    nvidia-cuda-mps-control -d
    if [ $kind = ours ]; then export NCCL_PROFILER_PLUGIN=$plugin/libnccl-profiler-tacet.so TACET_BOX_DIR=/dev/shm/tacet-cost
    else export NCCL_PROFILER_PLUGIN=none; fi
    lab/run_local.sh 4 "/tmp/lab/cost" 60 --steps "$steps" --measure
    echo quit | nvidia-cuda-mps-control
    echo "round $round $kind $(grep -h measured /tmp/lab/cost/stdout_rank0.log)"
    rm -rf /dev/shm/tacet-cost
  done
done
