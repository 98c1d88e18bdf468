#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Tacet says about the jobs of lab/stragglers.sh, each kind of record alone, beside what the delay was measured to cost.

  straggler_table.py TACET RECORDINGS [PATTERN]

RECORDINGS: the unpacked records.tar.xz and traces.tar.xz.* of one run. Costs are shares of the step with the delay.

The measured cost is that of the recorded steps, or where a job does not tell it (straggler_job.py, older recordings) that of later
ones: the mean difference of blocks of steps with and without the delay. Both have standard errors (straggler_job.py leaves none); the
cost in later steps is told beside it. Flight records, boxes and Inspector lines hold mostly steps without a
profiler, so what they say is compared with that. A trace holds steps that the profiler makes longer, and a delay may cost more or
less in them, so it is compared with the traced steps of the same processes: those of the trace less those without the delay, in
ms and as a share of the traced step. Both are told since they can differ: a share is wrong too where the step is. What Tacet
states in ms is its share of the step as it read it.

The last lines count. A healthy reading is one kind of record of one job without a delay. A delay counts where it cost at least
4 % of the step and more than 2 standard errors, in the steps it is compared with: it is named rightly (that rank and no other),
wrongly (any other rank) or not at all. A stated cost of a rightly named one holds if it is within a fifth of the measured one, or
within 2 standard errors.
"""
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCES = ("traces", "flight records", "boxes", "inspector")
SMALLEST_SHARE = 0.04


def keep(job, source, folder):
    """Copies what belongs to one kind of record."""
    prefix = {"traces": "trace_rank", "flight records": "nccl_trace_rank"}.get(source)
    for name in os.listdir(job) if prefix else ():
        if name.startswith(prefix):
            shutil.copy(os.path.join(job, name), folder)
    if not prefix and os.path.isdir(os.path.join(job, source)):
        shutil.copytree(os.path.join(job, source), folder, dirs_exist_ok=True)


def ask(tacet, job, source):
    """What was found, as pairs of rank, share and ms (None where no step is told); None without such records."""
    with tempfile.TemporaryDirectory() as folder:
        keep(job, source, folder)
        if not os.listdir(folder):
            return None
        said = subprocess.run([tacet, "profile", "--json", folder], capture_output=True, text=True, check=False)
        jobs = json.loads(said.stdout)["jobs"]
    return [(one["rank"], one["cost"] or 0.0, (one["cost"] or 0.0) * job["step_ns"] / 1e6 if job.get("step_ns") else None)
            for job in jobs for one in job["stragglers"]["found"]]


def show(found, with_ms):
    """"1: 22 %", "-" for nobody, "" without such records."""
    if found is None:
        return ""
    return ", ".join(f"{rank}: {100 * share:.0f} %" + (f", {ms:.1f} ms" if with_ms and ms is not None else "")
                     for rank, share, ms in found) or "-"


class Measured:
    """What the delay of one job cost, over all ranks: (ms, standard error, share of the step), and the same in traced steps."""
    def __init__(self, folder):
        ranks = []
        for rank in range(4):
            with open(f"{folder}/step_rank{rank}.json") as file:
                ranks.append(json.load(file))

        def over(key):
            return statistics.mean(one.get(key, 0.0) for one in ranks)
        options = ranks[0]["options"]
        self.rank = options["rank"] if options["delay"] != "none" else None
        self.delay = max(one["delay_ms"] for one in ranks)
        self.has_error = "cost_error_ms" in ranks[0]
        cost, traced = over("with_ms") - over("without_ms"), over("traced_ms") - over("traced_without_ms")
        # Ranks wait for each other, so all measure the same steps: their errors do not shrink by the mean.
        self.later = (cost, over("cost_error_ms"), cost / over("with_ms"))
        self.plain = self.later
        if "recorded_cost_ms" in ranks[0]:
            self.plain = (over("recorded_cost_ms"), over("recorded_cost_error_ms"), over("recorded_cost_ms") / over("plain_ms"))
        self.traced = (traced, over("traced_cost_error_ms"), traced / over("traced_ms"))

    def of(self, source):
        return self.traced if source == "traces" else self.plain


def counts(measured):
    cost, error, share = measured
    return share >= SMALLEST_SHARE and cost > 2 * error


def holds(stated_share, measured):
    """Whether a stated share is close enough to the measured one."""
    cost, error, share = measured
    allowed = max(0.2 * share, 2 * error * share / cost)
    return abs(stated_share - share) <= allowed


def share_of(part, whole):
    return f"{part} of {whole}"


def summarize(readings):
    """readings: (source, Measured, found) of all jobs."""
    healthy = [found for _, measured, found in readings if measured.rank is None]
    print(f"Healthy: {share_of(sum(bool(found) for found in healthy), len(healthy))} readings name somebody.")
    for source in SOURCES:
        all_delays = [(m, found) for one, m, found in readings if one == source and m.rank is not None]
        delays = [(m, found) for m, found in all_delays if counts(m.of(source))]
        small = [found for m, found in all_delays if not counts(m.of(source))]
        if not all_delays:
            continue
        right = [(m, found[0]) for m, found in delays if found and {rank for rank, *_ in found} == {m.rank}]
        silent = sum(not found for _, found in delays)
        shares = sum(holds(share, m.of(source)) for m, (_, share, _) in right)
        with_ms = [(m.of(source), ms) for m, (_, _, ms) in right if ms is not None]
        lengths = sum(abs(ms - cost) <= max(0.2 * cost, 2 * error) for (cost, error, _), ms in with_ms)
        print(f"{source[0].upper()}{source[1:]}: of {len(delays)} delays {len(right)} named rightly, {len(delays) - len(right) - silent} wrongly, "
              f"{silent} not at all; stated costs within a fifth or 2 standard errors: {share_of(shares, len(right))} as shares, "
              f"{share_of(lengths, len(with_ms))} in ms; of {len(small)} delays that cost less, {sum(bool(found) for found in small)} named.")


def main():
    tacet, recordings = sys.argv[1:3]
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    jobs = [name for name in os.listdir(recordings) if all(os.path.exists(f"{recordings}/{name}/step_rank{rank}.json") for rank in range(4))]
    jobs = sorted((name for name in jobs if re.search(pattern, name)), key=lambda name: (not name.startswith("healthy"), name))
    columns = ("job", "rank", "delay", "measured cost", "error", "of the step", "cost in later steps", "cost in traced steps", *SOURCES)
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    readings = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        asked = {(name, source): pool.submit(ask, tacet, f"{recordings}/{name}", source) for name in jobs for source in SOURCES}
    for name in jobs:
        measured = Measured(f"{recordings}/{name}")
        said = {source: asked[name, source].result() for source in SOURCES}
        readings += [(source, measured, found) for source, found in said.items() if found is not None]
        (cost, error, share), (traced, traced_error, traced_share) = measured.plain, measured.traced
        later, later_error, _ = measured.later
        print(f"| `{name}` | {'' if measured.rank is None else measured.rank} | {measured.delay:.1f} ms | {cost:.1f} ms "
              f"| {f'{error:.1f} ms' if measured.has_error else ''} | {100 * share:.0f} % "
              f"| {later:.1f} ms{f' ± {later_error:.1f}' if measured.has_error else ''} | {traced:.1f} ms{f' ± {traced_error:.1f}' if measured.has_error else ''}, {100 * traced_share:.0f} % | "
              + " | ".join(show(said[source], source == "traces") for source in SOURCES) + " |")
    print()
    summarize(readings)


if __name__ == "__main__":
    main()
