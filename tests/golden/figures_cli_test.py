#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""figures_cli_test.py TACET: a figure that stands in several places is the same in all of them, after rounding as printed."""
import csv
import html
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACET = os.path.abspath(sys.argv.pop(1))
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/input"))
CORPUS = sorted(path for path in (ROOT / "tests" / "corpus").iterdir() if path.is_dir())
TIMED = ("straggler", "straggler_cpu", "straggler_flaky", "gpt_pp", "gpt_pp_heavy", "gpt_ddp_b1", "gpt_ddp_b25", "gpt_ddp_b250", "gpt_fsdp", "sizes", "dead_rank",
         "clean_ddp", "lab_traced_experts_w4")
PARTS = ("compute_only_ns", "hidden_ns", "exposed_ns", "copies_ns", "host_wait_ns", "launch_ns", "data_wait_ns")


def tacet(*arguments):
    ran = subprocess.run([TACET, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    return ran.stdout


def views(command, path):
    """What the command says as JSON, as the page's data and as the text that the page carries."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        told = tacet(command, "--json", "--html", page, path)
        if not told or not page.exists():
            return None, None, None
        markup = page.read_text()
    data = re.search(r'<script type="application/json" id="report-json">(.*?)</script>', markup, re.S).group(1)
    plain = re.search(r'<pre id="plain">(.*?)</pre>', markup, re.S).group(1)
    return json.loads(told), json.loads(data), html.unescape(plain)


def squeezed(text):
    """Without what wrapping changes; bytes that are no text are shown as escapes in some places."""
    return re.sub(r"\s+|\ufffd|\\x[0-9a-f]{2}|[\x00-\x1f]", "", text)


def fold(ranks):
    pieces = []
    for rank in sorted(ranks):
        if pieces and pieces[-1][1] == rank - 1:
            pieces[-1][1] = rank
        else:
            pieces.append([rank, rank])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)


def share(value):
    return f"{value * 100:.1f} %"


def whole(value):
    """As findings round."""
    return f"{value * 100:.0f} %"


def time(ns):
    size = abs(ns)
    if size < 1e3:
        return f"{ns:.0f} ns"
    if size < 1e6:
        return f"{ns / 1e3:.2f} µs" if size < 1e4 else f"{ns / 1e3:.1f} µs"
    if size < 1e9:
        return f"{ns / 1e6:.2f} ms" if size < 1e7 else f"{ns / 1e6:.1f} ms"
    return f"{ns / 1e9:.2f} s"


def duration(ns):
    """As findings round."""
    seconds = ns / 1e9
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Diagnose(unittest.TestCase):
    def same_verdict(self, report, page, text):
        self.assertEqual(page, report, "the page's data is the JSON report")
        verdict = report["verdict"]
        self.assertTrue(text.startswith(verdict["heading"]), text[:40])
        self.assertIn(squeezed(verdict["headline"]), squeezed(text))
        if verdict["ranks"] and len(fold(verdict["ranks"])) < 30:
            self.assertIn(("rank " if len(verdict["ranks"]) == 1 else "ranks ") + fold(verdict["ranks"]), text.split("\n", 1)[0])

    def one_numbering(self, report):
        """The operation in which ranks wait has one number in headline, table of ranks and picture of waits."""
        finding = report["findings"][0] if report["findings"] else None
        if not finding or not finding["operation"] or finding["operation"]["seq"] is None:
            return
        kind, seq = finding["operation"]["kind"], finding["operation"]["seq"]
        told = re.findall(r"\b(?:waits?|failed) in " + re.escape(kind) + r" #(\d+) on (?:the )?([\w.-]+(?: 0x[0-9a-f]+)?)", finding["headline"])
        # Messages between two ranks are counted by each rank on its own.
        if not told or finding["status"] != "hang" or kind in ("send", "recv", "coalesced") or "graph" in finding["headline"]:
            return
        self.assertIn(seq, [int(number) for number, _ in told], finding["headline"])
        where = next(label for number, label in told if int(number) == seq)
        self.numberings += 1
        place = re.compile(re.escape(kind) + r" #(\d+) on " + re.escape(where) + r"(?![\w-])")
        affected = set(finding["affected_ranks"])
        # A row that goes by another record than the verdict says so.
        rows = [row["last_operation"] or "" for row in report["ranks"] if row["rank"] in affected]
        rows = {int(number) for row in rows if not row.endswith(")") for number in place.findall(row)}
        self.assertTrue(not rows or seq in rows, f"the table of ranks: {seq} is not in {rows}")
        edges = {int(number) for wait in report["waits"] if wait["from"] in affected for number in place.findall(wait["where"])}
        # Boxes of a killed rank: the picture shows an operation further on, which the others had enqueued behind this one.
        if "black_box" in report["ranks"][0]["evidence_kinds"] and finding["cause"] == "rank-dead":
            return
        self.assertTrue(not edges or seq in edges, f"the picture of waits: {seq} is not in {edges}")

    def who_waits(self, report, text):
        waiting = {row["rank"] for row in report["ranks"] if row["role"] == "waits"}
        finding = report["findings"][0] if report["findings"] else None
        carried = finding is not None and finding["cause"] == (report["verdict"]["cause"] or "")
        affected = finding["affected_ranks"] if carried else []
        if report["verdict"]["status"] == "healthy":
            self.assertEqual((waiting, report["waits"]), (set(), []))
            self.assertNotRegex(text, r"(?i)\bwaits?\b")
            return
        waits = carried and finding["status"] in ("hang", "crash", "slow")
        if waits:
            # Who failed with its peer does not wait any more: the table shows its error.
            failed = {row["rank"] for row in report["ranks"] if row["role"] in (None, "unknown") and row["doing"]}
            shown = set(affected) - set(report["verdict"]["ranks"]) - failed
            self.assertLessEqual(shown & {row["rank"] for row in report["ranks"]}, waiting)
            waits = not failed & set(affected)
        # Of a crash they wait where an operation is known that they are in.
        waits = waits and (finding["status"] != "crash" or finding["operation"] is not None)
        if carried and not affected and report["verdict"]["status"] == "hang":
            affected, waits = sorted(waiting), True  # then the table tells who waits
        told = re.search(r"^  (waits  |affects) (.*)$", text, re.M)
        self.assertEqual(told is not None, bool(affected))
        if told:
            self.assertEqual(told[1].strip(), "waits" if waits else "affects")
            if "..." not in told[2]:
                self.assertEqual(told[2].split(" ")[1], fold(affected))

    def test_every_case(self):
        seen = self.numberings = 0
        for path in (*GOLDEN, *CORPUS):
            with self.subTest(path.parent.name if path.name == "input" else path.name):
                report, page, text = views("diagnose", path)
                if report is None:
                    continue
                seen += 1
                self.same_verdict(report, page, text)
                self.one_numbering(report)
                self.who_waits(report, text)
        self.assertGreater(seen, 100)
        self.assertGreater(self.numberings, 20)

    def test_reports_for_ci_say_the_same(self):
        for path in GOLDEN:
            with self.subTest(path.parent.name):
                report = json.loads(tacet("diagnose", "--json", path))
                junit = html.unescape(tacet("diagnose", "-f", "junit", path))
                results = json.loads(tacet("diagnose", "-f", "sarif", path))["runs"][0]["results"]
                results = [one for one in results if one["ruleId"] != "cause-unknown"]  # of a verdict without a finding
                findings = [one for one in report["findings"] if one["cause"]]
                self.assertEqual([one["ruleId"] for one in results], [one["cause"] for one in findings])
                for finding, result in zip(findings, results):
                    self.assertTrue(squeezed(result["message"]["text"]).startswith(squeezed(finding["headline"])), finding["headline"])
                    self.assertEqual(result["properties"]["ranks"], finding["ranks"])
                    self.assertEqual(result["properties"]["affectedRanks"], finding["affected_ranks"])
                    if finding["severity"] != "note" and finding["affected_ranks"]:
                        word = "waiting" if finding["status"] in ("hang", "crash", "slow") else "affected"
                        self.assertIn(f"{word}: {'rank' if len(finding['affected_ranks']) == 1 else 'ranks'} {fold(finding['affected_ranks'])}", junit)
                if report["verdict"]["status"] == "healthy":
                    self.assertNotIn("waiting:", junit)


class Profile(unittest.TestCase):
    def rows(self, text, heading):
        """The cells of a table of the text, without its head."""
        block = text.split("\n" + heading, 1)
        if len(block) < 2:
            return []
        lines = block[1].split("\n")[2:]
        found = []
        for line in lines:
            cells = re.split(r"\s{2,}", line.strip())
            if len(cells) < 3:
                break
            found.append(cells)
        return found

    def budget(self, job, page, text):
        mean = job["mean_budget"]
        if not mean or not mean["step_ns"]:
            return
        step = mean["step_ns"]
        self.assertEqual(job["step_ns"], step, "one step time")
        self.assertEqual((page["step_ns"], sum(page["mean"])), (step, step))
        if job["all_to_all"]:
            self.assertAlmostEqual(job["all_to_all"]["transfer_share"], job["all_to_all"]["transfer_ns"] / step, places=6)
        self.assertIn(squeezed("step " + time(step)), squeezed(text))
        parts = [mean[name] for name in PARTS]
        self.assertEqual(page["mean"], parts)
        compute, idle = (parts[0] + parts[1]) / step, (mean["idle_ns"] + mean["copies_ns"]) / step
        headline = job["verdict"]["headline"]
        told = re.match(r"[Cc]ompute takes ([\d.]+ %) of the step(?: \(([\d.]+ %) of the step overlaps communication\))?, (?:exposed communication|waiting for other stages) ([\d.]+ %); no kernel runs for ([\d.]+ %)", headline)
        if told:
            self.assertEqual((told[1], told[3], told[4]), (share(compute), share(parts[2] / step), share(idle)))
            self.assertEqual(told[2], share(parts[1] / step) if parts[1] / step >= 0.0005 else None)
        self.assertIn(squeezed(headline), squeezed(text))
        rows = {cells[0]: cells for cells in self.rows(text, "Time budget")}
        if len(job["ranks"]) > 1:
            self.assertEqual(rows["mean"][1:], [time(step), *(share(part / step) for part in parts)])
        for rank, row in zip(job["ranks"], page["ranks"]):
            own = [rank["budget"][name] for name in PARTS]
            self.assertEqual(row[6:], own)
            if str(rank["rank"]) in rows:
                whole = max(1, sum(own))
                self.assertEqual(rows[str(rank["rank"])][1:], [time(sum(own)), *(share(part / whole) for part in own)])

    def hidden(self, job, page, text):
        mean = job["mean_budget"]
        communication = mean["hidden_ns"] + mean["exposed_ns"] if mean else 0
        if not communication:
            return
        expected = mean["hidden_ns"] / communication
        self.assertAlmostEqual(job["hidden_fraction"], expected, places=6)
        self.assertAlmostEqual(page["hidden_fraction"], expected, delta=0.00006)
        self.assertIn(squeezed(share(expected) + " of communication is hidden"), squeezed(text))
        for rank in job["ranks"]:
            own = rank["budget"]["hidden_ns"] + rank["budget"]["exposed_ns"]
            if own:
                self.assertAlmostEqual(rank["hidden_fraction"], rank["budget"]["hidden_ns"] / own, delta=1e-4)

    def stragglers(self, job, page, text):
        found, step = job["stragglers"]["found"], job["step_ns"]
        rows = {cells[0]: cells for cells in self.rows(text, "Stragglers")} if found else {}
        unmarked = any("without step marks" in remark for remark in job["remarks"])
        for one, shown in zip(found, page["stragglers"]):
            self.assertEqual((shown["rank"], shown["late_ns"], shown["late_steps"]), (one["rank"], one["late_ns"], one["late_steps"]))
            for name in ("share", "cost"):
                self.assertAlmostEqual(shown[name], one[name], delta=0.00006)
            cells = rows[str(one["rank"])]
            self.assertEqual(cells[1:4], [time(one["late_ns"]), share(one["share"]), share(one["cost"])])
            if step and not unmarked:
                self.assertAlmostEqual(one["share"], one["late_ns"] / step, delta=1e-6, msg="a share of the step that is printed above it")
        if found:
            alone = len(found) == 1 and found[0]["cost_high"] > found[0]["cost_low"]
            interval = f" (95 % interval {share(found[0]['cost_low'])} to {share(found[0]['cost_high'])})" if alone else ""
            self.assertIn(squeezed(f"cost: {share(job['stragglers']['cost_share'])} of every rank's step{interval};"), squeezed(text))
            for advice in job["advice"]:
                if advice["what"].startswith("Bring rank"):
                    self.assertEqual(advice["gain"], job["stragglers"]["cost_share"])
        else:
            self.assertNotIn("make the others wait", job["verdict"]["headline"])
            self.assertNotIn("makes the others wait", job["verdict"]["headline"])

    def strategies(self, job, page, text):
        for name in ("pipeline", "ddp", "fsdp", "all_to_all", "utilisation", "what_if"):
            self.assertEqual(page[name], job[name])
        if job["pipeline"]:
            self.assertIn(squeezed(f"bubble: {share(job['pipeline']['bubble'])} measured, {share(job['pipeline']['theoretical_bubble'])} theoretical"), squeezed(text))
        for one, shown in zip(job["advice"], page["advice"]):
            self.assertEqual((shown["what"], shown["why"]), (one["what"], one["why"]))
            self.assertAlmostEqual(shown["gain"], one["gain"], delta=0.00006)
            known = one["gain_low"] is not None
            self.assertEqual(known, shown["gain_low"] is not None)
            how = "at most " if one["at_most"] else "about " if known else ""
            interval = f" (95 % interval {share(one['gain_low'])} to {share(one['gain_high'])})" if known else ""
            self.assertIn(squeezed(f"{one['what']}: saves {how}{share(one['gain'])} of the step{interval}"), squeezed(text))
            if known:
                self.intervals += 1
                self.assertTrue(one["gain_low"] <= one["gain"] <= one["gain_high"])
                self.assertAlmostEqual(shown["gain_low"], one["gain_low"], delta=0.00006)
                self.assertAlmostEqual(shown["gain_high"], one["gain_high"], delta=0.00006)
        self.assertEqual(page["setup"], job["setup"])
        self.assertIn(squeezed(job["setup"]), squeezed(text))
        self.assertTrue(not job["shared_gpus"] or "share" in job["setup"])

    def as_table(self, job, path):
        budgets = [row for row in csv.reader(io.StringIO(tacet("profile", "-f", "csv", path))) if row and row[0] == "budget"]
        for row, rank in zip(budgets, job["ranks"]):
            own = rank["budget"]
            self.assertEqual([int(cell) for cell in row[2:]], [rank["rank"], rank["steps"], own["step_ns"], *(own[name] for name in PARTS)])

    def test_every_recording_with_times(self):
        paths = [ROOT / "tests" / "corpus" / name for name in TIMED]
        paths += [path for path in GOLDEN if re.search("pipeline|nsight|sleeps", path.parent.name)]
        seen = self.intervals = 0
        for path in paths:
            with self.subTest(str(path.relative_to(ROOT))):
                told, data, text = views("profile", path)
                self.assertIsNotNone(told)
                self.assertEqual(len(told["jobs"]), 1)
                job, page = told["jobs"][0], data["jobs"][0]
                seen += bool(job["ranks"])
                for check in (self.budget, self.hidden, self.stragglers, self.strategies):
                    check(job, page, text)
                self.as_table(job, path)
        self.assertGreater(seen, 8)
        self.assertGreater(self.intervals, 0)

    def test_a_finding_says_what_the_profile_says(self):
        seen = 0
        for name in TIMED:
            path = ROOT / "tests" / "corpus" / name
            report = json.loads(tacet("diagnose", "--json", path))
            for finding in report["findings"]:
                if not finding["cause"].startswith("straggler"):
                    continue
                with self.subTest(name):
                    seen += 1
                    profile = json.loads(tacet("profile", "--json", path))["jobs"][0]["stragglers"]
                    found = {one["rank"]: one for one in profile["found"]}
                    self.assertLessEqual(set(finding["ranks"]), set(found))
                    worst = found[finding["ranks"][0]]
                    self.assertIn(duration(worst["late_ns"]), finding["headline"])
                    self.assertRegex(finding["headline"], rf"costs all ranks (?:about )?{re.escape(whole(worst['cost']))} of the (?:step|recorded time)")
                    said = " ".join(item["says"] for item in finding["evidence"])
                    self.assertRegex(said, rf"costs {re.escape(whole(worst['cost']))} of the (?:step|recorded time)")
                    if worst["pattern"] == "persistent":
                        self.assertIn(f"arrives {duration(worst['late_ns'])} after the median rank in each step", said)
        self.assertGreater(seen, 2)

    def test_a_comparison_says_what_the_profiles_say(self):
        first, second = (ROOT / "tests" / "corpus" / name for name in ("gpt_ddp_b1", "gpt_ddp_b25"))
        steps = [json.loads(tacet("profile", "--json", path))["jobs"][0]["step_ns"] for path in (first, second)]
        told = json.loads(tacet("compare", "--json", first, second))
        line = next(line for line in told["lines"] if line["name"] == "step time")
        for own, step in zip((line["mean_a_ns"], line["mean_b_ns"]), steps):
            self.assertAlmostEqual(own / step, 1, delta=1e-6)
        text = tacet("compare", first, second)
        for step in steps:
            self.assertIn(time(step), text)


if __name__ == "__main__":
    unittest.main()
