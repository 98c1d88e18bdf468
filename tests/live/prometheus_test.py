#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prometheus_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: Debian's Prometheus and node_exporter scrape an agent, a server
and the plugin's text files while two jobs run, of which one hangs. Every query of every dashboard must return data."""
import filecmp
import glob
import json
import math
import os
import re
import subprocess
import sys
import unittest
import urllib.parse

from live_stage import Stage, fetch, fetch_json, free_port, need_program, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
DASHBOARDS = sorted(glob.glob(os.path.join(SOURCE, "dashboards", "*.json")))
RULES = [os.path.join(SOURCE, "dashboards", "rules", name) for name in ("recording.yml", "alerts.yml")]
HEALTHY, HANGING, BOXES = "4711", "4712", 8
INSPECTOR_UNITS = ("nccl_collective_exec_time_microseconds use base unit", "nccl_p2p_exec_time_microseconds use base unit")
LISTED = {"tacet_operation_duration_seconds", "tacet_hang_suspected", "tacet_history_operations_total"}

PROMETHEUS = """
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: tacet
    static_configs: [{targets: ["%s"]}]
  - job_name: tacet-serve
    static_configs: [{targets: ["%s"]}]
  - job_name: node
    static_configs: [{targets: ["%s"]}]
"""


def promtool(*arguments, text=None):
    return subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, check=False)


def panels_of(board):
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def fill_in(query, job, rank):
    for name, value in (("$__rate_interval", "20s"), ("$__interval", "5s"), ("$__range", "60s"), ("$job", job), ("$rank", rank)):
        query = query.replace(name, value)
    return query


class Theatre(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_program("prometheus", "prometheus")
        need_program("promtool", "prometheus")
        need_program("prometheus-node-exporter", "prometheus-node-exporter")
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        try:
            cls.raise_curtain(cls.stage)
        except AssertionError:
            cls.stage.show_logs()
            raise

    @classmethod
    def raise_curtain(cls, stage):
        os.makedirs(stage.path("boxes", "damaged"))
        stage.write("boxes/damaged/node-1.box", "not a box")
        textfiles = stage.path("textfiles")
        job = dict(TACET_PROM_DIR=textfiles, TACET_PROM_INTERVAL_MS="500")
        common = ("--ranks", "4", "--steps", "1000000", "--network", "--mix", "mixed", "--pause-us", "20000", "--seconds", "600")
        stage.start_job(HOST, PLUGIN, HEALTHY, *common, **job)
        stage.start_job(HOST, PLUGIN, HANGING, *common, "--fault", "stuck", "--fault-step", "200", **job)
        _, cls.agent = stage.start_agent(TACET, "--interval", "250", "--clickhouse", f"http://127.0.0.1:{free_port()}")
        served, noded, cls.port = free_port(), free_port(), free_port()
        cls.serve = f"http://127.0.0.1:{served}"
        stage.start("serve", [TACET, "serve", "--agents", cls.agent[7:], "--listen", f"127.0.0.1:{served}"])
        stage.start("node", [
            "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
            f"--collector.textfile.directory={textfiles}", f"--web.listen-address=127.0.0.1:{noded}"])
        rules = []
        for path in RULES:  # as they are, only faster
            with open(path, encoding="utf-8") as rule:
                rules.append(stage.write(os.path.basename(path), rule.read().replace("interval: 1m", "interval: 1s")))
        config = stage.write("prometheus.yml", PROMETHEUS % (
            ", ".join(rules), cls.agent[7:], f"127.0.0.1:{served}", f"127.0.0.1:{noded}"))
        stage.start("prometheus", [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={stage.path('tsdb')}",
            f"--web.listen-address=127.0.0.1:{cls.port}", "--log.level=warn"])
        wait_for("samples of both jobs", lambda: len(cls.query("tacet_operations_in_flight{job_id!=''}")) == BOXES)
        wait_for("the hang", lambda: cls.query(f'tacet_hang_suspected{{job_id="{HANGING}"}} == 1'))
        wait_for("its verdict", lambda: cls.query(f'tacet_job_verdict_info{{job_id="{HANGING}"}}'))
        wait_for("the alert", lambda: cls.query(f'ALERTS{{alertname="TacetHangSuspected", alertstate="firing", job_id="{HANGING}"}}'))
        wait_for("recorded rules", lambda: cls.query(f'tacet:bus_bandwidth:mean7d{{job_id="{HEALTHY}"}}'))
        wait_for("text files", lambda: cls.query(f'nccl_bus_bandwidth_gbs{{slurm_job_id="{HEALTHY}"}}'))

    @classmethod
    def query(cls, expression):
        url = f"http://127.0.0.1:{cls.port}/api/v1/query?query=" + urllib.parse.quote(expression)
        return fetch_json(url)["data"]["result"]

    def test_metrics_are_well_formed(self):
        for name, text in (("agent", fetch(self.agent + "/metrics")), ("serve", fetch(self.serve + "/metrics")), *self.textfiles()):
            checked = promtool("check", "metrics", text=text)
            # Inspector's names are kept for its dashboards' sake, though Prometheus would rather have seconds.
            complaints = [line for line in (checked.stderr + checked.stdout).splitlines() if not line.startswith(INSPECTOR_UNITS)]
            self.assertEqual(complaints, [], name)
            self.assertIn(checked.returncode, (0, 3) if name.endswith(".prom") else (0,))

    def textfiles(self):
        found = glob.glob(self.stage.path("textfiles", "*.prom"))
        self.assertEqual(len(found), BOXES)
        for path in found:
            with open(path, encoding="utf-8") as file:
                yield path, file.read()

    def test_all_targets_are_up(self):
        # A busy machine may miss a scrape now and then, so all are up at once sooner or later.
        wait_for("all targets", lambda: {(up["metric"]["job"], up["value"][1]) for up in self.query("up")} ==
                 {("tacet", "1"), ("tacet-serve", "1"), ("node", "1")})
        errors = wait_for("text files", lambda: self.query("node_textfile_scrape_error"))
        self.assertEqual([error["value"][1] for error in errors], ["0"])

    def test_every_query_of_every_dashboard_returns_data(self):
        self.assertEqual(len(DASHBOARDS), 4)
        for path in DASHBOARDS:
            with open(path, encoding="utf-8") as file:
                board = json.load(file)
            job = HANGING if "hang" in path else HEALTHY
            for panel in panels_of(board):
                self.assertTrue(panel["targets"], panel["title"])
                for target in panel["targets"]:
                    with self.subTest(dashboard=os.path.basename(path), panel=panel["title"]):
                        self.assert_answers(fill_in(target["expr"], job, "1"))

    def assert_answers(self, query):
        self.assertNotIn("$", query)
        values = wait_for(query, lambda: [
            series for series in self.query(query) if not math.isnan(float(series["value"][1]))], 30)
        self.assertLess(len(values), 1000)

    def test_every_variable_has_values(self):
        for path in DASHBOARDS:
            with open(path, encoding="utf-8") as file:
                variables = json.load(file)["templating"]["list"]
            self.assertEqual((variables[0]["type"], variables[0]["query"]), ("datasource", "prometheus"))
            for variable in variables[1:]:
                metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
                answer = wait_for(metric, lambda: self.query(fill_in(metric, HEALTHY, ".+")))
                found = {series["metric"].get(label) for series in answer}
                self.assertTrue(found - {None, ""}, variable["definition"])

    def test_the_hang_dashboard_names_the_rank_that_is_waited_for(self):
        with open(os.path.join(SOURCE, "dashboards", "hang.json"), encoding="utf-8") as file:
            panels = {panel["title"]: panel["targets"][0]["expr"] for panel in json.load(file)["panels"]}
        for title in (t for t in panels if t.startswith(("Who is waited for", "Nothing in flight"))):
            query = fill_in(panels[title], HANGING, ".+")
            wait_for(title, lambda: {series["metric"]["rank"] for series in self.query(query)} == {"1"}, 60)

    def test_the_healthy_job_raises_no_alert(self):
        alerts = self.query(f'ALERTS{{job_id="{HEALTHY}", alertstate="firing"}}')
        self.assertEqual(alerts, [])

    def test_number_of_series_is_bounded_as_documented(self):
        series = wait_for("series", lambda: self.query('{job="tacet", __name__=~"tacet_.+"}'))
        with open(os.path.join(SOURCE, "docs", "live.md"), encoding="utf-8") as file:
            self.assertIn("32 * G * O * S + B * (3 * O + 24) + 2 * J + 27", file.read())
        labels = [entry["metric"] for entry in series]
        count = lambda *names: len({tuple(m.get(n) for n in names) for m in labels if all(n in m for n in names)})
        groups, operations, sizes, jobs = count("job_id", "group"), count("operation"), count("size"), count("job_id")
        self.assertEqual((groups, jobs), (2, 2))
        bound = 32 * groups * operations * sizes + BOXES * (3 * operations + 24) + 2 * jobs + 27
        self.assertLessEqual(len(series), bound)
        self.assertGreater(len(series), bound / 4)  # it says something

    def test_every_metric_is_documented(self):
        with open(os.path.join(SOURCE, "docs", "live.md"), encoding="utf-8") as file:
            document = file.read()
        told = {}
        for text in (fetch(self.agent + "/metrics"), fetch(self.serve + "/metrics"), *(text for _, text in self.textfiles())):
            told.update(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.assertTrue(LISTED <= set(told), LISTED - set(told))
        for name, kind in told.items():
            self.assertRegex(document, rf"\| `{name}` \| {kind} \|", f"{name} is not in the table of docs/live.md")
        for name in re.findall(r"^\| `((?:tacet|nccl)_\w+)` \|", document, re.M):
            self.assertIn(name, told, "docs/live.md tells of a metric that nobody serves")


class Files(unittest.TestCase):
    def test_rules_are_well_formed_and_do_what_they_say(self):
        checked = promtool("check", "rules", *RULES)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        tests = glob.glob(os.path.join(SOURCE, "dashboards", "rules", "*_test.yml"))
        tested = promtool("test", "rules", *tests)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)
        with open(RULES[1], encoding="utf-8") as file:
            alerts = set(re.findall(r"- alert: (\w+)", file.read()))
        covered = set()
        for path in tests:
            with open(path, encoding="utf-8") as file:
                covered.update(re.findall(r"alertname: (\w+)", file.read()))
        self.assertEqual(alerts, covered)
        with open(os.path.join(SOURCE, "docs", "live.md"), encoding="utf-8") as file:
            document = file.read()
        for alert in alerts:
            self.assertIn(f"| `{alert}` |", document)

    def test_dashboards_are_as_their_source_says(self):
        stage = Stage()
        self.addCleanup(stage.close)
        subprocess.run([sys.executable, os.path.join(SOURCE, "dashboards", "make_dashboards.py"), stage.folder], check=True)
        for path in DASHBOARDS:
            made = stage.path(os.path.basename(path))
            self.assertTrue(filecmp.cmp(path, made, shallow=False), f"{path} is stale: run dashboards/make_dashboards.py")

    def test_dashboards_can_be_imported_anywhere(self):
        seen = set()
        for path in DASHBOARDS:
            with open(path, encoding="utf-8") as file:
                board = json.load(file)
            self.assertGreaterEqual(board["schemaVersion"], 39)
            self.assertNotIn(board["uid"], seen)
            seen.add(board["uid"])
            used, ids = set(), set()
            for panel in panels_of(board):
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertLessEqual(place["x"] + place["w"], 24)
                self.assertFalse(cells & used, panel["title"])
                used |= cells
                ids.add(panel["id"])
            self.assertEqual(len(ids), len(list(panels_of(board))))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
