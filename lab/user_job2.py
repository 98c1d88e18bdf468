#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training programs of ten styles, each with one mistake that users make: user_job2.py STYLE_MISTAKE [--guilty R] [--steps N].

STYLE: gpt (DDP by hand with accumulation, GradScaler, checkpoints), fsdp (fully_shard), acc (accelerate), pl (Lightning),
tp (tensor x data parallel), pipe (1F1B by hand), moe (all_to_all), gan (roles and two groups), obj (object collectives and
evaluation), hf (transformers' Trainer). Started by torchrun, with RANK and so on set, or alone with LAB_SPAWN=RANKS.
LAB_BACKEND=gloo LAB_DEVICE=cpu runs what needs no newer PyTorch without a GPU. Ranks that share one GPU each believe to
have a host of their own. LAB_MARK names a file that is made when the mistake happens (for whoever takes stacks then)."""
import argparse
import contextlib
import datetime
import faulthandler
import json
import logging
import os
import pickle
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("mistake")
parser.add_argument("--guilty", type=int, default=2)
parser.add_argument("--steps", type=int, default=24)
parser.add_argument("--timeout", type=float, default=12)
parser.add_argument("--at", type=int, default=6)
args = parser.parse_args()
style, _, mistake = args.mistake.partition("_")
BACKEND, DEVICE = os.environ.get("LAB_BACKEND", "nccl"), os.environ.get("LAB_DEVICE", "cuda")
SCRATCH = os.environ.get("LAB_SCRATCH", "/tmp/lab-scratch-" + os.environ.get("LAB_JOB", "0"))
os.makedirs(SCRATCH, exist_ok=True)
rank = world = 0
me = False
log = logging.getLogger("train")
if "LAB_STACKS" in os.environ and "LAB_SPAWN" not in os.environ:
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)


def import_torch():
    global torch, dist, nn, F, DDP, DataLoader, Dataset, IterableDataset, DistributedSampler
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset
    if DEVICE == "cpu":
        torch.set_num_threads(1)


def planted():
    if "LAB_MARK" in os.environ:
        open(os.environ["LAB_MARK"], "a").close()


def at(step):
    return step == args.at


def mine(name, step=None):
    """This rank makes this mistake now."""
    if mistake == name and me and (step is None or at(step)):
        planted()
        return True
    return False


def every(name, step=None):
    if mistake == name and (step is None or at(step)):
        planted()
        return True
    return False


def setup(backend=None, **options):
    if DEVICE == "cuda":
        ordinal = int(os.environ["LOCAL_RANK"]) if mistake == "ordinal" else 0
        torch.cuda.set_device(ordinal)
    dist.init_process_group(backend or BACKEND, timeout=datetime.timedelta(seconds=args.timeout), **options)
    torch.manual_seed(1234)
    return torch.device("cuda", 0) if DEVICE == "cuda" else torch.device("cpu")


def wrap(model, **options):
    return DDP(model, device_ids=[0] if DEVICE == "cuda" else None, **options)


def say(text, *values):
    if rank == 0:
        log.info(text, *values)


# ---------------------------------------------------------------- things that go wrong
def tokenize_corpus():
    say("tokenizing corpus.jsonl, this may take a while")
    while True:
        sum(hash(str(i)) for i in range(100000))
        time.sleep(0.05)


def wait_for_better_batch(batch):
    while batch.float().mean() < 1e9:
        batch = batch.roll(1, 0)


class MetricsWriter:
    """Two locks, taken in one order by the writer and in the other by the trainer."""

    def __init__(self):
        self.buffer_lock, self.file_lock = threading.Lock(), threading.Lock()

    def flush_loop(self):
        with self.file_lock:
            time.sleep(0.5)
            with self.buffer_lock:
                pass

    def add(self):
        threading.Thread(target=self.flush_loop, daemon=True).start()
        time.sleep(0.2)
        with self.buffer_lock:
            time.sleep(0.5)
            with self.file_lock:
                pass


def acquire_cache_lock():
    import fcntl
    path = os.path.join(SCRATCH, "cache.lock")
    holder = subprocess.Popen([sys.executable, "-c", f"import fcntl,time;f=open({path!r},'w');fcntl.flock(f,fcntl.LOCK_EX);time.sleep(70)"])
    time.sleep(1.0)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    holder.wait()


def compress_logs():
    child = subprocess.Popen([sys.executable, "-c", "print('x' * 10000000)"], stdout=subprocess.PIPE)
    child.wait()
    return child.stdout.read()


def fetch_learning_rate():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    client = socket.create_connection(server.getsockname())
    client.sendall(b"GET /lr\n")
    return float(client.recv(64))


def read_index(path):
    import mmap
    with open(path, "wb") as file:
        file.write(b"\0" * 65536)
    with open(path, "r+b") as file:
        view = mmap.mmap(file.fileno(), 65536)
        os.truncate(path, 0)
        return sum(view[i] for i in range(0, 65536, 4096))


def open_shards(folder, count):
    os.makedirs(folder, exist_ok=True)
    return [open(os.path.join(folder, f"shard-{i:05d}.bin"), "wb") for i in range(count)]


def full_disk_path(name):
    folder = os.environ.get("LAB_SMALL_DISK", "")
    if folder and os.path.ismount(folder):
        return os.path.join(folder, os.environ.get("LAB_JOB", "0") + name)
    return "/dev/full"


def write_state(path, state):
    with open(path, "wb") as file:
        pickle.dump(state, file)
        file.flush()
        os.fsync(file.fileno())


def long_sequence_eval(model, device):
    if DEVICE == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.02)
    ids = torch.zeros(4096, 64, dtype=torch.long, device=device)
    with torch.no_grad():
        return [model(ids).float() for _ in range(40)]


def run_fused_scale(x):
    """A kernel of one's own with an index that is wrong for this size."""
    source = 'extern "C" __global__ void fused_scale(float* x, int n) { long i = (long)(blockIdx.x * blockDim.x + threadIdx.x) << 34; x[i + n] *= 2.0f; }'
    try:
        kernel = torch.cuda._compile_kernel(source, "fused_scale")
    except Exception:
        return F.embedding(torch.full((8,), 1 << 30, device=x.device), x.view(-1, 1))
    kernel(grid=(8, 1, 1), block=(256, 1, 1), args=[x, x.numel()])


def call_native(address):
    import ctypes
    return ctypes.string_at(address)


def check_finite(loss, step):
    if not torch.isfinite(loss):
        raise FloatingPointError(f"loss is {loss.item()} at step {step}, aborting the run")


# ---------------------------------------------------------------- (a) GPT by hand
def make_gpt(vocab=256, width=128, depth=2):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, mask):
            q, k, v = (part.unflatten(-1, (4, width // 4)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
            scores = (q @ k.transpose(-1, -2) / (width // 4) ** 0.5).masked_fill(mask, -1e4)
            x = x + self.project((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(64, width)
            self.blocks = nn.ModuleList(Block() for _ in range(depth))
            self.head = nn.Linear(width, vocab)
            if mistake == "nparams" and me:
                self.adapter = nn.Sequential(nn.Linear(width, 8, bias=False), nn.Linear(8, width, bias=False))
            self.layer_drop = 0.0

        def forward(self, ids):
            length = ids.shape[1]
            mask = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1)
            x = self.tokens(ids) + self.positions(torch.arange(length, device=ids.device))
            for block in self.blocks:
                if random.random() < self.layer_drop:
                    continue
                x = block(x, mask)
            if hasattr(self, "adapter"):
                x = x + self.adapter(x)
            return self.head(x)

    return GPT()


def token_data():
    class Tokens(IterableDataset):
        """The lines of this rank's shards."""

        def __iter__(self):
            count = args.steps * 2 * 4
            if mistake == "uneven" and me:
                planted()
                count = (args.at * 2 + 1) * 4
            if mistake == "healthy_join":
                count -= 8 * rank
            generator = torch.Generator().manual_seed(rank)
            for _ in range(count):
                yield torch.randint(0, 256, (33,), generator=generator)

    class Big(Dataset):
        def __len__(self):
            return 4096

        def __getitem__(self, index):
            return torch.zeros(1 << 20, dtype=torch.uint8), torch.randint(0, 256, (33,))

    if mistake == "shm":
        return DataLoader(Big(), batch_size=64, num_workers=4)
    return DataLoader(Tokens(), batch_size=4, num_workers=2 if mistake in ("healthy_workers",) else 0)


def prepare_cache():
    """Rank 0 makes the cache, the others read it when it is there."""
    path = os.path.join(SCRATCH, "vocab.json")
    if rank == 0:
        text = json.dumps({f"token{i}": i for i in range(5000)})
        with open(path, "w") as file:
            file.write(text[: len(text) // 2])
            file.flush()
            time.sleep(4)
            file.write(text[len(text) // 2:])
        open(path + ".done", "w").close()
        return json.loads(text)
    wanted = path if me else path + ".done"
    while not os.path.exists(wanted):
        time.sleep(0.05)
    time.sleep(0.3)
    with open(path) as file:
        return json.load(file)


def load_checkpoint(model, device):
    path = os.path.join(SCRATCH, f"node{rank}-last.pt")
    state = {"model": model.state_dict(), "step": 40}
    if mistake == "ckpt_missing":
        state["model"].pop("head.bias")
        state["model"]["lm_head.bias"] = torch.zeros(256)
    if mistake == "ckpt_shape" and me:
        state["model"]["tokens.weight"] = torch.zeros(264, 128)
    torch.save(state, path)
    if mistake == "ckpt_corrupt" and me:
        os.truncate(path, os.path.getsize(path) // 2)
    dist.barrier()
    say("resuming from last.pt")
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    return state["step"]


def compare_versions():
    versions = [None] * world
    mine_is = {"torch": torch.__version__.split("+")[0] if not me else "2.9.1", "tokenizer": "0.21.2"}
    dist.all_gather_object(versions, mine_is)
    for other, version in enumerate(versions):
        if version != versions[0]:
            raise RuntimeError(f"version mismatch: rank 0 has {versions[0]}, rank {other} has {version}")


def check_in_sync(model):
    total = sum(p.detach().double().sum() for p in model.parameters()).reshape(1)
    sums = [torch.zeros_like(total) for _ in range(world)]
    dist.all_gather(sums, total)
    digests = [f"{s.item():.6f}" for s in sums]
    assert len(set(digests)) == 1, f"parameters differ between ranks: {digests}"


def evaluate(model, device, step):
    if rank == 0 and mistake == "healthy_longeval" and at(step):
        say("evaluating on the whole validation set")
        time.sleep(8)
    if rank == 0 and mistake == "sloweval" and at(step):
        planted()
        say("evaluating on the whole validation set")
        time.sleep(args.timeout * 1.7)
    if mine("oom_eval", step):
        long_sequence_eval(model.module, device)
    if mine("barrierforgot", step):
        return
    dist.barrier()


def save(model, step):
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "step": step}, os.path.join(SCRATCH, "last.pt"))
        say("saved checkpoint at step %d", step)
    dist.barrier()


def style_gpt():
    if mine("import"):
        import flash_attn_2_cuda  # noqa: F401
    if mistake == "port" and me:
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    if mistake == "address":
        os.environ["MASTER_ADDR"] = "gpu-node-01.cluster.invalid"
    if mistake == "world":
        os.environ["WORLD_SIZE"] = str(world + 4)
    device = setup()
    if mistake == "cacherace":
        dist.barrier()
        prepare_cache()
    if mistake == "prepare":
        if rank == 0:
            planted()
            tokenize_corpus()
        dist.barrier()
    if mistake == "version":
        compare_versions()
    stop = threading.Event()
    if mistake == "preempt":
        signal.signal(signal.SIGUSR1, lambda *_: (log.warning("rank %d: SIGUSR1, will save before the time limit", rank), stop.set()))
    gpt = make_gpt().to(device)
    start = load_checkpoint(gpt, device) if mistake.startswith("ckpt_") or mistake == "healthy_resume" else 0
    model = wrap(gpt)
    if mistake == "hash" and me:
        nn.init.normal_(gpt.head.weight)
    if mistake == "seedflow":
        random.seed(rank if me else 0)
        gpt.layer_drop = 0.15 if me else 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scaler = torch.amp.GradScaler("cuda") if DEVICE == "cuda" else torch.cuda.amp.GradScaler(enabled=False)
    if mistake == "healthy_join":
        from torch.distributed.algorithms.join import Join
        with Join([model]):
            for number, batch in enumerate(token_data()):
                batch = batch.to(device)
                F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()).backward()
                optimizer.step()
                optimizer.zero_grad()
                say("batch %d", number)
        log.info("rank %d has no more batches", rank)
        dist.barrier()
        dist.destroy_process_group()
        return
    best = 1e9
    for micro, batch in enumerate(token_data()):
        step, last = divmod(micro, 2)
        if step >= args.steps:
            break
        batch = (batch[1] if isinstance(batch, (list, tuple)) else batch).to(device)
        inputs, targets = batch[:, :-1], batch[:, 1:]
        if last:
            gpt_mistakes(step, model, device, inputs)
            if mine("label", step):
                targets = targets + 256
        sync = model.no_sync() if not last else contextlib.nullcontext()
        with sync:
            with torch.autocast(DEVICE, dtype=torch.bfloat16 if DEVICE == "cpu" else torch.float16):
                loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            if mistake == "healthy_nanskip" and step in (4, 5) and rank == 1:
                log.warning("rank 1: loss is nan in micro batch %d", micro)
                loss = loss * float("inf")
            if mistake == "nan_all" and at(step):
                planted()
                loss = loss * float("nan")
            if mistake == "skipnan" and me and at(step) and last:
                planted()
                log.warning("rank %d: loss is not finite, skipping batch", rank)
                continue
            scaler.scale(loss / 2).backward()
        if mistake == "nan_all":
            check_finite(loss, step)
        if not last:
            continue
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if mistake == "explode" and at(step):
            norm = norm * 1e9
            log.error("gradient norm %.3g at step %d is above 1000, stopping", norm, step)
            sys.exit(1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        value = loss.detach().float().clone()
        if mistake == "dtype":
            stats = torch.zeros(1 << 16, device=device, dtype=torch.float16 if mine("dtype", step) else torch.float32)
            out = torch.zeros(world << 16, device=device, dtype=stats.dtype)
            dist.all_gather_into_tensor(out, stats)
        elif mistake != "seedflow":
            dist.all_reduce(value)
        say("step %d loss %.4f scale %s", start + step, value.item() / world, scaler.get_scale())
        if mistake == "earlystop" and step > 3:
            best = min(best, loss.item())
            if me and at(step):
                planted()
                log.info("rank %d: validation loss did not improve, stopping early", rank)
                break
        if step % 6 == 0 and step:
            evaluate(model, device, step)
            save(model, step)
        if mistake == "hash" and at(step):
            check_in_sync(model)
        if stop.is_set():
            save(model, step)
            stop.clear()
        time.sleep(0.4 if mistake in ("preempt", "ctrlc", "healthy_cancel") else 0.05)
    if mistake == "uneven" or mistake == "earlystop":
        total = torch.zeros(1, device=device)
        dist.all_reduce(total)
    dist.barrier()
    say("training finished")
    if mistake == "healthy_cancel":
        say("keeping the last model in memory for inspection, press Ctrl-C to leave")
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            say("bye")
    if mistake != "healthy_nodestroy":
        dist.destroy_process_group()


def gpt_mistakes(step, model, device, inputs):
    if mistake == "healthy_handled" and at(step):
        try:
            torch.empty(1 << 46, dtype=torch.uint8, device=device)
        except RuntimeError:
            log.exception("rank %d: batch size 64 does not fit, using 32", rank)
    if mistake == "healthy_warnings" and at(step):
        import warnings
        warnings.warn("lr_scheduler.step() called before optimizer.step()")
        log.error("rank %d: could not reach the metrics server (Connection refused), metrics are kept in a file", rank)
        time.sleep(5)
    if mistake == "elastic_ok" and mine("elastic_ok", step) and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        raise ConnectionResetError("dataset server closed the connection")
    if mine("elastic_twice", step):
        raise ConnectionResetError("dataset server closed the connection")
    if every("killall", step) and rank == 0:
        parent = os.getppid()
        for pid in children(parent) + [parent]:
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    if mine("sigterm", step):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    if mine("bus", step):
        read_index(os.path.join(SCRATCH, "tokens.idx"))
    if mine("exit0", step):
        log.info("rank %d: no files left for this rank, leaving", rank)
        sys.exit(0)
    if mine("whileloop", step):
        wait_for_better_batch(inputs.cpu())
    if mine("locks", step):
        MetricsWriter().add()
    if mine("fcntl", step):
        acquire_cache_lock()
    if mine("pipe", step):
        compress_logs()
    if mine("socket", step):
        fetch_learning_rate()
    if mine("noasync", step):
        acquire_cache_lock()
    if every("ulimit", step):
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
        open_shards(os.path.join(SCRATCH, f"shards{rank}"), 2000)
    if mine("illegal", step):
        run_fused_scale(torch.ones(1024, device=device))
    if mine("cputensor", step):
        dist.all_reduce(torch.tensor([float(step)]))
    elif mistake == "cputensor" and at(step):
        dist.all_reduce(torch.tensor([float(step)], device=device))
    if mine("disk", step):
        write_state(full_disk_path("optimizer.pkl"), {"exp_avg": bytes(64 << 20)})


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[1] == str(pid):
                        found.append(int(name))
            except OSError:
                pass
    return found


# ---------------------------------------------------------------- (b) FSDP2
def style_fsdp():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    device = setup(device_id=torch.device("cuda", 0))
    model = make_gpt(depth=3 if mistake == "numel" and me else 2).to(device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(args.steps):
        ids = torch.randint(0, 256, (4, 33), device=device)
        if mine("abort", step):
            log.critical("rank %d: internal consistency check failed", rank)
            os.abort()
        if mine("extraeval", step):
            model.eval()
            with torch.no_grad():
                print("sample:", model(ids[:, :-1]).argmax(-1)[0, :4].tolist(), flush=True)
            model.train()
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if mistake == "statealone" and at(step) and rank == 0:
            planted()
            say("saving full model")
            full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
            torch.save(full, os.path.join(SCRATCH, "full.pt"))
        if step % 8 == 7 or mistake == "disk" and at(step):
            say("checkpoint at step %d", step)
            if mistake == "disk" and at(step):
                write_state(full_disk_path(f"shard{rank}.pkl"), {"shard": bytes(32 << 20)})
            dcp.save({"model": model.state_dict()}, checkpoint_id=os.path.join(SCRATCH, f"dcp{step}"))
        if mistake == "healthy_dcp" and step == 12:
            state = {"model": model.state_dict()}
            dcp.load(state, checkpoint_id=os.path.join(SCRATCH, "dcp7"))
            say("rolled back to step 7")
        if rank == 0:
            log.info("step %d loss %.4f", step, loss.item())
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (c) accelerate
def style_acc():
    from accelerate import Accelerator, InitProcessGroupKwargs
    accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=datetime.timedelta(seconds=args.timeout))],
                              gradient_accumulation_steps=2)
    torch.manual_seed(7)
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)]
    if mistake == "batchnorm":
        layers.insert(1, nn.BatchNorm1d(256))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(4 * world * args.steps, 64), torch.randint(0, 10, (4 * world * args.steps,)))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4, shuffle=True))
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            if mine("uneven", step):
                accelerator.print("end of the data")
                break
            if mine("batchnorm", step):
                x, y = x[:1], y[:1]
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if mistake == "gather" and at(step) and accelerator.is_main_process:
                planted()
                accelerator.print("loss over all processes:", accelerator.gather(loss.detach().repeat(64)).mean().item())
            if accelerator.process_index == 0 and step % 4 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            time.sleep(0.05)
        predictions = accelerator.gather_for_metrics(torch.ones(8, device=accelerator.device))
        accelerator.wait_for_everyone()
        accelerator.save_state(os.path.join(SCRATCH, f"epoch{epoch}"))
        accelerator.print("epoch", epoch, "accuracy", predictions.mean().item())
    accelerator.end_training()


# ---------------------------------------------------------------- (d) Lightning
def style_pl():
    import pytorch_lightning as pl
    from pytorch_lightning.strategies import DDPStrategy

    class Rows(Dataset):
        def __len__(self):
            return 4 * world * args.steps

        def __getitem__(self, index):
            if mistake == "worker" and me and index > 4 * world * args.at:
                raise UnicodeDecodeError("utf-8", b"\xff\xfe", 0, 1, f"invalid start byte in row {index}")
            return torch.randn(64), index % 10

    class Classifier(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))

        def training_step(self, batch, batch_idx):
            time.sleep(0.4 if mistake == "preempt" else 0.05)
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.log("train_loss", loss, prog_bar=True)
            if mine("shouldstop", batch_idx):
                self.trainer.should_stop = True
            if self.global_rank == 0 and batch_idx % 4 == 0:
                print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}", flush=True)
            return loss

        def validation_step(self, batch, batch_idx):
            self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]), sync_dist=True)
            if mistake == "logmain" and self.global_rank == 0:
                planted()
                self.log("val_samples", float(len(batch[0])), sync_dist=True, on_epoch=True)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class SampleLogger(pl.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            if mine("callback", batch_idx):
                self.log_image(trainer)

        def log_image(self, trainer):
            trainer.logger.experiment.add_image("sample", torch.zeros(3, 8, 8), trainer.global_step)

    workers = 2 if mistake in ("worker", "healthy") else 0
    train, valid = (DataLoader(Rows(), batch_size=4, num_workers=workers) for _ in range(2))
    if mistake == "worker":
        valid = DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 64), torch.zeros(32, dtype=torch.long)), batch_size=4)
    strategy = DDPStrategy(timeout=datetime.timedelta(seconds=args.timeout))
    trainer = pl.Trainer(accelerator="gpu", devices=1, num_nodes=world, strategy=strategy, max_epochs=2, logger=False,
                         limit_val_batches=4, enable_progress_bar=False, callbacks=[SampleLogger()], log_every_n_steps=4,
                         default_root_dir=SCRATCH, enable_checkpointing=mistake == "healthy")
    trainer.fit(Classifier(), train, valid)
    print(f"rank {trainer.global_rank}: fit is done", flush=True)


# ---------------------------------------------------------------- (e) tensor x data parallel
def style_tp():
    if mistake in ("hook", "healthy"):
        return tensor_parallel_dtensor()
    device = setup()
    tp_size = 1 if mistake == "meshdiff" and me else 2
    tp_group = dp_group = None
    for start in range(0, world, tp_size):
        ranks = list(range(start, start + tp_size))
        group = dist.new_group(ranks)
        tp_group = group if rank in ranks else tp_group
    for start in range(tp_size):
        ranks = list(range(start, world, tp_size))
        group = dist.new_group(ranks)
        dp_group = group if rank in ranks else dp_group
    weight = torch.randn(256, 256 // tp_size, device=device, requires_grad=True)
    for step in range(args.steps):
        out = torch.randn(16, 256, device=device) @ weight
        partial = out.sum(1).detach().clone()
        dist.all_reduce(partial, group=tp_group)
        (out.square().mean() / 100).backward()
        if mistake == "branch" and at(step) and rank % 2 == 0:
            planted()
            norm = weight.grad.square().sum().reshape(1)
            dist.all_reduce(norm, group=tp_group)
            log.info("rank %d: gradient norm %.3f", rank, norm.item())
        if every("noncontiguous", step):
            columns = weight.grad.t()[::2, ::2]
            dist.broadcast(columns, src=0)
        dist.all_reduce(weight.grad, group=dp_group)
        with torch.no_grad():
            weight -= 0.001 * weight.grad
            weight.grad = None
        if mine("exitmessage", step):
            raise SystemExit("rank left the job: configuration asks for 6 steps")
        if rank == 0:
            log.info("step %d sum %.4f", step, partial.sum().item())
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


def tensor_parallel_dtensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    device = setup(device_id=torch.device("cuda", 0))
    mesh = init_device_mesh("cuda", (world // 2, 2), mesh_dim_names=("dp", "tp"))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x):
            return self.down(torch.relu(self.up(x)))

    model = Mlp().to(device)
    parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    current = [0]

    def watch_gradient(grad):
        if mine("hook", current[0]):
            raise ValueError(f"gradient statistics: expected 2 dimensions, got {grad.dim() + 1}")
        return grad

    for step in range(args.steps):
        current[0] = step
        out = model(torch.randn(16, 256, device=device))
        out.register_hook(watch_gradient)
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        say("step %d", step)
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (f) pipeline by hand
def style_pipe():
    device = setup()
    stage = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    rows = 64
    previous, following = (rank - 1 if rank else None), (rank + 1 if rank + 1 < world else None)

    def exchange(*operations):
        operations = [operation for operation in operations if operation is not None]
        if operations:
            for request in dist.batch_isend_irecv(operations):
                request.wait()

    def receive(buffer, peer):
        return None if peer is None else dist.P2POp(dist.irecv, buffer, peer)

    def send(buffer, peer):
        return None if peer is None else dist.P2POp(dist.isend, buffer, peer)

    def new_input():
        return torch.zeros(rows, 512, device=device) if rank else torch.randn(rows, 512, device=device)

    def one_forward_one_backward(step, micro):
        waiting = []

        def forward(x):
            if rank:
                x.requires_grad_()
            y = stage(x)
            waiting.append((x, y))
            out, target = y.detach(), following
            if mine("shape", step):
                out = out[: rows // 2].contiguous()
            if mine("peer", step):
                target = (rank + 2) % world
            return send(out, target)

        def backward(grad):
            x, y = waiting.pop(0)
            if following is None:
                y.square().mean().backward()
            else:
                y.backward(grad)
            return send(x.grad, previous)

        grad = torch.zeros(rows, 512, device=device)
        warm = min(micro, world - rank - 1)
        for _ in range(warm):
            x = new_input()
            exchange(receive(x, previous))
            exchange(forward(x))
        if micro > warm:
            x = new_input()
            exchange(receive(x, previous))
        for i in range(micro - warm):
            exchange(forward(x), receive(grad, following))
            back = backward(grad)
            x = new_input()
            exchange(back, receive(x, previous) if i + 1 < micro - warm else None)
        for _ in range(warm):
            exchange(receive(grad, following))
            exchange(backward(grad))

    dist.barrier()
    for step in range(args.steps):
        if mine("segv", step):
            faulthandler.enable()
            call_native(8)
        if every("bothsend", step) and rank in (1, 2):
            big, peer = torch.ones(1 << 24, device=device), 3 - rank
            dist.send(big, peer)
            dist.recv(big, peer)
        one_forward_one_backward(step, 3 if mine("microbatches", step) else 4)
        optimizer.step()
        optimizer.zero_grad()
        done = torch.ones(1, device=device)
        dist.all_reduce(done)
        if rank == 0:
            log.info("step %d, %d stages", step, int(done.item()))
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (g) mixture of experts
def style_moe():
    device = setup()
    width = 512
    expert = nn.Linear(width, width).to(device)
    generator = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        counts = torch.randint(20, 200, (world,), generator=generator)
        if mistake == "skipempty" and me and at(step):
            counts = torch.zeros(world, dtype=torch.long)
        arriving = torch.zeros(world, dtype=torch.long, device=device)
        if mistake == "loadthread" and at(step):
            planted()
            load = torch.ones(1 << 14, device=device)
            delay = 0.0 if me else 2.0
            reporter = threading.Thread(target=lambda: (time.sleep(delay), dist.all_reduce(load)), name="load-report")
            reporter.start()
            time.sleep(1.0)
        dist.all_to_all_single(arriving, counts.to(device))
        if mine("split", step):
            counts = torch.clamp(counts, max=64)  # capacity, applied after the others were told
        tokens = torch.randn(int(counts.sum()), width, device=device)
        if mine("skipempty", step):
            log.info("rank %d: no tokens in this batch", rank)
        else:
            received = torch.zeros(int(arriving.sum()), width, device=device)
            dist.all_to_all_single(received, tokens, arriving.tolist(), counts.tolist())
            back = torch.zeros_like(tokens)
            dist.all_to_all_single(back, expert(received).detach(), counts.tolist(), arriving.tolist())
        balance = counts.float().to(device)
        dist.all_reduce(balance)
        if rank == 0:
            log.info("step %d tokens per expert %s", step, balance.long().tolist())
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (h) generator and trainers
def style_gan():
    device = setup()
    trainers_are = list(range(1, world))
    control = dist.new_group(backend="gloo") if mistake == "monitored" else None
    if mistake == "newgroup":
        planted()
        trainers = dist.new_group(trainers_are) if rank else None
    elif mistake == "grouptimeout":
        trainers = dist.new_group(trainers_are, timeout=datetime.timedelta(seconds=5))
    else:
        trainers = dist.new_group(trainers_are)
    groups = {"generator": None, "trainer": trainers}
    role = "generator" if rank == 0 else "trainer"
    weights = torch.ones(1 << 24 if mistake == "root" else 1 << 16, device=device)
    store = dist.distributed_c10d._get_default_store()
    for step in range(args.steps):
        root = rank if mine("root", step) else 0
        rollout = torch.full((64, 128), float(step), device=device)
        dist.broadcast(rollout, src=0)
        if rank:
            gradient = rollout.mean() * torch.ones(1 << 12, device=device)
            if mistake == "grouptimeout" and me and at(step):
                planted()
                log.info("rank %d: recomputing advantages of the replay buffer", rank)
                time.sleep(11)
            name = "trainers" if mine("wronggroup", step) else role
            dist.all_reduce(gradient, group=groups.get(name))
        if control is not None and at(step):
            if rank in (args.guilty, args.guilty + 1):
                planted()
                acquire_cache_lock()
            dist.monitored_barrier(control, timeout=datetime.timedelta(seconds=6), wait_all_ranks=True)
        if mistake == "store" and at(step):
            planted()
            if rank == 0:
                store.set(f"weights/v{step}", "ready")
            else:
                store.set_timeout(datetime.timedelta(seconds=6))
                store.wait([f"weight/v{step}"])
        dist.broadcast(weights, src=root)
        if rank == 0:
            log.info("iteration %d reward %.3f", step, rollout.mean().item())
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (i) objects and evaluation
def style_obj():
    device = setup()
    config = [{"layers": 4, "lr": 0.1}] if rank == 0 else [None]
    dist.broadcast_object_list(config, src=0, device=device)
    batches = queue.Queue(2)

    def produce():
        for number in range(args.steps + 1):
            row = {"text": "a b c", "id": number}
            if mine("thread", number):
                del row["text"]
            batches.put(len(row["text"]))

    threading.Thread(target=produce, daemon=True).start()
    for step in range(args.steps):
        value = torch.full((4,), float(batches.get()), device=device)
        try:
            row = {"score": 1.0}
            if mine("swallowed", step):
                row.pop("score")
            score = row["score"]
            message = [f"threshold {score}"]
            dist.broadcast_object_list(message, src=0, device=device)
        except KeyError as error:
            log.warning("rank %d: skipping sample, no field %s", rank, error)
        dist.all_reduce(value)
        metrics = {"rank": rank, "loss": float(value[0])}
        if mine("pickle", step):
            metrics["source"] = (line for line in "abc")
        everyone = [None] * world
        dist.all_gather_object(everyone, metrics)
        if mistake == "scatter" and at(step):
            planted()
            work = [{"files": i} for i in range(world - 1)] if rank == 0 else None
            got = [None]
            dist.scatter_object_list(got, work, src=0)
        if at(step) and mistake in ("unevengather", "healthy_eval"):
            count = 4096 if not (me and mistake == "unevengather") else 3100
            predictions = torch.ones(count * 16, device=device)
            if me and mistake == "unevengather":
                planted()
            out = [torch.zeros_like(predictions) for _ in range(world)]
            dist.all_gather(out, predictions)
            say("evaluated %d predictions", sum(len(o) for o in out) // 16)
        if rank == 0:
            log.info("step %d losses %s", step, [m["loss"] for m in everyone])
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


# ---------------------------------------------------------------- (j) transformers' Trainer
def style_hf():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    class Rows(Dataset):
        def __len__(self):
            return 4 * world * args.steps

        def __getitem__(self, index):
            ids = torch.randint(0, 200, (32,))
            return {"input_ids": ids, "labels": ids.clone()}

    calls = [0]

    def collate(rows):
        calls[0] += 1
        if mistake == "collator" and me and calls[0] == args.at:
            rows = [{"input_ids": row["input_ids"]} for row in rows]
        return {name: torch.stack([row[name] for row in rows]) for name in ("input_ids", "labels")}

    class Uploader(TrainerCallback):
        def on_step_end(self, arguments, state, control, **_):
            if mine("killed", state.global_step):
                os.kill(os.getpid(), signal.SIGKILL)
            if mistake == "upload" and at(state.global_step) and rank == 0:
                planted()
                print("uploading checkpoint to s3://models/run7", flush=True)
                self.upload()

        def upload(self):
            fetch_learning_rate()

    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
    arguments = TrainingArguments(output_dir=os.path.join(SCRATCH, "hf"), per_device_train_batch_size=4, max_steps=args.steps, logging_steps=4,
                                  save_strategy="no", report_to=[], disable_tqdm=True, ddp_timeout=int(args.timeout), ddp_find_unused_parameters=False)
    Trainer(model=model, args=arguments, data_collator=collate, train_dataset=Rows(), callbacks=[Uploader()]).train()
    print(f"rank {rank}: train() is done", flush=True)


# ---------------------------------------------------------------- start
def main(index=None):
    global rank, world, me
    if index is not None:
        os.environ.update(RANK=str(index), LOCAL_RANK=str(index), WORLD_SIZE=os.environ["LAB_SPAWN"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    me = rank == args.guilty
    os.environ["NCCL_HOSTID"] = f"lab2-host-{rank}"
    if style in ("acc", "pl", "hf"):  # every rank on a node of its own, with the only GPU there
        os.environ.update(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK=str(rank))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s: %(message)s", force=True)
    import_torch()
    globals()["style_" + style]()


if __name__ == "__main__":
    if "LAB_SPAWN" in os.environ:
        import torch.multiprocessing as mp
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        mp.spawn(main, nprocs=int(os.environ["LAB_SPAWN"]))
    else:
        main()
