#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Five more models and loops in which one rank may be slowed by a known amount; measured and recorded as those of straggler_models.py.

  straggler_models2.py --loop zero1 --delay spread --percent 30 --rank 2

Started as LAB_JOB=straggler_models2.py LAB_LIST=lab/straggler_list_12.txt lab/stragglers.sh OUT FOLDER_OF_PLUGIN.

Loops: seqtp (a transformer split over all ranks: tensor parallel with sequence parallelism, all-gather and reduce-scatter around
attention and MLP), zero1 (gradients reduce-scattered by buckets during backward, each rank updates its share, all-gather),
ckpt (DDP with every layer recomputed in backward), vit (a vision transformer under DDP, images cut, turned and coloured by two
loader processes), recsys (tables of features spread over ranks, all_to_all for ids, vectors and their gradients, DDP for the rest).

Delays: host, spread, gpu, loader, sometimes, bursts, gc, as in straggler_models.py. In all loops the loss is read in every step.

LAB_DEVICE=cpu runs tiny models over gloo, to see that a loop works at all.
"""
import contextlib
import datetime
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from straggler_job import RANK, WORLD
from straggler_measure import CPU, DEVICE, Clock, Job, Products, begin, burn, delay_of, main

LOOPS = ("seqtp", "zero1", "ckpt", "vit", "recsys")
OPTIONS = begin(__doc__, LOOPS)

WORKERS = 2
WIDTH, HEADS, VOCABULARY = (32, 4, 64) if CPU else (256, 4, 1024)
LAYERS = 2 if CPU else {"seqtp": 3, "vit": 6}.get(OPTIONS.loop, 4)
LENGTH = 16 if CPU else 512
BATCH = 8 if CPU else {"seqtp": 8, "vit": 64}.get(OPTIONS.loop, 32)
IMAGE, PATCH = (16, 8) if CPU else (64, 8)
ROWS, FEATURES, TABLE, DIM = (16, 2 * WORLD, 100, 8) if CPU else (8192, 2 * WORLD, 20_000, 64)

# Where a pause of the host is, and whether Python is busy in it: before or after all that the GPU has to do for a step.
PLACES = {"seqtp": ("input", False), "zero1": ("logged", True), "ckpt": ("input", True), "vit": ("logged", False), "recsys": ("input", False)}


# ---- input

class Tokens(torch.utils.data.Dataset):
    """Pieces of one long text, read by the process that trains. Ranks that share a model's layers read the same."""
    def __init__(self):
        seed = 0 if OPTIONS.loop == "seqtp" else RANK
        self.text = torch.randint(VOCABULARY, (200_000,), generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return BATCH * 4000

    def __getitem__(self, index):
        if OPTIONS.delay == "loader" and index % BATCH == 0:
            time.sleep(delay_of(index // BATCH) / 1e3)
        begin = index * 97 % (len(self.text) - LENGTH - 1)
        return self.text[begin:begin + LENGTH + 1]


class Clicks(torch.utils.data.Dataset):
    """Whole batches of ids, numbers and labels."""
    def __init__(self):
        generator = torch.Generator().manual_seed(RANK)
        self.ids = torch.randint(TABLE, (FEATURES, 4 * ROWS), generator=generator)
        self.numbers = torch.randn(4 * ROWS, 16, generator=generator)

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if OPTIONS.delay == "loader":
            time.sleep(delay_of(index) / 1e3)
        begin = index * 31 % (3 * ROWS)
        numbers = self.numbers[begin:begin + ROWS]
        return self.ids[:, begin:begin + ROWS].contiguous(), numbers, (numbers[:, 0] > 0).float()


class Images(torch.utils.data.Dataset):
    """Cut, turned and normalized by the loader processes, on the CPU. Nothing in here may touch CUDA: the processes are forked."""
    stored, begun = None, 0.0

    def __len__(self):
        return BATCH * 4000

    def __getitem__(self, index):
        if index % BATCH == 0:
            self.begun = time.perf_counter()
        if self.stored is None:
            self.stored = torch.randint(256, (64, 3, IMAGE + 8, IMAGE + 8), dtype=torch.uint8)
        chance = random.Random(index * WORLD + RANK)
        top, left = chance.randrange(8), chance.randrange(8)
        image = self.stored[index % 64, :, top:top + IMAGE, left:left + IMAGE].float() / 255
        if chance.random() < 0.5:
            image = image.flip(2)
        image = (image - 0.45) * (1 + 0.2 * chance.random()) + 0.02 * torch.randn(image.shape)
        grey = image.mean(0, keepdim=True)
        image = grey + (image - grey) * (0.6 + 0.8 * chance.random())
        top, left = chance.randrange(IMAGE // 2), chance.randrange(IMAGE // 2)
        image[:, top:top + IMAGE // 4, left:left + IMAGE // 4] = 0
        if OPTIONS.delay == "loader" and index % BATCH == BATCH - 1:
            self.be_late(index // BATCH)
        return image, index % 10

    def be_late(self, step):
        """Every process makes one of WORKERS batches: the input is late when one takes that many steps and delays."""
        delay = delay_of(step)
        if delay > 0:
            time.sleep(max(0.0, WORKERS * (Job.base_ms + delay) / 1e3 - (time.perf_counter() - self.begun)))


def make_batches():
    """Called before there is a CUDA context or a thread: loader processes are forked, before the thread that pins memory starts."""
    if OPTIONS.loop == "vit":
        return iter(torch.utils.data.DataLoader(Images(), batch_size=BATCH, num_workers=WORKERS, pin_memory=not CPU,
                                                multiprocessing_context="fork"))
    if OPTIONS.loop == "recsys":
        return iter(torch.utils.data.DataLoader(Clicks(), batch_size=None, pin_memory=not CPU))
    return iter(torch.utils.data.DataLoader(Tokens(), batch_size=BATCH, pin_memory=not CPU))


# ---- collectives (gloo has not all of them)

def gather(part):
    whole = part.new_empty(WORLD * part.shape[0], *part.shape[1:])
    if CPU:
        dist.all_gather(list(whole.chunk(WORLD)), part.contiguous())
    else:
        dist.all_gather_into_tensor(whole, part.contiguous())
    return whole


def scatter_sum(whole, wait=True):
    """This rank's share of the sum."""
    if CPU:
        whole = whole.clone()
        dist.all_reduce(whole)
        share = whole.chunk(WORLD)[RANK].clone()
        return share if wait else (share, None)
    share = whole.new_empty(whole.shape[0] // WORLD, *whole.shape[1:])
    work = dist.reduce_scatter_tensor(share, whole.contiguous(), async_op=not wait)
    return share if wait else (share, work)


def exchange(parts):
    """The first dimension is one of ranks: part n goes to rank n."""
    if CPU:
        everything = gather(parts.unsqueeze(0))
        return everything[:, RANK].clone()
    parts = parts.contiguous()
    result = torch.empty_like(parts)
    dist.all_to_all_single(result, parts)
    return result


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return gather(part)

    @staticmethod
    def backward(ctx, gradient):
        return scatter_sum(gradient)


class ScatterSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, whole):
        return scatter_sum(whole)

    @staticmethod
    def backward(ctx, gradient):
        return gather(gradient)


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, parts):
        return exchange(parts)

    @staticmethod
    def backward(ctx, gradient):
        return exchange(gradient)


# ---- models

def attend(qkv, heads, causal):
    """Batch first."""
    batch, length, width = qkv.shape
    q, k, v = qkv.view(batch, length, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    if CPU:
        x = torch.softmax(q @ k.transpose(-1, -2), -1) @ v
    else:
        x = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return x.transpose(1, 2).reshape(batch, length, width // 3)


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.out(attend(self.qkv(x), HEADS, self.causal))


class Layer(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(causal)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class SplitLayer(nn.Module):
    """Heads and hidden units are split over ranks; between them each rank has its part of the sequence, which comes first."""
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH // WORLD, bias=False), nn.Linear(WIDTH // WORLD, WIDTH, bias=False)
        self.rise, self.fall = nn.Linear(WIDTH, 4 * WIDTH // WORLD, bias=False), nn.Linear(4 * WIDTH // WORLD, WIDTH, bias=False)

    def forward(self, x):
        whole = Gather.apply(self.before_attention(x).to(torch.float32 if CPU else torch.bfloat16))
        seen = attend(self.qkv(whole).transpose(0, 1), HEADS // WORLD, True).transpose(0, 1)
        x = x + ScatterSum.apply(self.out(seen))
        whole = Gather.apply(self.before_mlp(x).to(torch.float32 if CPU else torch.bfloat16))
        return x + ScatterSum.apply(self.fall(F.gelu(self.rise(whole))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(SplitLayer() if OPTIONS.loop == "seqtp" else Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        if OPTIONS.loop == "seqtp":
            part = slice(RANK * LENGTH // WORLD, (RANK + 1) * LENGTH // WORLD)
            tokens, places = tokens[:, part], places[part]
        x = self.words(tokens) + self.places(places)
        if OPTIONS.loop == "seqtp":
            x = x.transpose(0, 1)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if OPTIONS.loop == "ckpt" else layer(x)
        return self.head(self.norm(x))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(0.02 * torch.randn((IMAGE // PATCH) ** 2 + 1, WIDTH))
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.layers = nn.ModuleList(Layer(causal=False) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


class Recommender(nn.Module):
    """Each rank has the tables of some features, for the rows of all ranks."""
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(TABLE, DIM) for _ in range(FEATURES // WORLD))
        widths = (16, 512, DIM)
        self.bottom = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        widths = (DIM * (FEATURES + 1), 2048, 1024, 1024) if not CPU else (DIM * (FEATURES + 1), 16)
        self.top = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.out = nn.Linear(widths[-1], 1)
        self.layers = [*self.bottom, *self.top]

    def look_up(self, ids):
        there = exchange(ids.view(WORLD, FEATURES // WORLD, -1))  # of each rank, my features
        vectors = torch.stack([table(there[:, number]) for number, table in enumerate(self.tables)], 1)
        if not CPU:
            vectors = vectors.to(torch.bfloat16)
        return Exchange.apply(vectors).flatten(0, 1)  # features, rows, dim

    def forward(self, ids, numbers):
        vectors = self.look_up(ids)
        for layer in self.bottom:
            numbers = F.relu(layer(numbers))
        x = torch.cat([numbers.to(vectors.dtype), vectors.transpose(0, 1).flatten(1)], 1)
        for layer in self.top:
            x = F.relu(layer(x))
        return self.out(x).squeeze(1)


class ShardedOptimizer:
    """Parameters and gradients lie in flat buckets. A bucket's gradients are summed as soon as they are there, last layers first;
    every rank updates its share of each bucket, and all gather the parameters."""
    def __init__(self, model, buckets=4):
        parameters = list(reversed(list(model.parameters())))
        most = sum(p.numel() for p in parameters) / buckets
        groups, size = [[]], 0
        for p in parameters:
            if size > most:
                groups.append([])
                size = 0
            groups[-1].append(p)
            size += p.numel()
        self.flat, self.gradients, self.shares, self.left, self.counts, self.bucket_of = [], [], [], [], [], {}
        for number, group in enumerate(groups):
            total = -(-sum(p.numel() for p in group) // WORLD) * WORLD
            flat, gradients, place = torch.zeros(total, device=DEVICE), torch.zeros(total, device=DEVICE), 0
            for p in group:
                end = place + p.numel()
                flat[place:end] = p.data.flatten()
                p.data = flat[place:end].view_as(p)
                p.grad = gradients[place:end].view_as(p)
                place = end
                self.bucket_of[p] = number
                if not CPU:
                    p.register_post_accumulate_grad_hook(self.ready)
            self.flat.append(flat)
            self.gradients.append(gradients)
            self.shares.append(nn.Parameter(flat.chunk(WORLD)[RANK].clone()))
            self.counts.append(len(group))
        self.adam = torch.optim.AdamW(self.shares, lr=3e-4, weight_decay=0.1, **({} if CPU else {"fused": True}))
        self.begin()

    def begin(self):
        self.left, self.sums = list(self.counts), []

    def ready(self, p):
        self.left[self.bucket_of[p]] -= 1
        while len(self.sums) < len(self.flat) and self.left[len(self.sums)] <= 0:  # in the same order on all ranks
            self.sums.append(scatter_sum(self.gradients[len(self.sums)], wait=False))

    def step(self):
        while len(self.sums) < len(self.flat):
            self.sums.append(scatter_sum(self.gradients[len(self.sums)], wait=False))
        for share, (total, work) in zip(self.shares, self.sums):
            if work is not None:
                work.wait()
            share.grad = total / WORLD
        self.adam.step()
        for flat, share in zip(self.flat, self.shares):
            flat.copy_(gather(share.data))
        for gradients in self.gradients:
            gradients.zero_()
        self.begin()


def replicate(model):
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
        model, [name for name, _ in model.named_parameters() if name.startswith("tables.")])
    return DistributedDataParallel(model, device_ids=None if CPU else [0], bucket_cap_mb=4, gradient_as_bucket_view=True)


# ---- loops

class Training:
    """One loop, step by step."""
    def __init__(self, batches):
        self.batches, self.step, self.products = batches, 0, None
        torch.manual_seed(17)
        model = {"vit": VisionTransformer, "recsys": Recommender}.get(OPTIONS.loop, LanguageModel)().to(DEVICE)
        if Job.delay_ms > 0:
            self.slow_layers(model.layers)
        self.common = [p for name, p in model.named_parameters() if not name.startswith("tables.")]
        if OPTIONS.loop == "seqtp":  # what all ranks have: norms, and what is outside of layers
            self.common = [p for name, p in model.named_parameters() if not name.startswith("layers.") or ".before_" in name]
        self.model = model if OPTIONS.loop in ("seqtp", "zero1") else replicate(model)
        if OPTIONS.loop == "zero1":
            self.optimizer = ShardedOptimizer(model)
        else:
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, **({} if CPU else {"fused": True}))
        self.loss_of = {"vit": self.loss_of_images, "recsys": self.loss_of_clicks}.get(OPTIONS.loop, self.loss_of_text)

    def slow_layers(self, layers):
        calls = len(layers) * (2 if OPTIONS.loop == "ckpt" else 1)
        if OPTIONS.delay == "gpu":
            self.products = Products(calls)
        for layer in layers:
            if OPTIONS.delay == "spread":
                layer.register_forward_pre_hook(lambda *_: burn(delay_of(self.step) / calls))
            if OPTIONS.delay == "gpu":
                layer.register_forward_pre_hook(lambda *_: self.products.run(self.step))

    def pause(self, place):
        where, busy = PLACES[OPTIONS.loop]
        if where != place or OPTIONS.delay not in ("host", "sometimes", "bursts", "gc"):
            return
        if busy or OPTIONS.delay == "gc":  # a garbage collection keeps the interpreter
            burn(delay_of(self.step))
        elif delay_of(self.step) > 0:
            time.sleep(delay_of(self.step) / 1e3)

    def autocast(self):
        return contextlib.nullcontext() if CPU else torch.autocast(DEVICE.type, dtype=torch.bfloat16)

    def loss_of_text(self, batch):
        tokens = batch.to(DEVICE, non_blocking=True)
        with self.autocast():
            logits = self.model(tokens[:, :-1])
        targets = tokens[:, 1:]
        if OPTIONS.loop == "seqtp":
            targets = targets[:, RANK * LENGTH // WORLD:(RANK + 1) * LENGTH // WORLD].transpose(0, 1)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    def loss_of_images(self, batch):
        images, labels = (part.to(DEVICE, non_blocking=True) for part in batch)
        with self.autocast():
            logits = self.model(images)
        return F.cross_entropy(logits.float(), labels)

    def loss_of_clicks(self, batch):
        ids, numbers, labels = (part.to(DEVICE, non_blocking=True) for part in batch)
        with self.autocast():
            logits = self.model(ids, numbers)
        return F.binary_cross_entropy_with_logits(logits.float(), labels)

    def update(self):
        if OPTIONS.loop == "seqtp":
            flat = torch.cat([p.grad.flatten() for p in self.common])
            dist.all_reduce(flat)
            for p, gradient in zip(self.common, flat.split([p.numel() for p in self.common])):
                p.grad.copy_(gradient.view_as(p))
        if OPTIONS.loop in ("ckpt", "vit"):
            nn.utils.clip_grad_norm_(self.common, 1.0)
        self.optimizer.step()
        if OPTIONS.loop != "zero1":
            self.optimizer.zero_grad(set_to_none=True)

    def train(self):
        batch = next(self.batches)
        self.pause("input")
        loss = self.loss_of(batch)
        (loss / WORLD if OPTIONS.loop == "seqtp" else loss).backward()
        self.update()
        value = loss.item()
        if self.step % 10 == 9:
            print(f"{datetime.datetime.now().isoformat()} rank {RANK} step {self.step} loss {value:.4f}", flush=True)
        self.pause("logged")

    def run(self, steps, profiler=None):
        """Returns the length of each step in ms."""
        clock = Clock()
        clock.mark()
        for _ in range(steps):
            self.train()
            clock.mark()
            if self.products:
                self.products.tune(self.step)
            self.step += 1
            if profiler:
                profiler.step()
        return clock.lengths()


if __name__ == "__main__":
    main(Training, make_batches)
