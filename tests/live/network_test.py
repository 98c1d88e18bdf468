#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""network_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: a node and a stranger, each in a network namespace of its own, with a cable
between them. What the stranger reaches of an agent, and what the agent refuses to do for it."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from live_stage import Stage, need_program, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
NODE, STRANGER = "10.77.0.1", "10.77.0.2"
TOKEN = "c0ffee" * 8
ASK = """
import http.client, json, ssl, sys
address, scheme, path, token = sys.argv[1:5]
context = ssl._create_unverified_context()
kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
try:
    connection = kind(address, timeout=20, **({"context": context} if scheme == "https" else {}))
    connection.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
    answer = connection.getresponse()
    print(json.dumps([answer.status, answer.read().decode(errors="replace")]))
except OSError as error:
    print(json.dumps([0, type(error).__name__]))
"""


class Namespace:
    """A process that does nothing but hold a network namespace."""

    def __init__(self, stage, name):
        self.process = stage.start(name, ["unshare", "--net", "sleep", "1000"])
        own = os.readlink("/proc/self/ns/net")
        wait_for("the namespace " + name, lambda: os.readlink(f"/proc/{self.process.pid}/ns/net") != own)

    def command(self, *words):
        return ["nsenter", "--target", str(self.process.pid), "--net", *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60, check=False)


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("ip", "unshare", "nsenter"):
            if shutil.which(tool) is None:
                raise unittest.SkipTest(f"{tool} is missing: install the packages iproute2 and util-linux")
        if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("may not make network namespaces here")
        need_program("openssl", "openssl")
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        cls.node, cls.stranger = Namespace(cls.stage, "node"), Namespace(cls.stage, "stranger")
        cable = cls.node.run("ip", "link", "add", "cable0", "type", "veth", "peer", "name", "cable1", "netns", str(cls.stranger.process.pid))
        if cable.returncode != 0:
            raise unittest.SkipTest("may not join network namespaces here: " + cable.stderr.strip())
        for space, end, address in ((cls.node, "cable0", NODE), (cls.stranger, "cable1", STRANGER)):
            for words in (("address", "add", address + "/24", "dev", end), ("link", "set", end, "up"), ("link", "set", "lo", "up")):
                done = space.run("ip", *words)
                assert done.returncode == 0, done.stderr
        cls.stage.start_job(HOST, PLUGIN, "4711", "--ranks", "2", "--steps", "1000000", "--seconds", "300", "--pause-us", "20000")

    def start(self, name, *options):
        """An agent in the node's namespace; its port."""
        process = self.stage.start(name, self.node.command(TACET, "agent", "--boxes", self.stage.path("boxes"), "--ras", "off", *options))

        def port():
            assert process.poll() is None, self.stage.log_of(name)
            said = re.search(r"https?://\S+:(\d+)\n", self.stage.log_of(name))
            return said and said[1]

        return wait_for("the agent's address", port)

    def ask(self, space, address, path, scheme="http", token=""):
        done = space.run(sys.executable, "-c", ASK, address, scheme, path, token)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def sees_job(self, space, address, **more):
        return "4711" in self.ask(space, address, "/api/v1/state", **more)[1]

    def test_without_tls_and_users_it_does_not_listen_where_others_can_reach_it(self):
        for listen in (NODE + ":0", "0.0.0.0:0", "[::]:0"):
            for words in (["agent", "--boxes", self.stage.path("boxes")], ["serve", "--agents", "127.0.0.1:1"]):
                done = self.node.run(TACET, *words, "--listen", listen)
                self.assertEqual(done.returncode, 2, f"{words[0]} at {listen}: {done.stdout}{done.stderr}")
                self.assertRegex(done.stderr, "other hosts can reach")
                self.assertRegex(done.stderr, "--web-config")

    def test_on_loopback_it_serves_its_node_without_any_token_and_no_stranger(self):
        port = self.start("loopback", "--listen", "127.0.0.1:0")
        wait_for("the job", lambda: self.sees_job(self.node, "127.0.0.1:" + port))
        self.assertEqual(self.ask(self.stranger, f"{NODE}:{port}", "/healthz")[0], 0, "nobody listens there for a stranger")

    def test_a_stranger_gets_an_ok_and_nothing_else_without_a_token(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
             "/CN=tacet", "-addext", f"subjectAltName=IP:{NODE}", "-keyout", self.stage.path("tls.key"), "-out", self.stage.path("tls.crt")],
            check=True, capture_output=True)
        web = self.stage.write("web.yml", "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\nbearer_tokens_sha256:\n  ops: "
                               + hashlib.sha256(TOKEN.encode()).hexdigest() + "\noperators: [ops]\n")
        address = NODE + ":" + self.start("secured", "--listen", NODE + ":0", "--web-config", web)
        wait_for("the job", lambda: self.sees_job(self.stranger, address, scheme="https", token=TOKEN))
        status, text = self.ask(self.stranger, address, "/healthz", "https")
        self.assertEqual((status, text.strip()), (200, "ok"))
        for path in ("/", "/metrics", "/api/v1/state", "/api/v1/boxes", "/api/v1/ras"):
            self.assertEqual(self.ask(self.stranger, address, path, "https")[0], 401, path)
            self.assertEqual(self.ask(self.stranger, address, path, "https", "wrong")[0], 401, path)
        self.assertEqual(self.ask(self.stranger, address, "/metrics", "http")[0], 0, "nothing is said in clear")

    def test_insecure_is_what_it_says(self):
        address = NODE + ":" + self.start("insecure", "--listen", NODE + ":0", "--insecure")
        wait_for("the job, for everybody", lambda: self.sees_job(self.stranger, address))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
