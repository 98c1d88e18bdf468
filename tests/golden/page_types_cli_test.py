#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_types_cli_test.py TACET: web/types.d.ts is what the schemas say, and the pages get what web/schema says."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from schema_check import complaints

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACET = os.path.abspath(sys.argv.pop(1))
SCHEMAS = {path.name.removesuffix(".json"): json.loads(path.read_text()) for folder in ("docs/schema", "web/schema") for path in (ROOT / folder).glob("*.json")}
CORPUS = ROOT / "tests" / "corpus"


def resolved(schema):
    """Without references: {"$ref": "tacet.profile.v1#/properties/jobs"} becomes what is there."""
    if isinstance(schema, list):
        return [resolved(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        file, path = schema["$ref"].split("#")
        place = SCHEMAS[file]
        for key in filter(None, path.split("/")):
            place = place[key]
        return resolved(place)
    return {key: resolved(held) for key, held in copy.copy(schema).items()}


def page_data(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        subprocess.run([TACET, *map(str, arguments), "--html", page], capture_output=True, timeout=300, check=False)
        return json.loads(re.search(r'id="report-json">(.*?)</script>', page.read_text(), re.S).group(1))


class PageTypes(unittest.TestCase):
    def holds(self, data, name):
        self.assertEqual(list(complaints(data, resolved(SCHEMAS[name]))), [])

    @unittest.skipUnless(shutil.which("node"), "no node")
    def test_the_types_are_current(self):
        ran = subprocess.run(["node", ROOT / "scripts/make_page_types.mjs", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_profile(self):
        for name in ("straggler", "gpt_fsdp", "gpt_pp_heavy", "gpt_ddp_b25", "lab_traced_experts_w4", "dead_rank"):
            with self.subTest(name):
                self.holds(page_data("profile", CORPUS / name), "profile_page")

    def test_compare(self):
        self.holds(page_data("compare", CORPUS / "gpt_ddp_b1", CORPUS / "gpt_ddp_b25"), "comparison_page")

    def test_report_and_topology(self):
        self.holds(page_data("diagnose", CORPUS / "dead_rank"), "tacet.report.v1")
        self.holds(page_data("topology", CORPUS / "clean_ddp"), "tacet.report.v1")

    def test_bandwidth(self):
        for name in ("nccl_tests", "nvbandwidth", "iperf3", "osu"):
            with self.subTest(name):
                self.holds(page_data("bandwidth", ROOT / "src/evidence" / name / "samples"), "tacet.bandwidth.v1")

    def test_a_wrong_page_is_found(self):
        data = page_data("profile", CORPUS / "straggler")
        del data["jobs"][0]["headline"]
        self.assertNotEqual(list(complaints(data, resolved(SCHEMAS["profile_page"]))), [])


if __name__ == "__main__":
    unittest.main()
