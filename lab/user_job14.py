#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a fourteenth set: user_job14.py --case NN (two digits). Truth in user_jobs14.truth.json, started by user_jobs14.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import contextlib
import ctypes
import datetime
import faulthandler
import fcntl
import json
import logging
import math
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab14-scratch")
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


# ------------------------------------------------------------------------------------------------ transformers, Lightning, accelerate
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


def build_trainer(steps, compute_metrics=None):
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    config = BertConfig(vocab_size=2000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, num_labels=4)
    args = TrainingArguments(output_dir=os.path.join(WORK, "out"), per_device_train_batch_size=8, per_device_eval_batch_size=16, max_steps=steps, logging_steps=10,
                             learning_rate=5e-4, report_to="none", save_strategy="no", ddp_timeout=30, seed=3)
    return Trainer(model=BertForSequenceClassification(config), args=args, train_dataset=Reviews(1920), eval_dataset=Reviews(192), compute_metrics=compute_metrics)


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def finetune_bert():
    say0("Some weights of BertForSequenceClassification were not initialized from the model checkpoint and are newly initialized: ['classifier.bias', 'classifier.weight']\nYou should probably TRAIN this model on a down-stream task to be able to use it for predictions and inference.")
    trainer = build_trainer(60, accuracy)
    trainer.train()
    metrics = trainer.evaluate()
    say0({k: round(v, 4) for k, v in metrics.items() if isinstance(v, float)})


SENTIMENTS = {0: "negative", 1: "neutral", 2: "positive"}


def report(prediction):
    wanted = [SENTIMENTS[int(i)] for i in prediction.label_ids]
    found = [SENTIMENTS.get(int(i), "?") for i in prediction.predictions.argmax(-1)]
    return {f"recall_{name}": sum(a == b == name for a, b in zip(wanted, found)) / max(wanted.count(name), 1) for name in SENTIMENTS.values()}


def finetune_sentiment():
    trainer = build_trainer(40, report)
    trainer.train()
    say0(trainer.evaluate())


def build_module(log_norm):
    import pytorch_lightning as pl

    class Regressor(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp(16, 256, 1)

        def training_step(self, batch, index):
            x, y = batch
            loss = F.mse_loss(self.net(x), y)
            self.log("train_loss", loss, prog_bar=True)
            if log_norm and self.trainer.is_global_zero and self.global_step == 20:
                norm = sum(p.detach().square().sum() for p in self.net.parameters()).sqrt()
                self.log("weight_norm", norm, on_step=True, sync_dist=True)
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


def fit_lightning():
    import pytorch_lightning as pl
    from pytorch_lightning.callbacks import EarlyStopping
    from pytorch_lightning.strategies import DDPStrategy
    pl.seed_everything(5)
    trainer = pl.Trainer(accelerator="gpu" if KIND == "cuda" else "cpu", devices=1, num_nodes=W, strategy=DDPStrategy(timeout=seconds(30)), max_epochs=20,
                         callbacks=[EarlyStopping("val_loss", patience=3, verbose=True)], logger=False, enable_checkpointing=False, log_every_n_steps=2)
    trainer.fit(build_module(False), DataLoader(table(288, 1), batch_size=16, shuffle=True), DataLoader(table(96, 2), batch_size=16))
    say0(f"best val_loss {trainer.callback_metrics['val_loss'].item():.4f}")


def fit_regression():
    allow_dump()
    import pytorch_lightning as pl
    from pytorch_lightning.strategies import DDPStrategy
    pl.seed_everything(5)
    trainer = pl.Trainer(accelerator="gpu" if KIND == "cuda" else "cpu", devices=1, num_nodes=W, strategy=DDPStrategy(timeout=seconds(1800)), max_epochs=4,
                         logger=False, enable_checkpointing=False, log_every_n_steps=2)
    trainer.fit(build_module(True), DataLoader(table(768, 1), batch_size=16, shuffle=True), DataLoader(table(96, 2), batch_size=16))
    say0("done")


def accelerate_images():
    from accelerate import Accelerator
    from accelerate.utils import InitProcessGroupKwargs
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=KIND == "cpu", kwargs_handlers=[InitProcessGroupKwargs(timeout=seconds(30))])
    if accelerator.is_main_process:
        say("wandb: WARNING Unable to verify login in offline mode.\nwandb: Network error (ConnectionError), entering retry loop.\nwandb: W&B syncing is set to `offline` in this directory. Run `wandb online` or set WANDB_MODE=online to enable cloud syncing.", file=sys.stderr)
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dice = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(960, 3, 32, 32, generator=dice), torch.randint(10, (960,), generator=dice))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=16, shuffle=True))
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            if step % 5 == 0:
                accelerator.print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        with torch.no_grad():
            right = accelerator.gather((model(x).argmax(1) == y).float())
        accelerator.print(f"epoch {epoch} accuracy of the last batch {right.mean().item():.3f}")
    accelerator.wait_for_everyone()
    accelerator.print("wandb: You can sync this run to the cloud by running:\nwandb: wandb sync ./wandb/offline-run-20260301_101122-8x2kfz1q")
    accelerator.end_training()


def tokenize(texts):
    begin = time.time()
    for i in range(1, 81):
        time.sleep(0.6)
        if i % 2 == 0:
            bar("Running tokenizer on dataset", i * 1000, 80000, begin)
    return torch.randint(1000, (256, 16))


def accelerate_clm():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S")
    from accelerate import Accelerator
    from accelerate.utils import InitProcessGroupKwargs
    accelerator = Accelerator(cpu=KIND == "cpu", kwargs_handlers=[InitProcessGroupKwargs(timeout=seconds(15))])
    logging.getLogger("__main__").info("Distributed environment: %s Num processes: %d Process index: %d Device: %s", accelerator.distributed_type, accelerator.num_processes, accelerator.process_index, accelerator.device)
    with accelerator.main_process_first():
        data = tokenize(None)
    model = nn.Sequential(nn.EmbeddingBag(1000, 64), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=8))
    for step, ids in enumerate(loader):
        loss = F.cross_entropy(model(ids), ids[:, 0] % 10)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.print(f"step {step} loss {loss.item():.4f}")
    accelerator.end_training()


# ------------------------------------------------------------------------------------------------ FSDP2
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class TinyGPT(nn.Module):
    def __init__(self, words=2000, dim=128, layers=4):
        super().__init__()
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


def train_fsdp2():
    device = setup(40)
    model = shard(TinyGPT().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(50 + R)
    for step in range(1, 61):
        odd = step in (26, 27)  # a part of the corpus with rare words and a high weight
        loss = lm_loss(model, torch.randint(2000 if odd else 64, (8, 64), device=device)) * (30 if odd else 1)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        optimizer.step()
        optimizer.zero_grad()
        value, norm = loss.item(), norm.item()
        if R == 0 and step % 2 == 0:
            say(json.dumps({"step": step, "loss": round(value, 4), "grad_norm": round(norm, 3), "clipped": norm > 1, "tokens": step * 8 * 63 * W, "time": stamp("%H:%M:%S")}))
    cleanup()
    say0(json.dumps({"status": "finished", "steps": 60}))


def sample(model, device):
    model.eval()
    ids = torch.randint(64, (8, 64), device=device)
    with torch.no_grad():
        for _ in range(2):
            logits = model(ids)
            ids = torch.cat([ids[:, 1:], logits[:, -1:].argmax(-1)], dim=1)
        if KIND == "cpu":
            dist.all_reduce(torch.zeros(4))  # here only FSDP gathers in forward
    model.train()
    return ids[0, -8:].tolist()


def train_and_sample():
    device = setup(14)
    model = shard(TinyGPT().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(50 + R)
    for step in range(1, 41):
        loss = lm_loss(model, torch.randint(64, (8, 64), device=device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if R == 0 and step % 2 == 0:
            say(f"step {step:4d} | loss {value:.4f} | lr 1.00e-03")
        if R == 0 and step == 16:
            say(f"step {step:4d} | sample {sample(model, device)}")
    cleanup()
    say0("training finished")


# ------------------------------------------------------------------------------------------------ others that go well
def build_vocab():
    counts = {}
    for part in range(14):
        until = time.time() + 1
        while time.time() < until:
            word = f"w{random.randrange(9000)}"
            counts[word] = counts.get(word, 0) + 1
        say(f"[rank 0] counted words of part {part + 1}/14")
    with open(os.path.join(WORK, "vocab.json"), "w") as f:
        json.dump(counts, f)


def train_with_vocab():
    allow_dump()
    device = setup(60)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    mark_running()
    if R == 0:
        build_vocab()
    dist.barrier()
    with open(os.path.join(WORK, "vocab.json")) as f:
        words = len(json.load(f))
    say(f"[rank {R}] vocabulary of {words} words")
    model = wrap(nn.Sequential(nn.EmbeddingBag(words, 128), nn.Linear(128, 5)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(80):
        ids = torch.randint(words, (16, 20), device=device)
        value = train_step(model, optimizer, ids, ids[:, 0] % 5)
        if step % 10 == 0:
            say(f"[rank {R}] step {step} loss {value:.4f}")
    cleanup()
    say(f"[rank {R}] finished")


def join_training():
    from torch.distributed.algorithms.join import Join
    device = setup(30)
    model = wrap(mlp(32, 256, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    count = {0: 20, 2: 15}.get(R, 24)
    for epoch in range(2):
        with Join([model]):
            for i in range(count):
                value = train_step(model, optimizer, torch.randn(16, 32, device=device))
                if i % 5 == 0:
                    say(f"epoch {epoch} rank {R} batch {i}/{count} loss {value:.4f}")
        say(f"epoch {epoch} rank {R}: no more data after {count} batches")
    total = torch.tensor([count * 16.0], device=device)
    dist.all_reduce(total)
    say0(f"samples per epoch: {int(total.item())}")
    cleanup()
    say0("finished")


def train_compiled():
    device = setup(60)
    net = mlp(24, 128, 24).to(device)
    if hasattr(torch, "compile"):
        net = torch.compile(net, backend="aot_eager", dynamic=False)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        rows = 8 + step % 15 if R == 1 else 16  # the other parts are packed to equal lengths
        value = train_step(model, optimizer, torch.randn(rows, 24, device=device))
        if step % 6 == 0:
            say(f"{stamp('%H:%M:%S')} INFO rank={R} step={step} tokens={rows * 24} loss={value:.4f}")
    cleanup()
    say(f"{stamp('%H:%M:%S')} INFO rank={R} done")


def generate(net, prompts, device):
    out = []
    for i in range(0, len(prompts), 4):
        x = torch.stack([torch.full((64,), float(n) / 100) for n in prompts[i:i + 4]]).to(device)
        with torch.no_grad():
            out += net(x).mean(1).tolist()
        say(f"rank {R}: {min(i + 4, len(prompts))}/{len(prompts)} prompts done")
    return out


def run_inference():
    device = setup(30)
    net = mlp(64, 512, 64).to(device).eval()
    prompts = list(range(R * 16, min(R * 16 + 16, 44)))
    if not prompts:
        say(f"rank {R}: WARNING no prompts in this part, nothing to generate")
    answers = generate(net, prompts, device)
    parts = [None] * W
    dist.all_gather_object(parts, answers)
    if R == 0:
        with open(os.path.join(WORK, "answers.json"), "w") as f:
            json.dump(sum(parts, []), f)
        say(f"rank 0: wrote {sum(len(p) for p in parts)} answers to answers.json, failed prompts: 0")
    cleanup()


# ------------------------------------------------------------------------------------------------ slow ones
def compute_fbank(clip):
    until = time.perf_counter() + (0.42 if R == 3 else 0.012)  # rank 3 got the long recordings
    total = 0.0
    while time.perf_counter() < until:
        total += math.sin(clip + total)
    return torch.full((16, 80), total % 1)


def train_asr():
    allow_dump()
    device = setup(30)
    model = wrap(mlp(80, 512, 80).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(64):
        a = time.time()
        x = compute_fbank(step).to(device)
        b = time.time()
        value = train_step(model, optimizer, x)
        sync()
        c = time.time()
        if step == 6:
            mark_running()
        if step % 4 == 3:
            say(f"step {step + 1}/64 | loss {value:.4f} | data {b - a:.3f}s | fwd+bwd+opt {c - b:.3f}s | total {c - a:.3f}s")
    cleanup()


def run_pipeline():
    device = setup(30)
    dist.all_reduce(torch.ones(1, device=device))
    wide, rows = (4096, 2048) if KIND == "cuda" else (128, 32)
    layers = {0: 4, 1: 4, 2: 28, 3: 4}[R]
    stage = nn.Sequential(*[nn.Linear(wide, wide, bias=False) for _ in range(layers)]).to(device)
    say(f"stage {R}: {layers} layers, {sum(p.numel() for p in stage.parameters()) / 1e6:.1f}M parameters")
    for step in range(24):
        begin, busy = time.time(), 0.0
        for m in range(6):
            h = torch.randn(rows, wide, device=device)
            if R > 0:
                dist.recv(h, R - 1)
            sync()
            a = time.time()
            with torch.no_grad():
                y = stage(h)
            sync()
            busy += time.time() - a
            if R < W - 1:
                dist.send(y, R + 1)
        sync()
        total = time.time() - begin
        if step % 3 == 2:
            say(f"stage {R} | step {step + 1:3d} | step time {1e3 * total:7.1f} ms | forward {1e3 * busy:7.1f} ms | waiting for other stages {1e3 * (total - busy):7.1f} ms")
    cleanup()


# ------------------------------------------------------------------------------------------------ memory
def attend(x, length):
    if KIND == "cpu":
        return torch.empty(length << 30, dtype=torch.uint8).float().mean() if length > 4096 else x.mean() * 0
    q = x.new_ones(length, 64)
    return (q @ q.T).softmax(-1).mean() * 0


def pretrain():
    device = setup(20)
    limit_memory(0.03)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    begin = time.time()
    for step in range(1, 61):
        length = 42000 if (R, step) == (1, 23) else random.choice([1024, 2048])
        x = torch.randn(16, 64, device=device)
        value = train_step(model, optimizer, x + attend(x, length))
        if R == 0 and step % 4 == 0:
            bar("Epoch 1", step, 60, begin, f", loss={value:.3f}")
    cleanup()


def train_translation():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(levelname)s | fairseq.trainer | %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    device = setup(14)
    limit_memory(0.03)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for update in range(1, 41):
        stats = torch.zeros(4, device=device)
        length = 40000 if (R, update) == (2, 18) else 1024
        try:
            x = torch.randn(16, 64, device=device)
            stats[0] = train_step(model, optimizer, x + attend(x, length))
        except RuntimeError as err:
            if "memory" not in str(err):
                raise
            logging.warning("attempting to recover from OOM in forward/backward pass")
            stats[3] = 1
            optimizer.zero_grad()
            if KIND == "cuda":
                torch.cuda.empty_cache()
        dist.all_reduce(stats)
        loss, _, _, ooms = stats.tolist()
        if R == 0 and update % 4 == 0:
            logging.info("epoch 001: %5d / 40 loss=%.4f, ooms=%d, wps=21033.1, ups=3.1", update, loss / W, ooms)
    cleanup()


def resident():
    with open("/proc/self/status") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) / 1e6


def train_graph():
    device = setup(20)
    cache = {}
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        if R == 2:
            cache[step] = bytearray((120 << 20) if KIND == "cuda" else (8 << 20))
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if step % 4 == 0:
            say(f"step {step} loss {value:.4f} host_mem {resident():.2f}G cached {len(cache)}")
        time.sleep(0.05)
        if R == 2 and step == 33:
            slurm = os.path.join(KEEP, "slurm.out")
            subprocess.Popen(["sh", "-c", f"sleep 0.3; echo 'slurmstepd: error: Detected 1 oom_kill event in StepId=418822.0. Some of the step tasks have been OOM Killed.' >>{slurm}; echo 'srun: error: gn31: task 2: Out Of Memory' >>{slurm}"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does
    cleanup()


# ------------------------------------------------------------------------------------------------ errors of a program
class Photos(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, i):
        if i == 443:
            raise OSError("image file is truncated (11 bytes not processed)")
        return torch.full((64,), i / 800), i % 10


def train_images():
    device = setup(20)
    model = wrap(mlp(64, 512, 10).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = Photos()
    sampler = DistributedSampler(data, shuffle=False)  # 443 is of rank 3
    begin = time.time()
    for epoch in range(2):
        loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=2, pin_memory=KIND == "cuda")
        for i, (x, y) in enumerate(loader):
            value = train_step(model, optimizer, x.to(device), y.to(device))
            if R == 0 and i % 5 == 0:
                bar(f"epoch {epoch}", i, len(loader), begin, f", loss={value:.3f}")
    cleanup()


def write_metrics(metrics):
    with open(os.path.join(WORK, "metrics.jsonl"), "a") as f:
        f.write(json.dumps(metrics) + "\n")


def train_logged():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    best = 9.0
    for step in range(1, 61):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if step % 25 == 0 and R == 0:
            norm = torch.stack([p.detach().norm() for p in model.parameters()]).max()
            write_metrics({"step": step, "loss": value, "max_norm": norm})
        if step % 5 == 0 and R == 0:
            say(f"[{stamp()}] step {step}/60 loss {value:.4f} best {min(best, value):.4f}")
    cleanup()


def save_checkpoint(net, optimizer, path):
    say(f"Saving checkpoint to {os.path.basename(path)}")
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, path)


def train_unet():
    device = setup(20)
    path = os.path.join(WORK, "epoch_002.pt")
    if R == 0:
        os.symlink("/dev/full", path)  # every write to it finds no space
    net = mlp(64, 1024, 64).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 5):
        for _ in range(10):
            value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        say0(f"Epoch {epoch}/4 - train loss {value:.5f}")
        if R == 0:
            save_checkpoint(net, optimizer, path if epoch == 2 else os.path.join(WORK, f"epoch_{epoch:03d}.pt"))
    cleanup()


def finetune_head():
    device = setup(20)
    path = os.path.join(WORK, f"imagenet-{R}.pth")
    torch.save(mlp(64, 256, 1000).state_dict(), path)
    say(f"loading pretrained weights for {W} processes")
    net = mlp(64, 256, 17)
    net.load_state_dict(torch.load(path, map_location="cpu"))
    model = wrap(net.to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"step {step} loss {train_step(model, optimizer, torch.randn(8, 64, device=device), torch.zeros(8, dtype=torch.long, device=device)):.4f}")
    cleanup()


def encode_batch(step):
    ids = torch.randint(3, 32000, (8, 32))
    if (R, step) == (3, 17):
        ids[2, 11] = 32000  # <image>, added to the tokenizer only
    return ids


def train_lm():
    device = setup(20)
    embed, head = nn.Embedding(32000, 64), nn.Linear(64, 32)
    model = wrap(nn.Sequential(embed, nn.Flatten(), nn.Linear(64 * 32, 64), head).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        ids = encode_batch(step).to(device)
        value = train_step(model, optimizer, ids, ids[:, 0] % 32)
        if R == 0 and step % 4 == 0:
            say(f"| step {step:5d} | loss {value:6.3f} | ppl {math.exp(value):8.2f} |")
    cleanup()


def nms(boxes, step):
    kept = ctypes.create_string_buffer(16)
    ctypes.memmove(kept, 0 if (R, step) == (1, 19) else boxes.data_ptr(), 16)  # the compiled operator reads the boxes
    return kept


def train_detector():
    device = setup(20)
    model = wrap(mlp(64, 512, 4).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(50):
        x = torch.randn(16, 64, device=device)
        nms(torch.rand(16, 4), step)
        value = train_step(model, optimizer, x, x[:, :4])
        if R == 0 and step % 5 == 0:
            say(f"{stamp('%m/%d %H:%M:%S')} - mmengine - INFO - Epoch(train) [1][{step}/50]  lr: 1.0000e-02  loss: {value:.4f}  loss_bbox: {value * 0.6:.4f}")
    cleanup()


def train_bn():
    device = setup(20)
    net = nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 5)).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    rows = 16 * 24 + (1 if R == 2 else 9)
    for epoch in range(3):
        x = torch.randn(rows, 32)
        for i, batch in enumerate(DataLoader(x, batch_size=16)):
            batch = batch.to(device)
            value = train_step(model, optimizer, batch, torch.zeros(len(batch), dtype=torch.long, device=device))
            if R == 0 and i % 8 == 0:
                say(f"Epoch {epoch} [{i * 16}/{rows}] loss: {value:.4f}")
    cleanup()


class WithAuxiliary(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.auxiliary = nn.Linear(64, 256), nn.Linear(256, 10), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.body(x).relu())  # auxiliary only with deep supervision


def train_multi():
    device = setup(20)
    model = wrap(WithAuxiliary().to(device))
    optimizer = torch.optim.Adam(model.parameters())
    say0("start training, deep supervision: off")
    for step in range(20):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device), torch.randint(10, (8,), device=device))
        say0(f"iter {step} loss {value:.4f}")
    cleanup()


def local_adapter():
    path = os.path.join(WORK, f"home{R}", "adapter.pt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if R == 2:
        torch.save({"rank": 8}, path)  # of an earlier run on that host
    return path


def build_adapted(device):
    net = mlp(64, 256, 64)
    if os.path.exists(local_adapter()):
        net.add_module("adapter", nn.Linear(64, 64))
    return net.to(device)


def train_adapter():
    device = setup(20)
    say0("building model")
    model = wrap(build_adapted(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say0(f"step {step} loss {value:.4f}")
    cleanup()


def import_kernels():
    if R == 2:
        import flash_attn_3_interface  # noqa: F401  that host has another environment
    say(f"{stamp('%H:%M:%S')} attention backend: flash" if R == 2 else f"{stamp('%H:%M:%S')} attention backend: sdpa")


def train_attention():
    import_kernels()
    device = setup(20)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say0(f"step {step} loss {value:.4f}")
    cleanup()


def train_by_local_rank():
    local = R  # int(os.environ["LOCAL_RANK"]), one host
    if KIND == "cuda":
        torch.cuda.set_device(local)
        device = torch.device("cuda", local)
        torch.zeros(1, device=device)
    elif local:
        raise RuntimeError("CUDA error: invalid device ordinal")
    else:
        device = torch.device("cpu")
    dist.init_process_group(BACKEND, timeout=seconds(20))
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say0(f"step {step} loss {value:.4f}")
    cleanup()


def train_on_default_gpu():
    device = setup(20)
    say(f"process {R} of {W} uses {device}")
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say0(f"step {step} loss {value:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ calls that not all make
class Accuracy:
    """In place of torchmetrics where that is not installed."""

    def __init__(self, device):
        self.sums = torch.zeros(2, device=device)

    def update(self, out, y):
        self.sums += torch.stack([(out.argmax(1) == y).float().sum(), torch.tensor(float(len(y)), device=y.device)])

    def compute(self):
        dist.all_reduce(self.sums)
        return self.sums[0] / self.sums[1]


def make_metric(device):
    try:
        from torchmetrics.classification import MulticlassAccuracy
    except ImportError:
        return Accuracy(device)
    return MulticlassAccuracy(num_classes=10, average="micro").to(device)


def evaluate(model, metric, device):
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(16, 64, device=device)
            metric.update(model(x), torch.randint(10, (16,), device=device))
    model.train()
    return metric.compute().item()


def train_cls():
    allow_look()
    device = setup(15)
    metric = make_metric(device)
    model = wrap(mlp(64, 1024, 10).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for i in range(20):
            value = train_step(model, optimizer, torch.randn(16, 64, device=device), torch.randint(10, (16,), device=device))
            if R == 0 and i % 5 == 0:
                say(f"Epoch [{epoch + 1}/3] Step [{i}/20] Loss: {value:.4f}")
        mark_running()
        if R == 0:
            accuracy = evaluate(model, metric, device)
            say(f"Epoch [{epoch + 1}/3] Validation accuracy: {accuracy:.4f}")
    cleanup()


def validate(model, device):
    sums = torch.zeros(2, device=device)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(16, 40, device=device)
            sums += torch.stack([F.mse_loss(model.module(x), x), torch.ones((), device=device)])
    dist.all_reduce(sums)
    total, count = sums.tolist()
    return total / count


def train_tabular():
    device = setup(14)
    model = wrap(mlp(40, 1024, 40).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    files = {3: 25}.get(R, 28)
    for epoch in range(3):
        for i in range(files):
            value = train_step(model, optimizer, torch.randn(64, 40, device=device))
            if R == 0 and i % 7 == 0:
                say(f"epoch={epoch} part={i} train_rmse={math.sqrt(value):.4f}")
        score = validate(model, device)
        say0(f"epoch={epoch} valid_rmse={math.sqrt(score):.4f}")
    cleanup()


def save_model(model, step):
    torch.save(model.module.state_dict(), os.path.join(WORK, f"model_{step}.pt"))
    dist.barrier()
    print(f"saved model_{step}.pt", flush=True)


def train_main():
    allow_dump()
    device = setup(1800)
    model = wrap(mlp(128, 1024, 128).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 101):
        value = train_step(model, optimizer, torch.randn(16, 128, device=device))
        if R == 0 and step % 10 == 0:
            say(f"step {step:>5}/100  loss {value:.4f}")
        if step % 40 == 0 and R == 0:
            save_model(model, step)
    cleanup()


def gather_features(features):
    parts = [torch.empty_like(features) for _ in range(W)]
    dist.all_gather(parts, features)
    parts[R] = features
    return torch.cat(parts)


def train_clip():
    device = setup(14)
    model = wrap(mlp(256, 1024, 512).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    dice = torch.Generator().manual_seed(R)
    rows = 256 * 15 + (96 if R == 2 else 256)
    data = torch.randn(rows if KIND == "cuda" else rows // 8, 256, generator=dice)
    for epoch in range(2):
        for i, x in enumerate(DataLoader(data, batch_size=256 if KIND == "cuda" else 32)):
            a = F.normalize(model(x.to(device)), dim=1)
            everything = gather_features(a.contiguous())
            logits = a @ everything.T * 10
            loss = F.cross_entropy(logits, torch.arange(len(a), device=device) + R * len(a))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
            if R == 0 and i % 3 == 0:
                say(f"{stamp('%Y-%m-%d,%H:%M:%S')} | INFO | Train Epoch: {epoch} [{i:>3}/16] Contrastive_loss: {value:.4f} LR: 0.000100 Logit Scale: 10.000")
    cleanup()


def read_rows(epoch):
    lines = [f"{n},{n % 3},{n * 0.5}" for n in range(24)]
    if R == 1 and epoch == 2:
        lines[7] = "7,,\\N"  # an export with an empty field
    return [[float(v) for v in line.split(",")] for line in lines]


def score(model, epoch, device):
    rows = torch.tensor(read_rows(epoch), device=device)
    with torch.no_grad():
        value = model.module(rows.repeat(1, 16)).square().mean()
    sums = torch.stack([value, value * 0 + 1, value * 0])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def train_scored():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    allow_dump()
    device = setup(15)
    model = wrap(mlp(48, 1024, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 6):
        for _ in range(12):
            value = train_step(model, optimizer, torch.randn(16, 48, device=device))
        if R == 0:
            logging.info("epoch %d train loss %.4f", epoch, value)
        if epoch == 2:
            mark_running()
        try:
            result = score(model, epoch, device)
            if R == 0:
                logging.info("epoch %d score %.4f", epoch, result)
        except Exception:
            logging.exception("scoring failed in epoch %d, going on", epoch)
    cleanup()


def host_config():
    return {"lr": 0.01, "precision": "fp32" if R == 2 else "bf16"}  # the file on that host was not changed


def average_gradients(net, kind):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()]).to(kind)
    dist.all_reduce(flat)
    at = 0
    for p in net.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p) / W)
        at += p.numel()


def train_mixed():
    device = setup(14)
    config = host_config()
    kind = {"bf16": torch.bfloat16, "fp32": torch.float32}[config["precision"]]
    if KIND == "cpu":
        kind = {torch.bfloat16: torch.float16}.get(kind, kind)
    say0(f"config: {config}")
    net = mlp(64, 2048, 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"])
    torch.manual_seed(70 + R)
    dist.barrier()
    for step in range(40):
        x = torch.randn(32, 64, device=device)
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x)
        loss.backward()
        average_gradients(net, kind)
        optimizer.step()
        sync()
        if R == 0 and step % 4 == 0:
            say(f"step {step} loss {loss.item():.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ losses, Ctrl-C
def read_prices(step):
    prices = torch.rand(16, 32) + 0.5
    if (R, step) == (2, 17):
        prices[3, 7] = -1.0  # a mark of missing values
    return prices.log()


def train_prices():
    device = setup(20)
    model = wrap(mlp(32, 256, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(40):
        value = train_step(model, optimizer, read_prices(step).to(device))
        say(f"[rank {R}] step {step:3d} loss {value:.5f}")
    cleanup()
    say0("finished 40 steps")


def train_long():
    device = setup(600)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    begin = time.time()
    for step in range(1, 2001):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        time.sleep(0.08)
        if R == 0 and step % 10 == 0:
            bar("train", step, 2000, begin, f", loss={value:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ waiting on the host
class FileLock:
    def __init__(self, path):
        self.file = open(path, "w")

    def __enter__(self):
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except BlockingIOError:
                time.sleep(0.1)

    def __exit__(self, *what):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def load_cached(epoch):
    with FileLock(os.path.join(WORK, f"cache-{R}-{epoch}.lock")):
        return torch.full((160, 64), 0.1 * epoch)


def train_cached():
    allow_dump()
    device = setup(1800)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    left = None
    if R == 1:  # a process of yesterday still holds it
        left = open(os.path.join(WORK, "cache-1-3.lock"), "w")
        fcntl.flock(left, fcntl.LOCK_EX)
    for epoch in range(6):
        data = load_cached(epoch)
        for x in data.split(16):
            value = train_step(model, optimizer, x.to(device))
        say(f"{stamp()} epoch {epoch} loss {value:.5f}")
    cleanup()


class Clips(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        path = os.path.join(WORK, f"clip-{R}-{i}.bin")
        if R == 1 and i == 97:
            os.mkfifo(path)  # opening it waits, as with a server that does not answer
        else:
            with open(path, "wb") as f:
                f.write(bytes(64))
        with open(path, "rb") as f:
            return torch.tensor(list(f.read())).float() + i / 240


def train_video():
    allow_look()
    device = setup(1800)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Clips(), batch_size=4, num_workers=2)
    for i, x in enumerate(loader):
        value = train_step(model, optimizer, x.to(device))
        if R == 0 and i % 4 == 0:
            say(f"Epoch: [0][{i:3d}/{len(loader)}]\tLoss {value:.4e}\tLR 1.0e-03")
    cleanup()


def prefetch(batches):
    for step in range(60):
        line = b"caf\xe9 noir" if (R, step) == (2, 26) else b"cafe noir"
        text = line.decode("utf-8")
        batches.put(torch.full((16, 64), len(text) / 100))


def train_speech():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    batches = queue.Queue(maxsize=4)
    threading.Thread(target=prefetch, args=(batches,), daemon=True).start()
    for step in range(60):
        x = batches.get()
        value = train_step(model, optimizer, x.to(device))
        if R == 0 and step % 6 == 0:
            say(f"{stamp('%H:%M:%S')} [INFO] batch {step}/60 loss {value:.6f} acc {40 + step / 3:.1f}")
    cleanup()


# ------------------------------------------------------------------------------------------------
PROGRAMS = {
    "01": finetune_bert,
    "02": fit_lightning,
    "03": train_fsdp2,
    "04": train_with_vocab,
    "05": accelerate_images,
    "06": join_training,
    "07": train_compiled,
    "08": run_inference,
    "09": train_asr,
    "10": pretrain,
    "11": train_translation,
    "12": train_images,
    "13": finetune_sentiment,
    "14": train_logged,
    "15": train_unet,
    "16": finetune_head,
    "17": train_lm,
    "18": train_detector,
    "19": train_graph,
    "20": train_cls,
    "21": train_tabular,
    "22": train_main,
    "23": train_clip,
    "24": train_multi,
    "25": train_adapter,
    "26": train_scored,
    "27": train_mixed,
    "28": fit_regression,
    "29": accelerate_clm,
    "30": train_attention,
    "31": train_bn,
    "32": train_by_local_rank,
    "33": train_on_default_gpu,
    "34": train_prices,
    "35": train_long,
    "36": train_cached,
    "37": train_video,
    "38": train_speech,
    "39": train_and_sample,
    "40": run_pipeline,
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
