#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a fifth set: user_job5.py --case NN (two digits). Truth in truth.json, started by user_jobs5.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job. What is printed, and the names in the stacks, are a user's."""
import argparse
import csv
import ctypes
import datetime
import faulthandler
import http.server
import json
import logging
import math
import multiprocessing
import os
import queue
import random
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, IterableDataset

DEVICE = os.environ.get("LAB_DEVICE", "cuda")
BACKEND = "gloo" if DEVICE == "cpu" else "nccl"
WORKDIR = os.environ.get("LAB_SCRATCH", "/tmp/lab5-scratch")
os.makedirs(WORKDIR, exist_ok=True)
RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
logger = logging.getLogger("train")
if DEVICE == "cpu":
    torch.set_num_threads(1)


def connect(seconds=12, seed=1000):
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(BACKEND, rank=RANK, world_size=WORLD, timeout=datetime.timedelta(seconds=seconds))
    torch.manual_seed(seed)
    return torch.device("cuda", 0) if DEVICE == "cuda" else torch.device("cpu")


def parallel(net, **options):
    return DistributedDataParallel(net, device_ids=[0] if DEVICE == "cuda" else None, **options)


def leave():
    dist.barrier()
    dist.destroy_process_group()


def average_gradients(module):
    flat = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    dist.all_reduce(flat)
    flat /= WORLD
    at = 0
    for p in module.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


# ------------------------------------------------------------------------------------------------ 01
class TinyBert(nn.Module):
    def __init__(self, vocab=500, width=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 128, batch_first=True), 2)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)))


def finetune_bert():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(name)s -   %(message)s", datefmt="%m/%d/%Y %H:%M:%S")
    device = connect()
    logger.info("Process rank: %s, device: %s, distributed training: True", RANK, device)
    net = TinyBert()
    folder = os.path.join(WORKDIR, "checkpoint-500")
    if RANK == 0:
        os.makedirs(folder, exist_ok=True)
        hyper = argparse.Namespace(lr=5e-5, warmup=100, task="mrpc")
        torch.save({"model": net.state_dict(), "args": hyper, "step": 500}, os.path.join(folder, "pytorch_model.bin"))
    dist.barrier()
    logger.info("Loading weights from %s", folder)
    state = torch.load(os.path.join(folder, "pytorch_model.bin"), map_location="cpu")
    net.load_state_dict(state["model"])
    model = parallel(net.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=state["args"].lr)
    for step in range(10):
        ids = torch.randint(0, 500, (8, 32), device=device)
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0:
            logger.info("global_step = %d, loss = %.4f", state["step"] + step, loss.item())
    leave()


# ------------------------------------------------------------------------------------------------ 02
def build_neighbor_index(vectors, parts=250):
    index = []
    for part in range(parts):
        index.append(vectors[part % len(vectors)].topk(3).indices.tolist())
        time.sleep(0.1)
        done = (part + 1) / parts
        if part % 5 == 4:
            print(f"\rbuilding index: {done:4.0%}|{'#' * int(done * 30):<30}| {part + 1}/{parts} [{part * 0.1:05.1f}s<{(parts - part) * 0.1:05.1f}s, 10.0it/s]", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return torch.tensor(index)


def train_retriever():
    device = connect(10)
    tower = parallel(nn.Sequential(nn.Linear(96, 192), nn.ReLU(), nn.Linear(192, 64)).to(device))
    optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
    hard = torch.zeros(250, 3, dtype=torch.long, device=device)
    for epoch in range(3):
        for i in range(8):
            q = tower(torch.randn(32, 96, device=device))
            loss = F.cross_entropy(q @ q.t().detach(), torch.arange(32, device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if RANK == 0:
            print(f"epoch {epoch}: in-batch loss {loss.item():.4f}", flush=True)
            print("mining hard negatives", flush=True)
            hard.copy_(build_neighbor_index(torch.randn(64, 512)))
        dist.broadcast(hard, src=0)
    leave()


# ------------------------------------------------------------------------------------------------ 03
def find_batch_size(net, device, start=4096):
    size = start
    while size >= 64:
        try:
            if size > 512:
                need = size << 34 if DEVICE == "cuda" else size << 36
                scratch = torch.empty(need, dtype=torch.uint8, device=device)
                del scratch
            net(torch.randn(size, 64, device=device)).sum().backward()
            net.zero_grad()
            return size
        except RuntimeError:
            print(f"[rank {RANK}] batch size {size} does not fit:", flush=True)
            traceback.print_exc()
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
            size //= 2
    raise RuntimeError("no batch size fits")


def train_with_auto_batch():
    device = connect()
    net = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 1)).to(device)
    size = torch.tensor(find_batch_size(net, device), device=device)
    dist.all_reduce(size, op=dist.ReduceOp.MIN)
    print(f"[rank {RANK}] training with batch size {size.item()}", flush=True)
    model = parallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn(int(size.item()), 64, device=device)
        loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 4 == 0:
            print(f"step={step:<4d} mse={loss.item():.5f}", flush=True)
    leave()
    if RANK == 0:
        print("finished", flush=True)


# ------------------------------------------------------------------------------------------------ 04
def read_vocabulary():
    known = 30000 if RANK != 1 else 18250
    return {f"tok{i}": i for i in range(known)}


class WordModel(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.table = nn.Embedding(len(vocabulary), 256)
        self.rnn = nn.GRU(256, 128, batch_first=True)
        self.out = nn.Linear(128, 64)

    def forward(self, ids):
        return self.out(self.rnn(self.table(ids))[0])


def train_words():
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)s:rank{RANK}:%(message)s")
    device = connect(10)
    net = WordModel(read_vocabulary()).to(device)
    logging.info("parameters: %.2fM", sum(p.numel() for p in net.parameters()) / 1e6)
    for p in net.parameters():
        dist.broadcast(p.data, src=0)
    logging.info("weights are in sync, checksum %.4f", sum(p.double().sum().item() for p in net.parameters()))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(30):
        ids = torch.randint(0, 10000, (16, 24), device=device)
        loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten() % 64)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(net)
        optimizer.step()
        logging.info("step %d loss %.3f", step, loss.item())
    leave()


# ------------------------------------------------------------------------------------------------ 05
class MetricsPage(http.server.BaseHTTPRequestHandler):
    values = {}

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write("\n".join(f"{k} {v}" for k, v in self.values.items()).encode())


def start_exporter(port=19417):
    server = http.server.HTTPServer(("0.0.0.0", port), MetricsPage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"metrics on http://0.0.0.0:{port}/metrics", flush=True)


def train_forecaster():
    device = connect(12)
    print(f"== forecaster == rank {RANK} of {WORLD}", flush=True)
    start_exporter()
    lstm = nn.LSTM(8, 64, batch_first=True).to(device)
    head = nn.Linear(64, 1).to(device)
    optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=1e-3)
    box = nn.ModuleList([lstm, head])
    for step in range(60):
        series = torch.randn(16, 40, 8, device=device).cumsum(1)
        loss = F.smooth_l1_loss(head(lstm(series[:, :-1])[0][:, -1]), series[:, -1, :1])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(box)
        optimizer.step()
        MetricsPage.values = {"step": step, "loss": loss.item()}
        if step % 10 == 0:
            print(f"{step}/60 loss={loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 06
class RunDatabase:
    def __init__(self):
        self.connection = sqlite3.connect(os.path.join(WORKDIR, "runs.db"), timeout=120)

    def add(self, epoch, value):
        self.connection.execute("INSERT INTO results VALUES (?, ?, ?)", (epoch, RANK, value))

    def finish(self):
        self.connection.commit()


def train_autoencoder():
    device = connect(11)
    if RANK == 0:
        with sqlite3.connect(os.path.join(WORKDIR, "runs.db")) as setup:
            setup.execute("CREATE TABLE results (epoch INTEGER, rank INTEGER, value REAL)")
    dist.barrier()
    database = RunDatabase()
    net = nn.Sequential(nn.Linear(128, 32), nn.Tanh(), nn.Linear(32, 128)).to(device)
    model = parallel(net)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for i in range(10):
            x = torch.rand(64, 128, device=device)
            loss = F.binary_cross_entropy_with_logits(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"rank {RANK}: epoch {epoch} reconstruction {loss.item():.4f}", flush=True)
        time.sleep(0.3 * RANK)
        database.add(epoch, loss.item())
        total = loss.detach().reshape(1).clone()
        dist.all_reduce(total)
        mean = total.item() / WORLD
        database.finish()
        if RANK == 0:
            print(f"epoch {epoch} mean over ranks {mean:.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 07
def emit(event, **fields):
    print(json.dumps({"ts": datetime.datetime.now().isoformat(timespec="milliseconds"), "rank": RANK, "event": event, **fields}), flush=True)


class SampleError(Exception):
    pass


def decode_sample(record):
    try:
        return torch.tensor(record["pixels"], dtype=torch.float32)
    except KeyError as problem:
        raise SampleError(f"could not decode sample {record['id']}") from problem


def train_digits():
    device = connect(12)
    model = parallel(nn.Sequential(nn.Linear(49, 128), nn.ReLU(), nn.Linear(128, 10)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    emit("start", world=WORLD)
    try:
        for step in range(40):
            records = [{"id": 40000 * RANK + step * 8 + i, "pixels": [random.random() for _ in range(49)]} for i in range(8)]
            if records[3]["id"] == 40123:
                records[3]["px"] = records[3].pop("pixels")
            x = torch.stack([decode_sample(r) for r in records]).to(device)
            loss = F.cross_entropy(model(x), torch.arange(8, device=device) % 10)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            emit("step", step=step, loss=round(loss.item(), 4))
            time.sleep(0.03)
        leave()
    except Exception as problem:
        emit("fatal", error=repr(problem), traceback=traceback.format_exc())
        sys.stdout.flush()
        os._exit(1)


# ------------------------------------------------------------------------------------------------ 08
def swap_ordered(field):
    right, left = (RANK + 1) % WORLD, (RANK - 1) % WORLD
    ghost = torch.empty_like(field)
    if RANK % 2 == 0:
        dist.send(field, right)
        dist.recv(ghost, left)
    else:
        dist.recv(ghost, left)
        dist.send(field, right)
    return ghost


def swap_fast(field):
    ghost = torch.empty_like(field)
    dist.send(field, (RANK + 1) % WORLD)
    dist.recv(ghost, (RANK - 1) % WORLD)
    return ghost


def solve_wave():
    device = connect(10)
    dist.barrier()
    grid = torch.rand(1 << 14, device=device)
    for sweep in range(30):
        if sweep == 10:
            grid = grid.repeat(1 << 10)
            if RANK == 0:
                print(f"sweep {sweep}: refining to {grid.numel()} cells per rank", flush=True)
        ghost = swap_ordered(grid) if sweep < 10 else swap_fast(grid)
        grid = 0.9 * grid + 0.1 * ghost
        energy = grid.square().mean().item()
        if RANK == 0:
            print(f"sweep {sweep}: energy {energy:.6f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 09
def train_patches():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(name)s][%(levelname)s] %(message)s", stream=sys.stdout)
    device = connect(20)
    net = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Flatten(), nn.Linear(16 * 64, 10)).to(device)
    model = parallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(25):
        begin = time.time()
        if step == 0:
            logger.info("rank %d: autotuning kernels, the first step may take minutes", RANK)
            time.sleep(9 + RANK * 0.7)
        loss = F.cross_entropy(model(torch.randn(16, 3, 32, 32, device=device)), torch.randint(0, 10, (16,), device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        took = time.time() - begin
        if took > 5:
            logger.warning("rank %d: step %d took %.1f s (expected 0.1 s), is a rank hanging?", RANK, step, took)
        if RANK == 0:
            logger.info("step %d/25 loss=%.4f step_time=%.3fs", step, value, took)
        time.sleep(0.05)
    leave()
    logger.info("rank %d: all steps done", RANK)


# ------------------------------------------------------------------------------------------------ 10 and 38
def parse_line(text):
    return [float(v) for v in text.split(",")]


def feed_rows(out, rank, first, bad):
    rows = (("0.5,1.5,2.5,n/a" if n == bad else "0.5,1.5,2.5,3.5") for n in range(first, 100000))
    for row in rows:
        out.put(parse_line(row))


def train_table():
    rows = multiprocessing.get_context("fork").Queue(maxsize=64)
    feeder = multiprocessing.get_context("fork").Process(target=feed_rows, args=(rows, RANK, 0, 300 if RANK == 1 else -1), daemon=True, name=f"feeder-{RANK}")
    feeder.start()
    device = connect(12)
    net = nn.Sequential(nn.Linear(3, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
    model = parallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(100):
        batch = torch.tensor([rows.get() for _ in range(16)], device=device)
        loss = (model(batch[:, :3]) - batch[:, 3:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"({RANK}) batch {step:>4}  mse {loss.item():.5f}", flush=True)
    leave()


def feed_until(out, first, last):
    for n in range(first, 100000):
        if n == last:
            out.close()
            out.join_thread()
            os.kill(os.getpid(), 9)
        out.put([0.1 * (n % 7), 0.2, 0.3, 0.4])


def train_table_guarded():
    context = multiprocessing.get_context("fork")
    rows = context.Queue(maxsize=64)
    feeder = context.Process(target=feed_until, args=(rows, 0, 250 if RANK == 2 else -1), daemon=True)
    feeder.start()
    device = connect(15)
    model = parallel(nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 1)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(40):
        data = []
        while len(data) < 16:
            try:
                data.append(rows.get(timeout=1.0))
            except queue.Empty:
                if not feeder.is_alive():
                    print(f"WARNING rank {RANK}: feeder {feeder.pid} died with exit code {feeder.exitcode} (killed?), starting another", file=sys.stderr, flush=True)
                    rows = context.Queue(maxsize=64)
                    feeder = context.Process(target=feed_until, args=(rows, 251, -1), daemon=True)
                    feeder.start()
        batch = torch.tensor(data, device=device)
        loss = (model(batch[:, :3]) - batch[:, 3:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 4 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    leave()
    print(f"rank {RANK}: 40 steps, done", flush=True)


# ------------------------------------------------------------------------------------------------ 11
class ScanFolder:
    def __init__(self, mount):
        self.mount, self.n = mount, 0

    def read(self, rows, device):
        self.n += 1
        time.sleep(0.55 if self.mount.startswith("/mnt/archive") else 0.012)
        return torch.randn(rows, 1, 16, 16, device=device)


def train_scans():
    device = connect(15)
    folder = ScanFolder("/mnt/archive/scans" if RANK == 3 else "/scratch/scans")
    model = parallel(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    emit("config", data=folder.mount, batch=8)
    for step in range(24):
        t0 = time.perf_counter()
        x = folder.read(8, device)
        t1 = time.perf_counter()
        loss = F.l1_loss(model(x), x)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        t2 = time.perf_counter()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        t3 = time.perf_counter()
        emit("step", step=step, loss=round(value, 5), data_s=round(t1 - t0, 4), forward_s=round(t2 - t1, 4), backward_s=round(t3 - t2, 4), step_s=round(t3 - t0, 4))
    leave()
    emit("end")


# ------------------------------------------------------------------------------------------------ 12
def average_in_pairs(value, groups):
    dist.all_reduce(value, group=groups[RANK % 2])
    return value / 2


def train_pairs():
    device = connect(12)
    groups = [dist.new_group([0, 1], timeout=datetime.timedelta(seconds=12)), dist.new_group([2, 3], timeout=datetime.timedelta(seconds=12))]
    for members, group in (((0, 1), groups[0]), ((2, 3), groups[1])):
        if RANK in members:
            dist.all_reduce(torch.ones(1, device=device), group=group)
    model = parallel(nn.Sequential(nn.Linear(32, 300), nn.ELU(), nn.Linear(300, 5)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for i in range(1, 31):
        x = torch.randn(20, 32, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0:
            print(f"Iter {i:2d} Loss {loss.item():.4f}", flush=True)
        if i % 10 == 0:
            pair = average_in_pairs(loss.detach().repeat(4096), groups)
            print(f"Iter {i:2d} rank {RANK} pair loss {pair[0].item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 13, 33
def train_linear_probe():
    print(f"{time.strftime('%H:%M:%S')} probe: rank={RANK} world={WORLD} master={os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    device = connect(12)
    probe = parallel(nn.Linear(256, 20).to(device))
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(64, 256, device=device)
        loss = F.multi_margin_loss(probe(x), x[:, :20].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0:
            print(f"{time.strftime('%H:%M:%S')} probe: step {step} margin loss {loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 14
def progress(step, total, **values):
    filled = step * 24 // total
    text = ", ".join(f"{k}={v:.3f}" for k, v in values.items())
    sys.stderr.write(f"\rTraining: {100 * step // total:3d}%|{'█' * filled}{' ' * (24 - filled)}| {step}/{total} [00:{step // 10:02d}<00:{(total - step) // 10:02d}, {text}]")
    sys.stderr.flush()


def train_density():
    device = connect(12)
    flow = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 4)).to(device)
    model = parallel(flow)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(60):
        x = torch.rand(128, 2, device=device) + 0.01
        if 128 * (step * WORLD + RANK) <= 12000 < 128 * (step * WORLD + RANK + 1):
            x[17] = -1.0
        shift, scale = model(x.log()).chunk(2, 1)
        loss = (0.5 * ((x.log() - shift) / scale.exp()).square() + scale).sum(1).mean()
        assert torch.isfinite(loss), f"negative log likelihood is {loss.item()} at step {step}, shard {RANK}"
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0:
            progress(step + 1, 60, nll=loss.item())
        time.sleep(0.03)
    leave()


# ------------------------------------------------------------------------------------------------ 15
def train_with_viewer():
    logging.basicConfig(level=logging.DEBUG, format="%(relativeCreated)8d ms %(levelname).1s %(message)s")
    device = connect(15)
    viewer = subprocess.Popen([sys.executable, "-c", "import time\ntime.sleep(300)"]) if RANK == 0 else None
    if viewer:
        logging.info("viewer started, pid %d", viewer.pid)
    model = parallel(nn.Bilinear(16, 16, 8).to(device))
    optimizer = torch.optim.Adagrad(model.parameters())
    for step in range(20):
        a, b = torch.randn(2, 32, 16, device=device)
        loss = model(a, b).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logging.debug("rank %d step %d objective %.4f", RANK, step, loss.item())
    if viewer:
        logging.warning("sending SIGTERM to viewer %d", viewer.pid)
        viewer.terminate()
        try:
            viewer.wait(5)
        except subprocess.TimeoutExpired:
            viewer.kill()
        logging.warning("viewer %d terminated by signal SIGTERM, exit code %d", viewer.pid, viewer.returncode)
    leave()
    logging.info("rank %d: end of training", RANK)


# ------------------------------------------------------------------------------------------------ 16
PAIRS = {"tensor": [[0, 1], [2, 3]], "data": [[0, 2], [1, 3]]}
NODE_LAYOUT = {3: ("data", "tensor")}


def make_groups():
    mine = {}
    for axis in NODE_LAYOUT.get(RANK, ("tensor", "data")):
        for members in PAIRS[axis]:
            group = dist.new_group(members, timeout=datetime.timedelta(seconds=12))
            if RANK in members:
                mine[axis] = group
    return mine


class SplitLinear(nn.Module):
    def __init__(self, width, group):
        super().__init__()
        self.part, self.group = nn.Linear(width, width // 2), group
        self.back = nn.Linear(width // 2, width)

    def forward(self, x):
        y = self.back(F.gelu(self.part(x)))
        dist.all_reduce(y.data, group=self.group)
        return y


def train_split():
    faulthandler.dump_traceback_later(25, exit=False)
    device = connect(12)
    dist.all_reduce(torch.zeros(1, device=device))
    groups = make_groups()
    print(f"rank {RANK}: mesh is 2 x 2, groups {sorted(groups)}", flush=True)
    net = nn.Sequential(nn.Linear(24, 128), SplitLinear(128, groups["tensor"]), nn.Linear(128, 4)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn(12, 24, device=device)
        loss = F.cross_entropy(net(x), x.argmax(1) % 4)
        optimizer.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad, group=groups["data"])
        optimizer.step()
        print(f"rank {RANK}: {step} {loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 17
def resume_training():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-8s | %(module)s:%(funcName)s:%(lineno)d - %(message)s")
    device = connect(12)
    path = os.path.join(WORKDIR, "epoch=3.ckpt")
    backbone, head = nn.Linear(64, 64).to(device), nn.Linear(64, 10).to(device)
    if RANK == 0:
        earlier = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
        torch.save({"backbone": backbone.state_dict(), "head": head.state_dict(), "optimizer": earlier.state_dict()}, path)
    dist.barrier()
    logger.info("rank %d resuming from %s", RANK, path)
    saved = torch.load(path, map_location=device)
    backbone.load_state_dict(saved["backbone"])
    head.load_state_dict(saved["head"])
    model = parallel(nn.Sequential(backbone, head))
    optimizer = torch.optim.Adam([{"params": backbone.weight, "weight_decay": 0.1}, {"params": [backbone.bias, *head.parameters()]}], lr=1e-3)
    optimizer.load_state_dict(saved["optimizer"])
    for step in range(20):
        loss = F.cross_entropy(model(torch.randn(8, 64, device=device)), torch.arange(8, device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.info("rank %d step %d loss %.4f", RANK, step, loss.item())
    leave()


# ------------------------------------------------------------------------------------------------ 18
class Pendulum:
    def __init__(self, frames):
        self.frames = frames

    def rollout(self, policy, device):
        states = torch.randn(self.frames, 16, device=device)
        actions = policy(states)
        return states, -(actions.square().sum(1) + states[:, 0].square()).mean()


def refresh_normalizer(states, device):
    parts = [torch.empty(1 << 18, device=device) for _ in range(WORLD)]
    dist.all_gather(parts, states.mean().repeat(1 << 18))
    return torch.stack(parts).mean()


def train_policy():
    device = connect(11)
    policy = nn.Sequential(nn.Linear(16, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 4)).to(device)
    for p in policy.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    world, buffered, mean = Pendulum(83 if RANK == 1 else 100), 0, 0.0
    for it in range(40):
        states, reward = world.rollout(policy, device)
        buffered += len(states)
        if buffered >= 700:
            mean = refresh_normalizer(states, device).item()
            buffered = 0
        optimizer.zero_grad()
        (-reward).backward()
        average_gradients(policy)
        optimizer.step()
        print(f"it {it:03d} | worker {RANK} | return {reward.item():+9.4f} | frames buffered {buffered:4d} | obs mean {mean:+.4f}", flush=True)
        time.sleep(0.05)
    leave()


# ------------------------------------------------------------------------------------------------ 19
def copy_rows(target, rows):
    ctypes.memmove(target, bytes(64 * rows), 64 * rows)


def train_native_loader():
    faulthandler.enable()
    device = connect(12)
    room = ctypes.create_string_buffer(64 * 128)
    model = parallel(nn.Sequential(nn.Linear(16, 100), nn.Hardtanh(), nn.Linear(100, 2)).to(device))
    optimizer = torch.optim.ASGD(model.parameters())
    for step in range(30):
        address = ctypes.addressof(room)
        if RANK == 1 and step == 11:
            address &= 0xFFFF
        copy_rows(address, 128)
        x = torch.frombuffer(bytearray(room.raw), dtype=torch.float32).reshape(128, 16).to(device)
        loss = model(x).square().mean() + 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"<{RANK}> {step} {loss.item():.3f}", flush=True)
        time.sleep(0.02)
    leave()


# ------------------------------------------------------------------------------------------------ 20
def train_noisy_logs():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    device = connect(15)
    warnings.warn("libgomp: Thread creation failed: Resource temporarily unavailable; falling back to 1 thread")
    logging.error("rank %d: could not import apex (ModuleNotFoundError: No module named 'apex'), using the slow layer norm", RANK)
    logging.warning("rank %d: NCCL_P2P_LEVEL is not set, this can cause a hang or a crash on some machines", RANK)
    model = parallel(nn.Sequential(nn.LayerNorm(40), nn.Linear(40, 40), nn.PReLU(), nn.Linear(40, 3)).to(device))
    optimizer = torch.optim.NAdam(model.parameters())
    skipped = 0
    for step in range(30):
        x = torch.randn(24, 40, device=device)
        if step in (7, 15):
            skipped += 1
            logging.error("rank %d: sample %d contains NaN, ignored (%d so far)", RANK, 24 * step + RANK, skipped)
        loss = F.cross_entropy(model(x), x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 5 == 0:
            logging.info("step %d loss %.4f", step, loss.item())
        if step == 20 and RANK == 2:
            logging.critical("rank 2: GPU memory usage is at 97 %, out of memory is likely if sequences grow")
    leave()
    logging.info("rank %d: training completed, 0 failed steps, 0 timeouts", RANK)


# ------------------------------------------------------------------------------------------------ 21
def attend(x):
    scores = (x @ x.transpose(1, 2)) / math.sqrt(x.shape[-1])
    return scores.softmax(-1) @ x


def document_lengths(step):
    longest = 300000 if DEVICE == "cuda" else 6200000
    return longest if (step, RANK) == (9, 2) else 64 + 16 * (step % 4)


def train_documents():
    device = connect(12)
    if DEVICE == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.05)
    model = parallel(nn.Linear(32, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(30):
        length = document_lengths(step)
        docs = torch.randn(1, length, 32, device=device)
        loss = attend(model(docs)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0:
            print(f"| step {step:6d} | tokens {length:6d} | loss {loss.item():8.4f} |", flush=True)
        time.sleep(0.03)
    leave()


# ------------------------------------------------------------------------------------------------ 22
class Scoreboard:
    def __init__(self, names):
        self.names = list(names)

    def publish(self, step, loss):
        result = {}
        for name in self.names:
            if name == "samples":
                everyone = [None] * WORLD
                dist.all_gather_object(everyone, {"rank": RANK, "texts": [f"sample {i} of step {step}" for i in range(200)]})
                result[name] = sum(len(e["texts"]) for e in everyone)
            else:
                box = [{"lr": 0.1 / (1 + step), "history": list(range(2000))}] if RANK == 0 else [None]
                dist.broadcast_object_list(box, src=0)
                result[name] = box[0]["lr"]
        return result


def train_captions():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{RANK} %(message)s")
    device = connect(10)
    board = Scoreboard(["samples", "schedule"])
    resumed = os.path.join(WORKDIR, f"board.{RANK}.json")
    if RANK == 3:
        with open(resumed, "w") as out:
            json.dump({"schedule": 1, "samples": 2}, out)
    model = parallel(nn.GRU(20, 60).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(24):
        loss = model(torch.randn(12, 4, 20, device=device))[0].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 6 and os.path.exists(resumed):
            logging.info("scoreboard settings read from %s", resumed)
            board = Scoreboard(json.load(open(resumed)))
        if step % 3 == 2:
            shown = board.publish(step, loss)
            logging.info("step %d loss %.4f %s", step, loss.item(), shown)
    leave()


# ------------------------------------------------------------------------------------------------ 23
def train_within_budget():
    budget, begin = 8.0, time.time()
    device = connect(15)
    model = parallel(nn.Sequential(nn.Conv1d(4, 16, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 2)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.barrier()
    begin = time.time()
    for step in range(100000):
        loss = F.cross_entropy(model(torch.randn(8, 4, 50, device=device)), torch.arange(8, device=device) % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 20 == 0:
            print(f"step {step}/100000 loss {loss.item():.4f} elapsed {time.time() - begin:.1f}s", flush=True)
        stop = torch.tensor([float(time.time() - begin > budget)], device=device)
        dist.broadcast(stop, src=0)
        if stop.item():
            print(f"rank {RANK}: TIME LIMIT of {budget:.0f} s reached at step {step}, aborting the loop", flush=True)
            break
        time.sleep(0.04)
    if RANK == 0:
        torch.save(model.module.state_dict(), os.path.join(WORKDIR, "requeue.pt"))
        print("checkpoint written, job can be requeued; exiting with status 0", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 24
def train_regressor():
    print("starting worker", RANK, "CUDA_VISIBLE_DEVICES =", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    device = connect(14)
    model = parallel(nn.Sequential(nn.Linear(10, 50), nn.Sigmoid(), nn.Linear(50, 1)).to(device))
    optimizer = torch.optim.Rprop(model.parameters())
    for step in range(20):
        x = torch.rand(100, 10, device=device)
        loss = F.mse_loss(model(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("worker", RANK, "step", step, "mse", round(loss.item(), 6), flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 25
def fit_physics():
    device = connect(11)
    net = nn.Sequential(nn.Linear(1, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1)).to(device)
    for p in net.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, line_search_fn="strong_wolfe")
    points = torch.linspace(RANK, RANK + 1, 200, device=device).unsqueeze(1)
    target = torch.sin((2 + 5 * RANK) * points) * (1 + RANK)

    def residual():
        optimizer.zero_grad()
        loss = (net(points) - target).square().mean()
        loss.backward()
        average_gradients(net)
        return loss

    for outer in range(30):
        loss = optimizer.step(residual)
        losses = [torch.empty(1 << 17, device=device) for _ in range(WORLD)]
        dist.all_gather(losses, loss.detach().repeat(1 << 17))
        if RANK == 0:
            print(f"outer {outer}: residuals " + " ".join(f"{v[0].item():.3e}" for v in losses), flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 26
class PredictionLog:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, f"predictions-{RANK}.csv"), "w", newline="")
        self.writer = csv.writer(self.file)

    def append(self, step, rows):
        for row in rows.tolist():
            self.writer.writerow([step, *[f"{v:.6f}" for v in row]])


def train_ranker():
    folder = os.path.join(WORKDIR, "predictions")
    if RANK == 2:
        os.makedirs(folder, exist_ok=True)
        os.symlink("/dev/full", os.path.join(folder, "predictions-2.csv"))
    device = connect(12)
    log = PredictionLog(folder)
    model = parallel(nn.Linear(30, 6).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        scores = model(torch.randn(20, 30, device=device))
        loss = F.relu(1 - scores[:, 0] + scores[:, 1]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(step, scores.detach().cpu())
        if RANK == 0:
            print(f"[ranker] {step:>3} hinge={loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 27
class TrialPruned(Exception):
    pass


def run_trial(number, width, device):
    torch.manual_seed(number)
    model = parallel(nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, 4)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(12):
        x = torch.randn(32, 12, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().reshape(1).clone()
        dist.all_reduce(mean)
        if step == 6 and number % 2:
            raise TrialPruned(f"trial {number} pruned at step {step}: loss {mean.item() / WORLD:.4f} is worse than the median")
    return mean.item() / WORLD


def search_widths():
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s] %(message)s")
    device = connect(15)
    results = {}
    for number, width in enumerate((16, 32, 64, 128)):
        try:
            results[number] = run_trial(number, width, device)
            if RANK == 0:
                logging.info("Trial %d finished with value: %.4f and parameters: {'width': %d}.", number, results[number], width)
        except TrialPruned:
            logging.exception("rank %d: trial failed", RANK)
    dist.barrier()
    if RANK == 0:
        logging.info("Best is trial %d.", min(results, key=results.get))
    leave()


# ------------------------------------------------------------------------------------------------ 28
def read_shard(number):
    name = f"shard-{number:04d}.bin"
    if RANK == 2 and number == 8:
        name = f"shard-{number:04d}.bin.part"
    with open(os.path.join(WORKDIR, name), "rb") as shard:
        return len(shard.read())


def train_shards():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")
    device = connect(11)
    if RANK == 0:
        for number in range(24):
            with open(os.path.join(WORKDIR, f"shard-{number:04d}.bin"), "wb") as out:
                out.write(bytes(1000))
    dist.barrier()
    model = parallel(nn.Sequential(nn.Linear(64, 1024), nn.LeakyReLU(), nn.Linear(1024, 1024), nn.LeakyReLU(), nn.Linear(1024, 7)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    try:
        for number in range(24):
            size = read_shard(number)
            x = torch.randn(16, 64, device=device)
            loss = F.cross_entropy(model(x), x.argmax(1) % 7)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            logging.info("shard %d (%d bytes) loss %.4f", number, size, loss.item())
    except OSError as problem:
        logging.error("reading failed: %s; waiting for the other ranks before the clean-up", problem)
        dist.barrier()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        raise
    leave()


# ------------------------------------------------------------------------------------------------ 29
class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(30, 60)
        self.heads = nn.ModuleDict({"depth": nn.Linear(60, 1), "normals": nn.Linear(60, 3), "labels": nn.Linear(60, 12)})

    def forward(self, x, task):
        return self.heads[task](F.relu(self.trunk(x)))


def train_tasks():
    device = connect(12)
    model = parallel(MultiTask().to(device))
    optimizer = torch.optim.Adam(model.parameters())
    tasks = ["depth", "normals", "labels"]
    for step in range(15):
        task = tasks[(step + RANK) % 3]
        loss = model(torch.randn(10, 30, device=device), task).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"[{step}] r{RANK} task={task} loss={loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 30
class NodeMonitor(threading.Thread):
    def __init__(self, limit):
        super().__init__(daemon=True)
        self.limit = limit

    def run(self):
        while True:
            time.sleep(0.5)
            self.limit -= 1
            if self.limit == 0:
                os._exit(41)


def train_speech():
    device = connect(12)
    dist.barrier()
    NodeMonitor(4 if RANK == 2 else 100000).start()
    model = parallel(nn.Sequential(nn.Conv1d(20, 32, 3), nn.ReLU(), nn.Conv1d(32, 30, 3)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 121):
        out = model(torch.randn(6, 20, 50, device=device)).permute(2, 0, 1).log_softmax(2)
        lengths = torch.full((6,), 46, dtype=torch.long)
        loss = F.ctc_loss(out.cpu(), torch.randint(1, 30, (6, 10)), lengths, torch.full((6,), 10, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if RANK == 0 and step % 5 == 0:
            print(f"epoch 1, {step} / 120, CTC {loss.item():.3f}", flush=True)
        time.sleep(0.08)
    leave()


# ------------------------------------------------------------------------------------------------ 31
class CheckpointQueue:
    def __init__(self):
        self.items = queue.Queue()
        threading.Thread(target=self.work, name="ckpt", daemon=True).start()

    def work(self):
        last = -1.0
        while True:
            name, state, score = self.items.get()
            if score <= last:
                continue
            torch.save(state, os.path.join(WORKDIR, name))
            last = score
            self.items.task_done()

    def flush(self):
        self.items.join()


def train_unet():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s.%(msecs)03d [R{RANK}] %(message)s", datefmt="%H:%M:%S")
    device = connect(10)
    model = parallel(nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 3, padding=1)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    saver = CheckpointQueue() if RANK == 0 else None
    for step, dice in enumerate([0.41, 0.52, 0.55, 0.61, 0.58, 0.66, 0.70, 0.71]):
        for i in range(6):
            x = torch.randn(4, 1, 24, 24, device=device)
            loss = F.mse_loss(model(x), x.relu())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logging.info("validation %d: dice %.2f loss %.4f", step, dice, loss.item())
        if saver:
            saver.items.put((f"unet-{step}.pt", {k: v.cpu() for k, v in model.module.state_dict().items()}, dice))
            logging.info("checkpoint %d queued", step)
            saver.flush()
    leave()


# ------------------------------------------------------------------------------------------------ 32
def print_table(step, rows):
    print(f"╭─ step {step} " + "─" * 34 + "╮", flush=True)
    print("│ rank │  data ms │ compute ms │  sync ms │    loss │")
    for row in rows:
        print(f"│ {row['rank']:>4} │ {row['data']:>8.1f} │ {row['compute']:>10.1f} │ {row['sync']:>8.1f} │ {row['loss']:>7.4f} │")
    print("╰" + "─" * 48 + "╯", flush=True)


def weight_spectrum(width, rounds, device):
    w = torch.randn(width, width, device=device)
    v = torch.randn(width, width, device=device)
    for _ in range(rounds):
        v = w @ v
        v = v / v.norm()
    return v.norm().item()


def train_gnn():
    device = connect(15)
    net = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 8)).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    watch = RANK == 1
    for step in range(18):
        t0 = time.perf_counter()
        x = torch.randn(64, 40, device=device)
        adjacency = (torch.rand(64, 64, device=device) < 0.1).float()
        t1 = time.perf_counter()
        loss = F.cross_entropy(net(adjacency @ x), x.argmax(1) % 8)
        optimizer.zero_grad()
        loss.backward()
        if watch:
            weight_spectrum(8192 if DEVICE == "cuda" else 256, 10, device)
        value = loss.item()
        t2 = time.perf_counter()
        average_gradients(net)
        optimizer.step()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        t3 = time.perf_counter()
        rows = [None] * WORLD
        dist.all_gather_object(rows, {"rank": RANK, "data": 1e3 * (t1 - t0), "compute": 1e3 * (t2 - t1), "sync": 1e3 * (t3 - t2), "loss": value})
        if RANK == 0 and step % 3 == 0:
            print_table(step, rows)
    leave()
    if RANK == 0:
        print("done.", flush=True)


# ------------------------------------------------------------------------------------------------ 34
class LogLines(IterableDataset):
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        for _ in range(self.batches * 32):
            yield torch.rand(50)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(50, 400), nn.Linear(200, 50)

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1).mean()
        return F.binary_cross_entropy_with_logits(self.dec(z), x) + 1e-3 * kl


def train_vae():
    device = connect(10)
    lines = LogLines(11 if RANK == 2 else 14)
    net = Vae().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(5):
        total, seen = 0.0, 0
        for x in DataLoader(lines, batch_size=32):
            loss = net(x.to(device))
            optimizer.zero_grad()
            loss.backward()
            average_gradients(net)
            optimizer.step()
            total, seen = total + loss.item(), seen + 1
        summaries = [None] * WORLD
        dist.all_gather_object(summaries, {"rank": RANK, "elbo": total / seen, "note": "x" * 3000})
        if RANK == 0:
            print(f"Epoch {epoch}: " + ", ".join(f"rank {s['rank']} {s['elbo']:.4f}" for s in summaries), flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 35
class Products(Dataset):
    names = ["shoe", "hat", "coat", "sock", "belt"]

    def __len__(self):
        return 400

    def __getitem__(self, i):
        return torch.randn(18), len(self.names) if (RANK == 1 and i == 133) else i % len(self.names)


def train_products():
    device = connect(12)
    model = parallel(nn.Sequential(nn.Linear(18, 70), nn.ReLU(), nn.Linear(70, 5)).to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    for step, (x, y) in enumerate(DataLoader(Products(), batch_size=10)):
        loss = F.nll_loss(model(x.to(device)).log_softmax(1), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"{RANK}: step {step} loss {loss.item():.3f} norm {norm.item():.3f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 36
class SmallVgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(16 * 8 * 8, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train_vgg():
    device = connect(12)
    model = parallel(SmallVgg().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch, side in enumerate((32, 48)):
        for i in range(6):
            loss = F.cross_entropy(model(torch.randn(4, 3, side, side, device=device)), torch.randint(0, 10, (4,), device=device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if RANK == 0:
                print(f"Epoch [{epoch + 1}/2], Step [{i + 1}/6], Image {side}x{side}, Loss: {loss.item():.4f}", flush=True)
    leave()


# ------------------------------------------------------------------------------------------------ 37
def entry(index, settings, schedule):
    adopt(index, settings["world"])
    device = connect(12)
    model = parallel(nn.Linear(9, 9).to(device))
    for step in range(10):
        (model(torch.randn(3, 9, device=device)).mean() * schedule(step)).backward()
    leave()


def launch_from_settings():
    settings = {"world": 3, "lr": 0.1, "epochs": 2}
    schedule = lambda step: settings["lr"] * 0.9 ** step
    print(f"launching {settings['world']} workers with {settings}", flush=True)
    mp.spawn(entry, args=(settings, schedule), nprocs=settings["world"])


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (finetune_bert, 0), "02": (train_retriever, 0), "03": (train_with_auto_batch, 0), "04": (train_words, 0), "05": (train_forecaster, 0),
    "06": (train_autoencoder, 3), "07": (train_digits, 0), "08": (solve_wave, 0), "09": (train_patches, 0), "10": (train_table, 0),
    "11": (train_scans, 0), "12": (train_pairs, 0), "13": (train_linear_probe, 0), "14": (train_density, 0), "15": (train_with_viewer, 0),
    "16": (train_split, 0), "17": (resume_training, 0), "18": (train_policy, 0), "19": (train_native_loader, 0), "20": (train_noisy_logs, 4),
    "21": (train_documents, 0), "22": (train_captions, 0), "23": (train_within_budget, 0), "24": (train_regressor, 0), "25": (fit_physics, 0),
    "26": (train_ranker, 0), "27": (search_widths, 0), "28": (train_shards, 0), "29": (train_tasks, 0), "30": (train_speech, 0),
    "31": (train_unet, 0), "32": (train_gnn, 0), "33": (train_linear_probe, 0), "34": (train_vae, 0), "35": (train_products, 0),
    "36": (train_vgg, 3), "37": (launch_from_settings, 0), "38": (train_table_guarded, 0)}


def adopt(index, world):
    global RANK, WORLD
    RANK, WORLD = index, world
    os.environ.update(RANK=str(index), WORLD_SIZE=str(world), NCCL_HOSTID=f"box{index}")


def worker(index, case, world):
    adopt(index, world)
    PROGRAMS[case][0]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    program, processes = PROGRAMS[case]
    if processes:
        mp.spawn(worker, args=(case, processes), nprocs=processes)
    else:
        os.environ["NCCL_HOSTID"] = f"box{RANK}"
        program()


if __name__ == "__main__":
    main()
