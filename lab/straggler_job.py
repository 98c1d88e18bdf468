#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training job in which one rank may be slowed by a known amount, recorded by everything that measures time.

  straggler_job.py --loop ddp --delay host --percent 30 --rank 2

Started once a rank with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and LAB_OUT set; lab/stragglers.sh does that. Leaves in
LAB_OUT a torch.profiler trace of 20 steps, a Flight Recorder dump with times, and step_rankN.json with the length of
every step. The delay is a share of the step of the same loop without one, which LAB_BASE names (step_rank0.json of that
run). What the delay costs is measured by the same processes: when everything is recorded they go on without the delay,
with it, and so on in turn, since two runs of one job differ by more than a small delay costs.
"""
import argparse
import contextlib
import datetime
import json
import os
import random
import shutil
import time

import torch
import torch.distributed as dist

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
OUT = os.environ["LAB_OUT"]
DEVICE = torch.device("cuda", 0)
CYCLE = 20  # steps after which a pattern of delays begins again: whatever is compared holds whole cycles
WARMUP, TRACED = 16, CYCLE  # steps before the trace begins, and in it
MICRO_BATCHES = 6  # of a pipeline's step, and of one that accumulates gradients
LOOPS = ("ddp", "fsdp", "mesh", "free", "pipe", "accumulate", "experts", "tensor", "owners", "stages", "evals")
DELAYS = ("none", "host", "gpu", "work", "loader", "sometimes", "bursts")


def parse(about, loops, delays, steps):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loop", default=loops[0], choices=loops)
    parser.add_argument("--delay", default="none", choices=delays)
    parser.add_argument("--percent", type=float, default=30, help="of the step without a delay, on average")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--steps", type=int, default=steps)
    return parser.parse_args()


OPTIONS = parse(__doc__, LOOPS, DELAYS, 6 * CYCLE) if __name__ == "__main__" else None  # straggler_models.py has its own


def base_ms():
    """The step of the same loop without a delay."""
    path = os.environ.get("LAB_BASE", "")
    if not os.path.exists(path):
        return 20.0
    with open(path) as file:
        return json.load(file)["plain_ms"]


DELAY_MS = 0.0  # of this rank; set when the job begins, since the base is measured by a job before


def delay_of(step):
    """The delay of this step in ms; the mean over steps is the same whatever the pattern."""
    if OPTIONS.delay == "sometimes":  # one step of five, which one by chance
        return DELAY_MS * 5 if step % 5 == random.Random(step // 5).randrange(5) else 0.0
    if OPTIONS.delay == "bursts":
        return DELAY_MS * 4 if step % CYCLE < 5 else 0.0
    return DELAY_MS


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 64 * (OPTIONS.steps + 400)

    def __getitem__(self, index):
        if OPTIONS.delay == "loader" and DELAY_MS > 0 and index % 64 == 0:
            time.sleep(DELAY_MS / 1e3)
        return torch.ones(512)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def slow_down(step, weight):
    if DELAY_MS <= 0:
        return
    if OPTIONS.delay in ("host", "sometimes", "bursts"):
        time.sleep(delay_of(step) / 1e3)
    if OPTIONS.delay == "gpu":
        torch.cuda._sleep(int(1.7e6 * DELAY_MS))
    if OPTIONS.delay == "work":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if "products" not in globals():  # how many products are that long, with the others at work too
            begin.record()
            for _ in range(20):
                weight @ weight
            end.record()
            end.synchronize()
            globals()["products"] = max(1, round(DELAY_MS / (begin.elapsed_time(end) / 20)))
        for _ in range(globals()["products"]):
            weight @ weight


def make_ddp():
    return torch.nn.parallel.DistributedDataParallel(Net().to(DEVICE), device_ids=[0], bucket_cap_mb=2), None


def make_fsdp():
    from torch.distributed.fsdp import fully_shard
    model = Net().to(DEVICE)
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model), None


class Sliced(torch.nn.Module):
    """Each layer is split over the tensor group and summed there."""
    def __init__(self, group):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512, bias=False) for _ in range(3))
        self.group = group

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            dist.all_reduce(x.detach(), group=self.group)
            x = torch.relu(x)
        return x


def make_mesh():
    mesh = dist.init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("dp", "tp"))
    model = Sliced(mesh["tp"].get_group()).to(DEVICE)
    return model, mesh["dp"].get_group()


class Stage(torch.nn.Module):
    """A part of a pipeline: all forward passes of a step, then all backward passes."""
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(4))

    def compute(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x

    def run_step(self, batch):
        passed, loss = [], torch.zeros((), device=DEVICE)
        for _ in range(MICRO_BATCHES):
            x = batch.clone()
            if RANK > 0:
                dist.recv(x, RANK - 1)
            x.requires_grad_(RANK > 0)
            y = self.compute(x)
            if RANK < WORLD - 1:
                dist.send(y.detach(), RANK + 1)
            passed.append((x, y))
        for x, y in passed:
            gradient = torch.empty_like(y)
            if RANK < WORLD - 1:
                dist.recv(gradient, RANK + 1)
                y.backward(gradient)
            else:
                loss = y.square().mean()
                loss.backward()
            if RANK > 0:
                dist.send(x.grad, RANK - 1)
        return loss


def make_pipe():
    return Stage().to(DEVICE), None


class Experts(torch.nn.Module):
    """Each layer sends a part of the batch to every rank and gets it back."""
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512, bias=False) for _ in range(3))

    def forward(self, x):
        total = 0
        for layer in self.layers:
            sent = torch.empty_like(x)
            dist.all_to_all_single(sent, x)
            y = torch.relu(layer(sent))
            x = torch.empty_like(y)
            dist.all_to_all_single(x, y.detach())
            total = total + y
        return total


class TwoStages(Stage):
    """The first half of the ranks hold the first stage, the others the second one; replicas sum their gradients."""
    def run_step(self, batch):
        half, loss, passed = WORLD // 2, torch.zeros((), device=DEVICE), []
        first, other = RANK < half, (RANK + half) % WORLD
        for _ in range(MICRO_BATCHES):
            x = batch.clone()
            if not first:
                dist.recv(x, other)
            x.requires_grad_(not first)
            y = self.compute(x)
            if first:
                dist.send(y.detach(), other)
            passed.append((x, y))
        for x, y in passed:
            if first:
                gradient = torch.empty_like(y)
                dist.recv(gradient, other)
                y.backward(gradient)
            else:
                loss = y.square().mean()
                loss.backward()
                dist.send(x.grad, other)
        return loss


def make_stages():
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    return TwoStages().to(DEVICE), groups[RANK // 2]


def exchange_by_owner(model):
    """Every gradient goes to the rank that owns it; that rank sends the new values to all."""
    for index, parameter in enumerate(model.parameters()):
        dist.reduce(parameter.grad, index % WORLD)
    for index, parameter in enumerate(model.parameters()):
        dist.broadcast(parameter.data, index % WORLD)


class Job:
    """One loop, step by step. The delay can be taken away between steps."""
    def __init__(self):
        make = {"fsdp": make_fsdp, "mesh": make_mesh, "pipe": make_pipe, "stages": make_stages,
                "experts": lambda: (Experts().to(DEVICE), dist.group.WORLD), "owners": lambda: (Net().to(DEVICE), None),
                "tensor": lambda: (Sliced(dist.group.WORLD).to(DEVICE), None)}.get(OPTIONS.loop, make_ddp)
        self.model, self.data_group = make()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)
        self.weight = torch.randn(2048, 2048, device=DEVICE)
        self.loader = iter(torch.utils.data.DataLoader(Batches(), batch_size=64, num_workers=0))
        self.step = 0

    def run(self, steps, profiler=None):
        """Returns when each step ended."""
        ends = []
        for _ in range(steps):
            self.run_step()
            if profiler:
                profiler.step()
            ends.append(time.perf_counter())
        torch.cuda.synchronize()
        return ends

    def run_step(self):
        batch = next(self.loader).to(DEVICE)
        slow_down(self.step, self.weight)
        if OPTIONS.loop in ("pipe", "stages"):
            loss = self.model.run_step(batch)
        else:
            for _ in range(MICRO_BATCHES - 1 if OPTIONS.loop == "accumulate" else 0):
                with self.model.no_sync():
                    self.model(batch).square().mean().backward()
            loss = self.model(batch).square().mean()
            loss.backward()
        if OPTIONS.loop == "owners":
            exchange_by_owner(self.model)
        if self.data_group is not None:
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad, group=self.data_group)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if OPTIONS.loop == "evals" and self.step % 10 == 9:
            with torch.no_grad():
                results = torch.stack([self.model(batch).mean() for _ in range(8)])
            dist.all_reduce(results)
        if OPTIONS.loop != "free" or self.step % 10 == 9:
            loss.item()  # what logs its loss in every step waits for its GPU there
        if self.step % 10 == 0:
            print(f"{datetime.datetime.now().isoformat()} rank {RANK} step {self.step} loss {loss.item():.4f}", flush=True)
        self.step += 1


def lengths_of(ends):
    return [(b - a) * 1e3 for a, b in zip(ends, ends[1:])]


def mean(values):
    """Means, since a stall now and then is no part of a median."""
    return sum(values) / max(1, len(values))


def profile(job, steps, name):
    """Runs steps of which TRACED are traced; the trace is written where it has a name."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    schedule = torch.profiler.schedule(wait=WARMUP - 4, warmup=4, active=TRACED, repeat=1)
    keep = (lambda profiler: profiler.export_chrome_trace(f"{OUT}/{name}")) if name else None
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=keep) as profiler:
        lengths = lengths_of(job.run(steps, profiler))
    return lengths, mean(lengths[WARMUP + 1:WARMUP + TRACED - 3])  # the last one writes the trace


def keep_records():
    """The records as they are now: what comes after is for the clock alone."""
    dist.barrier()
    time.sleep(0.4)  # the watchdog looks ten times a second, and only it fills in how long an operation took
    with open(f"{OUT}/nccl_trace_rank_{RANK}", "wb") as file:
        file.write(torch._C._distributed_c10d._dump_nccl_trace(includeCollectives=True, includeStackTraces=False, onlyActive=False))
    dist.barrier()
    if RANK == 0:
        for name in ("boxes", "inspector"):
            if os.path.isdir(f"{OUT}/live_{name}"):
                shutil.copytree(f"{OUT}/live_{name}", f"{OUT}/{name}")
    dist.barrier()


def compare(job):
    """Means of steps with and without the delay, in turn; and of traced steps without it."""
    global DELAY_MS
    delay, with_delay, without = DELAY_MS, [], []
    for _ in range(3):
        DELAY_MS = 0.0
        without += lengths_of(job.run(2 * CYCLE + 5))[4:]
        DELAY_MS = delay
        with_delay += lengths_of(job.run(2 * CYCLE + 5))[4:]
    DELAY_MS = 0.0
    _, traced = profile(job, WARMUP + TRACED + 2, None)
    DELAY_MS = delay
    return {"with_ms": mean(with_delay), "without_ms": mean(without), "traced_without_ms": traced}


def wait_at_gate():
    """Importing PyTorch takes longer than the job: it is done while another one runs."""
    gate = os.environ.get("LAB_GATE")
    while gate and not os.path.exists(gate):
        time.sleep(0.02)
    with contextlib.suppress(OSError):  # it waited with a low priority, so as not to slow the job that ran
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def main():
    global DELAY_MS
    wait_at_gate()
    if OPTIONS.delay != "none" and RANK == OPTIONS.rank:
        DELAY_MS = base_ms() * OPTIONS.percent / 100
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60), device_id=DEVICE)
    dist.barrier()
    job = Job()
    lengths, traced = profile(job, OPTIONS.steps, f"trace_rank{RANK}.json")
    keep_records()
    plain = lengths[WARMUP + TRACED + 6:]  # steps around the trace belong to the profiler
    with open(f"{OUT}/step_rank{RANK}.json", "w") as file:
        json.dump({"plain_ms": mean(plain), "traced_ms": traced, "delay_ms": DELAY_MS, **compare(job),
                   "lengths_ms": [round(x, 3) for x in lengths], "options": vars(OPTIONS)}, file)
    print("finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
