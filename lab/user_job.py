#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training program as users write them, with one mistake that users make: user_job.py MISTAKE [--guilty R] [--steps N].

Started by torchrun or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. It prints what such programs print (a line
per step, from rank 0) and nothing about the mistake. Ranks that share one GPU each believe to have a host of their own."""
import argparse
import ctypes
import datetime
import logging
import os
import signal
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("mistake")
parser.add_argument("--guilty", type=int, default=2)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--timeout", type=float, default=12)
parser.add_argument("--at", type=int, default=8)
args = parser.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
mistake = args.mistake
if mistake != "same_gpu":
    os.environ["NCCL_HOSTID"] = f"lab-host-{rank}"
if mistake == "bad_flag":
    argparse.ArgumentParser(prog="train.py").parse_args(["--learning-rate", "fast", "--epochs"])
if mistake == "missing_module":
    import apex_optimizers  # noqa: F401
if mistake == "wrong_ifname" and rank == args.guilty or mistake == "wrong_ifname_all":
    os.environ["NCCL_SOCKET_IFNAME"] = "ib9"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: E402
from torch.utils.data import DataLoader, Dataset, DistributedSampler  # noqa: E402

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
log = logging.getLogger("train")
me = rank == args.guilty


class Samples(Dataset):
    def __len__(self):
        # The guilty rank's shard ends early.
        return (6 if mistake == "short_shard" and me else 64) * world

    def __getitem__(self, index):
        if mistake == "worker_raises" and me and index > 40:
            raise ValueError(f"cannot decode image {index}: truncated file")
        if mistake == "worker_killed" and me and index > 40:
            os.kill(os.getpid(), signal.SIGKILL)
        if mistake == "worker_hangs" and me and index > 40:
            time.sleep(10000)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(64, generator=generator), torch.randint(0, 10, (1,), generator=generator)[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = 256 + (64 if mistake == "other_width" and me else 0)
        self.first, self.second, self.head = nn.Linear(64, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 10)
        self.extra = nn.Linear(hidden, 10)

    def forward(self, x, step):
        x = torch.relu(self.second(torch.relu(self.first(x))))
        if mistake == "unused_all" or (mistake == "unused_one" and me and step >= args.at):
            return self.head(x)
        return self.head(x) + self.extra(x)


def loop_tensor(step, device):
    """What happens besides the model in a step: metrics, checks, evaluation, checkpoints."""
    loss = torch.ones(1, device=device)
    if step != args.at:
        dist.all_reduce(loss)
        return
    if mistake == "skip_metric" and me:
        return
    if mistake == "extra_metric" and me:
        dist.all_reduce(torch.ones(1, device=device))
    if mistake == "other_size" and me:
        loss = torch.ones(4096, device=device)
    if mistake == "other_type" and me:
        loss = torch.ones(1, device=device, dtype=torch.float64)
    if mistake == "other_operation" and me:
        dist.broadcast(loss, src=0)
        return
    if mistake == "save_alone" and rank == 0:
        log.info("saving checkpoint")
        dist.barrier()
    if mistake == "gather_alone" and rank == 0:
        out = [torch.zeros_like(loss) for _ in range(world)]
        dist.all_gather(out, loss)
    if mistake == "raises" and me:
        raise ValueError("sample 1287 has label 41, expected 0..9")
    if mistake == "raises_all":
        raise KeyError("'warmup_steps' is not in the configuration")
    if mistake == "assert_all":
        assert torch.isnan(loss).all(), "loss is not finite"
    if mistake == "no_file" and me:
        open("/data/shards/part-00017.tar")
    if mistake == "exit_code" and me:
        sys.exit(3)
    if mistake == "killed" and me:
        os.kill(os.getpid(), signal.SIGKILL)
    if mistake == "segfault" and me:
        ctypes.string_at(0)
    if mistake == "aborts" and me:
        os.abort()
    if mistake == "stopped" and me:
        os.kill(os.getpid(), signal.SIGSTOP)
    if mistake == "sleeps" and me or mistake == "rank0_evaluates" and rank == 0:
        evaluate()
    if mistake == "lock" and me:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    if mistake == "gpu_memory" and me or mistake == "gpu_memory_all":
        hold = [torch.empty(1 << 34, dtype=torch.uint8, device=device) for _ in range(64)]
        del hold
    if mistake == "bad_index" and me:
        torch.nn.functional.embedding(torch.tensor([5000], device=device), torch.zeros(10, 4, device=device)).sum().item()
    if mistake == "host_memory" and me:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 38, 1 << 38))
        bytearray(1 << 40)
    if mistake == "disk_full" and rank == 0:
        torch.save({"model": torch.zeros(1 << 24)}, os.path.join(os.environ["LAB_SMALL_DISK"], "step8.pt"))
    if mistake == "slow_once" and me:
        time.sleep(args.timeout * 1.6)
    if mistake == "interrupted" and rank == 0:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(5)
    if mistake == "terminated" and rank == 0:
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(5)
    dist.all_reduce(loss)


def evaluate():
    time.sleep(10000)


def pairs(step, device):
    buffer = torch.ones(1024, device=device)
    if step == args.at and mistake == "send_missing" and rank == 0:
        return
    if rank % 2 == 0 and rank + 1 < world:
        dist.send(buffer, rank + 1)
    elif rank % 2 == 1:
        dist.recv(buffer, rank - 1)


def groups(step, device, a, b):
    value = torch.ones(256, device=device)
    order = (b, a) if step == args.at and mistake == "order_swapped" and rank % 2 else (a, b)
    for group in order:
        dist.all_reduce(value, group=group)


def main():
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    if mistake == "never_joins" and me:
        time.sleep(10000)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=args.timeout))
    if mistake == "monitored":
        gloo = dist.new_group(backend="gloo")
        if me:
            time.sleep(10000)
        dist.monitored_barrier(gloo, timeout=datetime.timedelta(seconds=6))
    net = Net().to(device)
    if mistake == "fsdp" or mistake.startswith("fsdp_"):
        from torch.distributed.fsdp import fully_shard
        fully_shard(net)
        model = net
    else:
        model = DDP(net, device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = Samples()
    workers = 2 if mistake.startswith("worker_") else 0
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False), num_workers=workers)
    a, b = (dist.new_group(list(range(world))) for _ in range(2)) if mistake == "order_swapped" else (None, None)
    step = 0
    while step < args.steps:
        for x, y in loader:
            if mistake == "fsdp_raises" and me and step == args.at:
                raise RuntimeError("the tokenizer returned an empty batch")
            if mistake == "fsdp_sleeps" and me and step == args.at:
                evaluate()
            if mistake == "fsdp_killed" and me and step == args.at:
                os.kill(os.getpid(), signal.SIGKILL)
            if mistake == "healthy_pauses" and step == args.at:
                time.sleep(6)
            if mistake == "caught" and me and step == args.at:
                try:
                    raise ValueError("bad sample, skipped")
                except ValueError:
                    log.exception("skipping a batch")
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device), step), y.to(device))
            loss.backward()
            optimizer.step()
            loop_tensor(step, device)
            if mistake in ("send_missing", "healthy_pairs"):
                pairs(step, device)
            if mistake == "order_swapped":
                groups(step, device, a, b)
            if rank == 0:
                log.info("step %d loss %.4f", step, loss.item())
            if mistake == "quiet_hang" and step == args.at and me:
                evaluate()
            time.sleep(0.2 if mistake == "quiet_hang" else 0.05)
            step += 1
            if step >= args.steps:
                break
        if mistake == "short_shard" and me:
            break
    if mistake == "short_shard" and me:
        log.info("rank %d finished its data", rank)
    dist.barrier()
    if rank == 0:
        log.info("training finished after %d steps", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
