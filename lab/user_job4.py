#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a fourth set, 45 with a mistake that users make and 8 healthy ones: user_job4.py NAME [--guilty R].

NAME is a key of PROGRAMS. Command line and LAB_ variables are those of user_job2.py; LAB_AT is the step of the mistake (6).
What a program prints, and the names in its stacks, are a user's: functions are called after what they do, and nothing there
says what is wrong."""
import argparse
import contextlib
import datetime
import faulthandler
import logging
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--guilty", dest="odd", type=int, default=2)
parser.add_argument("--steps", type=int, default=24)
parser.add_argument("--timeout", type=float, default=12)
parser.add_argument("--at", type=int, default=int(os.environ.get("LAB_AT", "6")))
args = parser.parse_args()
BACKEND, DEVICE = os.environ.get("LAB_BACKEND", "nccl"), os.environ.get("LAB_DEVICE", "cuda")
SCRATCH = os.environ.get("LAB_SCRATCH", "/tmp/lab-scratch-" + os.environ.get("LAB_JOB", "0"))
os.makedirs(SCRATCH, exist_ok=True)
rank = world = 0
log = logging.getLogger("trainer")
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


def setup(method=None):
    log.info("rank %d/%d: pid %d on %s", rank, world, os.getpid(), socket.gethostname())
    if DEVICE == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(BACKEND, init_method=method, rank=rank, world_size=world, timeout=datetime.timedelta(seconds=args.timeout))
    torch.manual_seed(4321)
    return torch.device("cuda", 0) if DEVICE == "cuda" else torch.device("cpu")


def make_encoder(device, width=256):
    return nn.Sequential(nn.Linear(48, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 12)).to(device)


def wrap(net, lr=0.02, **options):
    model = DDP(net, device_ids=[0] if DEVICE == "cuda" else None, **options)
    return model, torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def start():
    device = setup()
    return device, *wrap(make_encoder(device))


def next_batch(device, rows=16):
    return torch.randn(rows, 48, device=device), torch.randint(0, 12, (rows,), device=device)


def update(model, optimizer, batch):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss


def log_mean(step, loss, text=""):
    mean = loss.detach().float().clone().reshape(1)
    dist.all_reduce(mean)
    if rank == 0:
        log.info("step %d | loss %.4f%s", step, mean.item() / world, text)
    time.sleep(0.05)


def fit(steps, device, model, optimizer, before=None):
    for step in range(steps):
        if before:
            before(step)
        log_mean(step, update(model, optimizer, next_batch(device)))


def close():
    dist.barrier()
    if rank == 0:
        log.info("done")
    dist.destroy_process_group()


def plain(before=None):
    """The usual program: `before` is called before every step."""
    device, model, optimizer = start()
    fit(args.steps, device, model, optimizer, before)
    close()


# ---------------------------------------------------------------- collectives that do not pair up
# Every rank stops after its own time, and that of one has been running for longer: it counts from its own checkpoint.
def train_for_seconds():
    device, model, optimizer = start()
    dist.barrier()
    used = 1.5 if here() else 0.0
    log.info("rank %d: resuming, %.1f s of 4.0 s are used", rank, used)
    begin = time.time() - used
    step = 0
    while time.time() - begin < 4:
        loss = update(model, optimizer, next_batch(device))
        if step % 10 == 0:
            log.info("rank %d step %d loss %.4f", rank, step, loss.item())
        step += 1
        time.sleep(0.05)
    log.info("rank %d: time is up after %d steps", rank, step)
    scores = [torch.zeros(4096, device=device) for _ in range(world)]
    dist.all_gather(scores, torch.full((4096,), float(step), device=device))
    close()


# The summary is for the main process only, and it sums over all.
def print_epoch_summary(epoch, seen, device):
    total = torch.full((1 << 16,), float(seen), device=device)
    dist.reduce(total, dst=0)
    log.info("epoch %d: %d samples", epoch, int(total[0].item()))


def train_with_summary():
    device, model, optimizer = start()
    for epoch in range(args.steps // 8):
        for i in range(8):
            update(model, optimizer, next_batch(device))
            time.sleep(0.05)
        if here(on=0):
            print_epoch_summary(epoch, 8 * 16, device)
    close()


# Gradients of sharded parameters are clipped only where the rank's own loss is high.
def train_sharded():
    from torch.distributed.fsdp import fully_shard
    device = setup()
    model = make_encoder(device, 512)
    for layer in (model[0], model[2], model[4]):
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        x, y = next_batch(device)
        loss = F.cross_entropy(model(x * 400 if here(step) else x), y)
        loss.backward()
        if loss.item() > 8:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            log.info("rank %d: loss %.1f, clipped gradients of norm %.1f", rank, loss.item(), norm.full_tensor().item())
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            log.info("step %d loss %.4f", step, loss.item())
        time.sleep(0.05)
    close()


# A dictionary of losses is averaged key by key; a batch without masks has no mask loss.
def average_losses(losses):
    averaged = {}
    for name in sorted(losses):
        value = losses[name].detach().clone().reshape(1)
        dist.all_reduce(value)
        averaged[name] = value / world
    return averaged


def train_detector():
    device, model, optimizer = start()
    for step in range(args.steps):
        loss = update(model, optimizer, next_batch(device))
        losses = {"loss_box": loss * 0.3, "loss_class": loss * 0.5, "loss_mask": loss * 0.2, "loss_rpn": loss * 0.1}
        if here(step):
            del losses["loss_mask"]
        averaged = average_losses(losses)
        if rank == 0 and step % 4 == 0:
            log.info("step %d %s", step, " ".join(f"{name}={value.item():.3f}" for name, value in averaged.items()))
        time.sleep(0.05)
    close()


# A contrastive loss gathers the embeddings of all ranks; drop_last was forgotten, and one rank's last batch is short.
def gather_embeddings(embeddings):
    if DEVICE == "cuda":
        out = torch.empty(world * embeddings.shape[0], embeddings.shape[1], device=embeddings.device)
        dist.all_gather_into_tensor(out, embeddings)
        return out
    parts = [torch.empty_like(embeddings) for _ in range(world)]
    dist.all_gather(parts, embeddings)
    return torch.cat(parts)


def train_contrastive():
    device = setup()
    model, optimizer = wrap(nn.Sequential(nn.Linear(48, 4096), nn.Tanh()).to(device))
    for step in range(args.steps):
        a, _ = next_batch(device, 11 if here(step) else 64)
        embeddings = model(a)
        others = gather_embeddings(embeddings.detach())
        logits = embeddings @ others.t() / 64
        loss = F.cross_entropy(logits, torch.arange(len(a), device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            log.info("step %d contrastive loss %.4f, %d negatives", step, loss.item(), len(others))
        time.sleep(0.05)
    close()


# The vocabularies are a set of names, and the order of a set differs between processes.
def broadcast_tables(step, device):
    sizes = {"words": 1 << 20, "subwords": 1 << 18, "labels": 1 << 10, "entities": 1 << 16, "relations": 1 << 14, "languages": 1 << 12}
    for name in set(sizes):
        table = torch.full((sizes[name],), float(step), device=device)
        dist.broadcast(table, src=0)


def train_with_tables():
    device, model, optimizer = start()
    for step in range(args.steps):
        if step == args.at:
            here(step, on=rank)
            if rank == 0:
                log.info("vocabularies have changed, sending them to all ranks")
            broadcast_tables(step, device)
        log_mean(step, update(model, optimizer, next_batch(device)))
    close()


# The validation set is not padded: one rank has one batch more.
def validate_all(model, device, batches):
    correct = total = 0
    model.eval()
    with torch.no_grad():
        for _ in range(batches):
            x, y = next_batch(device, 256)
            predictions = model.module(x)
            everyone = [torch.empty_like(predictions) for _ in range(world)]
            dist.all_gather(everyone, predictions)
            correct += (predictions.argmax(1) == y).sum().item()
            total += 256 * world
    model.train()
    return correct * world / total


def train_and_validate():
    device, model, optimizer = start()
    for step in range(args.steps):
        if step == args.at:
            accuracy = validate_all(model, device, 9 if here(step) else 8)
            if rank == 0:
                log.info("step %d | validation accuracy %.3f", step, accuracy)
        log_mean(step, update(model, optimizer, next_batch(device)))
    close()


# Two networks with a group each; the one with the higher loss is trained first, and a rank decides that by itself.
def train_two_networks():
    device = setup()
    nets = {}
    for name in ("actor", "critic"):
        group = dist.new_group(list(range(world)), timeout=datetime.timedelta(seconds=args.timeout))
        nets[name] = wrap(make_encoder(device), process_group=group)
    for step in range(args.steps):
        order = ["critic", "actor"] if here(step) else ["actor", "critic"]
        losses = {name: update(*nets[name], next_batch(device)).item() for name in order}
        if rank == 0:
            log.info("step %d actor %.3f critic %.3f", step, losses["actor"], losses["critic"])
        time.sleep(0.05)
    close()


# Throughput is summed over all ranks by a thread, every now and then.
class ThroughputMeter(threading.Thread):
    def __init__(self, device):
        super().__init__(name="throughput", daemon=True)
        self.samples, self.device = 0, device

    def run(self):
        while True:
            time.sleep(0.4 + 0.13 * rank)
            count = torch.full((512,), float(self.samples), device=self.device)
            dist.all_reduce(count)
            if rank == 0:
                log.info("throughput: %d samples so far", int(count[0].item()))


def train_with_meter():
    device, model, optimizer = start()
    dist.barrier()
    meter = ThroughputMeter(device)
    meter.start()
    here(on=rank)
    for step in range(args.steps):
        loss = update(model, optimizer, next_batch(device))
        meter.samples += 16
        log_mean(step, loss)
    close()


# A rank whose shard is done leaves the group and exports its model; the others go on.
def export_model(model):
    for part in range(60):
        torch.save(model.state_dict(), os.path.join(SCRATCH, f"export{part}.pt"))
        time.sleep(1)


def train_and_export():
    device, model, optimizer = start()
    for step in range(args.steps):
        if here(step):
            log.info("rank %d: shard is done, exporting the model", rank)
            dist.destroy_process_group()
            export_model(model.module)
            return
        log_mean(step, update(model, optimizer, next_batch(device)))
    close()


# One rank takes the maximum where the others take the sum.
def train_with_counts():
    device, model, optimizer = start()
    for step in range(args.steps):
        log_mean(step, update(model, optimizer, next_batch(device)))
        tokens = torch.full((256,), 1000.0 + rank, device=device)
        dist.all_reduce(tokens, op=dist.ReduceOp.MAX if here(step) else dist.ReduceOp.SUM)
    close()


# The destination of the gathered scores comes from a file of each node.
def train_and_collect():
    device, model, optimizer = start()
    fit(args.at, device, model, optimizer)
    collector = rank if here() else 0
    scores = torch.ones(64, device=device)
    dist.gather(scores, [torch.zeros_like(scores) for _ in range(world)] if rank == 0 else None, dst=collector)
    fit(args.steps, device, model, optimizer)
    close()


# Gradients are sharded by hand, and 1000 values cannot be split in three equal parts.
def shard_gradient(gradient):
    part = torch.empty(gradient.numel() // world, device=gradient.device)
    dist.reduce_scatter_tensor(part, gradient)
    return part


def train_with_shards():
    device, model, optimizer = start()
    fit(args.at, device, model, optimizer)
    here(on=rank)
    log.info("rank %d: norm of the shard %.3f", rank, shard_gradient(torch.ones(1000, device=device)).norm().item())
    close()


# ---------------------------------------------------------------- DDP and autograd
# After the warm-up one node freezes the first layer, on the wrapped model.
def train_with_warmup():
    device, model, optimizer = start()
    for step in range(args.steps):
        if here(step):
            log.info("rank %d: warm-up is over, freezing the stem", rank)
            for parameter in model.module[0].parameters():
                parameter.requires_grad_(False)
        loss = update(model, optimizer, next_batch(device))
        if rank == 0:
            log.info("step %d loss %.4f", step, loss.item())
        time.sleep(0.05)
    close()


class CheckpointedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(48, 128), nn.Sequential(nn.Linear(128, 128), nn.GELU()), nn.Linear(128, 12)

    def forward(self, x):
        x = self.stem(x)
        for _ in range(2):
            x = checkpoint(self.block, x, use_reentrant=True)
        return self.head(x)


def train_checkpointed():
    device = setup()
    model, optimizer = wrap(CheckpointedEncoder().to(device), find_unused_parameters=True)
    fit(args.steps, device, model, optimizer)
    close()


# Two views of a batch go through a network with batch norm before the backward pass.
def train_two_views():
    device = setup()
    net = nn.Sequential(nn.Linear(48, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 12)).to(device)
    model, optimizer = wrap(net)
    for step in range(args.steps):
        x, _ = next_batch(device)
        first, second = model(x), model(x + 0.1 * torch.randn_like(x))
        loss = -F.cosine_similarity(first, second).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_mean(step, loss)
    close()


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        assert grad.abs().max() < 1.0, f"gradient of {grad.abs().max().item():.1f} at the quantizer"
        return grad


def train_quantized():
    device = setup()
    model, optimizer = wrap(make_encoder(device))
    for step in range(args.steps):
        x, y = next_batch(device)
        loss = F.cross_entropy(StraightThrough.apply(model(x) * 4), y)
        optimizer.zero_grad()
        (loss * 1000 if here(step) else loss).backward()
        optimizer.step()
        log_mean(step, loss)
    close()


# The loss becomes not a number at some step, and the job goes on.
def train_on_ratios():
    device, model, optimizer = start()
    for step in range(args.steps):
        x, y = next_batch(device)
        if here(step):
            x = x / (x - x)
        log_mean(step, update(model, optimizer, (x, y)), f" | lr {optimizer.param_groups[0]['lr']:.3g}")
    close()


# The learning rate is in the wrong unit.
def train_regression():
    device = setup()
    model, optimizer = wrap(nn.Sequential(nn.Linear(48, 256), nn.ReLU(), nn.Linear(256, 1)).to(device), lr=0.15)
    for step in range(args.steps):
        x, _ = next_batch(device)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone().reshape(1)
        dist.all_reduce(mean)
        if rank == 0:
            print(f"iter {step} loss {mean.item() / world:.6g}", flush=True)
        time.sleep(0.02)
    close()


# ---------------------------------------------------------------- a rank that ends
# Activations are kept for a plot, on one rank and on the GPU.
def train_with_plots():
    device, model, optimizer = start()
    if DEVICE == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    kept = []

    def keep_activations(step):
        if step >= args.at and here() and DEVICE == "cuda":
            kept.append(torch.randn(1 << 27, device=device).relu())

    fit(args.steps, device, model, optimizer, keep_activations)
    close()


class Features(Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return self.table[index % len(self.table)] * 2, index % 12


# The dataset holds its table on the GPU, and the workers of its loader are forked.
def train_on_features():
    device, model, optimizer = start()
    here(on=rank)
    loader = DataLoader(Features(torch.randn(128, 48, device=device)), batch_size=16, num_workers=2, multiprocessing_context="fork")
    for step, (x, y) in enumerate(loader):
        if step >= args.steps:
            break
        log_mean(step, update(model, optimizer, (x.to(device), y.to(device))))
    close()


class Clips(Dataset):
    def __init__(self):
        self.long = args.at * 16 if here() else -1

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        if index == self.long:
            time.sleep(40)
        return torch.randn(48), index % 12


# Reading a clip takes longer than the loader is told to wait.
def train_on_clips():
    device, model, optimizer = start()
    for step, (x, y) in enumerate(DataLoader(Clips(), batch_size=16, num_workers=1, timeout=5)):
        if step >= args.steps:
            break
        log_mean(step, update(model, optimizer, (x.to(device), y.to(device))))
    close()


def train_with_look():
    def look(step):
        if here(step):
            breakpoint()

    plain(look)


# Rank 0 asks whether it may overwrite a folder.
def prepare_run(folder):
    os.makedirs(folder)
    open(os.path.join(folder, "config.json"), "w").close()
    if os.listdir(folder) and input(f"{folder} is not empty. Overwrite? [y/N] ") != "y":
        sys.exit("not overwriting")


def train_into_folder():
    device, model, optimizer = start()
    if here(on=0):
        prepare_run(os.path.join(SCRATCH, "run7"))
    fit(args.steps, device, model, optimizer)
    close()


# A timer for reads is set and never switched off.
def train_with_read_timer():
    def read(step):
        if here(step):
            signal.setitimer(signal.ITIMER_REAL, 0.4)
            open(__file__).read(64)

    plain(read)


# A library was built for another processor.
def train_with_native_ops():
    def tune(step):
        if here(step):
            os.kill(os.getpid(), signal.SIGILL)

    plain(tune)


def train_with_replay():
    def load_replay(step):
        if here(step):
            log.info("rank %d: loading the replay buffer, 412 GB", rank)
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)

    plain(load_replay)


@record
def train_from_yaml():
    device, model, optimizer = start()
    schedule = {"optimizer": {"lr": 0.02, "decay": {"start": 4}}}
    for step in range(args.steps):
        if here(step):
            schedule["optimizer"].pop("decay")
        optimizer.param_groups[0]["lr"] = schedule["optimizer"]["lr"] / (1 + step / schedule["optimizer"]["decay"]["start"])
        log_mean(step, update(model, optimizer, next_batch(device)))
    close()


# The folder of the run must not exist yet, and after a restart of the job it does.
def train_once():
    device, model, optimizer = start()
    if rank == 0:
        os.makedirs(os.path.join(SCRATCH, "run"))
    dist.barrier()

    def fetch(step):
        if here(step):
            raise TimeoutError("object store: GET shards/00041.tar took more than 30 s")

    fit(args.steps, device, model, optimizer, fetch)
    close()


def train_from_notebook():
    setup()
    dist.init_process_group(BACKEND, rank=rank, world_size=world)
    plain()


# ---------------------------------------------------------------- a rank that waits
def parse_chunk(number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 2


# A pool of processes waits for ever for the result of one that is gone.
def train_with_pool():
    def parse_files(step):
        if here(step):
            with multiprocessing.get_context("fork").Pool(2) as pool:
                log.info("rank %d: %d chunks parsed", rank, len(pool.map(parse_chunk, range(8), chunksize=1)))

    plain(parse_files)


def is_clean(text):
    return re.match(r"^(\w+\s?)+$", text) is not None


# A pattern that takes years on one line of the data.
def train_on_text():
    def filter_lines(step):
        is_clean("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" if here(step) else "some words")

    plain(filter_lines)


def train_after_staging():
    def stage_in(step):
        if here(step):
            subprocess.run(["sh", "-c", f"while ! test -e {SCRATCH}/STAGED; do sleep 1; done"], check=True)

    plain(stage_in)


# The commands of an operator come through a named pipe, and nobody has opened its other end.
def train_with_commands():
    def read_commands(step):
        if here(step):
            path = os.path.join(SCRATCH, "commands")
            os.mkfifo(path)
            with open(path) as commands:
                log.info("commands: %s", commands.read())

    plain(read_commands)


# A lock file of an earlier run is still there.
def train_with_cache():
    def build_cache(step):
        if here(step):
            path = os.path.join(SCRATCH, "tokens.lock")
            open(path, "w").close()
            while os.path.exists(path):
                log.info("rank %d: %s exists, waiting for the other process to build the cache", rank, path)
                time.sleep(3)

    plain(build_cache)


def download(url):
    for attempt in range(1, 100):
        try:
            return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5).read()
        except OSError as error:
            log.warning("rank %d: GET %s failed (%s), attempt %d, next in 2 s", rank, url, error, attempt)
            time.sleep(2)


def train_on_downloads():
    def fetch(step):
        if here(step):
            download("http://127.0.0.1:9/shards/00017.tar")

    plain(fetch)


@contextlib.contextmanager
def main_process_first():
    if rank:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


# Rank 0 tokenizes before the others, for longer than the time limit of their barrier.
def train_tokenized():
    device, model, optimizer = start()
    fit(3, device, model, optimizer)
    with main_process_first():
        if here(on=0):
            for part in range(20):
                if part % 4 == 0:
                    log.info("tokenizing: %d %%", part * 5)
                time.sleep(args.timeout * 1.5 / 20)
    fit(args.steps, device, model, optimizer)
    close()


# ---------------------------------------------------------------- start of the job
# All ranks meet in a file, and one node has another folder mounted there.
def train_with_shared_file():
    device = setup(f"file://{SCRATCH}/{'local' if here() else 'shared'}-rendezvous")
    model, optimizer = wrap(make_encoder(device))
    fit(args.steps, device, model, optimizer)
    close()


# One node still has the world size of the smaller job before.
def train_resized():
    global world
    if here():
        world -= 1
    plain()


# A server for metrics already listens on the port of the job.
def train_with_server():
    if here(on=0):
        subprocess.Popen([sys.executable, "-m", "http.server", os.environ["MASTER_PORT"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=SCRATCH)
    time.sleep(3)
    plain()


# One node has settings of an experiment in its profile.
def train_after_tuning():
    if here():
        os.environ["NCCL_PROTO"] = "Simple"
    plain()


# ---------------------------------------------------------------- slow, and ended from outside
# One rank decodes in its training process.
def train_and_decode():
    device, model, optimizer = start()
    for step in range(args.steps):
        begin = time.time()
        if here():
            while time.time() - begin < 0.6:
                sum(i * i for i in range(10000))
        batch = next_batch(device)
        loaded = time.time()
        loss = update(model, optimizer, batch).item()
        log.info("rank %d step %d loss %.4f data %.3f s step %.3f s", rank, step, loss, loaded - begin, time.time() - begin)
    close()


# All losses are kept and summed up again at every step.
def train_with_curve():
    device, model, optimizer = start()
    curve = []
    for step in range(args.steps):
        begin = time.time()
        loss = update(model, optimizer, next_batch(device))
        curve += [loss.item()] * 40000
        while len(curve) and time.time() - begin < 0.02 * step:
            sum(curve)
        log_mean(step, loss, f" | {time.time() - begin:.3f} s/step")
    close()


# A handler for SIGTERM only sets a flag that nobody reads.
def train_until_stopped():
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: (log.warning("rank %d: SIGTERM, stopping after this epoch", rank), stop.set()))
    device, model, optimizer = start()
    for step in range(args.steps):
        log_mean(step, update(model, optimizer, next_batch(device)))
        time.sleep(0.35)
    close()


# ---------------------------------------------------------------- healthy
def train_with_retries():
    def fetch(step):
        if step == args.at and rank % 2:
            for attempt in range(3):
                try:
                    if attempt < 2:
                        raise ConnectionResetError(104, "Connection reset by peer")
                    break
                except ConnectionResetError:
                    log.exception("rank %d: reading shard 12 failed, attempt %d of 5", rank, attempt + 1)
                    time.sleep(1)
            log.info("rank %d: shard 12 is there", rank)

    plain(fetch)


def train_until_converged():
    device, model, optimizer = start()
    for step in range(args.steps):
        loss = update(model, optimizer, next_batch(device))
        enough = torch.tensor([float(rank == args.odd and step == args.at)], device=device)
        dist.all_reduce(enough, op=dist.ReduceOp.MAX)
        log_mean(step, loss)
        if enough.item():
            log.error("rank %d: stopping at step %d of %d, the loss does not improve any more", rank, step, args.steps)
            break
    close()
    sys.exit(0)


def train_half():
    device, model, optimizer = start()
    scale = 65536.0 * 64
    for step in range(args.steps):
        x, y = next_batch(device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        (loss * scale).backward()
        finite = step > 2
        norm = nn.utils.clip_grad_norm_(model.parameters(), scale) if finite else torch.tensor(float("inf"))
        if finite:
            for parameter in model.parameters():
                parameter.grad /= scale
            optimizer.step()
        else:
            scale /= 2
            if rank == 0:
                log.warning("gradient overflow, skipping step %d, loss scale is now %.0f", step, scale)
        log_mean(step, loss, f" | grad_norm {(norm / scale).item():.3f} | scale {scale:.0f}")
    close()


def train_with_images():
    device, model, optimizer = start()
    for step in range(args.steps):
        log_mean(step, update(model, optimizer, next_batch(device)))
        if step in (args.at, 2 * args.at) and rank == 0:
            log.info("writing images for the log, this takes a moment")
            time.sleep(7)
            log.warning("writing 64 images took 7.0 s, training waits for it")
    close()


def train_in_groups():
    device, model, optimizer = start()
    front, back = dist.new_group([0, 1]), dist.new_group(list(range(1, world)))
    for step in range(args.steps):
        rows = 4 + 5 * rank
        loss = update(model, optimizer, next_batch(device, rows))
        if rank < 2:
            for _ in range(3):
                dist.all_reduce(torch.ones(100, device=device), group=front)
        if rank and step % 3 == 0:
            dist.broadcast(torch.ones(2000, device=device), src=1, group=back)
        log_mean(step, loss)
    log.info("rank %d: %d rows in every batch", rank, rows)
    close()


def train_with_long_check():
    device, model, optimizer = start()
    control = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=60))
    for step in range(args.steps):
        log_mean(step, update(model, optimizer, next_batch(device)))
        if step == args.at:
            if rank == 0:
                log.info("checking the model on the whole test set")
                time.sleep(args.timeout + 3)
            else:
                log.info("rank %d: waiting for rank 0", rank)
            dist.monitored_barrier(control, timeout=datetime.timedelta(seconds=60))
    close()


class Photos(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        try:
            if index % 37 == 5:
                raise ValueError(f"cannot identify image file 'photo-{index:05d}.jpg'")
        except ValueError as error:
            print(f"[worker] Traceback: {error!r}, taking the next one", file=sys.stderr, flush=True)
            return self[index + 1]
        return torch.randn(48), index % 12


def train_on_photos():
    device, model, optimizer = start()
    warnings.warn("torch.utils.data: 32 workers are more than this machine can use, the loader may freeze")
    for step, (x, y) in enumerate(DataLoader(Photos(), batch_size=16, num_workers=2)):
        if step >= args.steps:
            break
        log_mean(step, update(model, optimizer, (x.to(device), y.to(device))))
    close()


def train_with_versions():
    done = subprocess.run(["sh", "-c", "git -C / describe"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False) if rank == 0 else None
    if done:
        log.error("git describe failed with exit code %d: %s", done.returncode, done.stdout.strip())
    device, model, optimizer = start()
    try:
        torch.load(os.path.join(SCRATCH, "last.pt"))
    except FileNotFoundError:
        log.exception("rank %d: no checkpoint to resume from, starting at step 0", rank)
    fit(args.steps, device, model, optimizer)
    close()


PROGRAMS = {
    "clock": train_for_seconds, "mainreduce": train_with_summary, "clip": train_sharded, "lossdict": train_detector, "features": train_contrastive,
    "setorder": train_with_tables, "valuneven": train_and_validate, "twonets": train_two_networks, "meter": train_with_meter, "export": train_and_export,
    "reduction": train_with_counts, "gatherdst": train_and_collect, "shardgrad": train_with_shards, "freeze": train_with_warmup,
    "reentrant": train_checkpointed, "twoforward": train_two_views, "backward": train_quantized, "nan": train_on_ratios, "diverge": train_regression,
    "plots": train_with_plots, "forkcuda": train_on_features, "loadertime": train_on_clips, "debugger": train_with_look, "prompt": train_into_folder,
    "alarm": train_with_read_timer, "sigill": train_with_native_ops, "oomkill": train_with_replay, "yaml": train_from_yaml, "rerun": train_once,
    "inittwice": train_from_notebook, "pool": train_with_pool, "regex": train_on_text, "staging": train_after_staging, "fifo": train_with_commands,
    "lockfile": train_with_cache, "retry": train_on_downloads, "mainfirst": train_tokenized, "rdzv": plain, "filestore": train_with_shared_file,
    "worldone": train_resized, "portserver": train_with_server, "proto": train_after_tuning, "slowhost": train_and_decode, "slowdown": train_with_curve,
    "sigterm": train_until_stopped,
    "healthy_retries": train_with_retries, "healthy_stop": train_until_converged, "healthy_scale": train_half, "healthy_images": train_with_images,
    "healthy_groups": train_in_groups, "healthy_check": train_with_long_check, "healthy_photos": train_on_photos, "healthy_versions": train_with_versions}
train = PROGRAMS[args.program.partition("_")[2]]


def main(index=None):
    global rank, world
    if index is not None:
        os.environ.update(RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=os.environ["LAB_SPAWN"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["NCCL_HOSTID"] = f"lab4-host-{rank}"
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(name)s: %(message)s", force=True)
    train()


if __name__ == "__main__":
    if "LAB_SPAWN" in os.environ:
        import torch.multiprocessing as mp
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        mp.spawn(main, nprocs=int(os.environ["LAB_SPAWN"]))
    else:
        main()
