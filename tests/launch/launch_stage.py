# SPDX-License-Identifier: Apache-2.0
"""What the tests of `tacet run` share: a folder, a small stand-in for torch.distributed, and a job of several ranks."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap

# As a rank sees it: a collective is a meeting of all ranks in a folder. Who waits sits in a function of that file.
DISTRIBUTED = '''
import os
import time


def _meet(number):
    folder = os.environ["MEETING"]
    open(os.path.join(folder, "%d.%s" % (number, os.environ["RANK"])), "w").close()
    world = int(os.environ["WORLD_SIZE"])
    while sum(name.startswith("%d." % number) for name in os.listdir(folder)) < world:
        time.sleep(0.05)


def all_reduce(number):
    _meet(number)
'''

LAUNCHER = '''
import os, signal, subprocess, sys
world = int(sys.argv[1])
ranks = [subprocess.Popen([sys.executable] + sys.argv[2:], env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world)))
         for rank in range(world)]
def end(*_):
    for rank in ranks:
        rank.send_signal(signal.SIGCONT)
        rank.kill()
signal.signal(signal.SIGTERM, end)
codes = [rank.wait() for rank in ranks]
sys.exit(max(abs(code) for code in codes) & 127)
'''


class Stage:
    def __init__(self, tacet):
        self.tacet = tacet
        self.folder = tempfile.mkdtemp(prefix="tacet-launch-")
        self.write("torch/__init__.py", "")
        self.write("torch/distributed/__init__.py", "from torch.distributed.distributed_c10d import all_reduce\n")
        self.write("torch/distributed/distributed_c10d.py", DISTRIBUTED)
        self.write("launcher.py", LAUNCHER)
        os.makedirs(self.path("meeting"))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
        return path

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("NCCL_", "TORCH", "TACET_", "SLURM_", "RANK", "WORLD_SIZE"))}
        return {**kept, "MEETING": self.path("meeting"), "PYTHONPATH": self.folder, "ASAN_OPTIONS": "detect_leaks=0", **more}

    def command(self, *command, options=(), name="run"):
        return [self.tacet, "run", "--dir", self.path(name), *options, "--", *command]

    def run(self, *command, options=(), name="run", environment=None, timeout=120, **more):
        return subprocess.run(
            self.command(*command, options=options, name=name), capture_output=True, timeout=timeout, check=False,
            stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment(**(environment or {})), **more)

    def job(self, world, script):
        """The command of a job of `world` ranks that all run this script."""
        return [sys.executable, self.path("launcher.py"), str(world), self.write("train.py", script)]

    def read(self, *names):
        with open(self.path(*names), encoding="utf-8", errors="replace") as text:
            return text.read()

    def manifest(self, name="run"):
        return json.loads(self.read(name, "manifest.json"))

    def verdict(self, name="run"):
        return json.loads(self.read(name, "verdict.json"))["verdict"]

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
