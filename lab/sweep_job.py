#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times collectives over sizes and writes tables in the form of nccl-tests: sweep_job.py OUT all_reduce,all_gather

Started once per rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set; lab/sweep.sh does that. Rank 0 writes
OUT/OPERATION.txt. What ranks agree on (pids, times, when to start) goes over gloo, so that NCCL does nothing but what is
measured: with NCCL_ALGO=PAT it has no all_reduce at all. LAB_BACKEND=gloo tries it without a GPU.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

out, operations = sys.argv[1], sys.argv[2].split(",")
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
smallest, largest = int(os.environ.get("LAB_SMALLEST", 1 << 10)), int(os.environ.get("LAB_LARGEST", 1 << 26))
backend = os.environ.get("LAB_BACKEND", "nccl")
side = None  # the group over gloo
device = torch.device("cuda", 0) if backend == "nccl" else torch.device("cpu")


def wait_for_gpu():
    if device.type == "cuda":
        torch.cuda.synchronize()


def calls(operation, size, in_place):
    """The call for `size` bytes, counted as nccl-tests do: the whole buffer of all ranks for gather and scatter."""
    count = size // 4
    part = count // world
    whole = torch.zeros(count, device=device)
    piece = whole[rank * part:(rank + 1) * part] if in_place else torch.zeros(part, device=device)
    if operation == "all_reduce":
        return lambda: dist.all_reduce(whole)
    if operation == "all_gather":
        return lambda: dist.all_gather_into_tensor(whole, piece)
    if operation == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(piece, whole)
    if operation == "broadcast":
        return lambda: dist.broadcast(whole, 0)
    raise SystemExit(f"unknown operation {operation}")


def measure(call, size):
    iterations = 40 if size <= 1 << 16 else 20 if size <= 1 << 20 else 6 if size <= 1 << 24 else 3
    for _ in range(3 if size <= 1 << 20 else 1):
        call()
    wait_for_gpu()
    dist.barrier(group=side)
    begin = time.perf_counter()
    for _ in range(iterations):
        call()
    wait_for_gpu()
    mine = torch.tensor([(time.perf_counter() - begin) / iterations], dtype=torch.float64)
    dist.all_reduce(mine, group=side)
    return mine.item() / world * 1e6  # the mean over ranks, in µs


def table(operation, pids):
    factor = 2 * (world - 1) / world if operation == "all_reduce" else 1.0 if operation == "broadcast" else (world - 1) / world
    reduces = operation in ("all_reduce", "reduce_scatter")
    head = [f"# Collective test starting: {operation}_perf",
            f"# nThread 1 nGpus 1 minBytes {smallest} maxBytes {largest} step: 2(factor) warmup iters: 3 iters: 20 agg iters: 1 validation: 0 graph: 0",
            "#", "# Using devices"]
    name = torch.cuda.get_device_name(0) if device.type == "cuda" else "CPU"
    head += [f"#  Rank {index:2d} Group  0 Pid {pid:6d} on {os.uname().nodename:>10s} device  0 [0000:00:06] {name}" for index, pid in enumerate(pids)]
    head += ["#", "#                                                              out-of-place                       in-place          ",
             "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
             "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "]
    rows, size, total = [], smallest, []
    while size <= largest:
        line = f"{size:12d} {size // 4 if operation in ('all_reduce', 'broadcast') else size // 4 // world:13d} {'float':>9s} {'sum' if reduces else 'none':>7s} {0 if operation == 'broadcast' else -1:7d}"
        for in_place in (False, True):
            time_us = measure(calls(operation, size, in_place), size)
            speed = size / time_us / 1e3
            total.append(speed * factor)
            line += f" {time_us:8.2f} {speed:7.2f} {speed * factor:7.2f} {'N/A':>7s}"
        rows.append(line)
        size *= 2
    tail = ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {sum(total) / len(total):g}", "#", f"# Collective test concluded: {operation}_perf"]
    if rank == 0:
        with open(f"{out}/{operation}.txt", "w") as file:
            file.write("\n".join(head + rows + tail) + "\n")


def main():
    global side
    if device.type == "cuda":
        torch.cuda.init()
        torch.cuda.set_device(device)
    dist.init_process_group(backend)
    side = dist.new_group(backend="gloo")
    pids = torch.zeros(world, dtype=torch.int64)
    pids[rank] = os.getpid()
    dist.all_reduce(pids, group=side)
    for operation in operations:
        table(operation, pids.tolist())
    dist.barrier(group=side)
    if rank == 0:
        print(f"{out}: done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
