#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""units_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR BUILD_DIR: the package is installed into a folder, and both of its units are
started from there as systemd would start them, as far as that goes without it (unit_stage.py)."""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

from live_stage import Stage, fetch, fetch_json, free_port, need_program, wait_for
from unit_stage import DYNAMIC_USER, Unit, missing_tool, wrap

TACET, PLUGIN, HOST, SOURCE, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:6])


class Units(unittest.TestCase):
    def setUp(self):
        if missing := missing_tool():
            self.skipTest(f"{missing} is not here")
        need_program("dpkg-shlibdeps", "dpkg-dev")
        self.stage = Stage()
        self.addCleanup(self.stage.close)
        # Other users run these; the source may lie where they cannot look.
        os.chmod(self.stage.folder, 0o755)
        here = os.path.dirname(os.path.abspath(__file__))
        self.script, self.host, self.plugin = (
            shutil.copy(path, self.stage.folder) for path in (os.path.join(here, "unit_stage.py"), HOST, PLUGIN))

    def install(self):
        """The folder in which the package is installed."""
        root = self.stage.path("root")
        os.makedirs(os.path.join(root, "var", "lib", "dpkg"))
        self.stage.write("root/var/lib/dpkg/status", "")
        packed = subprocess.run(["cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B", self.stage.path("pack")],
                                capture_output=True, text=True, check=False)
        self.assertEqual(packed.returncode, 0, packed.stdout + packed.stderr)
        done = subprocess.run(["dpkg", "--root=" + root, "--force-script-chrootless", "--force-depends", "--log=/dev/null", "--install",
                               *glob.glob(self.stage.path("pack", "*.deb"))], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return root

    def start_unit(self, name, root, **settings):
        """The process of an installed unit, with what an administrator writes into /etc/default."""
        self.stage.write(f"root/etc/default/{name}", "".join(f"{key}={value}\n" for key, value in settings.items()))
        unit = Unit(os.path.join(root, "usr", "lib", "systemd", "system", name + ".service"))
        process = self.stage.start(name, wrap(unit, root, self.script), **unit.environment(root))
        wait_for(name + " to run", lambda: os.path.basename(os.readlink(f"/proc/{process.pid}/exe")) == "tacet")
        return process

    def status_of(self, process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            return dict(re.findall(r"(\w+):\t(.*)", file.read()))

    def test_both_run_without_root_and_judge_a_job_of_another_user(self):
        root = self.install()
        os.makedirs(self.stage.path("boxes"), exist_ok=True)
        os.chmod(self.stage.path("boxes"), 0o1777)
        agent_port, serve_port = free_port(), free_port()
        agent = self.start_unit("tacet-agent", root, TACET_AGENT_LISTEN=f"127.0.0.1:{agent_port}",
                                TACET_AGENT_OPTIONS=f"--ras off --boxes {self.stage.path('boxes')}")
        serve = self.start_unit("tacet-serve", root, TACET_SERVE_LISTEN=f"127.0.0.1:{serve_port}",
                                TACET_SERVE_AGENTS=f"--agents 127.0.0.1:{agent_port}")
        for process, capabilities in ((agent, {1, 2, 3}), (serve, set())):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
            status = self.status_of(process)
            self.assertEqual(status["Uid"].split(), [str(DYNAMIC_USER)] * 4)
            for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
                self.assertEqual(int(status[kind], 16), sum(1 << number for number in capabilities), kind)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.stage.start("job-51", ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", self.host, "--plugin", self.plugin, "--ranks", "2",
                                    "--network", "--steps", "1000000", "--seconds", "300", "--pause-us", "20000", "--fault", "stuck",
                                    "--fault-rank", "1", "--fault-step", "40"],
                         TACET_BOX_DIR=self.stage.path("boxes"), TACET_JOB="51", TACET_BOX_MB="1")
        wait_for("boxes of another user, mode 0600, to be read", lambda: [
            box["uid"] for box in fetch_json(f"http://127.0.0.1:{agent_port}/api/v1/state")["boxes"] if box.get("job") == "51"] == [54321] * 2)
        wait_for("both to be well", lambda: fetch(f"http://127.0.0.1:{serve_port}/healthz").startswith("ok"))
        verdict = wait_for("a verdict of the judging process", lambda: (
            report := fetch_json(f"http://127.0.0.1:{serve_port}/api/v1/verdict?job=51")["verdict"]) and report["status"] == "hang" and report)
        self.assertEqual((verdict["cause"], verdict["ranks"]), ("rank-stuck-on-host", [1]))
        for name, process in (("tacet-agent", agent), ("tacet-serve", serve)):
            self.assertEqual(self.stage.end(process), 0, self.stage.log_of(name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
