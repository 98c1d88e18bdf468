#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_test.py TACET: `tacet lab` with the PyTorch of this machine; skipped where there is none."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TACET = os.path.abspath(sys.argv[1])


def find_python():
    for program in ("python3", "/usr/bin/python3"):
        asked = subprocess.run([program, "-c", "import torch.distributed"], capture_output=True, check=False)
        if asked.returncode == 0:
            return program
    return ""


PYTHON = find_python()


class List(unittest.TestCase):
    def test_every_fault_is_listed_with_what_a_right_verdict_says(self):
        done = subprocess.run([TACET, "lab", "list"], capture_output=True, text=True, check=True)
        heading, _, listed = done.stdout.partition("\n\n")
        self.assertTrue(heading.startswith("FAULT"), heading)
        lines = listed.splitlines()
        self.assertEqual(len(lines) % 2, 0)
        self.assertGreater(len(lines) // 2, 40)
        self.assertTrue(all(line.lstrip().startswith("-> ") for line in lines[1::2]), done.stdout)

    def test_every_cause_in_the_list_can_be_explained(self):
        done = subprocess.run([TACET, "lab", "list"], capture_output=True, text=True, check=True)
        causes = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", " ".join(line for line in done.stdout.splitlines() if "-> " in line)))
        self.assertGreater(len(causes), 15)
        for cause in causes:
            explained = subprocess.run([TACET, "explain", cause], capture_output=True, check=False)
            self.assertEqual(explained.returncode, 0, cause)

    def test_what_does_not_exist_is_told(self):
        done = subprocess.run([TACET, "lab", "run", "no-such-fault"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        done = subprocess.run([TACET, "lab", "run", "killed", "--python", "/no/such/python"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no Python with PyTorch", done.stderr)


@unittest.skipUnless(PYTHON, "no PyTorch here")
class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-lab-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_fault(self, name, *more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "TORCH", "TACET_", "SLURM_", "RANK"))}
        return subprocess.run([TACET, "lab", "run", name, "--backend", "gloo", "--python", PYTHON, "--ranks", "3", "--output", self.folder, *more],
                              capture_output=True, text=True, check=False, timeout=400, env={**kept, "ASAN_OPTIONS": "detect_leaks=0"})

    def test_a_rank_that_is_stuck_is_named_with_its_line(self):
        done = self.run_fault("stuck-lock", "--seed", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"is stuck on the host in\s+count_samples \(train.py:\d+\)")
        page = re.search(r"^page: +(\S+)$", done.stdout, re.M).group(1)
        self.assertTrue(os.path.exists(page))

    def test_of_errors_in_one_output_the_first_is_named_with_its_rank(self):
        done = self.run_fault("raises", "--seed", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_rank_that_computes_while_the_others_wait_is_no_hang(self):
        done = self.run_fault("evaluates")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("nothing reported", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
