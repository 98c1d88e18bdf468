#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models and loops as users have them, in which one rank may be slowed by a known amount: straggler_job.py with real steps.

  straggler_models.py --loop lm_log --delay spread --percent 30 --rank 2

Started and recorded as straggler_job.py is: LAB_JOB=straggler_models.py LAB_LIST=lab/straggler_list_6.txt lab/stragglers.sh OUT
FOLDER_OF_PLUGIN. Steps take some 25 ms where 4 ranks share one H200, so a delay of a tenth is far above the noise of clocks.

Loops: lm (transformer under DDP; the loss is read every 10 steps, so the host runs ahead and hides small delays of its own),
lm_log (the loss is averaged over ranks and read in every step), lm_fsdp (FSDP2, bf16), conv (SyncBatchNorm under DDP, images by
two loader processes), accum (4 micro-batches), hsdp (FSDP2 over pairs, replicated twice), moe (experts behind all_to_all_single).

Delays: host (a pause in one place of each step), spread (a little in each layer's forward), gpu (matrix products in each layer's
forward), loader (the input is late), sometimes (one step of five), bursts (5 steps of 20), gc (every 7th step, 7 times as long).
Their mean over steps is the given percentage of the step without a delay.

How the record and the cost of the delay are taken: straggler_measure.py.

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

from straggler_job import RANK, WORLD
from straggler_measure import CPU, DEVICE, Clock, Job, Products, begin, burn, delay_of, main

LOOPS = ("lm", "lm_log", "lm_fsdp", "conv", "accum", "hsdp", "moe")
OPTIONS = begin(__doc__, LOOPS)

MICRO_BATCHES, WORKERS = 4, 2
WIDTH, HEADS, VOCABULARY = (32, 2, 64) if CPU else (256, 4, 1024)
LAYERS = 2 if CPU or OPTIONS.loop == "accum" else 4
LENGTH = 16 if CPU else 256 if OPTIONS.loop == "moe" else 512
BATCH = 8 if CPU else {"accum": 16 * MICRO_BATCHES, "moe": 16, "conv": 96}.get(OPTIONS.loop, 32)
IMAGE, CHANNELS = (16, 8) if CPU else (64, 64)

# Where a pause of the host is, and whether Python is busy in it. All are after a step's loss was read, or where the host waits
# for its GPU anyway: elsewhere the GPU still has work and the pause costs nothing.
PLACES = {"lm": ("input", False), "lm_log": ("logged", True), "lm_fsdp": ("input", False), "conv": ("forward", True),
          "accum": ("logged", False), "hsdp": ("input", True), "moe": ("forward", False)}


# ---- input

class Tokens(torch.utils.data.Dataset):
    """Pieces of one long text, read by the process that trains."""
    def __init__(self):
        self.text = torch.randint(VOCABULARY, (200_000,), generator=torch.Generator().manual_seed(RANK))

    def __len__(self):
        return BATCH * 4000

    def __getitem__(self, index):
        if OPTIONS.delay == "loader" and index % BATCH == 0:
            time.sleep(delay_of(index // BATCH) / 1e3)
        begin = index * 97 % (len(self.text) - LENGTH - 1)
        return self.text[begin:begin + LENGTH + 1]


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
    if OPTIONS.loop == "conv":
        return iter(torch.utils.data.DataLoader(Images(), batch_size=BATCH, num_workers=WORKERS, pin_memory=not CPU,
                                                multiprocessing_context="fork"))
    return iter(torch.utils.data.DataLoader(Tokens(), batch_size=BATCH, pin_memory=not CPU))


# ---- models

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x.transpose(1, 2).reshape(batch, length, WIDTH))


def feed_forward():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False))


class ExchangeTokens(torch.autograd.Function):
    """all_to_all_single with splits of any size; the gradient takes the way back."""
    @staticmethod
    def forward(ctx, tokens, received, sent):
        ctx.received, ctx.sent = received, sent
        result = tokens.new_empty(sum(received), tokens.shape[1])
        dist.all_to_all_single(result, tokens.contiguous(), received, sent)
        return result

    @staticmethod
    def backward(ctx, gradient):
        result = gradient.new_empty(sum(ctx.sent), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), ctx.sent, ctx.received)
        return result, None, None


class Experts(nn.Module):
    """One expert a rank. Routes come from a seed: experts are used unequally in a step, and equally in the mean of many."""
    def __init__(self, layer):
        super().__init__()
        self.layer, self.calls = layer, 0
        self.router = nn.Linear(WIDTH, WORLD, bias=False)
        self.expert = feed_forward()

    def routes(self, tokens):
        seed = (self.calls * 16 + self.layer) * 2
        self.calls += 1
        popular = torch.softmax(0.25 * torch.randn(WORLD, generator=torch.Generator().manual_seed(seed)), 0)
        mine = torch.Generator().manual_seed(seed * WORLD + RANK + 1)
        return torch.multinomial(popular, tokens, replacement=True, generator=mine)

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        routes = self.routes(len(tokens))
        counts = torch.bincount(routes, minlength=WORLD)
        routes, counts = routes.to(DEVICE), counts.to(DEVICE)
        weights = torch.softmax(self.router(tokens), 1).gather(1, routes.unsqueeze(1))
        order = torch.argsort(routes)
        expected = torch.empty_like(counts)
        dist.all_to_all_single(expected, counts)
        received, sent = expected.tolist(), counts.tolist()
        there = ExchangeTokens.apply(tokens.to(torch.bfloat16).index_select(0, order), received, sent)
        back = ExchangeTokens.apply(self.expert(there).to(torch.bfloat16), sent, received)
        result = torch.zeros_like(tokens, dtype=torch.float32).index_copy(0, order, back.float())
        return (result * weights).view_as(x)


class Layer(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = Experts(number) if OPTIONS.loop == "moe" and number % 2 else feed_forward()

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer(number) for number in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.first_norm, self.second_norm = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = self.second_norm(self.second(F.relu(self.first_norm(self.first(x)))))
        return F.relu(y + self.short(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        c = CHANNELS
        self.stem = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU())
        self.layers = nn.Sequential(Residual(c, c, 1), Residual(c, c, 1), Residual(c, 2 * c, 2), Residual(2 * c, 2 * c, 1),
                                    Residual(2 * c, 4 * c, 2), Residual(4 * c, 4 * c, 1))
        self.head = nn.Linear(4 * c, 10)

    def forward(self, x):
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


def shard(model):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    options = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    if OPTIONS.loop == "hsdp":
        options["mesh"] = dist.init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("replicate", "shard"))
    for layer in model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def replicate(model):
    if OPTIONS.loop == "moe":  # every rank has an expert of its own
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
            model, [name for name, _ in model.named_parameters() if ".expert." in name])
    return DistributedDataParallel(model, device_ids=None if CPU else [0], bucket_cap_mb=4, gradient_as_bucket_view=True)


# ---- loops

class Training:
    """One loop, step by step."""
    def __init__(self, batches):
        self.batches, self.step, self.products = batches, 0, None
        torch.manual_seed(17)
        model = (ConvNet() if OPTIONS.loop == "conv" else LanguageModel()).to(DEVICE)
        if OPTIONS.loop == "conv" and not CPU:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        if Job.delay_ms > 0:
            self.slow_layers(model.layers)
        self.common = [p for name, p in model.named_parameters() if ".expert." not in name]
        self.sharded = OPTIONS.loop in ("lm_fsdp", "hsdp")
        self.model = shard(model) if self.sharded else replicate(model)
        if self.sharded:
            self.common = list(self.model.parameters())
        if OPTIONS.loop == "conv":
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, weight_decay=0.1, **({} if CPU else {"fused": True}))
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / 100))
        self.train = {"conv": self.train_images, "accum": self.train_accumulating}.get(OPTIONS.loop, self.train_text)

    def slow_layers(self, layers):
        calls = len(layers) * (MICRO_BATCHES if OPTIONS.loop == "accum" else 1)
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
        return contextlib.nullcontext() if self.sharded else torch.autocast(DEVICE.type, dtype=torch.bfloat16)

    def loss_of(self, tokens):
        with self.autocast():
            logits = self.model(tokens[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())

    def update(self):
        if OPTIONS.loop != "conv":
            nn.utils.clip_grad_norm_(self.common, 1.0, **({"foreach": True} if self.sharded else {}))
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)

    def log(self, loss):
        value = loss.item()
        if self.step % 10 == 9:
            print(f"{datetime.datetime.now().isoformat()} rank {RANK} step {self.step} loss {value:.4f}", flush=True)
        self.pause("logged")

    def train_text(self):
        tokens = next(self.batches).to(DEVICE, non_blocking=True)
        self.pause("input")
        loss = self.loss_of(tokens)
        self.pause("forward")
        loss.backward()
        self.update()
        if OPTIONS.loop == "lm_log":
            loss = loss.detach() / WORLD
            dist.all_reduce(loss)
        if OPTIONS.loop != "lm" or self.step % 10 == 9:
            self.log(loss)

    def train_accumulating(self):
        tokens, total = next(self.batches).to(DEVICE, non_blocking=True), 0
        self.pause("input")
        for number, micro_batch in enumerate(tokens.chunk(MICRO_BATCHES)):
            with self.model.no_sync() if number < MICRO_BATCHES - 1 else contextlib.nullcontext():
                loss = self.loss_of(micro_batch) / MICRO_BATCHES
                loss.backward()
            total = total + loss.detach()
        self.update()
        self.log(total)

    def train_images(self):
        images, labels = (part.to(DEVICE, non_blocking=True) for part in next(self.batches))
        self.pause("input")
        loss = F.cross_entropy(self.model(images), labels)
        self.pause("forward")
        loss.backward()
        self.update()
        self.log(loss)

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
