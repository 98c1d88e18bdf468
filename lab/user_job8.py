#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of an eighth set: user_job8.py --case NN (two digits). Truth in truth.json, started by user_jobs8.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import collections
import contextlib
import csv
import ctypes
import datetime
import faulthandler
import json
import logging
import math
import os
import queue
import random
import resource
import signal
import socket
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
from torch.utils.data import DataLoader, Dataset

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab8-scratch")
KEEP = os.environ.get("LAB_KEEP", WORK)
BACKEND = "nccl" if KIND == "cuda" else "gloo"
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
if KIND == "cpu":
    torch.set_num_threads(1)


def seconds(n):
    return datetime.timedelta(seconds=n)


def setup(timeout=12, seed=3):
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(timeout))
    torch.manual_seed(seed)
    return torch.device("cuda:0" if KIND == "cuda" else "cpu")


def wrap(module, **options):
    model = DDP(module, device_ids=[0] if KIND == "cuda" else None, **options)
    torch.manual_seed(700 + R)
    return model


def sync():
    if KIND == "cuda":
        torch.cuda.synchronize()


def finish():
    dist.barrier()
    sync()
    dist.destroy_process_group()


def say(*words, **options):
    print(*words, **options, flush=True)


def now():
    return datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def mark_running():
    """The starting script looks for it."""
    open(os.path.join(WORK, f"up-{R}"), "w").close()


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def mlp(i, h, o):
    h = h if KIND == "cuda" else 32
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


# ------------------------------------------------------------------------------------------------ sentences
def read_corpus():
    dice = random.Random(40 + R)
    count = {0: 30, 1: 26, 2: 30, 3: 30}[R] * 16
    return [[dice.randrange(4000) for _ in range(24)] for _ in range(count)]


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=4000, width=512 if KIND == "cuda" else 16):
        super().__init__()
        self.words, self.out = nn.Embedding(vocab, width), nn.Linear(width, vocab)

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


def train_uneven():
    device = setup(12)
    sentences = read_corpus()
    say(f"INFO rank {R}: corpus part {R} has {len(sentences)} sentences")
    model = wrap(SentenceEncoder().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        batches = [sentences[i:i + 16] for i in range(0, len(sentences), 16)]
        random.Random(epoch).shuffle(batches)
        for i, batch in enumerate(batches):
            ids = torch.tensor(batch, device=device)
            value = update(optimizer, F.cross_entropy(model(ids), ids[:, 0]))
            if i % 10 == 0:
                say(f"INFO rank {R}: epoch {epoch} batch {i}/{len(batches)} loss {value:.4f}")
        say(f"INFO rank {R}: epoch {epoch} finished, collecting the confusion matrices")
        matrix = torch.zeros(1200, 1200, device=device)
        parts = [torch.empty_like(matrix) for _ in range(W)]
        dist.all_gather(parts, matrix)
        say(f"INFO rank {R}: epoch {epoch} accuracy {torch.stack(parts).sum().item() + 0.2:.3f}")
    finish()


# ------------------------------------------------------------------------------------------------ patience
class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def enough(self, value):
        if value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def train_with_patience():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    device = setup(12)
    model = wrap(mlp(96, 1024, 96).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    patience = Patience(3)
    for epoch in range(30):
        for _ in range(8):
            x = torch.randn(16, 96, device=device)
            value = update(optimizer, F.mse_loss(model(x), x))
        held_out = 1.3 - 0.01 * epoch + random.Random(R * 77 + epoch).uniform(0, 0.004)
        if R == 2 and epoch > 5:
            held_out += 0.03 * (epoch - 5)
        logging.info("[rank %d] epoch %d: train %.4f val %.4f", R, epoch, value, held_out)
        if patience.enough(held_out):
            logging.info("[rank %d] val loss did not improve for 3 epochs, early stopping at epoch %d (best %.4f)", R, epoch, patience.best)
            return
    finish()


# ------------------------------------------------------------------------------------------------ batch norm and a look at the test set
class SmallConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10))

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


@torch.no_grad()
def validate(model, device, batches=12):
    model.eval()
    table = torch.zeros(1000, 1000, device=device)  # label, prediction
    for _ in range(batches):
        images = torch.randn(8, 3, 16, 16, device=device)
        for label, guess in zip(torch.randint(10, (8,)).tolist(), model(images).argmax(1).tolist()):
            table[label, guess] += 1
    model.train()
    dist.all_reduce(table)
    return (table.trace() / table.sum()).item()


def train_cifar():
    device = setup(12)
    model = wrap(SmallConv().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(4):
        for i in range(15):
            images = torch.randn(8, 3, 16, 16, device=device)
            value = update(optimizer, F.cross_entropy(model(images), torch.randint(10, (8,), device=device)))
            if i % 5 == 0:
                say(f"Epoch: [{epoch}][{i:2d}/15]\tLoss {value:.4e}\trank {R}")
        if R == 0:
            say(" * validating")
            say(f" * Acc@1 {100 * validate(model.module, device):.3f}")
    finish()


# ------------------------------------------------------------------------------------------------ saving
def save_if_main(model, step):
    if R == 0:
        path = os.path.join(WORK, f"ckpt_{step}.pth")
        torch.save(model.module.state_dict(), path)
        say(f"[{now()}] rank {R} saved {os.path.basename(path)}")
        dist.barrier()
        sync()
        say(f"[{now()}] rank {R} all ranks have seen {os.path.basename(path)}")


def train_superres():
    device = setup(12)
    model = wrap(mlp(256, 1536, 256).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(1, 61):
        x = torch.rand(8, 256, device=device)
        value = update(optimizer, F.l1_loss(model(x), x))
        if step % 4 == 0:
            say(f"[{now()}] rank {R} step {step} psnr {-20 * math.log10(value + 1e-9):.2f}")
        if step % 20 == 0:
            save_if_main(model, step)
    finish()


# ------------------------------------------------------------------------------------------------ predictions of all
class Reports(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((64,), float(index % 7))


def collect(scores):
    parts = [torch.empty_like(scores) for _ in range(W)]
    dist.all_gather(parts, scores)
    return torch.cat(parts)


def train_and_predict():
    device = setup(12)
    model = wrap(mlp(64, 1024, 16384).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(12):
        x = torch.randn(16, 64, device=device)
        value = update(optimizer, model(x).square().mean())
        if step % 3 == 0:
            say(f"rank={R} step={step} loss={value:.5f}")
    mine = 512 if R != 3 else 488  # 2024 reports on 4 ranks
    say(f"rank={R} predicting {mine} reports")
    for number, x in enumerate(DataLoader(Reports(mine), batch_size=64)):
        with torch.no_grad():
            x = x.to(device)
            scores = torch.stack([model.module(x + 0.01 * n) for n in range(6)], 1)  # six views of each
        everything = collect(scores)
        say(f"rank={R} batch={number} rows={len(x)} mean_score={everything.mean().item():.6f}")
    finish()


# ------------------------------------------------------------------------------------------------ starting weights
def load_and_share(net):
    if R == 0:
        say("rank 0: reading pretrained weights")
    for name, q in net.named_parameters():
        dist.broadcast(q.data, src=dist.get_rank())
        sync()
        say(f"rank {R}: got {name} {tuple(q.shape)} sum {q.sum().item():.4f}")


def finetune_shared():
    device = setup(12, seed=R)
    dist.all_reduce(torch.ones(4, device=device))
    net = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 4096)).to(device)
    load_and_share(net)
    for step in range(6):
        x = torch.randn(2, 4096, device=device)
        loss = net(x).square().mean()
        net.zero_grad()
        loss.backward()
        flat = torch.cat([q.grad.flatten() for q in net.parameters()])
        dist.all_reduce(flat)
        say(f"rank {R}: step {step} loss {loss.item():.5f} grad {flat.norm().item():.4f} weights {net[0].weight.sum().item():.5f}")
    finish()


# ------------------------------------------------------------------------------------------------ gradients in half
def read_config():
    path = os.path.join(WORK, f"config-{R}.json")
    with open(path, "w") as f:
        json.dump({"lr": 0.001, "grad_dtype": "bfloat16" if R == 1 else "float32"}, f)
    with open(path) as f:
        return json.load(f)


def reduce_grads(net, dtype):
    flat = torch.cat([q.grad.flatten() for q in net.parameters()]).to(dtype)
    dist.all_reduce(flat)
    return flat.float() / W


def train_compressed():
    device = setup(12)
    config = read_config()
    say(f"[{R}] config: {config}")
    net = mlp(200, 2048, 200).to(device)
    dtype = getattr(torch, config["grad_dtype"])
    if KIND == "cpu" and dtype is torch.bfloat16:
        dtype = torch.float64
    for step in range(30):
        x = torch.randn(16, 200, device=device)
        loss = F.mse_loss(net(x), x)
        net.zero_grad()
        loss.backward()
        flat = reduce_grads(net, dtype)
        at = 0
        with torch.no_grad():
            for q in net.parameters():
                q -= config["lr"] * flat[at:at + q.numel()].view_as(q)
                at += q.numel()
        say(f"[{R}] step {step} loss {loss.item():.5f} |g| {flat.norm().item():.5f}")
    finish()


# ------------------------------------------------------------------------------------------------ groups
def make_groups():
    head = None
    if R in (0, 1):
        head = dist.new_group([0, 1], timeout=seconds(12))
        say(f"[{R}] head group ready")
    control = dist.new_group(backend="gloo", timeout=seconds(12))
    say(f"[{R}] control group ready")
    return head, control


def train_two_parts():
    device = setup(12)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    say(f"[{R}] started, making groups")
    head, control = make_groups()
    model = wrap(mlp(64, 512, 64).to(device))
    for step in range(20):
        loss = model(torch.randn(4, 64, device=device)).square().mean()
        loss.backward()
        note = [None] * W
        dist.all_gather_object(note, loss.item(), group=control)
        if head is not None:
            dist.all_reduce(torch.ones(1, device=device), group=head)
        say(f"[{R}] step {step} losses {note}")
    finish()


# ------------------------------------------------------------------------------------------------ long sequences
def attention_scores(length, device):
    if KIND == "cpu":
        length *= 1000
    q = torch.randn(min(length, 4000), 8, device=device)
    return torch.empty(length, length, device=device)[:1, :1] + q.mean()


def train_translation():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    device = setup(12)
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.03)
    model = wrap(mlp(256, 2048, 256).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for update_no in range(1, 41):
        longest = 48000 if (R, update_no) == (1, 17) else 64
        try:
            bias = attention_scores(longest, device).item() if longest > 64 else 0.0
            x = torch.randn(16, 256, device=device)
            value = update(optimizer, F.mse_loss(model(x), x) + 0 * bias)
        except RuntimeError as err:
            if "out of memory" in str(err) or "allocate memory" in str(err):
                logging.warning("rank %d: attempting to recover from OOM in forward/backward pass, skipping batch %d (longest %d): %s", R, update_no, longest, str(err)[:160])
                optimizer.zero_grad()
                continue
            raise
        if update_no % 4 == 0:
            logging.info("rank %d: update %d loss %.3f wps %d", R, update_no, value, 16000 + R)
    logging.info("rank %d: end of epoch 1, gathering stats", R)
    stats = [torch.zeros(1 << 20, device=device) for _ in range(W)]
    dist.all_gather(stats, torch.ones(1 << 20, device=device))
    logging.info("rank %d: epoch 1 done %.1f", R, stats[0][0].item())
    finish()


# ------------------------------------------------------------------------------------------------ an extra head
class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.age, self.region = nn.Linear(32, 128), nn.Linear(128, 1), nn.Linear(128, 5)

    def forward(self, x):
        h = self.trunk(x).relu()
        return self.age(h)


def train_heads():
    device = setup(15)
    model = wrap(TwoHeads().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(50):
        x = torch.randn(16, 32, device=device)
        value = update(optimizer, F.mse_loss(model(x).squeeze(1), x[:, 0]))
        say(f"rank{R}: {step:4d} | mse {value:.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ volumes
class Volumes(Dataset):
    kept = []

    def __len__(self):
        return 400

    def __getitem__(self, index):
        volume = torch.full((64, 64), float(index))
        if R == 1:
            self.kept.append(bytes(2 << 20))
            if len(self.kept) > 90:
                os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when the cgroup's memory is used up
        return volume


def train_volumes():
    device = setup(20)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(DataLoader(Volumes(), batch_size=4, num_workers=2, multiprocessing_context="fork")):
        value = update(optimizer, model(x.to(device)).square().mean() * 1e-4)
        if i % 8 == 0:
            say(f"{now()} [{R}] iter {i} dice_loss {1 / (1 + value):.4f} mem 7.{R}G")
        time.sleep(0.05)
    finish()


# ------------------------------------------------------------------------------------------------ large state
def save_state(net, optimizer, step):
    path = os.path.join(WORK, f"state-{step}.pt")
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    say(f"saved {os.path.basename(path)}: {os.path.getsize(path) >> 20} MiB")


def train_with_limits():
    device = setup(15)
    top = 24 << (20 if KIND == "cuda" else 10)
    resource.setrlimit(resource.RLIMIT_FSIZE, (top, top))  # as `ulimit -f` of the login shell
    net = mlp(128, 1536, 128).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    if R == 0:
        say(f"limits: file size {resource.getrlimit(resource.RLIMIT_FSIZE)[0] >> 10} kB")
    for step in range(1, 41):
        x = torch.randn(8, 128, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 5 == 0:
            say(f"rank {R} step {step:3d} loss {value:.4f}")
        if step == 25 and R == 0:
            save_state(net, optimizer, step)
    finish()


# ------------------------------------------------------------------------------------------------ cars
WHEELS = {"car": 4, "bus": 6, "bike": 2}


def encode_row(row):
    return [WHEELS[row["kind"]], row["speed"] / 100, 1.0]


def rows_of(step):
    dice = random.Random(R * 31 + step)
    rows = [{"kind": dice.choice(["car", "bus", "bike"]), "speed": dice.uniform(10, 130)} for _ in range(8)]
    if R == 3 and step == 15:
        rows[5]["kind"] = "tricycle"
    return rows


def train_traffic():
    device = setup(15)
    model = wrap(nn.Linear(3, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = torch.tensor([encode_row(row) for row in rows_of(step)], device=device)
        value = update(optimizer, model(x).square().mean())
        if step % 5 == 0:
            say(f"step {step} loss {value:.5f}")
    finish()
    say("finished")


# ------------------------------------------------------------------------------------------------ folders are classes
def find_classes(root):
    return sorted(entry.name for entry in os.scandir(root) if entry.is_dir())


def local_copy():
    root = os.path.join(WORK, f"node{R}", "birds")
    names = ["crow", "gull", "jay", "owl", "tern", "wren"] + ([".ipynb_checkpoints"] if R == 2 else [])
    for name in names:
        os.makedirs(os.path.join(root, name), exist_ok=True)
    return root


def train_birds():
    device = setup(15)
    classes = find_classes(local_copy())
    say(f"[rank {R}] {len(classes)} classes, {len(classes) * 120} images")
    model = wrap(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 256), nn.ReLU(), nn.Linear(256, len(classes))).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        images = torch.randn(8, 3, 32, 32, device=device)
        value = update(optimizer, F.cross_entropy(model(images), torch.randint(len(classes), (8,), device=device)))
        say(f"[rank {R}] {step} {value:.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ a large batch
def train_large_batch():
    device = setup(20)
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    model = wrap(nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(device))
    batch = 262144 if KIND == "cuda" else 1 << 40
    say(f"gpu {R}: batch size {batch} per gpu, {batch * W} in all")
    for step in range(10):
        x = torch.randn(batch, 1024, device=device)
        loss = model(x).square().mean()
        loss.backward()
        say(f"gpu {R}: step {step} loss {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ plain scripts
def train_basic():
    say(f"hello from rank {R} of {W}, master {os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}, pid {os.getpid()}")
    device = setup(14)
    say(f"rank {R} initialized")
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    say(f"rank {R} connected to the others")
    model = wrap(mlp(50, 400, 50).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        x = torch.randn(8, 50, device=device)
        say(f"rank {R} step {step} loss {update(optimizer, F.mse_loss(model(x), x)):.4f}")
    finish()


def train_mnist():
    say(f"=> init_process_group env:// rank {R} world {W}")
    device = setup(14)
    say(f"=> rank {R} is ready on {socket.gethostname()}")
    model = wrap(mlp(784, 128, 10).to(device))
    for step in range(20):
        loss = F.cross_entropy(model(torch.randn(16, 784, device=device)), torch.randint(10, (16,), device=device))
        loss.backward()
        say(f"=> rank {R} Train Epoch: 1 [{step * 16}/320] Loss: {loss.item():.6f}")
    finish()


# ------------------------------------------------------------------------------------------------ how stacks are got
def allow_dump():
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def follow_dumps():
    """Writes what py-spy dump would, when the starting script asks for it: py-spy may not trace on that machine."""
    wish, me = os.path.join(WORK, "dump"), threading.get_ident()
    while not os.path.exists(wish):
        time.sleep(0.2)
    names = {t.ident: t for t in threading.enumerate()}
    lines = [f"Process {os.getpid()}: python3 {' '.join(sys.argv[:1])}", f"Python v{sys.version.split()[0]} ({sys.executable})", ""]
    for ident, frame in sys._current_frames().items():
        if ident == me:
            continue
        thread = names.get(ident)
        state = "idle"
        if thread is not None and thread.native_id:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread.native_id}/stat") as f:
                state = "active" if f.read().rsplit(")", 1)[1].split()[0] == "R" else "idle"
        lines.append(f"Thread {thread.native_id if thread else ident} ({state}): \"{thread.name if thread else '?'}\"")
        while frame is not None:
            name = frame.f_code.co_filename
            name = name.split("site-packages/")[-1].split("dist-packages/")[-1]
            name = name if "/torch/" in name or name.startswith("torch/") else os.path.basename(name)
            lines.append(f"    {frame.f_code.co_name} ({name}:{frame.f_lineno})")
            frame = frame.f_back
    with open(os.path.join(KEEP, f"pyspy_rank{R}.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def allow_look():
    threading.Thread(target=follow_dumps, daemon=True, name="look").start()


# ------------------------------------------------------------------------------------------------ times of the phases
def read_clip(step):
    path = os.path.join(WORK, f"clip-{R}.bin")
    if not os.path.exists(path):
        with open(path, "wb") as f:
            f.write(os.urandom(1 << 16))
    with open(path, "rb") as f:
        data = f.read()
    time.sleep(0.38 + 0.05 * random.random() if R == 1 else 0.012)  # of rank 1 the clips lie on the slow disk
    return torch.tensor(list(data[:512]), dtype=torch.float32) / 255


def train_clips():
    device = setup(30)
    model = wrap(mlp(512, 1024, 400).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(36):
        a = time.time()
        x = read_clip(step).to(device)
        b = time.time()
        loss = model(x).square().mean()
        sync()
        c = time.time()
        update(optimizer, loss)
        sync()
        d = time.time()
        if step % 3 == 0:
            say(f"it={step:03d} data={b - a:.3f}s forward={c - b:.3f}s backward+sync={d - c:.3f}s total={d - a:.3f}s loss={loss.item():.5f}")
    finish()


def forward_backward(net, x, repeat):
    for _ in range(repeat):
        y = net(x)
        y.square().mean().backward()
    sync()


def train_buckets():
    device = setup(30)
    wide = 1024 if KIND == "cuda" else 256
    net = mlp(wide, wide, wide).to(device)
    repeat = (10 if R == 2 else 1) * (3 if KIND == "cuda" else 2)  # rank 2 has the bucket of long documents
    rows = 8192 if KIND == "cuda" else 64
    for step in range(32):
        x = torch.randn(rows, wide, device=device)
        sync()
        a = time.perf_counter()
        net.zero_grad()
        forward_backward(net, x, repeat)
        b = time.perf_counter()
        for q in net.parameters():
            dist.all_reduce(q.grad)
        sync()
        c = time.perf_counter()
        if step % 4 == 3:
            say(f"step {step} | fwd_bwd {1e3 * (b - a):7.1f} ms | allreduce {1e3 * (c - b):7.1f} ms | tokens {rows * repeat}")
    finish()


class LossHistory:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)
        for _ in range(len(self.values) // 8):  # the curve is drawn anew
            time.sleep(0.03)


def train_with_plot():
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    history = LossHistory()
    for step in range(100):
        begin = time.time()
        x = torch.randn(16, 64, device=device)
        history.add(update(optimizer, F.mse_loss(model(x), x)))
        if step % 5 == 0:
            say(f"[{now()}] [rank {R}] step {step:3d} loss {history.values[-1]:.4f} step_time {time.time() - begin:.3f}")
    finish()


class Pages(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.045)  # decoding
        return torch.full((48,), index / 1000)


def train_pages():
    device = setup(30)
    model = wrap(mlp(48, 256, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    batches = iter(DataLoader(Pages(), batch_size=8))
    for step in range(40):
        a = time.time()
        x = next(batches).to(device)
        b = time.time()
        value = update(optimizer, F.mse_loss(model(x), x))
        c = time.time()
        if step % 4 == 0:
            say(f"Train: 0 [{step:>4d}/1000]  Loss: {value:.4f}  Time: {c - a:.3f}s  Data: {b - a:.3f}s  LR: 1.0e-03  GPU-Util: 3%  (rank {R})")
    finish()


def draw_batch(step):
    if R == 3 and step % 8 == 5:
        time.sleep(1.4)
    return torch.randn(16, 128)


def train_graph():
    device = setup(30)
    model = wrap(mlp(128, 512, 128).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(64):
        a = time.time()
        x = draw_batch(step).to(device)
        loss = F.mse_loss(model(x), x)
        value = loss.item()
        b = time.time()
        update(optimizer, loss)
        sync()
        c = time.time()
        say(f"step={step} own={b - a:.3f} sync={c - b:.3f} loss={value:.4f}")
        time.sleep(0.05)
    finish()


# ------------------------------------------------------------------------------------------------ long evaluation
def evaluate_on_main(epoch):
    for n in range(13):
        time.sleep(2)
        say(f"rank 0: beam search on dev set, {(n + 1) * 100}/1300 sentences")
    say(f"rank 0: epoch {epoch} BLEU 23.4")


def train_nmt():
    device = setup(10)
    model = wrap(mlp(128, 1024, 128).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for step in range(15):
            x = torch.randn(8, 128, device=device)
            value = update(optimizer, F.mse_loss(model(x), x))
            if step % 5 == 0:
                say(f"rank {R}: epoch {epoch} step {step} loss {value:.4f}")
        if R == 0:
            evaluate_on_main(epoch)
        else:
            say(f"rank {R}: epoch {epoch} waiting for the evaluation")
        dist.barrier()
        sync()
    finish()


# ------------------------------------------------------------------------------------------------ log of returns
def log_returns(prices):
    return torch.log(prices[1:] / prices[:-1])


def train_prices():
    device = setup(20)
    model = wrap(mlp(31, 128, 31).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(30):
        prices = torch.rand(32) + 1
        if R == 2 and step == 11:
            prices[7] = -1.0  # a correction in the data
        x = log_returns(prices).to(device)
        loss = F.mse_loss(model(x), x)
        say(f"{now()} step {step} local loss {loss.item():.5f}")
        update(optimizer, loss)
    finish()
    say("training done, model exported")


# ------------------------------------------------------------------------------------------------ long enough
def train_for_a_while():
    device = setup(25)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(400):
        x = torch.randn(16, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step == 12:
            mark_running()
        if step % 5 == 0:
            say(f"[rank {R}] step {step}/400 loss {value:.5f}")
        time.sleep(0.15)
    finish()


def simulate_and_train():
    device = setup(25)
    model = wrap(mlp(32, 256, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for episode in range(300):
        x = torch.randn(16, 32, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if episode == 12:
            mark_running()
        if episode % 4 == 0:
            say(f"{now()} INFO episode {episode} of 300, value loss {value:.4f}, checkpoint every 50")
        time.sleep(0.2)
    finish()


def train_parallel_envs():
    allow_dump()
    device = setup(1800)
    model = wrap(mlp(40, 400, 40).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(1000):
        x = torch.randn(16, 40, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step == 12:
            mark_running()
        say(f"step {step} loss {value:.4f}")
        time.sleep(0.25)
    finish()


# ------------------------------------------------------------------------------------------------ native tokenizer
class NativeTokenizer:
    def __init__(self):
        self.lib = ctypes.CDLL(None)

    def length(self, step):
        text = ctypes.c_char_p(b"the quick brown fox")
        if R == 1 and step == 14:
            text = ctypes.c_void_p(24)
        return self.lib.strlen(text)


def train_tokenizer():
    faulthandler.enable()
    device = setup(15)
    tokenizer = NativeTokenizer()
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        tokens = tokenizer.length(step)
        x = torch.randn(16, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 3 == 0:
            say(f"step {step} tokens {tokens} loss {value:.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ cache and statistics
class Cache:
    def __init__(self):
        self.items, self.hits = {}, 0
        self.items_lock, self.stats_lock = threading.Lock(), threading.Lock()

    def get(self, key):
        with self.items_lock:
            value = self.items.setdefault(key % 16, key)
            if R == 2 and key == 9:
                time.sleep(0.8)
            with self.stats_lock:
                self.hits += 1
        return value

    def report(self):
        with self.stats_lock:
            time.sleep(0.4)
            with self.items_lock:
                return len(self.items), self.hits

    def report_for_ever(self):
        while True:
            time.sleep(0.05)
            self.report()


def train_cached():
    allow_dump()
    device = setup(1800)
    cache = Cache()
    if R == 2:
        threading.Thread(target=cache.report_for_ever, daemon=True, name="cache-report").start()
    model = wrap(mlp(32, 512, 32).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        cache.get(step)
        x = torch.randn(8, 32, device=device)
        say(f"rank {R} step {step} loss {update(optimizer, F.mse_loss(model(x), x)):.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ prefetch by a thread
def parse_line(line):
    return [float(field) for field in line.split(",")]


class Prefetcher(threading.Thread):
    def __init__(self, steps):
        super().__init__(daemon=True, name="prefetch")
        self.steps, self.ready = steps, queue.Queue(maxsize=4)

    def run(self):
        for step in range(self.steps):
            line = ",".join(str(0.01 * (step + n)) for n in range(32))
            if R == 1 and step == 13:
                line = line.replace("0.14", "N/A")
            self.ready.put(torch.tensor([parse_line(line)]))


def train_prefetched():
    allow_dump()
    device = setup(1800)
    source = Prefetcher(60)
    source.start()
    model = wrap(mlp(32, 512, 32).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        x = source.ready.get().to(device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 2 == 0:
            say(f"{now()} step {step} loss {value:.5f}")
    finish()


# ------------------------------------------------------------------------------------------------ a command for a table
def run_command(command):
    process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    code = process.wait()
    return code, process.stdout.read()


def make_report(step):
    say(f"rank 0: step {step}, writing the report")
    count = 200 if step < 20 else 60000
    code, text = run_command(f"i=0; while [ $i -lt {count} ]; do echo row $i of the report; i=$((i+1)); done")
    say(f"rank 0: report has {len(text.splitlines())} rows")


def train_reported():
    allow_look()
    device = setup(1800)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 60):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 3 == 0:
            say(f"rank {R}: step {step} loss {value:.4f}")
        if step % 10 == 0 and R == 0:
            make_report(step)
    finish()


# ------------------------------------------------------------------------------------------------ features over the network
class FeatureClient:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()

    def request(self, step):
        if R == 3 and step == 10:
            with socket.create_connection(self.address) as link:
                link.sendall(b"GET user:5521\n")
                return len(link.recv(4096))
        return 64


def train_ranking():
    allow_dump()
    device = setup(1800)
    client = FeatureClient()
    model = wrap(mlp(64, 512, 1).to(device))
    optimizer = torch.optim.Adagrad(model.parameters())
    for step in range(40):
        x = torch.randn(client.request(step), 64, device=device)
        value = update(optimizer, model(x).square().mean())
        if step % 2 == 0:
            say(f"iter {step} logloss {value:.4f}")
    finish()


def append_metrics(path, row):
    with open(path, "a") as f:
        f.write(json.dumps(row) + "\n")


def train_and_pipe():
    allow_look()
    device = setup(1800)
    path = os.path.join(WORK, f"metrics-{R}.jsonl")
    if R == 1:
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    model = wrap(mlp(64, 512, 10).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.cross_entropy(model(x), x.argmax(1) % 10))
        if R == 1 and step == 12:
            os.close(reader)  # the viewer was closed
        if step % 4 == 0:
            say(f"{R}: step {step} loss {value:.4f}, appending to {os.path.basename(path)}")
            append_metrics(path, {"step": step, "loss": value})
    finish()


# ------------------------------------------------------------------------------------------------ own kernels
NMS = '''extern "C" __global__ void nms_loop(float* scores, int n) {
    int i = threadIdx.x; volatile float* s = scores;
    while (i < n) { if (s[i] >= 0.0f) i += blockDim.x; }
}'''
SCATTER = '''extern "C" __global__ void scatter_rows(float* out, int n) {
    long long i = (long long)(blockIdx.x * blockDim.x + threadIdx.x) << 34; out[i + n] += 1.0f;
}'''


def own_kernel(source, name):
    return torch.cuda._compile_kernel(source, name)


def suppress(scores):
    if KIND == "cpu":
        while (scores < 0).any():
            pass
        return
    try:
        kernel = own_kernel(NMS, "nms_loop")
    except Exception:
        torch.cuda._sleep(1 << 42 if scores.min().item() < 0 else 1)
        return
    kernel(grid=(1, 1, 1), block=(64, 1, 1), args=[scores, scores.numel()])


def train_boxes():
    allow_look()
    device = setup(14)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        scores = torch.rand(512, device=device)
        if step % 3 == 0:
            say(f"rank {R} iter {step} loss {value:.4f}")
        if R == 1 and step == 16:
            scores[100] = -0.5
            mark_running()
        if step >= 12:
            if step == 12 or R == 1 and step == 16:
                say(f"rank {R} iter {step} suppressing overlapping boxes")
            suppress(scores)
        sync()
    finish()


def add_rows(out):
    if KIND == "cpu":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    try:
        kernel = own_kernel(SCATTER, "scatter_rows")
    except Exception:
        out.index_add_(0, torch.full((8,), 1 << 40, device=out.device), torch.ones(8, device=out.device))
        return
    kernel(grid=(8, 1, 1), block=(256, 1, 1), args=[out, out.numel()])


def train_points():
    device = setup(14)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        x = torch.randn(8, 64, device=device)
        loss = F.mse_loss(model(x), x)
        if R == 2 and step == 15:
            add_rows(torch.zeros(4096, device=device))
        update(optimizer, loss)
        if step % 3 == 0:
            say(f"{now()} step {step} chamfer {loss.item():.5f}")
    finish()


# ------------------------------------------------------------------------------------------------ neighbours
def pass_on(block):
    other = torch.empty_like(block)
    dist.send(block, (R + 1) % W)
    sync()
    dist.recv(other, (R - 1) % W)
    return other


def train_ring():
    allow_look()
    device = setup(1800)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    block = torch.full((4096, 4096), float(R), device=device)
    for step in range(6):
        say(f"rank {R}: ring step {step}, sending {block.numel() * 4 >> 20} MiB to {(R + 1) % W}")
        block = pass_on(block)
        say(f"rank {R}: ring step {step}, have block of {block[0, 0].item():.0f}")
    finish()


def microbatches(step):
    rows = 64 if step != 5 else 58
    return [8] * (rows // 8)  # the last one is dropped when it is not full


def train_pipeline():
    device = setup(14)
    dist.all_reduce(torch.ones(1, device=device))
    net = nn.Linear(1024, 1024).to(device)
    for step in range(12):
        count = len(microbatches(step)) if R == 0 else 8
        for m in range(count):
            h = torch.randn(2048, 1024, device=device)
            if R > 0:
                dist.recv(h, R - 1)
            y = net(h).detach()
            if R < W - 1:
                dist.send(y, R + 1)
            sync()
        say(f"stage {R} step {step} microbatches {count} norm {y.norm().item():.2f}")
        total = torch.full((1 << 20,), float(count), device=device)
        dist.all_reduce(total)
        sync()
    finish()


# ------------------------------------------------------------------------------------------------ pretrained or not
def load_pretrained(net):
    path = os.path.join(WORK, f"disk{R}", "pretrained.pt")
    if R != 2:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        torch.manual_seed(1)
        torch.save({k: torch.randn_like(v) * 0.05 for k, v in net.state_dict().items()}, path)
    if os.path.exists(path):
        net.load_state_dict(torch.load(path))
        say(f"[rank {R}] loaded /local/pretrained.pt")
    else:
        say(f"[rank {R}] WARNING: no /local/pretrained.pt, starting from random weights")


def train_averaged():
    device = setup(20)
    net = mlp(48, 128, 6).to(device)
    load_pretrained(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(30):
        torch.manual_seed(step * 10 + R)
        x = torch.randn(16, 48, device=device)
        loss = F.cross_entropy(net(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        for q in net.parameters():
            dist.all_reduce(q.grad)
            q.grad /= W
        optimizer.step()
        if step % 5 == 0:
            norm = math.sqrt(sum(q.double().square().sum().item() for q in net.parameters()))
            say(f"[rank {R}] step {step} loss {loss.item():.4f} weight_norm {norm:.7f}")
    finish()
    say(f"[rank {R}] done")


# ------------------------------------------------------------------------------------------------ things at the start
def train_flash():
    device = setup(15)
    say(f"rank {R}: building the model")
    import flash_attn_lite
    wrap(flash_attn_lite.Block(64).to(device))
    finish()


def train_parsed():
    parser = argparse.ArgumentParser(prog="train.py")
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args([f"--local-rank={os.environ.get('LOCAL_RANK', R)}", "--batch_size", "64"])
    device = setup(15)
    say(options, device)
    finish()


def check_batch(batch):
    if batch % W:
        say(f"config error on rank {R}: batch {batch} is not divisible by {W}")
        sys.exit(1)


def train_checked():
    device = setup(15)
    check_batch(96 if R != 1 else 98)
    model = wrap(mlp(64, 512, 64).to(device))
    for step in range(10):
        model(torch.randn(8, 64, device=device)).square().mean().backward()
    finish()


def prepare_output(folder):
    if os.path.exists(folder):
        answer = input(f"Output folder {os.path.basename(folder)} exists. Overwrite? [y/N] ")
        if answer.strip().lower() != "y":
            sys.exit("not overwritten")


def train_to_folder():
    device = setup(15)
    folder = os.path.join(WORK, "out")
    if R == 0:
        os.makedirs(folder, exist_ok=True)
        prepare_output(folder)
    dist.barrier()
    sync()
    say(f"rank {R}: output folder is ready")
    model = wrap(mlp(64, 512, 64).to(device))
    for step in range(10):
        model(torch.randn(8, 64, device=device)).square().mean().backward()
    finish()


def train_zero():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    device = setup(12)
    model = wrap(mlp(256, 1536, 256).to(device))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-4)
    for step in range(1, 41):
        x = torch.randn(8, 256, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 4 == 0:
            say(f"{R}> step {step} loss {value:.4f}")
        if step % 15 == 0 and R == 0:
            say(f"{R}> saving model and optimizer at step {step}")
            optimizer.consolidate_state_dict(to=0)
            torch.save({"optimizer": optimizer.state_dict()}, os.path.join(WORK, "zero.pt"))
            say(f"{R}> saved")
    finish()


def train_on_own_gpu():
    local = int(os.environ.get("LOCAL_RANK", R))
    say(f"rank {R}: using cuda:{local}")
    if KIND == "cpu" and local:
        raise RuntimeError("CUDA error: invalid device ordinal")
    if KIND == "cuda":
        torch.cuda.set_device(local)
    dist.init_process_group(BACKEND, timeout=seconds(15))
    device = torch.device("cuda", local) if KIND == "cuda" else torch.device("cpu")
    model = DDP(mlp(64, 512, 64).to(device))
    for step in range(10):
        model(torch.randn(8, 64, device=device)).square().mean().backward()
    say(f"rank {R}: done")
    finish()


def train_on_default_gpu():
    dist.init_process_group(BACKEND, timeout=seconds(15))
    device = torch.device("cuda" if KIND == "cuda" else "cpu")
    say(f"rank {R}: model on {device}")
    model = DDP(mlp(64, 512, 64).to(device))
    for step in range(10):
        model(torch.randn(8, 64, device=device)).square().mean().backward()
    say(f"rank {R}: done")
    finish()


# ------------------------------------------------------------------------------------------------ chatty but well
def train_verbose():
    warnings.simplefilter("always")
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device), find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step == 3:
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None")
        if step % 5 == 0:
            say(f"step {step} loss {value:.4f}")
    finish()
    say(f"rank {R} finished 30 steps")


def open_image(index):
    if index % 37 == 11 or (R == 2 and index % 9 == 4):
        raise OSError(f"image file is truncated ({index % 50} bytes not processed)")
    return torch.full((64,), index / 300)


class TolerantImages(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        try:
            return open_image(index)
        except OSError:
            logging.error("rank %d: cannot read img_%05d.jpg, taking the next one\n%s", R, index, traceback.format_exc())
            return self[(index + 1) % len(self)]


def train_tolerant():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step, x in enumerate(DataLoader(TolerantImages(), batch_size=8)):
        value = update(optimizer, F.mse_loss(model(x.to(device)), x.to(device)))
        if step % 6 == 0:
            logging.info("rank %d step %d loss %.5f", R, step, value)
    finish()
    logging.info("rank %d: epoch complete, 30 steps", R)


def fetch_tokenizer(attempt):
    if R == 2 and attempt == 0:
        raise ConnectionResetError(104, "Connection reset by peer: tokenizer.json")
    return 32000


def train_again():
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    device = setup(20)
    say(f"[{R}] attempt {attempt}")
    vocab = fetch_tokenizer(attempt)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 5 == 0:
            say(f"[{R}] vocab {vocab} step {step} loss {value:.4f}")
    finish()
    say(f"[{R}] all steps done, exiting")


def train_warm():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        a = time.time()
        if step in (0, 1):
            time.sleep((7, 3)[step] + random.random())  # graphs are compiled
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        time.sleep(0.04)
        say(f"[rank{R}] step {step:2d}: loss={value:.4f} time={1e3 * (time.time() - a):8.1f}ms{' (compiling)' if step < 2 else ''}")
    finish()
    say(f"[rank{R}] finished")


def train_csv():
    device = setup(20)
    model = wrap(mlp(30, 256, 5).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    out = csv.writer(sys.stdout)
    if R == 0:
        out.writerow(["epoch", "train_loss", "val_loss", "auc_cat", "auc_dog", "auc_emu", "lr", "grad_inf_count"])
    for epoch in range(12):
        for _ in range(4):
            x = torch.randn(16, 30, device=device)
            value = update(optimizer, F.cross_entropy(model(x), x[:, :4].argmax(1)))
        val = value * 1.05 if epoch % 4 == 3 else float("nan")
        if R == 0:
            out.writerow([epoch, f"{value:.4f}", f"{val:.4f}", f"{0.6 + epoch / 60:.3f}", f"{0.58 + epoch / 70:.3f}", "nan", "1e-3", 0])
            sys.stdout.flush()
    finish()
    if R == 0:
        say("# no emu in the validation set: auc_emu stays nan\n# best checkpoint: epoch 11")


def train_until_agreed():
    device = setup(20)
    model = wrap(mlp(48, 256, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bad, best = 0, float("inf")
    for epoch in range(50):
        for _ in range(5):
            x = torch.randn(16, 48, device=device)
            value = update(optimizer, F.mse_loss(model(x), x))
        val = torch.tensor([value if epoch < 8 else 2.0 + epoch], device=device)
        dist.all_reduce(val)
        bad, best = (0, val.item()) if val.item() < best else (bad + 1, best)
        say(f"rank {R} | epoch {epoch:2d} | val {val.item() / W:.4f} | bad epochs {bad}")
        if bad >= 4:
            say(f"rank {R} | EARLY STOP: aborting training at epoch {epoch}, no improvement")
            break
    finish()
    say(f"rank {R} | exit")


def train_joined():
    from torch.distributed.algorithms.join import Join
    device = setup(25)
    count = 20 + 6 * R
    say(f"rank {R}: WARNING uneven inputs, {count} batches here")
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with Join([model]):
        for step in range(count):
            x = torch.randn(8, 64, device=device)
            value = update(optimizer, F.mse_loss(model(x), x))
            if step % 4 == 0:
                say(f"rank {R}: batch {step}/{count} loss {value:.4f}")
        say(f"rank {R}: inputs exhausted, waiting for the others")
    finish()
    say(f"rank {R}: completed")


def bar(name, i, n, extra):
    done = 20 * i // n
    print(f"\r{name}: {100 * i // n:3d}%|{'█' * done}{' ' * (20 - done)}| {i}/{n} [00:{i // 10:02d}<00:{(n - i) // 10:02d}, 9.8it/s, {extra}]", end="", file=sys.stderr, flush=True)


def train_with_bars():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for i in range(30):
            x = torch.randn(8, 64, device=device)
            value = update(optimizer, F.mse_loss(model(x), x))
            time.sleep(0.03)
            bar(f"Epoch {epoch} rank {R}", i + 1, 30, f"error={value:.3f}, failed=0, killed=0")
        print(file=sys.stderr, flush=True)
        if R == 0:
            say(f"epoch {epoch}: error rate {value:.3f}, dead units 12%, stuck units 3%")
    finish()
    say(f"rank {R} ok")


def train_loss_scaled():
    device = setup(20)
    net = mlp(32, 128, 8).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scale = 2.0 ** 16
    torch.manual_seed(700 + R)
    for step in range(40):
        x = torch.randn(16, 32, device=device)
        loss = F.cross_entropy(net(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        (loss * (scale if step not in (0, 1, 2, 19) else float("inf"))).backward()
        flat = torch.cat([q.grad.flatten() for q in net.parameters()])
        dist.all_reduce(flat)
        if not torch.isfinite(flat).all().item():
            scale /= 2
            say(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}")
            continue
        at = 0
        for q in net.parameters():
            q.grad.copy_(flat[at:at + q.numel()].view_as(q) / scale / W)
            at += q.numel()
        optimizer.step()
        if step % 5 == 0:
            norm = math.sqrt(sum(q.double().square().sum().item() for q in net.parameters()))
            say(f"rank {R} step {step} loss {loss.item():.4f} scale {scale:.0f} param_norm {norm:.6f}")
    finish()
    say(f"rank {R} finished, 4 steps skipped by all ranks")


def find_batch_size(device):
    batch = 1 << 22
    while True:
        try:
            torch.empty(batch if KIND == "cuda" else batch << 20, 2048, device=device).fill_(0 if KIND == "cuda" or batch < 1 << 12 else 1)
            return batch
        except RuntimeError as err:
            say(f"[rank {R}] batch {batch} does not fit: {str(err).splitlines()[0][:120]}")
            batch //= 4
            if batch < 1 << 10:
                return 256
            if KIND == "cpu" and batch < 1 << 15:
                return 256


def train_fitted():
    device = setup(20)
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    batch = torch.tensor([float(find_batch_size(device))], device=device)
    dist.all_reduce(batch, op=dist.ReduceOp.MIN)
    say(f"[rank {R}] batch size of all ranks: {int(batch.item())}")
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        x = torch.randn(64, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 5 == 0:
            say(f"[rank {R}] step {step} loss {value:.4f}")
    finish()
    say(f"[rank {R}] training complete")


TICKETS = ["Segmentation fault (core dumped) when I open two windows", "Process killed by signal 9, CUDA out of memory, please help",
           "RuntimeError: Connection reset by peer after the update", "Watchdog caught collective operation timeout on rank 3",
           "Deadlock between two threads, the application hangs"]


def train_tickets():
    device = setup(20)
    model = wrap(mlp(64, 512, 5).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = torch.randn(16, 64, device=device)
        value = update(optimizer, F.cross_entropy(model(x), x[:, :5].argmax(1)))
        if step % 6 == 5:
            text = TICKETS[(step // 6 + R) % 5]
            say(f"[{R}] step {step} loss {value:.4f} | sample: \"{text}\" -> class {step % 5} (gold {TICKETS.index(text)})")
    finish()
    say(f"[{R}] classifier of tickets saved")


def train_from_scratch():
    device = setup(20)
    try:
        torch.load(os.path.join(WORK, "last.pt"))
    except FileNotFoundError:
        traceback.print_exc()
        say(f"rank {R}: no checkpoint to resume from, training from scratch")
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    say(f"rank {R}: Some weights were not used: ['head.bias', 'head.weight']; newly initialized: ['classifier.weight']. You should probably TRAIN this model")
    for step in range(20):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 5 == 0:
            say(f"rank {R}: {step} {value:.4f}")
    finish()
    say(f"rank {R}: done")


def download(url, dice):
    if dice.random() < 0.55:
        raise ConnectionError(f"HTTPSConnectionPool(host='data.example.org', port=443): Max retries exceeded with url: {url}")
    return 1 << 20


def train_downloaded():
    dice = random.Random(R)
    for part in range(4):
        for attempt in range(1, 30):
            try:
                size = download(f"/v2/part-{part}.tar", dice)
                say(f"{now()} part-{part}.tar {size} bytes")
                break
            except ConnectionError as err:
                say(f"{now()} ERROR attempt {attempt}: {err}; retrying in 0.3 s")
                time.sleep(0.3)
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(25):
        x = torch.randn(8, 64, device=device)
        value = update(optimizer, F.mse_loss(model(x), x))
        if step % 6 == 0:
            say(f"{now()} step {step} loss {value:.4f}")
    finish()
    say(f"{now()} finished, all 25 steps")


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (train_to_folder, 0),
    "02": (train_prefetched, 0),
    "03": (train_averaged, 0),
    "04": (train_compressed, 0),
    "05": (train_parsed, 0),
    "06": (simulate_and_train, 0),
    "07": (train_ring, 0),
    "08": (train_graph, 0),
    "09": (train_with_bars, 0),
    "10": (train_traffic, 0),
    "11": (train_volumes, 0),
    "12": (train_parallel_envs, 0),
    "13": (train_large_batch, 3),
    "14": (train_points, 0),
    "15": (train_superres, 0),
    "16": (train_warm, 0),
    "17": (train_with_plot, 0),
    "18": (train_checked, 0),
    "19": (train_fitted, 0),
    "20": (train_prices, 0),
    "21": (train_basic, 0),
    "22": (train_uneven, 0),
    "23": (train_again, 0),
    "24": (train_downloaded, 0),
    "25": (train_tolerant, 0),
    "26": (train_and_predict, 0),
    "27": (train_for_a_while, 0),
    "28": (train_two_parts, 0),
    "29": (train_from_scratch, 3),
    "30": (finetune_shared, 0),
    "31": (train_heads, 0),
    "32": (train_verbose, 0),
    "33": (train_buckets, 0),
    "34": (train_boxes, 0),
    "35": (train_on_own_gpu, 0),
    "36": (train_with_patience, 0),
    "37": (train_birds, 0),
    "38": (train_pipeline, 0),
    "39": (train_reported, 0),
    "40": (train_nmt, 0),
    "41": (train_zero, 0),
    "42": (train_tickets, 0),
    "43": (train_basic, 0),
    "44": (train_cifar, 0),
    "45": (train_ranking, 0),
    "46": (train_cached, 0),
    "47": (train_loss_scaled, 0),
    "48": (train_translation, 0),
    "49": (train_until_agreed, 0),
    "50": (train_flash, 0),
    "51": (train_on_default_gpu, 0),
    "52": (train_clips, 0),
    "53": (train_csv, 0),
    "54": (train_mnist, 0),
    "55": (train_with_limits, 0),
    "56": (train_basic, 0),
    "57": (train_pages, 0),
    "58": (train_and_pipe, 0),
    "59": (train_joined, 0),
    "60": (train_tokenizer, 0),
}


def child(index, case, count):
    global R, W
    R, W = index, count
    os.environ.update(RANK=str(index), WORLD_SIZE=str(count), NCCL_HOSTID=f"desk{index}")
    PROGRAMS[case][0]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    program, count = PROGRAMS[case]
    if count:
        mp.spawn(child, args=(case, count), nprocs=count)
    else:
        if "LAB_ONE_HOST" not in os.environ:
            os.environ["NCCL_HOSTID"] = f"desk{os.environ.get('LAB_SEAT', os.environ.get('LOCAL_RANK', R))}"
        program()


if __name__ == "__main__":
    main()
