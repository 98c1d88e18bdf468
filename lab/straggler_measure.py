# SPDX-License-Identifier: Apache-2.0
"""How straggler_models.py and straggler_models2.py delay one rank, record a job and measure what the delay costs.

A job is one process per rank and has three parts:

1. The record. Every step has the delay and no profiler runs. After WARMUP steps come --steps steps, and then the flight records,
   boxes and Inspector lines are taken: they hold these steps alone, as those of a job that has such a rank would.
2. Blocks of steps without and with the delay in turn (without, with, with, without: a steady drift cancels out), each LEAD steps
   that are not counted and half as many as were recorded.
3. Steps under the profiler: without the delay, with it (this trace is kept), and without it.

Steps are timed by CUDA events at their ends, so nothing is stopped for the measurement. step_rankN.json holds
  plain_ms, recorded_cost_ms, recorded_cost_error_ms   the recorded steps, and by how much they are longer than those of the blocks
                                                       without the delay; the error comes from what blocks of one kind differ by
  cost_ms, cost_error_ms, with_ms, without_ms          the mean difference of neighboring blocks, its standard error, and their means:
                                                       shows whether the delay costs as much after the record
  traced_ms, traced_without_ms, traced_cost_ms, traced_cost_error_ms   the same of the traced steps
and medians (*_median_ms) and the mean of each block (*_blocks_ms).
"""
import datetime
import faulthandler
import json
import os
import random
import statistics
import threading
import time
import traceback

import torch
import torch.distributed as dist

from straggler_job import OUT, RANK, WORLD, base_ms, keep_records, mean, parse, wait_at_gate

DELAYS = ("none", "host", "spread", "gpu", "loader", "sometimes", "bursts", "gc")
CPU = os.environ.get("LAB_DEVICE") == "cpu"
DEVICE = torch.device("cpu") if CPU else torch.device("cuda", 0)
WARMUP = 24  # the first dozen steps are slower by some milliseconds in some loops
WAIT, GET_READY = 2, 4  # steps before the profiler starts, and that it needs to start
PAIRS_MIN, PAIRS_MAX, COMPARE_MS = 2 if CPU else 4, 8, 9000  # of blocks with and without the delay, and about how long they take together


class Job:
    """Set once, before anything else begins; loader processes inherit it."""
    options = None
    base_ms = delay_ms = 0.0  # the step of the same loop without a delay, and the delay of this rank
    recorded = measured = lead = block = traced = profiled = pairs = 0


def begin(about, loops):
    """Returns the options. Whatever is compared holds whole cycles of the pattern."""
    Job.options = parse(about, loops, DELAYS, 60)
    cycle = {"bursts": 20, "gc": 14}.get(Job.options.delay, 15)
    Job.recorded = max(1, Job.options.steps // (2 * cycle)) * 2 * cycle
    Job.measured = Job.recorded // 2
    Job.lead = 8 if Job.options.delay == "loader" else 5  # the steps before still have their effect on these
    Job.block = Job.lead + Job.measured
    Job.traced = cycle + 1  # the profiler starts in the first one, which is not counted
    Job.profiled = WAIT + GET_READY + Job.traced + 4
    return Job.options


def delay_of(step):
    """The delay of this step in ms. It depends on the number of the step alone, so that loader processes know it too."""
    place = step - WARMUP  # in the pattern, which begins with the first step that is counted
    step_in_part = step - WARMUP - Job.recorded
    if step_in_part >= 0:
        block = step_in_part // Job.block
        place = step_in_part % Job.block - Job.lead
        if block >= 2 * Job.pairs:
            step_in_part -= 2 * Job.pairs * Job.block
            place = step_in_part % Job.profiled - (WAIT + GET_READY + 1)
            if step_in_part // Job.profiled != 1:
                return 0.0
        elif block % 4 in (0, 3):
            return 0.0
    if Job.options.delay == "sometimes":
        return Job.delay_ms * 5 if place % 5 == random.Random(step - place % 5).randrange(5) else 0.0
    if Job.options.delay == "bursts":
        return Job.delay_ms * 4 if 5 <= place % 20 < 10 else 0.0
    if Job.options.delay == "gc":
        return Job.delay_ms * 7 if place % 7 == 3 else 0.0
    return Job.delay_ms


def burn(ms):
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        pass


class Products:
    """Matrix products that take a given time on this rank's GPU, as many in each layer; how many is found out in warm-up steps."""
    TUNED = range(2, 12)  # the steps that are timed for it

    def __init__(self, calls):
        self.matrix, self.result = torch.randn(1024, 1024, device=DEVICE), torch.empty(1024, 1024, device=DEVICE)
        self.calls, self.product_ms, self.owed, self.events = calls, 0.08, 0.0, []

    @torch.no_grad()
    def run(self, step):
        self.owed += delay_of(step) / self.product_ms / self.calls
        count, self.owed = int(self.owed), self.owed % 1
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if step in self.TUNED:
            first.record()
        with torch.autocast(DEVICE.type, enabled=False):
            for _ in range(count):
                torch.mm(self.matrix, self.matrix, out=self.result)
        if step in self.TUNED and count:
            last.record()
            self.events.append((first, last, count))

    def tune(self, step):
        """After a step: the products were made among the kernels of the others, and so they will be."""
        if step in self.TUNED and self.events:
            torch.cuda.synchronize()
            took = sum(first.elapsed_time(last) for first, last, _ in self.events) / sum(count for _, _, count in self.events)
            self.product_ms += (min(max(took, 0.01), 1.0) - self.product_ms) * 0.5
        self.events = []


class Clock:
    """Marks the ends of steps. On a GPU by events, which say when its work was done however far ahead the host is."""
    def __init__(self):
        self.marks = []

    def mark(self):
        if CPU:
            self.marks.append(time.perf_counter())
            return
        self.marks.append(torch.cuda.Event(enable_timing=True))
        self.marks[-1].record()

    def lengths(self):
        if CPU:
            return [(b - a) * 1e3 for a, b in zip(self.marks, self.marks[1:])]
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(self.marks, self.marks[1:])]


def profile(job, name):
    """Runs steps of which some are traced, and returns their lengths; the trace is written where it has a name."""
    activities = [torch.profiler.ProfilerActivity.CPU] + ([] if CPU else [torch.profiler.ProfilerActivity.CUDA])
    schedule = torch.profiler.schedule(wait=WAIT, warmup=GET_READY, active=Job.traced, repeat=1)
    keep = (lambda profiler: profiler.export_chrome_trace(f"{OUT}/{name}")) if name else None
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=keep) as profiler:
        lengths = job.run(Job.profiled, profiler)
    return lengths[WAIT + GET_READY + 1:WAIT + GET_READY + Job.traced]


def compare(job, recorded):
    """Blocks with and without the delay in turn, and the recorded steps beside those without."""
    lengths = job.run(2 * Job.pairs * Job.block)
    blocks = [lengths[first + Job.lead:first + Job.block] for first in range(0, len(lengths), Job.block)]
    with_delay = [block for number, block in enumerate(blocks) if number % 4 in (1, 2)]
    without = [block for number, block in enumerate(blocks) if number % 4 in (0, 3)]
    with_means, without_means = [mean(block) for block in with_delay], [mean(block) for block in without]
    costs = [a - b for a, b in zip(with_means, without_means)]
    # The recorded steps are two blocks with one mean; what blocks of one kind differ by is the error of a block's mean.
    noise = ((statistics.variance(with_means) + statistics.variance(without_means)) / 2) ** 0.5
    return {"with_ms": mean(with_means), "without_ms": mean(without_means),
            "with_median_ms": statistics.median(sum(with_delay, [])), "without_median_ms": statistics.median(sum(without, [])),
            "with_blocks_ms": [round(value, 3) for value in with_means], "without_blocks_ms": [round(value, 3) for value in without_means],
            "cost_ms": mean(costs), "cost_error_ms": statistics.stdev(costs) / len(costs) ** 0.5,
            "recorded_cost_ms": mean(recorded) - mean(without_means), "recorded_cost_error_ms": noise * (1 / 2 + 1 / Job.pairs) ** 0.5}


def compare_traced(job):
    before = profile(job, None)
    traced = profile(job, f"trace_rank{RANK}.json")
    after = profile(job, None)
    without = before + after
    error = max(statistics.stdev(without) * (1.5 / len(traced)) ** 0.5, abs(mean(before) - mean(after)) / 2)
    return {"traced_ms": mean(traced), "traced_median_ms": statistics.median(traced), "traced_without_ms": mean(without),
            "traced_without_median_ms": statistics.median(without), "traced_cost_ms": mean(traced) - mean(without), "traced_cost_error_ms": error}


def measure(make_job, make_batches):
    began = time.perf_counter()
    Job.base_ms = base_ms()
    Job.pairs = max(PAIRS_MIN, min(PAIRS_MAX, int(COMPARE_MS / (2 * Job.block * Job.base_ms)))) // 2 * 2
    if Job.options.delay != "none" and RANK == Job.options.rank:
        Job.delay_ms = Job.base_ms * Job.options.percent / 100
    batches = make_batches()
    threading.Thread(target=leave_with_others, daemon=True).start()
    options = {} if CPU else {"device_id": DEVICE}
    if not CPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("gloo" if CPU else "nccl", timeout=datetime.timedelta(seconds=60), **options)
    dist.barrier()
    job = make_job(batches)
    lengths = job.run(WARMUP + Job.recorded)
    if not CPU:
        keep_records()
    recorded = lengths[WARMUP:]
    result = {"plain_ms": mean(recorded), "plain_median_ms": statistics.median(recorded), "delay_ms": Job.delay_ms,
              **compare(job, recorded), **compare_traced(job), "lengths_ms": [round(x, 3) for x in lengths],
              "seconds": time.perf_counter() - began, "options": vars(Job.options),
              "share_of_gpu": os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")}
    with open(f"{OUT}/step_rank{RANK}.json", "w") as file:
        json.dump(result, file)
    print("finished", flush=True)
    dist.barrier()  # or the first one to leave ends what the others still do
    del job.batches, batches
    dist.destroy_process_group()


def leave_with_others():
    """Ends this rank when another one has failed: it would wait for that one, and the next job for it."""
    while not any(os.path.exists(f"{OUT}/failed_rank{rank}") for rank in range(WORLD)):
        time.sleep(0.25)
    print("another rank has failed", flush=True)
    os._exit(1)


def main(make_job, make_batches):
    wait_at_gate()
    faulthandler.dump_traceback_later(200 if CPU else 110, exit=True)  # says where it hangs, and gives the GPU to the next job
    try:
        measure(make_job, make_batches)
    except BaseException:
        traceback.print_exc()
        open(f"{OUT}/failed_rank{RANK}", "w").close()
        os._exit(1)
    faulthandler.cancel_dump_traceback_later()
