#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training program for `tacet lab`: healthy, or with one fault that a plan asks for.

`tacet lab` starts it through `tacet run` and torchrun. TACET_LAB_PLAN names a JSON file beside the run folder: fault,
rank, step, steps, seed, backend, timeout_s, pause_s, mark, place. It prints what such programs print, and nothing about the
fault. PyTorch 1.13 and newer; NCCL where there is a GPU, else gloo.
"""
import ctypes
import datetime
import json
import os
import queue
import signal
import sys
import threading
import time

with open(os.environ["TACET_LAB_PLAN"], encoding="utf-8") as _file:
    PLAN = json.load(_file)
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FAULT, CHOSEN, AT, STEPS = PLAN["fault"], PLAN["rank"], PLAN["step"], PLAN["steps"]
NCCL = PLAN["backend"] == "nccl"
if NCCL:
    # Ranks that share a GPU pass for nodes of their own; otherwise NCCL refuses the second one.
    os.environ.setdefault("NCCL_HOSTID", "node%d" % RANK)
if FAULT == "no-interface" and RANK == CHOSEN:
    os.environ["NCCL_SOCKET_IFNAME" if NCCL else "GLOO_SOCKET_IFNAME"] = "ib9"
if FAULT == "port-taken" and RANK == 0:
    import socket
    HELD = socket.socket()
    HELD.bind(("", int(os.environ["MASTER_PORT"])))
    HELD.listen()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(PLAN["seed"])
torch.set_num_threads(1)
DEVICE = torch.device("cuda", RANK % torch.cuda.device_count()) if NCCL else torch.device("cpu")
TIMEOUT = datetime.timedelta(seconds=PLAN["timeout_s"])
WIDTH, BATCH = 64, 32


def strikes(here, step):
    """Leaves the moment of the fault for whoever measures how long the verdict took."""
    if here and step is not None and not os.path.exists(PLAN["mark"]):
        with open(PLAN["mark"], "w", encoding="utf-8") as mark:
            mark.write("now\n")
    return here


def chosen(*faults, step=None):
    return strikes(RANK == CHOSEN and FAULT in faults and (step is None or step == AT), step)


def now(*faults, step):
    """Every rank, in the step of the plan."""
    return strikes(FAULT in faults and step == AT, step)


def settle():
    if NCCL:
        torch.cuda.synchronize()


# Data. Each source is a way to get the next batch.

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * (STEPS + 8)

    def __getitem__(self, index):
        if index >= AT * BATCH and chosen("stuck-loader"):
            time.sleep(1e6)
        if index >= AT * BATCH and chosen("loader-killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if index >= AT * BATCH and chosen("loader-raises"):
            raise ValueError("cannot decode sample %d: truncated file" % index)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(WIDTH, generator=generator)


def poll_store():
    while True:
        time.sleep(1)


def take_batch(batches):
    return batches.get()


def count_samples(lock):
    with lock:
        with lock:
            pass


def read_list():
    return os.read(os.pipe()[0], 1)


def tokenize():
    total = 0
    while True:
        total += 1


def score():
    library = ctypes.PyDLL(None)  # PyDLL keeps Python's lock during a call
    mutex = ctypes.create_string_buffer(128)
    library.pthread_mutex_init(mutex, None)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


def next_batch(step, loader):
    if chosen("stuck-sleep", step=step):
        poll_store()
    if chosen("stuck-queue", step=step):
        take_batch(queue.Queue())
    if chosen("stuck-lock", step=step):
        count_samples(threading.Lock())
    if chosen("stuck-pipe", step=step):
        read_list()
    if chosen("stuck-spin", step=step):
        tokenize()
    if chosen("stuck-native", step=step):
        score()
    if chosen("slow-input"):
        time.sleep(PLAN["pause_s"])
    return next(loader)


def make_loader():
    if FAULT in ("stuck-loader", "loader-killed", "loader-raises"):
        return iter(torch.utils.data.DataLoader(Samples(), batch_size=BATCH, num_workers=1, prefetch_factor=2))
    return (torch.randn(BATCH, WIDTH) for _ in range(STEPS + 8))


# The model learns a fixed linear map, so its loss falls.

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = 128 + (32 if chosen("model-differs") else 0)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, hidden), nn.Linear(hidden, hidden)])
        self.head, self.side = nn.Linear(hidden, 1), nn.Linear(hidden, 1)

    def forward(self, x, step):
        for layer in self.layers:
            x = torch.relu(layer(x))
        if FAULT == "unused" or chosen("unused-one", step=step):
            return self.head(x)
        return self.head(x) + self.side(x)


def find_fully_shard():
    """FSDP2, where this PyTorch has it for this kind of device."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < ((2, 4) if NCCL else (2, 6)) or FAULT not in ("none", "pauses"):
        return None  # faults are planted in DDP: the calls of a step are then the same in every version
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        try:
            from torch.distributed._composable.fsdp import fully_shard
        except ImportError:
            return None
    return fully_shard


def wrap(net):
    fully_shard = find_fully_shard()
    if fully_shard is None:
        return nn.parallel.DistributedDataParallel(net, device_ids=[DEVICE.index] if NCCL else None), "DDP"
    for layer in net.layers:
        fully_shard(layer)
    fully_shard(net)
    return net, "FSDP2"


# What happens in a step besides the model.

def check_rate(step):
    raise ValueError("learning rate is not finite in step %d" % step)


def grow_cache():
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20)) * 16)


def end_here(step):
    numbers = {"killed": signal.SIGKILL, "segfault": signal.SIGSEGV, "frozen": signal.SIGSTOP,
               "terminated": signal.SIGTERM, "aborts": signal.SIGABRT}
    for fault, number in numbers.items():
        if chosen(fault, step=step):
            os.kill(os.getpid(), number)
    if chosen("exits", step=step):
        os._exit(3)
    if chosen("raises", step=step) or now("raises-all", step=step):
        check_rate(step)
    if chosen("host-memory", step=step):
        bytearray(1 << 50)
    if chosen("cgroup-memory", step=step):
        with open(os.path.join(PLAN["place"], "cgroup.procs"), "w", encoding="utf-8") as members:
            members.write(str(os.getpid()))
        grow_cache()
    if chosen("link-cut", "link-loss", step=step):
        time.sleep(1)  # two_nodes.sh waits for the mark and cuts the link
    if chosen("gpu-busy", step=step):
        torch.cuda._sleep(int(2e9) * 600)
    if chosen("gpu-assert", step=step):
        torch.zeros(4, device=DEVICE)[torch.tensor([9], device=DEVICE)]
        settle()
    if chosen("gpu-memory", step=step):
        torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)


def write_checkpoint(net):
    seconds = {"saves-alone": PLAN["pause_s"], "stuck-saving": 1e9}.get(FAULT, 0)
    path = PLAN["place"]
    until = time.monotonic() + seconds
    while FAULT == "saves-alone" and time.monotonic() < until:
        with open(path, "wb") as file:
            file.write(bytes(1 << 20))
        time.sleep(0.05)
    if FAULT == "stuck-saving":
        os.open(path, os.O_WRONLY)  # a pipe that nobody reads: it blocks as a dead file server does
    if FAULT == "disk-full":
        with open("/dev/full", "wb") as file:
            torch.save({"model": torch.zeros(1 << 16)}, file)


def save(step, net):
    if not now("saves-alone", "stuck-saving", "disk-full", step=step):
        return
    if RANK == CHOSEN:
        write_checkpoint(net)
    dist.barrier()


def evaluate(step):
    """One rank computes while the others wait for it."""
    if chosen("evaluates", step=step):
        until = time.monotonic() + PLAN["pause_s"]
        weight = torch.randn(256, 256)
        while time.monotonic() < until:
            weight = torch.tanh(weight @ weight)
    if now("pauses", step=step) or chosen("late", step=step):
        time.sleep(PLAN["pause_s"])
    if chosen("slow-host") or (chosen("slow-sometimes") and step % 7 == 3):
        time.sleep(PLAN["pause_s"])


def reduce_metrics(step, loss):
    """Three small calls in each step; most faults in calls are planted in the second."""
    dist.all_reduce(loss)
    counts = torch.ones(1000, device=DEVICE)
    if chosen("wrong-size", step=step):
        counts = torch.ones(500, device=DEVICE)
    if chosen("wrong-dtype", step=step):
        counts = counts.double()
    if chosen("barrier-alone", step=step):
        dist.barrier()
    if chosen("wrong-op", step=step):
        dist.all_gather([torch.empty_like(counts) for _ in range(WORLD)], counts)
    elif not chosen("skipped", step=step):
        dist.all_reduce(counts, op=dist.ReduceOp.MAX if chosen("wrong-reduction", step=step) else dist.ReduceOp.SUM)
    if chosen("extra", step=step):
        dist.all_reduce(counts)
    rates = torch.full((16,), 0.05, device=DEVICE)
    dist.broadcast(rates, src=(CHOSEN + 1) % WORLD if chosen("wrong-root", step=step) else 0)
    if now("object-skipped", step=step) and RANK != CHOSEN:
        dist.broadcast_object_list([{"rate": 0.1}], src=(CHOSEN + 1) % WORLD)
    settle()
    return loss.item() / WORLD


def exchange(step):
    """Neighbours pass activations on, as pipelines do."""
    # More than the buffers of the transport hold, or all sends would end before anybody receives.
    block = torch.ones((1 << 24 if NCCL else 1 << 20) if FAULT == "send-cycle" else 1 << 14, device=DEVICE)
    right, left = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    if now("send-cycle", step=step):
        dist.send(block, right)
        dist.recv(block, left)
    if RANK > 0:
        dist.recv(block, left)
    if RANK < WORLD - 1 and not chosen("send-missing", step=step):
        dist.send(block, right)
    if chosen("recv-unmatched", step=step):
        dist.recv(block, left)
    settle()


def reduce_in_groups(step, groups):
    for group in reversed(groups) if now("groups-swapped", step=step) and RANK % 2 else groups:
        dist.all_reduce(torch.ones(256, device=DEVICE), group=group)
        settle()


def train():
    model, kind = wrap(Net().to(DEVICE))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    target = torch.randn(WIDTH, 1, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    groups = [dist.new_group() for _ in range(2)] if FAULT == "groups-swapped" else []
    if RANK == 0:
        print("training with %s on %d ranks, %s, PyTorch %s%s" % (
            kind, WORLD, PLAN["backend"], torch.__version__,
            " (it has no FSDP2 for this device)" if kind == "DDP" and FAULT == "none" else ""), flush=True)
    loader, steps, began = make_loader(), STEPS, time.monotonic()
    if chosen("short-data"):
        steps = AT
    for step in range(steps):
        batch = next_batch(step, loader).to(DEVICE)
        evaluate(step)
        end_here(step)
        optimizer.zero_grad()
        loss = (model(batch, step) - batch @ target).square().mean()
        loss.backward()
        optimizer.step()
        mean = reduce_metrics(step, loss.detach().clone())
        save(step, model)
        if FAULT in ("send-cycle", "recv-unmatched", "send-missing"):
            exchange(step)
        if groups:
            reduce_in_groups(step, groups)
        if RANK == 0 and (step % 10 == 9 or step == 0):
            rate = BATCH * WORLD * (step + 1) / (time.monotonic() - began)
            print("step %d loss %.4f %.0f samples/s" % (step + 1, mean, rate), flush=True)
        time.sleep(0.02)
    dist.barrier()


def main():
    if NCCL:
        torch.cuda.set_device(DEVICE)
    if chosen("absent"):
        poll_store()
    if chosen("late-join"):
        time.sleep(PLAN["pause_s"])
    dist.init_process_group(PLAN["backend"], timeout=TIMEOUT)
    train()
    dist.destroy_process_group()
    if RANK == 0:
        print("finished", flush=True)


if __name__ == "__main__":
    sys.exit(main())
