#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that all-reduces for some seconds: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as usual."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

seconds = float(sys.argv[1])
torch.cuda.set_device(0)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60))
tensor = torch.ones(1 << 20, device="cuda")
until = time.monotonic() + seconds
steps = 0
while True:
    # Every rank has to leave after the same step: rank 0 decides.
    go_on = torch.tensor([1.0 if time.monotonic() < until else 0.0], device="cuda")
    dist.broadcast(go_on, 0)
    if go_on.item() == 0:
        break
    dist.all_reduce(tensor)
    tensor /= dist.get_world_size()
    steps += 1
torch.cuda.synchronize()
assert abs(tensor[0].item() - 1) < 1e-3, tensor[0].item()
dist.destroy_process_group()
print(f"rank {os.environ['RANK']}: {steps} steps, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}")
