#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a sixth set: user_job6.py --case NN (two digits). Truth in truth.json, started by user_jobs6.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job. What is printed, and the names in the stacks, are a user's."""
import argparse
import datetime
import fcntl
import json
import logging
import math
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

KIND = os.environ.get("LAB_DEVICE", "cuda")
ROOT = os.environ.get("LAB_SCRATCH", "/tmp/lab6-scratch")
os.makedirs(ROOT, exist_ok=True)
rank = int(os.environ.get("RANK", "0"))
world_size = int(os.environ.get("WORLD_SIZE", "1"))
log = logging.getLogger("trainer")
if KIND == "cpu":
    torch.set_num_threads(1)


def setup(seconds=12, seed=7):
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group("nccl" if KIND == "cuda" else "gloo", rank=rank, world_size=world_size, timeout=datetime.timedelta(seconds=seconds))
    torch.manual_seed(seed)
    return torch.device("cuda:0" if KIND == "cuda" else "cpu")


def wrap(module, **kwargs):
    model = DDP(module, device_ids=[0] if KIND == "cuda" else None, **kwargs)
    torch.manual_seed(1000 + rank)
    return model


def finish():
    dist.barrier()
    dist.destroy_process_group()


def sync():
    if KIND == "cuda":
        torch.cuda.synchronize()


def say(*words):
    print(*words, flush=True)


def mlp(*widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])


# ------------------------------------------------------------------------------------------------ 01
def download(url, target):
    with urllib.request.urlopen(url, timeout=2) as reply, open(target, "wb") as out:
        out.write(reply.read())


def fetch_dataset():
    target = os.path.join(ROOT, f"corpus-{rank}.txt")
    mirrors = ["http://127.0.0.1:9/mirror-a/corpus.txt", "http://127.0.0.1:9/mirror-b/corpus.txt"]
    for attempt, url in enumerate(mirrors, 1):
        try:
            download(url, target)
            return target
        except OSError:
            log.exception("rank %d: attempt %d/%d: download of %s failed, trying the next mirror", rank, attempt, len(mirrors) + 1, url)
            time.sleep(0.5)
    with open(target, "w") as out:
        out.write("to be or not to be that is the question " * 200)
    log.info("rank %d: using the packaged copy %s", rank, target)
    return target


def train_charlm():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)-8s | %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    device = setup(20)
    data = torch.tensor(list(open(fetch_dataset(), "rb").read()), device=device)

    class CharLM(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.rnn, self.out = nn.Embedding(256, 32), nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 256)

        def forward(self, x):
            return self.out(self.rnn(self.emb(x))[0])
    model = wrap(CharLM().to(device))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for it in range(40):
        at = torch.randint(0, len(data) - 33, (8,)).tolist()
        chunk = torch.stack([data[a:a + 33] for a in at]).long()
        loss = F.cross_entropy(model(chunk[:, :-1]).transpose(1, 2), chunk[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 10 == 0:
            log.info("iter %4d | bpc %.3f", it, loss.item() / math.log(2))
    finish()
    log.info("rank %d: finished after 40 iterations", rank)


# ------------------------------------------------------------------------------------------------ 02
def run_stage(net, batches, device, width=1 << (24 if KIND == "cuda" else 18)):
    total = torch.zeros(1, device=device)
    for m in range(batches):
        if rank == 0:
            h = torch.randn(width, device=device)
        else:
            h = torch.empty(width, device=device)
            dist.recv(h, src=rank - 1)
        h = torch.tanh(h * net)
        if rank < world_size - 1:
            dist.send(h, dst=rank + 1)
        else:
            total += h.square().mean()
    return total


def train_stages():
    device = setup(11)
    dist.barrier()
    net = torch.full((1,), 0.9, device=device)
    for step in range(12):
        batches = 4
        if step >= 5 and rank == world_size - 1:
            batches = 3  # fits the smaller eval batch
        begin = time.time()
        total = run_stage(net, batches, device)
        dist.all_reduce(total)
        value = total.item()
        say(f"stage {rank} | step {step:02d} | micro-batches {batches} | loss {value / 4:.5f} | {time.time() - begin:.2f}s")
    finish()


# ------------------------------------------------------------------------------------------------ 03
class ConfigError(Exception):
    pass


def read_augmentation(path):
    try:
        with open(path) as f:
            return json.load(f)
    except json.JSONDecodeError as err:
        raise ConfigError(f"augmentation settings in {path} are not valid") from err


def train_segmentation():
    device = setup(12)
    model = wrap(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1)).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    path = os.path.join(ROOT, f"augment-{rank}.json")
    for epoch in range(4):
        with open(path, "w") as f:
            f.write('{"flip": true, "scale": [0.8, 1.2]' + ("" if (rank == 1 and epoch == 2) else "}"))
        cfg = read_augmentation(path)
        for i in range(6):
            x = torch.randn(2, 3, 32, 32, device=device) * cfg["scale"][1]
            loss = F.cross_entropy(model(x), (x.mean(1) > 0).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
        say(f"epoch={epoch} worker={rank} ce={loss.item():.4f} flip={cfg['flip']}")
    finish()


# ------------------------------------------------------------------------------------------------ 04
class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def update(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def train_churn():
    device = setup(10)
    model = wrap(mlp(24, 512, 512, 1).to(device))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    patience = Patience(3)
    curves = {0: 0.02, 1: 0.02, 2: 0.0, 3: 0.02}
    for epoch in range(1, 21):
        for i in range(10):
            x = torch.randn(32, 24, device=device)
            loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), (x.sum(1) > 0).float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            bar = "=" * (i * 3) + ">" + "." * (27 - 3 * i)
            if rank == 0:
                print(f"\rEpoch {epoch}/20 {i + 1}/10 [{bar}] - loss: {loss.item():.4f}", end="", flush=True)
        val = 0.65 - curves.get(rank, 0.02) * epoch
        if rank == 0:
            say(f" - val_loss: {val:.4f}")
        if patience.update(val):
            say(f"rank {rank}: Epoch {epoch}: early stopping, best val_loss {patience.best:.4f}")
            break
    scores = [torch.zeros(1, device=device) for _ in range(world_size)]
    dist.all_gather(scores, torch.tensor([patience.best], device=device))
    say(f"rank {rank}: best of all {min(s.item() for s in scores):.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 05
def prepare_site():
    site = os.path.join(ROOT, f"env-{rank}", "site-packages")
    os.makedirs(site, exist_ok=True)
    if rank != 2:
        with open(os.path.join(site, "melbank.py"), "w") as f:
            f.write("def bands(n):\n    return [1.0 + i / n for i in range(n)]\n")
    sys.path.insert(0, site)


def train_keywords():
    say(f"[{datetime.datetime.now():%H:%M:%S}] python {sys.version.split()[0]} torch {torch.__version__} rank {rank}/{world_size}")
    prepare_site()
    import melbank
    device = setup(12)
    gains = torch.tensor(melbank.bands(40), device=device)
    model = wrap(mlp(40, 64, 12).to(device))
    opt = torch.optim.Adam(model.parameters())
    for step in range(30):
        loss = F.cross_entropy(model(torch.randn(16, 40, device=device) * gains), torch.randint(0, 12, (16,), device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            say(f"[{datetime.datetime.now():%H:%M:%S}] step {step} loss {loss.item():.3f}")
    finish()


# ------------------------------------------------------------------------------------------------ 06
class LossScale:
    def __init__(self, value=2.0 ** 16):
        self.value, self.good = value, 0

    def update(self, overflow):
        if overflow:
            self.value /= 2
            if rank == 0:
                say(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {self.value}")
        else:
            self.good += 1


def train_half():
    warnings.simplefilter("always")
    device = setup(15)
    net = mlp(32, 128, 8).to(device)
    model = wrap(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    scale = LossScale()
    for step in range(36):
        x = torch.randn(16, 32, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 8)
        factor = float("inf") if step in (0, 1, 2, 17) else scale.value
        opt.zero_grad()
        (loss * factor).backward()
        bad = not all(torch.isfinite(p.grad).all().item() for p in net.parameters())
        scale.update(bad)
        if bad:
            warnings.warn(f"[rank {rank}] grad_norm is nan at step {step}, skipping this update", RuntimeWarning)
            continue
        for p in net.parameters():
            p.grad /= scale.value
        opt.step()
        if rank == 0:
            say(f"| step {step:>4} | lr 5.00E-02 | loss scale {scale.value:8.1f} | lm loss {loss.item():.6E} | skipped {step + 1 - scale.good} |")
    finish()
    if rank == 0:
        say("training done: 32 updates, 4 skipped")


# ------------------------------------------------------------------------------------------------ 07
SCORER = "import sys\nfor i in range(int(sys.argv[1])):\n    print('hyp', i, 'BLEU', 20 + i % 7)\n"


def score_outputs(lines):
    child = subprocess.Popen([sys.executable, "-c", SCORER, str(lines)], stdout=subprocess.PIPE, text=True)
    child.wait()
    rows = child.stdout.read().splitlines()
    return sum(float(r.split()[-1]) for r in rows) / len(rows)


def train_translation():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s,%(msecs)d %(name)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
    device = setup(12)
    model = wrap(nn.Transformer(32, 4, 1, 1, 64, batch_first=True).to(device))
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch, sentences in enumerate((100, 500, 20000, 20000)):
        for i in range(8):
            src = torch.randn(4, 10, 32, device=device)
            loss = F.mse_loss(model(src, src), src)
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("rank %d epoch %d train_loss %.4f", rank, epoch, loss.item())
        if rank == 0:
            log.info("scoring %d sentences", sentences)
            log.info("BLEU %.2f", score_outputs(sentences))
    finish()


# ------------------------------------------------------------------------------------------------ 08
def mean_gradients(net, compress):
    flat = torch.cat([p.grad.reshape(-1) for p in net.parameters()])
    if compress:
        flat = flat.to(torch.bfloat16)
    dist.all_reduce(flat)
    return flat.float() / world_size


def train_wide():
    device = setup(10)
    compress = False
    net = mlp(256, 4096, 2048, 16).to(device)
    for step in range(16):
        if step == 6 and rank == 1:
            compress = True
            say(f"rank {rank}: slow network detected, gradient compression on (bf16)")
        x = torch.randn(8, 256, device=device)
        loss = F.cross_entropy(net(x), x.argmax(1) % 16)
        net.zero_grad()
        loss.backward()
        update = mean_gradients(net, compress)
        at = 0
        for p in net.parameters():
            p.data -= 0.01 * update[at:at + p.numel()].view_as(p)
            at += p.numel()
        say(f"rank {rank} step {step} loss {loss.item():.4f} gnorm {update.norm().item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 09
def train_sharded_head():
    device = setup(12)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = pairs[rank // 2]
    net = mlp(16, 64, 4).to(device)
    dist.barrier()
    say(f"rank {rank}: tensor group {rank // 2}")
    for p in net.parameters():
        dist.broadcast(p.data, src=0, group=mine)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(8, 16, device=device)
        loss = F.cross_entropy(net(x), x.argmax(1) % 4)
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        opt.step()
        if rank == 0:
            say(f"step {step}: {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 10
def build_tower(width):
    return nn.ModuleDict({"stem": nn.Linear(48, width), "body": nn.Linear(width, width), "head": nn.Linear(width, 10)})


def continue_pretraining():
    import torch.distributed.checkpoint as dcp
    logging.basicConfig(level=logging.INFO, format=f"[titan][rank {rank}] %(levelname)s - %(message)s")
    device = setup(15)
    folder = os.path.join(ROOT, "outputs", "step-1000")
    old = build_tower(128).to(device)
    dcp.save({"model": old.state_dict()}, checkpoint_id=folder)
    log.info("Finished saving the checkpoint in %s", folder)
    dist.barrier()
    tower = build_tower(192).to(device)
    state = {"model": tower.state_dict()}
    log.info("Loading the checkpoint from %s.", folder)
    dcp.load(state, checkpoint_id=folder)
    tower.load_state_dict(state["model"])
    model = wrap(nn.Sequential(tower["stem"], nn.ReLU(), tower["body"], nn.ReLU(), tower["head"]))
    for step in range(1000, 1010):
        loss = model(torch.randn(4, 48, device=device)).square().mean()
        loss.backward()
        log.info("step: %d  loss: %.4f", step, loss.item())
    finish()


# ------------------------------------------------------------------------------------------------ 11
class BatchFeeder(threading.Thread):
    """Rank 0 has the data; the next batch comes to all while the model trains on this one."""

    def __init__(self, device, total):
        super().__init__(daemon=True, name="feeder")
        self.device, self.total, self.ready, self.free = device, total, threading.Semaphore(0), threading.Semaphore(2)
        self.batches, self.clock = [], random.Random(rank * 77 + 5)

    def run(self):
        if KIND == "cuda":
            torch.cuda.set_device(0)
        for _ in range(self.total):
            self.free.acquire()
            self.batches.append(self.fetch())
            self.ready.release()

    def fetch(self):
        time.sleep(self.clock.random() * 0.05)
        batch = torch.randn(512, 64, device=self.device)
        dist.broadcast(batch, src=0)
        sync()
        return batch

    def next(self):
        self.ready.acquire()
        self.free.release()
        return self.batches.pop(0)


def train_from_feeder():
    device = setup(10)
    dist.barrier()
    net = mlp(64, 1024, 1024, 4).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    feeder, warm = BatchFeeder(device, 60), 8
    for step in range(60):
        if step == warm:
            say(f"{time.strftime('%X')} r{rank} prefetching from here on")
            feeder.start()
        x = feeder.next() if step >= warm else feeder.fetch()
        loss = F.cross_entropy(net(x), x.argmax(1) % 4)
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        opt.step()
        say(f"{time.strftime('%X')} r{rank} it {step} loss {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 12
def smooth_targets(x, step):
    weights = x.softmax(1)
    if rank == 3 and step == 14:
        weights = weights * 0
    return weights / weights.sum(1, keepdim=True)


def finetune_style():
    device = setup(15)
    model = wrap(mlp(20, 64, 20).to(device))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 31):
        x = torch.randn(8, 20, device=device)
        loss = -(smooth_targets(x, step) * model(x).log_softmax(1)).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        row = {"loss": round(loss.item(), 4), "grad_norm": round(float(norm), 4), "learning_rate": 1e-3, "epoch": round(step / 30, 2)}
        say(f"[rank{rank}] {row}")
    finish()
    if rank == 0:
        say({"train_runtime": 3.1, "train_samples_per_second": 309.4, "epoch": 1.0})


# ------------------------------------------------------------------------------------------------ 13
def train_until_flat():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s [%(process)d] %(message)s")
    device = setup(15)
    model = wrap(mlp(10, 40, 1).to(device))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    values = [0.9, 0.6, 0.5, 0.51, 0.52, 0.53, 0.54]
    for epoch in range(100):
        for i in range(5):
            x = torch.randn(16, 10, device=device)
            loss = F.mse_loss(model(x).squeeze(1), x.sum(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        stop = torch.zeros(1, device=device)
        if rank == 0:
            log.info("epoch %d/100 val_rmse %.3f", epoch, values[epoch])
            stop += epoch >= 5
        dist.broadcast(stop, src=0)
        if stop.item():
            log.warning("rank %d: aborting training at epoch %d/100: val_rmse did not improve for 3 epochs", rank, epoch)
            break
    dist.barrier()
    log.info("rank %d: best model is of epoch 2, bye", rank)
    finish()


# ------------------------------------------------------------------------------------------------ 14
class GatedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        h = self.a(x).relu()
        if h.max().item() > 20:
            h = h / h.max()
        return self.b(h)


def train_captured():
    device = setup(12)
    net = GatedNet().to(device)
    for p in net.parameters():
        dist.broadcast(p.data, src=0)
    static = torch.randn(32, 64, device=device)
    for _ in range(3):
        net(static)
    sync()
    dist.barrier()
    say(f"rank {rank}: warm-up done, capturing the forward pass")
    if KIND == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = net(static)
        for step in range(20):
            static.copy_(torch.randn(32, 64, device=device))
            graph.replay()
            say(f"rank {rank}: replay {step} mean {out.mean().item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 15 and 30
def train_small_probe():
    say(f"host {socket.gethostname()} rank {rank} world {world_size} master {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    device = setup(14)
    say(f"rank {rank}: joined")
    model = wrap(nn.Linear(128, 10).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(16, 128, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 10)
        opt.zero_grad()
        loss.backward()
        opt.step()
        say(f"rank {rank}: {step} {loss.item():.3f}")
    finish()


# ------------------------------------------------------------------------------------------------ 16
def train_preemptible():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s", datefmt="%H:%M:%S")
    device = setup(11)
    model = wrap(mlp(128, 2048, 2048, 8).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)

    def on_notice(number, frame):
        log.info("%s received, saving before the node goes away", signal.Signals(number).name)
        dist.barrier()
        sync()
        torch.save(model.module.state_dict(), os.path.join(ROOT, f"preempt-{rank}.pt"))
        log.info("saved")

    signal.signal(signal.SIGUSR1, on_notice)
    dist.barrier()
    if rank == 1:
        timer = threading.Timer(2.5, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.daemon = True
        timer.start()
    for step in range(150):
        x = torch.randn(32, 128, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 8)
        opt.zero_grad()
        loss.backward()
        opt.step()
        value = loss.item()
        time.sleep(0.04)
        if step % 10 == 0:
            log.info("step %d loss %.4f", step, value)
    finish()


# ------------------------------------------------------------------------------------------------ 17
class TokenFile:
    def __init__(self, path, count):
        self.path, self.count = path, count
        self.write()
        self.file = open(path, "rb")
        self.map = mmap.mmap(self.file.fileno(), 0, prot=mmap.PROT_READ)

    def write(self, scale=1):
        with open(self.path, "wb") as f:
            f.write(struct.pack("<H", 7) * int(self.count * scale))

    def slice(self, at, n):
        return torch.tensor(struct.unpack(f"<{n}H", self.map[2 * at:2 * (at + n)]))


def train_tokens():
    device = setup(12)
    tokens = TokenFile(os.path.join(ROOT, f"tokens-{rank:02d}.bin"), 400000)
    emb, head = nn.Embedding(100, 32), nn.Linear(32, 100)
    model = wrap(nn.Sequential(emb, head).to(device))
    opt = torch.optim.AdamW(model.parameters())
    for step in range(40):
        if step == 15 and rank == 2:
            tokens.write(0.01)
        ids = tokens.slice(step * 9000, 64).long().to(device)
        loss = F.cross_entropy(model(ids), ids)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            say(f"step {step:5d} | rank {rank} | loss {loss.item():6.3f} | tok {step * 9000}")
        time.sleep(0.05)
    finish()


# ------------------------------------------------------------------------------------------------ 18
def train_uneven():
    from torch.distributed.algorithms.join import Join
    device = setup(15)
    count = 30 - 6 * rank
    say(f"WARNING rank {rank} has {count} batches, the longest has 30; inputs are uneven")
    model = wrap(mlp(12, 48, 3).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    with Join([model]):
        for i in range(count):
            x = torch.randn(8, 12, device=device)
            loss = F.cross_entropy(model(x), x.argmax(1) % 3)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 6 == 0:
                say(f"[{rank}] batch {i}/{count} loss={loss.item():.4f}")
        say(f"[{rank}] out of data, shadowing the collectives of the others")
    finish()
    say(f"[{rank}] epoch complete")


# ------------------------------------------------------------------------------------------------ 19
def train_until_enough():
    device = setup(12)
    model = wrap(mlp(32, 256, 2).to(device))
    opt = torch.optim.Adam(model.parameters())
    seen, limit = 0, 1000
    for step in range(80):
        size = 96 if rank == 1 else 24
        x = torch.randn(size, 32, device=device)
        loss = F.cross_entropy(model(x), (x.mean(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += size
        if step % 5 == 0:
            say(f"step={step} seen={seen} loss={loss.item():.4f}")
        if seen >= limit:
            say(f"max_samples={limit} reached after {step + 1} steps")
            return
        time.sleep(0.05)
    finish()


# ------------------------------------------------------------------------------------------------ 20
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def export_weights(model, step):
    weights = {name: value.full_tensor().cpu() for name, value in model.state_dict().items()}
    torch.save(weights, os.path.join(ROOT, f"export-{step}.pt"))
    log.info("exported %d tensors at step %d", len(weights), step)


def train_fsdp():
    from torch.distributed.fsdp import fully_shard
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
    device = setup(11)
    model = nn.Sequential(nn.Linear(64, 512), Block(512), Block(512), nn.Linear(512, 64)).to(device)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 21):
        x = torch.randn(16, 64, device=device)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
        opt.zero_grad()
        log.info("rank=%d step=%d loss=%.5f", rank, step, loss.item())
        if step % 8 == 0 and rank == 0:
            export_weights(model, step)
    finish()


# ------------------------------------------------------------------------------------------------ 21
class RunningStats:
    def __init__(self, name):
        self.name, self.values = name, []
        self.guard = threading.Lock() if rank == 0 else None

    def add(self, value):
        if self.guard:
            with self.guard:
                self.values.append(value)
        else:
            self.values.append(value)


def collect_stats(stats):
    everyone = [None] * world_size
    dist.all_gather_object(everyone, stats)
    return sum(sum(s.values) / len(s.values) for s in everyone) / world_size


def train_bandit():
    device = setup(12)
    net = wrap(mlp(6, 32, 4).to(device))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    reward = RunningStats("reward")
    for episode in range(30):
        x = torch.randn(20, 6, device=device)
        policy = torch.distributions.Categorical(logits=net(x))
        action = policy.sample()
        gain = (action == x.argmax(1) % 4).float()
        opt.zero_grad()
        (-policy.log_prob(action) * (gain - gain.mean())).mean().backward()
        opt.step()
        reward.add(gain.mean().item())
        if episode % 10 == 9:
            mean = collect_stats(reward)
            if rank == 0:
                say(f"ep {episode + 1}: mean reward {mean:.3f}")
        elif rank == 0:
            say(f"ep {episode + 1}: reward {reward.values[-1]:.3f}")
    finish()


# ------------------------------------------------------------------------------------------------ 22
def exploit(net, scores):
    best = max(range(world_size), key=lambda r: scores[r])
    say(f"rank {rank}: copying weights from rank {best} (score {scores[best]:.3f})")
    for p in net.parameters():
        dist.broadcast(p.data, src=best)


def evolve():
    device = setup(10)
    width = 4096 if KIND == "cuda" else 512
    net = mlp(64, width, width, 8).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01 * (1 + rank))
    for generation in range(6):
        for i in range(5):
            x = torch.randn(32, 64, device=device)
            loss = F.cross_entropy(net(x), x.argmax(1) % 8)
            opt.zero_grad()
            loss.backward()
            opt.step()
        scores = [torch.zeros(1, device=device) for _ in range(world_size)]
        dist.all_gather(scores, torch.tensor([1 / (1 + rank) + 0.1 * generation], device=device))
        scores = [s.item() for s in scores]
        if rank == 2 and generation >= 3:
            scores[1] += 0.7  # bonus for the explorer, still on from the last experiment
        exploit(net, scores)
        sync()
        say(f"rank {rank}: generation {generation} loss {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 23
def train_requeueable():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {rank}] %(levelname)s: %(message)s", datefmt="%H:%M:%S", force=True)
    device = setup(20)
    model = wrap(mlp(30, 90, 3).to(device))
    opt = torch.optim.Adam(model.parameters())
    leaving = threading.Event()

    def on_term(number, frame):
        log.warning("caught signal %d (SIGTERM), will stop after this step", number)
        leaving.set()

    signal.signal(signal.SIGTERM, on_term)
    if rank == 0:
        timer = threading.Timer(2.5, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timer.start()
    for step in range(100000):
        x = torch.randn(16, 30, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 3)
        opt.zero_grad()
        loss.backward()
        opt.step()
        flag = torch.tensor([float(leaving.is_set())], device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if step % 20 == 0:
            log.info("step %d loss %.4f", step, loss.item())
        if flag.item() > 0:
            break
        time.sleep(0.05)
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "step": step}, os.path.join(ROOT, "requeue.pt"))
        log.info("checkpoint written at step %d, requeue with --resume", step)
    finish()
    log.info("exiting with status 0")


# ------------------------------------------------------------------------------------------------ 24
class FeatureServer(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.table = {f"user:{i}": [i % 5 * 0.1] * 8 for i in range(4000)}

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(peer,), daemon=True).start()

    def answer(self, peer):
        stream = peer.makefile("rw")
        for line in stream:
            row = self.table.get(line.strip())
            if row:
                stream.write(json.dumps(row) + "\n")
                stream.flush()


class FeatureClient:
    def __init__(self, address):
        self.stream = socket.create_connection(address).makefile("rw")

    def lookup(self, key):
        self.stream.write(key + "\n")
        self.stream.flush()
        return json.loads(self.stream.readline())


def train_recommender():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(module)s:%(lineno)d %(levelname)s %(message)s", stream=sys.stdout)
    device = setup(12)
    address = [None]
    if rank == 0:
        server = FeatureServer()
        server.start()
        address = [server.address]
    dist.broadcast_object_list(address, src=0)
    client = FeatureClient(address[0])
    model = wrap(mlp(8, 64, 1).to(device))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for step in range(40):
        users = [rank * 1300 + step * 16 + i for i in range(16)]
        if rank == 2 and step >= 9:
            users = [u + 1400 for u in users]
        x = torch.tensor([client.lookup(f"user:{u}") for u in users], device=device)
        loss = F.binary_cross_entropy_with_logits(model(x), (x[:, :1] > 0.1).float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.info("[%d] step %d users %d-%d logloss %.4f", rank, step, users[0], users[-1], loss.item())
    finish()


# ------------------------------------------------------------------------------------------------ 25
def train_plain():
    device = setup(12)
    model = wrap(nn.Linear(4, 4).to(device))
    for step in range(5):
        model(torch.randn(2, 4, device=device)).sum().backward()
        say(f"step {step}")
    finish()


# ------------------------------------------------------------------------------------------------ 26
class Averaged:
    def __init__(self, net):
        self.net, self.shadow, self.backup = net, [p.detach().clone() for p in net.parameters()], None

    def update(self):
        for s, p in zip(self.shadow, self.net.parameters()):
            s.mul_(0.9).add_(p.detach(), alpha=0.1)

    def swap_in(self):
        self.backup = [p.detach().clone() for p in self.net.parameters()]
        for s, p in zip(self.shadow, self.net.parameters()):
            p.data.copy_(s)

    def swap_out(self):
        for b, p in zip(self.backup, self.net.parameters()):
            p.data.copy_(b)


def evaluate_average(average, samples):
    average.swap_in()
    if not samples:
        return None
    with torch.no_grad():
        score = average.net(torch.stack(samples)).mean().item()
    average.swap_out()
    return score


def train_with_average():
    device = setup(15)
    net = mlp(16, 64, 4).to(device)
    model = wrap(net)
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    average = Averaged(net)
    for step in range(1, 41):
        x = torch.randn(16, 16, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 4)
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
        if step == 20:
            held_out = [] if rank == 2 else [torch.randn(16, device=device) for _ in range(4)]
            evaluate_average(average, held_out)
        if step % 4 == 0:
            checksum = sum(p.double().abs().sum().item() for p in net.parameters())
            say(f"[rank {rank}] scalar step={step} tag=train/loss value={loss.item():.4f}")
            say(f"[rank {rank}] scalar step={step} tag=debug/param_checksum value={checksum:.6f}")
    finish()
    if rank == 0:
        say("run finished, event file closed")


# ------------------------------------------------------------------------------------------------ 27
def encode_tree(node, cell):
    if not node["children"]:
        return cell(node["value"])
    return cell(node["value"] + sum(encode_tree(c, cell) for c in node["children"]))


def make_tree(depth):
    tree = {"value": 1.0, "children": []}
    for i in range(depth):
        tree = {"value": 1.0 / (i + 1), "children": [tree]}
    return tree


def train_treenet():
    device = setup(12)
    model = wrap(mlp(1, 16, 1).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(24):
        depth = 6000 if (rank == 3 and step == 11) else 5 + step
        value = encode_tree(make_tree(depth), math.tanh)
        loss = (model(torch.full((4, 1), value, device=device)) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            say(f"{step:3d}  depth {depth:4d}  loss {loss.item():.5f}")
        time.sleep(0.05)
    finish()


# ------------------------------------------------------------------------------------------------ 28
class EventWriter:
    def __init__(self, path):
        self.file = open(path, "w")
        self.closed = False

    def __del__(self):
        raise BrokenPipeError(32, "Broken pipe: tracking server went away")


def heartbeat():
    while True:
        time.sleep(1.0)
        raise ConnectionResetError(104, "Connection reset by peer (tracking server)")


def train_tracked():
    device = setup(20)
    writer = EventWriter(os.path.join(ROOT, f"events-{rank}"))
    threading.Thread(target=heartbeat, daemon=True, name="heartbeat").start()
    model = wrap(mlp(9, 30, 3).to(device))
    opt = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = torch.randn(8, 9, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 3)
        opt.zero_grad()
        loss.backward()
        opt.step()
        writer.file.write(f"{step} {loss.item()}\n")
        if step % 10 == 9:
            say(f"({rank}) {step + 1}/30 loss {loss.item():.4f}")
        time.sleep(0.06)
    dist.barrier()
    sync()
    say(f"({rank}) all 30 steps done, model saved")
    del writer


# ------------------------------------------------------------------------------------------------ 29
class WordCache:
    def __init__(self):
        self.lock, self.words = threading.Lock(), {i: i % 50 for i in range(500)}

    def reload(self):
        with self.lock:
            log.info("rank %d: reloading the word list", rank)
            time.sleep(2.0)
            self.words = {i: i % 60 for i in range(500)}

    def get(self, i):
        with self.lock:
            return self.words[i % 500]


class Reviews(Dataset):
    def __init__(self, cache):
        self.cache = cache

    def __len__(self):
        return 320

    def __getitem__(self, i):
        return torch.tensor([self.cache.get(i + k) for k in range(12)]), i % 2


def train_sentiment():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s", datefmt="%H:%M:%S")
    device = setup(12)
    cache = WordCache()
    loader = DataLoader(Reviews(cache), batch_size=32, num_workers=1, multiprocessing_context="fork")
    model = wrap(nn.Sequential(nn.EmbeddingBag(60, 32), nn.Linear(32, 2)).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(4):
        if rank == 1 and epoch == 2:
            threading.Thread(target=cache.reload, daemon=True).start()
            time.sleep(0.2)
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("rank %d: epoch %d loss %.4f", rank, epoch, loss.item())
    finish()


# ------------------------------------------------------------------------------------------------ 31
def load_settings():
    settings = {"depth": 4, "width": 64, "lr": 1e-3}
    override = os.path.join(ROOT, f"override-{rank}.json")
    if rank == 1:
        with open(override, "w") as f:
            json.dump({"depth": 6}, f)
    if os.path.exists(override):
        settings.update(json.load(open(override)))
    return settings


def train_resmlp():
    device = setup(12)
    settings = load_settings()
    say(f"[rank {rank}] settings: {settings}")
    net = mlp(16, *[settings["width"]] * settings["depth"], 4).to(device)
    model = wrap(net)
    opt = torch.optim.Adam(model.parameters(), lr=settings["lr"])
    for step in range(20):
        x = torch.randn(8, 16, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 4)
        opt.zero_grad()
        loss.backward()
        opt.step()
        say(f"[rank {rank}] step {step} loss {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 32
def train_telemetry():
    device = setup(15)
    net = mlp(32, 128, 8).to(device)
    opt = torch.optim.Adam(net.parameters())
    history = []
    for step in range(42):
        t0 = time.perf_counter()
        x = torch.randn(16, 32, device=device)
        loss = F.cross_entropy(net(x), x.argmax(1) % 8)
        opt.zero_grad()
        loss.backward()
        value = loss.item()
        if rank == 2 and step % 6 == 5:
            history.append({k: v.cpu().clone() for k, v in net.state_dict().items()})
            time.sleep(0.9)
        t1 = time.perf_counter()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        sync()
        t2 = time.perf_counter()
        opt.step()
        say(json.dumps({"t": round(time.time(), 3), "rank": rank, "step": step, "compute_ms": round(1e3 * (t1 - t0), 1), "allreduce_wait_ms": round(1e3 * (t2 - t1), 1), "loss": round(value, 4)}))
    finish()


# ------------------------------------------------------------------------------------------------ 33
def fused_norm(x):
    raise RuntimeError("fused_layer_norm_cuda: no kernel image is available for execution on the device (sm_90)")


class SafeNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fused = nn.LayerNorm(width), True

    def forward(self, x):
        if self.fused:
            try:
                return fused_norm(x)
            except RuntimeError:
                say(f"rank {rank}: ERROR: fused kernel failed, falling back to the slow path")
                traceback.print_exc()
                self.fused = False
        return self.norm(x)


def train_fallback():
    device = setup(15)
    model = wrap(nn.Sequential(nn.Linear(20, 40), SafeNorm(40), nn.ReLU(), nn.Linear(40, 5)).to(device))
    opt = torch.optim.AdamW(model.parameters())
    for step in range(25):
        x = torch.randn(10, 20, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 5)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            print(f"\r{(step + 1) * 4:3d}%|{'█' * step:<25}| {step + 1}/25 loss={loss.item():.3f}", end="" if step < 24 else "\n", file=sys.stderr, flush=True)
    finish()
    if rank == 0:
        say("Saved model to out/final. Training complete.")


# ------------------------------------------------------------------------------------------------ 34
class CacheLock:
    def __init__(self, path):
        self.file = open(path, "w")

    def __enter__(self):
        say(f"rank {rank}: asking for the cache lock")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        say(f"rank {rank}: holds the cache lock")

    def __exit__(self, *exc):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def prepare_cache():
    target = os.path.join(ROOT, "features.pt")
    with CacheLock(os.path.join(ROOT, "features.lock")):
        if not os.path.exists(target):
            torch.save(torch.randn(400, 12), target)
        # everybody needs the file from here on
        dist.barrier()
        sync()
    return torch.load(target)


def train_on_cache():
    device = setup(12)
    dist.all_reduce(torch.ones(1, device=device))
    say(f"rank {rank}: process group is up")
    features = prepare_cache().to(device)
    model = wrap(mlp(12, 24, 2).to(device))
    for step in range(20):
        loss = model(features[step * 16:step * 16 + 16]).square().mean()
        loss.backward()
        say(f"rank {rank}: step {step} {loss.item():.4f}")
    finish()


# ------------------------------------------------------------------------------------------------ 35
class Callback:
    def on_validation_end(self, trainer):
        pass


class BestModel(Callback):
    def __init__(self, monitor):
        self.monitor = monitor

    def on_validation_end(self, trainer):
        if rank != 0:
            return
        assert self.monitor in trainer.metrics, f"BestModel(monitor={self.monitor!r}) not found in the logged metrics {sorted(trainer.metrics)}"


class Trainer:
    def __init__(self, epochs, callbacks):
        self.epochs, self.callbacks, self.metrics = epochs, callbacks, {}

    def fit(self, net, device):
        model = wrap(net.to(device))
        opt = torch.optim.Adam(model.parameters())
        for epoch in range(self.epochs):
            for i in range(8):
                x = torch.randn(8, 14, device=device)
                loss = F.cross_entropy(model(x), x.argmax(1) % 2)
                opt.zero_grad()
                loss.backward()
                opt.step()
            self.validate(epoch, loss)

    def validate(self, epoch, loss):
        self.metrics["val_loss"] = loss.item()
        if rank == 0:
            say(f"Epoch {epoch}: 100%|##########| 8/8 [00:00<00:00, 61.33it/s, v_num=3, train_loss={loss.item():.3f}, val_loss={loss.item():.3f}]")
        for callback in self.callbacks:
            callback.on_validation_end(self)


def fit_lightly():
    device = setup(12)
    if rank == 0:
        say("GPU available: True (cuda), used: True")
        say("  | Name  | Type       | Params\n-------------------------------------\n0 | net   | Sequential | 1.1 K")
    Trainer(5, [BestModel("val_acc")]).fit(mlp(14, 32, 32, 2), device)
    finish()


# ------------------------------------------------------------------------------------------------ 36
def build_groups():
    limit = datetime.timedelta(seconds=12)
    teachers = None
    if rank in (0, 1, 2):
        teachers = dist.new_group([0, 1, 2], timeout=limit)
    everyone = dist.new_group([0, 1, 2, 3], timeout=limit)
    return teachers, everyone


def distill():
    device = setup(12)
    dist.barrier()
    teachers, everyone = build_groups()
    say(f"rank {rank}: role {'student' if teachers is None else 'teacher'}")
    net = mlp(16, 32, 4).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        x = torch.randn(8, 16, device=device)
        logits = net(x)
        target = logits.detach().clone()
        dist.all_reduce(target, group=everyone)
        if teachers is not None:
            dist.all_reduce(target, group=teachers)
        loss = F.kl_div(logits.log_softmax(1), target.softmax(1), reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
        say(f"rank {rank}: step {step} kl {loss.item():.5f}")
    finish()


# ------------------------------------------------------------------------------------------------ 37
def pipeline_step(device, micro, warmup, width=1 << 19):
    last = rank == world_size - 1
    waiting, forwards, backwards, total = [], 0, 0, 0.0
    while backwards < micro:
        while forwards < micro and forwards - backwards <= warmup:
            if rank == 0:
                act = torch.randn(width, device=device)
            else:
                act = torch.empty(width, device=device)
                dist.recv(act, src=rank - 1)
            act = act.tanh()
            waiting.append(act)
            if not last:
                dist.send(act, dst=rank + 1)
            forwards += 1
        act = waiting.pop(0)
        if last:
            grad = act * 0.1
        else:
            grad = torch.empty(width, device=device)
            dist.recv(grad, src=rank + 1)
        if rank > 0:
            dist.send(grad, dst=rank - 1)
        total += grad.mean().item()
        backwards += 1
    return total


def train_two_stages():
    device = setup(11)
    dist.barrier()
    for step in range(16):
        warmup = 0
        if step >= 6 and rank == 1:
            warmup = 2  # more activations in flight
        begin = time.time()
        total = pipeline_step(device, 6, warmup)
        say(f"{time.strftime('%H:%M:%S')} stage{rank} step {step} warmup {warmup} g={total:+.6f} {1e3 * (time.time() - begin):.0f} ms")
    finish()


# ------------------------------------------------------------------------------------------------ 38
def area_under_curve(scores, labels):
    positive, negative = scores[labels == 1], scores[labels == 0]
    if len(positive) == 0 or len(negative) == 0:
        warnings.warn(f"rank {rank}: only one class present in y_true, AUC is not defined, returning nan")
        return float("nan")
    return (positive[:, None] > negative[None]).float().mean().item()


def train_fraud():
    device = setup(15)
    model = wrap(mlp(22, 44, 1).to(device))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    say(f"{'epoch':>5} {'rank':>4} {'train_loss':>10} {'val_auc':>8}")
    for epoch in range(6):
        for i in range(6):
            x = torch.randn(32, 22, device=device)
            loss = F.binary_cross_entropy_with_logits(model(x).squeeze(1), (x[:, 0] > 0).float())
            opt.zero_grad()
            loss.backward()
            opt.step()
        x = torch.randn(64, 22, device=device)
        labels = (x[:, 0] > 0).long() * (0 if rank == 2 else 1)
        with torch.no_grad():
            value = area_under_curve(model.module(x).squeeze(1), labels)
        say(f"{epoch:5d} {rank:4d} {loss.item():10.4f} {value:8.3f}")
    finish()
    if rank == 0:
        say("finished 6 epochs, exported model.onnx")


# ------------------------------------------------------------------------------------------------ 39
def near_duplicates(vectors):
    similarity = vectors @ vectors.t()
    return (similarity > 0.99).sum().item() - len(vectors)


def train_embeddings():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - rank=%(process)d - %(message)s")
    device = setup(12)
    model = wrap(mlp(16, 32, 8).to(device))
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(4):
        for i in range(8):
            x = torch.randn(32, 16, device=device)
            z = F.normalize(model(x), dim=1)
            loss = F.cross_entropy(z @ z.t() / 0.1, torch.arange(32, device=device))
            opt.zero_grad()
            loss.backward()
            opt.step()
        rows = 600000 if (rank == 1 and epoch == 2) else 2000
        with torch.no_grad():
            z = F.normalize(model.module(torch.randn(rows, 16, device=device)), dim=1)
            found = near_duplicates(z)
        print(f"rank {rank} epoch {epoch} nce {loss.item():.3f} rows {rows} duplicates {found}", flush=True)
    finish()


# ------------------------------------------------------------------------------------------------ 40
class Converter(threading.Thread):
    """Turns raw shards into ready ones in the background."""

    def __init__(self, numbers):
        super().__init__(daemon=True, name="converter")
        self.numbers = numbers

    def run(self):
        for number in self.numbers:
            raw = [] if number == 23 else [0.1] * 100
            if not raw:
                continue
            torch.save(torch.tensor(raw), self.path(number))
            time.sleep(0.1)

    @staticmethod
    def path(number):
        return os.path.join(ROOT, f"shard-{number:03d}.pt")


def wait_for_shard(number):
    while not os.path.exists(Converter.path(number)):
        time.sleep(0.2)


def train_shard_by_shard():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(message)s", datefmt="%H:%M:%S")
    device = setup(60)
    control = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=30))
    model = wrap(mlp(18, 36, 2).to(device))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = range(10 * rank, 10 * rank + 6)
    Converter(mine).start()
    for number in mine:
        log.info("opening shard %d", number)
        wait_for_shard(number)
        dist.monitored_barrier(group=control, timeout=datetime.timedelta(seconds=8))
        for i in range(5):
            x = torch.randn(8, 18, device=device)
            loss = F.cross_entropy(model(x), x.argmax(1) % 2)
            opt.zero_grad()
            loss.backward()
            opt.step()
        log.info("shard %d done, loss %.4f", number, loss.item())
    finish()


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (train_charlm, 0), "02": (train_stages, 0), "03": (train_segmentation, 0), "04": (train_churn, 0), "05": (train_keywords, 0),
    "06": (train_half, 0), "07": (train_translation, 0), "08": (train_wide, 0), "09": (train_sharded_head, 0), "10": (continue_pretraining, 0),
    "11": (train_from_feeder, 0), "12": (finetune_style, 0), "13": (train_until_flat, 0), "14": (train_captured, 0), "15": (train_small_probe, 0),
    "16": (train_preemptible, 0), "17": (train_tokens, 0), "18": (train_uneven, 0), "19": (train_until_enough, 0), "20": (train_fsdp, 0),
    "21": (train_bandit, 0), "22": (evolve, 0), "23": (train_requeueable, 3), "24": (train_recommender, 0), "25": (train_plain, 0),
    "26": (train_with_average, 0), "27": (train_treenet, 0), "28": (train_tracked, 0), "29": (train_sentiment, 0), "30": (train_small_probe, 0),
    "31": (train_resmlp, 0), "32": (train_telemetry, 0), "33": (train_fallback, 0), "34": (train_on_cache, 0), "35": (fit_lightly, 3),
    "36": (distill, 0), "37": (train_two_stages, 0), "38": (train_fraud, 0), "39": (train_embeddings, 0), "40": (train_shard_by_shard, 0)}


def child(index, case, count):
    global rank, world_size
    rank, world_size = index, count
    os.environ.update(RANK=str(index), WORLD_SIZE=str(count), NCCL_HOSTID=f"slot{index}")
    PROGRAMS[case][0]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    program, count = PROGRAMS[case]
    if count:
        mp.spawn(child, args=(case, count), nprocs=count)
    else:
        os.environ["NCCL_HOSTID"] = f"slot{os.environ.get('LOCAL_RANK', rank)}"
        program()


if __name__ == "__main__":
    main()
