#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""postmortem_test.py TACET: the page about a run, with and without a run that went well."""
import html.parser
import os
import subprocess
import sys
import tempfile
import unittest

from launch_stage import Stage

TACET = os.path.abspath(sys.argv[1])
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus")
SECTIONS = ["Summary", "Timeline", "Ranks", "Root cause and chain of evidence", "Fix", "Stacks side by side",
            "First line that is not in the baseline", "Compared with a baseline", "Variables in force", "Rings",
            "Validation", "Prevention", "Reproducer"]
SCRIPT = '''
import os, sys, time
import torch.distributed as dist
RANK = int(os.environ["RANK"])

def say(text):  # in one piece, so that lines of ranks do not run into each other
    os.write(1, (text + "\\n").encode())

say("node7:4711:4711 [0] NCCL INFO Channel 00/02 :    0   1   2   3")

def read_shard():
    say("rank %d cannot open <shard>|`x`" % RANK)
    time.sleep(600)

for step in range(3):
    dist.all_reduce(step)
    say("step %d loss %.3f" % (step, 1 / (step + 1)))
if RANK == 1 and "bad" in sys.argv:
    read_shard()
dist.all_reduce(3)
'''


class Checker(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


class Postmortem(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stage = Stage(TACET)
        cls.addClassCleanup(cls.stage.close)
        job = cls.stage.job(3, SCRIPT)
        quick = ["--hang-after", "4", "--no-native", "--on-hang", "kill", "--quiet", "--name", "train"]
        environment = {"NCCL_IB_DISABLE": "1", "TORCH_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}
        cls.good = cls.stage.run(*job, options=quick, name="good", environment={"NCCL_SOCKET_IFNAME": "eth0"})
        os.makedirs(cls.stage.path("meeting2"))
        cls.bad = cls.stage.run(*job, "bad", options=quick, name="bad",
                                environment={**environment, "MEETING": cls.stage.path("meeting2")})

    def page(self, *arguments):
        done = subprocess.run([TACET, "postmortem", *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_page_has_all_parts_and_names_rank_and_line(self):
        page = self.page(self.stage.path("bad"), "--baseline", self.stage.path("good"))
        self.assertTrue(page.startswith("# Postmortem: train, hang\n"), page[:200])
        at = [page.index("## " + section + "\n") for section in SECTIONS]
        self.assertEqual(at, sorted(at))
        self.assertIn("read_shard", page)
        self.assertIn("Rank 1 (at fault)", page)
        self.assertRegex(page, r"\*\*Ranks? 0[, 2]*\*\*")  # equal stacks stand once
        self.assertIn("channel 0 of 2: 0 1 2 3", page)
        self.assertIn("rank 1 cannot open <shard>", page)  # in a code block, as it was
        self.assertRegex(page, r"NCCL_IB_DISABLE \| 1 \| the user \| not set")
        self.assertRegex(page, r"NCCL_SOCKET_IFNAME \| not set \|  \| eth0")
        self.assertIn("tacet run -- ", page)
        self.assertNotIn("ghp_16C7", page.replace("\\", ""))

    def test_without_a_baseline_the_page_says_so(self):
        page = self.page(self.stage.path("bad"))
        self.assertIn("No baseline was given", page)
        self.assertNotIn("First line that is not in", page)

    def test_the_html_is_whole_and_needs_nothing(self):
        out = self.stage.path("page.html")
        self.page(self.stage.path("bad"), "--baseline", self.stage.path("good"), "-o", out)
        page = self.stage.read("page.html")
        checker = Checker()
        checker.feed(page)
        self.assertEqual(checker.open, [])
        for section in SECTIONS:
            self.assertIn(section, checker.text)
        self.assertIn("cannot open <shard>|`x`", checker.text)
        for forbidden in ("<script", "src=", "href=", "http://", "https://"):
            self.assertNotIn(forbidden, page)

    def test_a_page_in_the_folder_is_no_evidence(self):
        before = self.page(self.stage.path("bad"))
        self.page(self.stage.path("bad"), "-o", self.stage.path("bad", "postmortem.md"))
        self.page(self.stage.path("bad"), "-o", self.stage.path("bad", "postmortem.html"))
        self.assertEqual(self.page(self.stage.path("bad")), before)

    def test_a_healthy_run_has_a_page_too(self):
        self.assertEqual(self.good.returncode, 0, self.good.stderr)
        page = self.page(self.stage.path("good"))
        self.assertNotIn(" hang", page.splitlines()[0])


class Recorded(unittest.TestCase):
    """Runs that were not started with 'tacet run'."""

    def page(self, *names):
        done = subprocess.run([TACET, "postmortem", *names], capture_output=True, text=True, check=False, cwd=CORPUS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.replace("\\", "")

    def test_a_healthy_run_has_no_cause_and_no_fix(self):
        page = self.page("clean_ddp")
        self.assertIn("nothing to fix", page)
        for absent in ("| Waiting", "Root cause", "## Fix", "After the fix", "InfiniBand devices exist", "baseline"):
            self.assertNotIn(absent, page)

    def test_rings_are_named_by_group_and_connections_are_no_rings(self):
        page = self.page("mesh_stuck_ras")
        self.assertIn("- default_pg, channels 0 and 1: 0 1 2 3", page)
        self.assertIn("- mesh_tp, channels 0 and 1: 0 1", page)
        self.assertNotIn("via NET/Socket", page[page.index("## Rings"):])
        self.assertNotIn("of 0:", page)

    def test_variables_come_from_the_log_and_every_rank_has_its_stack(self):
        page = self.page("mesh_stuck_ras")
        self.assertIn("| NCCL_HOSTID | differs by rank: node0, node1, node2, node3 |", page)
        self.assertIn("**Rank 3 (at fault)**", page)
        self.assertIn("**Ranks 0-2**", page)

    def test_the_check_after_the_fix_can_pass(self):
        page = self.page("mesh_stuck_ras")
        self.assertIn("this should exit with 0:\n\n```text\ntacet diagnose NEW_RUN\n```", page)

    def test_a_slow_run_is_compared_by_its_times(self):
        page = self.page("straggler", "--baseline", "clean_ddp")
        self.assertRegex(page, r"\| Step time \| [0-9.]+ ms \| [0-9.]+ ms \| \+[0-9]+ % \|")

    def test_an_empty_folder_is_an_error(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([TACET, "postmortem", empty], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("tacet formats", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
