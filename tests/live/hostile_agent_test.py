#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_agent_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: a server that asks one good agent and several that mean harm. One of
these speaks for a real job that hangs, and announces thousands of boxes of 64 MiB for it; the others never end, nest, drip, lead
elsewhere or talk nonsense. The server goes on, within its memory, and the good agent's job is told as ever."""
import json
import os
import socketserver
import sys
import threading
import time
import unittest

from live_stage import Stage, fetch, fetch_json, free_port, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
MOST_MB, BOXES, BOX_BYTES = 256, 1024, 64 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class HostileAgent(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True

    def __init__(self, play):
        self.play, self.asked, self.sent = play, 0, 0
        super().__init__(("127.0.0.1", 0), Talk)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"


class Talk(socketserver.StreamRequestHandler):
    timeout = 60

    def handle(self):
        try:
            path = self.rfile.readline(4096).split(b" ")[1].decode()
            while self.rfile.readline(4096).strip():
                pass
            self.server.asked += 1
            self.server.play(self, path)
        except (OSError, IndexError):
            pass  # the server has had enough

    def send(self, data):
        self.wfile.write(data)
        self.server.sent += len(data)


def endless(talk, _):
    talk.send(HEAD + b'\r\n{"boxes":[')
    while True:
        talk.send(b'{"name":"x"},' * 5000)


def endless_headers(talk, _):
    talk.send(HEAD)
    while True:
        talk.send(b"X-A: " + b"a" * 60000 + b"\r\n")


def nested(talk, _):
    talk.send(HEAD + b"\r\n" + b'{"a":' * 200000)


def drip(talk, _):
    for byte in HEAD * 100:
        talk.send(bytes([byte]))
        time.sleep(0.3)


def nonsense(talk, _):
    talk.send(bytes(range(256)) * 1000)


def lie_about_length(talk, _):
    talk.send(HEAD + b"Content-Length: 99999999999999\r\n\r\n{}")


def lead_elsewhere(talk, _):
    talk.send(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")


def peak_mb(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


class HostileAgents(unittest.TestCase):
    def setUp(self):
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        job = [HOST, "--plugin", PLUGIN, "--ranks", "4", "--network", "--steps", "1000000", "--seconds", "300", "--pause-us", "20000"]
        _, self.good = self.start_agent("good", "4711", job)
        _, self.real = self.start_agent("real", "666", [*job, "--fault", "stuck", "--fault-rank", "1", "--fault-step", "40"])

    def start_agent(self, name, job, command):
        boxes = self.stage.path("boxes-" + name)
        os.makedirs(boxes)
        self.stage.start("job-" + job, command, TACET_BOX_DIR=boxes, TACET_JOB=job, TACET_BOX_MB="1")
        return self.stage.start_agent(TACET, "--boxes", boxes, "--ras", "off", name="agent-" + name)

    def amplify(self, talk, path):
        """What the real agent says, with its boxes a thousand times and each of them enormous."""
        if path.startswith("/api/v1/state"):
            state = json.loads(fetch(self.real + path))
            told = state["boxes"]
            state["boxes"] = [{**told[i % len(told)], "name": f"{i}/" + told[i % len(told)]["name"], "bytes": BOX_BYTES}
                              for i in range(BOXES)] if told else []
            body = json.dumps(state).encode()
            talk.send(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        elif path.startswith("/api/v1/boxes/"):
            self.fetched += 1
            talk.send(HEAD + f"Content-Length: {BOX_BYTES}\r\n\r\n".encode())
            for _ in range(BOX_BYTES >> 20):
                talk.send(b"TACETBOX" * (1 << 17))
        else:
            talk.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def test_the_server_outlives_them_and_tells_of_the_good_agents_job(self):
        self.fetched = 0
        hostile = [HostileAgent(play) for play in (self.amplify, endless, endless_headers, nested, drip, nonsense, lie_about_length, lead_elsewhere)]
        self.addCleanup(lambda: [one.shutdown() for one in hostile])
        port = free_port()
        server = self.stage.start("serve", [
            TACET, "serve", "--agents", ",".join([self.good[7:], *(one.address() for one in hostile)]), "--listen", f"127.0.0.1:{port}"])
        url = f"http://127.0.0.1:{port}"

        def jobs():
            self.assertIsNone(server.poll(), self.stage.log_of("serve"))
            return {job["job"]: job for job in fetch_json(url + "/api/v1/jobs")["jobs"]}

        wait_for("the good agent's job", lambda: "4711" in jobs())
        wait_for("the hang of the other", lambda: jobs().get("666", {}).get("status") == "hang")
        wait_for("its boxes to be asked for", lambda: self.fetched > 0)
        wait_for("every agent to be asked", lambda: all(one.asked for one in hostile))
        self.assertEqual(jobs()["4711"]["status"], "healthy")
        self.assertTrue(fetch(url + "/healthz").startswith("ok"))
        print(f"peak memory {peak_mb(server):.0f} MB; {self.fetched} of {BOXES} boxes of {BOX_BYTES >> 20} MiB were asked for", file=sys.stderr)
        self.assertLess(peak_mb(server), MOST_MB)
        self.assertLess(self.fetched, BOXES // 2, "an agent whose answers are too large is not asked for all its boxes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
