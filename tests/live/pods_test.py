#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pods_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR BUILD_DIR: a job of pods, one rank each, that share their node's name.

Every rank has a pid namespace of its own, so that all of them have the same pid; the agent sees them from outside, as
with hostPID: true."""
import os
import re
import signal
import subprocess
import sys
import unittest

from live_stage import Stage, fetch, fetch_json, wait_for

TACET, PLUGIN, HOST, SOURCE, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:6])
RANKS, GUILTY = 4, 2
POD = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]


class Pods(unittest.TestCase):
    def setUp(self):
        if subprocess.run([*POD, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("may not make pid namespaces here")
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        _, self.agent = self.stage.start_agent(TACET, "--ras", "off")
        self.server_process = self.stage.start(
            "server", [TACET, "serve", "--agents", self.agent[len("http://"):], "--listen", "127.0.0.1:0"])
        said = wait_for("the server's address", lambda: re.search(r"http://\S+", self.stage.log_of("server")))
        self.server = said[0]

    def mount(self, rank, namespace="default"):
        """A folder of the pod's own below the node's, as subPathExpr in deploy/kubernetes/job-part.yaml makes it."""
        folder = self.stage.path("boxes", f"{namespace}_train-{rank}")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
        return folder

    def start_pods(self, fault):
        self.pods = [
            self.stage.start(
                f"pod-{rank}", [
                    *POD, "sh", "-c", '"$@" & wait', "pod", HOST, "--plugin", PLUGIN, "--join", self.stage.path("arena"), "--network",
                    "--steps", "1000000", "--pause-us", "20000", "--fault-rank", str(GUILTY), "--fault-step", "150", "--fault", fault],
                OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(RANKS), TACET_JOB="pods", TACET_BOX_MB="1",
                TACET_BOX_DIR=self.mount(rank)) for rank in range(RANKS)]
        # unshare does not pass signals on; what is in the pod ends with it.
        self.addCleanup(lambda: [self.stage.end(pod, signal.SIGKILL) for pod in self.pods])

    def verdict(self, cause):
        def wanted():
            verdict = fetch_json(self.server + "/api/v1/verdict?job=default/pods")["verdict"]
            return verdict["cause"] == cause and verdict

        return wait_for(cause, wanted)

    def test_pods_with_the_same_pid_are_told_apart_and_a_killed_one_is_seen_to_be_gone(self):
        self.start_pods("dead")
        everybody = {str(rank) for rank in range(RANKS)}
        wait_for("metrics of all ranks", lambda: set(
            re.findall(r'tacet_operations_issued_total\{job_id="default/pods",uid="\d+",rank="(\d)",pid="2"\}', fetch(self.agent + "/metrics"))) == everybody)
        self.assertEqual(self.verdict("rank-dead")["ranks"], [GUILTY])

    def test_a_pod_of_another_namespace_changes_nothing(self):
        """The same user, the same name of the job, and counters that move: its peers here still stand."""
        self.start_pods("frozen")
        forger = self.stage.start(
            "forger", [*POD, "sh", "-c", '"$@" & wait', "pod", HOST, "--plugin", PLUGIN, "--join", self.stage.path("other"), "--network",
                       "--steps", "1000000", "--pause-us", "20000"],
            OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="1", TACET_JOB="pods", TACET_BOX_MB="1", TACET_BOX_DIR=self.mount(0, "evil"))
        self.addCleanup(lambda: self.stage.end(forger, signal.SIGKILL))
        wait_for("the forger's box", lambda: 'job_id="evil/pods"' in fetch(self.agent + "/metrics"))
        self.assertEqual(self.verdict("rank-frozen")["ranks"], [GUILTY])
        other = fetch_json(self.server + "/api/v1/verdict?job=evil/pods")["verdict"]
        self.assertNotIn(other["status"], ("hang", "crash"), other)

    def test_a_stopped_one_is_seen_to_be_stopped(self):
        self.start_pods("frozen")
        self.assertEqual(self.verdict("rank-frozen")["ranks"], [GUILTY])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
