#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slurm_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR BUILD_DIR: jobs of a real Slurm, and of a real mpirun."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import slurm_cluster
from live_stage import Stage, fetch, fetch_json, free_port, wait_for

TACET, PLUGIN, HOST, SOURCE, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:6])
USER = "nobody"
BATCH = """#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=2 --overcommit --output={folder}/batch.out
{tacet} serve --slurm "$SLURM_JOB_NODELIST" --port {port} --listen 127.0.0.1:{serve} &
{agents}
srun --overlap {host} --plugin {plugin} --join {folder}/shared/$SLURM_JOB_ID --network --pause-us 20000 {options}
"""
OWN_AGENTS = "srun --overlap --ntasks-per-node=1 --ntasks=2 sh -c '{tacet} agent --ras off --insecure --listen $SLURMD_NODENAME:{port}' &"


def diagnose(*paths):
    done = subprocess.run([TACET, "diagnose", "--format", "json", *paths], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why_not = slurm_cluster.missing()
        if why_not:
            raise unittest.SkipTest(why_not)
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        os.makedirs(cls.stage.path("shared"))
        os.chmod(cls.stage.path("shared"), 0o777)
        # Users need not be able to walk to where this was built.
        for name in ("TACET", "PLUGIN", "HOST"):
            globals()[name] = shutil.copy(globals()[name], cls.stage.folder)
        cls.cluster = slurm_cluster.SlurmCluster(cls.stage, os.path.join(SOURCE, "deploy"), 2)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        self.port = free_port()  # agents of a job that was just cancelled take a moment to leave

    def submit(self, agents, options):
        serve = free_port()
        self.stage.write("batch.sh", BATCH.format(
            folder=self.stage.folder, tacet=TACET, host=HOST, plugin=PLUGIN, port=self.port, serve=serve,
            agents=agents.format(tacet=TACET, port=self.port), options=options))
        self.stage.write("batch.out", "")
        os.chmod(self.stage.path("batch.out"), 0o666)
        said = self.cluster.run("sbatch", "--uid=" + USER, self.stage.path("batch.sh"))
        job = said.split()[-1]
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        return job, f"http://127.0.0.1:{serve}"

    def start_agents(self):
        for node in self.cluster.names:
            agent = self.cluster.start_on(
                node, "agent-" + node, [TACET, "agent", "--ras", "off", "--insecure", "--listen", f"{node}:{self.port}"])
            self.addCleanup(self.stage.end, agent)

    def ask_node(self, node, path):
        return fetch(f"http://{self.cluster.addresses[node]}:{self.port}{path}")

    def test_processes_are_named_as_slurm_names_them(self):
        self.start_agents()
        job, server = self.submit("", "--steps 1000000")
        joined = wait_for("all four ranks", lambda: (
            lambda boxes: len(boxes) == 4 and boxes)(fetch_json(server + "/api/v1/state?job=" + job)["boxes"]))
        self.assertEqual(sorted((box["host"], box["rank"], box["world_size"]) for box in joined),
                         [("n1", 0, 4), ("n1", 1, 4), ("n2", 2, 4), ("n2", 3, 4)])
        for node, ranks in (("n1", {0, 1}), ("n2", {2, 3})):
            state = json.loads(self.ask_node(node, "/api/v1/state"))
            self.assertEqual(state["host"], node)
            self.assertEqual({box["rank"] for box in state["boxes"]}, ranks)
            self.assertEqual({box["local_rank"] for box in state["boxes"]}, {0, 1})
            for box in state["boxes"]:
                self.assertEqual((box["job"], box["ids"]["slurm_job_id"], box["ids"]["slurm_step_id"]), (job, job, "0"))
                self.assertEqual(box["process"], "running")
                self.assertTrue(box["name"].startswith(f"{job}/{node}-"), box["name"])
            metrics = self.ask_node(node, "/metrics")
            for rank in ranks:
                self.assertRegex(
                    metrics, rf'tacet_process_info{{job_id="{job}",uid="65534",rank="{rank}",pid="\d+",node="{node}",'
                    rf'slurm_job_id="{job}",slurm_step_id="0",pod="",namespace="",run_id=""}} 1\n')
        self.assertEqual(fetch_json(server + "/api/v1/verdict")["live"]["job"], job)
        self.cluster.run("scancel", job)
        kept = [self.stage.path("keep-" + node, job) for node in self.cluster.names]
        wait_for("the epilog to keep the boxes", lambda: all(
            os.path.isdir(folder) and not self.boxes_left(node, job) for node, folder in zip(self.cluster.names, kept)))
        told = diagnose(*kept)["job"]
        self.assertEqual((told["world_size"], told["ranks_seen"], told["hosts"]), (4, [0, 1, 2, 3], ["n1", "n2"]))

    def boxes_left(self, node, job):
        return any(box["name"].startswith(job + "/") for box in json.loads(self.ask_node(node, "/api/v1/state"))["boxes"])

    def test_a_user_watches_a_job_from_inside_its_batch_script(self):
        job, server = self.submit(OWN_AGENTS, "--steps 1000000 --fault stuck --fault-rank 2 --fault-step 150")
        verdict = wait_for("a verdict", lambda: (
            lambda report: report["live"]["job"] == job and report["verdict"]["status"] == "hang" and report["verdict"])(
                fetch_json(server + "/api/v1/verdict")))
        self.assertEqual((verdict["cause"], verdict["ranks"]), ("rank-stuck-on-host", [2]), verdict)

    def test_ranks_that_the_batch_script_makes_itself_are_not_all_rank_0(self):
        """No srun: SLURM_PROCID=0 and SLURM_NTASKS=1 hold for the script, not for what it starts."""
        self.start_agents()
        script = self.stage.write("spawn.sh", f"""#!/bin/sh
#SBATCH --nodes=1 --ntasks=1 --output=/dev/null
exec {HOST} --plugin {PLUGIN} --ranks 3 --steps 1000000 --pause-us 20000 --silent-launcher
""")
        job = self.cluster.run("sbatch", "--uid=" + USER, script).split()[-1]
        self.addCleanup(self.cluster.run, "scancel", job, check=False)

        def boxes():
            found = [box for node in self.cluster.names for box in json.loads(self.ask_node(node, "/api/v1/state"))["boxes"]
                     if box.get("job") == job]
            return len(found) == 3 and found

        self.assertEqual(sorted((box["rank"], box["world_size"]) for box in wait_for("three processes", boxes)),
                         [(0, 3), (1, 3), (2, 3)])


class Mpi(unittest.TestCase):
    def test_mpirun_names_rank_and_world(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun here: apt-get install openmpi-bin")
        stage = Stage()
        self.addCleanup(stage.close)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        done = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", HOST, "--plugin", PLUGIN, "--join",
             stage.path("arena"), "--steps", "60"], capture_output=True, text=True, check=False, timeout=120,
            env={**environment, "TACET_BOX_DIR": stage.path("boxes"), "TACET_JOB": "mpi", "ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(done.returncode, 0, done.stderr)
        told = diagnose(stage.path("boxes"))
        self.assertEqual((told["job"]["world_size"], told["job"]["ranks_seen"]), (3, [0, 1, 2]))
        self.assertEqual(sorted(file["rank"] for file in told["inputs"]), [0, 1, 2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
