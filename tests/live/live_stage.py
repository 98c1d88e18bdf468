# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: a folder, free ports, processes that never outlive the test, and waiting for conditions."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# It stops the world through ptrace, which takes many seconds where that is emulated; unit tests check for leaks.
NO_LEAK_CHECK = "detect_leaks=0"
PATIENCE_S = 120  # for one condition, on a machine that has much else to do


def need_program(program, package):
    if shutil.which(program) is None:
        sys.exit(f"{program} is missing: install the package {package} (scripts/bootstrap.sh test does)")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, data=None, headers=None, timeout=20):
    request = urllib.request.Request(url, data=data, headers=headers or {})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read().decode()


def fetch_json(url):
    return json.loads(fetch(url))


def wait_for(what, condition, patience_s=PATIENCE_S):
    """Calls condition until it gives something true, which is returned. Servers that are not up yet are waited for."""
    until = time.monotonic() + patience_s
    last = None
    while time.monotonic() < until:
        try:
            last = condition()
            if last:
                return last
        except (OSError, ValueError) as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"waited {patience_s} s in vain for: {what} (last: {last})")


class Stage:
    """A folder and the processes that play in it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-live-")
        self.processes = []

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def log_of(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def start(self, name, command, **environment):
        with open(self.path(name + ".log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd=self.folder,
                env={**os.environ, "ASAN_OPTIONS": NO_LEAK_CHECK, **environment})
        self.processes.append(process)
        return process

    def start_agent(self, tacet, *options, name="agent", **environment):
        """The process and its address."""
        process = self.start(
            name, [tacet, "agent", "--boxes", self.path("boxes"), "--listen", "127.0.0.1:0", *options], **environment)

        def address():
            assert process.poll() is None, f"the agent ended: {self.log_of(name)}"
            said = re.search(r"watching .*, http://127\.0\.0\.1:(\d+)\n", self.log_of(name))
            return said and said[1]

        return process, "http://127.0.0.1:" + wait_for("the agent's address", address)

    def start_job(self, host, plugin, job, *options, **environment):
        """plugin_host, the stand-in for a job of several ranks, with its boxes in this stage."""
        return self.start(
            "job-" + job, [host, "--plugin", plugin, *options], TACET_BOX_DIR=self.path("boxes"), SLURM_JOB_ID=job,
            **environment)

    def end(self, process, how=signal.SIGTERM):
        if process.poll() is None:
            try:
                os.killpg(process.pid, how)
            except ProcessLookupError:
                pass
        return process.wait(timeout=PATIENCE_S)

    def show_logs(self):
        """For a person who reads why a test failed."""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                print(f"--- {name}\n{self.log_of(name[:-4])[-3000:]}", file=sys.stderr)

    def close(self):
        for process in reversed(self.processes):
            self.end(process, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
