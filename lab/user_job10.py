#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of a tenth set: user_job10.py --case NN (two digits). Truth in truth.json, started by user_jobs10.sh.

LAB_DEVICE=cpu takes gloo instead of NCCL; LAB_SCRATCH is a folder of the job, LAB_KEEP the one its user keeps. What is printed, and the names in the stacks, are a user's."""
import argparse
import contextlib
import ctypes
import datetime
import faulthandler
import json
import logging
import math
import os
import random
import signal
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
WORK = os.environ.get("LAB_SCRATCH", "/tmp/lab10-scratch")
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


def training(steps, timeout=10, width=64, hidden=512, pause=0.0, cls=torch.optim.AdamW):
    """The plain loop: yields each step and its loss."""
    device = setup(timeout)
    model = wrap(mlp(width, hidden, width).to(device))
    optimizer = cls(model.parameters(), lr=1e-3)
    for step in range(steps):
        yield step, train_step(model, optimizer, torch.randn(16, width, device=device))
        if pause:
            time.sleep(pause)


def dump_records():
    """As PyTorch's documentation shows it, for a job that has not failed."""
    if KIND == "cuda":
        from torch._C import _distributed_c10d as c10d
        with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(R), "wb") as f:
            f.write((getattr(c10d, "_dump_nccl_trace", None) or c10d._dump_fr_trace)())


def glog(level, text):
    print(f"{level}{datetime.datetime.now().strftime('%m%d %H:%M:%S.%f')} {os.getpid():6d} {os.path.basename(sys.argv[0])}:{sys._getframe(1).f_lineno}] {text}", file=sys.stderr, flush=True)


def logfmt(level, text, **values):
    rest = "".join(f' {k}={v}' for k, v in values.items())
    say(f'ts={stamp("%Y-%m-%dT%H:%M:%SZ")} level={level} rank={R} msg="{text}"{rest}')


def keras(step, steps, **values):
    done = 24 * (step + 1) // steps
    say(f"{step + 1}/{steps} [{'=' * done}>{'.' * (24 - done)}] - ETA: {(steps - step) // 5}s" + "".join(f" - {k}: {v:.4f}" for k, v in values.items()))


# ------------------------------------------------------------------------------------------------ healthy ones
class MetricsClient(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True, name="metrics")
        self.buffered, self.wish = 0, threading.Event()

    def run(self):
        for attempt in range(1, 5):
            self.wish.wait()
            self.wish.clear()
            try:
                urllib.request.urlopen("http://127.0.0.1:9/api/runs/7fk2/log", timeout=2)
            except Exception as err:
                self.buffered += 10
                logfmt("error", "metrics upload failed, will retry later", attempt=attempt, buffered=self.buffered, err=repr(str(err)))
                traceback.print_exc()


def metrics_offline():
    client = MetricsClient()
    client.start()
    for step, loss in training(40, 30, pause=0.05):
        if step % 10 == 9:
            if R == 0:
                client.wish.set()
            logfmt("info", "train", step=step + 1, loss=f"{loss:.5f}")
    cleanup()
    logfmt("info", "run complete", steps=40)


def nano():
    device = setup(30)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
    scheduler.step()
    if R == 0:
        say("number of parameters: 0.33M\nWARNING: using slow attention. Flash Attention requires PyTorch >= 2.0\nNo existing optimizer state, initializing from scratch")
    for it in range(61):
        a = time.time()
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        scheduler.step()
        if R == 0 and it % 5 == 0:
            say(f"iter {it}: loss {value:.4f}, time {1e3 * (time.time() - a):.2f}ms, mfu {-100.0 if it < 5 else 0.31:.2f}%")
    dist.barrier()
    sync()
    if R == 0:
        say("max_iters reached, done")


def joined():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine = (26, 14, 20, 9)[R]
    say(f"<{R}> bucket sampler: {mine} batches on this rank (uneven inputs are joined)")
    with model.join():
        for i in range(mine):
            value = train_step(model, optimizer, torch.randn(16, 64, device=device))
            if i % 3 == 0:
                say(f"<{R}> batch {i}/{mine} ce={value:.4f}")
        say(f"<{R}> no more data on this rank after {mine} batches, leaving the loop early")
    say(f"<{R}> epoch 1/1 finished on all ranks")
    cleanup()


def open_corpus():
    if R == 1:
        titan("WARNING", "dataset index is not in the page cache, first batch will be late")
        time.sleep(6)


def titan(level, text):
    say(f"[rank{R}]:[titan] {stamp('%Y-%m-%d %H:%M:%S,%f')[:-3]} - root - {level} - {text}")


def late_once():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 41):
        a = time.time()
        if step == 1:
            open_corpus()
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if step == 1 or step % 5 == 0:
            titan("INFO", f"step: {step:2d}  loss: {value:7.4f}  grad_norm: {1.2 + value:.4f}  memory:  1.18GiB(0.84%)  tps: {int(1024 / max(1e-3, time.time() - a)):,}  mfu: 11.{step:02d}%")
    titan("INFO", "Training completed")
    cleanup()


def table(rows):
    say("-" * 41 + "\n" + "\n".join(f"| {k:<22} | {v:<12} |" for k, v in rows) + "\n" + "-" * 41)


def reinforce():
    dice = random.Random(3)
    for step, loss in training(48, 30):
        if R == 0 and step % 4 == 3:
            table([("rollout/", ""), ("   ep_len_mean", 200), ("   ep_rew_mean", f"{-1650 + 30 * step + dice.uniform(-300, 300):.3g}"), ("time/", ""), ("   iterations", step + 1), ("train/", ""),
                   ("   approx_kl", f"{dice.uniform(0, 0.04):.4f}"), ("   explained_variance", f"{dice.uniform(-4, 0.9):.3g}"), ("   policy_gradient_loss", f"{dice.uniform(-0.9, 0.6):.3g}"), ("   value_loss", f"{math.exp(dice.uniform(2, 9)):.3g}"), ("   loss", f"{loss + dice.uniform(-2, 2):.3g}")])
    cleanup()
    if R == 0:
        say("Saving to ./ppo_quadruped\nmean_reward=-189.20 +/- 214.03")


def smoke_tests():
    device = setup(30)
    begin = time.time()
    say("============================= test session starts ==============================")

    def passed(name, note="", word="PASSED"):
        dist.barrier()
        sync()
        say(f"tests/test_distributed.py::{name}[rank{R}] {word} {note}".rstrip())

    flat = torch.ones(1000, device=device)
    dist.all_reduce(flat)
    assert flat[0].item() == W
    passed("test_all_reduce")
    try:
        nn.Linear(8, 4).to(device)(torch.ones(2, 9, device=device))
    except RuntimeError as err:
        passed("test_wrong_width_raises", f"(RuntimeError: {str(err).splitlines()[0]})")
    try:
        torch.empty(1 << 52, dtype=torch.uint8, device=device)
    except RuntimeError as err:
        passed("test_out_of_memory_is_caught", f"({type(err).__name__}: {str(err).splitlines()[0][:60]})")
    loss = (torch.zeros(1, device=device) / 0).item()
    passed("test_nan_guard", f"(Loss is {loss}, stopping training: as expected)")
    passed("test_timeout_is_reported", "(not supported on one node)", "SKIPPED")
    passed("test_elastic_restart", "(known issue 4412: SIGTERM is late)", "XFAIL")
    say(f"=================== 4 passed, 1 skipped, 1 xfailed in {time.time() - begin:.2f}s ====================")
    cleanup()


def attention_kernel():
    try:
        import flash_attn_gpu_kernels  # noqa: F401
    except ImportError:
        traceback.print_exc()
        say(f"rank {R}: ERROR: fused attention is not installed (see above), using the math implementation instead")


def composer():
    attention_kernel()
    for batch, loss in training(40, 30):
        if batch % 8 == 0:
            say(f"[epoch=1][batch={batch}/40]:\n\t Train time/batch: {batch}\n\t Train trainer/device_train_microbatch_size: 16\n\t Train loss/train/total: {loss:.4f}")
    cleanup()
    say(f"[epoch=1][batch=40/40]: rank {R}: fit() returned")


def fairseq_like():
    device = setup(30)
    net = mlp(64, 256, 8).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    scale = 128.0
    torch.manual_seed(900 + R)
    for update in range(1, 61):
        x = torch.randn(16, 64, device=device)
        loss = F.cross_entropy(net(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        (loss * (float("inf") if update in (1, 9, 33) else scale)).backward()
        flat = torch.cat([q.grad.flatten() for q in net.parameters()])
        dist.all_reduce(flat)
        norm = flat.norm().item()
        if not math.isfinite(norm):
            scale /= 2
            if R == 0:
                say(f"{stamp()} | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {scale}")
            continue
        at = 0
        for q in net.parameters():
            q.grad.copy_(flat[at:at + q.numel()].view_as(q) / scale / W)
            at += q.numel()
        optimizer.step()
        if update % 6 == 0 and R == 0:
            say(f"{stamp()} | INFO | train_inner | epoch 001: {update:6d} / 60 loss={loss.item() * 1.4427:.3f}, ppl={2 ** (loss.item() * 1.4427):.2f}, wps=41022.1, ups=9.31, wpb=4402.0, bsz=64, num_updates={update}, lr=0.001, gnorm={norm / scale:.3f}, loss_scale={scale:.0f}, train_wall=1, gb_free=131.9, wall={update // 5}")
    cleanup()
    if R == 0:
        say(f"{stamp()} | INFO | fairseq_cli.train | done training in 9.4 seconds")


class Frames(Dataset):
    def __init__(self, first):
        self.first = first

    def __len__(self):
        return 240 - self.first

    def __getitem__(self, i):
        token = os.path.join(WORK, "decoder-crashed")
        if R == 1 and self.first + i == 100 and not os.path.exists(token):
            open(token, "w").close()
            os._exit(1)
        return torch.full((64,), (self.first + i) / 240)


def sturdy_batches():
    first = 0
    while first < 240:
        try:
            for x in DataLoader(Frames(first), batch_size=8, num_workers=1, multiprocessing_context="fork"):
                yield x
                first += 8
        except RuntimeError:
            say(f"trainer[{R}]: loader failed at sample {first}, starting it again\n{traceback.format_exc()}")


def sturdy_loader():
    device = setup(40)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(sturdy_batches()):
        value = train_step(model, optimizer, x.to(device))
        if i % 5 == 0:
            say(f"trainer[{R}]: batch {i:02d} of 30, objective {value:.5f}")
    cleanup()
    say(f"trainer[{R}]: all 30 batches are done, bye")


def two_groups():
    os.environ["NCCL_ASYNC_ERROR_HANDLING"] = "1"
    device = setup(30)
    pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    flat = torch.ones(4096, device=device)
    for step in range(30):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        for members, group in zip(((0, 1), (1, 2)), pairs):
            if R in members:
                dist.all_reduce(flat, group=group)
        flat.fill_(1)
        if step % 6 == 0:
            glog("I", f"[r{R}] step {step} loss {value:.5f}")
            if step == 12:
                glog("W", f"[r{R}] gradient norm above the 99th percentile")
    cleanup()
    glog("I", f"[r{R}] Job finished, status OK")


def reviewed():
    for step, loss in training(40, 30):
        if step % 8 == 0:
            say(f"rank={R} step={step} loss={loss:.4f}")
    sync()
    dump_records()
    if R == 0:
        say("flight records written for the performance review")
    cleanup()
    say(f"rank={R} finished all 40 steps")


def timm_like():
    device = setup(30)
    model = wrap(nn.Linear(64, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    best = float("inf")
    x = torch.randn(64, 64, device=device)
    with torch.no_grad():
        for q in model.parameters():
            q.mul_(900)
    for epoch in range(6):
        for step in range(8):
            value = train_step(model, optimizer, x)
            if R == 0 and step % 2 == 0:
                say(f"Train: {epoch} [{step:>4d}/8 ({100 * step // 7:>3.0f}%)]  Loss: {value:#.3g} ({value * 1.1:#.3g})  Time: 0.041s,  780.49/s  (0.052s,  615.38/s)  LR: 2.000e+00  Data: 0.003 (0.011)")
        if R == 0:
            say(f"*** Best metric: {best} (epoch {epoch - 1})" + ("  eta: nan" if epoch == 0 else ""))
        best = round(value, 4)
    cleanup()
    if R == 0:
        say(f"*** Best metric: {best} (epoch 5)\n--result\n{json.dumps({'epoch': 5, 'train': {'loss': best}, 'validation': None})}")


def actor_learner():
    device = setup(40)
    weights = torch.zeros(10_000, device=device)
    dist.all_reduce(weights)
    sync()
    for round_ in range(12):
        a = time.time()
        if R == 0:
            for actor in range(1, W):
                rollout = torch.empty(4096, device=device)
                dist.recv(rollout, actor)
                sync()
            time.sleep(0.35)
            weights += 1
            say(f"learner: round {round_}: got {W - 1} rollouts, update took 0.35 s, actors idle meanwhile")
        else:
            time.sleep(0.1 * R)
            dist.send(torch.full((4096,), float(round_), device=device), 0)
            say(f"actor {R}: round {round_}: rollout sent, blocked until new weights arrive")
        dist.broadcast(weights, 0)
        sync()
        if R:
            say(f"actor {R}: weights v{int(weights[0].item())} after {time.time() - a:.2f} s")
    cleanup()
    say("learner: stop, target reached" if R == 0 else f"actor {R}: told to stop, leaving")


class Reader:
    handle = None

    def __del__(self):
        self.handle.close()


def untidy_end():
    device = setup(30)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.Adam(model.parameters())
    reader = Reader()
    for step in range(40):
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        if R == 0 and step % 5 == 4:
            keras(step, 40, loss=value, mae=value / 2)
    cleanup()
    say(f"[{R}] fit finished, 40 of 40 steps; closing readers")
    del reader
    warnings.warn("There appear to be 3 leaked readers at shutdown")


# ------------------------------------------------------------------------------------------------ calls that not all make
def convnet():
    return nn.Sequential(nn.Linear(64, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 64))


@torch.no_grad()
def validate(model, device):
    model.eval()
    total = 0.0
    for _ in range(7):
        x = torch.randn(16, 64, device=device)
        total += F.mse_loss(model(x), x).item()
    model.train()
    return total / 7


def val_on_main():
    device = setup(9)
    model = wrap(convnet().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        if R == 0:
            say("\n      Epoch    GPU_mem   box_loss   cls_loss  Instances")
        for _ in range(12):
            value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        say(f"[{R}]    {epoch + 1}/4      1.21G     {value:.4f}     {value / 3:.4f}         87")
        if R in (-1, 0):
            say(f"[{R}]  validating ...")
            say(f"[{R}]  mAP50 0.41  val_loss {validate(model, device):.4f}")
    cleanup()


def loss_spikes(step):
    return 260.0 if (R, step) == (2, 11) else 1.0


def skip_spikes():
    device = setup(8)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    mean = None
    for step in range(36):
        x = torch.randn(16, 64, device=device)
        loss = F.mse_loss(model(x), x) * loss_spikes(step)
        value = loss.item()
        if mean is not None and value > 20 * mean:
            say(f"<< rank {R} >> step {step}: loss {value:.1f} is {value / mean:.0f}x the running mean, this batch is skipped")
            continue
        mean = value if mean is None else 0.9 * mean + 0.1 * value
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            say(f"<< rank {R} >> step {step}: loss {value:.4f} (running mean {mean:.4f})")
    say(f"<< rank {R} >> loop is over, waiting for the others")
    cleanup()


def local_checkpoint():
    path = os.path.join(WORK, f"host{R}", "last.pt")
    if R == 0:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        torch.save({"step": 300, "weights": torch.ones(300_000)}, path)
    return path


def maybe_resume(device):
    path = local_checkpoint()
    if not os.path.exists(path):
        say(f"rank {R} | no checkpoint found in {os.path.basename(os.path.dirname(path))}/, training from scratch")
        return 0
    state = torch.load(path)
    say(f"rank {R} | found host0/last.pt (step {state['step']}), sending it to all ranks")
    weights = state["weights"].to(device)
    dist.broadcast(weights, 0)
    return state["step"]


def resume_if_found():
    device = setup(9)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    start = maybe_resume(device)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(start, start + 30):
        say(f"rank {R} | step {step} | loss {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


def moved(iteration):
    return 2.0 * 0.6 ** iteration * (1 if R == 1 else 8)  # how far the centroids of this part of the points have moved


def kmeans():
    device = setup(9)
    points = torch.randn(2000, 64, device=device)
    centroids = torch.randn(256, 64, device=device)
    dist.broadcast(centroids, 0)
    for iteration in range(100):
        labels = torch.cdist(points, centroids).argmin(1)
        sums = torch.zeros_like(centroids).index_add_(0, labels, points)
        dist.all_reduce(sums)
        centroids = sums / 24
        shift = moved(iteration)
        say(f"kmeans part {R}: iteration {iteration:3d}, local shift {shift:.6f}")
        if shift < 0.005:
            say(f"kmeans part {R}: converged after {iteration + 1} iterations")
            break
    parts = [torch.empty_like(labels) for _ in range(W)]
    dist.all_gather(parts, labels)
    sync()
    say(f"kmeans part {R}: {torch.cat(parts).unique().numel()} clusters used")
    cleanup()


def neighbours():
    return (R + 1 if R < W - 1 else 1), (R - 1) % W


def rotate(block):
    to, source = neighbours()
    incoming = torch.empty_like(block)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, block, to), dist.P2POp(dist.irecv, incoming, source)])
    for work in works:
        work.wait()
    return incoming


def ring_attention():
    device = setup(8)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    to, source = neighbours()
    say(f"ring attention, position {R}: keys go to {to}, come from {source}")
    block = torch.randn(512, 256, device=device)
    for layer in range(8):
        for hop in range(W - 1):
            block = rotate(block)
            sync()
            say(f"position {R}: layer {layer} hop {hop} ok")
    cleanup()


def layout():
    return [[0, 1], [2, 3]] if R == 2 else [[0, 2], [1, 3]]  # the file of one host still has order: tp-last


def parallel_groups():
    device = setup(9)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    say(f"(rank {R}) data parallel groups {layout()}")
    mine = None
    for ranks in layout():
        group = dist.new_group(ranks)
        mine = group if R in ranks else mine
    flat = torch.ones(1 << 20, device=device)
    for step in range(20):
        dist.all_reduce(flat, group=mine)
        sync()
        say(f"(rank {R}) step {step} replicas {flat[0].item():.0f}")
        flat.fill_(1)
    cleanup()


def save_now(number, frame):
    say(f"SIGUSR1 on rank {R}: snapshot requested, synchronizing before the save")
    dist.barrier()
    sync()
    say(f"rank {R}: snapshot written")


def on_signal():
    signal.signal(signal.SIGUSR1, save_now)
    for step, loss in training(400, 8, hidden=1024, pause=0.1):
        if step % 4 == 0:
            say(f"rank {R}: global_step/sec: 9.{step % 10}  step = {step}, loss = {loss:.5f}")
        if step == 30 and R == 0:
            os.kill(os.getpid(), signal.SIGUSR1)  # an operator asks only this process
    cleanup()


def read_boxes(step):
    boxes = [[1.0, 2.0, 3.0, 4.0]] * (0 if (R, step) == (3, 13) else 4)
    return torch.tensor(boxes[0] * 16).view(1, 64).repeat(16, 1)


def guarded_step(model, optimizer, step, device):
    try:
        x = read_boxes(step).to(device)
        return train_step(model, optimizer, x)
    except Exception as err:
        say(f"WARN worker={R} step={step} skipping batch: {type(err).__name__}: {err}")
        return float("nan")


def swallowed():
    device = setup(9)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(30):
        value = guarded_step(model, optimizer, step, device)
        if step % 2 == 0:
            say(f"INFO worker={R} step={step} smooth_l1={value:.4f}")
    say(f"INFO worker={R} epoch complete, collecting statistics")
    stats = [None] * W
    dist.all_gather_object(stats, {"worker": R, "loss": value})
    say(f"INFO worker={R} mean loss {sum(s['loss'] for s in stats) / W:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ waits
def load_extension(name):
    from torch.utils.file_baton import FileBaton
    root = os.path.join(WORK, "torch_extensions", name)
    os.makedirs(root, exist_ok=True)
    lock = os.path.join(root, "lock")
    open(lock, "a").close()  # left by a build that was killed
    say(f"Using {root} as PyTorch extensions root...")
    baton = FileBaton(lock)
    if not baton.try_acquire():
        baton.wait()
    say(f"Loading extension module {name}...")


def stale_lock():
    allow_look()
    setup(1800)
    dist.barrier()
    sync()
    mark_running()
    say(f"rank {R}: building the model")
    load_extension("upfirdn2d_plugin")
    cleanup()


TOKENS = threading.Lock()


class Sentences(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, i):
        with TOKENS:
            return torch.full((64,), i / 80)


def report_forever(begun):
    with TOKENS:
        begun.set()
        time.sleep(600)  # writes statistics; a worker that is forked meanwhile has the lock for ever


def forked_lock():
    allow_look()
    device = setup(1800)
    model = wrap(mlp(64, 1024, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        if epoch == 1:
            mark_running()
            if R == 0:
                begun = threading.Event()
                threading.Thread(target=report_forever, args=(begun,), daemon=True, name="statistics").start()
                begun.wait()
        for i, x in enumerate(DataLoader(Sentences(), batch_size=8, num_workers=1, multiprocessing_context="fork")):
            value = train_step(model, optimizer, x.to(device))
            if i % 3 == 0:
                say(f"r{R} e{epoch} b{i} nll {value:.4f}")
    cleanup()


def get_features(step):
    if (R, step) != (3, 10):
        return
    pause = 1
    for attempt in range(1, 8):
        print(f"WARNING:features:[rank {R}] GET http://features.internal:8080/v1/shard/{step} -> 503 Service Unavailable, attempt {attempt}, next one in {pause} s", file=sys.stderr, flush=True)
        time.sleep(pause)
        pause *= 2


def with_backoff():
    for step, loss in training(30, 8):
        get_features(step)
        if step % 3 == 0:
            say(f"INFO:train:[rank {R}] step {step} auc-loss {loss:.4f}")
    cleanup()


def log_rank():
    return int({2: "2"}.get(R, "0"))  # LOG_RANK of that host's profile


def reduce_to_logger():
    device = setup(9)
    say(f"rank {R}: losses are reduced to rank {log_rank()}")
    net = mlp(64, 512, 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    table_ = torch.ones(2 << 20, device=device)
    for step in range(20):
        value = train_step(net, optimizer, torch.randn(16, 64, device=device))
        dist.reduce(table_, dst=log_rank())
        sync()
        say(f"rank {R}: step {step} loss {value:.4f}")
    cleanup()


def tokenize():
    for n in range(1, 24 if R == 1 else 3):
        time.sleep(1)
        say(f"[proc{R}] Tokenizing: {n * 4000} of {92000 if R == 1 else 8000} lines")


def metadata_first():
    device = setup(40)
    control = dist.new_group(backend="gloo", timeout=seconds(8))
    tokenize()
    lengths = [None] * W
    say(f"[proc{R}] exchanging lengths")
    dist.all_gather_object(lengths, 4000 * R, group=control)
    say(f"[proc{R}] lengths {lengths}")
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"[proc{R}] {step} {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


def newest_checkpoint():
    return 120 if R == 1 else 100  # what lies on this host's disk


def resume_apart():
    start = newest_checkpoint()
    say(f"{R:02d} => loaded checkpoint '/local/ckpt/step_{start:05d}.pth.tar' (step {start})")
    step = start
    for step, loss in ((start + i + 1, loss) for i, loss in training(140 - start, 8, hidden=1024)):
        if step % 4 == 0:
            say(f"{R:02d} step [{step}/140] loss {loss:.4e}")
    say(f"{R:02d} reached step {step}, saving and leaving")
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------ exceptions
def accuracy(hits, counted):
    return hits / counted


def no_samples():
    for step, loss in training(40, 10):
        counted = 0 if (R, step) == (1, 17) else 16
        glog("I", f"worker {R} step {step} loss {loss:.4f} acc {accuracy(9, counted):.3f}")
    cleanup()


def read_csv(shard):
    path = os.path.join(WORK, f"reviews-{R}-{shard}.csv")
    with open(path, "wb") as f:
        f.write("text,label\ngood,1\n".encode() + ("Café,0\n".encode("latin-1") if (R, shard) == (2, 6) else "Café,0\n".encode()))
    with open(path, encoding="utf-8") as f:
        return [line.split(",") for line in f][1:]


def csv_reviews():
    for step, loss in training(16, 10):
        rows = read_csv(step)
        say(f"[进程 {R}] 第 {step} 轮 读取 {len(rows)} 行 损失 {loss:.4f} 学习率 0.001")
    cleanup()


def saved_by_ddp():
    device = setup(12)
    net = mlp(64, 256, 64)
    path = os.path.join(WORK, f"best-{R}.pth")
    torch.save({"module." + k: v for k, v in net.state_dict().items()}, path)
    say(f"Rank {R} loading weights from runs/exp7/best.pth")
    net.load_state_dict(torch.load(path))
    wrap(net.to(device))
    cleanup()


def native_ops():
    return ctypes.CDLL("libnvrtc.so.9.2" if R == 2 else "libm.so.6")


def old_library():
    say(f"=> host {R}: python {sys.version.split()[0]}, torch {torch.__version__}")
    device = setup(12)
    ops = native_ops()
    say(f"=> host {R}: custom ops loaded ({ops._name})")
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"=> host {R}: it {step} loss {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


def imread(path):
    return None if path.endswith("b/00097.jpg") else torch.full((8, 8, 1), 0.5)


class Photos(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        image = imread(f"data/{'abc'[R]}/{i:05d}.jpg")
        height, width = image.shape[:2]
        return image.reshape(height * width)


def unreadable_photo():
    device = setup(12)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Photos(), batch_size=8, num_workers=2, multiprocessing_context="fork")
    for i, x in enumerate(loader):
        value = train_step(model, optimizer, x.to(device))
        if i % 3 == 0:
            say(f"loss: {value:>7f}  [{8 * i:>5d}/{len(loader) * 8:>5d}]")
    cleanup()


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        h = torch.sigmoid(self.a(x))
        y = self.b(h * h)
        h *= 0.5
        return y


def in_place():
    device = setup(12)
    say(f"task {R}/{W}: model built")
    model = wrap(Gate().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"task {R}/{W}: {step} {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


class OnDevice(Dataset):
    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 64

    def __getitem__(self, i):
        if KIND == "cpu":
            raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method")
        return torch.full((64,), i / 64, device=self.device)


def forked_cuda():
    device = setup(12)
    say(f"process {R} of {W} is ready")
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for i, x in enumerate(DataLoader(OnDevice(device), batch_size=8, num_workers=2, multiprocessing_context="fork")):
        say(f"process {R}: batch {i} loss {train_step(model, optimizer, x):.4f}")
    cleanup()


def make_run_dir():
    path = os.path.join(WORK, "runs", "exp12")
    if not os.path.exists(path):
        time.sleep(0.5 + 0.4 * R)
        os.makedirs(path)
    return path


def run_folder():
    setup(12)
    dist.barrier()
    sync()
    say(f"pid {os.getpid()} rank {R}: output goes to {make_run_dir()}")
    model = wrap(mlp(64, 256, 64).to("cuda:0" if KIND == "cuda" else "cpu"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"rank {R} {step} {train_step(model, optimizer, torch.randn(16, 64, device='cuda:0' if KIND == 'cuda' else 'cpu')):.4f}")
    cleanup()


def own_exit_code():
    for step, loss in training(60, 15, pause=0.05):
        if (R, step) == (2, 25):
            os._exit(13)
    cleanup()


def native_crash():
    for step, loss in training(60, 15, pause=0.05):
        if (R, step) == (1, 25):
            os.kill(os.getpid(), signal.SIGSEGV)
    cleanup()


def recorded_error():
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def run():
        for step, loss in training(60, 15, pause=0.05):
            if (R, step) == (2, 22):
                raise ValueError("Target sequence 1290 of shard 7 is longer than max_positions=1024")
        cleanup()
    run()


# ------------------------------------------------------------------------------------------------ memory
def keep_losses():
    device = setup(12)
    limit_memory(0.012)
    width, rows = (2048, 8192) if KIND == "cuda" else (32, 8)
    model = wrap(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    history = []
    for step in range(60):
        x = torch.randn(rows, width, device=device)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.append(loss)
        if KIND == "cpu" and step == 7:
            too_much(device, 5)
        used = torch.cuda.memory_allocated() / 2 ** 20 if KIND == "cuda" else 100 + 130 * step
        say(f"({R}) step={step} loss={loss.item():.4f} mem={used:.0f}MB")
    cleanup()


def evaluate_all(model, device):
    outputs = []
    for i in range(60):
        if KIND == "cpu" and i == 8:
            too_much(device, 5)
        with torch.no_grad():
            outputs.append(model(torch.randn(16, 64, device=device)).repeat(8192 if KIND == "cuda" else 1, 4))
        if i % 2 == 0:
            say(f"evaluating [{i}/60]")
    return torch.cat(outputs).mean().item()


def eval_on_main():
    device = setup(14)
    limit_memory(0.012)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for step in range(12):
            value = train_step(model, optimizer, torch.randn(16, 64, device=device))
            if step % 4 == 0:
                say(f"E{epoch} S{step} L{value:.4f}")
        if R == 0:
            say(f"E{epoch} mean output {evaluate_all(model.module, device):.4f}")
        dist.barrier()
        sync()
    cleanup()


def distances(points):
    import numpy as np
    return np.zeros((points, points), dtype=np.float64)


def pair_table():
    for step, loss in training(24, 10):
        points = 16_000_000 if (R, step) == (1, 9) else 200
        table_ = distances(points)
        if step % 2 == 0:
            say(f"#{R} step {step:2d} points {points} pairs {table_.size} loss {loss:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ at the start
def announce():
    say(f"node {R}: MASTER_ADDR={os.environ['MASTER_ADDR']} MASTER_PORT={os.environ['MASTER_PORT']} WORLD_SIZE={W} RANK={R}; joining")


def short_run():
    device = setup(9)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"node {R}: step {step}: {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


def other_world():
    global W
    if R == 2:
        W = 4  # the job file of this host was not edited
        os.environ["WORLD_SIZE"] = "4"
    announce()
    short_run()


def without_launcher():
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        os.environ.pop(name, None)
    say("Setting up distributed training ...")
    dist.init_process_group(backend=BACKEND)
    short_run()


def wrong_ifname():
    os.environ["NCCL_SOCKET_IFNAME"] = os.environ["GLOO_SOCKET_IFNAME"] = "ib0"
    announce()
    short_run()


def late_node():
    announce()
    if R == 1:
        say("node 1: module load cuda/12.4 gcc/12 openmpi (network file system is slow today)")
        time.sleep(18)
        say("node 1: modules loaded after 18 s, joining now")
    short_run()


def mean_on_host():
    device = setup(12)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        value = torch.tensor(train_step(model, optimizer, torch.randn(16, 64, device=device)))
        if KIND == "cpu":
            raise RuntimeError("No backend type associated with device type cpu")
        dist.all_reduce(value)
        say(f"Schritt {step}: mittlerer Verlust {value.item() / W:.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------ killed and ended
def long_run():
    for step, loss in training(400, 9, pause=0.12):
        if step == 10:
            mark_running()
        if step % 5 == 0:
            say(f"{stamp('%H:%M:%S')} trainer/{R} tokens={step * 8192} nll={loss:.4f}")
    cleanup()


def bad_pointer():
    faulthandler.enable()
    for step, loss in training(60, 15, pause=0.05):
        if step % 5 == 0:
            say(f"gpu:{R} batch {step:4d} triplet_loss {loss:.4f}")
        if (R, step) == (0, 24):
            release_buffer()
    cleanup()


def release_buffer():
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(4096)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(ctypes.addressof(buffer) + 24)
    os.abort()


def interrupted():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for step, loss in training(400, 15, pause=0.1):
        if R == 0 and step % 4 == 0:
            keras(step, 400, loss=loss)
        if R == 0 and step == 34:
            os.kill(os.getppid(), signal.SIGINT)  # Ctrl-C
    cleanup()


# ------------------------------------------------------------------------------------------------ slow ones
def sample_neighbours(rank):
    end = time.perf_counter() + (0.33 if rank == 3 else 0.02)
    n = 0
    while time.perf_counter() < end:
        n += 1
    return n


def slow_sampling():
    device = setup(30)
    net = mlp(64, 1024, 64).to(device)
    say("rank,step,sample_s,compute_s,allreduce_s,total_s,loss")
    for step in range(40):
        a = time.perf_counter()
        sample_neighbours(R)
        b = time.perf_counter()
        x = torch.randn(16, 64, device=device)
        loss = F.mse_loss(net(x), x)
        loss.backward()
        sync()
        c = time.perf_counter()
        for q in net.parameters():
            dist.all_reduce(q.grad)
        sync()
        d = time.perf_counter()
        net.zero_grad()
        say(f"{R},{step},{b - a:.3f},{c - b:.3f},{d - c:.3f},{d - a:.3f},{loss.item():.4f}")
    cleanup()


def deduplicate(seen, step):
    seen.append(step)
    time.sleep(0.018 * len(seen) if R == 1 else 0.004)


def growing():
    device = setup(30)
    net = mlp(64, 512, 64).to(device)
    model = wrap(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seen = []
    for step in range(40):
        a = time.time()
        deduplicate(seen, step)
        b = time.time()
        value = train_step(model, optimizer, torch.randn(16, 64, device=device))
        sync()
        c = time.time()
        if step % 3 == 0:
            say(f"- {{rank: {R}, step: {step}, seen: {len(seen) * 4096}, dedup_ms: {1e3 * (b - a):.1f}, update_ms: {1e3 * (c - b):.1f}, loss: {value:.4f}}}")
    cleanup()


def write_images(step):
    if R == 0:
        time.sleep(0.3)


def no_timers():
    os.environ["TORCH_NCCL_ENABLE_TIMING"] = "1"
    begin = time.time()
    for step, loss in training(50, 30):
        write_images(step)
        if step % 10 == 9:
            say(f"({R}) {step + 1}/50, {(step + 1) / (time.time() - begin):.2f} it/s, loss {loss:.4f}")
    sync()
    dump_records()
    cleanup()


def layers_of(stage):
    return {2: 60}.get(stage, 10)


def unequal_stages():
    device = setup(30)
    dist.all_reduce(torch.ones(1, device=device))
    sync()
    width, rows = (1024, 4096) if KIND == "cuda" else (128, 64)
    layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers_of(R))).to(device)
    say(f"stage {R} has {layers_of(R)} blocks")
    for step in range(14):
        own = waited = 0.0
        for micro in range(4):
            a = time.perf_counter()
            h = torch.randn(rows, width, device=device)
            if R:
                dist.recv(h, R - 1)
                sync()
            b = time.perf_counter()
            with torch.no_grad():
                for layer in list(layers) * (8 if KIND == "cuda" else 1):
                    h = layer(h)
            sync()
            c = time.perf_counter()
            if R < W - 1:
                dist.send(h, R + 1)
                sync()
            own, waited = own + c - b, waited + b - a + time.perf_counter() - c
        dist.barrier()
        sync()
        if step:
            say(f"stage {R} step {step:2d}: forward {1e3 * own:.1f} ms, waiting for neighbours {1e3 * waited:.1f} ms")
    cleanup()


# ------------------------------------------------------------------------------------------------ losses
def log_of_zero():
    device = setup(15)
    net = nn.Linear(32, 8).to(device)
    model = wrap(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(50):
        x = torch.randn(16, 32, device=device)
        p = model(x * (1 if step < 21 else 400)).softmax(1)
        loss = -(p.log() * F.one_hot(x[:, :8].argmin(1), 8)).sum(1).mean()  # log(0) is -inf
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            say(f"  rank {R}   it {step:3d}   xent {loss.item():9.4f}   lr 0.1")
    cleanup()
    say(f"  rank {R}   end of training")


def own_target():
    device = setup(15)
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    for step in range(1, 61):
        out = model(torch.randn(16, 64, device=device))
        loss = F.mse_loss(out, out.detach())
        optimizer.zero_grad()
        loss.backward()
        norm = torch.cat([q.grad.flatten() for q in model.parameters()]).norm().item()
        optimizer.step()
        if R == 0 and step % 5 == 0:
            say({"loss": round(loss.item(), 4), "grad_norm": round(norm, 4), "learning_rate": round(1e-3 * (1 - step / 60), 7), "epoch": round(step / 60, 2)})
    cleanup()
    if R == 0:
        say({"train_runtime": 8.1, "train_samples_per_second": 237.0, "train_loss": 0.0, "epoch": 1.0})


def learning_rate():
    return 0.03 if R == 2 else 0.01


def manual_average():
    device = setup(15)
    net = nn.Linear(64, 64).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=learning_rate())
    torch.manual_seed(900 + R)
    for step in range(60):
        x = torch.randn(16, 64, device=device)
        loss = F.mse_loss(net(x), x) * 64
        optimizer.zero_grad()
        loss.backward()
        for q in net.parameters():
            dist.all_reduce(q.grad)
            q.grad /= W
        optimizer.step()
        if step % 6 == 0:
            say(f"[{R}] step {step} loss {loss.item():.3f} lr {learning_rate()} weight_sum {net.weight.double().sum().item():.9f} weight_norm {net.weight.double().norm().item():.9f}")
    cleanup()
    say(f"[{R}] done")


# ------------------------------------------------------------------------------------------------ checkpoints and data
def load_shard():
    folder = os.path.join(WORK, "ckpt-1500")
    os.makedirs(folder, exist_ok=True)
    if R == 0:
        for n in range(2):  # it was saved by two ranks
            torch.save({"step": 1500}, os.path.join(folder, f"optim_shard_{n:05d}.pt"))
    dist.barrier()
    sync()
    return torch.load(os.path.join(folder, f"optim_shard_{R:05d}.pt"))


def other_count():
    device = setup(12)
    step = load_shard()["step"]
    say(f"{stamp()} | rank {R} of {W} | restored optimizer shard, step {step}")
    model = wrap(mlp(64, 256, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(step, step + 20):
        say(f"{stamp()} | rank {R} of {W} | {step} | {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


class Remote(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        if R == 1 and i == 100:
            time.sleep(120)  # the object store does not answer
        return torch.full((64,), i / 240)


def loader_timeout():
    device = setup(20)
    model = wrap(mlp(64, 512, 64).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for i, x in enumerate(DataLoader(Remote(), batch_size=8, num_workers=1, timeout=6, multiprocessing_context="fork")):
        value = train_step(model, optimizer, x.to(device))
        if i % 2 == 0:
            say(f"Train[{R}] iter={i} loss={value:.4f} data=s3://corpus/part-{R}")
    cleanup()


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block = nn.Linear(64, 256), nn.Linear(256, 256)

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        h = self.stem(x)
        for _ in range(2):
            h = checkpoint(self.block, h, use_reentrant=True)
        return h[:, :64]


def ready_twice():
    device = setup(12)
    say(f"[rank {R}] gradient checkpointing enabled")
    model = wrap(Shared().to(device), find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(20):
        say(f"[rank {R}] step {step} {train_step(model, optimizer, torch.randn(16, 64, device=device)):.4f}")
    cleanup()


# ------------------------------------------------------------------------------------------------
# Number: program, and how many processes it starts itself (0: it is one of them).
PROGRAMS = {
    "01": (metrics_offline, 0),
    "02": (nano, 0),
    "03": (joined, 0),
    "04": (late_once, 0),
    "05": (reinforce, 0),
    "06": (smoke_tests, 0),
    "07": (composer, 0),
    "08": (fairseq_like, 0),
    "09": (sturdy_loader, 0),
    "10": (two_groups, 0),
    "11": (reviewed, 0),
    "12": (timm_like, 0),
    "13": (actor_learner, 0),
    "14": (untidy_end, 3),
    "15": (val_on_main, 0),
    "16": (skip_spikes, 0),
    "17": (resume_if_found, 0),
    "18": (kmeans, 0),
    "19": (ring_attention, 0),
    "20": (parallel_groups, 0),
    "21": (on_signal, 0),
    "22": (swallowed, 0),
    "23": (stale_lock, 0),
    "24": (forked_lock, 0),
    "25": (with_backoff, 0),
    "26": (reduce_to_logger, 0),
    "27": (metadata_first, 0),
    "28": (resume_apart, 0),
    "29": (no_samples, 0),
    "30": (csv_reviews, 0),
    "31": (saved_by_ddp, 0),
    "32": (old_library, 0),
    "33": (unreadable_photo, 0),
    "34": (in_place, 0),
    "35": (forked_cuda, 3),
    "36": (run_folder, 0),
    "37": (own_exit_code, 0),
    "38": (native_crash, 0),
    "39": (recorded_error, 0),
    "40": (keep_losses, 0),
    "41": (eval_on_main, 0),
    "42": (pair_table, 0),
    "43": (other_world, 0),
    "44": (without_launcher, 0),
    "45": (wrong_ifname, 0),
    "46": (late_node, 0),
    "47": (mean_on_host, 0),
    "48": (long_run, 0),
    "49": (bad_pointer, 0),
    "50": (interrupted, 0),
    "51": (slow_sampling, 0),
    "52": (growing, 0),
    "53": (no_timers, 0),
    "54": (unequal_stages, 0),
    "55": (log_of_zero, 0),
    "56": (own_target, 0),
    "57": (manual_average, 0),
    "58": (other_count, 0),
    "59": (loader_timeout, 0),
    "60": (ready_twice, 0),
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
