#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Tacet says about the jobs of lab/stragglers.sh, each kind of record alone, beside what the delay was measured to cost.

  straggler_table.py TACET RECORDINGS [PATTERN]

RECORDINGS: the unpacked records.tar.xz and traces.tar.xz.* of one run. Costs are shares of the step: of the steps after the
trace for flight records, boxes and Inspector lines, of the traced steps for traces.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCES = ("traces", "flight records", "boxes", "inspector")


def keep(job, source, folder):
    """Copies what belongs to one kind of record."""
    prefix = {"traces": "trace_rank", "flight records": "nccl_trace_rank"}.get(source)
    for name in os.listdir(job) if prefix else ():
        if name.startswith(prefix):
            shutil.copy(os.path.join(job, name), folder)
    if not prefix and os.path.isdir(os.path.join(job, source)):
        shutil.copytree(os.path.join(job, source), folder, dirs_exist_ok=True)


def ask(tacet, job, source):
    """"1: 22 %", "-" for nobody, "" without such records."""
    with tempfile.TemporaryDirectory() as folder:
        keep(job, source, folder)
        if not os.listdir(folder):
            return ""
        said = subprocess.run([tacet, "profile", "--json", folder], capture_output=True, text=True, check=False)
        found = [one for job in json.loads(said.stdout)["jobs"] for one in job["stragglers"]["found"]]
    return ", ".join(f"{one['rank']}: {100 * one['cost']:.0f} %" for one in found) or "-"


def main():
    tacet, recordings = sys.argv[1:3]
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    jobs = [name for name in os.listdir(recordings) if os.path.exists(f"{recordings}/{name}/step_rank0.json")]
    jobs = sorted((name for name in jobs if re.search(pattern, name)), key=lambda name: (not name.startswith("healthy"), name))
    print("| job | rank | delay | measured cost | of the step | " + " | ".join(SOURCES) + " |")
    print("|---" * (5 + len(SOURCES)) + "|")
    for name in jobs:
        ranks = []
        for rank in range(4):
            with open(f"{recordings}/{name}/step_rank{rank}.json") as file:
                ranks.append(json.load(file))
        first = ranks[0]
        cost = statistics.mean(one["with_ms"] - one["without_ms"] for one in ranks)
        slowed = first["options"]["delay"] != "none"
        said = [ask(tacet, f"{recordings}/{name}", source) for source in SOURCES]
        print(f"| `{name}` | {first['options']['rank'] if slowed else ''} | {max(one['delay_ms'] for one in ranks):.1f} ms | {cost:.1f} ms "
              f"| {100 * cost / first['with_ms']:.0f} % | " + " | ".join(said) + " |")


if __name__ == "__main__":
    main()
