#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Further training programs, fourteen with a mistake that users make and four healthy ones: user_job3.py NAME [--guilty R].

NAME is a key of PROGRAMS. Command line and LAB_ variables are those of user_job2.py. What a program prints, and the names in
its stacks, are a user's: functions are called after what they do, and nothing there says what is wrong."""
import argparse
import contextlib
import datetime
import faulthandler
import logging
import os
import queue
import resource
import signal
import socket
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--guilty", dest="odd", type=int, default=2)
parser.add_argument("--steps", type=int, default=24)
parser.add_argument("--timeout", type=float, default=12)
parser.add_argument("--at", type=int, default=6)
args = parser.parse_args()
BACKEND, DEVICE = os.environ.get("LAB_BACKEND", "nccl"), os.environ.get("LAB_DEVICE", "cuda")
SCRATCH = os.environ.get("LAB_SCRATCH", "/tmp/lab-scratch-" + os.environ.get("LAB_JOB", "0"))
os.makedirs(SCRATCH, exist_ok=True)
rank = world = 0
log = logging.getLogger("train")
if DEVICE == "cpu":
    torch.set_num_threads(1)
if "LAB_STACKS" in os.environ and "LAB_SPAWN" not in os.environ:
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)


def here(step=None, on=None):
    """This rank is the odd one (or `on`), and this is the step."""
    if rank != (args.odd if on is None else on) or step is not None and step != args.at:
        return False
    if "LAB_MARK" in os.environ:
        open(os.environ["LAB_MARK"], "a").close()
    return True


def setup():
    log.info("rank %d of %d starts, pid %d", rank, world, os.getpid())
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(BACKEND, rank=rank, world_size=world, timeout=datetime.timedelta(seconds=args.timeout))
    torch.manual_seed(1234)
    return torch.device("cuda", 0) if DEVICE == "cuda" else torch.device("cpu")


def make_classifier(device, width=256, depth=1):
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), *hidden, nn.Linear(width, 10)).to(device)


def wrap(model, **options):
    model = DDP(model, device_ids=[0] if DEVICE == "cuda" else None, **options)
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def start():
    device = setup()
    return device, *wrap(make_classifier(device))


def draw_batch(device, rows=16):
    return torch.randn(rows, 64, device=device), torch.randint(0, 10, (rows,), device=device)


def report(step, loss):
    """The mean of the loss over all ranks, logged by rank 0."""
    value = loss.detach().clone().reshape(1)
    dist.all_reduce(value)
    if rank == 0:
        log.info("step %d loss %.4f", step, value.item() / world)
    time.sleep(0.05)


def train_step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss


def train_for(steps, device, model, optimizer):
    for step in range(steps):
        report(step, train_step(model, optimizer, draw_batch(device)))


def finish():
    dist.barrier()
    if rank == 0:
        log.info("training finished")
    dist.destroy_process_group()


# The two nodes of a job share their prompts; the first rank of each node reads them. src is a rank of the world, not of the node.
def train_with_prompts():
    device, model, optimizer = start()
    nodes = [dist.new_group(list(range(first, min(first + 2, world)))) for first in range(0, world, 2)]
    node = nodes[rank // 2]
    for step in range(args.steps):
        if step % 6 == 0 and step:
            here(step, on=rank)
            prompts = [f"prompt {step}.{i}" for i in range(8)] if rank % 2 == 0 else [None] * 8
            dist.broadcast_object_list(prompts, src=0, group=node)
            log.info("rank %d: %d prompts for step %d", rank, len([p for p in prompts if p]), step)
        report(step, train_step(model, optimizer, draw_batch(device)))
    finish()


# RANK was typed by hand on every machine, and on one of them it is that of its neighbour.
def train_by_hand():
    global rank
    if here():
        rank -= 1
    device, model, optimizer = start()
    train_for(args.steps, device, model, optimizer)
    finish()


# One node still has the configuration of last week, with smaller gradient buckets.
def train_from_config():
    device = setup()
    config = {"version": 6, "layers": 4, "bucket_cap_mb": 1} if here() else {"version": 7, "layers": 4, "bucket_cap_mb": 25}
    log.info("rank %d: configuration %s", rank, config)
    net = make_classifier(device, 1024, config["layers"])
    model, optimizer = wrap(net, bucket_cap_mb=config["bucket_cap_mb"], find_unused_parameters=True)
    train_for(args.steps, device, model, optimizer)
    finish()


# Gradients are accumulated until enough tokens are there; one rank's sequences are shorter, and it accumulates for longer.
def train_by_tokens():
    device, model, optimizer = start()
    tokens = 0
    for step in range(args.steps):
        x, y = draw_batch(device)
        tokens += 1500 if here(step) else 2048
        full = tokens >= 4096
        with contextlib.nullcontext() if full else model.no_sync():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0
        report(step, loss)
    finish()


class ShardWriter:
    """Writes checkpoints in a thread, so that training does not wait for the disk."""

    def __init__(self):
        self.pending = queue.Queue()
        threading.Thread(target=self.write_pending, name="shard-writer", daemon=True).start()

    def write_pending(self):
        while True:
            path, state = self.pending.get()
            torch.save(state, path)
            self.pending.task_done()


def train_with_writer():
    device, model, optimizer = start()
    writer = ShardWriter()
    for step in range(args.steps):
        if step % 6 == 0 and step:
            writer.pending.join()
            state = {"step": step, "optimizer": optimizer.state_dict()}
            if here(step):
                state["sampler"] = threading.Lock()
            writer.pending.put((os.path.join(SCRATCH, f"shard{rank}-{step}.pt"), state))
            if rank == 0:
                log.info("checkpoint of step %d is being written", step)
        report(step, train_step(model, optimizer, draw_batch(device)))
    writer.pending.join()
    finish()


class Images(Dataset):
    decoded = []

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        self.decoded.append(bytearray(1 << 20))
        return torch.randn(64), index % 10


def apply_node_limits(worker):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (48 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


# The dataset caches all images in every worker, and one node has a limit on memory.
def train_on_images():
    device, model, optimizer = start()
    loader = DataLoader(Images(), batch_size=16, num_workers=2, worker_init_fn=apply_node_limits if here() else None)
    for step, (x, y) in enumerate(loader):
        if step >= args.steps:
            break
        report(step, train_step(model, optimizer, (x.to(device), y.to(device))))
    finish()


# A distance of two equal rows is 0, where its square root has no gradient; one rank's data has such a pair.
def train_on_pairs():
    device, model, optimizer = start()
    torch.autograd.set_detect_anomaly(True)
    for step in range(args.steps):
        left, right = torch.randn(8, 64, device=device), torch.randn(8, 64, device=device)
        if here(step):
            right[3] = left[3]
        a, b = model(torch.cat([left, right])).chunk(2)
        distance = (a - b).square().sum(1).sqrt()
        loss = (distance - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(step, loss)
    finish()


class Tracker:
    """A client of an experiment tracker; the proxy takes the connection and nobody answers."""

    def __init__(self, project):
        self.project = project
        self.proxy = socket.create_server(("127.0.0.1", 0))

    def login(self):
        print(f"tracker: logging in, project {self.project}", flush=True)
        connection = socket.create_connection(self.proxy.getsockname())
        connection.sendall(b"POST /api/v1/login HTTP/1.1\r\nHost: tracker\r\n\r\n")
        return connection.recv(4096)


def train_with_tracker():
    if here(on=0):
        Tracker("resnet-sweep").login()
    device, model, optimizer = start()
    train_for(args.steps, device, model, optimizer)
    finish()


# Rank 0 looks at validation batches through the bare model, which is still in training mode: its batch norms ask all ranks.
def train_with_batch_norm():
    device = setup()
    if DEVICE == "cpu":
        class Norm(nn.Module):  # SyncBatchNorm wants a GPU
            def forward(self, x):
                means = [torch.zeros(x.shape[1]) for _ in range(world)]
                dist.all_gather(means, x.mean(0).detach())
                return x - torch.stack(means).mean(0)
        net = nn.Sequential(nn.Linear(64, 128), Norm(), nn.ReLU(), nn.Linear(128, 10))
    else:
        net = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10))
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net).to(device)
    model, optimizer = wrap(net)
    for step in range(args.steps):
        if here(step, on=0):
            log.info("validation at step %d", step)
            log.info("validation accuracy %.3f", validate(model.module, device))
        report(step, train_step(model, optimizer, draw_batch(device)))
    finish()


def validate(model, device):
    correct = 0
    with torch.no_grad():
        for _ in range(8):
            x, y = draw_batch(device)
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / 128


# References in the overrides of one node lead in a circle.
def resolve(config, name):
    value = config[name]
    return follow(config, value) if isinstance(value, str) and value.startswith("$") else value


def follow(config, value):
    return resolve(config, value[1:])


def train_with_schedule():
    device, model, optimizer = start()
    config = {"lr": 0.05, "final_lr": "$lr", "lr_scale": "$warmup", "warmup": 2}
    for step in range(args.steps):
        if step == args.at:
            if here(step):
                config["warmup"] = "$lr_scale"
            optimizer.param_groups[0]["lr"] = 0.05 / resolve(config, "lr_scale")
        report(step, train_step(model, optimizer, draw_batch(device)))
    finish()


# A row that cannot be parsed raises, and the clean-up waits for all ranks, which know nothing of it.
def train_from_csv():
    device, model, optimizer = start()
    try:
        for step in range(args.steps):
            row = "0.1,0.7,n/a" if here(step) else "0.1,0.7,0.2"
            weight = sum(float(field) for field in row.split(","))
            x, y = draw_batch(device)
            report(step, train_step(model, optimizer, (x * weight, y)))
    finally:
        dist.barrier()
        dist.destroy_process_group()


# Every rank holds a part of the optimizer's state, and only rank 0 asks for the whole.
def train_with_zero():
    device, model, _ = start()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    for step in range(args.steps):
        report(step, train_step(model, optimizer, draw_batch(device)))
        if here(step, on=0):
            log.info("saving the optimizer of step %d", step)
            optimizer.consolidate_state_dict(to=0)
            torch.save(optimizer.state_dict(), os.path.join(SCRATCH, "optimizer.pt"))
    finish()


# All ranks send their predictions to rank 0, which counts one rank too few.
def train_and_predict():
    device, model, optimizer = start()
    train_for(args.at, device, model, optimizer)
    predictions = torch.full((1 << 22,), float(rank), device=device)
    if rank:
        dist.send(predictions, 0)
    elif here(on=0):
        total = predictions.sum()
        for sender in range(1, world - 1):
            dist.recv(predictions, sender)
            total += predictions.sum()
        log.info("predictions of %d ranks, mean %.3f", world, total.item() / (world << 22))
    train_for(args.steps, device, model, optimizer)
    finish()


# Rank 0 writes its summary when the process group is gone.
def train_and_summarize():
    device, model, optimizer = start()
    begin = time.time()
    train_for(args.steps, device, model, optimizer)
    finish()
    if here(on=0):
        rate = 16 * args.steps * dist.get_world_size() / (time.time() - begin)
        log.info("%.0f samples per second", rate)


# ---------------------------------------------------------------- healthy
def train_compiled():
    device = setup()
    net = make_classifier(device)
    model, optimizer = wrap(torch.compile(net, backend="aot_eager") if DEVICE == "cuda" else net)
    log.info("rank %d: compiling, the first step takes a while", rank)
    time.sleep(8 + 2 * rank)  # kernels are tuned, on some nodes from a cache
    train_for(args.steps, device, model, optimizer)
    finish()


def train_with_slow_disk():
    device, model, optimizer = start()
    for step in range(args.steps):
        report(step, train_step(model, optimizer, draw_batch(device)))
        if step == args.at:
            if rank == 0:
                log.info("saving checkpoint of step %d to /mnt/nfs", step)
                torch.save(model.module.state_dict(), os.path.join(SCRATCH, "last.pt"))
                time.sleep(20)
                log.warning("saving took 20.0 s, is the disk slow?")
            dist.barrier()
    finish()


def train_while_all_have_data():
    device, model, optimizer = start()
    batches = args.steps - 4 * (rank == args.odd)
    for step in range(args.steps):
        more = torch.tensor([float(step < batches)], device=device)
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
        if step >= batches:
            log.warning("rank %d has no more batches after step %d", rank, step - 1)
        if not more.item():
            break
        report(step, train_step(model, optimizer, draw_batch(device)))
    finish()


def predict_shards():
    device = setup()
    model = make_classifier(device).eval()
    dist.barrier()
    shards = 3 + 2 * (rank == args.odd)
    with torch.no_grad():
        for shard in range(shards):
            labels = torch.cat([model(draw_batch(device)[0]).argmax(1) for _ in range(20)])
            log.info("rank %d: shard %d of %d, %d rows", rank, shard + 1, shards, len(labels))
            time.sleep(3)
    log.info("rank %d: all shards are written", rank)


PROGRAMS = {"new_nodesrc": train_with_prompts, "new_samerank": train_by_hand, "new_buckets": train_from_config, "new_tokens": train_by_tokens,
            "new_writer": train_with_writer, "new_workermem": train_on_images, "new_anomaly": train_on_pairs, "new_tracker": train_with_tracker,
            "new_syncbn": train_with_batch_norm, "new_recursion": train_with_schedule, "new_finally": train_from_csv, "new_zero": train_with_zero,
            "new_sendonly": train_and_predict, "new_summary": train_and_summarize, "new_healthy_compile": train_compiled,
            "new_healthy_pause": train_with_slow_disk, "new_healthy_flags": train_while_all_have_data, "new_healthy_shards": predict_shards}
train = PROGRAMS[args.program]


def main(index=None):
    global rank, world
    if index is not None:
        os.environ.update(RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=os.environ["LAB_SPAWN"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["NCCL_HOSTID"] = f"lab3-host-{rank}"
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s: %(message)s", force=True)
    train()


if __name__ == "__main__":
    if "LAB_SPAWN" in os.environ:
        import torch.multiprocessing as mp
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        mp.spawn(main, nprocs=int(os.environ["LAB_SPAWN"]))
    else:
        main()
