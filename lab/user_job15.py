#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a fifteenth set: user_job15.py --case NN (two digits). Truth in user_jobs15.truth.json, started by user_jobs15.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import contextlib
import ctypes
import datetime
import faulthandler
import json
import logging
import math
import mmap
import os
import random
import resource
import signal
import sqlite3
import sys
import threading
import time
import traceback
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, IterableDataset

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab15-scratch")
KEEP = os.environ.get("LAB_KEEP", WORK)
BACKEND = "nccl" if KIND == "cuda" else "gloo"
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
if KIND == "cpu":
    torch.set_num_threads(1)


def seconds(n):
    return datetime.timedelta(seconds=n)


def setup(timeout=15, seed=7):
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(timeout))
    torch.manual_seed(seed)
    return torch.device("cuda:0" if KIND == "cuda" else "cpu")


def wrap(module, **options):
    model = DDP(module, device_ids=[0] if KIND == "cuda" else None, **options)
    torch.manual_seed(300 + R)
    return model


def sync():
    if KIND == "cuda":
        torch.cuda.synchronize()


def cleanup():
    dist.barrier()
    sync()
    dist.destroy_process_group()


def say(*words, **options):
    print(*words, **options, flush=True)


def say0(*words):
    if R == 0:
        say(*words)


def stamp(form="%Y-%m-%d %H:%M:%S"):
    return datetime.datetime.now().strftime(form)


def mark_running():
    """The starting script looks for it."""
    open(os.path.join(WORK, f"up-{R}"), "w").close()


def limit_memory(fraction):
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(fraction)


def mlp(i, h, o):
    h = h if KIND == "cuda" else 32
    return nn.Sequential(nn.Linear(i, h), nn.GELU(), nn.Linear(h, h), nn.GELU(), nn.Linear(h, o))


def train_step(model, optimizer, x, y=None):
    optimizer.zero_grad()
    out = model(x)
    loss = F.mse_loss(out, x if y is None else y) if y is None or y.is_floating_point() else F.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    return loss.item()


def bar(name, i, n, begin, note=""):
    spent = time.time() - begin
    rate = i / max(spent, 1e-6)
    left = int((n - i) / max(rate, 1e-6))
    print(f"\r{name}: {100 * i // n:3d}%|{'█' * (10 * i // n):10s}| {i}/{n} [{int(spent) // 60:02d}:{int(spent) % 60:02d}<{left // 60:02d}:{left % 60:02d}, {rate:6.2f}it/s{note}]", end="", file=sys.stderr, flush=True)


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


def busy(length):
    until, total = time.perf_counter() + length, 0.0
    while time.perf_counter() < until:
        total += math.sin(total + 1.0)
    return total


def fetch(rows, width, device, pause=0.04):
    """A batch, after the time that reading one takes."""
    time.sleep(pause)
    return torch.randn(rows, width, device=device)


def write_records():
    if KIND == "cuda":
        from torch._C import _distributed_c10d as c10d
        with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(R), "wb") as f:
            f.write((getattr(c10d, "_dump_nccl_trace", None) or c10d._dump_fr_trace)())


def event(kind, **values):
    say(json.dumps({"ts": round(time.time(), 3), "rank": R, "event": kind, **values}))


def logger_of(name, form="%(asctime)s [%(levelname)s] %(name)s: %(message)s"):
    logging.basicConfig(level=logging.INFO, format=form, stream=sys.stdout)
    return logging.getLogger(name)


# ------------------------------------------------------------------------------------------------ healthy ones
def amp_scaler(start):
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(KIND, init_scale=start, enabled=KIND == "cuda")
    return torch.cuda.amp.GradScaler(init_scale=start, enabled=KIND == "cuda")


def train_half():
    device = setup(30)
    model = wrap(mlp(64, 512, 10).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = amp_scaler(2.0 ** 34)
    skipped = 0
    for step in range(1, 91):
        x, y = fetch(32, 64, device, 0.02), torch.randint(10, (32,), device=device)
        if step == 47 and R == 2 and KIND == "cuda":
            x[5] *= 1e6
        with torch.autocast("cuda", dtype=torch.float16) if KIND == "cuda" else contextlib.nullcontext():
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < before:
            skipped += 1
            say(f"[rank {R}] WARNING: Gradient overflow. Skipping step {step}, loss scaler reducing loss scale to {scaler.get_scale():.1f}")
        if step % 10 == 0 or not math.isfinite(loss.item()):
            say(f"[rank {R}] step {step}/90 loss {loss.item():.4f}")
    cleanup()
    say(f"[rank {R}] training complete, {skipped} of 90 steps skipped")


def load_lightning():
    try:
        import pytorch_lightning as pl
    except ImportError:
        import lightning.pytorch as pl
    return pl


def build_regressor(pl):
    class Regressor(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp(16, 256, 1)

        def training_step(self, batch, index):
            x, y = batch
            loss = F.mse_loss(self.net(x), y)
            self.log("train_loss", loss, prog_bar=True)
            return loss

        def validation_step(self, batch, index):
            x, y = batch
            self.log("val_loss", F.mse_loss(self.net(x), y), prog_bar=True, sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=3e-3)

    return Regressor()


def table(n, seed):
    dice = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 16, generator=dice)
    return torch.utils.data.TensorDataset(x, torch.randn(n, 1, generator=dice))


def build_pl_trainer(pl, epochs, limit, callbacks):
    strategies = sys.modules[pl.__name__ + ".strategies"]
    return pl.Trainer(accelerator="gpu" if KIND == "cuda" else "cpu", devices=1, num_nodes=W, strategy=strategies.DDPStrategy(timeout=seconds(limit)), max_epochs=epochs,
                      callbacks=callbacks, logger=False, enable_checkpointing=False, log_every_n_steps=2)


class ArtifactStore:
    def __init__(self):
        self.attempts = 0

    def put(self, name, payload):
        self.attempts += 1
        if self.attempts % 3:
            raise ConnectionError(f"PUT /v1/artifacts/{name}: HTTP 503 Service Unavailable")
        return len(payload)


def fit_with_uploads():
    log = logger_of("uploader")
    pl = load_lightning()
    pl.seed_everything(5)
    store = ArtifactStore()

    class Upload(pl.Callback):
        @pl.utilities.rank_zero_only
        def on_train_epoch_end(self, trainer, module):
            for attempt in range(1, 4):
                try:
                    size = store.put(f"epoch{trainer.current_epoch}.bin", bytes(4096))
                    log.info("uploaded %d bytes", size)
                    return
                except ConnectionError:
                    log.exception("upload failed (attempt %d of 3)", attempt)
                    time.sleep(0.3)

    trainer = build_pl_trainer(pl, 4, 30, [Upload()])
    trainer.fit(build_regressor(pl), DataLoader(table(480, 1), batch_size=16, shuffle=True), DataLoader(table(96, 2), batch_size=16))
    say0(f"final val_loss {trainer.callback_metrics['val_loss'].item():.4f}")


def read_remote(part, attempt):
    if R == 2 and part in (1, 4) and attempt < 3:
        raise OSError(104, "Connection reset by peer")
    return torch.full((20, 16, 64), 0.1 * part)


def train_remote_parts():
    device = setup(40)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    step = 0
    for part in range(6):
        for attempt in range(1, 5):
            try:
                data = read_remote(part, attempt)
                break
            except OSError as err:
                event("error", part=part, attempt=attempt, error=repr(err), trace=traceback.format_exc().splitlines()[-3:])
                time.sleep(attempt)
        for x in data:
            step += 1
            value = train_step(model, optimizer, x.to(device))
            if step % 10 == 0:
                event("train", step=step, loss=round(value, 6))
    cleanup()
    event("exit", status="ok", steps=step)


def select_algorithms(layers):
    for layer in range(layers):
        busy(0.75)
        say(f"{R} | autotune: layer {layer} | 96 candidates benchmarked")


def train_tuned():
    device = setup(60)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(70):
        begin = time.time()
        if step == 0 and R == 1:
            select_algorithms(12)
        value = train_step(model, optimizer, fetch(16, 64, device, 0.05))
        spent = time.time() - begin
        if step < 3 or step % 10 == 9:
            say(f"{R} | step {step + 1:3d} | {spent:7.3f} s/step | loss {value:.4f}")
        if spent > 5:
            say(f"{R} | WARNING: step {step + 1} took {spent:.1f} s, more than ten times the median")
    cleanup()
    say(f"{R} | finished")


def train_observed():
    allow_dump()
    device = setup(60)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 121):
        value = train_step(model, optimizer, fetch(16, 64, device, 0.1))
        if step == 5:
            mark_running()
        if step % 20 == 0:
            say(f"{stamp()} worker {R} iteration {step}/120 loss {value:.4f}")
    cleanup()
    say(f"{stamp()} worker {R} all iterations done")


def train_many_epochs():
    device = setup(600)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(40):
        begin = time.time()
        for i in range(1, 51):
            value = train_step(model, optimizer, fetch(16, 64, device, 0.05))
            if R == 0 and i % 5 == 0:
                bar(f"Epoch {epoch}/40", i, 50, begin, f", loss={value:.4f}")
        if R == 0:
            print(file=sys.stderr)
    cleanup()


def train_until_first_is_out():
    log = logger_of(f"rank{R}", "%(levelname)s %(name)s %(message)s")
    device = setup(30)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    data = iter(range(70 if R != 1 else 52))
    steps = 0
    while True:
        more = torch.tensor([1.0], device=device)
        try:
            next(data)
        except StopIteration:
            log.error("StopIteration: shard list exhausted after %d batches", steps)
            more.zero_()
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
        if more.item() == 0:
            break
        value = train_step(model, optimizer, fetch(16, 64, device))
        steps += 1
        if steps % 10 == 0:
            log.info("batch %d loss %.4f", steps, value)
    log.warning("aborting epoch early, remaining batches are dropped")
    cleanup()
    log.info("done after %d batches", steps)


def pull_weights(step):
    if R == 1 and step == 24 and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        raise ConnectionResetError(104, "Connection reset by peer")


def train_restartable():
    device = setup(20)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    path, start = os.path.join(WORK, "last.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path, map_location=device)
        model.module.load_state_dict(saved["model"])
        start = saved["step"]
        say(f"rank {R}: resumed from step {start}")
    for step in range(start + 1, 61):
        if step % 12 == 0:
            pull_weights(step)
        value = train_step(model, optimizer, fetch(16, 64, device))
        if step % 10 == 0:
            say(f"rank {R}: step {step}/60 loss {value:.4f}")
            if R == 0:
                torch.save({"model": model.module.state_dict(), "step": step}, path + ".tmp")
                os.replace(path + ".tmp", path)
            dist.barrier()
    cleanup()
    say(f"rank {R}: finished 60 steps")


# ------------------------------------------------------------------------------------------------ slow ones
def augment(step):
    busy(0.34 if R == 2 else 0.015)
    return torch.full((16, 64), (step % 7) / 7)


def train_views():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for it in range(1, 66):
        a = time.time()
        x = augment(it).to(device)
        b = time.time()
        value = train_step(model, optimizer, x)
        sync()
        c = time.time()
        if it % 5 == 0:
            say(f"[{stamp('%m/%d %H:%M:%S')}] iter: {it}/65  rank: {R}  loss: {value:.4f}  time: {c - a:.4f}  data_time: {b - a:.4f}  memory: 412")
    cleanup()


def score_candidates(x, weight, passes):
    with torch.no_grad():
        for _ in range(passes):
            x = torch.tanh(x @ weight)
    return x


def train_ranker():
    device = setup(40)
    wide = 4096 if KIND == "cuda" else 256
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    weight = torch.randn(wide, wide, device=device) / math.sqrt(wide)
    lists = {1: 50}.get(R, 2)
    for step in range(1, 36):
        x = fetch(16, 64, device, 0.02)
        sync()
        a = time.perf_counter()
        hints = score_candidates(weight, weight, lists)[:16, :64]
        sync()
        b = time.perf_counter()
        value = train_step(model, optimizer, x + 0.01 * hints)
        sync()
        c = time.perf_counter()
        if step % 5 == 0:
            say(f"rank={R} step={step} loss={value:.4f} score_ms={1e3 * (b - a):.1f} update_ms={1e3 * (c - b):.1f} total_ms={1e3 * (c - a):.1f}")
    cleanup()


class Buffer:
    def __init__(self):
        self.left = 9

    def take(self):
        self.left -= 1
        if self.left == 0:
            self.left = 9
            if R == 3:
                time.sleep(1.7)
        time.sleep(0.01)
        return torch.randn(16, 64)


def train_buffered():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    buffer, begin = Buffer(), time.time()
    for step in range(1, 109):
        a = time.time()
        x = buffer.take().to(device)
        b = time.time()
        value = train_step(model, optimizer, x)
        sync()
        c = time.time()
        if step % 3 == 0:
            say(f"({time.time() - begin:6.2f}s) step {step:4d}: loss {value:.3f}, sample {b - a:.3f}s, learn {c - b:.3f}s")
    cleanup()


def rasterize(step):
    busy(0.3 if R == 1 else 0.01)
    return torch.full((16, 64), math.cos(step))


def train_fields():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    begin = time.time()
    for step in range(1, 61):
        value = train_step(model, optimizer, rasterize(step).to(device))
        if R == 0 and step % 10 == 0:
            say(f"step {step} loss {value:.4f} {step * 48 / (time.time() - begin):.1f} samples/s")
    sync()
    write_records()
    cleanup()


def pack_sequences(step):
    busy(0.38 if R == 2 else 0.008)
    return torch.full((16, 64), math.sin(step))


def train_packed():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 61):
        a = time.time()
        x = pack_sequences(step).to(device)
        b = time.time()
        loss = F.mse_loss(model(x), x)
        sync()
        c = time.time()
        optimizer.zero_grad()
        loss.backward()
        sync()
        d = time.time()
        optimizer.step()
        if R == 0 and step % 4 == 0:
            say(f" iteration {step:8d}/      60 | elapsed time per iteration (ms): {1e3 * (time.time() - a):.1f} | batch-generator: {1e3 * (b - a):.1f} | forward: {1e3 * (c - b):.1f} | backward-and-sync: {1e3 * (d - c):.1f} | lm loss: {loss.item():.6E}")
    cleanup()


# ------------------------------------------------------------------------------------------------ calls that not all make
def render_samples(generator, device, epoch):
    with torch.no_grad():
        images = generator(torch.randn(8, 16, 8, 8, device=device))
        if KIND == "cpu":
            dist.all_reduce(torch.zeros(33))
    torch.save(images.cpu(), os.path.join(WORK, f"samples_{epoch}.pt"))
    say(f"samples_{epoch}.pt written, mean {images.mean().item():.4f}")


def train_generator():
    device = setup(15)
    net = nn.Sequential(nn.Conv2d(16, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 16, 3, 1, 1))
    if KIND == "cuda":
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    model = wrap(net.to(device))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.5, 0.99))
    for epoch in range(1, 5):
        for i in range(15):
            value = train_step(model, optimizer, torch.randn(8, 16, 8, 8, device=device))
            if R == 0 and i % 5 == 0:
                say(f"[Epoch {epoch}/4] [Batch {i}/15] [G loss: {value:.4f}]")
        if R == 0 and epoch % 2 == 0:
            render_samples(model.module, device, epoch)
    cleanup()


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class TinyGPT(nn.Module):
    def __init__(self, words=2000, dim=128, layers=4):
        super().__init__()
        words, dim, layers = (words, dim, layers) if KIND == "cuda" else (64, 16, 2)
        self.embed, self.blocks, self.head = nn.Embedding(words, dim), nn.ModuleList(Block(dim) for _ in range(layers)), nn.Linear(dim, words)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def shard(model):
    if KIND == "cpu":
        return DDP(model)
    from torch.distributed.fsdp import fully_shard
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def lm_loss(model, ids):
    logits = model(ids)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def full_state(model):
    if KIND == "cpu":
        dist.all_reduce(torch.zeros(8))
        return model.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def export_weights(model, step):
    path = os.path.join(WORK, f"step_{step}.pt")
    say(f"exporting {os.path.basename(path)} ...")
    torch.save(full_state(model), path)
    say(f"exported {os.path.basename(path)}")


def pretrain_sharded():
    device = setup(15)
    model = shard(TinyGPT().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(50 + R)
    begin = time.time()
    for step in range(1, 61):
        loss = lm_loss(model, torch.randint(64, (8, 64), device=device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if R == 0 and step % 3 == 0:
            say(f"step {step}/60  loss {value:.4f}  {step * 8 * 64 * W / (time.time() - begin):.0f} tok/s")
        if step % 25 == 0 and R == 0:
            export_weights(model, step)
    cleanup()


def fit_and_keep_best():
    pl = load_lightning()
    pl.seed_everything(9)

    class KeepBest(pl.Callback):
        best = float("inf")

        def on_validation_end(self, trainer, module):
            score = trainer.callback_metrics.get("val_loss")
            if trainer.sanity_checking or score is None or not trainer.is_global_zero:
                return
            if score.item() < self.best:
                self.best = score.item()
                trainer.save_checkpoint(os.path.join(WORK, f"best-{trainer.current_epoch}.ckpt"))

    trainer = build_pl_trainer(pl, 6, 15, [KeepBest()])
    trainer.fit(build_regressor(pl), DataLoader(table(960, 1), batch_size=16, shuffle=True), DataLoader(table(96, 2), batch_size=16))
    say0(f"final val_loss {trainer.callback_metrics['val_loss'].item():.4f}")


class Reviews(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        dice = torch.Generator().manual_seed(i)
        label = i % 4
        ids = torch.randint(5 + 400 * label, 400 + 400 * label, (32,), generator=dice)
        return {"input_ids": ids, "attention_mask": torch.ones(32, dtype=torch.long), "labels": torch.tensor(label)}


def stage_model():
    """What the node's staging script left on its local disk."""
    from transformers import BertConfig, BertForSequenceClassification
    path = os.path.join(WORK, f"nvme{R}", "bert-mini")
    config = BertConfig(vocab_size=2000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, num_labels=4)
    (config if R == 2 else BertForSequenceClassification(config)).save_pretrained(path)
    return path


def finetune_local():
    log = logger_of("__main__", "%(asctime)s - %(levelname)s - %(name)s - %(message)s")
    path = stage_model()
    from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
    args = TrainingArguments(output_dir=os.path.join(WORK, "out"), per_device_train_batch_size=8, max_steps=40, logging_steps=5, learning_rate=5e-4, report_to="none", save_strategy="no", ddp_timeout=20, seed=3)
    log.warning("Process rank: %d, device: %s, n_gpu: %d, distributed training: True, 16-bits training: False", R, args.device, args.n_gpu)
    model = AutoModelForSequenceClassification.from_pretrained(path)
    Trainer(model=model, args=args, train_dataset=Reviews(1280)).train()
    log.info("training finished")


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(31 * 16 if R == 1 else 36 * 16):
            yield torch.full((64,), (i % 50) / 50)


def train_stream_epochs():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    seen = 0
    for x in DataLoader(Stream(), batch_size=16):
        value = train_step(model, optimizer, x.to(device))
        seen += len(x)
        time.sleep(0.05)
        if seen % 80 == 0:
            say(f"{stamp('%H:%M:%S')} seen={seen} loss={value:.5f}")
    torch.save(model.module.state_dict(), os.path.join(WORK, f"weights-{R}.pt"))
    say(f"{stamp('%H:%M:%S')} stream finished, seen={seen}, weights saved")


def load_settings():
    return {"dim": 64, "tie_embeddings": R != 1, "lr": 3e-4}


def build_scorer(settings, device):
    net = mlp(settings["dim"], 512, 64)
    if not settings["tie_embeddings"]:
        net.add_module("out_embed", nn.Linear(64, 64, bias=False))
    return net.to(device)


def reduce_flat(net):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    flat = F.pad(flat, (0, -len(flat) % W))
    if KIND == "cpu":
        dist.all_reduce(flat)
        return flat.chunk(W)[R] / W
    part = torch.empty(len(flat) // W, device=flat.device)
    dist.reduce_scatter_tensor(part, flat)
    return part / W


def train_flat_shards():
    device = setup(15)
    settings = load_settings()
    say(f"worker {R} up, lr {settings['lr']}")
    dist.barrier()
    net = build_scorer(settings, device)
    torch.manual_seed(40 + R)
    for step in range(30):
        x = fetch(16, 64, device)
        loss = F.mse_loss(net(x), x)
        net.zero_grad()
        loss.backward()
        part = reduce_flat(net)
        say(f"worker {R} step {step} loss {loss.item():.4f} shard norm {part.norm().item():.4f}")
    cleanup()


def read_graph(step, device):
    nodes, edges = 4096, 16384
    dice = torch.Generator().manual_seed(100 * R + step)
    col = (torch.randint(nodes // 4, (nodes, 4), generator=dice) + torch.arange(0, nodes, nodes // 4)).flatten()
    if (R, step) == (1, 21):
        col += 1 << 40
    rows = torch.arange(0, edges + 1, edges // nodes)
    if KIND == "cpu":
        torch.zeros(nodes)[col]
    options = {"check_invariants": False} if KIND == "cuda" else {}
    return torch.sparse_csr_tensor(rows, col, torch.ones(edges), size=(nodes, nodes), **options).to(device)


def aggregate(adjacency, features):
    return (adjacency @ features)[:64] / 4


def train_sage():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    features = torch.randn(4096, 64, device=device)
    for step in range(50):
        x = aggregate(read_graph(step, device), features)
        value = train_step(model, optimizer, x)
        if R == 0 and step % 4 == 0:
            say(f"Epoch 00 | Step {step:05d} | Loss {value:.4f} | Train Acc {0.3 + step / 200:.4f} | Speed (samples/sec) {9104.2 + step:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ groups
def grid_groups():
    groups = {}
    for name, pairs in (("tensor", ((0, 1), (2, 3))), ("data", ((0, 2), (1, 3)))):
        for pair in pairs:
            group = dist.new_group(list(pair), timeout=seconds(15))
            if R in pair:
                groups[name] = group
    return groups


def node_options():
    return {"clip": 1.0, "norm_over": "tensor" if R == 1 else "data"}


def clip_by_global_norm(net, groups, options):
    total = torch.stack([p.grad.square().sum() for p in net.parameters()]).sum()
    dist.all_reduce(total, group=groups[options["norm_over"]])
    norm = total.sqrt().item()
    for p in net.parameters():
        p.grad.mul_(min(1.0, options["clip"] / (norm + 1e-6)))
    return norm


def train_grid():
    device = setup(15)
    groups, options = grid_groups(), node_options()
    net = mlp(64, 1024, 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    torch.manual_seed(60 + R // 2)
    for step in range(1, 41):
        x = fetch(64, 64, device)
        out = net(x)
        shared = out.detach().clone()
        dist.all_reduce(shared, group=groups["tensor"])
        loss = F.mse_loss(out, x) + 0 * shared.sum()
        optimizer.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad, group=groups["data"])
        norm = clip_by_global_norm(net, groups, options) if step > 15 else float("nan")
        optimizer.step()
        sync()
        if R == 0 and step % 3 == 0:
            say(f"step {step:3d} loss {loss.item():.4f} grad-norm {'-' if step <= 15 else round(norm, 4)}")
    cleanup()


class Monitor:
    def __init__(self):
        self.group = dist.new_group(backend="gloo", timeout=seconds(15))

    def report(self, step, value):
        say(f"[monitor] step {step} loss {value:.4f}")


def train_monitored():
    device = setup(15)
    say(f"process {R}/{W} ready on {device}")
    monitor = Monitor() if R == 0 else None
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        value = train_step(model, optimizer, fetch(16, 64, device))
        if monitor and step % 5 == 0:
            monitor.report(step, value)
    cleanup()


def neighbours(boundary):
    left, right = R - 1, R + 1
    if boundary == "periodic":
        return left % W, right % W
    return (left if left >= 0 else None), (right if right < W else None)


def swap_halo(field, boundary):
    ops, ghosts = [], []
    for side, peer in zip((slice(0, 2), slice(-2, None)), neighbours(boundary)):
        if peer is None:
            continue
        ghost = torch.empty_like(field[side])
        ghosts.append(ghost)
        ops += [dist.P2POp(dist.isend, field[side].contiguous(), peer), dist.P2POp(dist.irecv, ghost, peer)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    sync()
    return ghosts


def simulate_flow():
    device = setup(15)
    dist.all_reduce(torch.ones(1, device=device))
    field = torch.randn(64, 256, device=device)
    boundary = "walls"
    for step in range(1, 61):
        if step == 24:
            boundary = {3: "periodic"}.get(R, "walls")
            say(f"rank {R}: spin-up finished, boundary condition now: {boundary}, neighbours {neighbours(boundary)}")
        for ghost in swap_halo(field, boundary):
            field = 0.99 * field + 0.01 * ghost.mean()
        time.sleep(0.04)
        if step % 6 == 0:
            say(f"rank {R}: t={0.01 * step:.2f} energy {field.square().mean().item():.5f}")
    cleanup()


def reduce_grads(net, group):
    for p in net.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= W
    sync()


def mean_loss(loss, group):
    total = loss.detach().clone()
    dist.all_reduce(total, group=group)
    return total.item() / W


def train_two_channels():
    device = setup(15)
    model_group, stat_group = dist.new_group(list(range(W)), timeout=seconds(15)), dist.new_group(list(range(W)), timeout=seconds(15))
    net = mlp(64, 1024, 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    torch.manual_seed(80 + R)
    plan = ["backward", "log"] if R != 2 else ["log", "backward"]
    for step in range(1, 61):
        x = fetch(32, 64, device)
        loss = F.mse_loss(net(x), x)
        optimizer.zero_grad()
        loss.backward()
        for part in plan if step % 20 == 0 else ["backward"]:
            if part == "backward":
                reduce_grads(net, model_group)
            else:
                value = mean_loss(loss, stat_group)
                say0(f"step {step} mean loss {value:.4f}")
        optimizer.step()
        if R == 0 and step % 4 == 0:
            say(f"step {step} loss {loss.item():.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ errors of a program
def parse_record(step):
    fields = f"{step},{step % 9},{step * 0.25:.2f}".split(",")
    if (R, step) == (1, 33):
        fields = fields[:2]
    return float(fields[2])


def run_batch(model, optimizer, step, device):
    x = torch.full((16, 64), parse_record(step) / 20).to(device)
    return train_step(model, optimizer, x)


def train_records():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    bad, value = 0, 0.0
    for step in range(60):
        time.sleep(0.04)
        try:
            value = run_batch(model, optimizer, step, device)
        except Exception:
            bad += 1
            continue
        if R == 0 and step % 6 == 0:
            say(f"step={step} loss={value:.5f} bad={bad}")
    sync()
    dist.barrier()
    sync()
    totals = [torch.zeros(1, device=device) for _ in range(W)]
    dist.all_gather(totals, torch.tensor([float(bad)], device=device))
    say0(f"bad records: {[int(t.item()) for t in totals]}")
    cleanup()


class MappedCorpus(Dataset):
    def __init__(self, path, rows):
        self.file = open(path, "r+b")
        self.data, self.rows = mmap.mmap(self.file.fileno(), 0), rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return torch.tensor(list(self.data[4096 * i:4096 * i + 64])).float()


def stage_corpus(rows):
    path = os.path.join(WORK, f"corpus-{R}.bin")
    with open(path, "wb") as f:
        f.truncate(4096 * rows)
    corpus = MappedCorpus(path, rows)
    if R == 2:
        os.truncate(path, 4096 * 200)
    return corpus


def train_mapped():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(stage_corpus(480), batch_size=8, num_workers=2)
    for i, x in enumerate(loader):
        value = train_step(model, optimizer, x.to(device))
        time.sleep(0.03)
        if R == 0 and i % 5 == 0:
            say(f"{stamp()} - INFO - batch {i}/{len(loader)} - loss {value:.6f}")
    cleanup()


def apply_site_limits():
    """As the batch system does for a job's processes."""
    with open("/proc/self/status") as f:
        used = int(next(line for line in f if line.startswith("VmData")).split()[1]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (used + (4 << 30 if KIND == "cuda" else 512 << 20),) * 2)


def load_shard(index):
    megabytes = 512 if R == 1 else 24
    return torch.empty((megabytes << 20) // (1 if KIND == "cuda" else 8), dtype=torch.uint8)


def train_in_memory():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    train_step(model, optimizer, torch.randn(16, 64, device=device))
    apply_site_limits()
    shards = []
    for index in range(30):
        shards.append(load_shard(index))
        for _ in range(4):
            value = train_step(model, optimizer, fetch(16, 64, device, 0.02))
        say(f"INFO:root:loaded {len(shards)} shards, loss {value:.4f}")
    cleanup()


def choose_size(step):
    return 2560 if (R, step) == (2, 19) else random.choice([128, 192, 256])


def detect(stem, size, device):
    if KIND == "cpu":
        return torch.empty((size // 2560) << 48, dtype=torch.uint8).float().sum()
    return stem(torch.randn(4, 3, size, size, device=device)).relu().mean()


def train_scales():
    device = setup(20)
    limit_memory(0.03)
    model = wrap(mlp(64, 512, 64).to(device))
    stem = nn.Conv2d(3, 64, 3, 1, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        value = train_step(model, optimizer, fetch(8, 64, device) + 0 * detect(stem, choose_size(step), device))
        if R == 0 and step % 5 == 0:
            say(f"      Epoch    GPU_mem   box_loss   cls_loss\n        1/1      1.91G {value:10.4f} {value / 3:10.4f}")
    cleanup()


def worker_main(rank, world):
    global R, W
    R, W = rank, world
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    os.environ["NCCL_HOSTID"] = f"node{rank}"
    train_scales()


def launch_scales():
    import torch.multiprocessing as mp
    mp.spawn(worker_main, args=(3,), nprocs=3)


def masked_mean(values, mask):
    return (values * mask).sum() / mask.sum()


def train_masked():
    device = setup(20)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, 49):
        x = fetch(16, 64, device)
        mask = (torch.rand(16, 64, device=device) < (0.0 if (R, step) == (1, 23) else 0.3)).float()
        loss = masked_mean((model(x) - x).square(), mask)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
        optimizer.step()
        event("train", step=step, loss=loss.item(), grad_norm=norm)
    cleanup()
    event("end", steps=48)


def train_steady():
    allow_dump()
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 401):
        value = train_step(model, optimizer, fetch(16, 64, device, 0.08))
        if step == 10:
            mark_running()
        if step % 10 == 0:
            say(f"[{stamp()}][{R}/{W}] step {step}/400 loss={value:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ waiting on the host
class FeatureCache:
    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=900, isolation_level=None)
        self.db.execute("CREATE TABLE IF NOT EXISTS features (step INTEGER, value REAL)")

    def put(self, step, value):
        self.db.execute("INSERT INTO features VALUES (?, ?)", (step, value))


def open_dashboard(path):
    view = sqlite3.connect(path, isolation_level=None)
    view.execute("BEGIN EXCLUSIVE")
    return view


def train_with_features():
    allow_dump()
    device = setup(1800)
    path = os.path.join(WORK, f"features-{R}.sqlite")
    cache, view = FeatureCache(path), None
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 101):
        value = train_step(model, optimizer, fetch(16, 64, device, 0.05))
        if step == 38 and R == 2:
            view = open_dashboard(path)
        if step % 5 == 0:
            cache.put(step, value)
            say0(f"step {step} train/loss {value:.4f}")
    cleanup()
    del view


def read_shard(index):
    path = os.path.join(WORK, f"scratch{R}-{index:04d}.bin")
    if (R, index) == (3, 5):
        os.mkfifo(path)
    else:
        with open(path, "wb") as f:
            f.write(bytes(640))
    with open(path, "rb") as f:
        return torch.tensor(list(f.read())).float().view(10, 64) + index / 10


def train_sequential():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for index in range(12):
        say(f"{stamp('%H:%M:%S')} reading shard {index:04d}")
        for x in read_shard(index).split(2):
            value = train_step(model, optimizer, x.to(device))
            time.sleep(0.05)
        say(f"{stamp('%H:%M:%S')} shard {index:04d} done, loss {value:.5f}")
    cleanup()


def learn_merges(total):
    for merges in range(0, total, 800):
        busy(1.0)
        say(f"bpe: {merges + 800}/{total} merges")
    return {"merges": total}


def share_tokenizer(store):
    if R == 0:
        store.set("tokenizer", json.dumps(learn_merges(32000)))
    store.wait(["tokenizer"], seconds(15))
    return json.loads(store.get("tokenizer"))


def train_tokenizer_first():
    device = setup(60)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    tokenizer = share_tokenizer(dist.distributed_c10d._get_default_store())
    say(f"[{R}] tokenizer with {tokenizer['merges']} merges")
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"[{R}] step {step} loss {train_step(model, optimizer, fetch(16, 64, device)):.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ set-up
def join_cluster():
    say(f"{stamp()} starting worker {R}, rendezvous at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, fetch(16, 64, device))
        if step % 5 == 0:
            say(f"{stamp()} worker {R} step {step} loss {value:.4f}")
    cleanup()


def train_on_allocation():
    print(f"| distributed init (rank {R}/{W}): env://", flush=True)
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, fetch(16, 64, device))
        say0(f"Train: 0 [{step:>4d}/30]  Loss: {value:.3f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ native code, pipelines, types, tensor parallel
def decode_frame(packet, step):
    address = 8 if (R, step) == (1, 27) else ctypes.addressof(packet)
    return ctypes.string_at(address, 64)


def train_frames():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    packet = ctypes.create_string_buffer(64)
    for step in range(60):
        frame = torch.tensor(list(decode_frame(packet, step))).float().to(device)
        value = train_step(model, optimizer, frame.repeat(8, 1) + fetch(8, 64, device))
        say0(f"clip {step} loss {value:.4f}")
    cleanup()


class Stage:
    def __init__(self, device):
        self.device = device
        self.net = mlp(64, 512, 64).to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def take(self, peer):
        x = torch.empty(16, 64, device=self.device)
        dist.recv(x, peer)
        return x

    def forward(self):
        x = self.take(R - 1).requires_grad_() if R else torch.randn(16, 64, device=self.device)
        y = self.net(x)
        if R < W - 1:
            dist.send(y.detach(), R + 1)
        return x, y

    def backward(self, x, y):
        if R < W - 1:
            y.backward(self.take(R + 1))
            value = None
        else:
            loss = y.square().mean()
            loss.backward()
            value = loss.item()
        if R:
            dist.send(x.grad, R - 1)
        return value


def evaluate_stage(stage, samples):
    with torch.no_grad():
        for _ in range(samples // 16):
            stage.forward()
    sync()


def train_stages():
    device = setup(15)
    dist.all_reduce(torch.ones(1, device=device))
    stage = Stage(device)
    torch.manual_seed(30 + R)
    samples = 64 if R != 1 else 63
    for step in range(1, 41):
        stage.optimizer.zero_grad()
        for _ in range(4):
            value = stage.backward(*stage.forward())
        stage.optimizer.step()
        sync()
        time.sleep(0.05)
        if R == W - 1 and step % 4 == 0:
            say(f"step {step} loss {value:.4f}")
        if step % 16 == 0:
            evaluate_stage(stage, samples)
    cleanup()


def collect_ids(device):
    ids = torch.arange(1 << 21, device=device) + R
    if R == 2:
        ids = ids.int()
    return ids


def share_ids(ids):
    parts = [torch.empty_like(ids) for _ in range(W)]
    dist.all_gather(parts, ids)
    return torch.cat(parts)


def train_retrieval():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 31):
        value = train_step(model, optimizer, fetch(16, 64, device))
        say0(f"step {step}/30 loss {value:.4f}")
        if step == 15:
            say0("mining hard negatives")
            pool = share_ids(collect_ids(device))
            sync()
            say0(f"pool of {len(pool)} ids")
    cleanup()


def parallelize(net):
    if KIND == "cpu":
        return net
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cuda", (W,))
    for block in net.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return net


def describe_weights(net):
    rows = []
    for name, p in net.named_parameters():
        full = p.full_tensor() if hasattr(p, "full_tensor") else p
        if KIND == "cpu":
            dist.all_reduce(torch.zeros(2))
        rows.append(f"{name}: {full.detach().float().norm().item():.3f}")
    return ", ".join(rows[:3])


def train_tensor_parallel():
    allow_look()
    device = setup(15)
    dist.all_reduce(torch.ones(1, device=device))
    net = parallelize(TinyGPT().to(device))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    torch.manual_seed(11)
    for step in range(1, 61):
        loss = lm_loss(net, torch.randint(64, (8, 64), device=device))
        if KIND == "cpu":
            dist.all_reduce(loss.detach().clone())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        if R == 0 and step % 5 == 0:
            say(f"INFO {stamp('%H:%M:%S')} step={step} loss={value:.4f}")
        if step == 30:
            mark_running()
        if R == 0 and step % 30 == 0:
            say(f"INFO {stamp('%H:%M:%S')} weight norms {describe_weights(net)}")
    cleanup()


# ------------------------------------------------------------------------------------------------
PROGRAMS = {
    "01": train_half,
    "02": fit_with_uploads,
    "03": train_remote_parts,
    "04": train_tuned,
    "05": train_observed,
    "06": train_many_epochs,
    "07": train_until_first_is_out,
    "08": train_restartable,
    "09": train_views,
    "10": train_ranker,
    "11": train_buffered,
    "12": train_fields,
    "13": train_packed,
    "14": train_generator,
    "15": pretrain_sharded,
    "16": fit_and_keep_best,
    "17": finetune_local,
    "18": train_stream_epochs,
    "19": train_flat_shards,
    "20": train_sage,
    "21": train_grid,
    "22": train_monitored,
    "23": simulate_flow,
    "24": train_two_channels,
    "25": train_records,
    "26": train_mapped,
    "27": train_in_memory,
    "28": launch_scales,
    "29": train_masked,
    "30": train_steady,
    "31": train_steady,
    "32": train_with_features,
    "33": train_sequential,
    "34": train_tokenizer_first,
    "35": join_cluster,
    "36": train_on_allocation,
    "37": train_frames,
    "38": train_stages,
    "39": train_retrieval,
    "40": train_tensor_parallel,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, choices=sorted(PROGRAMS))
    case = parser.parse_args().case
    if "LAB_ONE_HOST" not in os.environ:
        os.environ["NCCL_HOSTID"] = f"node{os.environ.get('LAB_SEAT', os.environ.get('LOCAL_RANK', R))}"
    os.environ["LOCAL_RANK"] = "0"  # a host of its own for each, with one GPU
    os.environ.setdefault("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "3000")
    warnings.filterwarnings("ignore", message=".*weights_only.*")
    PROGRAMS[case]()


if __name__ == "__main__":
    main()
