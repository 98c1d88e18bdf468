#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clickhouse_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR: an agent sends finished operations to Debian's clickhouse-server,
and to servers that are down, slow, of another shape or do not let it in. Skipped (77) where clickhouse-server is missing."""
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

from live_stage import Stage, fetch, free_port, wait_for

TACET, PLUGIN, HOST, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:5])
JOB_OPTIONS = ("--ranks", "3", "--network", "--mix", "mixed", "--seconds", "600")

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/server.txt</log><errorlog>{folder}/errors.txt</errorlog></logger>
  <listen_host>127.0.0.1</listen_host><http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
  <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>
  <users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_threads>1</max_threads></default></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
    <writer><password>a secret: %</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></writer>
  </users>
  <quotas><default></default></quotas>
</yandex>
"""


def metric(agent, name):
    for line in fetch(agent + "/metrics").splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(name + " is not served")


def outcome(agent, name):
    return metric(agent, f'tacet_history_operations_total{{outcome="{name}"}}')


class Sloth(http.server.BaseHTTPRequestHandler):
    """Reads the request and never answers."""

    def do_POST(self):
        self.server.asked.set()
        self.server.go_on.wait(60)

    def log_message(self, *_):
        pass


class Modern(http.server.BaseHTTPRequestHandler):
    """Answers as a server of today does, and remembers what it was asked."""

    def do_POST(self):
        statement = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["query"][0]
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((statement, body, self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"]))
        answer = b"24.8.4.13\n" if statement == "SELECT version()" else b"0\n" if statement.startswith("EXISTS") else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class ClickHouse(unittest.TestCase):
    def setUp(self):
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        self.addCleanup(self.show_logs_of_failure)

    def show_logs_of_failure(self):
        outcome_of_test = self._outcome.result
        if any(test is self for test, _ in outcome_of_test.failures + outcome_of_test.errors):
            self.stage.show_logs()

    def start_server(self, port=None):
        self.port = port or free_port()
        config = self.stage.write("config.xml", CONFIG.format(folder=self.stage.folder, http=self.port, tcp=free_port()))
        self.stage.write("users.xml", USERS)
        process = self.stage.start("clickhouse", ["clickhouse-server", f"--config-file={config}"])
        wait_for("the server", lambda: self.query("SELECT 1") == "1\n")
        return process

    def query(self, statement):
        return fetch(f"http://127.0.0.1:{self.port}/", data=statement.encode())

    def read_query(self, name, **changes):
        with open(os.path.join(SOURCE, "deploy", "clickhouse", name), encoding="utf-8") as file:
            text = file.read()
        for old, new in changes.values():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.query(text.rstrip().rstrip(";"))

    def run_job(self, job, *options):
        process = self.stage.start_job(HOST, PLUGIN, job, *JOB_OPTIONS, *options)
        self.assertEqual(process.wait(timeout=120), 0)

    def start_agent(self, url, *options, **environment):
        return self.stage.start_agent(TACET, "--interval", "100", "--clickhouse", url, *options, **environment)

    def test_every_operation_arrives_once_and_the_queries_answer(self):
        self.start_server()
        process, agent = self.start_agent(f"http://127.0.0.1:{self.port}", "--host", "node-a")
        self.run_job("77", "--steps", "300")
        wait_for("all operations", lambda: outcome(agent, "stored") == 900)
        self.assertEqual((outcome(agent, "refused"), outcome(agent, "queue_full"), metric(agent, "tacet_history_up")), (0, 0, 1))
        self.assertEqual(self.query("SELECT count(), uniqExact(pid, serial), uniqExact(rank) FROM tacet.operations"), "900\t900\t3\n")
        row = self.query(
            "SELECT job, host, group, group_size, min(seq), max(seq), min(duration_ns) >= 0, min(bytes) > 0, max(wait_data_ns) > 0,"
            " abs(toInt64(max(time)) - toInt64(now())) < 600 FROM tacet.operations GROUP BY job, host, group, group_size")
        self.assertEqual(row, "77\tnode-a\tdefault_pg\t3\t1\t300\t1\t1\t1\t1\n")
        week = self.read_query("bus_bandwidth_week.sql").splitlines()
        self.assertEqual({line.split("\t")[1] for line in week}, {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"})
        self.assertEqual(sum(int(line.split("\t")[3]) for line in week), 900)
        self.stage.end(process)
        # Another agent reads the same boxes again, as after a restart: rows of equal keys become one.
        _, agent = self.start_agent(f"http://127.0.0.1:{self.port}", "--host", "node-a", name="agent2")
        wait_for("all operations again", lambda: outcome(agent, "stored") == 900)
        self.query("OPTIMIZE TABLE tacet.operations FINAL")
        self.assertEqual(self.query("SELECT count() FROM tacet.operations"), "900\n")
        self.assertEqual(self.read_query("drop_old.sql"), "")
        self.query("INSERT INTO tacet.operations (time, job) VALUES ('2020-01-01 00:00:00', 'old')")
        for statement in self.read_query("drop_old.sql").splitlines():
            self.query(statement.rstrip(";"))
        self.assertEqual(self.query("SELECT count() FROM tacet.operations WHERE job = 'old'"), "0\n")

    def test_names_the_node_that_came_last_most_often(self):
        self.start_server()
        self.start_agent(f"http://127.0.0.1:{self.port}")
        wait_for("the table", lambda: self.query("EXISTS TABLE tacet.operations") == "1\n")
        rows = []
        for seq in range(30):
            late = "late" if seq % 3 else "other"
            for host in ("late", "other", "third"):
                rows.append(f"(now(), 'j', '{host}', '0x1', 'all_reduce', {seq}, {1000000 if host == late else 9000000})")
            rows.append(f"(now(), 'j', 'third', '0x1', 'send', {seq}, 1)")  # transfers have numbers of their own
        for host in ("late", "other", "third"):  # all come together: nobody is last
            rows.append(f"(now(), 'j', '{host}', '0x2', 'all_reduce', 1, {9000000 + len(host)})")
        self.query("INSERT INTO tacet.operations (time, job, host, comm, operation, seq, duration_ns) VALUES " + ",".join(rows))
        self.assertEqual(self.read_query("last_most_often.sql"), "late\t20\t8\t0.2\nother\t10\t8\t0.1\n")

    def test_a_server_that_comes_late_gets_what_was_kept_for_it(self):
        port = free_port()
        self.run_job("78", "--steps", "50")
        _, agent = self.start_agent(f"http://127.0.0.1:{port}/training")
        wait_for("rows in the queue", lambda: metric(agent, "tacet_history_queue_operations") == 150)
        self.assertIn("cannot connect", self.stage.log_of("agent"))
        self.assertEqual(fetch(agent + "/healthz"), "ok\n")
        self.start_server(port)
        wait_for("all operations", lambda: outcome(agent, "stored") == 150)
        self.assertEqual(self.query("SELECT count() FROM training.operations"), "150\n")
        self.assertIn("operations are stored", self.stage.log_of("agent"))

    def test_a_table_of_another_shape_is_told_and_its_rows_are_dropped(self):
        self.start_server()
        self.query("CREATE DATABASE tacet")
        self.query("CREATE TABLE tacet.operations (a UInt8) ENGINE = Memory")
        _, agent = self.start_agent(f"http://127.0.0.1:{self.port}")
        self.run_job("79", "--steps", "40")
        wait_for("refusals", lambda: outcome(agent, "refused") > 0)
        wait_for("the reason", lambda: "No such column" in self.stage.log_of("agent"))
        self.assertEqual((metric(agent, "tacet_history_up"), fetch(agent + "/healthz")), (0, "ok\n"))

    def test_a_wrong_password_is_told_and_a_right_one_works(self):
        self.start_server()
        process, agent = self.start_agent(f"http://writer:wrong@127.0.0.1:{self.port}")
        self.run_job("80", "--steps", "40")
        wait_for("rows in the queue", lambda: metric(agent, "tacet_history_queue_operations") == 120)
        wait_for("the reason", lambda: "assword" in self.stage.log_of("agent"))
        self.assertNotIn("wrong@", self.stage.log_of("agent"))
        self.assertEqual(outcome(agent, "refused"), 0)
        self.stage.end(process)
        _, agent = self.start_agent(f"http://writer@127.0.0.1:{self.port}", name="agent2", TACET_CLICKHOUSE_PASSWORD="a secret: %")
        wait_for("all operations", lambda: outcome(agent, "stored") == 120)

    def serve(self, server):
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def test_a_server_of_today_is_asked_over_tls_and_only_with_a_certificate_that_is_trusted(self):
        key, certificate = self.stage.path("key.pem"), self.stage.path("certificate.pem")
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Modern)
        server.asked = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.serve(server)
        url = f"https://writer:secret@localhost:{server.server_port}/training"
        process, _ = self.start_agent(url)
        wait_for("the reason", lambda: "retrying" in self.stage.log_of("agent"))
        self.assertEqual(server.asked, [])
        self.stage.end(process)
        _, agent = self.start_agent(url, name="agent2", SSL_CERT_FILE=certificate)
        self.run_job("82", "--steps", "20")
        wait_for("all operations", lambda: outcome(agent, "stored") == 60)
        statements = [asked[0] for asked in server.asked]
        self.assertEqual(statements[:3], ["SELECT version()", "EXISTS TABLE training.operations", "CREATE DATABASE IF NOT EXISTS training"])
        with open(os.path.join(SOURCE, "deploy", "clickhouse", "schema.sql"), encoding="utf-8") as file:
            self.assertIn(statements[3].strip().replace("training.", "tacet."), file.read())
        rows = [json.loads(line) for _, body, _, _ in server.asked[4:] for line in body.splitlines()]
        self.assertEqual(len(rows), 60)
        self.assertEqual({row["job"] for row in rows}, {"82"})
        self.assertEqual({asked[2:] for asked in server.asked}, {("writer", "secret")})

    def test_a_server_that_never_answers_holds_nobody_up(self):
        sloth = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sloth)
        sloth.asked, sloth.go_on = threading.Event(), threading.Event()
        self.serve(sloth)
        self.addCleanup(sloth.go_on.set)
        process, agent = self.start_agent(f"http://127.0.0.1:{sloth.server_port}")
        self.assertTrue(sloth.asked.wait(120))
        looks = metric(agent, "tacet_agent_looks_total")
        self.run_job("81", "--steps", "40")
        wait_for("looks meanwhile", lambda: metric(agent, "tacet_agent_looks_total") > looks + 5)
        wait_for("rows in the queue", lambda: metric(agent, "tacet_history_queue_operations") == 120)
        wait_for("the reason", lambda: "in time" in self.stage.log_of("agent") or "no answer" in self.stage.log_of("agent"))
        began = time.monotonic()
        self.assertEqual(self.stage.end(process), 0)
        self.assertLess(time.monotonic() - began, 60)


if __name__ == "__main__":
    if shutil.which("clickhouse-server") is None:
        print("skipped: clickhouse-server is not installed (scripts/bootstrap.sh test installs it where the package exists)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
