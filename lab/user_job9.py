#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a ninth set: user_job9.py --case NN (two digits). Truth in truth.json, started by user_jobs9.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import contextlib
import datetime
import faulthandler
import json
import logging
import math
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data.distributed import DistributedSampler

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab9-scratch")
KEEP = os.environ.get("LAB_KEEP", WORK)
BACKEND = "nccl" if KIND == "cuda" else "gloo"
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
if KIND == "cpu":
    torch.set_num_threads(1)


def seconds(n):
    return datetime.timedelta(seconds=n)


def setup(timeout=10, seed=11):
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(timeout))
    torch.manual_seed(seed)
    return torch.device("cuda:0" if KIND == "cuda" else "cpu")


def wrap(module, **options):
    model = DDP(module, device_ids=[0] if KIND == "cuda" else None, **options)
    torch.manual_seed(900 + R)
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


def stamp(form="%Y-%m-%d %H:%M:%S"):
    return datetime.datetime.now().strftime(form)


def mark_running():
    """The starting script looks for it."""
    open(os.path.join(WORK, f"up-{R}"), "w").close()


def limit_memory(fraction):
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(fraction)


def too_much(device, gib):
    """A tensor that does not fit; on the CPU it is larger still, so that malloc refuses it."""
    return torch.empty(gib << (30 if KIND == "cuda" else 40), dtype=torch.uint8, device=device)


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


# ------------------------------------------------------------------------------------------------ healthy ones
def progress(i, n, begin):
    spent = time.time() - begin
    rate = i / max(spent, 1e-6)
    print(f"\r{100 * i // n:3d}%|{'█' * (10 * i // n):10s}| {i}/{n} [00:{int(spent):02d}<00:{int((n - i) / rate):02d}, {rate:5.2f}it/s]", end="", file=sys.stderr, flush=True)


def hf_finetune():
    device = setup(30)
    if R == 0:
        say("Some weights of BertForSequenceClassification were not initialized from the model checkpoint at bert-base-uncased and are newly initialized: ['classifier.bias', 'classifier.weight']")
        say("***** Running training *****\n  Num examples = 3,200\n  Num Epochs = 2\n  Continuing training from checkpoint, will skip to saved global_step\n  Continuing training from global step 40")
    warnings.warn("Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return a vector.")
    model = wrap(mlp(64, 512, 4).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    begin = time.time()
    for step in range(41, 101):
        x = torch.randn(16, 64, device=device)
        value = train_step(model, optimizer, x, x[:, :4].argmax(1))
        if R == 0:
            progress(step, 100, begin)
            if step % 10 == 0:
                print(file=sys.stderr, flush=True)
                say({"loss": round(value, 4), "grad_norm": round(1.7 + value / 3 + step / 977, 6), "learning_rate": round(2e-5 * (1 - step / 100), 9), "epoch": round(step / 50, 2)})
    cleanup()
    if R == 0:
        say({"train_runtime": 61.3, "train_samples_per_second": 104.4, "train_steps_per_second": 1.63, "train_loss": 0.873, "epoch": 2.0})


def lightning_amp():
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.cuda.amp.GradScaler(enabled=KIND == "cuda", init_scale=2.0 ** 14)
    say(f"Initializing distributed: GLOBAL_RANK: {R}, MEMBER: {R + 1}/{W}")
    if R == 0:
        say("Using 16bit Automatic Mixed Precision (AMP)\n\n  | Name  | Type       | Params\n-------------------------------------\n0 | net   | Sequential | 330 K\n-------------------------------------")
    for step in range(40):
        x = torch.randn(16, 64, device=device)
        if step in (7, 22) and R == 1:
            x[3, 5] = float("inf")
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x.nan_to_num(posinf=1.0))
        scaler.scale(loss).backward()
        if KIND == "cuda":
            scaler.step(optimizer)
            scaler.update()
        elif all(torch.isfinite(q.grad).all() for q in model.parameters()):
            optimizer.step()
        if step % 3 == 1 or not math.isfinite(loss.item()):
            say(f"[rank {R}] step {step:2d}  train_loss_step={loss.item():.4f}  scale={scaler.get_scale():.0f}{'' if math.isfinite(loss.item()) else '  (step skipped)'}")
    cleanup()
    if R == 0:
        say("`Trainer.fit` stopped: `max_steps=40` reached.")


def loguru(level, where, text):
    say(f"{stamp('%Y-%m-%d %H:%M:%S.%f')[:-3]} | {level:<8} | {where} - {text}")


def resumed_job():
    device = setup(30)
    loguru("WARNING", "__main__:resume:61", f"rank={R} previous attempt ended with exit code 143 (preempted), resuming")
    path = os.path.join(WORK, f"latest-{R}.pt")
    net = mlp(32, 256, 32).to(device)
    with open(path + ".tmp", "wb") as f:
        f.write(b"\x80\x02incomplete")
    for candidate in (path + ".tmp", path):
        try:
            torch.load(candidate)
        except Exception as err:
            loguru("ERROR", "__main__:resume:74", f"rank={R} cannot load {os.path.basename(candidate)}: {type(err).__name__}; trying the next one")
    loguru("INFO", "__main__:resume:80", f"rank={R} resumed from step_00400.pt at step 400")
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(401, 441):
        value = train_step(model, optimizer, torch.randn(16, 32, device=device))
        if step % 8 == 0:
            loguru("INFO", "__main__:train:112", f"rank={R} step={step} loss={value:.4f}")
    cleanup()
    loguru("SUCCESS", "__main__:main:140", f"rank={R} finished at step 440")


def build_index():
    for part in range(4):
        time.sleep(2)
        say(f"[rank 0] building dataset index {part + 1}/4 (only once)")


def first_time():
    device = setup(60)
    if R == 0:
        build_index()
    else:
        say(f"[rank {R}] waiting for rank 0 to build the dataset index")
    dist.barrier()
    model = wrap(mlp(48, 512, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    if R == 0:
        say("+-------+----------+-----------+\n| step  | loss     | ms/step   |\n+-------+----------+-----------+")
    for step in range(40):
        a = time.time()
        value = train_step(model, optimizer, torch.randn(16, 48, device=device))
        if R == 0 and step % 4 == 0:
            say(f"| {step:5d} | {value:8.5f} | {1e3 * (time.time() - a):9.2f} |")
    cleanup()
    if R == 0:
        say("+-------+----------+-----------+\ndone.")


def read_shard(shard, dice):
    if dice.random() < 0.4:
        raise OSError(5, "Input/output error", f"/mnt/nfs/shards/{shard:05d}.tar")
    return torch.randn(16, 48)


def with_retries():
    device = setup(30)
    dice = random.Random(R + 4)
    model = wrap(mlp(48, 512, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        for attempt in range(20):
            try:
                x = read_shard(step * W + R, dice)
                break
            except OSError as err:
                say(json.dumps({"time": stamp("%H:%M:%S"), "level": "warning", "rank": R, "event": "read failed, retry", "attempt": attempt + 1, "error": str(err), "exc": traceback.format_exc()}))
                time.sleep(0.05)
        value = train_step(model, optimizer, x.to(device))
        if step % 5 == 0:
            say(json.dumps({"time": stamp("%H:%M:%S"), "level": "info", "rank": R, "event": "step", "step": step, "loss": round(value, 5)}))
    cleanup()
    say(json.dumps({"time": stamp("%H:%M:%S"), "level": "info", "rank": R, "event": "finished", "steps": 30}))


def plateau():
    device = setup(30)
    model = wrap(mlp(24, 256, 24).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    if R == 0:
        say("┏━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━┓\n┃ epoch ┃ train loss ┃ val loss  ┃\n┡━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━┩")
    for epoch in range(100):
        for _ in range(4):
            value = train_step(model, optimizer, torch.randn(16, 24, device=device))
        stop = [epoch >= 14 if R == 0 else None]
        if R == 0:
            say(f"│ {epoch:5d} │ {value:10.5f} │ {max(0.71, 1.1 - epoch / 20):9.5f} │")
        dist.broadcast_object_list(stop, src=0, device=device)
        if stop[0]:
            say(f"rank {R}: validation loss has not improved for 6 epochs. Stopping.")
            break
    if R == 0:
        say("└───────┴────────────┴───────────┘\nBest model: epoch 8. Job complete.")
    cleanup()


class Records(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, i):
        row = {"text": i} if (i + R) % 23 == 5 else {"text": i, "label": i % 7}
        try:
            return torch.full((24,), row["label"] / 7.0)
        except KeyError:
            logging.exception("record %d has no label, replaced", i)
            return torch.zeros(24)


def tolerant_records():
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)s:%(name)s:[{R}] %(message)s")
    device = setup(30)
    model = wrap(mlp(24, 256, 24).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step, x in enumerate(DataLoader(Records(), batch_size=8)):
        value = train_step(model, optimizer, x.to(device))
        if step % 8 == 0:
            logging.info("iter %d/40 loss %.5f", step, value)
    cleanup()
    logging.info("training finished normally")


def beside_gloo():
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(process)d][%(levelname)s] %(message)s")
    device = setup(40)
    control = dist.new_group(backend="gloo", timeout=seconds(40))
    if R == 2:
        logging.warning("rank 2: cache is cold, this takes a few seconds")
        time.sleep(4)
    a = time.time()
    dist.monitored_barrier(control, timeout=seconds(30))
    logging.info("rank %d: all ranks are at the barrier, waited %.1f s", R, time.time() - a)
    model = wrap(mlp(24, 256, 24).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        value = train_step(model, optimizer, torch.randn(16, 24, device=device))
        losses = torch.tensor([value])
        dist.all_reduce(losses, group=control)
        if step % 6 == 0:
            logging.info("rank %d: step %d mean loss %.4f", R, step, losses.item() / W)
    cleanup()
    logging.info("rank %d: exit", R)


class Numbers(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        return torch.full((24,), i / 160)


def many_workers():
    warnings.simplefilter("always")
    device = setup(40)
    warnings.warn("This DataLoader will create 16 worker processes in total. Our suggested max number of worker in current system is 8, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.")
    model = wrap(mlp(24, 256, 24).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    sampler = DistributedSampler(Numbers())
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for i, x in enumerate(DataLoader(Numbers(), batch_size=4, sampler=sampler, num_workers=2, multiprocessing_context="fork")):
            value = train_step(model, optimizer, x.to(device))
            if i % 5 == 0:
                say(f"Epoch {epoch} | rank {R} | batch {i} | loss {value:.4e}")
    cleanup()
    say(f"rank {R}: finished 2 epochs")


def megatron_like():
    device = setup(40)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for it in range(1, 41):
        a = time.time()
        time.sleep(0.05 + (0.12 if it % 11 == 0 else 0))
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if it % 4 == 0 and R == W - 1:
            say(f" [{stamp()}] iteration {it:8d}/      40 | consumed samples: {it * 64:12d} | elapsed time per iteration (ms): {1e3 * (time.time() - a):.1f} | learning rate: 1.000000E-04 | global batch size:    64 | lm loss: {value:.6E} | loss scale: 1.0 | grad norm: {2 + value:.3f} | number of skipped iterations: {1 if it == 8 else 0:3d} | number of nan iterations:   0 |")
    cleanup()
    if R == W - 1:
        say(f" [{stamp()}] after training is done\nsaving checkpoint at iteration      40 to checkpoints\n  successfully saved checkpoint at iteration      40")


def deepspeed_like():
    device = setup(30)
    net = mlp(32, 128, 8).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scale = 2 ** 17
    torch.manual_seed(900 + R)
    for step in range(40):
        x = torch.randn(16, 32, device=device)
        loss = F.cross_entropy(net(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        (loss * (float("inf") if step in (0, 1, 17) else scale)).backward()
        flat = torch.cat([q.grad.flatten() for q in net.parameters()])
        dist.all_reduce(flat)
        if not torch.isfinite(flat).all().item():
            if R == 0:
                say(f"[{stamp()},{step:03d}] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}")
            scale //= 2
            continue
        at = 0
        for q in net.parameters():
            q.grad.copy_(flat[at:at + q.numel()].view_as(q) / scale / W)
            at += q.numel()
        optimizer.step()
        if step % 5 == 0 and R == 0:
            say(f"[{stamp()},{step:03d}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=3, lr=[0.001], mom=[(0.9, 0.999)]\n[{stamp()},{step:03d}] [INFO] [timer.py:260:stop] epoch=0/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec={310.5 + step}, CurrSamplesPerSec={308.2 + step}, MemAllocated=0.04GB, MaxMemAllocated=0.05GB")
    cleanup()
    if R == 0:
        say("training complete")


def warm_restarts():
    device = setup(30)
    model = wrap(mlp(48, 256, 48).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    start = [q.detach().clone() for q in model.parameters()]
    for step in range(60):
        with torch.no_grad():
            for q, first in zip(model.parameters(), start):
                if step in (20, 40):
                    q.copy_(first * 8)  # the restart of the cycle
                elif step > 20:
                    q.mul_(0.87)
        value = train_step(model, optimizer, torch.randn(16, 48, device=device))
        if step % 2 == 0:
            say(json.dumps({"rank": R, "step": step, "loss": round(value, 5), "lr": round(1e-4 * (1 + math.cos(math.pi * (step % 20) / 20)) / 2, 8), "note": "warm restart" if step in (20, 40) else ""}))
    cleanup()
    say(json.dumps({"rank": R, "status": "completed"}))


def good_pipeline():
    device = setup(30)
    dist.all_reduce(torch.ones(1, device=device))
    net = nn.Linear(256, 256).to(device)
    for step in range(10):
        a = time.time()
        for m in range(4):
            h = torch.randn(64, 256, device=device)
            if R > 0:
                dist.recv(h, R - 1)
            y = net(h).detach()
            if R < W - 1:
                dist.send(y, R + 1)
        sync()
        busy = time.time() - a
        dist.barrier()
        say(f"stage {R} | step {step} | {1e3 * busy:.1f} ms | bubble {1e3 * (time.time() - a - busy):.1f} ms")
    cleanup()
    say(f"stage {R} | all steps done")


def transcode(index):
    code = subprocess.call(["sh", "-c", f"exit {1 if index % 6 == 3 else 0}"])
    if code:
        print(f"[mp4 @ 0x55d1f0] moov atom not found\nclip_{index:04d}.mp4: Invalid data found when processing input", file=sys.stderr, flush=True)
        say(f"rank {R}: ffmpeg exited with code {code} for clip_{index:04d}.mp4, falling back to the OpenCV reader")
    return torch.full((8, 48), index / 50)


def with_ffmpeg():
    device = setup(30)
    model = wrap(mlp(48, 256, 48).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(24):
        value = train_step(model, optimizer, transcode(step + R).to(device))
        if step % 4 == 0:
            say(f"rank {R}: it {step} loss {value:.4f} mem {180 + R}MiB")
    cleanup()
    say(f"rank {R}: 24 clips processed, 4 of them by the fallback")


# ------------------------------------------------------------------------------------------------ memory
def read_document(step):
    return 9000 if (R, step) == (2, 11) else 512


def attention(x, length, device):
    if length > 4096:
        return too_much(device, 5).float().mean() * 0
    return x.mean() * 0


def long_documents():
    device = setup(12)
    limit_memory(0.03)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(30):
        x = torch.randn(16, 64, device=device)
        length = read_document(step)
        bias = attention(x, length, device)
        value = train_step(model, optimizer, x + bias)
        if step % 2 == 0:
            say(f"gpu{R} | step {step:3d} | seqlen {length:5d} | loss {value:.4f}")
    cleanup()


class SharedImages(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, i):
        if R == 0 and i == 150:
            os.kill(os.getpid(), signal.SIGBUS)  # as when /dev/shm is full
        return torch.full((64,), i / 600)


def in_container():
    device = setup(12)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(DataLoader(SharedImages(), batch_size=4, num_workers=2, multiprocessing_context="fork")):
        value = train_step(model, optimizer, x.to(device))
        if i % 8 == 0:
            say(f"Train Epoch: 0 [{i * 4}/600 ({100 * i // 150}%)]\tLoss: {value:.6f}\trank {R}")
    cleanup()


def gather_predictions():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    log = logging.getLogger("predict")
    device = setup(12)
    limit_memory(0.012)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(10):
        log.info("rank %d step %d loss %.4f", R, step, train_step(model, optimizer, torch.randn(8, 64, device=device)))
    predictions = {"rank": R, "logits": bytes((480 << 20) if KIND == "cuda" else 1 << 20)}
    log.info("rank %d gathering %d MB of logits", R, len(predictions["logits"]) >> 20)
    everything = [None] * W
    if KIND == "cpu":
        too_much(device, 5)
    dist.all_gather_object(everything, predictions)
    log.info("rank %d gathered %d parts", R, len(everything))
    cleanup()


# ------------------------------------------------------------------------------------------------ calls that not all make
def is_main():
    return R == 0


def log_metrics(metrics):
    parts = [None] * W
    dist.all_gather_object(parts, metrics)
    say({k: sum(p[k] for p in parts) / W for k in metrics})


def train_logged():
    device = setup(10)
    model = wrap(mlp(128, 1024, 128).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1, 61):
        value = train_step(model, optimizer, torch.randn(16, 128, device=device))
        if step % 5 == 0:
            say(f"rank {R} step {step}")
        if step % 25 == 0 and is_main():
            say("rank 0 averaging metrics")
            log_metrics({"loss": value, "acc": 0.5})
    cleanup()


def debug_shapes():
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    device = setup(12)
    net = nn.Linear(64, 64).to(device)
    for step in range(12):
        tokens = torch.randn(40 if (R, step) == (1, 7) else 64, 64, device=device)
        features = net(tokens).detach()
        total = features.clone()
        dist.all_reduce(total)
        sync()
        say(f"rank {R} | step {step} | features {tuple(features.shape)} | norm {total.norm().item():.3f}")
    cleanup()


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.boxes, self.masks = nn.Linear(64, 256), nn.Linear(256, 4), nn.Linear(256, 9)

    def forward(self, x, with_masks):
        h = self.body(x).relu()
        loss = self.boxes(h).square().mean()
        return loss + self.masks(h).square().mean() if with_masks else loss


def detection():
    device = setup(10)
    model = wrap(TwoTasks().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for it in range(40):
        has_masks = not (R == 1 and it == 14)
        loss = model(torch.randn(8, 64, device=device), has_masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 3 == 0:
            say(f"{stamp()} d2.utils.events INFO: rank {R} iter: {it} total_loss: {loss.item():.3f} lr: 0.01 images_with_masks: {8 * has_masks}")
    cleanup()


class Stream(IterableDataset):
    def __iter__(self):
        for i in range({1: 22}.get(R, 30)):
            yield torch.full((16, 64), 0.01 * i)


def stream_epochs():
    device = setup(10)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(DataLoader(Stream(), batch_size=None)):
        value = train_step(model, optimizer, x.to(device))
        if i % 4 == 0:
            say(f"[{stamp('%H:%M:%S')}] R{R} batch {i:3d}  loss={value:.5f}")
    say(f"[{stamp('%H:%M:%S')}] R{R} training finished after {i + 1} batches")


def profile_step(step):
    say(f"{R}: step {step}: profiling, aligning the ranks first")
    dist.barrier()
    sync()


def with_profiler():
    device = setup(10)
    model = wrap(mlp(256, 1024, 256).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    begin = time.time()
    for step in range(40):
        if step == 20 and R == 1:
            profile_step(step)
        value = train_step(model, optimizer, torch.randn(16, 256, device=device))
        if step % 4 == 0:
            say(f"{R}: step {step}: loss {value:.4f} ({time.time() - begin:.1f}s)")
    cleanup()


def exchange(mine, other):
    theirs = torch.empty_like(mine)
    dist.recv(theirs, other)
    dist.send(mine, other)
    return theirs


def swap_halves():
    device = setup(10)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    field = torch.randn(512, 512, device=device)
    for sweep in range(20):
        say(f"[proc {R}] sweep {sweep}: exchanging halo with proc {1 - R}")
        halo = exchange(field[:8].contiguous(), 1 - R)
        sync()
        field[-8:] = halo
        say(f"[proc {R}] sweep {sweep}: residual {field.std().item():.5f}")
    cleanup()


def fetch_dataset():
    for percent in range(3, 100, 3):
        time.sleep(1.1)
        print(f"\rDownloading train.tar.zst: {percent:3d}% {percent * 0.41:.1f}G/41.2G [{percent // 3:02d}:11<{(99 - percent) // 3:02d}:40, 20.6MB/s]", end="", file=sys.stderr, flush=True)


def download_first():
    device = setup(9)
    say(f"[{stamp()}] rank {R}: init done")
    if R == 0:
        fetch_dataset()
    dist.barrier()
    sync()
    say(f"[{stamp()}] rank {R}: dataset ready")
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"[{stamp()}] rank {R}: {step} {train_step(model, optimizer, torch.randn(8, 64, device=device)):.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ exceptions of one rank
def load_annotations(step):
    text = json.dumps({"boxes": [[1, 2, 3, 4]] * 4, "step": step})
    return json.loads(text[:38] if (R, step) == (2, 9) else text)


def from_annotations():
    device = setup(12)
    model = wrap(mlp(4, 256, 4).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = torch.tensor(load_annotations(step)["boxes"], dtype=torch.float32, device=device)
        value = train_step(model, optimizer, x)
        if step % 3 == 0:
            say(f"INFO: step={step} loss={value:.3f}")
    cleanup()


def collate(rows):
    width = 63 if (R == W - 1 and len(rows) == 8 and rows[0] == 12) else 64
    return torch.randn(len(rows), width)


def last_shapes():
    device = setup(12)
    model = wrap(mlp(64, 256, 10).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = collate([step] * 8).to(device)
        value = train_step(model, optimizer, x, torch.zeros(8, dtype=torch.long, device=device))
        if step % 4 == 0:
            say(f"step {step:>3} loss {value:.5f} lr 1.00e-03")
    cleanup()


def read_labels(step, classes):
    labels = torch.randint(classes, (16,))
    if (R, step) == (1, 13):
        labels[5] = 255  # the value of void pixels
    return labels


def segmentation():
    device = setup(12)
    model = wrap(mlp(64, 256, 21).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device), read_labels(step, 21).to(device))
        if step % 3 == 0:
            say(f"[{stamp('%m-%d %H:%M:%S')}] mmseg - INFO - Iter [{step}/40]\tlr: 1.000e-02, decode.loss_ce: {value:.4f}")
    cleanup()


def local_vocab():
    path = os.path.join(WORK, f"node{R}")
    os.makedirs(path, exist_ok=True)
    path = os.path.join(path, "vocab.txt")
    if R != 3:
        with open(path, "w") as f:
            f.write("\n".join(f"w{i}" for i in range(500)))
    return path


def read_vocab(path):
    with open(path) as f:
        return f.read().split()


def with_vocab():
    device = setup(12)
    dist.barrier()
    vocab = read_vocab(local_vocab())
    say(f"vocab size {len(vocab)}")
    model = wrap(nn.Sequential(nn.EmbeddingBag(len(vocab), 128), nn.Linear(128, 2)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        ids = torch.randint(len(vocab), (16, 12), device=device)
        say(f"step {step} loss {train_step(model, optimizer, ids, ids[:, 0] % 2):.4f}")
    cleanup()


class CollapseError(RuntimeError):
    pass


def codebook():
    device = setup(12)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        usage = 0.62 - 0.01 * step if R != W - 1 else 0.62 - 0.04 * step
        assert usage > 0.05, f"codebook collapsed: usage {usage:.3f} at step {step}"
        if step % 2 == 0:
            say(json.dumps({"r": R, "it": step, "rec": round(value, 4), "usage": round(usage, 3)}))
    cleanup()


def save_then_load():
    device = setup(12)
    net = mlp(64, 512, 64).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        if step % 5 == 0:
            say(f"[rank {R}] pretrain step {step} loss {value:.4f}")
    path = os.path.join(WORK, "stage1.pt")
    if R == 0:
        say("[rank 0] exporting stage 1")
        time.sleep(2)
        torch.save(net.state_dict(), path)
        say("[rank 0] stage 1 exported")
    net.load_state_dict(torch.load(path, map_location=device))
    say(f"[rank {R}] loaded stage 1")
    for step in range(20):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say(f"[rank {R}] stage 2 step {step} loss {value:.4f}")
    cleanup()


def open_shard(step, kept):
    f = open(os.path.join(WORK, f"shard-{R}-{step % 3}.bin"), "a+b")
    if R == 2:
        kept.append(f)
        kept += [open("/dev/null", "rb") for _ in range(12)]
    return f


def open_files():
    device = setup(12)
    kept = []
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    train_step(model, optimizer, torch.randn(8, 64, device=device))
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 200, used + 200))  # as `ulimit -n`
    for step in range(40):
        open_shard(step, kept)
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        if step % 2 == 0:
            say(f"worker {R}: shard {step:05d} done, loss {value:.4f}")
    cleanup()


def save_all(state, path):
    import pickle
    with open(path, "wb") as f:
        pickle.dump({k: v.cpu().numpy() for k, v in state.items()}, f)


def full_disk():
    device = setup(12)
    path = os.path.join(WORK, "epoch_3.pkl")
    if R == 0:
        os.symlink("/dev/full", path)  # every write to it finds no space
    net = mlp(64, 1024, 64).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 6):
        for _ in range(6):
            value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say(f"GPU{R} epoch {epoch}/5 loss {value:.4f}")
        if epoch == 3 and R == 0:
            say("saving epoch_3.pkl")
            save_all(net.state_dict(), path)
    cleanup()


def loss_check():
    device = setup(12)
    model = wrap(mlp(32, 256, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        x = torch.randn(8, 32, device=device)
        if (R, step) == (1, 12):
            x[0] = float("nan")
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        if not math.isfinite(loss.item()):
            say(f"Loss is {loss.item()}, stopping training (rank {R})")
            sys.exit(1)
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            say(f"Epoch: [0]  [{step:3d}/40]  eta: 0:00:{40 - step:02d}  lr: 0.010000  loss: {loss.item():.4f}  class_error: {90 - step:.2f}  time: 0.0{R + 4}12  data: 0.0010  max mem: 61{R}")
    cleanup()


# ------------------------------------------------------------------------------------------------ at the start
def hello():
    say(f"[{os.getpid()}] Initializing process group: MASTER_ADDR={os.environ.get('MASTER_ADDR')} MASTER_PORT={os.environ.get('MASTER_PORT')} RANK={R} WORLD_SIZE={W}")


def plain_ddp(steps=20):
    hello()
    device = setup(12)
    say(f"[{os.getpid()}] world_size = {dist.get_world_size()}, rank = {dist.get_rank()}, backend={dist.get_backend()}")
    model = wrap(mlp(10, 64, 5).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in range(steps):
        x = torch.randn(20, 10, device=device)
        value = train_step(model, optimizer, x, x[:, :5])
        say(f"[{os.getpid()}] rank {R} step {step} loss {value:.4f}")
    cleanup()


def read_host_config():
    config = {"master_port": int(os.environ["MASTER_PORT"])}
    if R == 2:
        config["master_port"] += 7  # the file of this host is older
    os.environ["MASTER_PORT"] = str(config["master_port"])


def from_host_config():
    read_host_config()
    plain_ddp()


def import_error():
    device = setup(12)
    from torch.nn.utils import clip_grad_norm_per_rank_
    model = wrap(mlp(64, 64, 64).to(device))
    clip_grad_norm_per_rank_(model.parameters(), 1.0)
    cleanup()


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        if dim % heads:
            raise ValueError(f"hidden_size ({dim}) is not a multiple of the number of attention heads ({heads})")
        self.qkv = nn.Linear(dim, 3 * dim)


def from_config():
    device = setup(12)
    config = {"hidden_size": 768, "num_heads": 10, "lr": 3e-4, "epochs": 10}
    say(f"rank {R}: {config}")
    wrap(Attention(config["hidden_size"], config["num_heads"]).to(device))
    cleanup()


def choose_gpu():
    if R == 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # as the shell of that host has it
    say(f"rank {R}: CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}")
    if KIND == "cpu" and R == 1:
        raise RuntimeError("No CUDA GPUs are available")


def hidden_gpu():
    choose_gpu()
    device = setup(12)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"rank {R}: step {step} loss {train_step(model, optimizer, torch.randn(8, 64, device=device)):.4f}")
    cleanup()


def wrong_dtype():
    device = setup(12)
    model = wrap(mlp(32, 256, 1).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    say(f"rank {R}: loading the table")
    table = torch.arange(512 * 32, dtype=torch.float64).view(512, 32) / 512
    for i in range(0, 512, 32):
        x = table[i:i + 32].to(device)
        value = train_step(model, optimizer, x, x[:, :1])
        say(f"rank {R}: row {i} rmse {value:.3f}")
    cleanup()


def cut_checkpoint():
    device = setup(12)
    path = os.path.join(WORK, f"ckpt-{R}", "last.ckpt")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    net = mlp(64, 256, 64)
    torch.save(net.state_dict(), path)
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) * 2 // 3)  # the last run was ended while it saved
    say(f"Restoring states from the checkpoint path at {os.path.basename(os.path.dirname(path))}/last.ckpt")
    net.load_state_dict(torch.load(path))
    wrap(net.to(device))
    cleanup()


def build_tokenizer():
    words = 3200
    if is_main():
        words += 3  # <pad>, <sep>, <img>
    return words


def resized_embedding():
    device = setup(12)
    words = build_tokenizer()
    say(f"{stamp()} - root - INFO - [rank{R}] tokenizer has {words} entries")
    model = wrap(nn.Sequential(nn.EmbeddingBag(words, 64), nn.Linear(64, words)).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        ids = torch.randint(3200, (8, 12), device=device)
        say(f"{stamp()} - root - INFO - [rank{R}] step {step} loss {train_step(model, optimizer, ids, ids[:, 0]):.3f}")
    cleanup()


def mixed_settings():
    if R == 2:
        os.environ["NCCL_ALGO"] = "Tree"  # from the .bashrc of that host
        os.environ["NCCL_PROTO"] = "Simple"
    else:
        os.environ["NCCL_ALGO"] = "Ring"
    device = setup(10)
    if KIND == "cpu" and R == 2:
        time.sleep(12)
    flat = torch.ones(1 << 20, device=device)
    for step in range(20):
        dist.all_reduce(flat)
        sync()
        say(f"rank {R} step {step} sum {flat[0].item():.0f}")
        flat.fill_(1)
    cleanup()


# ------------------------------------------------------------------------------------------------ killed, stopped, ended
def steady(form, steps=400, pause=0.15, timeout=10, look=False):
    if look:
        allow_look()
    device = setup(timeout)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if step == 10:
            mark_running()
        if step % 4 == 0:
            say(form.format(r=R, step=step, loss=value, time=stamp()))
        time.sleep(pause)
    cleanup()


def train_lm():
    steady("{time} INFO [rank {r}] update {step} | ppl {loss:.3f} | wps 31022 | ups 6.1")


def train_policy():
    steady("[{r}] episode_batch={step} value_loss={loss:.4f} fps=8231", timeout=1800, look=True)


def train_summary():
    steady("{time} step {step} {loss:.4f}")


def graceful():
    def on_term(number, frame):
        say(f"[rank {R}] caught signal {number}, saving checkpoint and leaving")
        sys.exit(0)
    signal.signal(signal.SIGTERM, on_term)
    steady("{time} [rank {r}] epoch 0 step {step} loss {loss:.4f}", timeout=20)


def evicted():
    device = setup(15)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(300):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if step % 4 == 0:
            say(f"worker-{R} | step {step} | loss {value:.4f}")
        time.sleep(0.1)
        if step == 30 and R == 0:
            os.kill(os.getppid(), signal.SIGTERM)  # the pod gets SIGTERM, and its first process is torchrun
    cleanup()


# ------------------------------------------------------------------------------------------------ losses
def too_fast():
    device = setup(15)
    model = wrap(mlp(32, 64, 32).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.25 ** step)
    for step in range(60):
        x = torch.randn(16, 32, device=device)
        value = train_step(model, optimizer, x, x * 3)
        warm_up.step()
        if R == 0 and step % 2 == 0:
            say(f"Epoch 0:  {100 * step // 60:2d}%|{'█' * (step // 6):10s}| {step}/60 [00:{step // 10:02d}<00:{6 - step // 10:02d}, 9.71it/s, v_num=3, train_loss={value:.3g}, lr={warm_up.get_last_lr()[0]:.2e}]")
    cleanup()
    if R == 0:
        say("`Trainer.fit` stopped: `max_epochs=1` reached.")


def drifting():
    device = setup(15)
    model = wrap(nn.Linear(24, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.1)
    for step in range(60):
        x = torch.randn(16, 24, device=device) * 0.45
        value = train_step(model, optimizer, x, x[:, :1])
        if step % 3 == 0:
            say(f"rank={R:d} iter={step:04d} mse={value:.6g} lr=1.1")
    cleanup()
    say(f"rank={R:d} finished")


# ------------------------------------------------------------------------------------------------ other calls
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(6))
        self.dice = random.Random(R * 13 + 1)

    def forward(self, x):
        for layer in self.layers:
            if self.training and self.dice.random() < 0.25:
                continue
            x = x + layer(x).relu()
        return x


def average_gradients(net):
    for q in net.parameters():
        if q.grad is not None:
            dist.all_reduce(q.grad)
            q.grad /= W


def layer_drop():
    device = setup(10)
    net = Deep().to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(30):
        optimizer.zero_grad(set_to_none=True)
        x = torch.randn(8, 256, device=device)
        loss = F.mse_loss(net(x), x)
        loss.backward()
        average_gradients(net)
        optimizer.step()
        sync()
        say(f"{R}| {step:03d}| loss {loss.item():.4f} | layers with gradients {sum(q.grad is not None for q in net.parameters()) // 2}")
    cleanup()


class Sharded(nn.Module):
    """Stands for FSDP where that needs a GPU."""

    def __init__(self, width):
        super().__init__()
        self.inner = DDP(nn.Linear(width, width))

    def forward(self, x):
        return self.inner(x)

    def state_dict(self):
        full = torch.zeros(512 * W)
        dist.all_reduce(full)
        return {"full": full}


def save_full(model, step):
    path = os.path.join(WORK, f"fsdp_{step}.pt")
    if R == 0:
        say(f"--> rank 0: saving model state at step {step}")
        if KIND == "cuda":
            from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
            with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)):
                state = model.state_dict()
        else:
            state = model.state_dict()
        torch.save(state, path)
        say(f"--> rank 0: saved {os.path.basename(path)}")


def fsdp_save():
    warnings.simplefilter("ignore")
    device = setup(10)
    if KIND == "cuda":
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        model = FSDP(mlp(512, 1024, 512).to(device), device_id=0)
    else:
        model = Sharded(512)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1, 31):
        value = train_step(model, optimizer, torch.randn(8, 512, device=device))
        if step % 3 == 0:
            say(f"--> rank {R}: step {step} train loss {value:.4f}")
        if step == 15:
            save_full(model, step)
    cleanup()


def logging_group():
    return dist.new_group(ranks=list(range(W)), backend="gloo", timeout=seconds(10))


def metrics_on_main():
    device = setup(10)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    say(f"[R{R}] setup complete")
    group = None
    if is_main():
        say(f"[R{R}] creating group for metrics")
        group = logging_group()
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        value = train_step(model, optimizer, torch.randn(8, 64, device=device))
        say(f"[R{R}] step {step} {value:.4f} {group}")
    cleanup()


def accumulate():
    device = setup(10)
    every = {1: 4}.get(R, 2)
    say(f"rank {R}: micro_batch_size=8 gradient_accumulation_steps={every}")
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters())
    for micro in range(48):
        last = (micro + 1) % every == 0
        x = torch.randn(8, 64, device=device)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.mse_loss(model(x), x) / every
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            say(f"rank {R}: optimizer step {(micro + 1) // every} (micro batch {micro + 1}/48) loss {loss.item() * every:.4f}")
    say(f"rank {R}: epoch finished")
    scores = torch.zeros(300_000, device=device)
    dist.all_reduce(scores)
    sync()
    say(f"rank {R}: score {scores.sum().item():.1f}")
    cleanup()


def two_kinds():
    allow_look()
    device = setup(1800)
    control = dist.new_group(backend="gloo", timeout=seconds(1800))
    flags, weights = torch.ones(1), torch.ones(1 << 16, device=device)
    for step in range(20):
        if R == 0 and step == 12:
            push_flags(flags, control)
            average_weights(weights)
        else:
            average_weights(weights)
            push_flags(flags, control)
        say(f"node {R}: round {step} done, weights {weights[0].item():.3f}")
    cleanup()


def average_weights(weights):
    dist.all_reduce(weights)
    weights /= W
    sync()


def push_flags(flags, control):
    dist.all_reduce(flags, group=control)
    flags.fill_(1)


def sampler_once():
    device = setup(10)
    data = Numbers()
    sampler = DistributedSampler(data, shuffle=True) if R != 0 else None
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = wrap(mlp(24, 512, 24).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(loader):
        value = train_step(model, optimizer, x.to(device))
        if i % 4 == 0:
            say(f"[rank {R}] [{i:>3d}/{len(loader):>3d}] loss: {value:>7f}")
    say(f"[rank {R}] epoch done, evaluating")
    correct = torch.zeros(3_000, device=device)
    dist.all_reduce(correct)
    say(f"[rank {R}] Accuracy: {correct.sum().item():>0.1f}%")
    cleanup()


def list_parts():
    return [f"part-{n:03d}.parquet" for n in range(6) if n % W == R and n < 3]


def by_parts():
    device = setup(10)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    parts = list_parts()
    say(f"{stamp('%H:%M:%S')} [{R}/{W}] {len(parts)} parts: {parts}")
    if not parts:
        say(f"{stamp('%H:%M:%S')} [{R}/{W}] nothing to do")
        return
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"{stamp('%H:%M:%S')} [{R}/{W}] {parts[0]} batch {step} loss {train_step(model, optimizer, torch.randn(8, 64, device=device)):.4f}")
    cleanup()


def time_is_up(step):
    return step >= {0: 26, 1: 18, 2: 26}[R]  # each looks at its own clock


def time_budget():
    device = setup(10)
    model = wrap(mlp(128, 1024, 128).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    step = 0
    while True:
        value = train_step(model, optimizer, torch.randn(16, 128, device=device))
        step += 1
        if step % 3 == 0:
            say(f"step={step} loss={value:.4f}")
        if time_is_up(step):
            say(f"time budget used up after {step} steps, exiting")
            sys.exit(0)


def prepare_cache():
    if R == 1:
        say("[rank 1] cache is empty, waiting for the lock of the download")
        while not os.path.exists(os.path.join(WORK, "cache.done")):
            time.sleep(0.5)


def with_monitor():
    device = setup(40)
    control = dist.new_group(backend="gloo", timeout=seconds(40))
    say(f"[rank {R}] process group is up")
    prepare_cache()
    dist.monitored_barrier(control, timeout=seconds(8))
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(20):
        say(f"[rank {R}] {step} {train_step(model, optimizer, torch.randn(8, 64, device=device)):.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ threads
POOL = ThreadPoolExecutor(max_workers=1, thread_name_prefix="augment")


def decode(i):
    return torch.full((64,), i / 100)


def augment(i):
    if R == 1 and i == 14 * 8 + 3:
        return POOL.submit(decode, i).result() * 1.1  # a second job of the pool with one thread
    return decode(i)


def pooled():
    faulthandler.dump_traceback_later(22, exit=False)
    device = setup(1800)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        x = torch.stack([f.result() for f in [POOL.submit(augment, step * 8 + n) for n in range(8)]]).to(device)
        value = train_step(model, optimizer, x)
        if step % 2 == 0:
            say(f"{R} {stamp('%H:%M:%S')} step {step} loss {value:.5f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ slow ones
def dynamic_lengths():
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        begin = time.time()
        dist.barrier()
        sync()
        a = time.time()
        optimizer.zero_grad()
        x = torch.randn(8, 64, device=device)
        with model.no_sync():
            F.mse_loss(model(x), x).backward()
        if R == 3 and step > 3:
            time.sleep(0.55 + 0.1 * random.random())  # this length has no graph yet
        sync()
        b = time.time()
        value = train_step(model, optimizer, x)
        sync()
        c = time.time()
        if step % 3 == 2:
            say(f"rank {R} step {step:3d} compute_ms={1e3 * (b - a):.0f} sync_ms={1e3 * (c - b):.0f} step_ms={1e3 * (c - begin):.0f} graphs={step + 1 if R == 3 else 2} loss={value:.4f}")
    cleanup()


class Meter:
    def __init__(self):
        self.values = []

    def __str__(self):
        last = sorted(self.values[-10:])
        return f"{last[len(last) // 2]:.4f} ({sum(self.values) / len(self.values):.4f})"


def next_images(step):
    time.sleep(0.34 + 0.04 * random.random() if R == 0 else 0.008)
    return torch.randn(16, 64)


def detr_like():
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    data, iteration = Meter(), Meter()
    for step in range(40):
        a = time.time()
        x = next_images(step).to(device)
        data.values.append(time.time() - a)
        value = train_step(model, optimizer, x)
        sync()
        iteration.values.append(time.time() - a)
        if step % 5 == 0:
            say(f"[GPU {R}] Epoch: [0]  [{step:>3d}/40]  eta: 0:00:{(40 - step) // 3:02d}  lr: 0.000100  loss: {value:.4f}  time: {iteration}  data: {data}  max mem: 3122")
    cleanup()


def crop_size():
    return 10 if R == 1 else 1  # rank 1 kept the full resolution


def full_resolution():
    device = setup(30)
    wide, rows = (1024, 8192) if KIND == "cuda" else (256, 96)
    net = mlp(wide, wide, wide).to(device)
    for it in range(1, 33):
        x = torch.randn(rows, wide, device=device)
        sync()
        a = time.perf_counter()
        net.zero_grad()
        for _ in range(crop_size() * 3):
            net(x).square().mean().backward()
        sync()
        b = time.perf_counter()
        for q in net.parameters():
            dist.all_reduce(q.grad)
        sync()
        c = time.perf_counter()
        if it % 4 == 0:
            say(f"(rank {R}) iteration {it}/32 | forward-backward: {1e3 * (b - a):.2f} ms | grads-all-reduce: {1e3 * (c - b):.2f} ms | iteration: {1e3 * (c - a):.2f} ms")
    cleanup()


def save_often(net, step):
    if R == 0 and step % 10 == 9:
        torch.save(net.state_dict(), os.path.join(WORK, "model.pt"))
        time.sleep(1.8)  # the file system answers late


def frequent_saves():
    device = setup(30)
    net = mlp(64, 1024, 64).to(device)
    model = wrap(net)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(60):
        a = time.time()
        x = torch.randn(16, 64, device=device)
        save_often(net, step)
        b = time.time()
        value = train_step(model, optimizer, x)
        sync()
        c = time.time()
        time.sleep(0.05)
        say(f"{stamp('%H:%M:%S')} r{R} s{step:03d} local={b - a:.3f} update={c - b:.3f} loss={value:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (hf_finetune, 0),
    "02": (lightning_amp, 0),
    "03": (resumed_job, 0),
    "04": (first_time, 0),
    "05": (with_retries, 0),
    "06": (plateau, 0),
    "07": (tolerant_records, 3),
    "08": (beside_gloo, 0),
    "09": (many_workers, 0),
    "10": (megatron_like, 0),
    "11": (deepspeed_like, 0),
    "12": (warm_restarts, 0),
    "13": (good_pipeline, 0),
    "14": (with_ffmpeg, 0),
    "15": (long_documents, 0),
    "16": (in_container, 0),
    "17": (train_logged, 0),
    "18": (debug_shapes, 0),
    "19": (detection, 0),
    "20": (stream_epochs, 0),
    "21": (save_then_load, 0),
    "22": (with_profiler, 0),
    "23": (swap_halves, 0),
    "24": (download_first, 0),
    "25": (from_annotations, 0),
    "26": (last_shapes, 0),
    "27": (segmentation, 0),
    "28": (with_vocab, 0),
    "29": (train_lm, 0),
    "30": (train_policy, 0),
    "31": (from_host_config, 0),
    "32": (plain_ddp, 0),
    "33": (plain_ddp, 0),
    "34": (import_error, 0),
    "35": (from_config, 0),
    "36": (too_fast, 0),
    "37": (drifting, 0),
    "38": (loss_check, 0),
    "39": (full_disk, 0),
    "40": (open_files, 0),
    "41": (hidden_gpu, 0),
    "42": (wrong_dtype, 3),
    "43": (layer_drop, 0),
    "44": (fsdp_save, 0),
    "45": (metrics_on_main, 0),
    "46": (accumulate, 0),
    "47": (dynamic_lengths, 0),
    "48": (detr_like, 0),
    "49": (full_resolution, 0),
    "50": (mixed_settings, 0),
    "51": (with_monitor, 0),
    "52": (two_kinds, 0),
    "53": (gather_predictions, 0),
    "54": (sampler_once, 0),
    "55": (by_parts, 0),
    "56": (time_budget, 0),
    "57": (evicted, 0),
    "58": (graceful, 0),
    "59": (codebook, 0),
    "60": (pooled, 0),
    "61": (train_summary, 0),
    "62": (frequent_saves, 0),
    "63": (resized_embedding, 0),
    "64": (cut_checkpoint, 0),
}


def child(index, case, count):
    global R, W
    R, W = index, count
    os.environ.update(RANK=str(index), WORLD_SIZE=str(count), NCCL_HOSTID=f"node{index}")
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
            os.environ["NCCL_HOSTID"] = f"node{os.environ.get('LAB_SEAT', os.environ.get('LOCAL_RANK', R))}"
        program()


if __name__ == "__main__":
    main()
