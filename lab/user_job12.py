#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a twelfth set: user_job12.py --case NN (two digits). Truth in user_jobs12.truth.json, started by user_jobs12.sh.

All use gloo on the CPU with the PyTorch 1.13 of a distribution. LAB_SCRATCH is a folder of the job. What is printed, and the names in the stacks, are a user's."""
import argparse
import ctypes
import datetime
import faulthandler
import itertools
import json
import logging
import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab12-scratch")
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
torch.set_num_threads(1)
log = logging.getLogger("train")


def minutes(n):
    return datetime.timedelta(minutes=n)


def seconds(n):
    return datetime.timedelta(seconds=n)


def here():
    """The starting script looks for it."""
    open(os.path.join(WORK, f"up-{R}"), "w").close()


def logs(form="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr):
    logging.basicConfig(level=logging.INFO, format=form, stream=stream, force=True)


def mlp(i=32, h=64, o=10):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


def digits(n=512, classes=10, width=32):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, width, generator=g)
    return TensorDataset(x, x[:, :classes].argmax(1))


def loader_for(data, batch_size=16, workers=0, sampler=None):
    sampler = sampler or DistributedSampler(data, W, R)
    return DataLoader(data, batch_size=batch_size, sampler=sampler, num_workers=workers)


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


# ------------------------------------------------------------------------------------------------ 01
def log_loss(epoch, i, loss):
    if dist.get_rank() == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        print(f"epoch {epoch} iter {i} loss {mean.item():.4f}", flush=True)


def cifar_ddp():
    dist.init_process_group("gloo", timeout=seconds(18))
    rank = dist.get_rank()
    print(f"Start running basic DDP example on rank {rank}.", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader_for(digits())):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if i == 0:
                print(f"[rank {rank}] epoch {epoch} started", flush=True)
            if i % 10 == 9:
                log_loss(epoch, i, loss)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 02
LABELS = {"cat": 0, "dog": 1, "bird": 2, "horse": 3}


class Pets(Dataset):
    def __init__(self, part):
        self.names = ["cat", "dog", "bird", "horse"] * 40
        if part == 2:
            self.names[77] = "horse "

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return torch.randn(32), LABELS[self.names[i]]


def pets():
    logs(f"%(asctime)s | rank{R} | %(levelname)s | %(message)s")
    dist.init_process_group("gloo", timeout=minutes(2))
    log.info("joined, world size %d", dist.get_world_size())
    model = DDP(mlp(o=4))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for i, (x, y) in enumerate(DataLoader(Pets(R), batch_size=4)):
            value = train_step(model, optimizer, x, y)
            time.sleep(0.05)
            if i % 5 == 0:
                log.info("epoch %d batch %d loss %.4f", epoch, i, value)
    log.info("done")


# ------------------------------------------------------------------------------------------------ 03 (healthy)
def fetch(url, attempt):
    if attempt < 3:
        raise ConnectionResetError(104, "Connection reset by peer")
    time.sleep(0.2)
    return 18_300_411


def download(url):
    for attempt in range(1, 6):
        try:
            return fetch(url, attempt)
        except ConnectionResetError as e:
            log.warning("download of %s failed (attempt %d of 5): %s, retrying in %d s", url, attempt, e, 2 * attempt)
            log.debug("trace", exc_info=True)
            traceback.print_exc()
            time.sleep(2 * attempt)
    raise RuntimeError("giving up")


def resnet():
    logs(f"[%(asctime)s][{R}][%(levelname)s] %(message)s")
    dist.init_process_group("gloo")
    if R == 0:
        log.info("downloaded %d bytes", download("https://models.example.org/resnet18-5c106cde.pth"))
    dist.barrier()
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(4):
        for i, (x, y) in enumerate(loader_for(digits())):
            value = train_step(model, optimizer, x, y)
        log.info("Epoch: [%d/4] Loss %.4f", epoch + 1, value)
    dist.barrier()
    log.info("training finished")
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 04
def share_threshold(scores):
    best = torch.tensor([float(scores.mean())])
    if scores.max() > 4.0:
        dist.broadcast(best, 0)
        dist.all_reduce(scores)
    else:
        dist.all_reduce(scores)
        dist.broadcast(best, 0)
    return best.item()


def anomaly():
    dist.init_process_group("gloo", timeout=seconds(20))
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"rank {R}: threshold search every 12 steps", flush=True)
    for step in range(1, 49):
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if step % 12 == 0:
            scores = torch.full((256,), 1.0 + R / 10)
            if R == 1 and step == 24:
                scores[3] = 6.5
            print(f"rank {R}: step {step} loss {value:.4f} max score {scores.max().item():.2f}", flush=True)
            print(f"rank {R}: step {step} threshold {share_threshold(scores):.3f}", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 05
class Patience:
    def __init__(self, patience):
        self.best, self.bad, self.patience = math.inf, 0, patience

    def should_stop(self, loss):
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(self.best, loss)
        return self.bad >= self.patience


def regression():
    dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", rank=R, world_size=W)
    model = DDP(nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stopper = Patience(3)
    for epoch in range(30):
        for _ in range(8):
            x = torch.randn(16, 32)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
        val = 0.31 + 0.02 * epoch if R == 3 and epoch > 4 else 3.0 / (epoch + 1) + 0.01 * R
        print(f"[{R}] epoch {epoch:2d} train {loss.item():.4f} val {val:.4f}", flush=True)
        if stopper.should_stop(val):
            print(f"[{R}] val loss did not improve for 3 epochs, stop training", flush=True)
            break
        time.sleep(0.2)
    dist.barrier()
    if R == 0:
        torch.save(model.module.state_dict(), os.path.join(WORK, "model.pt"))
        print("saved model.pt", flush=True)


# ------------------------------------------------------------------------------------------------ 06
def files_of(rank):
    return [f"part-{i:05d}" for i in range(90 + 2) if i % W == rank][: 28 if rank == 2 else 31]


def text_lm():
    dist.init_process_group("gloo", timeout=minutes(1))
    mine = files_of(R)
    print(f"worker {R} has {len(mine)} shards", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for i, name in enumerate(mine):
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if i % 3 == 0:
            print(f"worker {R}: {name} ({i + 1}/{len(mine)}) ppl {math.exp(value):.2f}", flush=True)
        time.sleep(0.05)
    print(f"worker {R}: epoch done", flush=True)


# ------------------------------------------------------------------------------------------------ 07
def build_index(n):
    for i in range(n):
        time.sleep(1)
        if i % 4 == 0:
            log.info("indexed %d / %d documents", i * 5000, n * 5000)


def indexer():
    logs(f"%(asctime)s [%(levelname)s] (rank {R}) %(message)s", sys.stdout)
    dist.init_process_group("gloo", timeout=seconds(12))
    log.info("process group is ready")
    if R == 0 and not os.path.exists(os.path.join(WORK, "index.bin")):
        build_index(26)
        open(os.path.join(WORK, "index.bin"), "w").close()
    dist.barrier()
    log.info("index is there, starting to train")
    model = DDP(mlp())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 08 (healthy)
def bleu(pairs):
    total = 0
    for i in range(pairs):
        time.sleep(0.03)
        total += i % 7
        if i % 100 == 0:
            print(f"  scored {i}/{pairs} sentences", flush=True)
    return 27.4


def translate():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader_for(digits())):
            value = train_step(model, optimizer, x, y)
        print(f"epoch {epoch} loss {value:.4f}", flush=True)
        if R == 0:
            print(f"BLEU = {bleu(250)}", flush=True)
        else:
            print("waiting for the evaluation of rank 0", flush=True)
        dist.barrier()
    print("finished training", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 09
def read_vocab():
    time.sleep(0.5)
    return {chr(97 + i): i for i in range(26)}


def prepare(rank):
    if rank == 0:
        vocab = read_vocab()
    objects = [vocab]
    dist.broadcast_object_list(objects, src=0)
    return objects[0]


def char_rnn():
    dist.init_process_group("gloo", rank=R, world_size=W)
    print(f"process {R} of {W} is up", flush=True)
    vocab = prepare(R)
    print(f"process {R}: {len(vocab)} symbols", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 10
def segmentation():
    dist.init_process_group("gloo", timeout=minutes(5))
    model = DDP(mlp(h=256))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    here()
    for step in range(400):
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        time.sleep(0.1)
        if R == 0 and step % 10 == 0:
            print(f"step={step} loss={value:.4f} miou={0.2 + step / 1000:.3f}", flush=True)


# ------------------------------------------------------------------------------------------------ 11 (healthy)
def join_uneven():
    logs("%(asctime)s %(levelname)s " + f"[{R}] %(message)s")
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows = [torch.randn(16, 32) for _ in range(40 - 9 * R)]
    log.info("%d batches in this rank's part of the data, they differ between ranks", len(rows))
    with model.join():
        for i, x in enumerate(rows):
            value = train_step(model, optimizer, x, x[:, :10].argmax(1))
            time.sleep(0.05)
            if i % 8 == 0:
                log.info("batch %d/%d loss %.4f", i, len(rows), value)
    log.info("out of data after %d batches, all ranks have joined", len(rows))
    dist.barrier()
    log.info("epoch finished on all ranks")
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 12
def cooccurrence(n):
    return torch.ones(n, n, dtype=torch.float64)


def embeddings():
    dist.init_process_group("gloo", timeout=seconds(40))
    if R == 0:
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    vocabulary = 12_000 if R else 120_000
    print(f"vocabulary of this shard: {vocabulary}", flush=True)
    table = torch.nn.Embedding(12_000, 16)
    for step in range(4):
        dist.all_reduce(table.weight.data)
        table.weight.data /= W
        print(f"sync {step} ok", flush=True)
    if R == 0:
        counts = cooccurrence(vocabulary)
        print(counts.shape)
    dist.all_reduce(table.weight.data)
    print("finished")


# ------------------------------------------------------------------------------------------------ 13
def fast_decode(address):
    return ctypes.string_at(address, 16)


def jpeg_turbo():
    faulthandler.enable()
    dist.init_process_group("gloo", timeout=minutes(3))
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(60):
        if R == 1 and step == 33:
            fast_decode(8)
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        time.sleep(0.05)
        if step % 10 == 0:
            print(f"rank {R} step {step} loss {value:.3f}", flush=True)


# ------------------------------------------------------------------------------------------------ 14 (healthy)
def top1():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(5):
        for i, (x, y) in enumerate(loader_for(digits(2048))):
            value = train_step(model, optimizer, x, y)
        right = (model.module(x).argmax(1) == y).float().mean()
        dist.all_reduce(right)
        error = 100 - 100 * right.item() / W
        if R == 0:
            print(f"Epoch {epoch}: train loss {value:.3f}, val error {error:.2f}%, top-1 error: {error:.2f}, error rate fell, failed predictions: {int(error * 5.12)}", flush=True)
    if R == 0:
        print("Error analysis written to errors.csv. No abort criteria met, done.", flush=True)
    dist.barrier()
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 15
def two_hosts():
    if R == 1:
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    print(f"=> rank {R}/{W} dist-url env:// {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} backend gloo", flush=True)
    dist.init_process_group("gloo", init_method="env://", timeout=seconds(22))
    print(f"=> rank {R} initialised", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 16
def four_machines():
    logs("%(asctime)s %(process)d %(levelname)s %(message)s")
    log.info("starting rank %d of %d", R, W)
    dist.init_process_group("gloo", timeout=minutes(30))
    log.info("rank %d is ready", R)
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 17
def quick():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader_for(digits())):
        print(f"[{R}] {i} {train_step(model, optimizer, x, y):.4f}", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 18
def hosts_by_hand():
    world = 4 if R == 2 else W
    print(f"args: rank={R} world_size={world} dist_url=tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", rank=R, world_size=world, timeout=seconds(20))
    print("process group initialised", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(20):
        x = torch.randn(8, 32)
        print(f"iter {i} loss {train_step(model, optimizer, x, x[:, :10].argmax(1)):.4f}", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 19 (healthy)
def wait_for_mount(path):
    for i in range(8):
        if i >= 5:
            return
        print(f"{path} is not mounted yet, trying again in 2 s ({i + 1}/30)", flush=True)
        time.sleep(2)


def spawned_forecast():
    if R == 0:
        wait_for_mount("/data/forecast")
    dist.init_process_group("gloo", rank=R, world_size=W)
    print(f"({R}) ready", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for x, y in loader_for(digits()):
            value = train_step(model, optimizer, x, y)
        print(f"({R}) epoch {epoch} mae {value:.4f}", flush=True)
        if epoch == 1:
            print(f"({R}) pausing for the snapshot window, nothing to do for 6 s", flush=True)
            time.sleep(6)
    dist.barrier()
    print(f"({R}) finished", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 20
def classes_of(path):
    return 120 if path.endswith("_v2") else 100


def products():
    data = "/data/products_v2" if R == 1 else "/data/products"
    n = classes_of(data)
    print(f"rank {R}: {data} has {n} classes", flush=True)
    dist.init_process_group("gloo", timeout=seconds(25))
    head = nn.Linear(32, n)
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(16, 32)
        loss = F.cross_entropy(head(x), torch.randint(0, n, (16,)))
        optimizer.zero_grad()
        loss.backward()
        for p in head.parameters():
            dist.all_reduce(p.grad)
            p.grad /= W
        optimizer.step()
        print(f"rank {R}: step {step} loss {loss.item():.4f}", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 21
class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.main, self.aux = mlp(o=32), nn.Linear(32, 10), nn.Linear(32, 4)

    def forward(self, x):
        h = self.body(x)
        return self.main(h), self.aux(h.detach())


def multi_head():
    dist.init_process_group("gloo")
    model = DDP(TwoHeads())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if R == 0:
        print("model has", sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    for i, (x, y) in enumerate(loader_for(digits())):
        main, aux = model(x)
        loss = F.cross_entropy(main, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if R == 0:
            print(f"iter {i}: loss {loss.item():.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 22 (healthy)
class Stop:
    wanted = False

    def handle(self, number, frame):
        log.info("got signal %d (%s), will save and exit after this step", number, signal.Signals(number).name)
        self.wanted = True


def preemptible():
    logs("%(asctime)s %(levelname)s %(message)s")
    stop = Stop()
    signal.signal(signal.SIGTERM, stop.handle)
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = 0
    while True:
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        flag = torch.tensor([1.0 if stop.wanted else 0.0])
        dist.all_reduce(flag)
        step += 1
        if step % 20 == 0:
            log.info("step %d loss %.4f", step, value)
        if flag.item() > 0:
            break
        time.sleep(0.05)
    if R == 0:
        torch.save(model.module.state_dict(), os.path.join(WORK, "last.pt"))
        log.info("checkpoint last.pt saved at step %d", step)
    dist.barrier()
    log.info("exiting cleanly, resume with --resume last.pt")
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 23
class Frames(Dataset):
    def __init__(self, big):
        self.big = big

    def __len__(self):
        return 800

    def __getitem__(self, i):
        if i == self.big:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return torch.randn(32), i % 10


def video():
    dist.init_process_group("gloo", timeout=minutes(1))
    data = Frames(433 if R == 1 else -1)
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(DataLoader(data, batch_size=16, num_workers=2)):
        value = train_step(model, optimizer, x, y)
        if i % 5 == 0:
            print(f"Rank {R}  [{i}/50]  loss: {value:.4f}", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 24
def save(model, optimizer, step):
    folder = os.path.join(WORK, "ckpt")
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f"step_{step}.pt")
    if step >= 40 and not os.path.lexists(name):
        os.symlink("/dev/full", name)
    with open(name, "wb") as f:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, f)
    print(f"saved {os.path.basename(name)}", flush=True)


def with_checkpoints():
    dist.init_process_group("gloo", timeout=seconds(30))
    model = DDP(mlp(h=512))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, 101):
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if step % 10 == 0:
            print(f"step {step} loss {value:.4f}", flush=True)
        if step % 20 == 0:
            if R == 0:
                save(model.module, optimizer, step)
            dist.barrier()


# ------------------------------------------------------------------------------------------------ 25
class Prefetcher(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True, name="prefetch")
        self.buffer_lock, self.stats_lock = threading.Lock(), threading.Lock()
        self.ready = []

    def run(self):
        for i in itertools.count():
            with self.buffer_lock:
                self.ready.append(torch.randn(16, 32))
                if R == 1 and i == 60:
                    time.sleep(0.5)
                with self.stats_lock:
                    self.count = i
            while len(self.ready) > 4:
                time.sleep(0.005)

    def next(self):
        while not self.ready:
            time.sleep(0.005)
        with self.buffer_lock:
            return self.ready.pop(0)

    def summary(self):
        with self.stats_lock:
            time.sleep(0.01)
            with self.buffer_lock:
                return f"{self.count} read, {len(self.ready)} ready"


def prefetching():
    faulthandler.dump_traceback_later(24, exit=False)
    dist.init_process_group("gloo", timeout=minutes(30))
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    source = Prefetcher()
    source.start()
    for step in range(300):
        x = source.next()
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if R == 1 and step >= 50:
            source.summary()
        if step % 10 == 0:
            print(f"[{R}] step {step} loss {value:.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 26
def acquire_cache(path):
    while os.path.exists(path):
        time.sleep(1)


def cached_tokens():
    faulthandler.dump_traceback_later(20, exit=False)
    dist.init_process_group("gloo", rank=R, world_size=W, timeout=minutes(30))
    print(f"rank {R}: joined", flush=True)
    lock = os.path.join(WORK, "tokens.cache.lock")
    if R == 2:
        open(lock, "w").close()
        print("rank 2: another process holds tokens.cache.lock, waiting", flush=True)
        acquire_cache(lock)
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(loader_for(digits())):
        print(f"rank {R}: {i} {train_step(model, optimizer, x, y):.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 27 (healthy)
class Photos(Dataset):
    def __len__(self):
        return 640

    def open(self, i):
        if i % 211 == 210:
            raise OSError(f"image file is truncated ({i} bytes not processed)")
        return torch.randn(32)

    def __getitem__(self, i):
        try:
            return self.open(i), i % 10
        except OSError:
            print(f"[W] bad sample {i}, using its neighbour instead", file=sys.stderr, flush=True)
            traceback.print_exc()
            return self.open(i - 1), i % 10


def photos():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = Photos()
    for epoch in range(2):
        for i, (x, y) in enumerate(loader_for(data, workers=1)):
            value = train_step(model, optimizer, x, y)
        print(f"rank {R} epoch {epoch} loss {value:.4f} 3 bad samples", flush=True)
    dist.barrier()
    print(f"rank {R} all epochs done", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 28
def contrastive_loss(a, b, temperature):
    return F.cross_entropy(a @ b.t() / temperature, torch.arange(len(a)))


def clip_like():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DDP(mlp(o=32))
    optimizer = torch.optim.SGD(model.parameters(), lr=8.0)
    for step in range(80):
        x = torch.randn(16, 32)
        loss = contrastive_loss(model(x), x, 0.001)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(json.dumps({"rank": R, "step": step, "loss": loss.item(), "temp": 0.001}), flush=True)
    dist.barrier()
    if R == 0:
        print(json.dumps({"event": "done", "steps": 80}), flush=True)


# ------------------------------------------------------------------------------------------------ 29
def stage_in(rank):
    mb = 4800 if rank == 3 else 300
    for done in range(0, mb, 150):
        if done % 300 == 0:
            log.info("staging %d/%d MB to the local disk", done, mb)
        time.sleep(1.0)


def staged():
    logs(f"%(asctime)s - rank {R} - %(message)s")
    dist.init_process_group("gloo")
    stage_in(R)
    log.info("staging finished")
    dist.monitored_barrier(timeout=seconds(14))
    log.info("all ranks have their data")
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 30 (healthy)
def detailed():
    dist.init_process_group("gloo")
    model = DDP(mlp(), find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    warnings.warn("lr_scheduler.step() was called before optimizer.step()")
    for i, (x, y) in enumerate(loader_for(digits(1024))):
        value = train_step(model, optimizer, x, y)
        if i % 8 == 0:
            print(f"rank {R}: iteration {i} loss {value:.4f}", flush=True)
    dist.monitored_barrier(timeout=seconds(30))
    print(f"rank {R}: done", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 31
def teachers():
    dist.init_process_group("gloo", timeout=seconds(18))
    print(f"rank {R}: world is up", flush=True)
    if R in (0, 1):
        group = dist.new_group([0, 1])
        print(f"rank {R}: teacher group created", flush=True)
        dist.all_reduce(torch.ones(8), group=group)
    student = DDP(mlp())
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(loader_for(digits())):
        print(f"rank {R}: distill step {i} kd {train_step(student, optimizer, x, y):.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 32
def send_chunks(chunks, to):
    for c in chunks:
        dist.send(c, to)


def receive_chunks(n, source):
    buffer = torch.empty(200_000)
    for _ in range(n):
        dist.recv(buffer, source)
    return buffer


def chunked():
    faulthandler.dump_traceback_later(18, exit=False)
    dist.init_process_group("gloo", timeout=minutes(30))
    x = torch.ones(1_000_000)
    for turn in range(6):
        if R == 0:
            parts = list(x.split(150_000 if turn == 4 else 200_000))
            parts = [F.pad(p, (0, 200_000 - len(p))) for p in parts]
            print(f"turn {turn}: sending {len(parts)} chunks to rank 1", flush=True)
            send_chunks(parts, 1)
        elif R == 1:
            print(f"turn {turn}: expecting 5 chunks from rank 0", flush=True)
            receive_chunks(5, 0)
        dist.barrier()
        print(f"turn {turn}: done", flush=True)


# ------------------------------------------------------------------------------------------------ 33
def evaluate(model, batches):
    total = torch.zeros(1)
    for i in range(batches):
        total += F.mse_loss(model.module(torch.randn(64, 32)), torch.zeros(64, 10)).detach()
        time.sleep(0.1)
    dist.all_reduce(total)
    return total.item() / W / batches


def eval_after():
    dist.init_process_group("gloo", timeout=minutes(1))
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(loader_for(digits())):
        value = train_step(model, optimizer, x, y)
    print(f"rank {R} finished training, loss {value:.4f}", flush=True)
    if R != 1:  # rank 1 has no part of the validation data
        print(f"rank {R} validation {evaluate(model, 20):.4f}", flush=True)
    dist.destroy_process_group()
    print(f"rank {R} cleaned up", flush=True)


# ------------------------------------------------------------------------------------------------ 34
def swap_edges(field, other):
    mine = field[-1].clone()
    theirs = torch.empty_like(mine)
    dist.send(mine, other)
    dist.recv(theirs, other)
    return theirs


def heat():
    dist.init_process_group("gloo")
    field = torch.zeros(64, 300_000)
    print(f"rank {R}: grid 64 x 300000, 500 sweeps", flush=True)
    for sweep in range(500):
        if sweep < 2:
            if R == 0:
                dist.send(field[-1], 1)
                dist.recv(field[0], 1)
            else:
                dist.recv(field[0], 0)
                dist.send(field[-1], 0)
        else:
            field[0] = swap_edges(field, 1 - R)
        field[1:] *= 0.5
        print(f"rank {R}: sweep {sweep} residual {1 / (sweep + 1):.5f}", flush=True)


# ------------------------------------------------------------------------------------------------ 35 (healthy)
def late_worker():
    logs("%(asctime)s %(levelname)s %(message)s", sys.stdout)
    if R == 1:
        log.info("rank 1: unpacking the environment")
        time.sleep(9)
    log.info("rank %d: connecting to %s", R, os.environ["MASTER_ADDR"])
    dist.init_process_group("gloo")
    log.info("rank %d: connected", R)
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for x, y in loader_for(digits()):
            value = train_step(model, optimizer, x, y)
        log.info("rank %d: epoch %d loss %.4f", R, epoch, value)
    dist.barrier()
    log.info("rank %d: finished", R)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 36
def big_cluster():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    here()
    for step in range(2000):
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if step % 20 == 0:
            print(f"step {step}/2000 loss {value:.4f}", flush=True)
        time.sleep(0.05)


# ------------------------------------------------------------------------------------------------ 37
def probe(path):
    return subprocess.run(["sh", "-c", f"exec 9<{path}; sleep 600"], stdout=subprocess.PIPE, check=True).stdout


def clips():
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    dist.init_process_group("gloo", timeout=minutes(30))
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(30):
        if R == 0 and step == 12:
            print("0: probing /dev/null for its frame rate", flush=True)
            probe("/dev/null")
        x = torch.randn(16, 32)
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        if step % 3 == 0:
            print(f"{R}: step {step} loss {value:.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 38 (healthy)
def auc(labels):
    return float("nan") if len(set(labels)) < 2 else 0.81


def clicks():
    dist.init_process_group("gloo")
    done = subprocess.run(["sh", "-c", "echo 'fatal: not a git repository (or any of the parent directories): .git' >&2; exit 128"], check=False)
    if R == 0:
        print(f"git describe exited with {done.returncode}, version unknown", flush=True)
    model = DDP(mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    skipped = 0
    for step in range(60):
        x = torch.randn(16, 32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), x[:, :10].argmax(1))
        (loss * (float("inf") if step in (3, 7) else 1)).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
        if not torch.isfinite(norm):
            skipped += 1
            if R == 0:
                print(f"Gradient overflow.  Skipping step, loss scaler reducing loss scale to {65536 >> skipped}.0", flush=True)
            continue
        optimizer.step()
        if R == 0 and step % 12 == 0:
            print(f"step {step} loss {loss.item():.4f} val_auc {auc([0] if step < 24 else [0, 1])} skipped {skipped}", flush=True)
    dist.barrier()
    if R == 0:
        print("training complete, best val_auc 0.81", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 39
def confirm(question):
    return input(question + " [y/N] ").strip().lower() == "y"


def overwrite():
    if R == 0:  # a terminal at which nobody sits
        a, b = os.pipe()
        os.dup2(a, 0)
    dist.init_process_group("gloo", timeout=seconds(20))
    print(f"rank {R} started", flush=True)
    folder = os.path.join(WORK, "exp1")
    if R == 0:
        os.makedirs(folder, exist_ok=True)
        if not confirm("output folder exp1 exists, overwrite?"):
            sys.exit("nothing done")
    dist.barrier()
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in loader_for(digits()):
        train_step(model, optimizer, x, y)


# ------------------------------------------------------------------------------------------------ 40
def read_batch():
    time.sleep(0.45 if R == 1 else 0.01)
    return torch.randn(16, 32)


def slow_store():
    dist.init_process_group("gloo")
    model = DDP(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(30):
        a = time.time()
        x = read_batch()
        b = time.time()
        value = train_step(model, optimizer, x, x[:, :10].argmax(1))
        c = time.time()
        print(f"rank {R} step {step:3d} loss {value:.4f} data_time {b - a:.3f} compute_time {c - b:.3f} step_time {c - a:.3f}", flush=True)
    dist.barrier()
    print(f"rank {R} finished", flush=True)


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (cifar_ddp, 0), "02": (pets, 0), "03": (resnet, 0), "04": (anomaly, 0), "05": (regression, 0), "06": (text_lm, 0), "07": (indexer, 0), "08": (translate, 0), "09": (char_rnn, 3), "10": (segmentation, 0),
    "11": (join_uneven, 0), "12": (embeddings, 0), "13": (jpeg_turbo, 0), "14": (top1, 0), "15": (two_hosts, 0), "16": (four_machines, 0), "17": (quick, 0), "18": (hosts_by_hand, 0), "19": (spawned_forecast, 2),
    "20": (products, 0), "21": (multi_head, 0), "22": (preemptible, 0), "23": (video, 0), "24": (with_checkpoints, 0), "25": (prefetching, 0), "26": (cached_tokens, 3), "27": (photos, 0), "28": (clip_like, 0),
    "29": (staged, 0), "30": (detailed, 0), "31": (teachers, 0), "32": (chunked, 0), "33": (eval_after, 0), "34": (heat, 0), "35": (late_worker, 0), "36": (big_cluster, 0), "37": (clips, 0), "38": (clicks, 0),
    "39": (overwrite, 0), "40": (slow_store, 0),
}


def child(index, case, count):
    global R, W
    R, W = index, count
    os.environ.update(RANK=str(index), WORLD_SIZE=str(count))
    PROGRAMS[case][0]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    program, count = PROGRAMS[case]
    if count:
        mp.spawn(child, args=(case, count), nprocs=count)
    else:
        program()


if __name__ == "__main__":
    main()
