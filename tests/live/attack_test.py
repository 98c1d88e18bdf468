#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attack_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: hostile clients on loopback against an agent and a server. Each kind of
attack alone, then ten thousand connections of all kinds: a good client is answered all the time, memory stays bounded, and no
box is forgotten. Prints what it measured."""
import glob
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
import unittest

from live_stage import Stage, fetch, fetch_json, free_port, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
SAMPLE = os.path.join(SOURCE, "src", "evidence", "black_box", "samples", "healthy_rank0.box")
MOST_MB = 256
BOXES = 40
CONNECTIONS = int(os.environ.get("TACET_ATTACKS", "10000"))

RANGES = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b",".join(b"0-" for _ in range(1300)) + b"\r\n\r\n"
ENDLESS = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: " + b"a" * 3000 + b"\r\n"
NEVER_READ = b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8
KINDS = {
    "idle": b"",
    "slow": b"G",
    "endless headers": ENDLESS,
    "ranges": RANGES,
    "never reads": NEVER_READ,
    "garbage": bytes(range(256)) * 4,
    "TLS to plain": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200,
}


def memory_mb(process, what="VmHWM"):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith(what):
                return int(line.split()[1]) / 1024
    return 0


class Hostile:
    """Connections that are opened, fed and never read."""

    def __init__(self, port):
        self.port, self.sockets = port, []

    def open(self, first):
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect_ex(("127.0.0.1", self.port))
        self.sockets.append((one, first))

    def feed(self, more=False):
        for one, first in self.sockets:
            try:
                one.send(b"X-B: b\r\n" if more and first == ENDLESS else b"E" if more else first)
            except OSError:
                pass  # refused, reset or full: what they deserve

    def close(self):
        for one, _ in self.sockets:
            one.close()
        self.sockets = []


class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        cls.connections = min(CONNECTIONS, most - 500)
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        for i in range(BOXES):
            os.makedirs(cls.stage.path("boxes", f"job{i}"))
            shutil.copy(SAMPLE, cls.stage.path("boxes", f"job{i}", "node-1.box"))
        cls.agent, cls.agent_url = cls.stage.start_agent(TACET, "--keep", "0", "--interval", "250")
        port = free_port()
        cls.server = cls.stage.start("serve", [TACET, "serve", "--agents", cls.agent_url[7:], "--listen", f"127.0.0.1:{port}"])
        cls.server_url = f"http://127.0.0.1:{port}"
        wait_for("the server", lambda: fetch(cls.server_url + "/healthz").startswith("ok"))
        wait_for("the boxes", lambda: len(fetch_json(cls.agent_url + "/api/v1/boxes")["boxes"]) == BOXES)

    def targets(self):
        return (("agent", self.agent, self.agent_url), ("serve", self.server, self.server_url))

    def ask(self, url):
        """Seconds until a good client has its answer; it asks once, and waits as long as a kubelet would."""
        began = time.monotonic()
        self.assertTrue(fetch(url + "/healthz", timeout=10).startswith("ok"))
        return time.monotonic() - began

    def check(self, what, name, process, slowest):
        self.assertIsNone(process.poll(), f"{name} ended under {what}")
        peak = memory_mb(process)
        print(f"{what:18} {name:6} slowest /healthz {slowest * 1000:7.1f} ms, peak memory {peak:6.1f} MB", flush=True)
        self.assertLess(peak, MOST_MB, f"{name} under {what}")

    def test_a_each_attack_alone(self):
        for what, first in KINDS.items():
            for name, process, url in self.targets():
                with self.subTest(attack=what, target=name):
                    hostile = Hostile(int(url.rsplit(":", 1)[1]))
                    slowest = 0
                    for _ in range(3):
                        for _ in range(200):
                            hostile.open(first)
                        hostile.feed()
                        slowest = max(slowest, self.ask(url))
                        hostile.feed(more=True)
                    hostile.close()
                    self.check(what, name, process, slowest)

    def test_b_ten_thousand_of_all_kinds(self):
        kinds = list(KINDS.values())
        for name, process, url in self.targets():
            hostile = Hostile(int(url.rsplit(":", 1)[1]))
            slowest = 0
            for i in range(self.connections):
                hostile.open(kinds[i % len(kinds)])
                if i % 500 == 499:
                    hostile.feed()
                    slowest = max(slowest, self.ask(url))
            for _ in range(3):
                time.sleep(1.5)
                hostile.feed(more=True)
                slowest = max(slowest, self.ask(url))
            self.check(f"{self.connections} mixed", name, process, slowest)
            hostile.close()

    def test_c_no_box_was_forgotten(self):
        self.assertEqual(len(fetch_json(self.agent_url + "/api/v1/boxes")["boxes"]), BOXES)
        files = len(glob.glob(f"/proc/{self.agent.pid}/fd/*"))
        wait_for("connections to be given back", lambda: len(glob.glob(f"/proc/{self.agent.pid}/fd/*")) < BOXES + 60)
        print(f"agent: {files} open files after the attack")

    def test_d_an_agent_with_few_files_keeps_its_boxes(self):
        limited = ["prlimit", "--nofile=128", TACET, "agent", "--boxes", self.stage.path("boxes"), "--listen", "127.0.0.1:0",
                   "--keep", "0", "--interval", "250"]
        with subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as agent:
            url = agent.stdout.readline().rsplit(" ", 1)[1].strip()
            hostile = Hostile(int(url.rsplit(":", 1)[1]))
            for _ in range(500):
                hostile.open(b"")
            hostile.feed()
            for _ in range(8):  # several looks
                time.sleep(0.25)
                self.assertEqual(len(fetch_json(url + "/api/v1/boxes")["boxes"]), BOXES)
            hostile.close()
            agent.terminate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
