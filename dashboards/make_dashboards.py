#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Grafana dashboards of this folder: make_dashboards.py [FOLDER]. The queries stand below, the rest is layout.

Each panel is (title, unit, kind, width, [(query, legend)], what it tells). Widths are of 24 columns.
"""
import json
import os
import sys

JOB = 'job_id=~"$job"'
RANK = 'job_id=~"$job", rank=~"$rank"'
# Time of one operation as a rank sees it: whoever comes last to a collective waits least, and is the lowest.
SECONDS_EACH = (
    "sum by (job_id, uid, rank) (rate(tacet_rank_operation_seconds_total{%s}[$__rate_interval]))"
    " / sum by (job_id, uid, rank) (rate(tacet_rank_operations_total{%s}[$__rate_interval]))"
)
SECONDS_OF_ALL = SECONDS_EACH % (JOB, JOB)
SECONDS_OF_RANK = SECONDS_EACH % (RANK, RANK)
RANK_NAME = "rank {{rank}} of {{job_id}}"


def bus_bandwidth(by):
    name = "tacet_operation_bus_bandwidth_bytes_per_second"
    return (
        f"sum by ({by}) (rate({name}_sum{{{JOB}}}[$__rate_interval]))"
        f" / sum by ({by}) (rate({name}_count{{{JOB}}}[$__rate_interval]))"
    )


def duration(quantile):
    return (
        f"histogram_quantile({quantile}, sum by (le, operation) "
        f"(rate(tacet_operation_duration_seconds_bucket{{{JOB}}}[$__rate_interval])))"
    )


CLUSTER = [
    ("Nodes that report", "short", "stat", 4, [("count(tacet_agent_looks_total)", "")], "Agents that Prometheus reaches."),
    ("Jobs", "short", "stat", 4, [(f"count(count by (job_id, uid) (tacet_hang_suspected{{{JOB}}}))", "")], "Jobs with a black box."),
    ("Ranks", "short", "stat", 4, [(f"count(tacet_operations_in_flight{{{JOB}}})", "")], "Processes that run with the plugin."),
    ("Jobs that may hang", "short", "alarm", 4, [(f"sum(max by (job_id, uid) (tacet_hang_suspected{{{JOB}}}))", "")],
     "Open the hang dashboard for the job."),
    ("Boxes that cannot be read", "short", "alarm", 4, [('sum(tacet_boxes{trouble!="none"}) or vector(0)', "")],
     "A box of a different version, or a cut or damaged one; /api/v1/state of the agent says why."),
    ("Events lost in 5 min", "short", "alarm", 4,
     [(f"sum(increase(tacet_events_dropped_total{{{JOB}}}[5m])) + sum(increase(tacet_ring_lapped_total{{{JOB}}}[5m]))", "")],
     "What the plugin could not record, and what was overwritten before the agent read it."),
    ("Alerts", "short", "table", 24, [('ALERTS{alertname=~"Tacet.+"}', "")], "Pending and firing; docs/live.md says what to do."),
    ("Bus bandwidth by job", "Bps", "lines", 12, [(bus_bandwidth("job_id"), "{{job_id}}")],
     "Mean of finished operations, as nccl-tests define it."),
    ("Time in operations per second and rank", "percentunit", "lines", 12,
     [(f"sum by (job_id, uid) (rate(tacet_rank_operation_seconds_total{{{JOB}}}[$__rate_interval]))"
       f" / count by (job_id, uid) (tacet_operations_in_flight{{{JOB}}})", "{{job_id}}")],
     "Overlapping operations are all counted; waiting for others is included."),
    ("Oldest operation by job", "s", "lines", 12,
     [(f"max by (job_id, uid) (tacet_oldest_operation_age_seconds{{{JOB}}})", "{{job_id}}")], "A rising line is a job that waits."),
    ("Bytes by node", "Bps", "lines", 12,
     [(f"topk(20, sum by (instance) (rate(tacet_operation_bytes_total{{{JOB}}}[$__rate_interval])))", "{{instance}}")],
     "Of finished operations."),
    ("Processes by state", "short", "lines", 8, [("sum by (state) (tacet_processes)", "{{state}}")],
     "stopped and uninterruptible processes hold up their peers."),
    ("Events lost by reason", "cps", "lines", 8,
     [(f"sum by (reason) (rate(tacet_events_dropped_total{{{JOB}}}[$__rate_interval]))", "{{reason}}")], "docs/live.md has the reasons."),
    ("Cost of the agents", "percentunit", "lines", 8,
     [("max(rate(tacet_agent_look_seconds_total[$__rate_interval]))", "looking, dearest node"),
      ("max(rate(tacet_agent_scrape_seconds_total[$__rate_interval]))", "answering, costliest node")], "Share of one core."),
    ("Rows to ClickHouse", "rowsps", "lines", 12,
     [("sum by (outcome) (rate(tacet_history_operations_total[$__rate_interval]))", "{{outcome}}")], "Only for agents with --clickhouse."),
    ("Queue to ClickHouse", "short", "lines", 12, [("topk(5, tacet_history_queue_operations)", "{{instance}}")],
     "A full queue drops; the job never waits for it."),
]

JOB_PANELS = [
    ("Ranks", "short", "stat", 4, [(f"count(tacet_operations_in_flight{{{JOB}}})", "")], "Processes that run."),
    ("Operations", "ops", "stat", 5, [(f"sum(rate(tacet_rank_operations_total{{{JOB}}}[$__rate_interval]))", "")], "Finished operations, all ranks."),
    ("Bus bandwidth", "Bps", "stat", 5, [(bus_bandwidth("job_id"), "")], "Mean."),
    ("Oldest operation", "s", "stat", 5, [(f"max(tacet_oldest_operation_age_seconds{{{JOB}}})", "")], "In flight."),
    ("May hang", "short", "alarm", 5, [(f"max(tacet_hang_suspected{{{JOB}}})", "")], "1: an operation makes no progress."),
    ("Duration by operation, median", "s", "lines", 12, [(duration(0.5), "{{operation}}")], "On the GPU, or as the host saw it."),
    ("Duration by operation, 99th percentile", "s", "lines", 12, [(duration(0.99), "{{operation}}")], "Steps that wait for a peer show here first."),
    ("Duration", "s", "heatmap", 12,
     [(f"sum by (le) (increase(tacet_operation_duration_seconds_bucket{{{JOB}}}[$__rate_interval]))", "{{le}}")], "All operations."),
    ("Bus bandwidth by operation and size", "Bps", "lines", 12, [(bus_bandwidth("operation, size"), "{{operation}} {{size}}")],
     "size is the upper bound of the whole operation's bytes."),
    ("Bus bandwidth relative to the past week", "percentunit", "lines", 12,
     [(f"tacet:bus_bandwidth:mean5m{{{JOB}}} / tacet:bus_bandwidth:mean7d{{{JOB}}}", "{{group}} {{operation}} {{size}}")],
     "1 is as ever; from the recording rules."),
    ("Bytes by group", "Bps", "lines", 12, [(f"sum by (group) (rate(tacet_operation_bytes_total{{{JOB}}}[$__rate_interval]))", "{{group}}")],
     "Of finished operations."),
    ("Spread between ranks", "s", "lines", 12,
     [(f"max by (job_id, uid) ({SECONDS_OF_ALL})", "rank that waits most"), (f"quantile by (job_id, uid) (0.5, {SECONDS_OF_ALL})", "median rank"),
      (f"min by (job_id, uid) ({SECONDS_OF_ALL})", "rank that waits least")],
     "Mean time of an operation. A wide band means that a rank arrives late: the one that waits least."),
    ("Network steps wait for", "percentunit", "lines", 12,
     [(f"sum by (cause) (rate(tacet_network_wait_seconds_total{{{JOB}}}[$__rate_interval]))", "{{cause}}")],
     "own_gpu: this GPU; peer_credit: the receiver has no room; network: on the wire; data: the sender."),
    ("Operations in flight", "short", "lines", 12,
     [(f"max(tacet_operations_in_flight{{{JOB}}})", "most of a rank"), (f"min(tacet_operations_in_flight{{{JOB}}})", "fewest of a rank")],
     "Issued and not yet finished."),
    ("Inspector's bus bandwidth", "none", "lines", 12,
     [('avg by (collective, message_size) (nccl_bus_bandwidth_gbs{slurm_job_id=~"$job"})', "{{collective}} {{message_size}}")],
     "GB/s, from the plugin's text files (TACET_PROM_DIR) through node_exporter."),
]

RANK_PANELS = [
    ("Mean time of an operation", "s", "lines", 24,
     [(SECONDS_OF_RANK, "rank {{rank}}"), (f"min by (job_id, uid) ({SECONDS_OF_ALL})", "least of all ranks"),
      (f"quantile by (job_id, uid) (0.5, {SECONDS_OF_ALL})", "median of all ranks"), (f"max by (job_id, uid) ({SECONDS_OF_ALL})", "most of all ranks")],
     "A rank below all others arrives late and makes them wait; one above them waits, or its link is slow."),
    ("Ranks that wait least: the others wait for them", "s", "bars", 12, [(f"bottomk(10, {SECONDS_OF_ALL})", RANK_NAME)],
     "Lowest mean time of an operation."),
    ("Ranks that wait most", "s", "bars", 12, [(f"topk(10, {SECONDS_OF_ALL})", RANK_NAME)], "Highest mean time of an operation."),
    ("Against the median of the peers", "percentunit", "lines", 12,
     [(f"({SECONDS_OF_RANK}) / on (job_id, uid) group_left () quantile by (job_id, uid) (0.5, {SECONDS_OF_ALL})", "rank {{rank}}")],
     "1 is like the others."),
    ("Time by operation", "percentunit", "lines", 12,
     [(f"sum by (operation) (rate(tacet_rank_operation_seconds_total{{{RANK}}}[$__rate_interval]))", "{{operation}}")], "Of this rank."),
    ("Operations", "ops", "lines", 8,
     [(f"sum by (rank) (rate(tacet_rank_operations_total{{{RANK}}}[$__rate_interval]))", "rank {{rank}}")], "Seen to end."),
    ("Bytes", "Bps", "lines", 8, [(f"sum by (rank) (rate(tacet_rank_operation_bytes_total{{{RANK}}}[$__rate_interval]))", "rank {{rank}}")],
     "Of finished operations."),
    ("Operations in flight", "short", "lines", 8, [(f"tacet_operations_in_flight{{{RANK}}}", "rank {{rank}}")], "Issued and not yet finished."),
    ("This rank's network steps wait for", "percentunit", "lines", 12,
     [(f"sum by (cause) (rate(tacet_network_wait_seconds_total{{{RANK}}}[$__rate_interval]))", "{{cause}}")], "Summed over steps."),
    ("Peers' network steps wait for, mean", "percentunit", "lines", 12,
     [(f"sum by (cause) (rate(tacet_network_wait_seconds_total{{{JOB}}}[$__rate_interval])) / ignoring (cause) group_left ()"
       f" count(tacet_operations_in_flight{{{JOB}}})", "{{cause}}")], "Compare with the panel on the left."),
    ("Heartbeat", "s", "lines", 12,
     [(f"tacet_heartbeat_age_seconds{{{RANK}}}", "rank {{rank}}"), (f"max by (job_id, uid) (tacet_heartbeat_age_seconds{{{JOB}}})", "oldest of all")],
     "An old heartbeat means a stopped process or a stalled host."),
    ("Lost events", "cps", "lines", 12,
     [(f"sum by (reason) (rate(tacet_events_dropped_total{{{RANK}}}[$__rate_interval]))", "{{reason}}")], "Of this rank."),
]

WAITED_FOR = (
    f"max by (job_id, uid) (tacet_operations_issued_total{{{JOB}}}) - on (job_id, uid) group_right () tacet_operations_issued_total{{{JOB}}}"
)
HANG = [
    ("May hang", "short", "alarm", 6, [(f"max(tacet_hang_suspected{{{JOB}}})", "")], "docs/live.md has the rule."),
    ("No progress for", "s", "alarm", 6, [(f"max(tacet_hang_still_seconds{{{JOB}}})", "")], "In the group that hangs."),
    ("Ranks that wait", "short", "stat", 6, [(f"count(tacet_oldest_operation_age_seconds{{{JOB}}} > 2)", "")],
     "Their oldest operation is older than two seconds."),
    ("Ranks with nothing in flight", "short", "stat", 6, [(f"count(tacet_operations_in_flight{{{JOB}}} == 0)", "")],
     "While others wait, these are the ones to look at."),
    ("Who is waited for: operations behind the rank that issued most", "short", "bars", 12, [(f"topk(10, ({WAITED_FOR}) > 0)", RANK_NAME)],
     "A rank that is behind has not issued what its peers wait in. Ranks with different roles (pipeline stages) differ anyway: compare with the time before."),
    ("Nothing in flight while the job hangs", "short", "table", 12,
     [(f"tacet_operations_in_flight{{{JOB}}} == 0 and on (job_id, uid) (max by (job_id, uid) (tacet_hang_suspected{{{JOB}}}) == 1)", "")],
     "Stuck outside of a collective: take its stack, for instance with py-spy dump --pid PID on that instance."),
    ("Oldest operations in flight", "s", "bars", 12, [(f"topk(10, tacet_oldest_operation_age_seconds{{{JOB}}})", RANK_NAME)], "Usually victims."),
    ("Youngest operations in flight", "s", "bars", 12, [(f"bottomk(10, tacet_oldest_operation_age_seconds{{{JOB}}})", RANK_NAME)],
     "The culprit arrived last, or has not arrived."),
    ("Age of the oldest operation by rank", "s", "lines", 12, [(f"topk(50, tacet_oldest_operation_age_seconds{{{JOB}}})", "rank {{rank}}")],
     "Ranks whose lines rise together wait for one whose line does not."),
    ("Operations in flight by rank", "short", "lines", 12, [(f"topk(50, tacet_operations_in_flight{{{JOB}}})", "rank {{rank}}")], "Issued and not yet finished."),
    ("Network steps wait now, longest by cause", "s", "lines", 12, [(f"max by (cause) (tacet_flow_wait_seconds{{{JOB}}})", "{{cause}}")],
     "own_gpu: this GPU; peer_credit: the receiver has no room; network: on the wire; data: the sender."),
    ("Network steps wait now, by rank and cause", "s", "bars", 12, [(f"topk(10, tacet_flow_wait_seconds{{{JOB}}})", "rank {{rank}}: {{cause}}")],
     "Long waits for data point to a neighbor."),
    ("Heartbeats, oldest first", "s", "bars", 12, [(f"topk(10, tacet_heartbeat_age_seconds{{{JOB}}})", RANK_NAME)],
     "An old heartbeat means that the process is stopped, not only stuck."),
    ("Processes by state and node", "short", "table", 12, [('tacet_processes{state=~"stopped|uninterruptible|zombie|gone"}', "")],
     "What the kernel says."),
    ("Verdict of tacet serve", "short", "table", 12, [(f"tacet_job_verdict_info{{{JOB}}}", "")],
     "Only where a server runs. The report itself: /api/v1/verdict of the server."),
    ("Alerts of this job", "short", "table", 12, [(f'ALERTS{{alertname=~"Tacet.+", {JOB}}}', "")], "docs/live.md says what to do."),
]

DASHBOARDS = {
    "cluster": ("Tacet: cluster", CLUSTER, ["job"]),
    "job": ("Tacet: job", JOB_PANELS, ["job"]),
    "rank": ("Tacet: rank against its peers", RANK_PANELS, ["job", "rank"]),
    "hang": ("Tacet: hang", HANG, ["job"]),
}
VARIABLES = {
    "job": ("Job", "label_values(tacet_hang_suspected, job_id)"),
    "rank": ("Rank", 'label_values(tacet_operations_in_flight{job_id=~"$job"}, rank)'),
}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRAFANA_KIND = {"lines": "timeseries", "alarm": "stat", "bars": "bargauge"}
HEIGHT = {"stat": 4, "alarm": 4}


def variables(names):
    made = [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}, "hide": 0}]
    for name in names:
        label, query = VARIABLES[name]
        made.append({
            "name": name, "label": label, "type": "query", "datasource": SOURCE, "definition": query,
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 3, "multi": True,
            "includeAll": True, "allValue": ".+", "current": {"text": ["All"], "value": ["$__all"]},
        })
    return made


def options(kind):
    if kind in ("stat", "alarm"):
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background" if kind == "alarm" else "value", "graphMode": "area"}
    if kind == "bars":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "orientation": "horizontal", "displayMode": "basic"}
    if kind == "heatmap":
        return {"calculate": False, "yAxis": {"unit": "s"}, "color": {"mode": "scheme", "scheme": "Oranges"}}
    if kind == "table":
        return {"showHeader": True}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}


def panel(number, description, x, y):
    title, unit, kind, width, queries, tells = description
    now = kind in ("table", "bars", "stat", "alarm")
    targets = []
    for i, (query, legend) in enumerate(queries):
        target = {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto"}
        target.update({"instant": True, "range": False} if now else {"instant": False, "range": True})
        if kind in ("table", "heatmap"):
            target["format"] = kind
        targets.append(target)
    steps = [{"color": "green", "value": None}] + ([{"color": "red", "value": 1}] if kind == "alarm" else [])
    return {
        "id": number, "type": GRAFANA_KIND.get(kind, kind), "title": title, "description": tells, "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHT.get(kind, 8)},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}, "overrides": []},
        "options": options(kind), "targets": targets,
    }


def dashboard(name):
    title, descriptions, names = DASHBOARDS[name]
    panels, x, y, height = [], 0, 0, 0
    for number, description in enumerate(descriptions, 1):
        if x + description[3] > 24:
            x, y, height = 0, y + height, 0
        panels.append(panel(number, description, x, y))
        x, height = x + description[3], max(height, panels[-1]["gridPos"]["h"])
    links = [{"type": "dashboards", "title": "Tacet", "tags": ["tacet"], "asDropdown": True, "includeVars": True, "keepTime": True}]
    return {
        "uid": f"tacet-{name}", "title": title, "tags": ["tacet"], "schemaVersion": 39, "version": 1, "editable": True,
        "timezone": "browser", "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "graphTooltip": 1, "links": links,
        "templating": {"list": variables(names)}, "annotations": {"list": []}, "panels": panels,
    }


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name in DASHBOARDS:
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as out:
            json.dump(dashboard(name), out, indent=1)
            out.write("\n")


main()
