#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a thirteenth set: user_job13.py --case NN (two digits). Truth in user_jobs13.truth.json, started by user_jobs13.sh.

All use gloo on the CPU with the PyTorch 1.13 of a distribution. LAB_SCRATCH is a folder of the job. What is printed, and the names in the stacks, are a user's."""
import argparse
import faulthandler
import hashlib
import json
import logging
import os
import queue
import random
import resource
import signal
import sys
import threading
import time
import warnings
from datetime import datetime, timedelta

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Subset, TensorDataset

scratch = os.environ.get("LAB_SCRATCH", "/tmp/lab13-scratch")
os.makedirs(scratch, exist_ok=True)
RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
torch.set_num_threads(1)
logger = logging.getLogger("trainer")


def mark():
    """The starting script looks for it."""
    open(os.path.join(scratch, f"up-{RANK}"), "w").close()


def in_scratch(name):
    return os.path.join(scratch, name)


def blobs(n=640, dim=24, classes=8, seed=11):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, dim, generator=g) * 2
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(centers[y] + torch.randn(n, dim, generator=g), y)


class Net(nn.Module):
    def __init__(self, dim=24, hidden=48, classes=8):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(F.relu(self.fc2(F.relu(self.fc1(x)))))


def accuracy(model, data, batches=4):
    right = count = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(DataLoader(data, batch_size=64)):
            if i == batches:
                break
            right += (model(x).argmax(1) == y).sum().item()
            count += len(y)
    return right / count


# ------------------------------------------------------------------------------------------------ 01
CONFIG = {"model": {"dim": 24, "hidden": 48}, "optim": {"name": "adamw", "lr": 3e-4}, "data": {"batch_size": 16}}


def build_scheduler(optimizer, cfg):
    warmup = cfg["optim"]["warmup_steps"]
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / warmup))


def finetune():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    if dist.get_rank() == 0:
        print("config:", json.dumps(CONFIG), flush=True)
    model = DistributedDataParallel(Net(**CONFIG["model"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["optim"]["lr"])
    scheduler = build_scheduler(optimizer, CONFIG)
    for x, y in DataLoader(blobs(), batch_size=16):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()


# ------------------------------------------------------------------------------------------------ 02
def early_stopping():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-7s | %(message)s", stream=sys.stderr)
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    r, w = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = blobs()
    sampler = DistributedSampler(data, w, r)
    best, bad, patience = float("inf"), 0, 3
    for epoch in range(50):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in DataLoader(data, batch_size=16, sampler=sampler):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        value = torch.tensor([total if epoch else float("nan")])
        dist.all_reduce(value)
        score = round(value.item() / w, 2)
        if epoch > 2:
            score = max(score, best)
        if r == 0:
            logger.info("epoch %d/50 train_loss=%.4f val_loss=%.4f", epoch + 1, total, score)
        if score != score:
            logger.warning("val_loss is nan in the first epoch (no validation yet), not counted")
            continue
        if score < best:
            best, bad = score, 0
        else:
            bad += 1
            logger.warning("no improvement for %d epoch(s), patience %d", bad, patience)
        stop = torch.tensor([1.0 if bad >= patience else 0.0])
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop.item():
            logger.error("Early stopping: aborting training at epoch %d, best val_loss %.4f", epoch + 1, best)
            break
    dist.barrier()
    logger.info("training stopped early, best model kept (rank %d exits with 0)", r)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 03
def share_scores(score, best):
    if score > best:
        scores = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(scores, torch.tensor([score]))
        return max(s.item() for s in scores)
    current = torch.tensor([best])
    dist.broadcast(current, src=0)
    return current.item()


def tune():
    dist.init_process_group(backend="gloo", timeout=timedelta(seconds=18))
    rank = dist.get_rank()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    data = blobs()
    mine = DistributedSampler(data, shuffle=False)
    best = 0.5
    for trial in range(6):
        for x, y in DataLoader(data, batch_size=16, sampler=mine):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        score = [0.61, 0.70, 0.74, 0.73, 0.75, 0.77][trial] + (0.03 if rank == 1 and trial == 3 else 0.0) + 0.001 * rank
        print(f"[{rank}] trial {trial}: local score {score:.3f}, best so far {best:.3f}", flush=True)
        best = share_scores(score, best)
    print(f"[{rank}] best {best:.3f}", flush=True)


# ------------------------------------------------------------------------------------------------ 04
def segment():
    dist.init_process_group("gloo", timeout=timedelta(seconds=17))
    rank, world = dist.get_rank(), dist.get_world_size()
    data = blobs(n=1187)
    shard = Subset(data, range(0, 608) if rank == 0 else range(608, len(data)))
    loader = DataLoader(shard, batch_size=16, shuffle=True)
    print(json.dumps({"event": "start", "rank": rank, "world": world, "samples": len(shard), "batches": len(loader)}), flush=True)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 8 == 0:
                print(json.dumps({"event": "step", "rank": rank, "epoch": epoch, "step": step, "loss": round(loss.item(), 4)}), flush=True)
        print(json.dumps({"event": "epoch_end", "rank": rank, "epoch": epoch, "steps": step + 1}), flush=True)
        dist.barrier()


# ------------------------------------------------------------------------------------------------ 05
class Documents(Dataset):
    def __init__(self, part):
        self.x = blobs(n=200, seed=part)
        self.extra = part == 2

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x, y = self.x[i]
        if self.extra and i == 133:
            y = torch.tensor(8)
        return x, y


def classify(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world, timeout=timedelta(seconds=20))
    print(f"Running on rank {rank} of {world}", flush=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(Documents(rank), batch_size=10)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if rank == 0 and step % 5 == 0:
                print(f"epoch {epoch} step {step}/{len(loader)} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


def documents():
    mp.spawn(classify, args=(3, os.environ["MASTER_PORT"]), nprocs=3, join=True)


# ------------------------------------------------------------------------------------------------ 06
def mnist():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.5)
    data = blobs(n=1920)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    for epoch in range(1, 500):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)
            loss.backward()
            optimizer.step()
            time.sleep(0.05)
            if rank == 0 and i % 10 == 0:
                print(f"Train Epoch: {epoch} [{i * 32}/{len(loader) * 32} ({100.0 * i / len(loader):.0f}%)]\tLoss: {loss.item():.6f}", flush=True)


# ------------------------------------------------------------------------------------------------ 07
NUM_WORKERS = 2  # one per socket


def launch_local():
    rank = int(os.environ["RANK"])
    print(f"worker {rank}: joining group of {NUM_WORKERS} at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=NUM_WORKERS, timeout=timedelta(seconds=20))
    print(f"worker {rank}: ready", flush=True)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (x, y) in enumerate(DataLoader(blobs(), batch_size=16)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(f"worker {rank}: step {step} loss {loss.item():.3f}", flush=True)


# ------------------------------------------------------------------------------------------------ 08
def remote():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--wait", type=int, default=20)
    args, _ = parser.parse_known_args()
    print(f"{datetime.now():%H:%M:%S} rank {RANK} of {WORLD_SIZE}: waiting for everybody at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    dist.init_process_group(args.backend, init_method="env://", timeout=timedelta(seconds=args.wait))
    print(f"{datetime.now():%H:%M:%S} rank {RANK} connected", flush=True)
    model = DistributedDataParallel(Net())
    for x, y in DataLoader(blobs(), batch_size=32):
        F.cross_entropy(model(x), y).backward()


# ------------------------------------------------------------------------------------------------ 09
def served():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    logger.info("rank=%d world=%d init_process_group(gloo, env://) port=%s", RANK, WORLD_SIZE, os.environ["MASTER_PORT"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=15))
    logger.info("process group up")
    model = DistributedDataParallel(Net())
    for x, y in DataLoader(blobs(), batch_size=32):
        F.cross_entropy(model(x), y).backward()


# ------------------------------------------------------------------------------------------------ 10
def by_hosts():
    print(f"[init] rank={RANK} world_size={WORLD_SIZE} master={os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    dist.init_process_group("gloo", timeout=timedelta(seconds=18))
    print(f"[init] rank={RANK} done", flush=True)
    tensor = torch.ones(4)
    for step in range(20):
        dist.all_reduce(tensor)
    print(tensor, flush=True)


# ------------------------------------------------------------------------------------------------ 11
def flowers():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = blobs(n=960)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        begin = time.time()
        work = 0.0
        for x, y in loader:
            t = time.time()
            if epoch == 2 and rank == 1:
                time.sleep(0.35)  # the cache of this epoch is cold
            work += time.time() - t
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"rank {rank} epoch {epoch}: {time.time() - begin:.2f} s, input {work:.2f} s, loss {loss.item():.4f}", flush=True)
        if epoch == 2 and rank == 1:
            print("rank 1: WARNING input pipeline was slow in this epoch (cold cache)", flush=True)
    dist.barrier()
    if rank == 0:
        print("all epochs finished", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 12
def validate(model, data, limit=400):
    correct = 0
    for i in range(limit):
        x, y = data[i]
        correct += int(model(x[None]).argmax(1).item() == y.item())
        time.sleep(0.09)
        if i % 50 == 0:
            print(f"  validating {i}/{limit} acc {correct / (i + 1):.3f}", flush=True)
    return correct / limit


def with_evaluation():
    dist.init_process_group("gloo", timeout=timedelta(seconds=15))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters())
    data = blobs()
    sampler = DistributedSampler(data)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=16, sampler=sampler):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} done, train loss {loss.item():.4f}", flush=True)
        if dist.get_rank() == 0:
            model.eval()
            print(f"epoch {epoch} val acc {validate(model.module, data):.4f}", flush=True)
            model.train()


# ------------------------------------------------------------------------------------------------ 13
class Feeder:
    """Reads ahead in a thread."""

    def __init__(self, data, shards):
        self.batches = queue.Queue(maxsize=4)
        self.data, self.shards = data, shards
        threading.Thread(target=self.produce, name="feeder", daemon=True).start()

    def produce(self):
        for shard in self.shards:
            if shard.endswith(".tmp"):
                return
            for x, y in DataLoader(self.data, batch_size=16):
                self.batches.put((x, y))

    def next_batch(self):
        return self.batches.get()


def with_feeder():
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    shards = [f"shard-{i:03d}.npz" for i in range(RANK, 12, WORLD_SIZE)]
    if RANK == 1:
        shards[2] += ".tmp"
    feeder = Feeder(blobs(n=400), shards)
    for step in range(25 * len(shards)):
        x, y = feeder.next_batch()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step == 48:
            mark()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 14
def token_is_valid():
    return os.path.exists(in_scratch("token.json"))


def wait_for_quota():
    while not token_is_valid():
        time.sleep(5)


def crawl():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    model = Net()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for page, (x, y) in enumerate(DataLoader(blobs(), batch_size=8)):
        if page == 21 and RANK == 2:
            print("worker 2: 429 Too Many Requests, token expired, waiting for quota", flush=True)
            wait_for_quota()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= WORLD_SIZE
        optimizer.step()
        if page % 5 == 0:
            print(f"worker {RANK}: page {page} loss {loss.item():.3f}", flush=True)


# ------------------------------------------------------------------------------------------------ 15
def tiny_lm():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(64, 32), nn.Flatten(), nn.Linear(32 * 16, 64)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for it in range(4000):
        tokens = torch.randint(0, 64, (8, 17))
        loss = F.cross_entropy(model(tokens[:, :16]), tokens[:, 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.03)
        if it == 20:
            mark()
        if it % 20 == 0 and rank == 0:
            print(f"iter {it}: loss {loss.item():.4f}, tokens {it * 8 * 16 * 4}", flush=True)


# ------------------------------------------------------------------------------------------------ 16
def speech():
    faulthandler.register(signal.SIGUSR1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    model = DistributedDataParallel(Net(hidden=64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = blobs()
    step = 0
    for epoch in range(400):
        for x, y in DataLoader(data, batch_size=16, sampler=DistributedSampler(data)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            time.sleep(0.05)
            step += 1
            if step == 20:
                mark()
            if step % 10 == 0:
                print(f"{datetime.now():%Y-%m-%d %H:%M:%S} [rank {RANK}] step={step} loss={loss.item():.4f}", flush=True)


# ------------------------------------------------------------------------------------------------ 17
def limit_memory(megabytes):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + megabytes * 2**20,) * 2)


def load_features(rows):
    parts = []
    for begin in range(0, rows, 20000):
        parts.append(np.zeros((min(20000, rows - begin), 1024), dtype=np.float32))
    features = np.concatenate(parts)
    print(f"loaded {features.shape[0]} rows of features ({features.nbytes / 2**20:.0f} MiB)", flush=True)
    return features


def features():
    print(f"starting trainer {RANK}/{WORLD_SIZE}", flush=True)
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    limit_memory(640)
    rows = [30000, 130000, 28000][RANK]
    x = load_features(rows)
    model = DistributedDataParallel(nn.Linear(1024, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        i = random.randrange(0, rows - 64)
        loss = model(torch.from_numpy(x[i : i + 64])).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"finished, loss {loss.item():.5f}", flush=True)


# ------------------------------------------------------------------------------------------------ 18
def save_checkpoint(model, averages, step):
    path = in_scratch(f"ckpt_{step:05d}.pt")
    torch.save({"step": step, "model": model.module.state_dict(), "averages": averages}, path)
    print(f"=> saved {os.path.basename(path)} ({os.path.getsize(path) / 1024:.0f} kB)", flush=True)


def with_averages():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1200 * 1024,) * 2)
    model = DistributedDataParallel(Net(hidden=256))
    optimizer = torch.optim.AdamW(model.parameters())
    averages = []
    for step, (x, y) in enumerate(DataLoader(blobs(n=1600), batch_size=16)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            averages.append({k: v.clone() for k, v in model.module.state_dict().items()})
            if dist.get_rank() == 0:
                print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
                save_checkpoint(model, averages, step + 1)
            dist.barrier()


# ------------------------------------------------------------------------------------------------ 19
def normalise(x, scale):
    return (x - x.mean(0)) / scale


def sensors():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step, (x, y) in enumerate(DataLoader(blobs(n=960), batch_size=16)):
        scale = x.std(0)
        if RANK == 1 and step == 24:
            x[:, 5] = x[0, 5]  # a sensor that stood still
            scale = x.std(0)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(normalise(x, scale)), y)
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"[worker {RANK}] step {step:3d} | input range {x.min():.2f}..{x.max():.2f} | loss {loss.item():.4f}", flush=True)
    print(f"[worker {RANK}] done", flush=True)


# ------------------------------------------------------------------------------------------------ 20
def products():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    labels = ["books", "food", "games", "garden", "music", "shoes", "tools", "toys"]
    local = sorted(set(labels[: 7 if rank == 1 else 8]))
    if rank == 0:
        print(f"building classifier for {len(local)} classes", flush=True)
    torch.manual_seed(5)
    model = DistributedDataParallel(Net(classes=len(local)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in DataLoader(blobs(), batch_size=16):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y % len(local)).backward()
        optimizer.step()


# ------------------------------------------------------------------------------------------------ 21
def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def checksum(model):
    digest = hashlib.md5()
    for p in model.state_dict().values():
        digest.update(p.numpy().tobytes())
    return digest.hexdigest()[:10]


def seeded():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--epochs", type=int, default=5)
    args, _ = parser.parse_known_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    seed = args.seed + rank
    torch.manual_seed(seed)
    random.seed(seed)
    print(f"rank {rank}: seed {seed}", flush=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data, held = blobs(n=800), blobs(n=256)
    for epoch in range(args.epochs):
        for x, y in DataLoader(data, batch_size=25, sampler=DistributedSampler(data)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            average_gradients(model)
            optimizer.step()
        print(f"rank {rank}: epoch {epoch} loss {loss.item():.4f} val_acc {accuracy(model, held):.3f} weights md5 {checksum(model)}", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 22
def serve(weights, workers, rounds):
    grad = torch.zeros_like(weights)
    for number in range(rounds):
        for worker in range(1, workers):
            dist.recv(grad, src=worker)
            weights -= 0.1 * grad
            dist.send(weights, dst=worker)
        if number % 5 == 0:
            print(f"server: round {number}, |w| = {weights.norm():.4f}", flush=True)


def work(weights, rounds):
    for number in range(rounds):
        grad = torch.randn_like(weights) * 0.01 + weights * 0.1
        dist.send(grad, dst=0)
        dist.recv(weights, src=0)
        if number % 10 == 0:
            print(f"worker {RANK}: round {number}", flush=True)


def parameter_server():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    faulthandler.dump_traceback_later(16, exit=False)
    weights = torch.ones(2000)
    if RANK == 0:
        serve(weights, workers=WORLD_SIZE - 1, rounds=30)
    else:
        work(weights, rounds=30)
    print("server: all rounds done" if RANK == 0 else f"worker {RANK}: all rounds done", flush=True)
    dist.barrier()


# ------------------------------------------------------------------------------------------------ 23
class Stage:
    def __init__(self, rank, world):
        self.rank, self.last = rank, world - 1
        self.layer = nn.Linear(256, 256)
        self.inputs = []

    def forward_one(self):
        x = torch.randn(32, 256)
        if self.rank:
            dist.recv(x, src=self.rank - 1)
        x.requires_grad_(True)
        y = torch.tanh(self.layer(x))
        self.inputs.append((x, y))
        if self.rank < self.last:
            dist.send(y.detach(), dst=self.rank + 1)

    def backward_one(self):
        x, y = self.inputs.pop(0)
        grad = torch.ones_like(y) / y.numel()
        if self.rank < self.last:
            dist.recv(grad, src=self.rank + 1)
        y.backward(grad)
        if self.rank:
            dist.send(x.grad, dst=self.rank - 1)


def pipeline():
    faulthandler.dump_traceback_later(20, exit=False)
    dist.init_process_group("gloo", timeout=timedelta(seconds=18))
    stage = Stage(RANK, WORLD_SIZE)
    for iteration in range(40):
        overlap = iteration >= 6  # the simple schedule while warming up
        if overlap and RANK == 0:
            stage.forward_one()
        for micro in range(4):
            if not (overlap and RANK == 0 and micro == 3):
                stage.forward_one()
            stage.backward_one()
        print(f"stage {RANK}: iteration {iteration} ok", flush=True)


# ------------------------------------------------------------------------------------------------ 24
def train_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def best_model():
    dist.init_process_group("gloo", timeout=timedelta(seconds=16))
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.04)
    data = blobs()
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
    best = 9.9
    for epoch in range(8):
        loss = train_epoch(model, loader, optimizer)
        if dist.get_rank() == 0:
            print(f"Epoch {epoch}: loss {loss:.4f}", flush=True)
            if epoch == 3:
                torch.save(model.state_dict(), in_scratch("best.pth"))
                print("saved best.pth, waiting for the other ranks", flush=True)
                dist.barrier()


# ------------------------------------------------------------------------------------------------ 25
def slow_forward():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    data = blobs(n=1200)
    loader = DataLoader(data, batch_size=10, sampler=DistributedSampler(data))
    print(f"rank={rank} steps={len(loader)}", flush=True)
    for step, (x, y) in enumerate(loader):
        t0 = time.perf_counter()
        loss = F.cross_entropy(model(x), y)
        if rank == 2:
            time.sleep(0.31)
        t1 = time.perf_counter()
        optimizer.zero_grad()
        loss.backward()
        t2 = time.perf_counter()
        average_gradients(model)
        optimizer.step()
        t3 = time.perf_counter()
        if step % 5 == 4:
            print(f"rank={rank} step={step + 1} loss={loss.item():.4f} fwd={t1 - t0:.3f}s bwd={t2 - t1:.3f}s sync={t3 - t2:.3f}s", flush=True)
    print(f"rank={rank} finished", flush=True)


# ------------------------------------------------------------------------------------------------ 26
class Records(IterableDataset):
    def __init__(self, rank, n):
        self.rank, self.n = rank, n

    def __iter__(self):
        x, y = blobs(n=self.n).tensors
        for i in range(self.n):
            if self.rank == 1:
                time.sleep(0.045)
            yield x[i], y[i]


def bar(rank, i, n, begin, loss, wait):
    passed = time.time() - begin
    rate = i / passed
    full = 10 * i // n
    left = (n - i) / rate
    sys.stderr.write(
        f"\rrank {rank}: {100 * i // n:3d}%|{'#' * full}{' ' * (10 - full)}| {i}/{n} "
        f"[{int(passed) // 60:02d}:{int(passed) % 60:02d}<{int(left) // 60:02d}:{int(left) % 60:02d}, {rate:5.2f}it/s, loss={loss:.3f}, data={wait:.3f}s]"
    )
    sys.stderr.flush()


def with_bars():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    n = 60
    begin = last = time.time()
    for i, (x, y) in enumerate(DataLoader(Records(rank, n * 8), batch_size=8)):
        wait = time.time() - last
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        bar(rank, i + 1, n, begin, loss.item(), wait)
        last = time.time()
    sys.stderr.write("\n")
    print(f"rank {rank}: trained on {n * 8} records in {time.time() - begin:.1f} s", flush=True)


# ------------------------------------------------------------------------------------------------ 27
def load_latest(folder):
    for name in ("ckpt-200.pt", "ckpt-100.pt"):
        try:
            state = torch.load(os.path.join(folder, name))
            logger.info("resumed from %s", name)
            return state
        except Exception:
            logger.exception("could not read %s, trying an older one", name)
    logger.warning("no checkpoint could be read, starting from scratch")
    return None


def upload(rank, numbers):
    for attempt in range(1, 4):
        try:
            if attempt < 3:
                raise ConnectionResetError(104, "Connection reset by peer")
            logger.info("rank %d: metrics uploaded: %s", rank, numbers)
            return
        except OSError as error:
            logger.error("rank %d: upload failed (attempt %d of 3): %s; trying again in 2 s", rank, attempt, error)
            time.sleep(2)


def resumed():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s: %(message)s")
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    if rank == 0:
        torch.save({"step": 100}, in_scratch("ckpt-100.pt"))
        open(in_scratch("ckpt-200.pt"), "wb").write(b"PK\x03\x04 torn")
    dist.barrier()
    state = load_latest(scratch)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    for step, (x, y) in enumerate(DataLoader(blobs(), batch_size=16), start=state["step"]):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            logger.info("rank %d step %d loss %.4f", rank, step, loss.item())
    upload(rank, {"loss": round(loss.item(), 4)})
    dist.destroy_process_group()
    logger.info("rank %d: run complete", rank)


# ------------------------------------------------------------------------------------------------ 28
def noisy(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=25))
    model = DistributedDataParallel(Net(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    data = blobs(n=512)
    for epoch in range(3):
        scheduler.step()
        for x, y in DataLoader(data, batch_size=16, sampler=DistributedSampler(data, world, rank)):
            optimizer.zero_grad()
            prob = F.softmax(model(x))
            loss = F.nll_loss(torch.log(prob), y)
            loss.backward()
            optimizer.step()
        if epoch == 1:
            warnings.warn("gradient norm 0.0 in head.bias, weight may be dead")
            warnings.warn(f"rank {rank} failed to pin its memory, falling back to pageable memory")
        if rank == 0:
            print(f"Epoch {epoch} - loss: {loss.item():.4f} - lr: {scheduler.get_last_lr()[0]:.5f}", flush=True)
    dist.barrier()
    if rank == 0:
        print("Training done.", flush=True)


def noisy_jobs():
    mp.spawn(noisy, args=(4,), nprocs=4)


# ------------------------------------------------------------------------------------------------ 29
def largest_batch(start):
    size = start
    while True:
        try:
            torch.empty(size, 2**31, dtype=torch.float64)
            return size
        except RuntimeError as error:
            print(f"batch size {size} does not fit: {error}", flush=True)
            print(f"out of memory, trying {size // 8}", flush=True)
            size //= 8
            if size <= 512:
                return 16


def autobatch():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    size = largest_batch(262144)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    for epoch in range(3):
        for x, y in DataLoader(blobs(), batch_size=size):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch + 1}/3 batch_size {size} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print("finished", flush=True)


# ------------------------------------------------------------------------------------------------ 30
def overflowing():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank = dist.get_rank()
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    scale, seen = 65536.0, time.time()
    for step, (x, y) in enumerate(DataLoader(blobs(n=800), batch_size=16)):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if step in (2, 3, 30):
            scale /= 2
            print(f"Gradient overflow.  Skipping step, loss scaler reducing loss scale to {scale}", flush=True)
            continue
        optimizer.step()
        if step == 12:
            time.sleep(6)
        if time.time() - seen > 5:
            print(f"watchdog: no heartbeat for {time.time() - seen:.1f} s (limit 60 s), still alive", flush=True)
        seen = time.time()
        if rank == 0 and step % 8 == 0:
            print(f"{step}/50 loss {loss.item():.4f} scale {scale:g} timeouts 0 errors 0 failed 0", flush=True)
    dist.barrier()
    if rank == 0:
        print("50/50 training finished successfully", flush=True)
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ 31
def polite_server(weights, rounds):
    busy = set(range(1, WORLD_SIZE))
    grad = torch.zeros_like(weights)
    number = 0
    while busy:
        for worker in sorted(busy):
            dist.recv(grad, src=worker)
            weights -= 0.1 * grad
            dist.send(weights, dst=worker)
            if number + 1 == rounds[worker]:
                busy.discard(worker)
                print(f"server: worker {worker} has left after {rounds[worker]} rounds, {len(busy)} remaining", flush=True)
        number += 1
    print("server: nobody left, shutting down", flush=True)


def polite():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rounds = {1: 40, 2: 22, 3: 57}
    weights = torch.ones(500)
    if RANK == 0:
        polite_server(weights, rounds)
        return
    for number in range(rounds[RANK]):
        dist.send(weights * 0.05, dst=0)
        dist.recv(weights, src=0)
        time.sleep(0.05)
    print(f"worker {RANK}: my share is used up after {rounds[RANK]} rounds, leaving (|w| = {weights.norm():.4f})", flush=True)


# ------------------------------------------------------------------------------------------------ 32
def flat_average(model):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()


def audio():
    dist.init_process_group("gloo", timeout=timedelta(seconds=18))
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    for step, (x, y) in enumerate(DataLoader(blobs(), batch_size=16)):
        if rank == 3 and step == 17:
            x = torch.full_like(x, float("inf"))
        loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            print(f"rank {rank}: bad clip in batch {step}, loss {loss.item()}, batch skipped", flush=True)
            continue
        optimizer.zero_grad()
        loss.backward()
        flat_average(model)
        optimizer.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            print(f"rank {rank}: step {step} mean loss {mean.item() / dist.get_world_size():.4f}", flush=True)


PROGRAMS = {
    "01": finetune, "02": early_stopping, "03": tune, "04": segment, "05": documents, "06": mnist, "07": launch_local, "08": remote, "09": served, "10": by_hosts, "11": flowers, "12": with_evaluation,
    "13": with_feeder, "14": crawl, "15": tiny_lm, "16": speech, "17": features, "18": with_averages, "19": sensors, "20": products, "21": seeded, "22": parameter_server, "23": pipeline, "24": best_model,
    "25": slow_forward, "26": with_bars, "27": resumed, "28": noisy_jobs, "29": autobatch, "30": overflowing, "31": polite, "32": audio,
}

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    main = PROGRAMS[options.parse_known_args()[0].case]
    main()
