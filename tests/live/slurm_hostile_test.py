#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slurm_hostile_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR BUILD_DIR: Prolog and Epilog against a user of the node who
plants links, folders and enormous files, and against another user's job."""
import glob
import gzip
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = os.path.abspath(sys.argv[4])
SCRIPTS = os.path.join(SOURCE, "deploy", "slurm")
ATTACKER, VICTIM = 54322, 54321


def as_user(uid, work):
    """Runs work() in a child of that user; its exception fails the test."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            work()
        except BaseException as error:  # pylint: disable=broad-except
            print(f"uid {uid}: {error!r}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise AssertionError(f"uid {uid} could not do its part")


def owner(path):
    return os.lstat(path).st_uid


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def wait_gone(pattern):
    until = time.monotonic() + 30
    while glob.glob(pattern) and time.monotonic() < until:
        time.sleep(0.05)
    return glob.glob(pattern)


@unittest.skipIf(os.geteuid() != 0, "needs root: Slurm runs these scripts as root, and they serve several users")
class SlurmHostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-slurm-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o1777)  # as /dev/shm is
        self.boxes, self.keep = self.folder + "/tacet", self.folder + "/keep"
        os.mkdir(self.keep)

    def run_script(self, script, job, uid, **more):
        done = subprocess.run(
            [os.path.join(SCRIPTS, script)], capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": str(job), "SLURM_JOB_UID": str(uid), "TACET_BOX_DIR": self.boxes,
                 "TACET_KEEP_DIR": self.keep, **more})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def prolog(self, job=888, uid=VICTIM):
        return self.run_script("prolog.sh", job, uid)

    def epilog(self, job=888, uid=VICTIM, **more):
        return self.run_script("epilog.sh", job, uid, **more)

    def kept(self, job=888):
        return sorted(glob.glob(f"{self.keep}/{job}/*/*"))

    def put_box(self, job=888, uid=VICTIM, name="node-7.box", content=b"a box"):
        def write():
            with open(f"{self.boxes}/{job}/{name}", "wb") as file:
                file.write(content)
        as_user(uid, write)

    def check_folder(self):
        self.assertEqual((owner(self.boxes), mode(self.boxes)), (0, 0o1777))
        self.assertFalse(os.path.islink(self.boxes))
        self.assertEqual((owner(self.boxes + "/888"), mode(self.boxes + "/888")), (VICTIM, 0o700))

    def test_a_healthy_job_keeps_its_boxes_and_only_its_user_reads_them(self):
        self.prolog()
        self.check_folder()
        self.put_box()
        self.assertEqual(self.epilog(), "")
        (box,) = self.kept()
        with gzip.open(box) as file:
            self.assertEqual(file.read(), b"a box")
        self.assertEqual((owner(box), mode(box)), (VICTIM, 0o400))
        self.assertEqual((owner(os.path.dirname(box)), mode(os.path.dirname(box))), (0, 0o755))
        self.assertFalse(os.path.exists(self.boxes + "/888"))

        def read():
            with open(box, "rb") as file:
                file.read()
        as_user(VICTIM, read)
        with self.assertRaises(AssertionError):
            as_user(ATTACKER, read)

    def test_a_link_in_place_of_the_box_folder_is_not_followed(self):
        target = self.folder + "/precious"
        os.mkdir(target, 0o700)
        as_user(ATTACKER, lambda: os.symlink(target, self.boxes))
        self.assertIn("put aside", self.prolog())
        self.assertEqual(mode(target), 0o700)
        self.check_folder()

    def test_a_box_folder_that_a_user_made_first_becomes_roots(self):
        as_user(ATTACKER, lambda: os.mkdir(self.boxes))
        as_user(ATTACKER, lambda: os.mkdir(self.boxes + "/888"))
        self.assertIn(f"uid {ATTACKER}", self.prolog())
        self.check_folder()
        self.assertEqual(wait_gone(self.folder + "/.tacet-aside*"), [])

    def test_the_folder_of_a_job_that_another_user_took_is_given_to_the_jobs_user(self):
        self.prolog(1, ATTACKER)
        as_user(ATTACKER, lambda: os.mkdir(self.boxes + "/888"))
        self.prolog()
        self.check_folder()
        self.put_box()
        self.epilog()
        self.assertEqual(len(self.kept()), 1)

    def test_a_link_in_place_of_a_jobs_folder_is_replaced_and_its_target_stays(self):
        target = self.folder + "/home"
        os.mkdir(target, 0o755)
        self.prolog(1, ATTACKER)
        as_user(ATTACKER, lambda: os.symlink(target, self.boxes + "/888"))
        self.prolog()
        self.check_folder()
        self.assertEqual((owner(target), mode(target)), (0, 0o755))

    def test_nothing_is_made_where_others_can_replace_it(self):
        os.chmod(self.folder, 0o777)  # not sticky
        self.assertIn("not root's alone", self.prolog())
        self.assertFalse(os.path.exists(self.boxes))

    def test_a_requeued_job_cannot_lead_root_to_another_file(self):
        """The kept folder was the user's once, and root wrote into it again for the next run of the same job."""
        target = self.folder + "/target"
        with open(target, "w", encoding="ascii") as file:
            file.write("precious")
        self.prolog()
        self.put_box()
        self.epilog()

        def plant():
            for folder in (f"{self.keep}/888", *glob.glob(f"{self.keep}/888/*")):
                try:
                    os.symlink(target, folder + "/node-7.box.gz")
                except OSError:
                    pass
        as_user(VICTIM, plant)
        self.prolog()
        self.put_box()
        self.epilog()
        with open(target, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")
        self.assertEqual(owner(target), 0)
        self.assertEqual([owner(folder) for folder in glob.glob(f"{self.keep}/888")], [0])
        self.assertEqual(len(self.kept()), 2)

    def test_links_pipes_and_strange_names_are_not_read(self):
        self.prolog()

        def plant():
            folder = self.boxes + "/888/"
            os.symlink("/etc/shadow", folder + "link.box")
            os.mkfifo(folder + "pipe.box")
            os.mkdir(folder + "folder.box")
            for name in ("new\nline.box", "a b.box", "-rf.box", ".hidden.box", "x" * 230 + ".box", "$(id).box"):
                with open(folder + name, "wb") as file:
                    file.write(b"x")
        as_user(VICTIM, plant)
        self.put_box()
        self.epilog()
        self.assertEqual([os.path.basename(box) for box in self.kept()], ["node-7.box.gz"])
        self.assertFalse(os.path.exists(self.boxes + "/888"))

    def test_an_enormous_box_with_holes_does_not_hold_the_epilog(self):
        self.prolog()

        def plant():
            with open(self.boxes + "/888/huge.box", "wb") as file:
                file.truncate(20 << 30)
            with open(self.boxes + "/888/holes.box", "wb") as file:
                file.truncate(200 << 20)
        as_user(VICTIM, plant)
        self.put_box()
        before = os.times()
        self.assertIn("huge.box is no box", self.epilog())
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        self.assertLess(spent, 10, "reading 20 GB takes minutes")
        self.assertEqual([os.path.basename(box) for box in self.kept()], ["node-7.box.gz"])
        self.assertFalse(os.path.exists(self.boxes + "/888"))

    def test_no_more_is_kept_than_the_site_allows(self):
        self.prolog()
        for i in range(4):
            self.put_box(name=f"n{i}.box", content=os.urandom(1 << 20))
        self.assertIn("more boxes than are kept", self.epilog(TACET_KEEP_MB="2"))
        self.assertEqual(len(self.kept()), 2)

    def test_the_folder_of_another_user_is_left_alone(self):
        self.prolog(1, ATTACKER)
        as_user(ATTACKER, lambda: os.mkdir(self.boxes + "/888"))
        self.put_box(uid=ATTACKER)
        self.epilog()
        self.assertEqual(self.kept(), [])
        self.assertTrue(os.path.exists(self.boxes + "/888/node-7.box"))

    def test_boxes_in_the_folders_that_the_plugin_falls_back_to_are_kept(self):
        self.prolog(1, ATTACKER)
        for name in (f"888.{VICTIM}", f"888.{VICTIM}.0badf00d"):
            as_user(VICTIM, lambda name=name: os.mkdir(f"{self.boxes}/{name}", 0o700))
            self.put_box(job=name, name=f"from-{name}.box")
        self.epilog()
        self.assertEqual(len(self.kept()), 2)
        self.assertEqual(os.listdir(self.boxes), ["1"])

    def test_nonsense_in_the_environment_does_nothing(self):
        self.prolog()
        self.put_box()
        for job, uid in (("../888", VICTIM), ("", VICTIM), ("888", ""), ("888", "0;id"), ("888", ATTACKER)):
            self.epilog(job, uid)
        self.assertTrue(os.path.exists(self.boxes + "/888/node-7.box"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
