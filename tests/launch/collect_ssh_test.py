#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collect_ssh_test.py TACET SOURCE_DIR: `tacet collect --ssh` over a real ssh to hosts in namespaces of their own, of which some are
down, full, slow or hostile."""
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import ssh_hosts
from collect_test import HEALTHY, HIDDEN, SECRETS, SOURCE, TACET, unpack

CASE = os.path.join(SOURCE, "tests", "corpus", "gloo_stuck_r2_w4")
ALL = ("clean", "greeting", "plain", "down", "full", "hostile", "slow", "stalled", "evil")
NODE_TIMEOUT_S = 25  # ten sshd and as many clients start at once, under sanitizers too
BIG = 4 << 20
TOKEN = SECRETS["HF_TOKEN"]
HOSTILE_NAMES = (b"new\nline.log", b"\x1b[2J\x1b[1;1Howned.log", b"$(touch /tmp/owned).log", b"..\xc2\x9b31m.log", b"-rf.log",
                 b"\xe2\x80\xaegol.txt.log", b"quo'te\"`id`.log", b"\xff\xfe.log")
EVIL_NAMES = ("../../../tmp/tacet-evil", "/etc/tacet-evil", "files/../../tacet-evil", "host/new\nline", "-rf")


def evil_tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in EVIL_NAMES:
            member = tarfile.TarInfo(name)
            member.size = 5
            tar.addfile(member, io.BytesIO(b"evil\n"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return out.getvalue()


def read(*names):
    with open(os.path.join(CASE, *names), "rb") as file:
        return file.read()


class CollectOverSsh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = ssh_hosts.why_not()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = tempfile.mkdtemp(prefix="tacet-ssh-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        os.makedirs(cls.folder + "/bin")
        shutil.copy(TACET, cls.folder + "/bin/tacet")
        cls.network = ssh_hosts.Network(cls.folder)
        cls.addClassCleanup(cls.network.close)
        cls.make_good_hosts()
        cls.make_bad_hosts()
        cls.network.login.write("/root/.ssh/config", cls.network.ssh_config(gone=ssh_hosts.NETWORK + "99"), 0o600)

    @classmethod
    def make_good_hosts(cls):
        secrets = "".join(f"export {name}={value}\n" for name, value in SECRETS.items())
        clean = cls.network.add("clean")
        clean.write("/srv/train/stdout_rank0.log", read("stdout_rank0.log"))
        clean.write("/srv/train/env.log", HEALTHY + secrets + HEALTHY)
        clean.start_sshd()
        # bash reads this file for every command that comes by ssh.
        greeting = cls.network.add("greeting", shell="/bin/bash")
        greeting.write("/home/trainer/.bashrc", "echo 'Welcome to greeting. Maintenance on Friday.'\nprintf 'quota: 12 %%'\n")
        greeting.write("/srv/train/stdout_rank1.log", read("stdout_rank1.log"))
        greeting.start_sshd()
        # No tacet there, neither under the same path nor in PATH.
        plain = cls.network.add("plain")
        plain.run("mount", "-t", "tmpfs", "none", "/mnt/bin")
        plain.write("/srv/train/env.log", HEALTHY + secrets)
        plain.start_sshd()

    @classmethod
    def make_bad_hosts(cls):
        cls.network.add("down")
        full = cls.network.add("full", size="1m")
        full.write("/srv/train/stdout_rank3.log", read("stdout_rank3.log"))
        full.start_sshd()
        full.run("sh", "-c", "for place in /srv /tmp /home /root /run /dev/shm; do head -c 2000000 /dev/zero > $place/left; done 2>/dev/null; true")
        hostile = cls.network.add("hostile")
        for name in ("stdout_rank2.log", "stack_rank2.txt"):
            hostile.write("/srv/train/" + name, read(name))
        for name in HOSTILE_NAMES:
            hostile.write(b"/srv/train/names/" + name, "text\n")
        hostile.write(b"/srv/train/secret\x1b[8m\n.log", "not for everybody\n", 0o600)
        hostile.write(f"/srv/train/token-{TOKEN}.log", "a secret in a name\n")
        hostile.start_sshd()
        slow = cls.network.add("slow")
        slow.write("/srv/train/a.log", HEALTHY)
        slow.write("/srv/train/z.bin", os.urandom(BIG))
        # 4 MiB take half a minute at 1 Mbit/s. Where the kernel has no such queue, the answer stops in the middle.
        queue = subprocess.run(slow.command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1mbit", "burst", "32k", "latency",
                                            "400ms"), capture_output=True, check=False)
        slow.start_sshd("" if queue.returncode == 0 else
                        "ForceCommand sh -c \"$SSH_ORIGINAL_COMMAND\" | (head -c 100000; exec sleep 100)")
        cls.network.add("stalled").start_sshd("ForceCommand exec sleep 100")
        with open(cls.folder + "/evil.tar", "wb") as out:
            out.write(evil_tar())
        cls.network.add("evil").start_sshd(
            f"ForceCommand cat /mnt/evil.tar; printf 'no \\033[31mpower: token={TOKEN}\\n' >&2; exit 3")

    def collect(self, *arguments, name):
        out = f"/mnt/{name}.tar.zst"
        done = subprocess.run(self.network.login.command("/mnt/bin/tacet", "collect", "-o", out, *arguments), capture_output=True,
                              text=True, check=False, timeout=100, env={"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"})
        path = self.folder + out[4:]
        files = unpack(path) if os.path.exists(path) else {}
        self.assertIn("manifest.json", files, done.stderr)
        return done, files, json.loads(files["manifest.json"])

    def check_safe(self, done, files):
        """Nothing of it harms who unpacks or reads it, and no secret is anywhere."""
        for name, data in {**files, "standard error": done.stderr.encode(errors="surrogateescape")}.items():
            for value in HIDDEN:
                self.assertNotIn(value.encode(), data, name)
                self.assertNotIn(value, name)
        for name in files:
            self.assertFalse(name.startswith(("/", "-")) or ".." in name.split("/"), name)
            self.assertTrue(name.isprintable() and not any("\udc80" <= c <= "\udcff" for c in name), ascii(name))
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("tacet: ") and line.isprintable(), ascii(line))

    def test_some_are_down_full_slow_or_hostile_and_the_rest_is_there(self):
        for place in ("/srv", "/tmp", "/home", "/dev/shm"):
            self.assertEqual(self.network.hosts["full"].run("stat", "-f", "-c", "%a", place), "0\n", place)
        asked = [*ALL, "gone"]
        done, files, manifest = self.collect("--ssh", ",".join(asked), "--no-host", "--node-timeout", str(NODE_TIMEOUT_S), "/srv/train",
                                             name="all")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(manifest["nodes"], sorted(asked))
        self.assertEqual(manifest["silent_nodes"], ["down", "gone", "stalled"], done.stderr)
        self.check_safe(done, files)

        for node, name in (("clean", "stdout_rank0.log"), ("greeting", "stdout_rank1.log"), ("hostile", "stdout_rank2.log"),
                           ("hostile", "stack_rank2.txt"), ("full", "stdout_rank3.log")):
            self.assertEqual(files.get(f"{node}/files/srv/train/{name}"), read(name), f"{node} {name}: {done.stderr}")
        self.assertEqual(files["clean/files/srv/train/env.log"].count(HEALTHY.encode()), 2)
        self.assertEqual(files["plain/files/srv/train/env.log"].count(HEALTHY.encode()), 1)
        self.assertEqual(files["slow/files/srv/train/a.log"], HEALTHY.encode())
        self.assertLess(len(files.get("slow/files/srv/train/z.bin", b"")), BIG)
        names = [name for name in files if name.startswith("hostile/files/srv/train/names/")]
        self.assertEqual(len(names), len(HOSTILE_NAMES), names)
        self.assertTrue(all(files[name] == b"text\n" for name in names))
        self.assertIn("hostile/files/srv/train/names/new%0Aline.log", names)
        evil = [name for name in files if name.startswith("evil/")]
        self.assertEqual(len(evil), len(EVIL_NAMES), evil)
        self.assertFalse([name for name in os.listdir(self.folder) if ".part" in name])
        self.assertEqual(self.network.hosts["hostile"].run("find", "/tmp", "-name", "owned"), "")

        why = {}
        for part in manifest["missing"]:
            why[part["node"]] = why.get(part["node"], "") + f"{part['what']}: {part['why']}\n"
        self.assertEqual(set(why), {"down", "evil", "gone", "hostile", "slow", "stalled"}, done.stderr)
        self.assertIn("Connection refused", why["down"])
        self.assertRegex(why["gone"], "No route to host|timed out")
        self.assertEqual(why["hostile"], "/srv/train/secret\x1b[8m\n.log: Permission denied\n")
        self.assertIn("ended with exit code 3", why["evil"])
        for node in ("slow", "stalled"):
            self.assertIn(f"took longer than {NODE_TIMEOUT_S} s", why[node])
        for node in why:
            self.assertIn(f"tacet: missing: {node}: ", done.stderr)

        report = json.loads(subprocess.run([TACET, "diagnose", "-f", "json", self.folder + "/all.tar.zst"], capture_output=True,
                                           check=False, timeout=60).stdout)
        self.assertEqual(report["verdict"]["ranks"], [2], report["verdict"])

    def test_a_command_of_the_users_own_and_the_state_of_the_hosts(self):
        with open(self.folder + "/config", "w", encoding="ascii") as config:  # with connections that stay open for the next call
            config.write(self.network.ssh_config() + "  ControlMaster auto\n  ControlPath /root/.ssh/%C\n  ControlPersist 600\n")
        done, files, manifest = self.collect("--ssh", "clean,full,greeting", "--ssh-command", "ssh -F /mnt/config -o BatchMode=yes",
                                             "--node-timeout", "30", "/srv/train", name="state")
        self.assertEqual(manifest["silent_nodes"], [], done.stderr)
        self.assertNotIn("took longer", done.stderr)
        self.check_safe(done, files)
        for node in ("clean", "full", "greeting"):
            self.assertIn(b"eth0", files[f"{node}/host/network_counters.txt"])
        if shutil.which("nvidia-smi") is None:
            self.assertEqual({part["node"] for part in manifest["missing"] if "nvidia-smi is not installed" in part["why"]},
                             {"clean", "full", "greeting"})

    def test_a_path_of_any_characters_is_asked_for_as_it_is(self):
        """Through the login shell of a user over there, whichever that is."""
        nodes = ["clean", "greeting", "plain"]
        for shell in ("tcsh", "fish"):
            path = shutil.which(shell)
            if path is not None and path.startswith(("/bin/", "/usr/")):
                nodes.append(shell)
                self.network.add(shell, shell=path).start_sshd()
        path = "/srv/odd/it's \\ $(touch /tmp/owned) \"a\" ; log.txt"
        for node in nodes:
            self.network.hosts[node].write(path, "text of " + node)
        with open(self.folder + "/odd", "w", encoding="ascii") as config:
            config.write(self.network.ssh_config())
        done, files, _ = self.collect("--no-host", "--ssh", ",".join(nodes), "--ssh-command", "ssh -F /mnt/odd -o BatchMode=yes", path, name="odd")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(data for name, data in files.items() if name != "manifest.json"),
                         sorted(f"text of {node}".encode() for node in nodes))
        for node in nodes:
            self.assertEqual(self.network.hosts[node].run("find", "/tmp", "-name", "owned"), "")

    def test_a_host_with_another_key_is_not_trusted(self):
        done = subprocess.run(
            self.network.login.command("/mnt/bin/tacet", "collect", "-o", "/mnt/none.tar.zst", "--no-host", "--ssh", "clean", "--ssh-command",
                                       "ssh -o BatchMode=yes -o UserKnownHostsFile=/dev/null", "/srv/train"),
            capture_output=True, text=True, check=False, timeout=60, env={"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("tacet: missing: clean: everything: ended with exit code 255: Host key verification failed.", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
