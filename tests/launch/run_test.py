#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_test.py TACET: `tacet run` passes everything on: output, signals, exit status, and sets what it says."""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unittest

from launch_stage import Stage

TACET = os.path.abspath(sys.argv[1])
PATIENCE_S = 60


class RunTest(unittest.TestCase):
    def setUp(self):
        self.stage = Stage(TACET)
        self.addCleanup(self.stage.close)

    def python(self, text, **more):
        return self.stage.run(sys.executable, "-c", text, **more)

    def wait_for(self, condition):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = condition()
            if found:
                return found
            time.sleep(0.05)
        self.fail("waited in vain")


class Ends(RunTest):
    def test_the_exit_code_is_the_jobs(self):
        for number, code in enumerate((0, 1, 7, 255)):
            done = self.stage.run("sh", "-c", f"exit {code}", name=f"run{number}")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(self.stage.manifest(f"run{number}")["exit_code"], code)

    def test_a_job_that_a_signal_ended_ends_the_run_by_that_signal(self):
        for name in ("KILL", "TERM", "SEGV"):
            done = self.stage.run("sh", "-c", f"kill -{name} $$", name=name)
            self.assertEqual(done.returncode, -getattr(signal, "SIG" + name))
            shell = subprocess.run(["bash", "-c", '"$0" "$@"; echo $?', *self.stage.command(
                "sh", "-c", f"kill -{name} $$", name=name + "2")], capture_output=True, text=True, check=False)
            self.assertEqual(shell.stdout.split()[-1], str(128 + getattr(signal, "SIG" + name)))

    def diagnose(self, name):
        done = subprocess.run([TACET, "diagnose", "--json", self.stage.path(name)], capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout)

    def test_a_diagnosis_of_the_folder_says_what_the_run_said(self):
        for name, script in (("killed", "sleep 0.1; kill -KILL $$"), ("failed", "echo hi; exit 3")):
            self.stage.run("sh", "-c", script, name=name)
            told = self.stage.manifest(name)["verdict"]
            code, report = self.diagnose(name)
            verdict = report["verdict"]
            self.assertEqual((code, verdict["status"], verdict["headline"]), (1, "crash", told["headline"]))
            self.assertEqual(report["findings"][0]["evidence"][0]["excerpt"], "signal 9 (SIGKILL)" if name == "killed" else "exit code 3")
            cited = {one["file"] for finding in report["findings"] for one in finding["evidence"]}
            self.assertEqual(cited, {"manifest.json"})
            page = subprocess.run([TACET, "postmortem", self.stage.path(name)], capture_output=True, text=True, check=False)
            self.assertEqual(page.returncode, 0, page.stderr)
            self.assertIn(told["headline"], page.stdout)
            self.assertIn("## Reproducer", page.stdout)

    def test_a_run_that_ended_well_is_not_called_unknown(self):
        self.stage.run("sh", "-c", "echo ok", name="well")
        code, report = self.diagnose("well")
        self.assertEqual((code, report["verdict"]["status"]), (0, "healthy"), report["verdict"])
        page = subprocess.run([TACET, "postmortem", self.stage.path("well")], capture_output=True, text=True, check=False)
        self.assertEqual(page.returncode, 0, page.stderr)

    def test_an_own_answer_is_no_evidence(self):
        self.stage.run("sh", "-c", "exit 3", name="one")
        os.remove(os.path.join(self.stage.path("one"), "manifest.json"))
        code, report = self.diagnose("one")
        self.assertEqual((code, report["verdict"]["status"], report["findings"]), (2, "undetermined", []))

    def test_what_cannot_be_run_gives_the_codes_of_a_shell(self):
        done = self.stage.run("/no/such/program", name="a")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"cannot run '/no/such/program'", done.stderr)
        self.assertEqual(self.stage.run(self.stage.write("plain.txt", "x"), name="b").returncode, 126)
        self.assertEqual(subprocess.run([TACET, "run"], capture_output=True, check=False).returncode, 2)

    def test_a_job_that_ends_well_is_not_commented_on(self):
        done = self.stage.run("true", options=["--quiet"])
        self.assertEqual((done.stdout, done.stderr), (b"", b""))
        self.assertIsNone(self.stage.manifest()["verdict"])

    def test_a_crash_is_diagnosed_at_the_end(self):
        done = self.stage.run(*self.stage.job(2, '''
            import os
            if os.environ["RANK"] == "1":
                raise ValueError("loss is not finite at step 17")
            '''))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"ValueError", done.stderr)
        self.assertEqual(self.stage.verdict()["status"], "crash")
        self.assertIn("loss is not finite", self.stage.read("run", "verdict.json"))
        self.assertTrue(self.stage.read("run", "report.html").startswith("<!"))


    def test_an_end_that_nothing_explains_is_still_a_crash(self):
        self.stage.run("sh", "-c", "exit 9")
        self.assertEqual(self.stage.verdict()["status"], "crash")
        self.assertIn("exit code 9", self.stage.verdict()["headline"])


class Output(RunTest):
    def test_both_streams_arrive_as_they_are(self):
        text = b"a\r50%\rb\x00\xff\n\n no newline"
        done = self.python(f"import sys; sys.stdout.buffer.write({text!r}); sys.stderr.buffer.write(b'to error\\n')",
                           options=["--quiet"])
        self.assertEqual(done.stdout, text)
        self.assertEqual(done.stderr, b"to error\n")
        log = self.stage.read("run", "output.log").splitlines()
        self.assertTrue(any(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stderr F to error$", line) for line in log), log)

    def test_streams_that_are_one_keep_their_order(self):
        script = "import sys\nfor i in range(500):\n print(i, file=sys.stderr if i % 2 else sys.stdout, flush=True)"
        done = subprocess.run(self.stage.command(sys.executable, "-c", script, options=["--quiet"]), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.stage.environment())
        self.assertEqual(done.stdout.split(), [str(i).encode() for i in range(500)])

    def test_many_lines_are_neither_delayed_nor_lost(self):
        """10,000 lines a second for two seconds, each with the time at which it was written."""
        script = ("import time\nbegan=time.monotonic()\nfor i in range(20000):\n"
                  " print(i, '%.6f' % time.monotonic(), 'x'*80, flush=True)\n"
                  " ahead=i/10000-(time.monotonic()-began)\n if ahead>0.002: time.sleep(ahead)")
        process = subprocess.Popen(self.stage.command(sys.executable, "-c", script, options=["--quiet"]),
                                   stdout=subprocess.PIPE, env=self.stage.environment())
        late = []
        for expected, line in enumerate(process.stdout):
            number, written, _ = line.split()
            self.assertEqual(int(number), expected)
            late.append(time.monotonic() - float(written))
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(len(late), 20000)
        # Not a measure of speed: a line held back until the end would be seconds old.
        self.assertLess(sorted(late)[len(late) // 2], 1.0)
        self.assertEqual(self.stage.read("run", "output.log").count(" stdout F "), 20000)

    def test_a_reader_that_leaves_ends_the_job_as_without_us(self):
        done = subprocess.run(["bash", "-c", '"$0" "$@" | head -n 1; echo ${PIPESTATUS[0]}', *self.stage.command(
            "yes", options=["--quiet"])], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(done.stdout.split(), ["y", str(128 + signal.SIGPIPE)])

    def test_on_a_terminal_the_job_has_one_too(self):
        script = ("import os,sys;print(os.isatty(1), os.isatty(2), os.get_terminal_size().columns);"
                  "sys.stdout.write('10%\\r20%\\r\\n')")
        seen = b""
        child, master = pty.fork()
        if child == 0:
            os.environ.update(self.stage.environment())
            os.execv(TACET, self.stage.command(sys.executable, "-c", script, options=["--quiet"]))
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(seen.startswith(b"True True "), seen)
        self.assertTrue(seen.endswith(b"10%\r20%\r\r\n"), seen)  # the terminal itself adds one return


class Signals(RunTest):
    SCRIPT = '''
import os, signal, sys, time
seen = []
def note(number, frame):
    seen.append(number)
    print("got", number, flush=True)
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, note)
print("ready", flush=True)
while signal.SIGTERM not in seen:
    time.sleep(0.05)
time.sleep(0.3)
print("all", *seen, flush=True)
sys.exit(5)
'''

    def start(self):
        process = subprocess.Popen(self.stage.command(sys.executable, "-c", self.SCRIPT, options=["--quiet"]),
                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                                   env=self.stage.environment())
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_signals_are_passed_on_once_each(self):
        process = self.start()
        for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f"got {int(number)}\n")
        self.assertEqual(process.stdout.readline(), "all 10 1 2 15\n")
        self.assertEqual(process.wait(timeout=PATIENCE_S), 5)

    def test_a_signal_to_the_whole_group_arrives_once(self):
        process = self.start()
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "got 15\n")
        self.assertEqual(process.stdout.readline(), "all 15\n")
        self.assertEqual(process.wait(timeout=PATIENCE_S), 5)
        self.assertIsNone(self.stage.manifest()["verdict"])  # somebody asked it to end

    def test_killing_the_run_itself_ends_the_job_in_order(self):
        note = self.stage.path("ended")
        script = ("import signal,sys,time\n"
                  f"def end(*_):\n open({note!r}, 'w').close()\n sys.exit(0)\n"
                  "signal.signal(signal.SIGTERM, end)\nprint('ready', flush=True)\ntime.sleep(600)")
        process = subprocess.Popen(self.stage.command(sys.executable, "-c", script, options=["--quiet"]),
                                   stdout=subprocess.PIPE, text=True, env=self.stage.environment())
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL)
        process.stdout.close()
        self.wait_for(lambda: os.path.exists(note))


class Settings(RunTest):
    def variables(self, *options, name="run", **environment):
        done = self.stage.run("env", options=["--quiet", *options], name=name, environment=environment)
        return dict(line.split("=", 1) for line in done.stdout.decode().splitlines() if "=" in line)

    def test_what_a_diagnosis_needs_is_set(self):
        seen = self.variables()
        self.assertEqual(seen["NCCL_DEBUG"], "INFO")
        self.assertIn("INIT", seen["NCCL_DEBUG_SUBSYS"].split(","))
        self.assertTrue(seen["NCCL_DEBUG_FILE"].startswith(self.stage.path("run") + "/"))
        self.assertIn("%p", seen["NCCL_DEBUG_FILE"])
        for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
            self.assertGreater(int(seen[name]), 0)
        for name in ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_ENABLE_TIMING",
                     "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE"):
            self.assertIn(name, seen)
        self.assertNotIn("TORCH_DISTRIBUTED_DEBUG", seen)
        self.assertTrue(seen["PYTHONPATH"].endswith(":" + self.stage.folder))

    def test_levels_differ(self):
        light, full = self.variables("--light", name="light"), self.variables("--full", name="full")
        self.assertNotIn("TORCH_NCCL_ENABLE_TIMING", light)
        self.assertEqual(full["TORCH_DISTRIBUTED_DEBUG"], "DETAIL")
        self.assertIn("COLL", full["NCCL_DEBUG_SUBSYS"].split(","))
        self.assertIn("INIT", light["NCCL_DEBUG_SUBSYS"].split(","))

    def test_what_the_user_has_set_stays(self):
        seen = self.variables(NCCL_DEBUG="WARN", TORCH_NCCL_TRACE_BUFFER_SIZE="77", NCCL_TOPO_DUMP_FILE="mine.xml")
        self.assertEqual((seen["NCCL_DEBUG"], seen["NCCL_TOPO_DUMP_FILE"]), ("WARN", "mine.xml"))
        self.assertEqual(seen["TORCH_NCCL_TRACE_BUFFER_SIZE"], "77")
        self.assertNotIn("TORCH_FR_BUFFER_SIZE", seen)  # it would win over the user's
        self.assertNotIn("NCCL_DEBUG_FILE", seen)  # the user's lines stay in the output
        self.assertEqual(self.stage.manifest()["environment"]["kept"]["NCCL_DEBUG"], "WARN")

    def test_of_two_names_of_a_setting_pytorch_sees_the_one_it_knows(self):
        os.makedirs(self.stage.path("torch"), exist_ok=True)
        asked = "import os; print(*sorted(name for name in os.environ if 'BUFFER_SIZE' in name))"
        for number, (version, wanted) in enumerate((("2.9.1+cu128", ["TORCH_FR_BUFFER_SIZE"]),
                                                    ("2.10.0", ["TORCH_FR_BUFFER_SIZE"]),
                                                    ("2.7.1", ["TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"]))):
            self.stage.write("torch/version.py", f"__all__ = ['__version__']\n__version__ = '{version}'\n")
            done = self.python(asked, options=["--quiet"], name=f"run{number}")
            self.assertEqual(done.stdout.decode().split(), wanted, version)

    def test_it_says_what_it_sets_and_what_that_costs(self):
        done = self.stage.run("true", environment={"NCCL_DEBUG": "WARN"})
        said = done.stderr.decode()
        self.assertIn("run folder " + self.stage.path("run"), said)
        self.assertIn("NCCL_DEBUG=WARN is kept", said)
        self.assertRegex(" ".join(said.split()), r"TORCH_NCCL_ENABLE_TIMING=1: .* \[.*\]")
        self.assertLessEqual(max(len(line) for line in said.splitlines()), 100)

    def test_the_manifest_has_command_times_and_no_secret(self):
        self.stage.run("true", "--api-key", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
                       environment={"NCCL_IB_HCA": "mlx5", "SLURM_JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhYmMifQ.c2lnbmF0dXJl"})
        manifest, text = self.stage.manifest(), self.stage.read("run", "manifest.json")
        self.assertEqual(manifest["command"][:2], ["true", "--api-key"])
        self.assertEqual(manifest["environment"]["inherited"]["NCCL_IB_HCA"], "mlx5")
        self.assertNotIn("hf_abcdef", text)
        self.assertNotIn("c2lnbmF0dXJl", text)
        self.assertLess(manifest["began"], manifest["ended"])
        self.assertEqual(len(manifest["hosts"]), 1)

    def test_the_users_own_sitecustomize_still_runs(self):
        self.stage.write("sitecustomize.py", "import builtins\nbuiltins.mine = 'yes'\n")
        done = self.python("import faulthandler, sitecustomize; print(mine, sitecustomize.__file__)", options=["--quiet"])
        self.assertEqual(done.stdout.decode().split(), ["yes", self.stage.path("sitecustomize.py")], done.stderr)

    def test_two_runs_at_once_have_two_folders(self):
        runs = [subprocess.Popen([TACET, "run", "-q", "--name", "twin", "--", "sleep", "0.5"], cwd=self.stage.folder,
                                 env=self.stage.environment()) for _ in range(4)]
        self.assertEqual([run.wait(timeout=PATIENCE_S) for run in runs], [0] * 4)
        self.assertEqual(len(os.listdir(self.stage.path("tacet-runs"))), 4)

    def test_a_profile_is_taken_of_the_chosen_steps(self):
        self.stage.write("torch/optim/__init__.py", "from torch.optim.optimizer import step\n")
        self.stage.write("torch/optim/optimizer.py", '''
            hooks = []
            def register_optimizer_step_post_hook(hook):
                hooks.append(hook)
            def step():
                for hook in hooks:
                    hook(None, (), {})
            ''')
        self.stage.write("torch/profiler.py", '''
            import torch.steps
            class profile:
                def start(self):
                    self.began = torch.steps.done
                def stop(self):
                    self.ended = torch.steps.done
                def export_chrome_trace(self, path):
                    open(path, "w").write("%d to %d" % (self.began, self.ended))
            ''')
        self.stage.write("torch/steps.py", "done = 0\n")
        done = self.python("import torch.steps, torch.optim\nfor i in range(9):\n torch.steps.done += 1\n torch.optim.step()",
                           options=["--quiet", "--profile-steps", "4-6"], environment={"RANK": "3"})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.stage.read("run", "traces", "trace_rank_3.json"), "3 to 6")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
