#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm TaskProlog (as the user): what it prints becomes the environment of the task. A job that chose another profiler keeps it.
[ -n "$NCCL_PROFILER_PLUGIN" ] || echo "export NCCL_PROFILER_PLUGIN=tacet"
