#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job without GPUs that can be told to fail in a named way: gloo keeps no records, its ranks only raise.

  gloo_job.py FAULT RANK        FAULT: none stuck slow raises killed segfault frozen exits size op dtype skip barrier

Started once a rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set; lab/run_gloo.sh does that. Leaves stack_rankN.txt in LAB_OUT after
LAB_STACK_S seconds.
"""
import datetime
import faulthandler
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

FAULT, GUILTY = sys.argv[1], int(sys.argv[2])
RANK = int(os.environ["RANK"])
STEPS, FAULTY_STEP = 40, 17
SIGNALS = {"killed": signal.SIGKILL, "segfault": signal.SIGSEGV, "frozen": signal.SIGSTOP}


def strikes(fault, step):
    return RANK == GUILTY and fault == FAULT and step == FAULTY_STEP


def say(text):
    print(f"{datetime.datetime.now().isoformat()} rank {RANK} {text}", flush=True)


def next_batch(step):
    while strikes("stuck", step):
        time.sleep(1)
    if RANK == GUILTY and FAULT == "slow":
        time.sleep(0.25)
    return torch.randn(64, 256)


def reduce_gradients(step):
    for i, size in enumerate((16384, 64, 1000)):
        gradient = torch.ones(size)
        if i == 1 and strikes("size", step):
            gradient = torch.ones(size // 2)
        if i == 1 and strikes("dtype", step):
            gradient = gradient.double()
        if i == 1 and strikes("skip", step):
            continue
        if i == 1 and strikes("op", step):
            dist.broadcast(gradient, src=0)
        else:
            dist.all_reduce(gradient)


def update(step):
    if strikes("raises", step):
        raise ValueError(f"loss is not finite at step {step}")
    if strikes("exits", step):
        os._exit(3)
    if strikes(FAULT, step) and FAULT in SIGNALS:
        os.kill(os.getpid(), SIGNALS[FAULT])


def main():
    stacks = open(os.path.join(os.environ["LAB_OUT"], f"stack_rank{RANK}.txt"), "w")
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(os.environ.get("LAB_STACK_S", "14")), file=stacks)
    say(f"pid {os.getpid()}")
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    for step in range(STEPS):
        torch.mm(next_batch(step), torch.randn(256, 64))
        reduce_gradients(step)
        update(step)
        if FAULT == "barrier" and step == FAULTY_STEP:
            if RANK == GUILTY:
                time.sleep(60)
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=8))
        if step % 5 == 0:
            say(f"step {step}")
        time.sleep(0.02)
    dist.destroy_process_group()
    say("finished")


main()
