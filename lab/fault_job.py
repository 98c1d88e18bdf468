#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small data-parallel job that can be told to fail in a named way.

  fault_job.py --fault NAME [--rank R] [--step S] [--steps N]

Started once a rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set (torchrun or lab/run_local.sh do that).
Faults: none, stuck-on-host, killed, frozen, gpu-busy, wrong-size, skipped, slow-gpu, slow-host.
"""
import argparse
import os
import signal
import time

import torch
import torch.distributed as dist


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", default="none")
    parser.add_argument("--rank", type=int, default=1, help="which rank fails")
    parser.add_argument("--step", type=int, default=20, help="in which step")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--timeout", type=int, default=60, help="seconds until PyTorch's watchdog fires")
    return parser.parse_args()


def wait_for_storage():
    while True:
        time.sleep(1)


def misbehave(options, step, device):
    """What the guilty rank does instead of going on. Returns the size of its gradient."""
    size = 1 << 20
    if int(os.environ["RANK"]) != options.rank or step < options.step:
        return size
    if options.fault == "stuck-on-host" and step == options.step:
        wait_for_storage()
    if options.fault == "killed" and step == options.step:
        os.kill(os.getpid(), signal.SIGKILL)
    if options.fault == "frozen" and step == options.step:
        os.kill(os.getpid(), signal.SIGSTOP)
    if options.fault == "gpu-busy" and step == options.step:
        torch.cuda._sleep(int(2e9) * 600)
    if options.fault == "wrong-size" and step == options.step:
        return size // 2
    if options.fault == "slow-gpu":
        torch.cuda._sleep(int(2e9 * 0.05))
    if options.fault == "slow-host":
        time.sleep(0.05)
    return size


def main():
    from datetime import timedelta
    options = parse()
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(seconds=options.timeout), device_id=device)
    weight = torch.randn(2048, 2048, device=device)
    durations = []
    for step in range(options.steps):
        begin = time.perf_counter()
        size = misbehave(options, step, device)
        out = weight @ weight
        if not (options.fault == "skipped" and rank == options.rank and step == options.step):
            dist.all_reduce(torch.ones(size, device=device))
        dist.all_reduce(out[:256].contiguous())
        torch.cuda.synchronize()
        durations.append(time.perf_counter() - begin)
        if step % 10 == 0:
            print(f"step {step} took {durations[-1] * 1e3:.2f} ms", flush=True)
    steady = sorted(durations[10:])
    print(f"finished: median step {steady[len(steady) // 2] * 1e3:.3f} ms over {len(steady)} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
