#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""straggler_records_cli_test.py TACET: timed flight records of jobs with one slowed rank, and of the same jobs without.

tests/stragglers/truth.json holds the rank, and what its delay was measured to cost in the same processes (tests/stragglers/README.md).
"""
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "stragglers"
TACET = os.path.abspath(sys.argv.pop(1))
TRUTH = json.loads((FOLDER / "truth.json").read_text())
WORTH = 0.04  # of the step: what must be found
# Delays of the GPU that the others hide by half and more, where the rest is within what hosts of such jobs differ by; and a loader
# that costs a tenth of the step, whose lateness is within what the stalls of the other ranks make likely.
MAY_BE_MISSED = {"tenth/lm_fsdp_gpu_40", "fifteenth/lm_loader_25", "sixteenth/lm_fsdp_gpu_40"}
# The others hide much of these delays, and the replay does not see by what: the ranks share one GPU, so the others compute faster
# while one of them does nothing.
# In flight records alone an operation's start is not known, nor what the GPU did before it: the last one takes the hosts for what
# hides the delay, where they wait for the GPU.
MAY_BE_FAR = {"fourteenth/accum_gpu_60", "sixteenth/accum_spread_20", "nineteenth/lm_fsdp_gpu_50"}


def stragglers(name):
    said = subprocess.run([TACET, "profile", "--json", FOLDER / name], capture_output=True, text=True, check=True)
    return [one for job in json.loads(said.stdout)["jobs"] for one in job["stragglers"]["found"]]


class RecordedDelays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = {name: stragglers(name) for name in TRUTH}

    def test_nobody_is_named_in_a_healthy_job(self):
        named = {name: [one["rank"] for one in self.found[name]] for name, truth in TRUTH.items() if "rank" not in truth and self.found[name]}
        self.assertEqual(named, {})

    def test_the_slowed_rank_is_named_and_no_other(self):
        for name, truth in TRUTH.items():
            if "rank" not in truth:
                continue
            with self.subTest(name):
                ranks = [one["rank"] for one in self.found[name]]
                costs_little = truth["cost_ms"] < WORTH * truth["step_ms"] or truth["cost_ms"] < 2 * truth["cost_error_ms"]
                self.assertIn(ranks, ([truth["rank"]], []) if costs_little or name in MAY_BE_MISSED else ([truth["rank"]],))

    def test_a_slow_stage_is_told_without_a_cause(self):
        said = subprocess.run([TACET, "diagnose", "--json", FOLDER / "thirteenth/pipe_host_30"], capture_output=True, text=True)
        verdict = json.loads(said.stdout)["verdict"]
        self.assertEqual((verdict["status"], verdict["ranks"], verdict["cause"]), ("slow", [2], None))
        self.assertIn("its pipeline stage takes longest, because it has more work or because its GPU or host is slow", verdict["headline"])

    def test_most_costs_are_near_the_measured_ones(self):
        near = far = 0
        for name, truth in TRUTH.items():
            if "rank" not in truth or not self.found[name] or truth["cost_ms"] < WORTH * truth["step_ms"]:
                continue
            measured, error = truth["cost_ms"] / truth["step_ms"], truth["cost_error_ms"] / truth["step_ms"]
            off = abs(self.found[name][0]["cost"] - measured)
            near += off <= max(0.2 * measured, 2 * error)
            far += off > 0.5 * measured + 2 * error and name not in MAY_BE_FAR
        self.assertGreaterEqual(near, 76)
        self.assertEqual(far, 0)


class WithoutTimesOfTheGpu(unittest.TestCase):
    """The same records as PyTorch writes them without TORCH_NCCL_ENABLE_TIMING: when each operation was issued, and no more."""

    def test_nobody_but_the_slowed_rank_is_named(self):
        named = 0
        for name, truth in list(TRUTH.items())[::3]:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for file in (FOLDER / name).glob("nccl_trace_rank_*.zst"):
                    record = pickle.loads(subprocess.run(["zstd", "-dc", file], capture_output=True, check=True).stdout)
                    for entry in record["entries"]:
                        entry["duration_ms"] = None
                    (pathlib.Path(folder) / file.stem).write_bytes(pickle.dumps(record))
                said = subprocess.run([TACET, "diagnose", "--json", folder], capture_output=True, text=True)
                ranks = json.loads(said.stdout)["verdict"]["ranks"]
                self.assertIn(ranks, ([], [truth["rank"]]) if "rank" in truth else ([],))
                named += bool(ranks)
        self.assertGreaterEqual(named, 15)


if __name__ == "__main__":
    unittest.main()
