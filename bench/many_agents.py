#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""many_agents.py TACET [AGENTS] [SECONDS]: one program plays many agents, one a port, for one tacet serve.

A twentieth of them are slow (3 s an answer) and a twentieth are not there. Prints what the server manages: how soon all
others are known, how often each is asked, and what that costs.
"""
import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

TACET = sys.argv[1]
AGENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
BOXES = 8
started = time.time_ns()
asked = [0] * AGENTS


def state_of(agent):
    step = (time.time_ns() - started) // 100_000_000  # a step takes 0.1 s everywhere
    boxes = []
    for local in range(BOXES):
        rank = agent * BOXES + local
        boxes.append({"name": f"big/node{agent}-{local}.box", "job": "big", "host": f"node{agent}", "rank": rank,
                      "world_size": AGENTS * BOXES, "pid": 1000 + local, "process": "running", "ended": False,
                      "suspected": False, "heartbeat_age_ns": 1000000, "heartbeat_interval_ns": 500000000,
                      "communicators": [{"id": "0x7", "name": "default_pg", "rank": rank, "size": AGENTS * BOXES,
                                         "issued": step + 1, "finished": step, "idle_ns": 1000, "live": True},
                                        {"id": hex(100 + agent), "name": "tp", "rank": local, "size": BOXES,
                                         "issued": step, "finished": step, "idle_ns": 1000, "live": True}],
                      "operations_total": 1,
                      "operations": [{"comm": "0x7", "kind": "all_reduce", "seq": step + 1, "bytes": 1 << 20,
                                      "age_ns": 1000000, "normal_ns": 5000000, "channels": 8, "channels_started": 8,
                                      "channels_finished": 0, "host_stage": "away", "tells_end": True,
                                      "progress": hex(step)}]})
    return json.dumps({"schema": "tacet.state.v1", "host": f"node{agent}", "time_wall_ns": time.time_ns(), "hangs": [],
                       "boxes": boxes}).encode()


async def answer(agent, reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        asked[agent] += 1
        if agent % 20 == 1:
            await asyncio.sleep(3)
        body = state_of(agent)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                     str(len(body)).encode() + b"\r\n\r\n" + body)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


def ask(address, path):
    return json.load(urllib.request.urlopen(f"http://{address}{path}", timeout=30))


def cost_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak / 1024


async def main():
    servers, ports = [], []
    for agent in range(AGENTS):
        server = await asyncio.start_server(lambda r, w, a=agent: answer(a, r, w), "127.0.0.1", 0, backlog=64)
        ports.append(server.sockets[0].getsockname()[1])
        if agent % 20 == 0:
            server.close()  # nobody listens there
        servers.append(server)
    there = sum(1 for agent in range(AGENTS) if agent % 20 != 0)
    serve = subprocess.Popen([TACET, "serve", "--listen", "0", "--agents", ",".join(f"127.0.0.1:{p}" for p in ports)],
                             stdout=subprocess.PIPE, text=True)
    try:
        line = await asyncio.to_thread(serve.stdout.readline)
        address = re.search(r"http://(\S+)", line).group(1)
        begin = time.monotonic()
        known = 0
        while known < there * 0.94 and time.monotonic() - begin < 60:
            known = (await asyncio.to_thread(ask, address, "/api/v1/agents"))["reachable"]
            await asyncio.sleep(0.2)
        print(f"{known} of {there} agents known after {time.monotonic() - begin:.1f} s")
        before, (cpu, _), clock = list(asked), cost_of(serve.pid), time.monotonic()
        await asyncio.sleep(SECONDS)
        took = time.monotonic() - clock
        rates = sorted((now - then) / took for i, (now, then) in enumerate(zip(asked, before)) if i % 20 > 1)
        cpu_after, peak = cost_of(serve.pid)
        begin = time.monotonic()
        verdict = (await asyncio.to_thread(ask, address, "/api/v1/verdict"))
        print(f"healthy agents are asked {rates[len(rates) // 2]:.2f} times a second (median), "
              f"the most neglected {rates[0]:.2f}; asked for: 1")
        print(f"serve: {(cpu_after - cpu) / took:.2f} cores, peak memory {peak:.0f} MiB, "
              f"verdict in {time.monotonic() - begin:.2f} s: {verdict['verdict']['status']}, {verdict['verdict']['headline']}")
        known = (await asyncio.to_thread(ask, address, "/api/v1/agents"))["reachable"]
        print(f"{known} of {there} agents known at the end")
    finally:
        serve.terminate()
        serve.wait()
    sys.stdout.flush()
    os._exit(0)  # answers that are still being slept over are of no interest


asyncio.run(main())
