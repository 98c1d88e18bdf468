#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training job that can be told to fail in a named way.

  fault_job.py --list
  fault_job.py --fault NAME [--loop NAME] [--rank R] [--step S] [--steps N]

Started once a rank with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set (torchrun or lab/run_local.sh do that). With
LAB_OUT it leaves stack_rankN.txt after LAB_STACK_S seconds and, when --trace is given, trace_rankN.json.gz there.
"""
import argparse
import contextlib
import ctypes
import datetime
import faulthandler
import os
import queue
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

import framework_loops

RANK = int(os.environ.get("RANK", 0))
WORLD = int(os.environ.get("WORLD_SIZE", 1))
DEVICE = torch.device("cuda", 0)
os.environ.setdefault("NCCL_HOSTID", f"node{RANK}")  # ranks that share a GPU pass for nodes of their own

# What each fault does, for --list. The loop it needs stands in brackets.
FAULTS = {
    "none": "a healthy job",
    "pauses": "healthy: a slow first step and two long pauses of all ranks together",
    "stuck-on-host": "sleeps for ever in place of a step",
    "stuck-on-queue": "waits for a batch that no loader thread delivers",
    "stuck-on-lock": "takes a lock twice",
    "stuck-on-pipe": "reads a pipe that nothing writes to",
    "stuck-spinning": "counts for ever in Python",
    "killed": "SIGKILL", "segfault": "SIGSEGV", "exits": "leaves with exit code 1", "returns": "ends early and in order",
    "raises": "raises an error in the optimizer", "all-raise": "every rank raises the same error",
    "frozen": "SIGSTOP",
    "gpu-busy": "a kernel that does not finish", "gpu-assert": "a device-side assertion", "gpu-memory": "CUDA out of memory",
    "wrong-size": "half as many elements once", "wrong-dtype": "a different element type once",
    "wrong-op": "all_gather for all_reduce once", "wrong-reduction": "MAX for SUM once", "wrong-root": "another root once",
    "skipped": "skips one collective", "extra": "one collective too many",
    "groups-swapped": "uses two groups in opposite order [reduce]",
    "send-cycle": "every rank sends before it receives [pipeline]", "recv-unmatched": "one receive too many [pipeline]",
    "unused": "every rank leaves a layer out [ddp]", "branch": "one rank leaves a layer out [ddp]",
    "absent": "never joins", "late-timeout": "every step takes longer than the timeout allows",
    "slow-gpu": "more GPU work", "slow-host": "sleeps in every step", "slow-sometimes": "sleeps in every seventh step",
    "slow-input": "its loader is slow",
    "late-join": "healthy: joins half a minute after the others",
    "short-data": "has fewer batches than the others and goes on to the final barrier",
    "saves-alone": "healthy: rank 0 writes a checkpoint for some seconds, the others wait at a barrier",
    "stuck-saving": "never finishes writing its checkpoint, the others wait at a barrier",
    "holds-gil": "calls C code that keeps Python's lock",
    "no-sync": "one rank accumulates gradients where the others reduce them [ddp]",
    "group-alone": "some ranks make a new group, the others do not know of it",
    "object-skipped": "skips a broadcast of a Python object",
    "loader-killed": "a loader process of the rank is killed",
    "terminated": "SIGTERM", "aborts": "SIGABRT", "host-memory": "asks for more memory than there is",
    "wrong-splits": "expects other sizes in an all-to-all [experts]",
    "evaluates-alone": "only this rank runs the model for validation [a loop of framework_loops.py]",
    "state-alone": "only this rank asks for the whole state dictionary [likewise]",
    "barrier-alone": "a barrier that only this rank reaches [likewise]",
    "gathers-alone": "a gather of Python objects that only this rank calls [likewise]",
    "not-finite": "leaves a step out [likewise]",
    "wrong-peer": "receives from the wrong neighbour, batched [ring]", "ring-skipped": "leaves one batched exchange out [ring]",
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", default="none", choices=FAULTS)
    parser.add_argument("--loop", default="reduce", choices=("reduce", "ddp", "mesh", "pipeline", "fsdp", "experts", "ring", "hybrid", *framework_loops.LOOPS))
    parser.add_argument("--rank", type=int, nargs="*", default=[1], help="which ranks fail")
    parser.add_argument("--step", type=int, default=20, help="in which step")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--timeout", type=int, default=60, help="seconds until PyTorch's watchdog fires")
    parser.add_argument("--slow-ms", type=float, default=50)
    parser.add_argument("--once", action="store_true", help="mismatches that do not hang: end after the step")
    parser.add_argument("--tp", type=int, default=2, help="size of the inner dimension of the mesh")
    parser.add_argument("--trace", action="store_true", help="leave a torch.profiler trace of 14 steps")
    parser.add_argument("--measure", action="store_true", help="wait for the GPU after each step; print the median step")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


OPTIONS = parse()


def guilty(*names, step=None):
    here = RANK in OPTIONS.rank or OPTIONS.fault in ("all-raise", "unused")
    return here and OPTIONS.fault in names and (step is None or step == OPTIONS.step)


def fetch_from_object_store():
    while True:
        time.sleep(1)


def next_batch(batches):
    return batches.get()


def update_statistics(lock):
    with lock:
        with lock:
            pass


def read_shard_list():
    ends = os.pipe()
    return os.read(ends[0], 1)


def count_tokens():
    n = 0
    while True:
        n += 1


def apply_schedule(step):
    raise ValueError(f"learning rate is not finite in step {step}")


def write_checkpoint(step):
    path = f"/tmp/checkpoint_{os.getpid()}"
    end = time.monotonic() + (1e9 if OPTIONS.fault == "stuck-saving" else 4)
    while time.monotonic() < end:
        with open(path, "wb") as file:
            file.write(b"0" * (1 << 20))
    os.unlink(path)


def score_with_native_code():
    ctypes.PyDLL(None).sleep(3600)  # PyDLL keeps Python's lock during the call


class Shards(torch.utils.data.IterableDataset):
    def __iter__(self):
        for index in range(1000):
            if index == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield torch.zeros(8)


def save_and_meet(step):
    """All ranks meet at a barrier; a fault lets one write before."""
    if step == OPTIONS.step and OPTIONS.fault in ("saves-alone", "stuck-saving"):
        if RANK in OPTIONS.rank:
            write_checkpoint(step)
        dist.barrier()


def share_settings(step):
    if step == OPTIONS.step and OPTIONS.fault == "object-skipped" and not guilty("object-skipped"):
        box = [{"lr": 0.1, "step": step}]
        dist.broadcast_object_list(box, src=0)
    if step == OPTIONS.step and guilty("group-alone"):
        dist.all_reduce(torch.ones(8, device=DEVICE), group=dist.new_group(OPTIONS.rank))


def stop_here(step):
    """Faults of the host that end or hold up the rank."""
    if guilty("stuck-on-host", step=step):
        fetch_from_object_store()
    if guilty("stuck-on-queue", step=step):
        next_batch(queue.Queue())
    if guilty("stuck-on-lock", step=step):
        update_statistics(threading.Lock())
    if guilty("stuck-on-pipe", step=step):
        read_shard_list()
    if guilty("stuck-spinning", step=step):
        count_tokens()
    if guilty("killed", step=step):
        os.kill(os.getpid(), signal.SIGKILL)
    if guilty("segfault", step=step):
        os.kill(os.getpid(), signal.SIGSEGV)
    if guilty("frozen", step=step):
        os.kill(os.getpid(), signal.SIGSTOP)
    if guilty("exits", step=step):
        os._exit(1)
    if guilty("returns", step=step):
        sys.exit(0)
    if guilty("raises", "all-raise", step=step):
        apply_schedule(step)
    if guilty("terminated", step=step):
        os.kill(os.getpid(), signal.SIGTERM)
    if guilty("aborts", step=step):
        os.abort()
    if guilty("host-memory", step=step):
        bytearray(1 << 50)
    if guilty("holds-gil", step=step):
        score_with_native_code()
    if guilty("loader-killed", step=step):
        list(torch.utils.data.DataLoader(Shards(), num_workers=1))


def before_step(step):
    stop_here(step)
    save_and_meet(step)
    share_settings(step)
    if OPTIONS.fault == "pauses" and step in (0, OPTIONS.step, OPTIONS.step + 30):
        time.sleep(3)
    if OPTIONS.fault == "late-timeout" and step >= OPTIONS.step:
        time.sleep(OPTIONS.timeout * 1.5 if RANK in OPTIONS.rank else 0)
    if guilty("gpu-busy", step=step):
        torch.cuda._sleep(int(2e9) * 600)
    if guilty("gpu-assert", step=step):
        torch.zeros(4, device=DEVICE)[torch.tensor([9], device=DEVICE)]
        torch.cuda.synchronize()
    if guilty("gpu-memory", step=step):
        torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)
    if guilty("slow-gpu"):
        torch.cuda._sleep(int(1.7e6 * OPTIONS.slow_ms))
    if guilty("slow-host") or (guilty("slow-sometimes") and step % 7 == 3):
        time.sleep(OPTIONS.slow_ms / 1e3)


def training_data():
    while True:
        if guilty("slow-input"):
            time.sleep(OPTIONS.slow_ms / 1e3)
        yield torch.randn(64, 1024)


def reduce_once(step, tensor, group=None):
    """The collective that the mismatches change."""
    if guilty("skipped", step=step):
        return
    if guilty("wrong-size", step=step):
        tensor = tensor[: tensor.numel() // 2].contiguous()
    if guilty("wrong-dtype", step=step):
        tensor = tensor.double()
    if guilty("wrong-op", step=step):
        size = dist.get_world_size(group)
        dist.all_gather_into_tensor(tensor.new_empty(tensor.numel() * size), tensor, group=group)
        return
    op = dist.ReduceOp.MAX if guilty("wrong-reduction", step=step) else dist.ReduceOp.SUM
    dist.all_reduce(tensor, op=op, group=group)
    if guilty("extra", step=step):
        dist.all_reduce(tensor, group=group)


def loop_reduce():
    weight = torch.randn(1024, 1024, device=DEVICE)
    first, second = (dist.new_group(), dist.new_group()) if OPTIONS.fault == "groups-swapped" else (None, None)
    for step in steps():
        before_step(step)
        out = weight @ weight
        pair = [first, second]
        if guilty("groups-swapped", step=step):
            pair.reverse()
        if first is not None:
            for group in pair:
                dist.all_reduce(torch.ones(1 << 16, device=DEVICE), group=group)
                torch.cuda.synchronize()
        reduce_once(step, torch.ones(1 << 18, device=DEVICE))
        root = 1 if guilty("wrong-root", step=step) else 0
        dist.broadcast(out[0].contiguous(), src=root)
        if step % 5 == 0:
            torch.cuda.synchronize()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1024, 1024) for _ in range(5))

    def forward(self, x, leave_out=False):
        for i, layer in enumerate(self.layers):
            x = x if leave_out and i == 2 else torch.relu(layer(x))
        return x


def loop_ddp():
    model = torch.nn.parallel.DistributedDataParallel(Net().to(DEVICE), device_ids=[0], bucket_cap_mb=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = training_data()
    for step in steps():
        with torch.profiler.record_function("load"):
            batch = next(data)
        before_step(step)
        with model.no_sync() if guilty("no-sync", step=step) else contextlib.nullcontext():
            loss = model(batch.to(DEVICE), guilty("unused", "branch", step=step)).square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def shard(model, mesh=None):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def loop_hybrid():
    """Sharded inside pairs, replicated across them."""
    loop_fsdp(dist.init_device_mesh("cuda", (WORLD // OPTIONS.tp, OPTIONS.tp), mesh_dim_names=("replicate", "shard")))


def loop_fsdp(mesh=None):
    model = shard(Net().to(DEVICE), mesh)
    for step in steps():
        before_step(step)
        model(torch.randn(64, 1024, device=DEVICE)).square().mean().backward()
        reduce_once(step, torch.ones(1 << 16, device=DEVICE))


def loop_mesh():
    mesh = dist.init_device_mesh("cuda", (WORLD // OPTIONS.tp, OPTIONS.tp), mesh_dim_names=("dp", "tp"))
    inner, outer = mesh["tp"].get_group(), mesh["dp"].get_group()
    for step in steps():
        for block in range(3):
            if block == 1:
                before_step(step)
            reduce_once(step if block == 2 else -1, torch.ones(1 << 17, device=DEVICE), inner)
        dist.all_reduce(torch.ones(1 << 20, device=DEVICE), group=outer)


def loop_pipeline():
    batch = torch.ones(1 << 16, device=DEVICE)
    for step in steps():
        before_step(step)
        if OPTIONS.fault == "send-cycle" and step == OPTIONS.step:
            dist.send(torch.ones(1 << 22, device=DEVICE), (RANK + 1) % WORLD)
            dist.recv(torch.ones(1 << 22, device=DEVICE), (RANK - 1) % WORLD)
        for _ in range(4):
            if RANK > 0:
                dist.recv(batch, RANK - 1)
            if RANK < WORLD - 1:
                dist.send(batch * 2, RANK + 1)
        if guilty("recv-unmatched", step=step):
            dist.recv(batch, RANK - 1)


def loop_experts():
    """Tokens go to their experts and back by all-to-all of uneven sizes, as in a mixture of experts."""
    weight = torch.randn(512, 512, device=DEVICE)
    for step in steps():
        before_step(step)
        counts = [64 + 16 * ((RANK + peer + step) % 3) for peer in range(WORLD)]
        if guilty("wrong-splits", step=step):
            counts[(RANK + 1) % WORLD] *= 2
        tokens = torch.randn(sum(counts), 512, device=DEVICE)
        arrived = torch.empty_like(tokens)
        dist.all_to_all_single(arrived, tokens, counts, counts)
        back = torch.empty_like(tokens)
        dist.all_to_all_single(back, arrived @ weight, counts, counts)
        reduce_once(step, torch.ones(1 << 16, device=DEVICE))


def loop_ring():
    """Every rank exchanges with both neighbours in one batch, as ring attention does."""
    block = torch.ones(1 << 15, device=DEVICE)
    incoming = torch.empty_like(block)
    for step in steps():
        before_step(step)
        for turn in range(WORLD - 1):
            source = RANK - 2 if guilty("wrong-peer", step=step) and turn == 0 else RANK - 1
            if guilty("ring-skipped", step=step) and turn == 0:
                continue
            batch = [dist.P2POp(dist.isend, block, (RANK + 1) % WORLD), dist.P2POp(dist.irecv, incoming, source % WORLD)]
            for work in dist.batch_isend_irecv(batch):
                work.wait()
        reduce_once(step, torch.ones(1 << 14, device=DEVICE))


def steps():
    durations = []
    for step in range(OPTIONS.steps - (7 if guilty("short-data") else 0)):
        if step % 10 == 0:
            print(f"{datetime.datetime.now().isoformat()} rank {RANK} step {step}", flush=True)
        begin = time.perf_counter()
        yield step
        if OPTIONS.measure:
            torch.cuda.synchronize()
            durations.append(time.perf_counter() - begin)
        if OPTIONS.once and step == OPTIONS.step + 3:
            return
        if OPTIONS.trace:
            torch.cuda.synchronize()
            PROFILER.step()
    if OPTIONS.measure:
        steady = sorted(durations[10:])
        print(f"measured: median step {steady[len(steady) // 2] * 1e3:.3f} ms over {len(steady)} steps", flush=True)


def main():
    if OPTIONS.list:
        for name, text in FAULTS.items():
            print(f"{name:16} {text}")
        return
    if guilty("absent"):
        time.sleep(3600)
    if guilty("late-join"):
        time.sleep(30)
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=OPTIONS.timeout), device_id=DEVICE)
    if OPTIONS.loop in framework_loops.LOOPS:
        framework_loops.LOOPS[OPTIONS.loop](sys.modules[__name__])
    else:
        globals()["loop_" + OPTIONS.loop]()
    if OPTIONS.fault == "short-data":
        dist.barrier()
    torch.cuda.synchronize()
    print("finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = os.environ.get("LAB_OUT")
    if folder:
        faulthandler.dump_traceback_later(float(os.environ.get("LAB_STACK_S", 28)), exit=False,
                                          file=open(f"{folder}/stack_rank{RANK}.txt", "w"))
    if not OPTIONS.trace:
        main()
    else:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        schedule = torch.profiler.schedule(wait=8, warmup=2, active=14, repeat=1)
        keep = lambda profiler: profiler.export_chrome_trace(f"{folder}/trace_rank{RANK}.json.gz")
        with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=keep) as PROFILER:
            main()
