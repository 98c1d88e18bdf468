# SPDX-License-Identifier: Apache-2.0
"""tacet preflight between network namespaces of this test: a clean set is a go, every planted fault a no-go with its host."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TACET = str(pathlib.Path(sys.argv[1]).resolve())
TAG = f"tacetpf{os.getpid() % 100000}"


def sh(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


def why_not():
    """Why namespaces cannot be made here; empty where they can."""
    for program in ("ip", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if sh("ip", "netns", "add", TAG + "x", check=False).returncode != 0:
        return "no right to make network namespaces"
    made = sh("ip", "-n", TAG + "x", "link", "add", "br0", "type", "bridge", check=False).returncode == 0
    mounted = sh("unshare", "--uts", "--mount", "sh", "-c", "echo x > /proc/sys/kernel/hostname && mount -t tmpfs none /mnt", check=False).returncode == 0
    sh("ip", "netns", "del", TAG + "x", check=False)
    return "" if made and mounted else "no right to make bridges or mounts"


class Hosts:
    """Hosts n0, n1, ... on one bridge, each a namespace with the address 10.77.0.(1 + i)."""

    def __init__(self, count):
        self.names = [f"{TAG}n{i}" for i in range(count)]
        self.switch = TAG + "s"
        sh("ip", "netns", "add", self.switch)
        sh("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        sh("ip", "-n", self.switch, "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            sh("ip", "netns", "add", name)
            sh("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"p{i}", "netns", self.switch)
            sh("ip", "-n", self.switch, "link", "set", f"p{i}", "master", "br0", "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("ip", "-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            sh("ip", "-n", name, "link", "set", "eth0", "up")

    def remove(self):
        for name in [*self.names, self.switch]:
            sh("ip", "netns", "del", name, check=False)

    def exec(self, i, *words):
        return sh("ip", "netns", "exec", self.names[i], *words)


class Preflight(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tacet-preflight-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def hosts(self, count):
        hosts = Hosts(count)
        self.addCleanup(hosts.remove)
        return hosts

    def run_all(self, hosts, before=None, env=None, arguments=(), meet="10.77.0.1:29517", skip=()):
        """Runs one process per host; `before[i]` is shell that host i runs first. Returns the report and all results."""
        count = len(hosts.names)
        processes = []
        for i in range(count):
            if i in skip:
                continue
            variables = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **((env or {}).get(i) or {})}
            script = f"echo n{i} > /proc/sys/kernel/hostname\n{(before or {}).get(i, '')}\nexec \"$@\""
            processes.append(subprocess.Popen(
                ["ip", "netns", "exec", hosts.names[i], "unshare", "--uts", "--mount", "sh", "-ec", script, "sh", TACET, "preflight",
                 "--rank", str(i), "--size", str(count), "--meet", meet, "--python", "none", "--format", "json",
                 "--wait", "15", *arguments], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        results = [process.communicate(timeout=120) + (process.returncode,) for process in processes]
        report = json.loads(results[0][0]) if results[0][0] else None
        return report, results

    def failures(self, report):
        return {check["id"]: check["hosts"] for check in report["checks"] if check["level"] == "fail"}

    def assert_no_go(self, report, results, check, hosts):
        found = self.failures(report)
        self.assertEqual(report["verdict"], "no-go", report["checks"])
        self.assertIn(check, found, report["checks"])
        self.assertEqual(sorted(found[check]), sorted(hosts), report["checks"])
        self.assertEqual([result[2] for result in results], [1] * len(results), results)

    def test_a_clean_set_is_a_go(self):
        began = time.monotonic()
        report, results = self.run_all(self.hosts(3))
        self.assertEqual(report["verdict"], "go", report["checks"])
        self.assertEqual([result[2] for result in results], [0, 0, 0], results)
        self.assertEqual([host["name"] for host in report["hosts"]], ["n0", "n1", "n2"])
        self.assertEqual(len([link for link in report["links"] if not link["alone"]]), 6)
        self.assertTrue(all(link["full_size_packets"] for link in report["links"] if not link["alone"]), report["links"])
        self.assertEqual([ring["kind"] for ring in report["exchanges"]], ["barrier", "small all-reduce", "large all-reduce"])
        self.assertTrue(all(ring["seconds"] > 0 and not ring["error"] for ring in report["exchanges"]))
        self.assertLess(report["seconds"], 60)
        self.assertLess(time.monotonic() - began, 60)

    def test_two_clean_hosts_are_a_go(self):
        report, results = self.run_all(self.hosts(2))
        self.assertEqual(report["verdict"], "go", report["checks"])
        self.assertEqual([result[2] for result in results], [0, 0], results)
        self.assertLess(report["seconds"], 60)

    def test_another_mtu_is_a_no_go(self):
        hosts = self.hosts(3)
        sh("ip", "-n", hosts.names[1], "link", "set", "eth0", "mtu", "1400")
        report, results = self.run_all(hosts)
        self.assert_no_go(report, results, "mtu", ["n1"])

    def test_a_switch_port_with_a_small_mtu_is_a_no_go(self):
        hosts = self.hosts(3)
        for i in range(3):
            sh("ip", "-n", hosts.names[i], "link", "set", "eth0", "mtu", "3000")
            sh("ip", "-n", hosts.switch, "link", "set", f"p{i}", "mtu", "1500" if i == 2 else "3000")
        sh("ip", "-n", hosts.switch, "link", "set", "br0", "mtu", "3000", check=False)
        report, results = self.run_all(hosts)
        self.assert_no_go(report, results, "mtu", ["n2"])

    def block(self, hosts, i, ports):
        # No firewall is needed: a rule of routing swallows what goes to these ports.
        made = sh("ip", "-n", hosts.names[i], "rule", "add", "ipproto", "tcp", "dport", ports, "blackhole", "pref", "1", check=False)
        if made.returncode != 0:
            self.skipTest("no rules by port: " + made.stderr)
        # The table of local addresses comes first, and is left alone.

    def test_a_blocked_port_is_a_no_go(self):
        hosts = self.hosts(3)
        self.block(hosts, 2, "42000-42099")
        report, results = self.run_all(hosts, arguments=["--ports", "42000-42099"])
        self.assert_no_go(report, results, "connections", ["n2"])

    def test_a_host_that_cannot_reach_rank_0_says_so(self):
        hosts = self.hosts(3)
        self.block(hosts, 1, "29517")
        report, results = self.run_all(hosts, arguments=["--wait", "5"])
        self.assertEqual(report["verdict"], "no-go")
        self.assertEqual(report["missing_ranks"], [1])
        self.assertEqual([result[2] for result in results], [1, 1, 1], results)
        self.assertIn("NO-GO on n1", results[1][1])

    def test_a_slow_link_is_a_no_go(self):
        hosts = self.hosts(3)
        made = sh("ip", "netns", "exec", hosts.names[1], "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "80mbit",
                  "burst", "64k", "latency", "50ms", check=False)
        if made.returncode != 0:
            self.skipTest("no tbf: " + made.stderr)
        report, results = self.run_all(hosts)
        self.assert_no_go(report, results, "bandwidth", ["n1"])
        self.assertTrue(any(link["alone"] for link in report["links"]), "the slow host was not looked at alone")

    def test_a_slow_link_between_two_hosts_is_a_no_go(self):
        hosts = self.hosts(2)
        made = sh("ip", "netns", "exec", hosts.names[0], "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "80mbit",
                  "burst", "64k", "latency", "50ms", check=False)
        if made.returncode != 0:
            self.skipTest("no tbf: " + made.stderr)
        report, results = self.run_all(hosts)
        self.assertEqual(report["verdict"], "no-go", report["checks"])
        self.assertIn("n0", self.failures(report)["bandwidth"])

    def fake_driver(self, version, gpus=2):
        folder = self.folder / f"bin{version}-{gpus}"
        folder.mkdir(exist_ok=True)
        line = f"NVIDIA H100 80GB HBM3, {version}, Enabled, Disabled, 0x0000000000000000"
        (folder / "nvidia-smi").write_text("#!/bin/sh\n" + f"echo '{line}'\n" * gpus)
        (folder / "nvidia-smi").chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def test_another_driver_is_a_no_go(self):
        env = {0: self.fake_driver("550.54.15"), 1: self.fake_driver("550.54.15"), 2: self.fake_driver("535.161.08")}
        report, results = self.run_all(self.hosts(3), env=env, arguments=["--quick"])
        self.assert_no_go(report, results, "driver", ["n2"])
        self.assertNotIn("gpus", self.failures(report))

    def test_a_missing_gpu_is_a_no_go(self):
        env = {0: self.fake_driver("550.54.15", 8), 1: self.fake_driver("550.54.15", 7), 2: self.fake_driver("550.54.15", 8)}
        report, results = self.run_all(self.hosts(3), env=env, arguments=["--quick"])
        self.assert_no_go(report, results, "gpus", ["n1"])

    def test_a_host_with_slow_gpus_is_a_no_go(self):
        env = {i: self.fake_driver("550.54.15", 4) for i in range(3)}
        for i in range(3):
            folder = self.folder / f"tests{i}"
            folder.mkdir()
            (folder / "all_reduce_perf").write_text(f"#!/bin/sh\necho '# Avg bus bandwidth    : {41.5 if i == 1 else 341.5}'\n")
            (folder / "all_reduce_perf").chmod(0o755)
            env[i] = {"PATH": f"{folder}:{env[i]['PATH']}"}
        report, results = self.run_all(self.hosts(3), env=env)
        self.assert_no_go(report, results, "gpu-all-reduce", ["n1"])

    def test_another_pytorch_is_a_no_go(self):
        env, hosts = {}, self.hosts(3)
        before = {}
        for i, version in enumerate(["2.8.0", "2.7.1", "2.8.0"]):
            module = self.folder / f"site{i}" / "torch"
            module.mkdir(parents=True)
            (module / "__init__.py").write_text(f"__version__ = '{version}'\nclass version: cuda = '12.8'\n")
            env[i] = {"PYTHONPATH": str(module.parent)}
        report, results = self.run_all(hosts, env=env, before=before, arguments=["--quick", "--python", sys.executable])
        self.assert_no_go(report, results, "pytorch", ["n1"])

    def test_a_full_shared_memory_is_a_no_go(self):
        fill = "mount -t tmpfs -o size=256m none /dev/shm; head -c 250000000 /dev/zero > /dev/shm/left || true"
        roomy = "mount -t tmpfs -o size=256m none /dev/shm"
        report, results = self.run_all(self.hosts(3), before={0: roomy, 1: fill, 2: roomy}, arguments=["--quick"])
        self.assert_no_go(report, results, "shared-memory", ["n1"])

    def test_a_low_limit_of_locked_memory_is_a_no_go(self):
        report, results = self.run_all(self.hosts(3), before={i: "ulimit -l " + ("64" if i == 2 else "4096") for i in range(3)}, arguments=["--quick"])
        self.assert_no_go(report, results, "locked-memory", ["n2"])

    def test_settings_that_differ_are_a_no_go(self):
        env = {i: {"NCCL_ALGO": "Ring" if i == 1 else "Tree"} for i in range(3)}
        report, results = self.run_all(self.hosts(3), env=env, arguments=["--quick"])
        self.assert_no_go(report, results, "environment", ["n1"])

    def test_clones_of_one_machine_are_a_no_go(self):
        report, results = self.run_all(self.hosts(3), before={2: "echo n1 > /proc/sys/kernel/hostname"}, arguments=["--quick"])
        self.assert_no_go(report, results, "names", ["n1 (10.77.0.2)", "n1 (10.77.0.3)"])

    def test_a_rank_that_never_comes_is_missed(self):
        report, results = self.run_all(self.hosts(3), skip=[2], arguments=["--quick", "--wait", "3"])
        self.assertEqual((report["verdict"], report["missing_ranks"]), ("no-go", [2]))
        self.assertEqual([result[2] for result in results], [1, 1])

    def test_an_interface_that_is_not_there_is_a_no_go(self):
        env = {i: {"NCCL_SOCKET_IFNAME": "ib7" if i == 1 else "eth0"} for i in range(3)}
        report, results = self.run_all(self.hosts(3), env=env, arguments=["--quick"])
        self.assert_no_go(report, results, "interface", ["n1"])


class Alone(unittest.TestCase):
    def run_alone(self, *arguments, **env):
        return subprocess.run([TACET, "preflight", "--python", "none", *arguments], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env})

    def test_one_host_is_looked_at_by_itself(self):
        done = self.run_alone("--format", "json")
        report = json.loads(done.stdout)
        self.assertEqual(report["size"], 1)
        self.assertEqual(done.returncode, 0 if report["verdict"] == "go" else 1)
        self.assertTrue({"shared-memory", "locked-memory", "ranks"} <= {check["id"] for check in report["checks"]})

    def test_a_port_in_use_is_a_no_go(self):
        with socket.socket() as taken:
            taken.bind(("0.0.0.0", 0))
            taken.listen()
            done = self.run_alone("--format", "json", "--size", "2", "--rank", "0", "--meet", f"127.0.0.1:{taken.getsockname()[1]}")
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["verdict"]), (1, "no-go"))
        self.assertEqual(report["checks"][0]["id"], "meeting-port")

    def test_wrong_usage_and_a_rank_without_a_meeting_point_are_told(self):
        self.assertEqual(self.run_alone("--size", "2", "--rank", "5").returncode, 2)
        self.assertEqual(self.run_alone("--size", "2", "--rank", "1").returncode, 2)
        self.assertEqual(self.run_alone("--format", "xml").returncode, 2)

    def test_strangers_on_the_port_do_no_harm(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        arguments = ["--python", "none", "--size", "2", "--meet", f"127.0.0.1:{port}", "--format", "json", "--quick"]
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        first = subprocess.Popen([TACET, "preflight", "--rank", "0", *arguments], stdout=subprocess.PIPE, text=True, env=env)
        for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100000 + b"\n", b'{"tacet":"preflight","rank":99999999999}\n'):
            for _ in range(100):
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                        stranger.sendall(junk)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
                except OSError:
                    break
        second = subprocess.run([TACET, "preflight", "--rank", "1", *arguments], timeout=60, env=env)
        report = json.loads(first.communicate(timeout=60)[0])
        self.assertEqual(report["missing_ranks"], [])
        self.assertEqual(second.returncode, first.returncode)

    def test_mpirun_tells_who_is_who(self):
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun is not installed")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", TACET, "preflight", "--python", "none",
                               "--format", "json"], capture_output=True, text=True, timeout=90,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "MASTER_PORT": str(port)})
        report = json.loads(done.stdout[done.stdout.index("{"):])
        self.assertEqual((report["launcher"], report["size"], report["missing_ranks"]), ("Open MPI", 3, []), done.stderr)
        self.assertEqual([host["ranks"] for host in report["hosts"]], [[0, 1, 2]])
        self.assertEqual(done.returncode, 0 if report["verdict"] == "go" else 1)

    def test_run_does_not_start_a_job_without_a_go(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([TACET, "run", "--preflight", "--size", "2", "--rank", "1", "--meet", "127.0.0.1:9", "--dir", folder + "/run", "--",
                                   "touch", folder + "/started"], capture_output=True, text=True, timeout=90,
                                  env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertFalse(os.path.exists(folder + "/started"))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
