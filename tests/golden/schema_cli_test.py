#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema_cli_test.py TACET: what the commands write as JSON is what docs/schema says."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from schema_check import complaints

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = {path.name.removesuffix(".json"): json.loads(path.read_text()) for path in (ROOT / "docs" / "schema").glob("*.json")}
TACET = os.path.abspath(sys.argv.pop(1))
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/input"))
CORPUS = ROOT / "tests" / "corpus"


def tacet(*arguments):
    ran = subprocess.run([TACET, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    return json.loads(ran.stdout) if ran.stdout else None


class Schemas(unittest.TestCase):
    def holds(self, report, name):
        self.assertEqual(list(complaints(report, SCHEMAS[name])), [])
        self.assertEqual(report["schema"], name)

    def test_diagnose(self):
        for path in (*GOLDEN, CORPUS / "mesh_stuck_ras", CORPUS / "lab_running_hybrid_w8", ROOT / "tests" / "wild"):
            with self.subTest(path.parent.name):
                self.holds(tacet("diagnose", "--json", path), "tacet.report.v1")

    def test_diagnose_of_nothing_much(self):
        for path in ("/dev/null", "README.md"):
            self.holds(tacet("diagnose", "--json", path), "tacet.report.v1")

    def test_topology(self):
        seen = 0
        for path in (*GOLDEN[::3], CORPUS / "sizes", CORPUS / "clean_ddp"):
            report = tacet("topology", "--json", path)
            if report is not None:
                self.holds(report, "tacet.report.v1")
                seen += "topology" in report
        self.assertGreater(seen, 3)

    def test_profile(self):
        for name in ("straggler", "gpt_fsdp", "gpt_pp_heavy", "gpt_ddp_b25", "lab_traced_experts_w4"):
            with self.subTest(name):
                self.holds(tacet("profile", "--json", CORPUS / name), "tacet.profile.v1")
        self.holds(tacet("profile", "--json", ROOT / "tests/golden/pipeline_stage_has_more_work/input"), "tacet.profile.v1")

    def test_compare(self):
        self.holds(tacet("compare", "--json", CORPUS / "gpt_ddp_b1", CORPUS / "gpt_ddp_b25"), "tacet.compare.v1")
        samples = ROOT / "src/evidence/nccl_tests/samples"
        self.holds(tacet("compare", "--json", samples, samples), "tacet.compare.v1")

    def test_predict(self):
        for arguments in (("--gpus", "8xH100", "--nodes", 16, "--nics", "8x400G"), ("--alpha", "12us", "--bandwidth", 46, "--ranks", 64, "--op", "all"),
                          ("src/evidence/nccl_log/samples", "--what-if", "nodes=4"),
                          ("--gpus", "8xH100", "--nodes", 8, "--nics", "8x400G", "--step-time", "4.2s", "--layout", "dp=8,tp=8,micro=8",
                           "--model", "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256,seq=8192")):
            self.holds(tacet("predict", "--json", *arguments), "tacet.prediction.v1")

    def test_bandwidth(self):
        for name in ("nccl_tests", "nvbandwidth", "iperf3", "osu", "p2p_latency", "perftest"):
            with self.subTest(name):
                self.holds(tacet("bandwidth", "--json", ROOT / "src/evidence" / name / "samples"), "tacet.bandwidth.v1")

    def test_lint_and_preflight(self):
        self.holds(tacet("lint", "--json", ROOT / "tests/golden/environment_forces_a_slow_path/input"), "tacet.lint.v1")
        self.holds(tacet("preflight", "--json", "--quick", "--python", "none"), "tacet.preflight.v1")

    def test_every_command_with_json_has_a_schema(self):
        told = subprocess.run([TACET, "help", "--markdown"], capture_output=True, text=True, check=True).stdout
        commands = [block.split("\n", 1)[0] for block in told.split("\n## ") if "--json " in block]
        titles = " ".join(schema["title"] for schema in SCHEMAS.values())
        for command in commands:
            self.assertIn(f"tacet {command} --json", titles)
        self.assertGreater(len(commands), 4)


class TheCheckItself(unittest.TestCase):
    report = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"], "enum": ["x", None]}}}

    def test_what_fits(self):
        for value in ({"a": 1}, {"a": 1, "b": "x"}, {"a": 1, "b": None}):
            self.assertEqual(list(complaints(value, self.report)), [])

    def test_what_does_not(self):
        for value, says in (({}, "a is missing"), ({"a": 1.5}, "not of type integer"), ({"a": True}, "not of type integer"), ({"a": 1, "b": "y"}, "none of"),
                            ({"a": 1, "c": 2}, "is not in the schema"), ([], "not of type object")):
            self.assertRegex("\n".join(complaints(value, self.report)), re.escape(says))
        with self.assertRaises(ValueError):
            list(complaints(1, {"maximum": 2}))


if __name__ == "__main__":
    unittest.main()
