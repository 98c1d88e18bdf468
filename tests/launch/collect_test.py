#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collect_test.py TACET SOURCE_DIR: bundles of this node, of hosts by ssh, of pods and of a real Slurm."""
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest

TACET, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests", "live"))

# Each value must be found nowhere in a bundle.
SECRETS = {
    "HF_TOKEN": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678",
    "WANDB_API_KEY": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLQ",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab",
    "GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "DB_PASSWORD": "correct-horse-battery",
    "OPENAI_API_KEY": "sk-proj-abcdEFGH1234567890abcdEFGH1234567890",
    "SLACK_WEBHOOK_TOKEN": "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "URL": "postgres://trainer:s3cretPassw0rd@db.internal:5432/metrics",
    "AZURE_ACCOUNT_KEY": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==",
    "JWT": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "PRIVATE": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq98kd0\n-----END RSA PRIVATE KEY-----",
}
HIDDEN = [value for name, value in SECRETS.items() if name not in ("URL", "PRIVATE")] + [
    "s3cretPassw0rd", "MIIEowIBAAKCAQEA7bq98kd0"]
HEALTHY = ("node7:4711:4711 [0] NCCL INFO ncclCommInitRank comm 0x55d0c8f0 rank 0 nranks 4 commId 0x8a3e2b1c9f4d5e6a - "
           "Init COMPLETE\nepoch 3 step 1700 loss 0.173 lr 3e-4 tokens/s 152341\n")


def unpack(path):
    with open(path, "rb") as packed:
        data = packed.read()
    if path.endswith(".zst"):
        data = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
    elif path.endswith(".gz"):
        data = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers()}


class CollectTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-collect-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(data if isinstance(data, bytes) else data.encode())
        return path

    def script(self, name, text):
        path = self.write(name, "#!/bin/sh\n" + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def collect(self, *arguments, **environment):
        out = self.path("bundle.tar.zst")
        done = subprocess.run([TACET, "collect", "-o", out, *arguments], capture_output=True, text=True, check=False,
                              timeout=200, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **environment})
        files = unpack(out) if os.path.exists(out) else {}
        return done, files, json.loads(files["manifest.json"]) if files else None


class ThisNode(CollectTest):
    def test_every_file_is_there_with_its_hash(self):
        self.write("logs/a.log", HEALTHY)
        self.write("logs/deep/b.log", "b\n")
        done, files, manifest = self.collect("--no-host", self.path("logs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = {name.rsplit("/", 1)[-1]: data for name, data in files.items()}
        self.assertEqual(kept["a.log"], HEALTHY.encode())  # a healthy log loses nothing
        for entry in manifest["files"]:
            self.assertEqual(entry["sha256"], hashlib.sha256(files[entry["name"]]).hexdigest())
        self.assertEqual(len(manifest["files"]), 2)
        self.assertEqual(manifest["missing"], [])

    def test_the_same_files_give_the_same_bytes(self):
        self.write("logs/a.log", HEALTHY * 1000)
        self.collect("--no-host", self.path("logs"))
        with open(self.path("bundle.tar.zst"), "rb") as first:
            one = first.read()
        self.collect("--no-host", self.path("logs"))
        with open(self.path("bundle.tar.zst"), "rb") as second:
            self.assertEqual(second.read(), one)

    def test_no_planted_secret_is_in_it(self):
        lines = "".join(f"export {name}={value}\n" for name, value in SECRETS.items())
        self.write("logs/env.log", HEALTHY + lines + HEALTHY)
        self.write("logs/env.log.1.gz", gzip.compress((HEALTHY + lines).encode()))
        self.write("logs/args.log", "train.py --api-key %s --url %s\n" % (SECRETS["OPENAI_API_KEY"], SECRETS["URL"]))
        self.write("logs/record.bin", b"\x80\x02X\x10\0\0\0 " + SECRETS["HF_TOKEN"].encode() + b"\0\0 "
                   + SECRETS["GITHUB_TOKEN"].encode() + b"\0")
        sleeper = subprocess.Popen(["sleep", "60", ], env={**os.environ, **{k: v for k, v in SECRETS.items() if "\n" not in v},
                                                          "NCCL_DEBUG": "INFO", "SLURM_TOKEN": SECRETS["GITHUB_TOKEN"]})
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        done, files, manifest = self.collect("--no-host", "--pid", str(sleeper.pid), self.path("logs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"NCCL_DEBUG=INFO", b"".join(files.values()))
        for value in HIDDEN:
            for name, data in files.items():
                self.assertNotIn(value.encode(), data, name)
            self.assertNotIn(value, done.stderr)
        log = next(data for name, data in files.items() if name.endswith("env.log"))
        self.assertEqual(log.count(HEALTHY.encode()), 2)
        self.assertGreaterEqual(sum(sum(entry.get("redacted", {}).values()) for entry in manifest["files"]), 12)
        self.assertIn("redacted: ", done.stderr)

    def test_hostile_names_are_made_safe(self):
        for name in (b"new\nline.log", b"quo\"te'.log", b"-rf.log", b"a b.log", b"\xff\xfe.log", b"%0A.log"):
            with open(os.path.join(self.folder.encode(), name), "wb") as out:
                out.write(b"text\n")
        os.symlink("/etc/passwd", self.path("link.log"))
        os.mkfifo(self.path("pipe.log"))
        done, files, _ = self.collect("--no-host", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sum(name.endswith(".log") for name in files), 6, files.keys())
        for name in files:
            self.assertFalse(name.startswith(("/", "-")) or "\n" in name or ".." in name, name)
        self.assertFalse(any(b"root:" in data for data in files.values()))

    def test_a_large_file_keeps_both_ends_and_a_missing_path_is_told(self):
        self.write("big.log", "FIRST\n" + "x" * 79 + "\n" * 1 + ("y" * 79 + "\n") * 40000 + "LAST\n")
        done, files, manifest = self.collect("--no-host", "--max-file-mb", "1", self.path("big.log"), "/no/such/path")
        self.assertEqual(done.returncode, 1)
        data = next(data for name, data in files.items() if name.endswith("big.log"))
        self.assertTrue(data.startswith(b"FIRST") and data.endswith(b"LAST\n") and len(data) < 1100000)
        self.assertEqual([part["what"] for part in manifest["missing"]], ["/no/such/path"])
        self.assertIn("/no/such/path", done.stderr)

    def test_a_full_disk_leaves_no_half_bundle(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount")
        self.write("noise.bin", os.urandom(3 << 20))
        done = subprocess.run(["unshare", "--mount", "sh", "-c",
                               f"mount -t tmpfs -o size=1m none /mnt && {TACET} collect --no-host -o /mnt/b.tar.zst "
                               f"{self.path('noise.bin')}; code=$?; ls /mnt; exit $code"],
                              capture_output=True, text=True, check=False)
        if "mount" in done.stderr and done.returncode != 2:
            self.skipTest("may not mount here")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("the disk is full", done.stderr)

    def test_gzip_is_written_where_the_name_asks_for_it(self):
        self.write("a.log", HEALTHY)
        out = self.path("b.tar.gz")
        subprocess.run([TACET, "collect", "--no-host", "-o", out, self.path("a.log")], check=True, capture_output=True)
        self.assertIn("manifest.json", unpack(out))


class OtherHosts(CollectTest):
    """A stand-in for ssh: the host's name says how it behaves; a real sshd is not needed to get the words right."""

    def setUp(self):
        super().setUp()
        for host in ("good1", "good2"):
            self.write(f"{host}/train.log", HEALTHY + host + "\n")
        self.ssh = self.script("ssh", f'''
host=$1; shift
case $host in
  down) echo "ssh: connect to host down port 22: No route to host" >&2; exit 255;;
  slow) sleep 100;;
  broken) head -c 100000 /dev/urandom;;
  cut) cd {self.folder}/good1 && sh -c "$*" | head -c 700;;
  evil) cd {self.folder} && {sys.executable} evil.py;;
  plain) cd {self.folder}/good2 && PATH=/usr/bin:/bin sh -c "$(echo "$*" | sed 's#for t in [^;]*;#for t in /none;#')";;
  *) cd {self.folder}/$host && sh -c "$*";;
esac
''')
        self.write("evil.py", '''
import io, sys, tarfile
tar = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
for name in ("../../../tmp/tacet-evil", "/etc/tacet-evil", "new\\nline", "files/../../x", "-rf"):
    info = tarfile.TarInfo(name)
    info.size = 4
    tar.addfile(info, io.BytesIO(b"evil"))
link = tarfile.TarInfo("link")
link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
tar.addfile(link)
tar.close()
''')

    def ask(self, hosts, *more):
        return self.collect("--ssh", hosts, "--ssh-command", self.ssh, "--no-host", "--node-timeout", "4", *more)

    def test_one_down_one_slow_one_broken_and_the_rest_is_there(self):
        done, files, manifest = self.ask("good1,down,slow,good2,broken,cut", "train.log")
        self.assertEqual(done.returncode, 1, done.stderr)
        for host in ("good1", "good2"):
            data = next(data for name, data in files.items() if name.startswith(host + "/") and name.endswith("train.log"))
            self.assertEqual(data, (HEALTHY + host + "\n").encode())
        why = {part["node"]: part["why"] for part in manifest["missing"]}
        self.assertIn("No route to host", why["down"])
        self.assertIn("took longer than 4 s", why["slow"])
        self.assertEqual(set(why), {"down", "slow", "broken", "cut"})
        self.assertEqual(manifest["silent_nodes"], ["broken", "down", "slow"])
        self.assertEqual(manifest["nodes"], ["broken", "cut", "down", "good1", "good2", "slow"])
        self.assertFalse([name for name in os.listdir(self.folder) if ".part" in name])

    def test_a_hostile_answer_stays_in_its_folder(self):
        done, files, _ = self.ask("evil", "train.log")
        self.assertEqual(len(files), 6, files.keys())
        for name in files:
            self.assertTrue(name == "manifest.json" or name.startswith("evil/files/"), name)
            self.assertFalse("\n" in name or ".." in name.split("/"), name)

    def test_without_tacet_over_there_tar_gives_the_files(self):
        done, files, _ = self.ask("plain", "train.log")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"good2\n", next(data for name, data in files.items() if name.endswith("train.log")))

    def test_a_bundle_of_nobody_is_an_error(self):
        self.assertEqual(self.ask("down", "train.log")[0].returncode, 2)

    def test_pods_are_asked_through_kubectl(self):
        self.script("bin/kubectl", f'''
[ "$1 $2 $3 $4 $5" = "exec -n train worker-0 --" ] || exit 9
shift 5
cd {self.folder}/good1 && exec "$@"
''')
        done, files, _ = self.collect("--pod", "worker-0", "--namespace", "train", "--no-host", "train.log",
                                      PATH=self.path("bin") + ":" + os.environ["PATH"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any(name.startswith("worker-0/files/") for name in files))

    def test_diagnose_reads_the_bundle(self):
        case = os.path.join(SOURCE, "tests", "corpus", "gloo_stuck_r2_w4")
        self.collect("--no-host", case)
        done = subprocess.run([TACET, "diagnose", "-f", "json", self.path("bundle.tar.zst")], capture_output=True, check=False)
        report = json.loads(done.stdout)
        if len(report["inputs"]) < 4:
            self.skipTest("this build does not read archives")
        self.assertEqual(report["verdict"]["ranks"], [2])


class OverSlurm(CollectTest):
    @classmethod
    def setUpClass(cls):
        try:
            global live_stage
            import live_stage
            import slurm_cluster
            from live_stage import Stage
        except ImportError as error:
            raise unittest.SkipTest(str(error))
        why_not = slurm_cluster.missing()
        if why_not:
            raise unittest.SkipTest(why_not)
        cls.stage = Stage()
        cls.addClassCleanup(cls.stage.close)
        cls.cluster = slurm_cluster.SlurmCluster(cls.stage, os.path.join(SOURCE, "deploy"), 4)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.stop)

    def test_a_running_job_gives_its_processes_and_their_stacks(self):
        tacet = shutil.copy(TACET, self.stage.path("tacet-job"))
        script = self.stage.write("sleep.py", "import time\ntime.sleep(600)\n")
        batch = self.stage.write("batch.sh", "#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=1 --output=/dev/null\n"
                                 f"srun --overlap {sys.executable} {script}\n")
        job = self.cluster.run("sbatch", "-w", "n1,n2", batch).split()[-1]
        self.addCleanup(self.cluster.run, "scancel", job, check=False)
        live_stage.wait_for("the job to run", lambda: "RUNNING" in self.cluster.run("squeue", "-h", "-j", job, "-o", "%T")
                            and "sleep.py" in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=False).stdout)
        out = self.stage.path("job.tar")
        said = self.cluster.run("sh", "-c", f"{tacet} capture --slurm {job} --no-native -o {out} 2>&1; true")
        files = unpack(out)
        for node, rank in (("n1", 0), ("n2", 1)):
            self.assertTrue(f"{node}/capture/watch.json" in files, f"{sorted(files)} {said}")
            watch = json.loads(files[f"{node}/capture/watch.json"])
            self.assertEqual(watch["host"], node, said)
            self.assertIn(rank, [one["rank"] for one in watch["processes"]])
            self.assertIn(f"SLURM_JOB_ID={job}".encode(), files[f"{node}/host/processes.txt"])

    def test_four_nodes_one_of_them_down(self):
        tacet = shutil.copy(TACET, self.stage.folder)
        for node in self.cluster.names:
            # Each node has a /dev/shm of its own.
            self.cluster.start_on(node, "write-" + node, ["sh", "-c", f"echo log of {node} > /dev/shm/train.log"]).wait(timeout=60)
        out = self.stage.path("bundle.tar")
        down = self.cluster.daemons["n3"]
        self.stage.end(down, 9)
        self.cluster.run("scontrol", "update", "nodename=n3", "state=down", "reason=test", check=False)
        said = self.cluster.run("sh", "-c", f"{tacet} collect --slurm 'n[1-4]' --node-timeout 20 -o {out} /dev/shm/train.log 2>&1; "
                                "echo code $?")
        files = unpack(out)
        manifest = json.loads(files["manifest.json"])
        self.assertEqual(manifest["nodes"], ["n1", "n2", "n3", "n4"])
        self.assertEqual(manifest["silent_nodes"], ["n3"], said)
        for node in ("n1", "n2", "n4"):
            self.assertEqual(files[f"{node}/files/dev/shm/train.log"], f"log of {node}\n".encode())
        self.assertTrue(any(part["node"] == "n3" for part in manifest["missing"]))
        self.assertIn("code 1", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
