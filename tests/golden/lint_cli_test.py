# SPDX-License-Identifier: Apache-2.0
"""tacet lint from end to end: its sources, its exit codes, and silence over healthy recordings."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TACET = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()
CORPUS = SOURCE / "tests/corpus"
BARE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def lint(*arguments, env=None):
    done = subprocess.run([TACET, "lint", *map(str, arguments)], capture_output=True, text=True,
                          env={**BARE, **(env or {})}, timeout=300)
    return done


def findings(*arguments, env=None):
    done = lint("--format", "json", *arguments, env=env)
    report = json.loads(done.stdout)
    assert report["schema"] == "tacet.lint.v1"
    return done.returncode, {(f["kind"], f["name"]): f for f in report["findings"]}


class Lint(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def test_the_own_environment_is_the_default_source(self):
        code, found = findings(env={"NCCL_TIMEOUT": "3600", "NCCL_IB_DISABLE": "true"})
        self.assertEqual(code, 1)
        self.assertEqual(set(found), {("never-read", "NCCL_TIMEOUT"), ("misread", "NCCL_IB_DISABLE")})
        self.assertEqual(lint().returncode, 0)

    def test_assignments_are_checked_as_they_stand(self):
        code, found = findings("NCCL_TIMEOUT=3600", "NCCL_DEBUG=WARN", env={"NCCL_IB_DISABLE": "true"})
        self.assertEqual((code, set(found)), (1, {("never-read", "NCCL_TIMEOUT")}))
        self.assertEqual(found["never-read", "NCCL_TIMEOUT"]["places"][0]["holder"], "the command line")
        script = self.write("job.sh", "export NCCL_IB_TIMEOUT=18\n")
        self.assertEqual(set(findings("NCCL_TIMEOUT=3600", script)[1]),
                         {("never-read", "NCCL_TIMEOUT"), ("old-default", "NCCL_IB_TIMEOUT")})
        self.assertEqual(lint("NCCL_DEBUG=WARN").returncode, 0)
        self.assertEqual(lint("logs/a=b").returncode, 2)

    def test_a_finding_has_its_place_default_effect_history_and_advice(self):
        script = self.write("job.sh", "#!/bin/sh\nexport NCCL_IB_TIMEOUT=18\nsrun python train.py\n")
        code, found = findings(script)
        self.assertEqual(code, 1)
        one = found["old-default", "NCCL_IB_TIMEOUT"]
        self.assertEqual((one["places"][0]["file"], one["places"][0]["line"]), ("job.sh", 2))
        self.assertEqual(one["default"], "20")
        self.assertTrue(one["effect"] and one["advice"])
        self.assertEqual(lint(script, "--nccl", "2.20.5").returncode, 0)

    def test_standard_input_is_read(self):
        text = "#!/bin/sh\nexport NCCL_TIMEOUT=3600\n"
        script = self.write("job.sh", text)
        piped = subprocess.run([TACET, "lint", "-"], input=text, capture_output=True, text=True, env=BARE, check=False)
        self.assertEqual(piped.returncode, 1, piped.stderr)
        self.assertIn("NCCL_TIMEOUT", piped.stdout)
        self.assertIn("<stdin>:2", piped.stdout)
        self.assertEqual(piped.stdout.replace("<stdin>", "job.sh"), lint(script).stdout)
        for empty in ("", "nothing to see\n"):
            piped = subprocess.run([TACET, "lint", "-"], input=empty, capture_output=True, text=True, env=BARE, check=False)
            self.assertEqual((piped.returncode, piped.stdout), (2, ""))
            self.assertIn("nothing in standard input sets a variable", piped.stderr)

    def test_a_slip_keeps_its_spelling_and_gets_the_right_value(self):
        for value, right in (("rign", "Ring"), ("Rign", "Ring"), ("Trees", "Tree")):
            _, found = findings(env={"NCCL_ALGO": value})
            one = found["misread", "NCCL_ALGO"]
            self.assertIn(f"there is no algorithm '{value}'", one["headline"])
            self.assertEqual(one["advice"], f"write {right}")
        _, found = findings(env={"NCCL_PROTO": "Simpel"})
        self.assertIn("'Simpel'", found["misread", "NCCL_PROTO"]["headline"])
        self.assertEqual(found["misread", "NCCL_PROTO"]["advice"], "write Simple")
        _, found = findings(env={"NCCL_PROTO": "fastest"})
        self.assertEqual(found["misread", "NCCL_PROTO"]["advice"], "write LL, LL128 or Simple")

    def test_a_missing_path_gets_advice_for_lint(self):
        done = lint("/no/such/path")
        self.assertEqual(done.returncode, 2)
        self.assertIn("job script", done.stderr)

    def test_the_settings_in_a_manifest_are_still_read(self):
        folder = self.write("run/manifest.json", json.dumps(
            {"schema": "tacet.manifest.v1", "kind": "run", "environment": {"set": {}, "kept": {}, "inherited": {"NCCL_TIMEOUT": "9"}},
             "ended": "2026-11-17T17:03:51Z", "exit_code": 0, "signal": 0}, separators=(",", ":"))).parent
        self.assertIn(("never-read", "NCCL_TIMEOUT"), findings(folder)[1])

    def test_notes_count_only_when_asked(self):
        script = self.write("job.sh", "export CUDA_LAUNCH_BLOCKING=1\n")
        self.assertEqual(lint(script).returncode, 0)
        self.assertEqual(lint(script, "--strict").returncode, 1)

    def test_what_sets_nothing_is_not_understood(self):
        self.assertEqual(lint(self.write("notes.txt", "nothing of interest\n")).returncode, 2)
        self.assertEqual(lint(self.folder / "absent").returncode, 2)
        self.assertEqual(lint("--nccl", "newest").returncode, 2)
        self.assertEqual(lint("--format", "xml").returncode, 2)

    def test_environments_of_ranks_are_compared(self):
        for rank in range(4):
            value = "1" if rank == 2 else "0"
            self.write(f"env.{rank}", f"PATH=/bin\nRANK={rank}\nNCCL_CROSS_NIC={value}\n")
        code, found = findings(self.folder)
        self.assertEqual(code, 1)
        self.assertIn("1 on rank 2", found["differs", "NCCL_CROSS_NIC"]["headline"])

    def test_a_log_without_variables_is_an_environment_too(self):
        for rank in range(3):
            text = f"nA:10{rank}:10{rank} [{rank}] NCCL INFO "
            self.write(f"nccl_{rank}.log", (text + "NCCL_SOCKET_IFNAME set by environment to eth1\n" if rank == 1 else "") +
                       text + f"ncclCommInitRank comm 0x1 rank {rank} nranks 3 cudaDev {rank} commId 0x77 - Init START\n")
        self.assertIn("1 setting in 3 environments", lint(self.folder).stdout)
        headline = findings(self.folder)[1]["differs", "NCCL_SOCKET_IFNAME"]["headline"]
        self.assertIn("on some processes of nA only: rank 1 (eth1), not on rank 0, rank 2", headline)

    def test_a_line_is_cited_with_the_file_in_which_it_stands(self):
        line = "nA:101:101 [0] NCCL INFO {} set by environment to {}.\n"
        init = "nA:101:110 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 - Init COMPLETE\n"
        self.write("a.log", line.format("NCCL_CROSS_NIC", "1") + init)
        self.write("b.log", init + line.format("NCCL_ALGO", "Ring"))
        _, found = findings(self.folder)
        told = json.dumps([one for (_, name), one in found.items() if name == "NCCL_ALGO"])
        self.assertIn("b.log", told)
        self.assertNotIn("a.log", told)

    def test_nccl_conf_loses_against_the_environment(self):
        self.write(".nccl.conf", "NCCL_IB_HCA=mlx5_4\nNCCL_NET =IB\n")
        code, found = findings("--strict", env={"HOME": str(self.folder), "NCCL_IB_HCA": "mlx5_0"})
        self.assertEqual(code, 1)
        self.assertEqual(found["overridden", "NCCL_IB_HCA"]["value"], "mlx5_4")
        self.assertIn(("stray-characters", "NCCL_NET "), found)

    def test_a_running_process_and_what_it_started_are_read(self):
        child = subprocess.Popen(["sh", "-c", "NCCL_IB_DISABEL=1 sleep 60 & wait"], env=BARE, start_new_session=True)
        try:
            for _ in range(100):
                code, found = findings("--pid", child.pid)
                if found:
                    break
            self.assertEqual(code, 1)
            self.assertIn("process", found["misspelt", "NCCL_IB_DISABEL"]["places"][0]["holder"])
        finally:
            os.killpg(child.pid, 15)
            child.wait()

    def test_the_manifest_of_a_run_is_read(self):
        self.write("run/manifest.json", json.dumps(
            {"schema": "tacet.manifest.v1", "environment": {"set": {}, "kept": {}, "inherited": {"NCCL_TIMEOUT": "9"}}},
            separators=(",", ":")))
        _, found = findings(self.folder / "run")
        self.assertIn(("never-read", "NCCL_TIMEOUT"), found)

    def test_secrets_and_control_characters_stay_out(self):
        script = self.write("job.sh", "export NCCL_PASSWORD=hunter2hunter2\nexport NCCL_ALGO='R\x1b[31mng'\n")
        done = lint(script)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("NCCL_ALGO", done.stdout)

    def test_hostile_files_cost_nothing(self):
        self.write("a.sh", b"\xff\xfe\x00NCCL_\x00=\n" * 1000)
        self.write("b.sh", "".join(f"export NCCL_X{i}=1\n" for i in range(20000)))
        done = lint(self.folder, "--format", "json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(json.loads(done.stdout)["findings"]), 20000)

    def test_healthy_recordings_raise_nothing(self):
        # One machine plays several hosts in most of them: that is a note of its own, and nothing else is told.
        played = {("note", "NCCL_HOSTID"), ("note", "NCCL_SOCKET_IFNAME")}
        truth = json.loads((CORPUS / "truth.json").read_text())
        healthy = [name for name, case in truth.items() if case["status"] == ["healthy"]]
        self.assertGreater(len(healthy), 10)
        for name in healthy:
            with self.subTest(name):
                done = lint("--format", "json", CORPUS / name)
                told = {(one["level"], one["name"]) for one in json.loads(done.stdout)["findings"]}
                self.assertLessEqual(told, played)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_crippled_recording_is_told(self):
        code, found = findings(CORPUS / "fallback_env")
        self.assertEqual(code, 1)
        # NCCL_HOSTID makes four nodes of the one host: P2P is used inside a node, and the network between them matters.
        self.assertNotIn(("slow", "NCCL_P2P_DISABLE"), found)
        self.assertEqual(len(found["no-effect", "NCCL_P2P_DISABLE"]["places"]), 4)
        self.assertIn(("slow", "NCCL_IB_DISABLE"), found)

    def test_values_that_nccl_reads_differently_are_told(self):
        script = self.write("job.sh", "export NCCL_NTHREADS=100\nexport NCCL_P2P_LEVEL=9\nexport NCCL_ALGO=ring,trees\nexport UCX_TLS=tcp,self\n")
        _, found = findings(script)
        self.assertIn("not a multiple of 32", found["misread", "NCCL_NTHREADS"]["headline"])
        self.assertIn("SYS", found["misread", "NCCL_P2P_LEVEL"]["headline"])
        self.assertIn("makes NCCL fail", found["misread", "NCCL_ALGO"]["headline"])
        self.assertIn(("slow", "UCX_TLS"), found)
        script = self.write("job.sh", "export NCCL_NTHREADS=512\nexport NCCL_P2P_LEVEL=4\nexport UCX_TLS=rc,tcp\n")
        _, found = findings(script)
        self.assertEqual([one for one in found if one[0] in ("misread", "slow")], [])

    def test_a_log_that_is_not_written_is_told_as_such(self):
        _, found = findings(self.write("job.sh", "export NCCL_DEBUG_FILE=/shared/nccl.log\n"))
        self.assertIn("while NCCL_DEBUG is not set, nothing is written", found["shared-file", "NCCL_DEBUG_FILE"]["headline"])
        _, found = findings(self.write("job.sh", "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG_FILE=/shared/nccl.log\n"))
        self.assertTrue(found["shared-file", "NCCL_DEBUG_FILE"]["headline"].startswith("NCCL_DEBUG_FILE="))
        _, found = findings(self.write("job.sh", "export NCCL_NTHREADS=300\n"))
        self.assertIn("64, 128, 256 or 512", found["misread", "NCCL_NTHREADS"]["advice"])

    def test_a_binary_file_is_only_an_error(self):
        done = lint(self.write("random.bin", bytes(range(256)) * 16))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("No variable that lint knows is set", lint().stdout)

    def test_run_warns_before_it_starts(self):
        done = subprocess.run([TACET, "run", "--no-watch", "--dir", self.folder / "run", "--", "true"], capture_output=True,
                              text=True, env={**BARE, "NCCL_TIMEOUT": "3600"}, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("NCCL_TIMEOUT", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
