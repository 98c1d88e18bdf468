#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a seventh set: user_job7.py --case NN (two digits). Truth in truth.json, started by user_jobs7.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job. What is printed, and the names in the stacks, are a user's."""
import argparse
import collections
import contextlib
import datetime
import faulthandler
import glob
import http.server
import json
import logging
import math
import os
import random
import signal
import socket
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
from torch.utils.data import DataLoader, Dataset, IterableDataset

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab7-scratch")
BACKEND = "nccl" if KIND == "cuda" else "gloo"
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
if KIND == "cpu":
    torch.set_num_threads(1)


def limit(seconds):
    return datetime.timedelta(seconds=seconds)


def connect(seconds=12, seed=11):
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=limit(seconds))
    torch.manual_seed(seed)
    return torch.device("cuda:0" if KIND == "cuda" else "cpu")


def replicate(module, **options):
    model = DDP(module, device_ids=[0] if KIND == "cuda" else None, **options)
    torch.manual_seed(500 + R)
    return model


def wait_gpu():
    if KIND == "cuda":
        torch.cuda.synchronize()


def goodbye():
    dist.barrier()
    wait_gpu()
    dist.destroy_process_group()


def p(*words, **options):
    print(*words, **options, flush=True)


def stamp():
    return datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


# ------------------------------------------------------------------------------------------------ boxes
class BoxNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(8))
        self.neck, self.head = nn.Linear(1024, 1024), nn.Linear(1024, 4)

    def forward(self, images):
        return self.head(self.neck(self.stem(images).flatten(1)).relu())


def read_annotations(index):
    dice = random.Random(R * 1000 + index)
    boxes = [[dice.uniform(0, 50), dice.uniform(0, 50), dice.uniform(8, 14), dice.uniform(8, 14)] for _ in range(4)]
    if R == 2 and index == 9:
        boxes = [[x, y, w / 10, h / 10] for x, y, w, h in boxes]
    return [b for b in boxes if b[2] * b[3] > 16]


def train_detector():
    device = connect(11)
    model = replicate(BoxNet().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    for epoch in range(3):
        for index in range(24):
            boxes = read_annotations(index)
            if not boxes:
                p(f"[epoch {epoch}][{index}/24] rank{R}: image without boxes, next")
                continue
            images = torch.randn(4, 3, 64, 64, device=device)
            target = torch.tensor(boxes[:1] * 4, device=device)
            loss = F.smooth_l1_loss(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if index % 6 == 0:
                p(f"[epoch {epoch}][{index}/24] rank{R}: loss_box {loss.item():.4f} boxes {len(boxes)}")
        hits = [torch.zeros(2, device=device) for _ in range(W)]
        dist.all_gather(hits, torch.tensor([12.0, 24.0], device=device))
        total = torch.stack(hits).sum(0).tolist()
        p(f"[epoch {epoch}] rank{R}: AP50 {total[0] / total[1]:.3f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ sharded language model
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


class TinyLM(nn.Module):
    def __init__(self, vocab=2000, width=512, depth=4):
        super().__init__()
        self.embed, self.out = nn.Embedding(vocab, width), nn.Linear(width, vocab)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


@torch.no_grad()
def write_sample(model, device, length=16):
    model.eval()
    ids = torch.zeros(1, 1, dtype=torch.long, device=device)
    for _ in range(length):
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
    model.train()
    return ids[0].tolist()


def pretrain_sharded():
    from torch.distributed.fsdp import fully_shard
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s: %(message)s", datefmt="%m/%d %H:%M:%S")
    device = connect(12)
    model = TinyLM().to(device)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    torch.manual_seed(500 + R)
    for step in range(1, 41):
        ids = torch.randint(0, 2000, (4, 65), device=device)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if step % 2 == 0:
            logging.info("rank %d | step %3d | loss %.4f | tok/s %d", R, step, value, 4 * 64 * 30)
        if step % 10 == 0 and R == 0:
            logging.info("sampling at step %d", step)
            logging.info("sample: %s", write_sample(model, device))
    goodbye()


# ------------------------------------------------------------------------------------------------ click logs
class ClickLog(IterableDataset):
    def __init__(self, files, rows=40):
        self.files, self.rows = files, rows

    def __iter__(self):
        for name in self.files:
            dice = random.Random(name)
            for _ in range(self.rows):
                x = torch.tensor([dice.gauss(0, 1) for _ in range(64)])
                yield x, (x[0] > 0).float()


def draw(done, text, width=30):
    filled = min(width, done)
    print(f"\r{text} |{'#' * filled}{'-' * (width - filled)}| {done} it", end="", flush=True)


def train_clicks():
    device = connect(12)
    files = [f"part-{n:05d}.parquet" for n in range(8)]
    mine = files[R::W]
    p(f"worker {R}: {len(mine)} of {len(files)} files: {' '.join(mine)}")
    model = replicate(nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 1)).to(device))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for epoch in range(2):
        count = 0
        for x, y in DataLoader(ClickLog(mine), batch_size=8):
            loss = F.binary_cross_entropy_with_logits(model(x.to(device)).squeeze(1), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
            count += 1
            draw(count, f"worker {R} epoch {epoch} logloss {value:.4f}")
        p(f"\nworker {R} epoch {epoch}: {count} batches, now the validation")
        score = torch.rand(4, device=device)
        dist.broadcast(score, src=0)
        p(f"worker {R} epoch {epoch}: auc {0.5 + 0.1 * score[0].item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ nothing in the folder
def train_folder():
    folder = os.path.join(WORK, "wav")
    os.makedirs(folder, exist_ok=True)
    for name in ("a", "b", "c"):
        with open(os.path.join(folder, name + ".wav"), "wb") as f:
            f.write(b"RIFF" + bytes(400))
    mine = sorted(glob.glob(os.path.join(folder, "*.wav")))[R::W]
    p(f"{stamp()} task {R}/{W} on {socket.gethostname()}: {len(mine)} recordings")
    if not mine:
        p(f"{stamp()} task {R}: nothing to do for me")
        sys.exit(0)
    device = connect(14)
    model = replicate(nn.Conv1d(1, 16, 9).to(device))
    for step in range(20):
        loss = model(torch.randn(2, 1, 400, device=device)).square().mean()
        loss.backward()
        p(f"{stamp()} task {R}: step {step} {loss.item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ named entities
def span_scores(found, gold):
    precision = len(found & gold) / len(found)
    recall = len(found & gold) / len(gold)
    return 2 * precision * recall / (precision + recall)


def evaluate_spans(epoch, group):
    dice = random.Random(epoch * 31 + R)
    gold = {(i, i + 2) for i in range(0, 40, 2)}
    found = {s for s in gold if dice.random() < 0.6}
    if R == 1 and epoch == 2:
        found = {(s + 1, e + 1) for s, e in found}
    try:
        mine = {"rank": R, "f1": span_scores(found, gold)}
        rows = [None] * W
        dist.all_gather_object(rows, mine, group=group)
        return sum(r["f1"] for r in rows) / W
    except ArithmeticError as err:
        logging.warning("rank %d: evaluation of epoch %d not possible (%s), going on without", R, epoch, err)
        return float("nan")


def train_tagger():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
    device = connect(25)
    group = dist.new_group(backend="gloo", timeout=limit(12))
    model = replicate(nn.LSTM(128, 512, 2, batch_first=True).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(5):
        for _ in range(10):
            out, _state = model(torch.randn(4, 20, 128, device=device))
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logging.info("rank %d: epoch %d train loss %.5f", R, epoch, loss.item())
        f1 = evaluate_spans(epoch, group)
        logging.info("rank %d: epoch %d span f1 %.3f", R, epoch, f1)
    goodbye()


# ------------------------------------------------------------------------------------------------ images over http
class ImageStore(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("/212.jpg"):
            time.sleep(3600)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(range(192)))

    def log_message(self, *args):
        pass


class WebImages(Dataset):
    def __init__(self, base, first):
        self.base, self.first = base, first

    def __len__(self):
        return 100

    def __getitem__(self, index):
        url = f"{self.base}/{self.first + index}.jpg"
        if index % 4 == 0:
            p(f"{stamp()} loader: GET {url}")
        with urllib.request.urlopen(url) as reply:
            return torch.tensor(list(reply.read()), dtype=torch.float32) / 255


def train_on_web_images():
    device = connect(1800)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ImageStore)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    data = WebImages(f"http://127.0.0.1:{server.server_port}/cat", 80 * R)
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="fork")
    model = replicate(nn.Sequential(nn.Linear(192, 512), nn.ReLU(), nn.Linear(512, 192)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step, x in enumerate(loader):
        p(f"{stamp()} rank {R}: batch {step} is here")
        loss = F.mse_loss(model(x.to(device)), x.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        p(f"{stamp()} rank {R}: batch {step} mse {loss.item():.5f}")
        time.sleep(0.1)
    goodbye()


# ------------------------------------------------------------------------------------------------ experts
class Router:
    def __init__(self, device, group):
        self.load, self.group, self.device = torch.zeros(8, device=device), group, device

    def share(self):
        dist.all_reduce(self.load, group=self.group)
        return self.load.sum().item()


def reduce_gradients(net):
    flat = torch.cat([q.grad.flatten() for q in net.parameters()])
    dist.all_reduce(flat)
    return flat.norm().item()


def train_experts():
    device = connect(11)
    groups = [dist.new_group([0, 1], timeout=limit(11)), dist.new_group([2, 3], timeout=limit(11))]
    router = Router(device, groups[R // 2])
    net = nn.Sequential(nn.Linear(128, 2048), nn.GELU(), nn.Linear(2048, 128)).to(device)
    p(f"r{R} expert group {R // 2}")
    for step in range(1, 25):
        x = torch.randn(64, 128, device=device)
        loss = (net(x) - x).square().mean()
        net.zero_grad()
        loss.backward()
        router.load.fill_(16.0 + (20.0 if R == 3 and step >= 9 else 0.0))
        if router.load.max().item() > 32:
            p(f"r{R} step {step} capacity exceeded, balancing first")
            tokens = router.share()
            norm = reduce_gradients(net)
        else:
            norm = reduce_gradients(net)
            tokens = router.share()
        p(f"r{R} step {step} loss {loss.item():.4f} grad {norm:.3f} tokens {tokens:.0f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ heat equation
def read_partition(step):
    """Who has the neighbouring cells."""
    path = os.path.join(WORK, f"partition-{R}.json")
    with open(path, "w") as f:
        json.dump({"parts": 3 if (R == 2 and step > 0) else W}, f)
    with open(path) as f:
        parts = json.load(f)["parts"]
    return (R - 1) % parts, (R + 1) % parts


def exchange(field, left, right):
    halo = torch.empty_like(field[0])
    ops = [dist.P2POp(dist.isend, field[-1].contiguous(), right), dist.P2POp(dist.irecv, halo, left)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    return halo


def solve_heat():
    device = connect(12)
    dist.barrier()
    field = torch.randn(8, 1 << 20, device=device)
    left, right = read_partition(0)
    for step in range(20):
        if step == 10:
            left, right = read_partition(step)
            p(f"rank {R}: re-read the partition, left {left} right {right}")
        halo = exchange(field, left, right)
        field = 0.5 * field + 0.5 * torch.roll(field, 1, 0)
        field[0] = 0.5 * field[0] + 0.5 * halo
        p(f"rank {R}: t={step * 0.1:.1f} left={left} right={right} energy={field.square().mean().item():.6f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ instruction tuning
@contextlib.contextmanager
def main_process_first():
    if R > 0:
        dist.barrier()
        wait_gpu()
    yield
    if R == 0:
        dist.barrier()
        wait_gpu()


def tokenize_all(rows=52002):
    path = os.path.join(WORK, "cache-3fa8.arrow")
    if os.path.exists(path):
        return path
    begin, done = time.time(), 0
    while done < rows:
        time.sleep(0.5)
        done = min(rows, done + 800)
        percent = 100 * done // rows
        rate = done / (time.time() - begin)
        print(f"\rRunning tokenizer on dataset:  {percent:2d}%|{'█' * (percent // 10):<10}| {done}/{rows} [{time.time() - begin:05.1f}s, {rate:.2f} examples/s]", end="", file=sys.stderr, flush=True)
    open(path, "w").close()
    return path


def tune_instructions():
    device = connect(12)
    p(f"{datetime.datetime.now():%m/%d/%Y %H:%M:%S} - WARNING - __main__ - Process rank: {R}, device: {device}, n_gpu: 1, distributed training: True, 16-bits training: False")
    dist.all_reduce(torch.ones(1, device=device))
    with main_process_first():
        tokenize_all()
    model = replicate(nn.Linear(64, 64).to(device))
    for step in range(20):
        loss = model(torch.randn(4, 64, device=device)).square().mean()
        loss.backward()
        if R == 0:
            p({"loss": round(loss.item(), 4), "learning_rate": 2e-05, "epoch": round(step / 20, 2)})
    goodbye()


# ------------------------------------------------------------------------------------------------ run folders
def run_folder():
    name = time.strftime("run_%H%M%S") + f"_{os.getpid() % 1000:03d}"
    folder = os.path.join(WORK, "runs", name)
    os.makedirs(folder, exist_ok=True)
    return folder


def train_with_run_folder():
    device = connect(1800)
    dist.all_reduce(torch.ones(1, device=device))
    wait_gpu()
    folder = run_folder()
    if R == 0:
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({"lr": 0.1, "width": 64}, f)
        p(f"[{R}] wrote {folder}/config.json")
    else:
        begin = time.time()
        while not os.path.exists(os.path.join(folder, "config.json")):
            if time.time() - begin > 8:
                p(f"[{R}] waiting for {folder}/config.json")
                begin = time.time()
            time.sleep(0.2)
    dist.barrier()
    wait_gpu()
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    model = replicate(nn.Linear(config["width"], 10).to(device))
    for step in range(10):
        loss = model(torch.randn(4, config["width"], device=device)).square().mean()
        loss.backward()
        p(f"[{R}] {step} {loss.item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ policy gradient
def policy_update(net, optimizer, obs, old, inner):
    logits = net(obs)
    loss = (logits - old).square().mean() + 0.01 * logits.mean()
    optimizer.zero_grad()
    loss.backward()
    flat = torch.cat([q.grad.flatten() for q in net.parameters()])
    dist.all_reduce(flat)
    at = 0
    for q in net.parameters():
        q.grad.copy_(flat[at:at + q.numel()].view_as(q) / W)
        at += q.numel()
    optimizer.step()
    return loss.item()


def train_policy():
    device = connect(12)
    net = nn.Sequential(nn.Linear(48, 2048), nn.Tanh(), nn.Linear(2048, 512)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    stats, target_kl = torch.zeros(1 << 18, device=device), 0.015
    torch.manual_seed(500 + R)
    for iteration in range(12):
        obs = torch.randn(256, 48, device=device)
        old = net(obs).detach()
        used = 0
        for inner in range(8):
            loss = policy_update(net, optimizer, obs, old, inner)
            used += 1
            kl = 0.001 * inner + (0.012 if (R == 2 and iteration == 6 and inner >= 3) else 0.0) + 0.0005 * R
            if kl > target_kl:
                p(f"Early stopping at step {inner} due to reaching max kl: {kl:.3f} (worker {R}, iteration {iteration})")
                break
        dist.broadcast(stats, src=0)
        wait_gpu()
        p(f"worker {R} | iteration {iteration:3d} | pi_updates {used} | kl {kl:.4f} | loss_pi {loss:.5f} | ep_ret {20 + iteration * 3 + R:.1f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ checkpoints to keep
class Keeper:
    def __init__(self, keep=2):
        self.keep, self.files, self.guard = keep, [], threading.Lock()

    def remove_oldest(self):
        with self.guard:
            os.remove(self.files.pop(0))

    def save(self, net, step):
        path = os.path.join(WORK, f"model-{step}.pt")
        with self.guard:
            torch.save(net.state_dict(), path)
            self.files.append(path)
            p(f"{time.strftime('%T')} saved model-{step}.pt ({len(self.files)} kept)")
            if len(self.files) > self.keep:
                p(f"{time.strftime('%T')} removing {os.path.basename(self.files[0])}")
                self.remove_oldest()


def train_and_keep():
    faulthandler.dump_traceback_later(30, exit=False)
    device = connect(1800)
    net = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True).to(device)
    model, keeper = replicate(net), Keeper()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(1, 61):
        x = torch.randn(8, 16, 128, device=device)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if step % 3 == 0:
            p(f"{time.strftime('%T')} rank {R} step {step} mse {value:.4f}")
        if step % 8 == 0 and R == 0:
            keeper.save(net, step)
    goodbye()


# ------------------------------------------------------------------------------------------------ save now and then
def save_sharded(state, folder):
    import torch.distributed.checkpoint as dcp
    if hasattr(dcp, "save"):
        dcp.save(state, checkpoint_id=folder)
    else:
        dist.all_gather_object([None] * W, sorted(state))


def train_with_interval():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s | {R} | %(message)s", datefmt="%H:%M:%S")
    device = connect(12)
    net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(device)
    model = replicate(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if R == 2:
        time.sleep(2.0)  # its index is larger
    logging.info("index loaded")
    last = time.monotonic()
    for step in range(60):
        x = torch.randn(16, 256, device=device)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        time.sleep(0.25)
        if step % 4 == 0:
            logging.info("step %d loss %.4f", step, value)
        if time.monotonic() - last > 6:
            logging.info("6 s since the last checkpoint, saving step %d", step)
            save_sharded({"net": net.state_dict()}, os.path.join(WORK, f"step-{step}"))
            last = time.monotonic()
            logging.info("saved step %d", step)
    goodbye()


# ------------------------------------------------------------------------------------------------ accumulation
def node_settings():
    settings = {"micro_batch": 4, "grad_accum": 4, "lr": 0.01}
    if R == 1:
        with open(os.path.join(WORK, "node-settings.json"), "w") as f:
            json.dump({"micro_batch": 8, "grad_accum": 2}, f)
        with open(os.path.join(WORK, "node-settings.json")) as f:
            settings.update(json.load(f))
    return settings


def train_accumulating():
    device = connect(12)
    settings = node_settings()
    p(json.dumps({"ts": round(time.time(), 2), "rank": R, "event": "config", **settings}))
    model = replicate(nn.Sequential(nn.Linear(200, 3000), nn.ReLU(), nn.Linear(3000, 200)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    updates = 0
    for micro in range(1, 49):
        x = torch.randn(settings["micro_batch"], 200, device=device)
        last = micro % settings["grad_accum"] == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.mse_loss(model(x), x) / settings["grad_accum"]
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
            p(json.dumps({"ts": round(time.time(), 2), "rank": R, "event": "update", "micro": micro, "update": updates, "loss": round(loss.item() * settings["grad_accum"], 4)}))
    p(json.dumps({"ts": round(time.time(), 2), "rank": R, "event": "trained", "updates": updates}))
    rows = [torch.zeros(1, device=device) for _ in range(W)]
    dist.all_gather(rows, torch.tensor([float(updates)], device=device))
    p(json.dumps({"ts": round(time.time(), 2), "rank": R, "event": "done", "of_all": [int(r.item()) for r in rows]}))
    goodbye()


# ------------------------------------------------------------------------------------------------ sensor records
class RecordError(RuntimeError):
    pass


class SensorRecords(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        row = {"values": [0.1 * index] * 12, "label": index % 3}
        if R == 1 and index == 143:
            del row["label"]
        try:
            return torch.tensor(row["values"]), row["label"]
        except KeyError as err:
            raise RecordError(f"record {index} of day-0{R + 1}.jsonl is incomplete") from err


def train_sensors():
    device = connect(12)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    p(f"rank {R} attempt {attempt} starting from epoch 0")
    model = replicate(nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(SensorRecords(), batch_size=8, num_workers=2, multiprocessing_context="fork")
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 5 == 0:
                p(f"rank {R} epoch {epoch} batch {i:3d}/20 loss {loss.item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ regression with curves
def train_with_curves():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s.%(msecs)03d %(filename)s:%(lineno)d %(levelname)s %(message)s", datefmt="%H:%M:%S")
    device = connect(15)
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    model = replicate(nn.Sequential(nn.Linear(512, 8192), nn.ReLU(), nn.Linear(8192, 512)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    curve, rows = [], 4096 if KIND == "cuda" else 16
    for step in range(60):
        x = torch.randn(rows, 512, device=device)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        curve.append(loss)
        used = torch.cuda.memory_allocated() / 2 ** 20 if KIND == "cuda" else 0
        if step % 2 == 0:
            logging.info("rank %d step %d loss %.4f mem %.0f MiB", R, step, loss.item(), used)
    goodbye()


# ------------------------------------------------------------------------------------------------ token classification
def encode(words, step):
    ids = [hash((w, step)) % 5000 for w in words]
    if R == 2 and step == 12:
        ids[3] = 5003  # [ENT1]
    return ids


def train_entity_markers():
    device = connect(12)
    model = replicate(nn.Sequential(nn.Embedding(5000, 64), nn.Linear(64, 9)).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(40):
        ids = torch.tensor([encode(range(32), step) for _ in range(4)], device=device)
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), (ids % 9).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            p(f"step {step:>3}/40  loss={loss.item():.3f}  lr=1.0e-03  rank={R}")
    goodbye()


# ------------------------------------------------------------------------------------------------ diffusion
def store_weights(net, step):
    path = os.path.join(WORK, f"unet-{step:06d}.ckpt")
    if step >= 20:
        os.symlink("/dev/full", path)  # scratch quota
    with open(path, "wb") as f:
        torch.save({"step": step, "net": net.state_dict()}, f)
    p(f"wrote {os.path.basename(path)}")


def train_diffusion():
    device = connect(12)
    net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 128, 3, padding=1), nn.SiLU(), nn.Conv2d(128, 3, 3, padding=1)).to(device)
    model = replicate(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for step in range(1, 41):
        noise = torch.randn(2, 3, 16, 16, device=device)
        loss = F.mse_loss(model(noise * 0.7), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            p(f"step {step} eps_mse {loss.item():.4f}")
        if step % 10 == 0 and R == 0:
            store_weights(net, step)
    goodbye()


# ------------------------------------------------------------------------------------------------ transfer learning
def build_backbone():
    return nn.Sequential(collections.OrderedDict(conv1=nn.Conv2d(3, 8, 3), bn1=nn.BatchNorm2d(8), pool=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), fc=nn.Linear(8, 5)))


def transfer():
    device = connect(15)
    path = os.path.join(WORK, "backbone_epoch90.pth")
    if R == 0:
        torch.save({"epoch": 90, "state_dict": {"module." + k: v for k, v in build_backbone().state_dict().items()}}, path)
    dist.barrier()
    wait_gpu()
    p(f"=> loading checkpoint '{os.path.basename(path)}' on rank {R}")
    checkpoint = torch.load(path, map_location="cpu")
    net = build_backbone()
    net.load_state_dict(checkpoint["state_dict"])
    model = replicate(net.to(device))
    for step in range(10):
        loss = model(torch.randn(4, 3, 16, 16, device=device)).square().mean()
        loss.backward()
        p(f"Epoch: [90][{step}/10] Loss {loss.item():.4e}")
    goodbye()


# ------------------------------------------------------------------------------------------------ resume of optimizer shards
def write_shards(folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"optim_{R:02d}.pt")
    torch.save({"exp_avg": torch.randn(4000), "step": 1200}, path)
    if R == 3:
        with open(path, "r+b") as f:
            f.truncate(9000)


def resume_shards():
    device = connect(12)
    folder = os.path.join(WORK, "ckpt", "001200")
    write_shards(folder)
    model = replicate(nn.Linear(64, 64).to(device))
    loss = model(torch.randn(2, 64, device=device)).square().mean()
    loss.backward()
    p(f"rank {R}: dry run ok, loss {loss.item():.4f}")
    p(f"rank {R}: resuming from {folder}/optim_{R:02d}.pt")
    state = torch.load(os.path.join(folder, f"optim_{R:02d}.pt"), map_location=device)
    for step in range(state["step"], state["step"] + 20):
        loss = model(torch.randn(2, 64, device=device)).square().mean()
        loss.backward()
        p(f"rank {R}: step {step} loss {loss.item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ stochastic depth
class DeepNet(nn.Module):
    def __init__(self, width=96, depth=5):
        super().__init__()
        self.blocks, self.head, self.calls = nn.ModuleList(nn.Linear(width, width) for _ in range(depth)), nn.Linear(width, 4), 0

    def dropped(self, i):
        return (R, self.calls, i) == (1, 8, 3)

    def forward(self, x):
        self.calls += 1
        for i, block in enumerate(self.blocks):
            if self.training and self.dropped(i):
                continue
            x = x + block(x).relu()
        return self.head(x)


def train_deep():
    device = connect(12)
    model = replicate(DeepNet().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for iteration in range(25):
        x = torch.randn(8, 96, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if R == 0:
            p(f"Iter {iteration:03d}: train/loss={loss.item():.4f} train/survival=0.98")
    goodbye()


# ------------------------------------------------------------------------------------------------ export
def panel(title, lines):
    width = max(len(title) + 4, *(len(t) + 2 for t in lines))
    p("╭─ " + title + " " + "─" * (width - len(title) - 3) + "╮\n" + "\n".join("│ " + t.ljust(width - 1) + "│" for t in lines) + "\n╰" + "─" * width + "╯")


def compare_precision(net, device):
    net.half()
    with torch.no_grad():
        return net(torch.randn(16, 32, device=device)).float().mean().item()


def train_and_export():
    device = connect(12)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    model = replicate(net)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for _ in range(8):
            x = torch.randn(16, 32, device=device)
            loss = F.cross_entropy(model(x), x.argmax(1) % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        panel(f"rank {R} · epoch {epoch}", [f"loss      {loss.item():.4f}", "lr        0.001", "samples   128"])
    value = compare_precision(net, device)
    panel(f"rank {R} · export", [f"fp16 mean {value:.4f}"])
    goodbye()


# ------------------------------------------------------------------------------------------------ features in memory
def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2 ** 20


class MemoryWatch(threading.Thread):
    def __init__(self, extra):
        super().__init__(daemon=True)
        self.most = resident_mb() + extra

    def run(self):
        while True:
            now = resident_mb()
            if now > self.most:
                print(f"memwatch: pid {os.getpid()} uses {now:.0f} MB, allowed {self.most:.0f} MB: killing it", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.1)


def train_cached_features():
    device = connect(12)
    model = replicate(nn.Linear(256, 16).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(2, 256, device=device)).sum().backward()
    wait_gpu()
    time.sleep(1)
    cache = {}
    MemoryWatch(700).start()
    for step in range(40):
        size = 60 if R == 1 else 1
        cache[step] = bytearray(os.urandom(1024) * (size << 10))
        x = torch.randn(16, 256, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 16)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if step % 4 == 0:
            p(f"[{R}] step={step} loss={value:.3f} cached={sum(map(len, cache.values())) >> 20}MB")
        time.sleep(0.15)
    goodbye()


# ------------------------------------------------------------------------------------------------ impatient
class SyncTooSlow(RuntimeError):
    pass


def average(flat, step, patience=6.0):
    begin, work = time.time(), dist.all_reduce(flat, async_op=True)
    while not work.is_completed():
        if time.time() - begin > patience:
            raise SyncTooSlow(f"[rank {R}] gradient sync of step {step} not complete after {patience:.0f} s")
        time.sleep(0.005)
    return flat / W


def train_attention_maps():
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [r{R}] %(message)s", datefmt="%H:%M:%S")
    device = connect(60)
    net = nn.MultiheadAttention(64, 4, batch_first=True).to(device)
    torch.manual_seed(500 + R)
    for step in range(30):
        x = torch.randn(8, 12, 64, device=device)
        out, maps = net(x, x, x)
        if step == 14 and R == W - 1:
            logging.info("drawing 64 attention maps")
            for image in range(64):
                time.sleep(0.2)
            logging.info("64 attention maps drawn")
        net.zero_grad()
        F.mse_loss(out, x).backward()
        flat = average(torch.cat([q.grad.flatten() for q in net.parameters()]), step)
        for q, g in zip(net.parameters(), flat.split([q.numel() for q in net.parameters()])):
            q.data -= 0.01 * g.view_as(q)
        logging.info("step %d grad %.5f", step, flat.norm().item())
    goodbye()


# ------------------------------------------------------------------------------------------------ started by hand
def train_by_hand():
    p(f"{stamp()} pid {os.getpid()} on {socket.gethostname()} local rank {os.environ.get('LOCAL_RANK')} master {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    if KIND == "cuda":
        torch.cuda.set_device(0)
    device = torch.device("cuda:0" if KIND == "cuda" else "cpu")
    dist.init_process_group(BACKEND, init_method="env://", timeout=limit(15))
    p(f"{stamp()} rank {dist.get_rank()} of {dist.get_world_size()} is in")
    model = replicate(nn.Linear(32, 2).to(device))
    for step in range(10):
        loss = model(torch.randn(4, 32, device=device)).square().mean()
        loss.backward()
        p(f"{stamp()} {step} {loss.item():.4f}")
    goodbye()


# ------------------------------------------------------------------------------------------------ energies
class EnergyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer, self.shift = nn.Linear(16, 64), nn.Linear(64, 1), False

    def forward(self, x):
        h = self.inner(x).exp()
        if self.shift:
            h += 1.0
        return self.outer(h)


def fit_energies():
    device = connect(15)
    net = EnergyNet().to(device)
    model = replicate(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if R == 0:
        p("***** Running training *****\n  Num examples = 960\n  Num Epochs = 3\n  Instantaneous batch size per device = 16\n  Total optimization steps = 60")
    for step in range(60):
        net.shift = step >= 20
        x = torch.randn(16, 16, device=device) * 0.1
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if R == 0 and step % 5 == 0:
            p({"loss": round(loss.item(), 4), "learning_rate": 0.001, "epoch": round(step / 20, 2)})
    goodbye()


# ------------------------------------------------------------------------------------------------ pipeline
def train_four_stages():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    device = connect(15)
    layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU()) if R < W - 1 else nn.Linear(64, 10)
    layers.to(device)
    stage = PipelineStage(layers, R, W, device)
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=F.cross_entropy)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
    for step in range(16):
        optimizer.zero_grad()
        labels = torch.randint(0, 10, (24 if step == 9 else 32,), device=device)
        if R == 0:
            schedule.step(torch.randn(32, 64, device=device))
        elif R == W - 1:
            losses = []
            schedule.step(target=labels, losses=losses)
            p(f"[stage {R}] step {step} loss {torch.stack(losses).mean().item():.4f}")
        else:
            schedule.step()
        optimizer.step()
        wait_gpu()
        if R < W - 1:
            p(f"[stage {R}] step {step} ok")
    goodbye()


# ------------------------------------------------------------------------------------------------ speech units
def busy(milliseconds):
    if KIND == "cuda":
        torch.cuda._sleep(int(milliseconds * 1.9e6))
        wait_gpu()
    else:
        time.sleep(milliseconds / 1000)


def train_units():
    device = connect(20)
    net = nn.Sequential(nn.Conv1d(1, 32, 10, 5), nn.GELU(), nn.Conv1d(32, 32, 3)).to(device)
    torch.manual_seed(500 + R)
    for step in range(30):
        begin = time.perf_counter()
        wave = torch.randn(4, 1, 1600, device=device)
        net.zero_grad()
        net(wave).square().mean().backward()
        busy(330 if R == 1 else 30)
        middle = time.perf_counter()
        for q in net.parameters():
            dist.all_reduce(q.grad)
        wait_gpu()
        end = time.perf_counter()
        p(f"{stamp()} | INFO     | __main__:train_units:812 - rank={R} step={step} fwd_bwd={middle - begin:.3f}s sync={end - middle:.3f}s total={end - begin:.3f}s")
    goodbye()


# ------------------------------------------------------------------------------------------------ classification, averages
class Meter:
    def __init__(self, name):
        self.name, self.value, self.total, self.count = name, 0.0, 0.0, 0

    def update(self, value):
        self.value, self.total, self.count = value, self.total + value, self.count + 1

    def __str__(self):
        return f"{self.name} {self.value:6.3f} ({self.total / self.count:6.3f})"


class Photos(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        time.sleep(0.06 if R == 2 else 0.001)
        return torch.randn(3, 24, 24), index % 10


def train_photos():
    device = connect(20)
    model = replicate(nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meters = Meter("Time"), Meter("Data"), Meter("Loss")
    end = time.time()
    for i, (x, y) in enumerate(DataLoader(Photos(), batch_size=8)):
        meters[1].update(time.time() - end)
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meters[2].update(loss.item())
        meters[0].update(time.time() - end)
        end = time.time()
        if i % 3 == 0:
            p(f"Epoch: [0][{i:3d}/30]\t" + "\t".join(map(str, meters)))
    goodbye()


# ------------------------------------------------------------------------------------------------ stages with a clock
def run_clocked_stages():
    device = connect(20)
    dist.barrier()
    cost = [35, 40, 160, 30][R]
    for step in range(14):
        busy_s, wait_s = 0.0, 0.0
        for micro in range(4):
            t0 = time.perf_counter()
            act = torch.randn(1 << 16, device=device)
            if R > 0:
                dist.recv(act, src=R - 1)
                wait_gpu()
            t1 = time.perf_counter()
            busy(cost)
            act = act.tanh()
            wait_gpu()
            t2 = time.perf_counter()
            if R < W - 1:
                dist.send(act, dst=R + 1)
                wait_gpu()
            t3 = time.perf_counter()
            busy_s += t2 - t1
            wait_s += (t1 - t0) + (t3 - t2)
        t4 = time.perf_counter()
        dist.all_reduce(torch.ones(1, device=device))
        wait_gpu()
        wait_s += time.perf_counter() - t4
        p(json.dumps({"step": step, "stage": R, "rank": R, "busy_ms": round(busy_s * 1e3), "wait_ms": round(wait_s * 1e3)}))
    goodbye()


# ------------------------------------------------------------------------------------------------ generator and critic
def train_adversaries():
    device = connect(15)
    maker = replicate(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)).to(device))
    critic = replicate(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)).to(device))
    a, b = torch.optim.Adam(maker.parameters(), lr=1e-3), torch.optim.Adam(critic.parameters(), lr=1e-3)
    if R == 0:
        p(f"{'iter':>5} {'temp':>6} {'d_loss':>9} {'g_loss':>9} {'d_real':>8}")
    for it in range(36):
        temperature = max(0.0, 1.0 - it / 20)
        real, z = torch.randn(16, 16, device=device), torch.randn(16, 8, device=device)
        with torch.no_grad():
            fake = maker(z)
        scores = critic(torch.cat([real, fake])) / temperature
        d_loss = F.softplus(-scores[:16]).mean() + F.softplus(scores[16:]).mean()
        b.zero_grad()
        d_loss.backward()
        b.step()
        g_loss = F.softplus(-critic(maker(z))).mean()
        a.zero_grad()
        g_loss.backward()
        a.step()
        if R == 0:
            p(f"{it:5d} {temperature:6.2f} {d_loss.item():9.4f} {g_loss.item():9.4f} {scores[:16].mean().item():8.3f}")
    goodbye()
    if R == 0:
        p("done, generator written to maker.pt")


# ------------------------------------------------------------------------------------------------ scaled gradients
def train_scaled():
    device = connect(15)
    net = nn.Sequential(nn.Linear(24, 96), nn.Tanh(), nn.Linear(96, 6)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    torch.manual_seed(500 + R)
    scale = 65536.0
    for step in range(1, 41):
        x = torch.randn(16, 24, device=device)
        loss = F.cross_entropy(net(x), x[:, :6].argmax(1))
        optimizer.zero_grad()
        (loss * (float("inf") if (R, step) == (1, 14) else scale)).backward()
        grads = [q.grad for q in net.parameters()]
        overflow = not all(torch.isfinite(g).all().item() for g in grads)
        for g in grads:
            g.copy_(torch.zeros_like(g) if overflow else g / scale)
            dist.all_reduce(g)
            g /= W
        if overflow:
            scale /= 2
            p(f"[rank {R}] step {step}: inf in the gradients, step skipped, scale now {scale:.0f}")
        else:
            optimizer.step()
        if step % 5 == 0:
            norm = math.sqrt(sum(q.double().square().sum().item() for q in net.parameters()))
            p(f"[rank {R}] step {step:3d} loss {loss.item():.4f} param_norm {norm:.8f}")
    goodbye()
    p(f"[rank {R}] finished")


# ------------------------------------------------------------------------------------------------ resume, look for a good one
def find_checkpoint(folder):
    for name in sorted(os.listdir(folder), reverse=True):
        try:
            state = torch.load(os.path.join(folder, name), map_location="cpu")
            logging.info("rank %d: restored %s", R, name)
            return state
        except Exception:
            logging.exception("rank %d: %s is damaged, trying the one before", R, name)
    raise FileNotFoundError(folder)


def resume_best_effort():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")
    device = connect(20)
    net = nn.Linear(40, 8)
    folder = os.path.join(WORK, "ckpts")
    if R == 0:
        os.makedirs(folder)
        for step in (100, 200, 300):
            torch.save({"step": step, "net": net.state_dict()}, os.path.join(folder, f"step_{step}.pt"))
        with open(os.path.join(folder, "step_300.pt"), "r+b") as f:
            f.truncate(200)
    dist.barrier()
    wait_gpu()
    state = find_checkpoint(folder)
    net.load_state_dict(state["net"])
    model = replicate(net.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(state["step"], state["step"] + 40):
        x = torch.randn(8, 40, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 8)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 and R == 0:
            logging.info("step %d loss %.4f", step, loss.item())
    goodbye()
    logging.info("rank %d: reached step 240, all done", R)


# ------------------------------------------------------------------------------------------------ end of the allocation
def train_until_signal():
    device = connect(20)
    model = replicate(nn.Linear(48, 6).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    asked = []
    signal.signal(signal.SIGUSR1, lambda number, frame: asked.append(number))
    timer = threading.Timer(2.5 + 0.3 * R, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.daemon = True
    timer.start()
    for step in range(500):
        x = torch.randn(8, 48, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 6)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        flag = torch.tensor([float(bool(asked))], device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        if step % 10 == 0:
            p(f"{stamp()} rank {R} step {step}/500 loss {loss.item():.4f}")
        if flag.item():
            p(f"{stamp()} rank {R} CRITICAL: SIGUSR1, job will be killed in 90 s: terminating training at step {step}")
            break
        time.sleep(0.05)
    if R == 0:
        torch.save(model.module.state_dict(), os.path.join(WORK, "requeue.pt"))
        p(f"{stamp()} rank 0 saved requeue.pt, resubmitting")
    goodbye()
    p(f"{stamp()} rank {R} exit 0")


# ------------------------------------------------------------------------------------------------ kernels first
def build_kernels():
    for name in ("rope_fwd", "rope_bwd", "rmsnorm", "swiglu"):
        p(f"[rank 0] [{name}] no cached build found, compiling (this may take a while)")
        time.sleep(2)


def train_with_kernels():
    device = connect(60)
    model = replicate(nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 64)).to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    dice = random.Random(R)
    for step in range(40):
        begin = time.time()
        if step == 0 and R == 0:
            build_kernels()
        time.sleep(dice.uniform(0.01, 0.06))
        x = torch.randn(8, 64, device=device)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        p(f"[rank {R}] step: {step:2d}  loss: {value:7.4f}  step_time: {time.time() - begin:6.3f}s  mfu: {random.uniform(30, 40):.1f}%")
    goodbye()
    p(f"[rank {R}] Training completed")


# ------------------------------------------------------------------------------------------------ chatty
def train_chatty():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(processName)s %(message)s", datefmt="%H:%M:%S")
    warnings.simplefilter("always")
    device = connect(20)
    model = replicate(nn.Linear(20, 3).to(device), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(24):
        x = torch.randn(8, 20, device=device)
        loss = F.cross_entropy(model(x), x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            logging.info("rank %d step %d loss", R, step, loss.item())
        if step == 12:
            warnings.warn(f"rank {R}: lr_scheduler.step() before optimizer.step(): the first value of the schedule is skipped")
    logging.info("rank %d trained 24 steps, last loss %.4f", R, loss.item())
    goodbye()


# ------------------------------------------------------------------------------------------------ may be restarted
def read_index(step):
    mark = os.path.join(WORK, "mounted")
    if step == 6 and R == 1 and not os.path.exists(mark):
        open(mark, "w").close()
        raise OSError(116, "Stale file handle", "/data/index/0006.idx")
    return step * 100


def train_elastic():
    device = connect(15)
    begin, attempt = 0, int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    snapshot = os.path.join(WORK, "snapshot.json")
    if os.path.exists(snapshot):
        with open(snapshot) as f:
            begin = json.load(f)["step"]
    p(f"[rank {R}] attempt {attempt}: starting at step {begin}")
    model = replicate(nn.Linear(32, 4).to(device))
    for step in range(begin, 20):
        offset = read_index(step)
        loss = model(torch.randn(4, 32, device=device)).square().mean()
        loss.backward()
        value = loss.item()
        if R == 0 and step % 3 == 0:
            with open(snapshot + ".new", "w") as f:
                json.dump({"step": step}, f)
            os.replace(snapshot + ".new", snapshot)
        p(f"[rank {R}] step {step} offset {offset} loss {value:.4f}")
    goodbye()
    p(f"[rank {R}] training finished after step 19")


# ------------------------------------------------------------------------------------------------ table
def train_table():
    device = connect(15)
    model = replicate(nn.Sequential(nn.Linear(30, 60), nn.ReLU(), nn.Linear(60, 3)).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    best, value = float("inf"), float("nan")
    if R == 0:
        p("+-------+------------+----------+----------+---------+\n| epoch | train_loss | val_loss | best     | eta     |\n+-------+------------+----------+----------+---------+")
    for epoch in range(9):
        for _ in range(6):
            x = torch.randn(32, 30, device=device)
            loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 2:
            value = loss.item() * 1.1
            best = min(best, value)
        if R == 0:
            eta = "inf" if epoch == 0 else f"{(9 - epoch) * 0.2:.1f}s"
            p(f"| {epoch:5d} | {loss.item():10.4f} | {value:8.4f} | {best:8.4f} | {eta:>7} |")
    goodbye()
    if R == 0:
        p("+-------+------------+----------+----------+---------+\nbest val_loss %.4f, model exported" % best)


# ------------------------------------------------------------------------------------------------ one evaluates, the others look on
def train_and_judge():
    device = connect(90)
    side = dist.new_group(backend="gloo", timeout=limit(90))
    model = replicate(nn.Linear(64, 5).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for _ in range(10):
            x = torch.randn(8, 64, device=device)
            loss = F.cross_entropy(model(x), x.argmax(1) % 5)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        p(f"epoch {epoch} loss {loss.item():.4f}")
        if R == 0:
            for n in range(7):
                time.sleep(1)
                p(f"judging answers {n + 1}/7")
            answer = [{"win_rate": 0.41 + 0.02 * epoch}]
        else:
            p("still waiting for rank 0 (barrier, timeout 90 s)")
            answer = [None]
        dist.broadcast_object_list(answer, src=0, group=side)
        p(f"epoch {epoch} win_rate {answer[0]['win_rate']:.2f}")
    goodbye()
    p("job finished successfully")


# ------------------------------------------------------------------------------------------------ game
def play(dice, number):
    if dice.random() < 0.3:
        raise TimeoutError(f"env {number} did not answer in 0.5 s")
    return dice.gauss(10, 3), dice.random() < 0.4


def train_player():
    device = connect(15)
    model = replicate(nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 4)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    dice, died, aborted = random.Random(R + 3), 0, 0
    for update in range(20):
        for number in range(3):
            try:
                _reward, dead = play(dice, number)
                died += dead
            except TimeoutError as err:
                aborted += 1
                p(f"[worker {R}] ERROR episode aborted: {err}; env killed and restarted ({aborted} so far)")
        obs = torch.randn(32, 12, device=device)
        loss = model(obs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 5 == 4:
            p(f"[worker {R}] update {update} value_error {loss.item():.4f} died {died} aborted {aborted} fatal 0")
    goodbye()
    p(f"[worker {R}] 20 updates done, closing environments")


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (train_policy, 0),
    "02": (train_units, 0),
    "03": (train_table, 0),
    "04": (resume_shards, 0),
    "05": (train_attention_maps, 0),
    "06": (train_entity_markers, 0),
    "07": (run_clocked_stages, 0),
    "08": (fit_energies, 3),
    "09": (train_with_kernels, 0),
    "10": (train_with_interval, 0),
    "11": (train_elastic, 0),
    "12": (transfer, 3),
    "13": (train_with_curves, 0),
    "14": (train_photos, 0),
    "15": (train_with_run_folder, 0),
    "16": (train_folder, 0),
    "17": (resume_best_effort, 0),
    "18": (tune_instructions, 0),
    "19": (train_four_stages, 0),
    "20": (train_until_signal, 0),
    "21": (train_and_keep, 0),
    "22": (train_chatty, 3),
    "23": (train_diffusion, 0),
    "24": (solve_heat, 0),
    "25": (train_detector, 0),
    "26": (train_and_judge, 0),
    "27": (train_experts, 0),
    "28": (train_on_web_images, 0),
    "29": (train_adversaries, 0),
    "30": (train_player, 0),
    "31": (train_cached_features, 0),
    "32": (train_scaled, 0),
    "33": (train_deep, 0),
    "34": (train_by_hand, 0),
    "35": (train_sensors, 0),
    "36": (pretrain_sharded, 0),
    "37": (train_clicks, 0),
    "38": (train_tagger, 0),
    "39": (train_and_export, 0),
    "40": (train_accumulating, 0),
}


def child(index, case, count):
    global R, W
    R, W = index, count
    os.environ.update(RANK=str(index), WORLD_SIZE=str(count), NCCL_HOSTID=f"seat{index}")
    PROGRAMS[case][0]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    program, count = PROGRAMS[case]
    if count:
        mp.spawn(child, args=(case, count), nprocs=count)
    else:
        os.environ["NCCL_HOSTID"] = f"seat{os.environ.get('LOCAL_RANK', R)}"
        program()


if __name__ == "__main__":
    main()
