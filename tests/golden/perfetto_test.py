#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tacet profile --format perfetto, held to what ui.perfetto.dev's JSON importer asks for: perfetto_test.py TACET

Trace Event Format: every event has ph, pid, tid; slices ts and dur; slices of one track nest or stand apart, or they are
dropped; a flow has one start and one end, each inside a slice of its track; processes and tracks have names. Perfetto
itself is not needed.
"""
import collections, json, math, pathlib, subprocess, sys, tempfile

TACET = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
failures = 0


def check(condition, message):
    global failures
    if not condition:
        failures += 1
        if failures <= 20:
            print("FAILED:", message)


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    check(len(set(keys)) == len(keys), f"a key stands twice: {keys}")
    return dict(pairs)


def export(folder):
    with tempfile.TemporaryDirectory() as work:
        out = pathlib.Path(work) / "job.json"
        run = subprocess.run([TACET, "profile", "--format", "perfetto", "-o", str(out), str(folder)], capture_output=True)
        check(run.returncode == 0, f"{folder}: exit {run.returncode}: {run.stderr[-300:]}")
        return json.loads(out.read_text(encoding="utf-8"), parse_constant=refuse_constant, object_pairs_hook=no_duplicates)


def is_time(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def check_events(name, events):
    """Every event by its phase; returns the slices of each track and the flows."""
    slices, flows = collections.defaultdict(list), collections.defaultdict(dict)
    processes, tracks = {}, {}
    for event in events:
        phase, place = event.get("ph"), (event.get("pid"), event.get("tid"))
        check(all(isinstance(part, int) and 0 <= part < 2**31 for part in place) and place[0] > 0, f"{name}: {event}")
        check(isinstance(event.get("name"), str) and event["name"], f"{name}: no name: {event}")
        if phase == "M":
            if event["name"] == "process_name":
                processes[place[0]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                check(place not in tracks, f"{name}: named twice: {place}")
                tracks[place] = event["args"]["name"]
            else:
                check(isinstance(event["args"]["sort_index"], int), f"{name}: {event}")
        elif phase == "X":
            check(is_time(event.get("ts")) and is_time(event.get("dur")), f"{name}: {event}")
            slices[place].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000), event))
        elif phase in ("s", "f"):
            check(is_time(event.get("ts")) and "id" in event and event.get("cat"), f"{name}: {event}")
            check(phase == "s" or event.get("bp") == "e", f"{name}: {event}")
            check(phase not in flows[event["id"]], f"{name}: flow {event['id']} has two of {phase}")
            flows[event["id"]][phase] = (place, round(event["ts"] * 1000))
        else:
            check(False, f"{name}: phase {phase}")
    check(set(slices) <= set(tracks), f"{name}: tracks without name: {set(slices) - set(tracks)}")
    check({pid for pid, _ in tracks} == set(processes), f"{name}: processes without name")
    return slices, flows, processes, tracks


def check_nesting(name, slices):
    for place, track in slices.items():
        open_ends = []
        for start, end, event in sorted(track, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            check(not open_ends or end <= open_ends[-1], f"{name}: overlaps on {place}: {event}")
            open_ends.append(end)


def check_flows(name, slices, flows):
    for number, ends in flows.items():
        check(set(ends) == {"s", "f"}, f"{name}: flow {number} has only {set(ends)}")
        check(len({place[0] for place, _ in ends.values()}) == 2, f"{name}: flow {number} stays in one process")
        for place, ts in ends.values():
            check(any(start <= ts <= end for start, end, _ in slices[place]), f"{name}: flow {number} holds on to nothing")


def check_case(folder, ranks, least_flows):
    name = folder.name
    trace = export(folder)
    check(trace.get("displayTimeUnit") in ("ms", "ns"), f"{name}: displayTimeUnit")
    slices, flows, processes, tracks = check_events(name, trace["traceEvents"])
    check_nesting(name, slices)
    check_flows(name, slices, flows)
    check(sorted(processes.values()) == [f"rank {rank}" for rank in range(ranks)], f"{name}: {processes}")
    check(any("group" in track for track in tracks.values()), f"{name}: no group has a track")
    check(len(flows) >= least_flows, f"{name}: {len(flows)} flows")
    colours = collections.defaultdict(set)
    for track in slices.values():
        for _, _, event in track:
            if event["cat"] in ("wait", "transfer"):
                colours[event["cat"]].add(event["cname"])
                check(event["name"].endswith("(wait)") == (event["cat"] == "wait"), f"{name}: {event}")
    check(colours["transfer"] and not colours["wait"] & colours["transfer"], f"{name}: {dict(colours)}")
    check(min(start for track in slices.values() for start, _, _ in track) < 10**9, f"{name}: does not begin at 0")
    print(f"{name}: {sum(map(len, slices.values()))} slices on {len(slices)} tracks, {len(flows)} flows")


corpus = ROOT / "tests" / "corpus"
for case, least_flows in (("gpt_ddp_b25", 10), ("gpt_pp", 10), ("gpt_fsdp", 10), ("straggler_cpu", 10)):
    check_case(corpus / case, 4, least_flows)
check_case(ROOT / "tests/golden/rank_computes_longer_in_nsight_exports/input", 2, 18)
print("ok" if failures == 0 else f"{failures} failures")
sys.exit(failures > 0)
