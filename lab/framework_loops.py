# SPDX-License-Identifier: Apache-2.0
"""Training loops as frameworks write them, for lab/fault_job.py: each takes that program as `job`.

They bring the mistakes one meets there: a model that only one rank evaluates, a state dictionary that only rank 0 asks
for, a step that one rank leaves out because its loss is not finite, a barrier inside `if rank == 0`.
"""
import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Decoder(nn.Module):
    def __init__(self, width=512, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def batch(job, width=512):
    return torch.randn(32, width, device=job.DEVICE)


def mistakes(job, step, model, width=512):
    """What one rank does alone. True when it leaves the rest of the step out."""
    if job.guilty("evaluates-alone", step=step):
        with torch.no_grad():
            print("validation loss", model(batch(job, width)).square().mean().item(), flush=True)
    if job.guilty("state-alone", step=step):
        full = {name: value.full_tensor() if hasattr(value, "full_tensor") else value for name, value in model.state_dict().items()}
        torch.save(full, f"/tmp/model_{job.RANK}.pt")
    if job.guilty("barrier-alone", step=step):
        dist.barrier()
    if job.guilty("gathers-alone", step=step):
        dist.all_gather_object([None] * job.WORLD, {"step": step})
    return job.guilty("not-finite", step=step)


def train(job, model, optimizer, width=512):
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, model, width):
            continue
        loss = model(batch(job, width)).square().mean()
        loss.backward()
        if step % 5 == 0:
            job.reduce_once(step, loss.detach().clone().repeat(1024))
        optimizer.step()
        optimizer.zero_grad()


def loop_wrapped(job):
    """The older FullyShardedDataParallel."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    model = Decoder().to(job.DEVICE)
    for i, block in enumerate(model.blocks):
        model.blocks[i] = FullyShardedDataParallel(block, device_id=job.DEVICE)
    model = FullyShardedDataParallel(model, device_id=job.DEVICE)
    train(job, model, torch.optim.AdamW(model.parameters(), lr=1e-4))


def loop_tensor(job):
    """Tensor parallel inside pairs, fully sharded across them."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = dist.init_device_mesh("cuda", (job.WORLD // job.OPTIONS.tp, job.OPTIONS.tp), mesh_dim_names=("dp", "tp"))
    model = Decoder().to(job.DEVICE)
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    train(job, model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False))


def loop_zero(job):
    """DDP with an optimizer whose states are spread over the ranks."""
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = nn.parallel.DistributedDataParallel(Decoder().to(job.DEVICE), device_ids=[0], bucket_cap_mb=4)
    train(job, model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-4))


def loop_accumulate(job):
    """DDP that reduces gradients in every fourth step only, clips them, and tells its metrics."""
    model = nn.parallel.DistributedDataParallel(Decoder().to(job.DEVICE), device_ids=[0], bucket_cap_mb=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, model):
            continue
        if step % 4 != 3:
            with model.no_sync():
                model(batch(job)).square().mean().backward()
            continue
        model(batch(job)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        job.reduce_once(step, torch.ones(256, device=job.DEVICE))


def run_schedule(job, schedule, whole):
    """The first rank feeds the pipeline, the last one knows what should come out."""
    if job.RANK == 0:
        schedule.step(whole)
    elif job.RANK == job.WORLD - 1:
        schedule.step(target=whole, losses=[])
    else:
        schedule.step()


def loop_schedule(job):
    """A pipeline of PyTorch's own, one stage a rank, one forward one backward."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    part = Decoder(depth=2).to(job.DEVICE)
    stage = PipelineStage(part, job.RANK, job.WORLD, job.DEVICE)
    schedule = Schedule1F1B(stage, n_microbatches=2 * job.WORLD, loss_fn=lambda out, target: (out - target).square().mean())
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-4)
    whole = torch.randn(16 * job.WORLD, 512, device=job.DEVICE)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, part):
            continue
        run_schedule(job, schedule, whole)
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0:
            job.reduce_once(step, torch.ones(256, device=job.DEVICE))


def loop_batchnorm(job):
    """DDP whose forward pass talks as well."""
    width = 256
    layers = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(*layers)).to(job.DEVICE)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=1)
    train(job, model, torch.optim.SGD(model.parameters(), lr=1e-3), width)


def loop_graph(job):
    """Compute and all-reduce captured once in a CUDA graph, then replayed."""
    weight, out = torch.randn(1024, 1024, device=job.DEVICE), torch.zeros(1024, 1024, device=job.DEVICE)
    out.copy_(weight @ weight)  # cuBLAS and NCCL set themselves up before the capture
    dist.all_reduce(out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # the watchdog asks CUDA meanwhile
        out.copy_(weight @ weight)
        dist.all_reduce(out)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, lambda x: x):
            continue
        graph.replay()
        if step % 5 == 0:
            job.reduce_once(step, torch.ones(256, device=job.DEVICE))


def loop_coalesced(job):
    """Many small tensors in one call, and collectives that wait only when their result is used."""
    import torch.distributed._functional_collectives as functional
    parts = [torch.ones(1 << 12, device=job.DEVICE) for _ in range(6)]
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, lambda x: x):
            continue
        with dist._coalescing_manager(device=job.DEVICE, async_ops=True) as manager:
            for part in parts:
                dist.all_reduce(part)
        manager.wait()
        gathered = functional.all_gather_tensor(parts[0], 0, dist.group.WORLD)
        functional.reduce_scatter_tensor(gathered * 2, "sum", 0, dist.group.WORLD).sum()
        job.reduce_once(step, torch.ones(1 << 14, device=job.DEVICE))


def loop_checkpoint(job):
    """Fully sharded, with a distributed checkpoint every tenth step."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.fsdp import fully_shard
    model = Decoder().to(job.DEVICE)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in job.steps():
        if step % 10 == 9:
            checkpoint.save({"model": model.state_dict()}, checkpoint_id=f"/tmp/sharded_{job.os.environ['MASTER_PORT']}_{step}")
        job.before_step(step)
        if mistakes(job, step, model):
            continue
        model(batch(job)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def loop_interleaved(job):
    """A pipeline in which every rank has two stages, apart from each other."""
    from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
    parts = [Decoder(depth=1).to(job.DEVICE) for _ in range(2)]
    stages = [PipelineStage(part, job.RANK + i * job.WORLD, 2 * job.WORLD, job.DEVICE) for i, part in enumerate(parts)]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=2 * job.WORLD, loss_fn=lambda out, target: (out - target).square().mean())
    optimizer = torch.optim.AdamW([p for part in parts for p in part.parameters()], lr=1e-4)
    whole = torch.randn(16 * job.WORLD, 512, device=job.DEVICE)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, parts[0]):
            continue
        run_schedule(job, schedule, whole)
        optimizer.step()
        optimizer.zero_grad()


def loop_hooked(job):
    """DDP whose gradients are compressed by a hook, with a broadcast of buffers and a check of the loss on all ranks."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    model = nn.parallel.DistributedDataParallel(Decoder().to(job.DEVICE), device_ids=[0], bucket_cap_mb=4, gradient_as_bucket_view=True)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, model):
            continue
        loss = model(batch(job)).square().mean()
        finite = torch.isfinite(loss).to(torch.int32)
        dist.all_reduce(finite, op=dist.ReduceOp.MIN)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        job.reduce_once(step, torch.ones(256, device=job.DEVICE))


def loop_groups(job):
    """Experts in pairs, data parallel across them, and a barrier of all on a group of gloo."""
    pairs = [dist.new_group([i, i + 1]) for i in range(0, job.WORLD - 1, 2)]
    sides = [dist.new_group(list(range(side, job.WORLD, 2))) for side in range(2)]
    control = dist.new_group(backend="gloo")
    pair, side = pairs[job.RANK // 2], sides[job.RANK % 2]
    tokens = torch.ones(1 << 14, device=job.DEVICE)
    for step in job.steps():
        job.before_step(step)
        if mistakes(job, step, lambda x: x):
            continue
        arrived = torch.empty_like(tokens)
        dist.all_to_all_single(arrived, tokens, group=pair)
        dist.all_to_all_single(tokens, arrived * 1, group=pair)
        job.reduce_once(step, torch.ones(1 << 16, device=job.DEVICE), side)
        if step % 5 == 0:
            dist.barrier(group=control)


LOOPS = {name[5:]: loop for name, loop in list(globals().items()) if name.startswith("loop_")}
