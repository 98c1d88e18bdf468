#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""srun_test.py TACET SOURCE_DIR: `tacet preflight` and `tacet run` as tasks of a real Slurm with four nodes."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

TACET, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests", "live"))
import slurm_cluster  # noqa: E402
from live_stage import Stage, free_port, wait_for  # noqa: E402

# As with cgroups, which most sites have, a signal goes to the tasks alone: what they have started gets it from them or not at all. And time
# between SIGTERM and SIGKILL, so that a run that was asked to end writes its manifest also on a busy machine. The numbers of its jobs are
# not those of another cluster that is tested beside it.
for old, new in (("proctrack/linuxproc", "proctrack/pgid"), ("KillWait=2\n", "KillWait=30\nFirstJobId=70000\n")):
    assert old in slurm_cluster.CONFIGURATION
    slurm_cluster.CONFIGURATION = slurm_cluster.CONFIGURATION.replace(old, new)
SCRIPT = """
import os, signal, sys, time
node = os.environ["SLURMD_NODENAME"]
print("output of", node, flush=True)
print("error of", node, file=sys.stderr, flush=True)
if len(sys.argv) == 1:
    sys.exit(7)
def end(*_):
    with open(os.path.join(sys.argv[1], "signals-" + node), "a") as out:
        out.write("TERM\\n")
    time.sleep(0.5)  # a second one would come now
    sys.exit(9)
signal.signal(signal.SIGTERM, end)
with open(os.path.join(sys.argv[1], "started-" + node), "w"):
    pass
time.sleep(300)
"""


def other_variable_on(node):
    return ["sh", "-c", f'if [ "$SLURMD_NODENAME" = {node} ]; then export NCCL_ALGO=Ring; fi; exec "$@"', "sh"]


class UnderSrun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why_not = slurm_cluster.missing()
        if why_not:
            raise unittest.SkipTest(why_not)
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        cls.tacet = shutil.copy(TACET, cls.stage.folder)
        cls.script = cls.stage.write("script.py", SCRIPT)
        cls.cluster = slurm_cluster.SlurmCluster(cls.stage, os.path.join(SOURCE, "deploy"), 4)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.stop)

    def start_srun(self, *words, **environment):
        """As a user at the login node."""
        hosts = self.stage.path("hosts")
        others = ("NCCL_", "TORCH", "TACET_", "SLURM_", "RANK", "WORLD_SIZE", "MASTER_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec srun "$@"', "sh", *words], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.stage.folder, stdin=subprocess.DEVNULL,
            env={**kept, "SLURM_CONF": self.stage.path("slurm.conf"), "ASAN_OPTIONS": "detect_leaks=0", **environment})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def srun(self, *words, **environment):
        process = self.start_srun(*words, **environment)
        out, error = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, out, error)

    def preflight(self, *options, before=(), srun=()):
        done = self.srun("-N4", "--ntasks-per-node=1", *srun, *before, self.tacet, "preflight", "--python", "none", "--format", "json", *options,
                         MASTER_PORT=str(free_port()))
        self.assertIn("{", done.stdout, done.stderr)
        return done, json.loads(done.stdout)

    def check_no_go(self, done, report, check, host):
        failed = {one["id"]: one["hosts"] for one in report["checks"] if one["level"] == "fail"}
        self.assertEqual((report["verdict"], failed), ("no-go", {check: [host]}), done.stderr)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_a_clean_cluster_is_a_go(self):
        done, report = self.preflight()
        self.assertEqual((report["verdict"], report["launcher"], report["size"]), ("go", "Slurm", 4), report["checks"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(host["name"], host["ranks"]) for host in report["hosts"]], [("n1", [0]), ("n2", [1]), ("n3", [2]), ("n4", [3])])
        self.assertEqual((report["missing_ranks"], report["failed_connections"]), ([], []))
        self.assertEqual(len([link for link in report["links"] if not link["alone"] and not link.get("error")]), 12)
        self.assertTrue(all(ring["seconds"] > 0 and not ring["error"] for ring in report["exchanges"]), report["exchanges"])

    def test_another_variable_on_one_node_is_a_no_go(self):
        done, report = self.preflight("--quick", before=other_variable_on("n2"))
        self.check_no_go(done, report, "environment", "n2")

    def test_a_daemon_with_a_low_limit_of_locked_memory_is_a_no_go(self):
        """As where slurmd was started without LimitMEMLOCK=infinity. The limits of the login node must not hide it."""
        pid = str(self.cluster.daemons["n3"].pid)
        before = subprocess.run(["prlimit", "--pid", pid, "--memlock", "--output=SOFT,HARD", "--noheadings", "--raw"], capture_output=True,
                                text=True, check=True).stdout.split()
        self.addCleanup(subprocess.run, ["prlimit", "--pid", pid, "--memlock=" + ":".join(before)], check=True)
        # Only the soft one: without a capability the hard one could not be raised again.
        subprocess.run(["prlimit", "--pid", pid, "--memlock=65536:" + before[1]], check=True)
        done, report = self.preflight("--quick", srun=("--propagate=NONE",))
        self.check_no_go(done, report, "locked-memory", "n3")
        text = self.srun("-N4", "--ntasks-per-node=1", "--propagate=NONE", self.tacet, "preflight", "--python", "none", "--quick",
                         MASTER_PORT=str(free_port()))
        self.assertEqual(text.returncode, 1, text.stderr)
        self.assertRegex(text.stdout, r"(?i)no-go[\s\S]*ulimit -l is 65536 bytes on n3")

    def test_after_a_no_go_no_node_starts_the_job(self):
        done = self.srun("-w", "n1,n2", "-N2", "--ntasks-per-node=1", *other_variable_on("n1"), self.tacet, "run", "--preflight",
                         "--", "touch", self.stage.path("started"), MASTER_PORT=str(free_port()))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse(os.path.exists(self.stage.path("started")), done.stderr)

    def manifests(self, parent):
        """By node; each with its output."""
        found = {}
        for name in sorted(os.listdir(parent)):
            with open(os.path.join(parent, name, "manifest.json"), encoding="utf-8") as file:
                manifest = json.load(file)
            with open(os.path.join(parent, name, "output.log"), encoding="utf-8") as file:
                found[manifest["hosts"][0]] = (name, manifest, file.read())
        return found

    def check_runs(self, parent, code):
        found = self.manifests(parent)
        self.assertEqual(sorted(found), ["n1", "n2"])
        for node, (_, manifest, output) in found.items():
            self.assertEqual((manifest["exit_code"], manifest["signal"], manifest["level"]), (code, 0, "light"))
            self.assertIn(f"stdout F output of {node}\n", output)
            self.assertIn(f"stderr F error of {node}\n", output)
            self.assertEqual(len(re.findall(" of n", output)), 2, output)
        return found

    def test_both_nodes_have_a_folder_and_the_exit_code_is_the_scripts(self):
        done = self.srun("-w", "n1,n2", "-N2", "--ntasks-per-node=1", self.tacet, "run", "--light", "--", sys.executable, self.script)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["output of n1", "output of n2"])
        for node in ("n1", "n2"):
            self.assertIn(f"error of {node}\n", done.stderr)
        self.check_runs(self.stage.path("tacet-runs"), 7)

    def test_one_folder_for_all_nodes_is_shared_out(self):
        folder = self.stage.path("given")
        words = ("-w", "n1,n2", "-N2", "--ntasks-per-node=1", self.tacet, "run", "--light", "--dir", folder, "--", sys.executable, self.script)
        self.assertEqual(self.srun(*words).returncode, 7)
        self.assertEqual({node: name for node, (name, *_) in self.check_runs(folder, 7).items()}, {"n1": "n1", "n2": "n2"})
        again = self.srun(*words)
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertIn("is not empty", again.stderr)
        self.check_runs(folder, 7)

    def test_scancel_reaches_the_script_once_and_its_end_is_recorded(self):
        folder = self.stage.path("cancelled")
        process = self.start_srun("-J", "cancelled", "-w", "n1,n2", "-N2", "--ntasks-per-node=1", self.tacet, "run", "--light", "--dir", folder, "--",
                                  sys.executable, self.script, self.stage.folder)
        wait_for("both scripts", lambda: all(os.path.exists(self.stage.path("started-" + node)) for node in ("n1", "n2")))
        self.cluster.run("scancel", "-n", "cancelled")
        _, error = process.communicate(timeout=60)
        wait_for("the end of the job", lambda: not self.cluster.run("squeue", "-h", "-n", "cancelled").strip())
        self.assertNotEqual(process.returncode, 0, error)
        for node in ("n1", "n2"):
            with open(self.stage.path("signals-" + node), encoding="ascii") as signals:
                self.assertEqual(signals.read(), "TERM\n", node)
        for _, manifest, _ in self.check_runs(folder, 9).values():
            self.assertIsNone(manifest["verdict"])  # it was asked to end


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
