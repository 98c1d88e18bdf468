#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hang_test.py TACET: jobs that hang under `tacet run`, and jobs that only look as if they did."""
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from launch_stage import Stage

TACET = os.path.abspath(sys.argv[1])
QUICK = ["--hang-after", "6", "--no-native"]
HEAD = '''
import os, signal, sys, time
import torch.distributed as dist
RANK = int(os.environ["RANK"])
'''


class HangTest(unittest.TestCase):
    def setUp(self):
        self.stage = Stage(TACET)
        self.addCleanup(self.stage.close)

    def run_job(self, world, script, *options, **more):
        return self.stage.run(*self.stage.job(world, HEAD + script), options=[*QUICK, *options], **more)


class Hangs(HangTest):
    STUCK = '''
def load_next_batch():
    while True:
        time.sleep(1)

for step in range(5):
    dist.all_reduce(step)
    print("step", step, flush=True)
if RANK == 2:
    load_next_batch()
dist.all_reduce(5)
'''

    def test_a_rank_that_is_stuck_is_named_with_its_line_and_the_job_is_ended(self):
        done = self.run_job(4, self.STUCK, "--on-hang", "kill")
        self.assertNotEqual(done.returncode, 0)
        verdict = self.stage.verdict()
        self.assertEqual((verdict["status"], verdict["cause"], verdict["ranks"]), ("hang", "rank-stuck-on-host", [2]), verdict)
        self.assertIn(b"load_next_batch", done.stderr)
        stack = next(name for name in os.listdir(self.stage.path("run", "hang-1")) if name.startswith("stack_rank_2_"))
        self.assertEqual(self.stage.read("run", "hang-1", stack).count("in load_next_batch"), 2)  # two looks
        self.assertEqual(self.stage.manifest()["hangs"][0]["folder"], "hang-1")
        # The same from the files alone, later.
        later = subprocess.run([TACET, "diagnose", "-f", "json", self.stage.path("run")], capture_output=True, check=False)
        again = json.loads(later.stdout)["verdict"]
        self.assertEqual((again["status"], again["ranks"]), ("hang", [2]))

    # The fake group has no watchdog: rank 0 prints what PyTorch's would, and lives on as it does while it writes records.
    BUSY = '''
def resample():
    while True:
        sum(range(1000))

for step in range(5):
    dist.all_reduce(step)
    print("step", step, flush=True)
if RANK == 2:
    resample()
if RANK == 0:
    import threading
    def give_up():
        time.sleep(4)
        print("[rank0]:[E1116 19:20:01.271913268 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective operation "
              "timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=4000) ran for 4012 "
              "milliseconds before timing out.", flush=True)
    threading.Thread(target=give_up, daemon=True).start()
dist.all_reduce(5)
'''

    def test_a_busy_rank_is_captured_as_soon_as_pytorch_gives_up_waiting_for_it(self):
        done = self.run_job(4, self.BUSY, "--on-hang", "kill")
        self.assertNotEqual(done.returncode, 0)
        verdict = self.stage.verdict()
        self.assertEqual((verdict["status"], verdict["cause"], verdict["ranks"]), ("hang", "rank-stuck-on-host", [2]), verdict)
        self.assertIn(b"resample", done.stderr)
        self.assertEqual(self.stage.manifest()["hangs"][0]["folder"], "hang-1")

    def test_a_stopped_rank_is_named(self):
        self.run_job(3, '''
for step in range(5):
    dist.all_reduce(step)
if RANK == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
dist.all_reduce(5)
''', "--on-hang", "kill")
        verdict = self.stage.verdict()
        self.assertEqual((verdict["status"], verdict["cause"], verdict["ranks"]), ("hang", "rank-frozen", [1]), verdict)

    def test_a_webhook_and_a_command_are_told(self):
        told = []

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        note = self.stage.path("note")
        self.run_job(3, self.STUCK, "--webhook", f"http://127.0.0.1:{server.server_port}/hook?x=1", "--on-hang",
                     f'echo "$TACET_CAUSE" > {note}; kill -TERM $TACET_JOB_PID')
        self.assertEqual((told[0]["status"], told[0]["ranks"]), ("hang", [2]))
        self.assertIn("load_next_batch", told[0]["text"])
        self.assertEqual(self.stage.read("note").strip(), "rank-stuck-on-host")


class LookAlikes(HangTest):
    """None of these may be reported, though nothing is printed for far longer than --hang-after."""

    def check_silent(self, world, script):
        done = self.run_job(world, script, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(self.stage.manifest()["hangs"], [])

    def test_one_evaluates_and_the_others_wait(self):
        self.check_silent(3, '''
dist.all_reduce(0)
if RANK == 0:
    until = time.monotonic() + 14
    while time.monotonic() < until:
        sum(range(10000))
dist.all_reduce(1)
''')

    def test_all_pause(self):
        self.check_silent(3, '''
dist.all_reduce(0)
time.sleep(14)
dist.all_reduce(1)
''')

    def test_one_reads_slowly_and_the_others_wait(self):
        self.check_silent(2, '''
dist.all_reduce(0)
if RANK == 1:
    until = time.monotonic() + 14
    while time.monotonic() < until:
        with open(__file__) as data:
            data.read()
        time.sleep(0.2)
dist.all_reduce(1)
''')


class Capture(HangTest):
    def test_a_process_that_was_not_started_by_us_is_captured(self):
        script = self.stage.write("alone.py", "import time\ndef waits_here():\n    time.sleep(600)\nwaits_here()\n")
        process = subprocess.Popen([sys.executable, script], env=self.stage.environment(RANK="3", WORLD_SIZE="8"))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(0.5)
        out = self.stage.path("captured")
        done = subprocess.run([TACET, "capture", "--pid", str(process.pid), "-o", out], capture_output=True, check=False,
                              timeout=120, env=self.stage.environment())
        self.assertIn(done.returncode, (0, 1), done.stderr)
        names = os.listdir(out)
        self.assertIn(f"proc_rank_3_pid_{process.pid}.txt", names)
        watch = json.loads(self.stage.read("captured", "watch.json"))
        self.assertEqual([(one["rank"], one["state"]) for one in watch["processes"]], [(3, "running")])
        self.assertIsNone(process.poll())  # it lives on

    def test_a_process_that_does_not_exist_is_told(self):
        done = subprocess.run([TACET, "capture", "--pid", "999999999", "-o", self.stage.path("none")], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no process", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
