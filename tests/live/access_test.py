#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""access_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: agent and server behind TLS, tokens and passwords, scraped by Debian's
Prometheus, and what they refuse."""
import base64
import ctypes
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

from live_stage import Stage, fetch_json, free_port, need_program, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
TOKEN, PASSWORD = "c0ffee" * 8, "correct horse"
PROMETHEUS = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: by-token
    scheme: https
    tls_config: {ca_file: %(ca)s}
    authorization: {credentials_file: %(token)s}
    static_configs: [{targets: ["%(agent)s"]}]
  - job_name: by-password
    scheme: https
    tls_config: {ca_file: %(ca)s}
    basic_auth: {username: prometheus, password: %(password)s}
    static_configs: [{targets: ["%(serve)s"]}]
  - job_name: without
    scheme: https
    tls_config: {ca_file: %(ca)s}
    authorization: {credentials: wrong}
    static_configs: [{targets: ["%(agent)s"]}]
"""


def bcrypt(password):
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return library.crypt(password.encode(), b"$2y$06$" + b"tacettacettacettacet.u").decode()


class Access(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_program("prometheus", "prometheus")
        need_program("openssl", "openssl")
        cls.stage = stage = Stage()
        cls.addClassCleanup(stage.close)
        cls.cert, cls.key = stage.path("tls.crt"), stage.path("tls.key")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=tacet", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", cls.key, "-out", cls.cert],
            check=True, capture_output=True)
        cls.token = stage.write("token", TOKEN + "\n")
        cls.web = stage.write("web.yml", f"""
tls_server_config:
  cert_file: tls.crt
  key_file: tls.key
basic_auth_users:
  prometheus: {bcrypt(PASSWORD)}
bearer_tokens_sha256:
  serve: {hashlib.sha256(TOKEN.encode()).hexdigest()}
  alice: {hashlib.sha256(b"alice's").hexdigest()}
operators: [prometheus, serve]
user_ids:
  alice: 64999
""")
        stage.start_job(HOST, PLUGIN, "4711", "--ranks", "2", "--steps", "1000000", "--pause-us", "20000", "--seconds", "600")
        agent, serve, cls.port = free_port(), free_port(), free_port()
        cls.agent, cls.serve = f"127.0.0.1:{agent}", f"127.0.0.1:{serve}"
        stage.start("agent", [TACET, "agent", "--boxes", stage.path("boxes"), "--listen", f"0.0.0.0:{agent}", "--web-config", cls.web,
                              "--socket", stage.path("agent.sock")])
        stage.start("serve", [TACET, "serve", "--agents", cls.agent, "--listen", f"0.0.0.0:{serve}", "--web-config", cls.web,
                              "--agent-ca", cls.cert, "--agent-token-file", cls.token])
        config = stage.write("prometheus.yml", PROMETHEUS % dict(
            ca=cls.cert, token=cls.token, password=PASSWORD, agent=cls.agent, serve=cls.serve))
        stage.start("prometheus", [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={stage.path('tsdb')}",
            f"--web.listen-address=127.0.0.1:{cls.port}", "--log.level=warn"])
        try:
            wait_for("the agent", lambda: cls.ask(cls.agent, "/api/v1/state", "Bearer " + TOKEN)[0] == 200)
            wait_for("the job", lambda: "4711" in cls.ask(cls.serve, "/api/v1/jobs", "Bearer " + TOKEN)[1])
        except AssertionError:
            stage.show_logs()
            raise

    @classmethod
    def ask(cls, where, path, authorization=None, **headers):
        context = ssl.create_default_context(cafile=cls.cert)
        host, port = where.split(":")
        connection = http.client.HTTPSConnection(host, int(port), timeout=20, context=context)
        if authorization:
            headers["Authorization"] = authorization
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
        connection.close()
        return answer.status, body

    def query(self, expression):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?query=" + urllib.parse.quote(expression)
        return fetch_json(url)["data"]["result"]

    def test_prometheus_scrapes_with_tls_and_token_or_password(self):
        wait_for("both to be scraped, and the stranger not", lambda: {
            (up["metric"]["job"], up["value"][1]) for up in self.query("up")} == {
                ("by-token", "1"), ("by-password", "1"), ("without", "0")})
        self.assertTrue(wait_for("samples", lambda: self.query('tacet_operations_in_flight{job_id="4711",job="by-token"}')))

    def test_names_see_what_is_theirs(self):
        basic = "Basic " + base64.b64encode(f"prometheus:{PASSWORD}".encode()).decode()
        self.assertIn("4711", self.ask(self.agent, "/metrics", basic)[1])
        status, text = self.ask(self.agent, "/metrics", "Bearer alice's")
        self.assertEqual(status, 200)
        self.assertNotIn("4711", text)
        for wrong in ("Bearer x", "Basic " + base64.b64encode(b"prometheus:no").decode(), "Basic ="):
            self.assertEqual(self.ask(self.agent, "/metrics", wrong)[0], 401, wrong)
        # Over loopback no token is needed, and the kernel says who asks; a stranger's page is told by its name.
        self.assertEqual(self.ask(self.agent, "/metrics")[0], 200)
        self.assertEqual(self.ask(self.agent, "/metrics", Host="evil.example")[0], 421)
        self.assertEqual(self.ask(self.agent, "/metrics", Origin="https://evil.example")[0], 403)

    def test_plain_http_is_not_answered(self):
        with self.assertRaises((OSError, http.client.HTTPException)):
            urllib.request.urlopen(f"http://{self.agent}/metrics", timeout=20)

    def test_the_unix_socket_knows_who_asks(self):
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(20)
            one.connect(self.stage.path("agent.sock"))
            one.sendall(b"GET /api/v1/state HTTP/1.0\r\n\r\n")
            answer = b""
            while piece := one.recv(65536):
                answer += piece
        state = json.loads(answer.split(b"\r\n\r\n", 1)[1])
        self.assertEqual({box.get("job") for box in state["boxes"]}, {"4711"})

    def refusal(self, *words):
        done = subprocess.run([TACET, *words], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_other_hosts_are_served_only_with_tls_and_users(self):
        said = self.refusal("agent", "--listen", "0.0.0.0:0", "--boxes", self.stage.path("boxes"))
        self.assertRegex(said, "other hosts can reach")
        self.assertRegex(said, "--web-config")
        plain = self.stage.write("plain.yml", "bearer_tokens_sha256:\n  a: " + "0" * 64 + "\n")
        self.assertRegex(self.refusal("serve", "--agents", "a", "--listen", "0.0.0.0:0", "--web-config", plain), "unencrypted")
        self.assertRegex(self.refusal("agent", "--web-config", self.stage.write("bad.yml", "basic_auth_users:\n  a: b\n")), "bcrypt")

    def test_a_server_that_does_not_trust_the_agent_says_so(self):
        port = free_port()
        self.stage.start("distrust", [TACET, "serve", "--agents", self.agent, "--listen", f"127.0.0.1:{port}", "--agent-tls"])
        error = wait_for("its word", lambda: fetch_json(f"http://127.0.0.1:{port}/api/v1/agents")["agents"][0]["error"])
        self.assertRegex(error, re.compile("certificate verify failed"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
