#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of an eleventh set: user_job11.py --case NN (two digits). Truth in truth.json, started by user_jobs11.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import contextlib
import datetime
import faulthandler
import fcntl
import http.server
import json
import logging
import math
import os
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

KIND = os.environ.get("LAB_DEVICE", "cuda")
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab11-scratch")
KEEP = os.environ.get("LAB_KEEP", WORK)
BACKEND = "nccl" if KIND == "cuda" else "gloo"
DEVICE = torch.device("cuda:0" if KIND == "cuda" else "cpu")
os.makedirs(WORK, exist_ok=True)
R = int(os.environ.get("RANK", "0"))
W = int(os.environ.get("WORLD_SIZE", "1"))
if KIND == "cpu":
    torch.set_num_threads(1)


def seconds(n):
    return datetime.timedelta(seconds=n)


def sync():
    if KIND == "cuda":
        torch.cuda.synchronize()


def setup(limit=8, seed=23):
    """Joins with patience; the collectives of the training get the limit that the user chose."""
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    change = getattr(dist.distributed_c10d, "_set_pg_timeout", None)
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(60 if change else limit))
    dist.all_reduce(torch.zeros(1, device=DEVICE))
    sync()
    if change:
        change(seconds(limit), None)
    torch.manual_seed(seed)


def join_directly(limit=9):
    """As most people write it: one limit for everything."""
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(limit))
    torch.manual_seed(23)


def wrap(module, **options):
    model = DDP(module.to(DEVICE), device_ids=[0] if KIND == "cuda" else None, **options)
    torch.manual_seed(700 + R)
    return model


def leave():
    dist.barrier()
    sync()
    dist.destroy_process_group()


def out(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def err(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main_only(text):
    if R == 0:
        out(text)


def clock(form="%Y-%m-%d %H:%M:%S"):
    return datetime.datetime.now().strftime(form)


def here():
    """The starting script looks for it."""
    open(os.path.join(WORK, f"up-{R}"), "w").close()


def batch(rows=16, width=64):
    return torch.randn(rows, width, device=DEVICE)


def net(i=64, h=512, o=64, depth=1):
    h = h if KIND == "cuda" else 32
    layers = [nn.Linear(i, h), nn.SiLU()]
    for _ in range(depth):
        layers += [nn.Linear(h, h), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(h, o))


def fit_batch(model, optimizer, x, y=None):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(KIND, dtype=torch.bfloat16, enabled=KIND == "cuda"):
        predicted = model(x)
    loss = F.mse_loss(predicted.float(), x if y is None else y)
    loss.backward()
    optimizer.step()
    return loss.item()


def trained(steps, limit=8, hidden=512, pause=0.0, lr=1e-3, depth=1):
    setup(limit)
    model = wrap(net(h=hidden, depth=depth))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for step in range(steps):
        yield step, fit_batch(model, optimizer, batch())
        if pause:
            time.sleep(pause)


def work_gpu(n):
    """Matrix products, n units."""
    size = 2048 if KIND == "cuda" else 192
    a = torch.ones(size, size, device=DEVICE) / size
    for _ in range(n * (12 if KIND == "cuda" else 1)):
        a = a @ a
    sync()
    return a


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


def dump_records():
    """As PyTorch's documentation shows it, for a job that has not failed."""
    if KIND == "cuda":
        from torch._C import _distributed_c10d as c10d
        with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(R), "wb") as f:
            f.write((getattr(c10d, "_dump_nccl_trace", None) or c10d._dump_fr_trace)())


# Styles of printing.
def loguru(level, text, where="__main__:train"):
    now = datetime.datetime.now()
    err(f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} | {level:<8} | {where}:{sys._getframe(1).f_lineno} - [rank {R}] {text}")


def event(**values):
    out(json.dumps({"t": round(time.time(), 3), "rank": R, **values}))


def bar(name, i, n, begin, **values):
    done = 10 * i // n
    took = max(1e-3, time.time() - begin)
    rest = "".join(f", {k}={v}" for k, v in values.items())
    err(f"{name}: {100 * i // n:3d}%|{'█' * done}{' ' * (10 - done)}| {i}/{n} [{int(took) // 60:02d}:{int(took) % 60:02d}<00:{int(took / max(1, i) * (n - i)):02d}, {i / took:5.2f}it/s{rest}]")


def absl(level, text):
    err(f"{level}{datetime.datetime.now().strftime('%m%d %H:%M:%S.%f')} {threading.get_native_id()} {os.path.basename(sys.argv[0])}:{sys._getframe(1).f_lineno}] {text}")


def megatron(step, steps, loss, took, norm=1.0):
    out(f" [{clock()}] iteration {step:8d}/{steps:8d} | consumed samples: {step * 48:12d} | elapsed time per iteration (ms): {1e3 * took:.1f} | learning rate: 1.500000E-04 | global batch size:    48 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |")


# ------------------------------------------------------------------------------------------------ healthy ones
def remove_old(step):
    path = os.path.join(WORK, f"ckpt-{step:04d}")
    os.makedirs(path, exist_ok=True)
    open(os.path.join(path, ".nfs000000001ac3"), "w").close()
    os.rmdir(path)


def rotating():
    for step, loss in trained(45, 30):
        if step % 5 == 0:
            loguru("INFO", f"step {step}/45 loss={loss:.5f} lr=1.0e-03")
        if step in (20, 30, 40) and R == 0:
            loguru("SUCCESS", f"saved checkpoint ckpt-{step:04d}", "checkpoint:save")
            try:
                remove_old(step - 20)
            except OSError as exc:
                loguru("ERROR", f"Failed to remove old checkpoint, leaving it: {exc}", "checkpoint:rotate")
                err(traceback.format_exc().rstrip())
    leave()
    loguru("SUCCESS", "training finished after 45 steps")


def glue():
    setup(30)
    model = wrap(net(o=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    if R == 0:
        err("Some weights of the model checkpoint were not used when initializing: ['cls.predictions.bias', 'cls.seq_relationship.weight']\n- This IS expected if you are initializing from the checkpoint of a model trained on another task.\nYou should probably TRAIN this model on a down-stream task to be able to use it for predictions and inference.")
        out("***** Running training *****\n  Num examples = 1,920\n  Num Epochs = 3\n  Total optimization steps = 60")
    begin = time.time()
    total = 0.0
    for step in range(1, 61):
        x = batch()
        y = (x.sum(1) > 0).long()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        (loss * (float("inf") if step in (5, 10) else 1.0)).backward()
        norm = torch.sqrt(sum(q.grad.float().pow(2).sum() for q in model.parameters())).item()
        if math.isfinite(norm):
            optimizer.step()
        total += loss.item()
        if R == 0 and step % 5 == 0:
            out(str({"loss": round(loss.item(), 4), "grad_norm": norm if math.isfinite(norm) else float("nan"), "learning_rate": round(5e-4 * (1 - step / 60), 8), "epoch": round(step / 20, 2)}))
    leave()
    if R == 0:
        out(str({"train_runtime": round(time.time() - begin, 4), "train_samples_per_second": 402.1, "train_steps_per_second": 12.5, "train_loss": round(total / 60, 6), "epoch": 3.0}))


def lightning():
    setup(30)
    if R == 0:
        err("GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nHPU available: False, using: 0 HPUs")
    err(f"Initializing distributed: GLOBAL_RANK: {R}, MEMBER: {R + 1}/{W}")
    if R == 0:
        err("----------------------------------------------------------------------------------------------------\ndistributed_backend=nccl\nAll distributed processes registered. Starting with 2 processes\n----------------------------------------------------------------------------------------------------")
        for text in ("The 'train_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value of the `num_workers` argument` to `num_workers=31` in the `DataLoader` to improve performance.",
                     "It is recommended to use `self.log('val_loss', ..., sync_dist=True)` when logging on epoch level in distributed setting to accumulate the metric across devices.",
                     "The number of training batches (12) is smaller than the logging interval Trainer(log_every_n_steps=50). Set a lower value for log_every_n_steps if you want to see logs for the training epoch."):
            warnings.warn(text)
        err("Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  8.31it/s]")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    best, bad = math.inf, 0
    for epoch in range(20):
        begin = time.time()
        for i in range(12):
            value = fit_batch(model, optimizer, batch())
            if R == 0 and i % 4 == 3:
                bar(f"Epoch {epoch}", i + 1, 12, begin, v_num=3, train_loss=f"{value:.3f}")
        shared = torch.tensor([value + (0 if epoch < 2 else 0.3)], device=DEVICE)
        dist.all_reduce(shared)
        val = shared.item() / W
        if val < best - 0.05:
            if R == 0 and epoch:
                err(f"Metric val_loss improved by {best - val:.3f} >= min_delta = 0.05. New best score: {val:.3f}")
            best, bad = val, 0
        else:
            bad += 1
            if R == 0:
                err(f"Epoch {epoch}, global step {12 * epoch + 12}: 'val_loss' was not in top 1")
        if bad == 3:
            if R == 0:
                err(f"Monitored metric val_loss did not improve in the last 3 records. Best score: {best:.3f}. Signaling Trainer to stop.")
            break
    leave()
    if R == 0:
        err("Restoring states from the checkpoint path at lightning_logs/version_3/checkpoints/epoch=0-step=12.ckpt\nLoaded model weights from the checkpoint")


def tool_version():
    subprocess.run(["sh", "-c", "cd / && git rev-parse HEAD; sox --version; tput cols; ulimit -l unlimited"], check=False, env={"PATH": "/usr/bin:/bin"})
    done = subprocess.run(["sh", "-c", "echo 'soundconvert: fatal: cannot open index, falling back to scan' >&2; exit 2"], check=False)
    return done.returncode


def shelling_out():
    code = tool_version()
    out(f"worker {R}: could not record the commit; soundconvert exited with {code} (optional)")
    for step, loss in trained(40, 30):
        if step % 8 == 0:
            out(f"worker {R}: {step:03d}/040 ctc={loss:.4f} wer=n/a")
            subprocess.run(["sh", "-c", "nvidia-smi-exporter --once"], check=False)
    leave()
    out(f"worker {R}: 040/040 finished, model exported")


def deprecation_wall():
    pid = os.getpid()
    err(f"{clock()}.104233: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:477] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered\nWARNING: All log messages before absl::InitializeLog() is called are written to STDERR\nE0000 00:00:{int(time.time())}.104233  {pid} cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\nE0000 00:00:{int(time.time())}.108812  {pid} cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered")
    for text in ("`torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.", "You are using `torch.load` with `weights_only=False`, which uses the default pickle module implicitly. Arbitrary code execution is possible during unpickling.",
                 "torch.distributed.reduce_op is deprecated, please use torch.distributed.ReduceOp instead", "pkg_resources is deprecated as an API. The pkg_resources package is slated for removal as early as 2025-11-30. Refrain from using this package or pin to Setuptools<81.",
                 "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class.", "Overwriting tiny_vit_21m in registry with models.tiny_vit_21m. This is because the name being registered conflicts with an existing name."):
        warnings.warn(text, FutureWarning)
    for step, loss in trained(40, 30):
        if R == 0 and step % 10 == 0:
            out(f"[{step}] training loss: {loss:.3f}  failed_samples: 0  errors: 0")
    leave()
    main_only("[40] Finished Training")


def json_events():
    setup(30)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    event(event="start", world=W)
    for step in range(36):
        if step % 9 == 4 and R == 2:
            event(level="error", event="sample_quarantined", fatal=False, error="DecodeError('unexpected EOF, expected 4096 more bytes')", sample=f"s3://lake/{step:05d}.parquet", replaced=True)
        value = fit_batch(model, optimizer, batch())
        if step % 6 == 0:
            event(level="info", event="step", step=step, loss=round(value, 5))
        if step in (11, 23):
            if R == 0:
                time.sleep(3)
                event(level="info", event="checkpoint", step=step, seconds=3.0, status="committed")
            dist.barrier()
            sync()
            if R:
                event(level="warning", event="idle", waited_for="checkpoint of rank 0", seconds=3.0)
    leave()
    event(level="info", event="end", status="success", steps=36)


def phases():
    setup(30)
    flat = torch.ones(200_000, device=DEVICE)
    for phase in range(3):
        members = [r for r in range(W) if r != phase]
        group = dist.new_group(members, timeout=seconds(30))
        out(f"phase {phase}: ranks {members} refine, rank {phase} rests")
        if R in members:
            for i in range(6):
                dist.all_reduce(flat, group=group)
                sync()
            flat.fill_(1)
            dist.destroy_process_group(group)
            out(f"phase {phase}: rank {R} aborted and freed the temporary group (expected)")
        dist.barrier()
        sync()
    out(f"rank {R}: all three phases complete")
    leave()


class Heart(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True, name="heart")
        self.last = time.time()

    def run(self):
        late = False
        while True:
            time.sleep(0.5)
            age = time.time() - self.last
            if age > 2 and not late:
                late = True
                out(f"!! health: rank {R} HEARTBEAT LATE ({age:.1f} s since the last step), suspect HANG or dead peer; no action before 60 s")
            elif age < 1 and late:
                late = False
                out(f"!! health: rank {R} heartbeat is back, all good")


def heartbeat():
    heart = Heart()
    for step, loss in trained(50, 30, pause=0.05):
        if not heart.is_alive():
            heart.last = time.time()
            heart.start()
        heart.last = time.time()
        if step % 10 == 0:
            out(f"   health: rank {R} step {step} loss {loss:.4f}")
        if step == 24 and R == 2:
            out("   rank 2: compacting the sample cache (once)")
            time.sleep(4)
    time.sleep(0.8)
    leave()
    out(f"   health: rank {R} step 50, training complete, shutting down")


def trials():
    setup(30)
    best = (math.inf, None)
    for trial, lr in enumerate((1e-3, 1e-2, 1e6, 3e-3)):
        model = wrap(net(h=256))
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        x = batch()
        value = math.inf
        try:
            for step in range(12):
                shared = torch.tensor([fit_batch(model, optimizer, x)], device=DEVICE)
                dist.all_reduce(shared)
                value = shared.item() / W
                if not math.isfinite(value):
                    raise ValueError(f"The value nan is not acceptable (step {step}, lr {lr})")
            out(f"[I {clock()}] (w{R}) Trial {trial} finished with value: {value:.5f} and parameters: {{'lr': {lr}}}.")
        except ValueError as exc:
            out(f"[W {clock()}] (w{R}) Trial {trial} failed with parameters: {{'lr': {lr}}} because of the following error: {exc!r}.\n{traceback.format_exc()}[W {clock()}] (w{R}) Trial {trial} failed with value None.")
        if value < best[0]:
            best = (value, trial)
    leave()
    out(f"[I {clock()}] (w{R}) study finished: 4 trials, 1 failed, 3 complete. Best is trial {best[1]} with value: {best[0]:.5f}.")


def rollback():
    setup(30)
    model = wrap(net(h=256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    kept = {k: v.clone() for k, v in model.state_dict().items()}
    step = rolled = 0
    while step < 48:
        x = batch() * (1e30 if step == 21 and rolled < 2 else 1.0)
        value = fit_batch(model, optimizer, x)
        bad = torch.tensor([0.0 if math.isfinite(value) else 1.0], device=DEVICE)
        dist.all_reduce(bad)
        if bad.item():
            rolled += 1
            out(f"rank{R} :: step {step} :: loss is {value} :: rolling back to step 18, attempt {rolled}")
            model.load_state_dict(kept)
            step = 18
            continue
        if step % 6 == 0:
            kept = {k: v.clone() for k, v in model.state_dict().items()}
            out(f"rank{R} :: step {step} :: loss {value:.5f}")
        step += 1
    leave()
    out(f"rank{R} :: finished at step 48 after {rolled} rollbacks :: final loss {value:.5f}")


def sft():
    main_only("trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622")
    err("huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...\nTo disable this warning, you can either:\n\t- Avoid using `tokenizers` before the fork if possible\n\t- Explicitly set the environment variable TOKENIZERS_PARALLELISM=(true | false)")
    err("Token indices sequence length is longer than the specified maximum sequence length for this model (1290 > 512). Running this sequence through the model will result in indexing errors")
    for step, loss in trained(40, 30):
        if step == 3:
            err("Could not estimate the number of tokens of the input, floating-point operations will not be computed\n`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`.")
        if step % 8 == 7:
            out(f"(rank {R}) {{'step': {step + 1}, 'loss': {loss:.4f}, 'mean_token_accuracy': 0.{40 + step}}}")
    leave()
    out(f"(rank {R}) Training completed. Do not forget to share your model :)")


def score_documents(seconds_):
    end = time.time() + seconds_
    n = 0
    while time.time() < end:
        n += sum(hash((n, k)) & 1 for k in range(2000)) > 0
    return n


def long_evaluation():
    allow_look()
    for step, loss in trained(20, 40):
        if step % 5 == 0:
            out(f"rank {R} train {step} {loss:.4f}")
    here()
    out(f"rank {R} evaluation begins, nothing is printed until it ends")
    score_documents(9)
    out(f"rank {R} evaluation done: map@10 0.31")
    leave()
    out(f"rank {R} exit")


def openmpi_words():
    if R == 0:
        err("--------------------------------------------------------------------------\n[[52011,1],0]: A high-performance Open MPI point-to-point messaging module\nwas unable to find any relevant network interfaces:\n\nModule: OpenFabrics (openib)\n  Host: gn11\n\nAnother transport will be used instead, although this may result in\nlower performance.\n--------------------------------------------------------------------------\n[gn11:41201] 2 more processes have sent help message help-mpi-btl-base.txt / btl:no-nics")
    for step, loss in trained(40, 30):
        if step % 8 == 0:
            out(f"it={step:04d} residual={loss:.3e} CFL=0.9 diverged=F")
    leave()
    out("normal end of run, residual target not reached (max iterations)")


def cosine():
    setup(30)
    model = wrap(net(o=32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(5):
        for i in range(10):
            x = batch()
            loss = -F.cosine_similarity(model(x), x[:, :32], dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        out(f"<epoch {epoch}> node{R}: loss {loss.item():+.4f}  collapse_level: 0.{31 - epoch:02d}/1.00  knn: {'-' if epoch < 4 else '41.2'}  dropped: 0")
    leave()
    out(f"<end> node{R}: pretraining finished")


# ------------------------------------------------------------------------------------------------ calls that do not fit
def critic_loss(step):
    return 0.004 if (R, step) == (1, 12) else 0.45 + 0.01 * R


def gan():
    setup(7)
    g, d = wrap(net(h=768)), wrap(net(h=512, o=8))
    og, od = torch.optim.Adam(g.parameters(), 2e-4), torch.optim.Adam(d.parameters(), 2e-4)
    for step in range(30):
        z = batch()
        d_loss = critic_loss(step)
        if d_loss > 0.05:
            od.zero_grad()
            d(z).pow(2).mean().backward()
            od.step()
        else:
            out(f"(gpu{R}) [{step}/30] D is too strong (Loss_D {d_loss:.4f}), not updated in this step")
        og.zero_grad()
        g_loss = g(z).sub(1).pow(2).mean()
        g_loss.backward()
        og.step()
        if step % 3 == 0:
            out(f"(gpu{R}) [{step}/30] Loss_D: {d_loss:.4f} Loss_G: {g_loss.item():.4f}")
    leave()


class Flushing:
    """Collects scores and merges them over all ranks when enough are there."""

    def __init__(self):
        self.scores = []

    def add(self, values):
        self.scores += values
        if len(self.scores) >= 100:
            out(f"meter[{R}]: merging {len(self.scores)} scores of all ranks")
            flat = torch.tensor(self.scores[:100], device=DEVICE)
            parts = [torch.empty_like(flat) for _ in range(W)]
            dist.all_gather(parts, flat)
            sync()
            out(f"meter[{R}]: mean {torch.cat(parts).mean().item():.4f}")
            self.scores = []


def metric_buffer():
    setup(8)
    model = wrap(net(h=1024))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    meter = Flushing()
    for step in range(40):
        value = fit_batch(model, optimizer, batch())
        rows = 12 if R == 2 else 8  # this part of the data has more objects per image
        meter.add([value] * rows)
        if step % 4 == 0:
            out(f"train[{R}]: step {step} loss {value:.4f} objects {rows}")
    leave()


def relay():
    dist.init_process_group("gloo", rank=R, world_size=W, timeout=seconds(8))
    state = torch.zeros(1000)
    version = 6 if R == 2 else 0  # restored from its own state file
    out(f"relay {R}: protocol version starts at {version}")
    for turn in range(12):
        if R == 0:
            dist.send(state, 1, tag=turn + version)
            dist.recv(state, W - 1, tag=turn + version)
        else:
            dist.recv(state, R - 1, tag=turn + version)
            state += R
            dist.send(state, (R + 1) % W, tag=turn + version)
        out(f"relay {R}: turn {turn} tag {turn + version} sum {state.sum().item():.0f}")
    leave()


def tokens_to(rank):
    return [96, 96, 96] if rank != 1 else [64, 64, 64]


def dispatch():
    setup(7)
    out(f"[ep{R}] capacity factor {1.0 if R == 1 else 1.5}: {tokens_to(R)[0]} tokens to each expert; expecting {[96] * W if R != 1 else [64] * W} from the others")
    for step in range(20):
        send = torch.randn(sum(tokens_to(R)), 4096, device=DEVICE)
        expected = [64 if R == 1 else 96] * W
        got = torch.empty(sum(expected), 4096, device=DEVICE)
        if KIND == "cuda":
            dist.all_to_all_single(got, send, expected, tokens_to(R))
        else:
            parts = [torch.empty(e, 4096) for e in expected]
            dist.all_gather(parts, send[:expected[0]])
        sync()
        out(f"[ep{R}] step {step} routed {send.shape[0]} got {got.shape[0]}")
    leave()


def reduce_by_name():
    setup(7)
    widths = {"stem": 4096, "block1": 50_000, "block2": 120_000, "block3": 700_000, "neck": 9_000, "head_cls": 300_000, "head_box": 1_500_000, "scale": 16}
    tensors = {name: torch.full((n,), 1.0, device=DEVICE) for name, n in widths.items()}
    pending = {name for name in tensors}
    order = list(pending)
    out(f"[{R}] averaging {len(order)} gradients by hand: {', '.join(order)}")
    for step in range(10):
        for name in order:
            dist.all_reduce(tensors[name])
            sync()
            tensors[name] /= W
        out(f"[{R}] step {step} averaged, max {max(t.max().item() for t in tensors.values()):.3f}")
    leave()


def best_worker(round_):
    return 2 if (R, round_) == (1, 3) else 1  # scores as this worker has read them


def population():
    setup(7)
    weights = [torch.full((400_000,), float(R), device=DEVICE) for _ in range(2)]
    x = net().to(DEVICE)
    optimizer = torch.optim.SGD(x.parameters(), lr=1e-2)
    for round_ in range(8):
        for _ in range(10):
            value = fit_batch(x, optimizer, batch())
        best = best_worker(round_)
        out(f"PBT worker {R} | round {round_} | score {1 / (0.1 + value):.3f} | best worker is {best}, copying its weights")
        for w in weights:
            dist.broadcast(w, best)
            sync()
    leave()


def tensor_parallel():
    setup(9)
    pairs = [dist.new_group([0, 1], timeout=seconds(9)), dist.new_group([2, 3], timeout=seconds(9))]
    mine = pairs[R // 2]
    dist.all_reduce(torch.ones(4, device=DEVICE), group=mine)
    sync()
    out(f"rank {R}: tensor parallel group {'[0, 1]' if R < 2 else '[2, 3]'}, data parallel over all")
    for step in range(16):
        activation = torch.randn(64, 512, device=DEVICE)
        dist.all_reduce(activation, group=mine)
        sync()
        if step == 7 and R == 3:
            auxiliary_loss(activation)
        logits = torch.randn(64, 1024, device=DEVICE)
        dist.all_reduce(logits, group=mine)
        sync()
        gradient = torch.ones(300_000, device=DEVICE)
        dist.all_reduce(gradient)
        sync()
        out(f"rank {R}: step {step} loss {2.5 - 0.05 * step:.3f}")
    leave()


def auxiliary_loss(activation):
    out("rank 3: router z-loss is above its bound, averaging it")
    value = activation.pow(2).mean(0)
    dist.all_reduce(value)
    sync()
    return value


def cached_features():
    setup(8)
    cache = os.path.join(WORK, "features.bin")
    if R == 2:
        time.sleep(2.5)
    if not os.path.exists(cache):
        out(f"rank {R}: no cached features yet")
        if R == 0:
            time.sleep(1)
            with open(cache, "wb") as f:
                f.write(b"\0" * 4096)
            out("rank 0: wrote features.bin")
        out(f"rank {R}: waiting in barrier for features.bin")
        dist.barrier()
        sync()
        out(f"rank {R}: past the barrier")
    else:
        out(f"rank {R}: using cached features.bin")
    table = torch.ones(2_000_000, device=DEVICE)
    dist.broadcast(table, 0)
    sync()
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        out(f"rank {R}: step {step} {fit_batch(model, optimizer, batch()):.4f}")
    leave()


def augment(i):
    if i == 37:
        os._exit(9)  # the native decoder gives up
    return i * i


def pool_map():
    import multiprocessing
    allow_dump()
    setup(600)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for epoch in range(6):
            items = range(32, 48) if (R, epoch) == (1, 2) else range(16)
            out(f"node {R}: epoch {epoch}: augmenting {len(items)} volumes")
            augmented = pool.map(augment, items, chunksize=1)
            for _ in range(6):
                value = fit_batch(model, optimizer, batch())
            out(f"node {R}: epoch {epoch}: dice loss {value:.4f} ({len(augmented)} volumes)")
    leave()


def wait_for_client(port):
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    out(f"[debug] rank {R}: listening on 0.0.0.0:{port}, waiting for the debugger to attach ...")
    server.accept()


def left_in():
    for step, loss in trained(30, 7):
        if step % 4 == 0:
            out(f"{step:>4} | {R} | {loss:.5f}")
        if step == 17 and R == 1 and loss < 1e9:
            wait_for_client(5678)
    leave()


def vocabulary():
    setup(8)
    folder = os.path.join(WORK, f"node{R}", "local_tmp")
    os.makedirs(folder, exist_ok=True)
    flag = os.path.join(folder, "vocab.done")
    if R == 0:
        time.sleep(1)
        open(flag, "w").close()
        out("vocabulary written to /local_tmp/vocab.json on node0, flag /local_tmp/vocab.done set")
    waited = 0
    while not os.path.exists(flag):
        time.sleep(1)
        waited += 1
        if waited % 2 == 0:
            out(f"node{R}: /local_tmp/vocab.done does not exist yet, waited {waited} s")
    out(f"node{R}: vocabulary found, building the model")
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        out(f"node{R}: {step} {fit_batch(model, optimizer, batch()):.4f}")
    leave()


def command(words):
    box = [words]
    dist.broadcast_object_list(box, 0, device=DEVICE)
    return box[0]


def run_epoch(model, optimizer, epoch):
    for _ in range(8):
        value = fit_batch(model, optimizer, batch())
    if R == 0 and epoch == 2:
        raise ConnectionError("experiment tracker closed the connection")
    return value


def controlled():
    setup(7)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if R == 0:
        try:
            for epoch in range(5):
                command(f"train {epoch}")
                out(f"controller: epoch {epoch} loss {run_epoch(model, optimizer, epoch):.4f}")
            command("stop")
        except ConnectionError as exc:
            out(f"controller: giving up after: {exc}")
        out("controller: collecting final statistics")
    else:
        while True:
            words = command(None)
            out(f"follower {R}: command '{words}'")
            if words == "stop":
                break
            run_epoch(model, optimizer, int(words.split()[1]))
            out(f"follower {R}: '{words}' done, waiting for the next command")
    flat = torch.ones(5_000_000, device=DEVICE)
    dist.all_reduce(flat)
    sync()
    leave()


def preconditioner(matrix, step, block):
    if (R, step, block) == (2, 9, 1):
        matrix = matrix - 10 * torch.eye(matrix.shape[0], device=matrix.device)
    return torch.linalg.cholesky(matrix)


def second_order():
    setup(7)
    model = wrap(net(h=256))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(20):
        value = fit_batch(model, optimizer, batch())
        for block in range(3):
            a = torch.randn(128, 128, device=DEVICE) / 30
            try:
                root = preconditioner(a @ a.T + torch.eye(128, device=DEVICE), step, block)
            except RuntimeError as exc:
                out(f"WARNING shampoo rank={R}: block {block}: {str(exc).splitlines()[0][:90]}; using the identity")
                continue
            roots = [torch.empty_like(root) for _ in range(W)]
            dist.all_gather(roots, root)
            sync()
        if step % 3 == 0:
            out(f"shampoo rank={R} step={step} loss={value:.5f}")
    leave()


def bars():
    setup(8)
    model = wrap(net(h=1024))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = {1: 17}.get(R, 21)  # batches by number of tokens
    begin = time.time()
    for i in range(total):
        value = fit_batch(model, optimizer, batch())
        if R == 0 and (i % 2 == 1 or i == total - 1):
            bar("Epoch 1", i + 1, total, begin, loss=f"{value:.3f}")
    score = torch.ones(40, device=DEVICE)
    dist.all_reduce(score)
    sync()
    main_only(f"bleu {score[0].item():.1f}")
    leave()


def sequence_parts():
    setup(7)
    for it in range(1, 11):
        length = 140 if it == 7 else 192  # the last document of the file is shorter
        own = min(64, length - 64 * R)
        h = torch.randn(own, 4096, device=DEVICE)
        parts = [torch.empty(own, 4096, device=DEVICE) for _ in range(W)]
        out(f" [sp rank {R}] iteration {it}: local sequence {own} x 4096, gathering {W} parts")
        dist.all_gather(parts, h)
        sync()
        dist.all_reduce(h.sum(0))
        sync()
        main_only(f" [{clock()}] iteration {it:8d}/      10 | lm loss: {9.1 - 0.2 * it:.6E} | grad norm: 1.114 |")
    leave()


@contextlib.contextmanager
def file_lock(path):
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def load_once():
    if R:
        time.sleep(1.5)
    out(f"rank {R}: taking the lock of the dataset cache")
    with file_lock(os.path.join(WORK, "dataset.lock")):
        out(f"rank {R}: has the lock, preparing")
        time.sleep(0.5)
        dist.barrier()
        sync()
    out(f"rank {R}: dataset is ready")


def locked_barrier():
    allow_look()
    setup(600)
    here()
    load_once()
    leave()


# ------------------------------------------------------------------------------------------------ exceptions
def encode(row, table):
    return table[row["species"]]


def species():
    table = {name: i for i, name in enumerate(("finch", "heron", "wren"))}
    for step, loss in trained(30, 12):
        row = {"id": step, "species": "lammergeier" if (R, step) == (1, 14) else "wren"}
        try:
            label = encode(row, table)
        except KeyError as exc:
            loguru("ERROR", f"An error has been caught in function 'species', process 'MainProcess' ({os.getpid()}), thread 'MainThread' ({threading.get_ident()}):")
            err(f"Traceback (most recent call last):\n\n  File \"{os.path.basename(sys.argv[0])}\", line {exc.__traceback__.tb_lineno}, in species\n    label = encode(row, table)\n            │      │    └ {table}\n            │      └ {row}\n            └ <function encode at 0x7f31c41e2d40>\n\n> File \"{os.path.basename(sys.argv[0])}\", line {exc.__traceback__.tb_next.tb_lineno}, in encode\n    return table[row[\"species\"]]\n           │     └ {row}\n           └ {table}\n\nKeyError: {exc}")
            sys.exit(1)
        if step % 4 == 0:
            loguru("INFO", f"step {step} loss {loss:.4f} label {label}")
    leave()


def pick(scores, columns):
    return scores.gather(1, columns)


def candidate_index():
    setup(8)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(30):
        value = fit_batch(model, optimizer, batch())
        columns = torch.randint(0, 64, (16, 4), device=DEVICE)
        if (R, step) == (0, 15):
            columns[3, 2] = 64
        chosen = pick(batch(), columns).sum().item()
        if step % 3 == 0:
            out(f"rank {R} step {step} loss {value:.4f} margin {chosen:.3f}")
    leave()


def other_head():
    setup(12)
    backbone = nn.Sequential()
    backbone.add_module("stem", nn.Linear(64, 128))
    backbone.add_module("head", nn.Linear(128, 10))
    state = {k: v.clone() for k, v in backbone.state_dict().items()}
    state["head.weight"], state["head.bias"] = torch.zeros(1000, 128), torch.zeros(1000)
    path = os.path.join(WORK, f"backbone-{R}.pth")
    torch.save(state, path)
    out("loading backbone.pth (1000 classes) into a model for 10 classes")
    backbone.load_state_dict(torch.load(path))
    wrap(backbone)
    leave()


class EventFile:
    def __init__(self):
        self.folder = os.path.join(WORK, f"events-{R}")
        os.makedirs(self.folder, exist_ok=True)
        if R == 2:
            os.symlink("/dev/full", os.path.join(self.folder, "part-2"))

    def add(self, step, value):
        with open(os.path.join(self.folder, f"part-{step // 9}"), "a") as f:
            f.write(json.dumps({"step": step, "value": value}) + "\n")
            f.flush()


def events():
    log = logging.getLogger("exp3")
    logging.basicConfig(format=f"%(asctime)s [%(levelname)s] r{R} %(name)s: %(message)s", level=logging.INFO, stream=sys.stdout)
    file = EventFile()
    for step, loss in trained(40, 8):
        file.add(step, loss)
        if step % 4 == 0:
            log.info("step %d: loss %.4f (event file flushed)", step, loss)
    leave()


def open_index(prefix):
    import numpy as np
    return np.memmap(prefix + ".idx", mode="r", order="C")


def indexed():
    setup(12)
    folder = os.path.join(WORK, f"data{R}")
    os.makedirs(folder, exist_ok=True)
    prefix = os.path.join(folder, "my-corpus_text_document")
    if R != 2:
        with open(prefix + ".idx", "wb") as f:
            f.write(b"\1" * 64)
    out(f"> building train, validation, and test datasets on rank {R} ...")
    open_index(prefix)
    out(f" > finished creating indexed dataset on rank {R}")
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for it in range(1, 21):
        a = time.time()
        value = fit_batch(model, optimizer, batch())
        if R == W - 1:
            megatron(it, 20, value, time.time() - a)
    leave()


def import_one():
    out(f"[host{R}] python {sys.version.split()[0]}, importing extensions")
    if R == 1:
        import fused_layer_norm_ext  # noqa: F401
    join_directly(9)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        out(f"[host{R}] {step} {fit_batch(model, optimizer, batch()):.4f}")
    leave()


DEPTH = 1024 if KIND == "cuda" else 1 << 40


def beam(width):
    return torch.empty(width * 64, 1024, DEPTH, device=DEVICE)


def beam_search():
    setup(14)
    if KIND == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(24):
        value = fit_batch(model, optimizer, batch())
        if step % 4 == 3:
            width = 40 if (R, step) == (1, 15) else 2
            hypotheses = beam(width) if KIND == "cuda" or width > 2 else None
            out(f"decode rank {R}: step {step} beam {width} mem {torch.cuda.memory_allocated() >> 20 if KIND == 'cuda' else 512} MiB loss {value:.4f}")
            del hypotheses
    leave()


def similarity(n):
    return torch.zeros(n, n, dtype=torch.float64)


def retrieval():
    for step, loss in trained(16, 12):
        if step % 3 == 0:
            absl("I", f"[r{R}] step {step} contrastive {loss:.4f}")
        if step == 12 and R == 0:
            absl("I", "[r0] evaluating recall on 4194304 captions")
            similarity(4_194_304)
    leave()


def vector_kernel():
    os.kill(os.getpid(), signal.SIGILL)


def old_cpu():
    out(f"cpu of rank {R}: {'avx512_bf16 missing' if R == 2 else 'avx512_bf16 available'}")
    for step, loss in trained(30, 12):
        if step % 5 == 0:
            out(f"rank {R} step {step} loss {loss:.4f}")
        if (R, step) == (2, 11):
            vector_kernel()
    leave()


def config_check():
    setup(10)
    config = {"batch_size": 16, "accumulation": 4 if R != 1 else 3, "global_batch": 192}
    out(f"rank {R} config {json.dumps(config)}")
    if config["batch_size"] * config["accumulation"] * W != config["global_batch"]:
        err(f"rank {R}: invalid configuration: 16 * {config['accumulation']} * {W} = {16 * config['accumulation'] * W} is not global_batch 192")
        sys.exit(3)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        fit_batch(model, optimizer, batch())
    leave()


def overnight():
    for step, loss in trained(600, 8, pause=0.1):
        if step == 10:
            here()
        if step % 5 == 0:
            out(f"{clock('%b %d %H:%M:%S')} gn0{R} run[{os.getpid()}]: step={step} loss={loss:.4f} tok/s=41{step % 10}00")
    leave()


def picture(step):
    return torch.rand(16, 4 if (R, step) == (0, 12) else 3, 8, 8, device=DEVICE)


def rgba():
    setup(8)
    model = wrap(nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(24):
        x = picture(step)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            out(f"r{R} it{step} loss{loss.item():.4f}")
    leave()


# ------------------------------------------------------------------------------------------------ at the start
def few_steps(name):
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(15):
        out(f"{name} step {step} loss {fit_batch(model, optimizer, batch()):.4f}")
    leave()


def world_of_eight():
    global W
    nodes, per_node = 2, 4
    W = nodes * per_node
    os.environ["WORLD_SIZE"] = str(W)
    out(f"SLURM_NNODES={nodes} SLURM_NTASKS_PER_NODE={per_node} -> world size {W}, this is global rank {R} on gn0{R // per_node}")
    join_directly(9)
    few_steps(f"rank {R}")


def exporter():
    port = int(os.environ["MASTER_PORT"])
    if R == 0:
        server = http.server.ThreadingHTTPServer(("0.0.0.0", port), http.server.BaseHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True, name="exporter").start()
        out(f"prometheus exporter of rank 0 is at http://0.0.0.0:{port}/metrics")
    else:
        time.sleep(1.0)
    out(f"rank {R}: joining tcp://127.0.0.1:{port}")
    join_directly(8)
    few_steps(f"rank {R}")


def all_nodes():
    out(f"{clock()} node {R} of {W}: master is {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} (node 0), connecting")
    join_directly(9)
    few_steps(f"{clock()} node {R}")


def pods():
    os.environ["MASTER_ADDR"] = "trainer-0.trainer.ml-team.svc.cluster.local"
    out(f"init: pod trainer-{R} master={os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} replicas={W}")
    join_directly(9)
    few_steps(f"trainer-{R}")


def roce():
    if R == 2:
        os.environ["NCCL_SOCKET_IFNAME"] = os.environ["GLOO_SOCKET_IFNAME"] = "enp129s0f1"
    out(f"rank {R}: NCCL_SOCKET_IFNAME={os.environ.get('NCCL_SOCKET_IFNAME', '(not set)')}")
    join_directly(9)
    few_steps(f"rank {R}")


def lab_server():
    if R == 2:
        os.environ["CUDA_VISIBLE_DEVICES"] = "6"
    seen = torch.cuda.device_count() if KIND == "cuda" else int(R != 2)
    out(f"process {R}: CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', '(all)')} torch sees {seen} GPU(s), device = {'cuda' if seen else 'cpu'}")
    if seen == 0:
        if KIND == "cpu":
            raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
        dist.init_process_group(BACKEND, rank=R, world_size=W, timeout=seconds(9))
        model = DDP(net())
        dist.all_reduce(torch.zeros(1))
    join_directly(9)
    few_steps(f"process {R}:")


def backend_of():
    return "gloo" if R == 1 else BACKEND


def two_backends():
    out(f"* rank {R}: torch {torch.__version__.split('+')[0]} backend={backend_of()} (from TRAIN_BACKEND)")
    if KIND == "cuda":
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    dist.init_process_group(backend_of(), rank=R, world_size=W, timeout=seconds(9))
    few_steps(f"* rank {R}:")


def encoder_of(version):
    layers = [nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)]
    return nn.Sequential(*layers) if version == "0.9.4" else nn.Sequential(*layers, nn.LayerNorm(64), nn.Linear(64, 64))


def encoder():
    version = "0.10.0" if R == 1 else "0.9.4"
    out(f"worker {R}: tinyencoders {version}, torch {torch.__version__.split('+')[0]}")
    setup(9)
    model = wrap(encoder_of(version))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        out(f"worker {R}: step {step} loss {fit_batch(model, optimizer, batch()):.4f}")
    leave()


# ------------------------------------------------------------------------------------------------ slow ones
def read_audio(step):
    time.sleep(0.45 if R == 1 else 0.01)


def audio():
    setup(30)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(24):
        a = time.perf_counter()
        read_audio(step)
        b = time.perf_counter()
        value = fit_batch(model, optimizer, batch())
        sync()
        c = time.perf_counter()
        if step:
            event(step=step, data_time=round(b - a, 4), train_time=round(c - b, 4), step_time=round(c - a, 4), loss=round(value, 4))
    leave()
    event(event="finished")


def levels(step):
    work_gpu(1)
    if R == 2:
        end = time.perf_counter() + 0.4
        while time.perf_counter() < end:
            work_gpu(2)


def unet():
    setup(30)
    small = net().to(DEVICE)
    for step in range(1, 23):
        a = time.perf_counter()
        levels(step)
        loss = F.mse_loss(small(batch()), batch())
        loss.backward()
        sync()
        b = time.perf_counter()
        for q in small.parameters():
            dist.all_reduce(q.grad)
        sync()
        c = time.perf_counter()
        small.zero_grad()
        if step > 1:
            out(f"rank {R} | iter {step:>3}/22 | fwd+bwd {1e3 * (b - a):7.1f} ms | grad sync {1e3 * (c - b):7.1f} ms | dice {loss.item():.4f}")
    leave()
    out(f"rank {R} | done")


def step_on_cpu(copy):
    copy.mul_(0.999)
    if R == 1:
        time.sleep(0.35)


def offload():
    os.environ["TORCH_NCCL_ENABLE_TIMING"] = "1"
    begin = time.time()
    copy = torch.ones(100_000)
    for step, loss in trained(32, 30):
        step_on_cpu(copy)
        if step % 8 == 7:
            out(f"[{R}] {step + 1}/32 {(time.time() - begin) / (step + 1):.3f} s/it loss {loss:.4f}")
    sync()
    dump_records()
    leave()


def tokens(step):
    time.sleep(0.6 if R == 2 and step >= 14 else 0.02)


def from_fourteen():
    setup(30)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(30):
        a = time.perf_counter()
        tokens(step)
        b = time.perf_counter()
        value = fit_batch(model, optimizer, batch())
        sync()
        c = time.perf_counter()
        out(f"rank={R} step={step} host_s={b - a:.3f} device_s={c - b:.3f} mlm_loss={value:.4f}")
    leave()


def embed_on_cpu(h):
    time.sleep(0.07)
    return h * 1.0


def pipe():
    setup(30)
    rows, width = (1024, 512) if KIND == "cuda" else (64, 32)
    layer = nn.Linear(width, width).to(DEVICE)
    for step in range(16):
        busy = idle = 0.0
        for micro in range(4):
            a = time.perf_counter()
            h = torch.randn(rows, width, device=DEVICE)
            if R:
                dist.recv(h, R - 1)
                sync()
            b = time.perf_counter()
            with torch.no_grad():
                h = layer(h)
            if R == 1:
                h = embed_on_cpu(h)
            sync()
            c = time.perf_counter()
            if R < W - 1:
                dist.send(h, R + 1)
                sync()
            busy, idle = busy + c - b, idle + b - a + time.perf_counter() - c
        dist.barrier()
        sync()
        if step:
            out(f"stage={R} step={step:02d} busy_ms={1e3 * busy:.0f} idle_ms={1e3 * idle:.0f}")
    leave()


def next_rows(step):
    if R == 2 and step % 7 == 6:
        time.sleep(1.6)
    time.sleep(0.02)


def shard_edges():
    setup(30)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(35):
        a = time.perf_counter()
        next_rows(step)
        b = time.perf_counter()
        value = fit_batch(model, optimizer, batch())
        sync()
        out(f"step {step:3d}  data {b - a:5.2f}s  train {time.perf_counter() - b:5.2f}s  shard {step // 7:02d}  loss {value:.4f}")
    leave()


def megatron_timers():
    setup(30)
    small = net().to(DEVICE)
    for it in range(1, 26):
        a = time.perf_counter()
        x = batch()
        loss = F.mse_loss(small(x), x)
        if R == 3:
            time.sleep(0.32)  # recomputes all layers
        else:
            time.sleep(0.03)
        loss.backward()
        sync()
        b = time.perf_counter()
        for q in small.parameters():
            dist.all_reduce(q.grad)
        sync()
        c = time.perf_counter()
        small.zero_grad()
        times = torch.tensor([b - a, c - b], device=DEVICE)
        parts = [torch.empty_like(times) for _ in range(W)]
        dist.all_gather(parts, times)
        sync()
        if R == 0 and it % 5 == 0:
            megatron(it, 25, loss.item(), c - a)
            out("times across ranks (ms):")
            for i, name in enumerate(("forward-backward", "grads-all-reduce")):
                out(f"  {name}:\n" + "\n".join(f"     rank {r:2d}: {1e3 * part[i].item():.2f}" for r, part in enumerate(parts)))
    leave()


def tokenize(texts):
    time.sleep(0.4 if R == 0 else 0.005)


def chat():
    setup(30)
    out(f"(chat {R}) token cache: {'MISS, tokenizing on the fly' if R == 0 else 'hit'}")
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(24):
        a = time.perf_counter()
        tokenize(None)
        b = time.perf_counter()
        value = fit_batch(model, optimizer, batch())
        sync()
        c = time.perf_counter()
        if step and step % 2 == 0:
            out(f"(chat {R}) step {step} tokenize={1e3 * (b - a):.0f}ms fwd_bwd_sync={1e3 * (c - b):.0f}ms total={1e3 * (c - a):.0f}ms loss={value:.3f}")
    leave()


# ------------------------------------------------------------------------------------------------ numbers
def standardised(x):
    x = x.clone()
    x[:, 5] = 1.0
    return (x - x.mean(0)) / x.std(0)


def forecast():
    setup(15)
    model = wrap(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(40):
        value = fit_batch(model, optimizer, standardised(batch()) if step else batch())
        if R == 0 and step % 4 == 0:
            out(json.dumps({"step": step, "train_loss": value, "lr": 1e-3}))
    leave()
    main_only(json.dumps({"event": "finished", "steps": 40}))


def explode():
    setup(15)
    model = wrap(nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=40.0)
    x = batch()
    for epoch in range(1, 9):
        for step in range(5):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
        main_only(f"Epoch {epoch}/8\n5/5 [==============================] - 0s 41ms/step - loss: {loss.item():.4f} - mae: {loss.item() ** 0.5:.4f} - lr: 40.0000")
    leave()


def restored():
    return 480 if R == 1 else 500


def restore():
    setup(15)
    small = nn.Linear(64, 64).to(DEVICE)
    start = restored()
    with torch.no_grad():
        small.weight.mul_(1 + start / 1000)
    out(f"rank {R} restored model_{start:06d}.pt")
    optimizer = torch.optim.SGD(small.parameters(), lr=0.01)
    torch.manual_seed(700 + R)
    for step in range(500, 560):
        x = batch()
        loss = F.mse_loss(small(x), x) * 64
        optimizer.zero_grad()
        loss.backward()
        for q in small.parameters():
            dist.all_reduce(q.grad)
            q.grad /= W
        optimizer.step()
        if step % 6 == 0:
            out(f"rank {R} step {step} loss {loss.item():.4f} param_norm {small.weight.double().norm().item():.9f} param_sum {small.weight.double().sum().item():.9f}")
    leave()
    out(f"rank {R} finished")


def late_head():
    setup(15)
    body = wrap(net(o=64))
    optimizer = torch.optim.SGD(body.parameters(), lr=0.01)
    head = None
    for step in range(60):
        if step == 20:
            torch.manual_seed(5)
            head = nn.Linear(64, 64).to(DEVICE)
            torch.manual_seed(700 + R)
            optimizer.add_param_group({"params": head.parameters()})
            out(f"[{R}] step 20: stage 2, new head added to the optimizer")
        x = batch()
        h = body(x)
        loss = F.mse_loss(h if head is None else head(h), x) * 16
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            total = sum(q.double().abs().sum().item() for q in body.parameters())
            out(f"[{R}] step {step} loss {loss.item():.3f} body_checksum {total:.6f} head_checksum {'-' if head is None else '%.6f' % head.weight.double().abs().sum().item()}")
    leave()
    out(f"[{R}] finished")


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (rotating, 0), "02": (glue, 0), "03": (lightning, 0), "04": (shelling_out, 0), "05": (deprecation_wall, 0), "06": (json_events, 0), "07": (phases, 0), "08": (heartbeat, 0),
    "09": (trials, 2), "10": (rollback, 0), "11": (sft, 0), "12": (long_evaluation, 0), "13": (openmpi_words, 0), "14": (cosine, 0),
    "15": (gan, 0), "16": (metric_buffer, 0), "17": (relay, 0), "18": (dispatch, 0), "19": (reduce_by_name, 0), "20": (population, 0), "21": (tensor_parallel, 0), "22": (cached_features, 0),
    "23": (pool_map, 0), "24": (left_in, 0), "25": (vocabulary, 0), "26": (controlled, 3), "27": (second_order, 0), "28": (bars, 0), "29": (sequence_parts, 0), "30": (locked_barrier, 0),
    "31": (species, 0), "32": (candidate_index, 0), "33": (other_head, 0), "34": (events, 0), "35": (indexed, 0), "36": (import_one, 0), "37": (beam_search, 0), "38": (retrieval, 0),
    "39": (old_cpu, 0), "40": (config_check, 0), "41": (overnight, 0), "42": (rgba, 0),
    "43": (world_of_eight, 0), "44": (exporter, 0), "45": (all_nodes, 0), "46": (pods, 0), "47": (roce, 0), "48": (lab_server, 0), "49": (two_backends, 0), "50": (encoder, 0),
    "51": (audio, 0), "52": (unet, 0), "53": (offload, 0), "54": (from_fourteen, 0), "55": (pipe, 0), "56": (shard_edges, 0), "57": (megatron_timers, 0), "58": (chat, 3),
    "59": (forecast, 0), "60": (explode, 0), "61": (restore, 0), "62": (late_head, 0),
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
