#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program as a user or a script meets it: cli_test.py TACET [unittest arguments]

Exit codes, messages, options, standard input, and input that was made to hurt.
"""
import gzip, json, os, pathlib, pickle, random, re, shutil, stat, subprocess, sys, tempfile, threading, unittest
import xml.etree.ElementTree

GOLDEN = pathlib.Path(__file__).resolve().parent
STUCK = GOLDEN / "rank_stuck_in_data_loader" / "input"
HEALTHY = GOLDEN / "healthy_job" / "input"
TACET = ""
LIMIT_KB = 1600 * 1024


class Ran:
    def __init__(self, code, out, err, peak_kb):
        self.code, self.out, self.err, self.peak_kb = code, out, err, peak_kb

    @property
    def text(self):
        return self.out.decode()

    @property
    def message(self):
        return self.err.decode()

    @property
    def report(self):
        def no_constant(name):
            raise ValueError(f"{name} is no JSON")
        return json.loads(self.out.decode(), parse_constant=no_constant)


def tacet(*arguments, stdin=b"", timeout=120, **more):
    """Runs the program and measures the peak memory of this very run."""
    child = subprocess.Popen([TACET, *map(os.fsencode, map(str, arguments))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **more)
    taken = {}
    readers = [threading.Thread(target=lambda n=name, p=pipe: taken.update({n: p.read()}))
               for name, pipe in (("out", child.stdout), ("err", child.stderr))]
    killer = threading.Timer(timeout, child.kill)
    for thread in (*readers, killer):
        thread.start()
    try:
        child.stdin.write(stdin)
        child.stdin.close()
    except BrokenPipeError:
        pass
    _, status, usage = os.wait4(child.pid, 0)
    killer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    for thread in readers:
        thread.join()
    child.stdout.close()
    child.stderr.close()
    return Ran(child.returncode, taken["out"], taken["err"], usage.ru_maxrss)


class Usage(unittest.TestCase):
    def complains(self, *arguments, says):
        ran = tacet(*arguments)
        self.assertEqual(ran.code, 2, ran.message)
        self.assertEqual(ran.out, b"")
        self.assertTrue(ran.message.startswith("tacet: "), ran.message)
        for words in says:
            self.assertIn(words, ran.message)

    def test_nothing_given_shows_the_commands(self):
        ran = tacet()
        self.assertEqual(ran.code, 2)
        self.assertIn("diagnose", ran.message)

    def test_unknown_command(self):
        self.complains("diagnoze", says=["unknown command 'diagnoze'", "--help"])

    def test_unknown_option_lists_the_known(self):
        self.complains("diagnose", "--formta", "json", STUCK, says=["unknown option '--formta'", "--format"])

    def test_unknown_format_lists_the_known(self):
        self.complains("diagnose", "--format", "yaml", STUCK, says=["--format takes text, json", "'yaml'"])

    def test_option_without_its_value(self):
        self.complains("diagnose", STUCK, "--format", says=["'--format' needs a value"])

    def test_switch_with_a_value(self):
        self.complains("diagnose", "--verbose=yes", STUCK, says=["'--verbose' takes no value"])

    def test_numbers_out_of_range(self):
        self.complains("diagnose", "--threads", "0", STUCK, says=["'0'", "1"])
        self.complains("diagnose", "--max-file-mb", "many", STUCK, says=["'many'"])

    def test_fail_on_a_severity_that_does_not_exist(self):
        self.complains("diagnose", "--fail-on", "fatal", STUCK, says=["--fail-on", "'fatal'"])

    def test_no_path(self):
        self.complains("diagnose", says=["path", "tacet diagnose"])

    def test_path_that_does_not_exist(self):
        self.complains("diagnose", "/nowhere/at all", says=["/nowhere/at all", "no such file"])

    def test_path_with_terminal_codes_is_shown_escaped(self):
        ran = tacet("diagnose", "/nowhere/\x1b[31mred\n")
        self.assertEqual(ran.code, 2)
        self.assertNotIn(b"\x1b", ran.err)

    def test_every_command_has_help(self):
        overview = tacet("--help")
        self.assertEqual(overview.code, 0)
        commands = re.findall(r"^  ([a-z-]+) +\S", overview.text, re.M)
        self.assertGreaterEqual(set(commands), {"diagnose", "explain", "formats"})
        for command in commands:
            ran = tacet(command, "--help")
            self.assertEqual((ran.code, ran.err), (0, b""), command)
            self.assertIn(f"tacet {command}", ran.text)

    def test_version(self):
        for asked in ("--version", "-V", "version"):
            ran = tacet(asked)
            self.assertEqual(ran.code, 0)
            self.assertRegex(ran.text, r"^tacet \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}(-modified)?|unknown), (GCC|clang) [\d.]+, \w+\)\n$")


def causes_of(listed):
    """The ids of tacet explain --list: headings of groups are not indented."""
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


class Explain(unittest.TestCase):
    def test_list_is_grouped_and_a_line_each_fits_in_100_columns(self):
        lines = tacet("explain", "--list").text.splitlines()
        rows = [line for line in lines if line.startswith("  ")]
        headings = [line for line in lines if line and not line.startswith("  ")]
        self.assertLess(4, len(headings))
        self.assertLess(len(headings), 12)
        self.assertEqual(len({re.match(r"  \S+ +", row).end() for row in rows}), 1, "titles begin in one column")
        self.assertLessEqual(max(map(len, lines)), 100)

    def test_list_and_every_cause_in_it(self):
        listed = tacet("explain", "--list")
        self.assertEqual(listed.code, 0)
        causes = causes_of(listed.text)
        self.assertEqual(len(causes), len(set(causes)))
        self.assertGreaterEqual(set(causes), {"rank-stuck-on-host", "collective-mismatch-size", "straggler-host"})
        told = tacet("explain", *causes)
        self.assertEqual(told.code, 0)
        for cause in causes:
            self.assertIn(f"{cause}: ", told.text)
        for section in ("look-alikes", "What to do", "How to prevent it", "Evidence it needs"):
            self.assertEqual(told.text.count(section), len(causes), section)
        self.assertLessEqual(max(map(len, told.text.splitlines())), 110)

    def test_every_cause_a_golden_case_expects_is_explained(self):
        listed = tacet("explain", "--list").text
        for expected in GOLDEN.glob("*/expected.json"):
            cause = json.loads(expected.read_text())["cause"]
            if cause:
                self.assertIn(cause, listed)

    def test_unknown_and_missing_cause(self):
        for arguments in (["explain", "rank-asleep"], ["explain"]):
            ran = tacet(*arguments)
            self.assertEqual(ran.code, 2)
            self.assertIn("--list", ran.message)

    def test_an_xid_is_explained_by_number_and_by_words(self):
        for asked in (["xid", "63"], ["Xid 63"], ["xid-63"], ["63"], ["row", "remapping"], ["Row remapping"]):
            ran = tacet("explain", *asked)
            self.assertEqual(ran.code, 0, asked)
            self.assertIn("Xid 63: row remapping or page retirement recorded\n", ran.text)
            self.assertIn("What to do", ran.text)
        both = tacet("explain", "gpu-fault", "xid-79").text
        self.assertIn("gpu-fault: ", both)
        self.assertIn("Xid 79: ", both)
        for asked in (["xid", "9999"], ["xid"], ["row", "rank-dead"]):
            self.assertEqual(tacet("explain", *asked).code, 2, asked)

    def test_markdown_holds_every_cause(self):
        markdown = tacet("explain", "--markdown")
        self.assertEqual(markdown.code, 0)
        for cause in causes_of(tacet("explain", "--list").text):
            self.assertIn(f"## {cause}\n", markdown.text)

    def test_formats(self):
        ran = tacet("formats")
        self.assertEqual(ran.code, 0)
        names = [line.split()[0] for line in ran.text.splitlines()]
        self.assertGreaterEqual(set(names), {"nccl_log", "flight_recorder", "torch_log", "stacks", "kernel_log"})
        self.assertEqual(tacet("formats", "all").code, 2)


class Diagnose(unittest.TestCase):
    def test_every_golden_case_gives_its_exit_code_in_every_format(self):
        cases = sorted(GOLDEN.glob("*/expected.json"))
        self.assertGreaterEqual(len(cases), 10)
        for expected in cases:
            want, folder = json.loads(expected.read_text()), expected.parent / "input"
            with self.subTest(expected.parent.name):
                ran = tacet("diagnose", "--format", "json", folder)
                self.assertEqual(ran.code, want["exit_code"], ran.message)
                verdict = ran.report["verdict"]
                self.assertEqual((verdict["status"], verdict["cause"], verdict["ranks"]),
                                 (want["status"], want["cause"], want["ranks"]))
                junit = tacet("diagnose", "--format", "junit", folder)
                self.assertEqual(junit.code, want["exit_code"])
                self.assertEqual(xml.etree.ElementTree.fromstring(junit.out).tag, "testsuites")
                sarif = tacet("diagnose", "--format", "sarif", folder)
                self.assertEqual(sarif.code, want["exit_code"])
                self.assertEqual(sarif.report["version"], "2.1.0")

    def test_answers_are_the_same_from_any_number_of_threads(self):
        one, many = (tacet("diagnose", "-j", n, "-f", "json", STUCK).report for n in (1, 16))
        one.pop("seconds"), many.pop("seconds")
        self.assertEqual(one, many)

    def test_fail_on_decides_the_exit_code(self):
        degraded = GOLDEN / "environment_forces_a_slow_path" / "input"
        for folder, codes in ((STUCK, {"critical": 1, "warning": 1, "note": 1, "never": 0}),
                              (degraded, {"critical": 0, "warning": 1, "note": 1, "never": 0}),
                              (HEALTHY, {"critical": 0, "warning": 0, "note": 1, "never": 0})):
            for severity, code in codes.items():
                with self.subTest(folder=folder.parent.name, fail_on=severity):
                    self.assertEqual(tacet("diagnose", f"--fail-on={severity}", folder).code, code)

    def test_text_is_plain_unless_asked_and_fits_the_page(self):
        plain = tacet("diagnose", STUCK)
        self.assertTrue(plain.text.startswith("HANG  rank 2"), plain.text[:80])
        self.assertNotIn("\x1b", plain.text)
        self.assertEqual(plain.err, b"")
        self.assertLessEqual(max(map(len, plain.text.splitlines())), 100)
        self.assertTrue(tacet("diagnose", "--color=always", STUCK).text.startswith("\x1b["))

    def test_output_file(self):
        with tempfile.TemporaryDirectory() as tmp:
            page = pathlib.Path(tmp) / "report.html"
            ran = tacet("diagnose", "--format", "html", "-o", page, STUCK)
            self.assertEqual((ran.code, ran.out), (1, b""))
            self.assertIn("Rank 2 is stuck", page.read_text())
            ran = tacet("diagnose", "-o", pathlib.Path(tmp) / "no" / "such" / "folder", STUCK)
            self.assertEqual(ran.code, 2)
            self.assertIn("cannot write", ran.message)

    def test_pages_beside_the_text(self):
        traces = GOLDEN.parent / "corpus" / "gpt_ddp_b1"
        other = GOLDEN.parent / "corpus" / "gpt_ddp_b25"
        with tempfile.TemporaryDirectory() as tmp:
            page = pathlib.Path(tmp) / "page.html"
            for first, title, *arguments in (("HANG", "hang", "diagnose", STUCK), ("COMMUNICATION-BOUND", "profile: communication-bound", "profile", traces),
                                             ("step time", "comparison: no significant difference", "compare", traces, other)):
                ran = tacet(arguments[0], "--html", page, *arguments[1:])
                self.assertTrue(ran.text.startswith(first), ran.text[:80])
                self.assertIn(f"<title>Tacet{'' if first != 'HANG' else ':'} {title}</title>", page.read_text())
                self.assertEqual(tacet(arguments[0], "--html", page / "no", *arguments[1:]).code, 2)
                alone = tacet(arguments[0], "--format", "html", *arguments[1:])
                self.assertTrue(alone.text.startswith("<!DOCTYPE html>"))
                self.assertNotRegex(alone.text, r"\{\{\w+\}\}")  # a place that was not filled

    def test_runs_without_anything_in_common_are_not_called_equal(self):
        corpus = GOLDEN.parent / "corpus"
        ran = tacet("compare", corpus / "hang_dtype", corpus / "gpt_ddp_b1")
        self.assertEqual(ran.code, 2)
        self.assertTrue(ran.text.startswith("not comparable"), ran.text[:80])
        self.assertIn("in common", ran.message)

    def test_a_step_time_alone_compares_nothing(self):
        corpus = GOLDEN.parent / "corpus"
        ran = tacet("compare", corpus / "stuck_data", corpus / "gpt_fsdp")
        self.assertEqual(ran.code, 2)
        self.assertTrue(ran.text.startswith("not comparable: no operation occurs in both runs"), ran.text[:80])

    def test_records_without_times_are_nothing_to_profile(self):
        ran = tacet("profile", GOLDEN.parent / "corpus" / "init_missing")
        self.assertEqual((ran.code, ran.text), (2, ""))
        self.assertIn("nothing to profile", ran.message)

    def test_a_comparison_fits_the_page(self):
        corpus = GOLDEN.parent / "corpus"
        ran = tacet("compare", "--verbose", corpus / "gpt_ddp_b1", corpus / "gpt_ddp_b25")
        self.assertLessEqual(max(len(line) for line in ran.text.splitlines()), 100)

    def test_numbers_name_their_option(self):
        for command, option, value in (("diagnose", "--threads", "0"), ("profile", "--max-file-mb", "x"), ("agent", "--interval", "5"), ("serve", "--workers", "1")):
            ran = tacet(command, option, value, HEALTHY) if command in ("diagnose", "profile") else tacet(command, option, value, *(["--agents", "x"] if command == "serve" else []))
            self.assertEqual(ran.code, 2)
            self.assertIn(f"{option} takes a number", ran.message)

    def test_standard_input(self):
        log = (GOLDEN / "rank_stuck_in_one_labelled_log" / "input" / "slurm-4711.out").read_bytes()
        for bytes_in in (log, gzip.compress(log)):
            ran = tacet("diagnose", "-f", "json", "-", stdin=bytes_in)
            self.assertEqual(ran.code, 1, ran.message)
            self.assertEqual(ran.report["verdict"]["ranks"], [2])
        empty = tacet("diagnose", "-f", "json", "-")
        self.assertEqual(empty.report["verdict"]["status"], "undetermined")
        self.assertEqual(empty.report["verdict"]["ranks"], [])

    def test_files_named_one_by_one(self):
        ran = tacet("diagnose", "-f", "json", *sorted(STUCK.iterdir()))
        self.assertEqual(ran.report["verdict"]["ranks"], [2])
        self.assertEqual(len(ran.report["inputs"]), len(list(STUCK.iterdir())))

    def test_double_dash_ends_options(self):
        with tempfile.TemporaryDirectory() as tmp:
            shutil.copytree(STUCK, pathlib.Path(tmp) / "--help")
            ran = tacet("diagnose", "-f", "json", "--", "--help", cwd=tmp)
            self.assertEqual(ran.report["verdict"]["ranks"], [2])


class Hostile(unittest.TestCase):
    """Something bad lies in the folder of a hang. It is told, it costs little, and the hang is still explained."""

    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="tacet-cli-"))
        self.folder = self.tmp / "job"
        shutil.copytree(STUCK, self.folder)
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)

    def diagnose(self, *more, timeout=120, **options):
        ran = tacet("diagnose", "--format", "json", self.folder, *more, timeout=timeout, **options)
        self.assertEqual(ran.code, 1, ran.message)
        verdict = ran.report["verdict"]
        self.assertEqual((verdict["status"], verdict["cause"], verdict["ranks"]), ("hang", "rank-stuck-on-host", [2]))
        self.assertLess(ran.peak_kb, LIMIT_KB)
        named = {i["file"].removeprefix("job/") for i in ran.report["inputs"]}
        for f in STUCK.iterdir():
            self.assertIn(f.name, named)
        self.assertEqual([i["file"] for i in ran.report["inputs"]
                          if i["understood"] + i["ignored"] + i["not_understood"] != i["bytes"]], [])
        return ran.report

    def input(self, report, name):
        return next(i for i in report["inputs"] if i["file"].endswith(name))

    def assertTold(self, report, name, code, words=""):
        """The file is listed, and a remark of this code tells why it gave nothing; equal remarks are folded into one."""
        self.assertTrue(self.input(report, name))
        remarks = [d for d in report["diagnostics"] if d["code"] == code and words in d["message"]]
        self.assertTrue(remarks, f"{name}: {report['diagnostics']}")
        self.assertTrue(any(file.endswith(name) for d in remarks for file in d["files"]), name)

    def alone(self, name, code, *options, timeout=120):
        """The same file without company."""
        ran = tacet("diagnose", *options, self.folder / name, timeout=timeout)
        self.assertEqual(ran.code, code, ran.message + ran.text)
        self.assertLess(ran.peak_kb, LIMIT_KB)
        return ran

    def test_malicious_pickle_is_not_executed(self):
        marker = self.tmp / "executed"

        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {marker}",)
        for protocol in range(6):
            (self.folder / f"evil_{protocol}.pkl").write_bytes(pickle.dumps(Evil(), protocol))
            dump = {"version": "2.10", "pg_config": Evil(), "entries": [Evil(), {"record_id": 0, "pg_id": 0}]}
            (self.folder / f"evil_dump_{protocol}.pkl").write_bytes(pickle.dumps(dump, protocol))
        report = self.diagnose()
        self.assertFalse(marker.exists())
        for protocol in range(6):
            self.assertTold(report, f"evil_{protocol}.pkl", "unknown-format")
            self.assertTrue(self.input(report, f"evil_dump_{protocol}.pkl"))
        self.alone("evil_2.pkl", 2)
        self.alone("evil_dump_2.pkl", 2)
        self.assertFalse(marker.exists())

    def bomb(self, name, line, member_lines=400_000):
        """Ten megabytes or so of gzip members that unpack to ten gigabytes of lines."""
        member = gzip.compress(line * member_lines, 9)
        with open(self.folder / name, "wb") as out:
            for _ in range(10**10 // (len(line) * member_lines) + 1):
                out.write(member)
        self.assertLess((self.folder / name).stat().st_size, 40 * 10**6)

    def test_gzip_bomb_of_log_lines_costs_bounded_memory(self):
        self.bomb("bomb.log.gz", b"[2026-11-15 00:15:38] vm:9999:9999 [0] NCCL INFO Channel 00/02 : 0 1 2 3\n")
        report = self.diagnose(timeout=300)
        self.assertTold(report, "bomb.log.gz", "too-large")

    def test_gzip_bomb_of_collectives_costs_bounded_memory(self):
        self.bomb("bomb.log.gz", b"[2026-11-15 00:15:47] vm:9999:9999 [0] NCCL INFO AllReduce: opCount 1e sendbuff 0x7fbf28a00000 recvbuff "
                  b"0x7fbf28a00000 count 7347200 datatype 7 op 0 root 0 comm 0x3d53b690 [nranks=4] stream 0x10\n")
        report = self.diagnose(timeout=300)
        self.assertTold(report, "bomb.log.gz", "too-large")

    def test_gzip_bomb_of_zeros_is_not_unpacked(self):
        self.bomb("zeros.gz", bytes(1000), 100_000)
        report = self.diagnose()
        self.assertEqual(self.input(report, "zeros.gz")["format"], "unknown")

    def test_cut_and_damaged_gzip(self):
        whole = gzip.compress((STUCK / "nccl_rank0.log").read_bytes())
        (self.folder / "cut.log.gz").write_bytes(whole[:len(whole) // 2])
        (self.folder / "damaged.log.gz").write_bytes(whole[:2000] + b"\xff" * 400 + whole[2400:])
        (self.folder / "header_only.gz").write_bytes(whole[:10])
        report = self.diagnose()
        self.assertTold(report, "cut.log.gz", "compressed-cut")
        self.assertTold(report, "damaged.log.gz", "compressed-corrupt")
        self.assertTold(report, "header_only.gz", "empty-file")

    def test_ten_million_bytes_without_a_newline(self):
        (self.folder / "one_line.log").write_bytes(b"NCCL INFO " * 1_000_000)
        (self.folder / "one_long_word").write_bytes(b"x" * 10_000_000)
        report = self.diagnose()
        self.assertEqual(self.input(report, "one_line.log")["bytes"], 10_000_000)
        self.assertTold(report, "one_long_word", "unknown-format")

    def test_ten_million_lines(self):
        (self.folder / "lines.log").write_bytes(b"\n" * 10_000_000)
        (self.folder / "numbers.log").write_bytes(b"step 1 loss 0.5\n" * 10_000_000 + b"no newline at the end")
        self.diagnose()

    def test_ten_million_brackets(self):
        (self.folder / "deep.json").write_bytes(b"[" * 10_000_000)
        (self.folder / "deeper.json").write_bytes(b'{"entries":' * 1_000_000)
        (self.folder / "deep.pkl").write_bytes(b"\x80\x02" + b"(" * 5_000_000 + b"]" * 5_000_000)
        (self.folder / "deep_lists.pkl").write_bytes(b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".")
        self.diagnose()

    def test_pickle_that_claims_more_than_it_has(self):
        (self.folder / "long_string.pkl").write_bytes(b"\x80\x02}X\xff\xff\xff\x7fversion")
        (self.folder / "long_bytes.pkl").write_bytes(b"\x80\x04\x8e" + b"\xff" * 8 + b"x.")
        (self.folder / "long_number.pkl").write_bytes(b"\x80\x02\x8b\xff\xff\xff\x7f1.")
        # Every DUP and APPEND doubles what a naive reader would write out.
        (self.folder / "laughs.pkl").write_bytes(b"\x80\x02]q\x00" + b"".join(b"](h%bh%bh%beq%b" % ((bytes([i]),) * 3 + (bytes([i + 1]),))
                                                                              for i in range(60)) + b".")
        self.diagnose()

    def test_folder_named_like_a_log(self):
        (self.folder / "stdout_rank9.log").mkdir()
        deep = self.folder
        for _ in range(60):
            deep = deep / "down"
        deep.mkdir(parents=True)
        (deep / "note.txt").write_text("nothing of interest\n")
        report = self.diagnose()
        self.assertTrue(self.input(report, "note.txt"))

    def test_fifo_does_not_block(self):
        os.mkfifo(self.folder / "pipe.log")
        report = self.diagnose(timeout=60)
        self.assertTold(report, "pipe.log", "unreadable", "fifo")
        ran = self.alone("pipe.log", 2, timeout=60)
        self.assertIn("nothing could be read", ran.message)
        self.assertIn("fifo", ran.text + ran.message)

    def test_devices_are_refused(self):
        report = self.diagnose("/dev/zero", timeout=60)
        self.assertTold(report, "zero", "unreadable", "device")
        ran = tacet("diagnose", "/dev/zero", timeout=60)
        self.assertEqual(ran.code, 2)
        self.assertIn("device", ran.text + ran.message)

    def test_file_without_permission(self):
        secret = self.folder / "secret.log"
        secret.write_text("NCCL INFO\n")
        secret.chmod(0)
        options = {}
        if os.geteuid() == 0:  # root may read everything: run as nobody, who must be able to reach folder and program
            self.tmp.chmod(0o755)
            options = {"user": 65534}
            try:
                subprocess.run([TACET, "--version"], check=True, capture_output=True, user=65534)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("runs as root, and nobody cannot reach the program")
        report = self.diagnose(**options)
        self.assertTold(report, "secret.log", "unreadable", "ermission")
        ran = tacet("diagnose", secret, **options)
        self.assertEqual(ran.code, 2)
        self.assertIn("ermission", ran.text + ran.message)

    def test_empty_file_and_empty_folder(self):
        (self.folder / "empty.bin").touch()
        (self.folder / "stdout_extra.log").touch()  # a job that printed nothing leaves this
        report = self.diagnose()
        self.assertTold(report, "empty.bin", "empty-file")
        self.assertEqual(self.input(report, "stdout_extra.log")["bytes"], 0)
        self.assertIn("UNDETERMINED", self.alone("empty.bin", 2).text)
        self.assertIn("UNDETERMINED", self.alone("stdout_extra.log", 2).text)
        hollow = self.tmp / "hollow"
        hollow.mkdir()
        ran = tacet("diagnose", hollow)
        self.assertIn("UNDETERMINED", ran.text)
        (self.folder / "empty.log").touch()
        self.assertIn("Read 1 file. It is empty.", self.alone("empty.log", 2).text)

    def test_nothing_understood_is_no_clean_bill(self):
        (self.folder / "noise.bin").write_bytes(bytes(range(256)) * 16)
        (self.folder / "hollow").mkdir()
        for command in ("diagnose", "topology"):
            noise = tacet(command, self.folder / "noise.bin")
            self.assertEqual(noise.code, 2, command)
            hollow = tacet(command, self.folder / "hollow")
            self.assertEqual(hollow.code, 2, command)
            self.assertIn("No file was read.", hollow.text)

    def test_links_that_loop_and_links_that_lead_outside(self):
        (self.folder / "a.log").symlink_to("b.log")
        (self.folder / "b.log").symlink_to("a.log")
        (self.folder / "up").symlink_to("..")
        (self.folder / "self").symlink_to(".")
        (self.folder / "dangling.log").symlink_to("nothing")
        outside = self.tmp / "outside.log"
        outside.write_text("token=SECRET-4711\n[rank0]: RuntimeError: SECRET-4711\n")
        (self.folder / "outside.log").symlink_to(outside)
        report = self.diagnose(timeout=60)
        self.assertEqual(len(report["inputs"]), len(list(STUCK.iterdir())) + 4)
        self.assertTold(report, "outside.log", "unreadable", "outside")
        for name in ("a.log", "b.log", "dangling.log"):
            self.assertTold(report, name, "unreadable")
        self.assertNotIn("SECRET", json.dumps(report))

    def test_every_kind_of_bad_link_says_what_it_is(self):
        (self.folder / "a.log").symlink_to("a.log")
        (self.folder / "dangling.log").symlink_to("nothing")
        report = self.diagnose(timeout=60)
        self.assertTold(report, "a.log", "unreadable", "back to itself")
        self.assertTold(report, "dangling.log", "unreadable", "broken link")

    def test_a_path_that_does_not_exist_beside_one_that_does(self):
        alone = tacet("diagnose", "--format", "json", STUCK)
        ran = tacet("diagnose", "--format", "json", STUCK, "/nowhere/at all")
        self.assertEqual(ran.code, 1)
        self.assertIn("/nowhere/at all", ran.message)
        report = json.loads(ran.out)
        self.assertEqual(report["verdict"]["ranks"], json.loads(alone.out)["verdict"]["ranks"])
        self.assertTold(report, "/nowhere/at all", "unreadable", "no such file")

    def test_folders_deeper_than_a_process_may_open(self):
        here = os.getcwd()
        try:
            os.chdir(self.folder)
            for _ in range(1500):
                os.mkdir("d")
                os.chdir("d")
        finally:
            os.chdir(here)
        # Python cannot take such a tree away again.
        self.addCleanup(subprocess.run, ["rm", "-rf", str(self.folder / "d")], check=True)
        report = self.diagnose(timeout=60)
        self.assertTrue(any("deep" in told["message"] for told in report["diagnostics"]))

    def test_sparse_file_of_fifty_gigabytes(self):
        with open(self.folder / "sparse.log", "wb") as out:
            out.truncate(50 * 10**9)
        shutil.copy(STUCK / "stdout_rank0.log", self.folder / "rotated.log")
        with open(self.folder / "rotated.log", "r+b") as out:  # a writer that goes on after copytruncate
            text = out.read()
            out.truncate(0)
            out.seek(50 * 10**9)
            out.write(text)
        report = self.diagnose(timeout=60)
        self.assertTold(report, "sparse.log", "holes")
        self.assertTold(report, "rotated.log", "holes")
        self.assertEqual(self.input(report, "rotated.log")["format"], "torch_log")

    def test_all_files_of_one_remark_are_named(self):
        for name in ("one.bin", "two.bin", "three.bin"):
            (self.folder / name).write_bytes(b"nothing that is known")
        report = self.diagnose()
        told = [remark for remark in report["diagnostics"] if remark["code"] == "unknown-format"]
        self.assertEqual([set(remark["files"]) for remark in told], [{"one.bin", "two.bin", "three.bin"}])
        self.assertIn("two.bin", tacet("diagnose", self.folder).text)

    def test_binary_garbage(self):
        seed, garbage = 1, bytearray()
        for _ in range(1 << 20):
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
            garbage.append(seed >> 56)
        (self.folder / "garbage.bin").write_bytes(garbage)
        (self.folder / "nulls.log").write_bytes(bytes(1 << 20))
        (self.folder / "almost.pkl").write_bytes(b"\x80\x02" + garbage)
        (self.folder / "almost.gz").write_bytes(b"\x1f\x8b\x08\x00" + garbage)
        (self.folder / "almost.zst").write_bytes(b"\x28\xb5\x2f\xfd" + garbage)
        (self.folder / "almost.json").write_bytes(b'{"entries": [' + garbage)
        (self.folder / "almost.log").write_bytes(b"vm:1:1 [0] NCCL INFO " + garbage)
        report = self.diagnose()
        for name in ("garbage.bin", "nulls.log", "almost.gz", "almost.zst"):
            self.assertEqual(self.input(report, name)["understood"], 0, name)
        self.assertTold(report, "garbage.bin", "unknown-format")
        self.alone("garbage.bin", 2)

    def test_names_with_terminal_codes_and_broken_utf8(self):
        for name in (b"\x1b[31mred\x07.log", b"line\nbreak.log", b"<script>alert(1)<script>.log", b"\xff\xfe.log"):
            with open(os.fsencode(self.folder) + b"/" + name, "wb") as out:
                out.write(b"[rank0]: hello\n")
        self.diagnose()
        for form in ("text", "html", "junit", "sarif"):
            ran = tacet("diagnose", "--verbose", "--format", form, self.folder)
            self.assertEqual(ran.code, 1, form)
            self.assertIsNone(re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", ran.out), form)
            ran.out.decode("utf-8")
            if form == "html":
                self.assertNotIn(b"<script>alert", ran.out)
            if form == "junit":
                xml.etree.ElementTree.fromstring(ran.out)


class CompareBenchmarks(unittest.TestCase):
    SAMPLES = GOLDEN.parents[1] / "src" / "evidence" / "nccl_tests" / "samples"

    def runs(self, folder, count, slower=1.0, wrong=0):
        """Tables of one sweep, each a launch of its own with two per cent of noise."""
        rng = random.Random(f"{folder.name}{slower}")
        folder.mkdir()
        for run in range(count):
            rows = []
            for exponent in range(16, 27):
                size = 1 << exponent
                row = f"{size:12d}  {size // 4:12d}     float     sum      -1"
                for _ in range(2):
                    time = (20 + size / 2e5) * (slower if size > 4 << 20 else 1) * rng.gauss(1, 0.02)
                    row += f"  {time:7.2f}  {size / time / 1e3:6.2f}  {size / time / 1e3:6.2f}  {wrong:6d}"
                rows.append(row)
            head = (self.SAMPLES / "all_reduce_2.19.txt").read_text().splitlines()[:13]
            (folder / f"run{run}.txt").write_text("\n".join(head + rows + ["# Out of bounds values : 0 OK", ""]))
        return folder

    def test_two_recorded_runs_of_the_same_are_noise(self):
        ran = tacet("compare", self.SAMPLES / "all_reduce_2.19.txt", self.SAMPLES / "all_reduce_2.19.json")
        self.assertEqual(ran.code, 0, ran.message)
        self.assertTrue(ran.text.startswith("no significant difference"), ran.text)
        self.assertIn("the noise of a single size is unknown", ran.text)

    def test_repeated_and_single_runs(self):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            before, same = self.runs(scratch / "a", 4), self.runs(scratch / "b", 4)
            after = self.runs(scratch / "c", 4, slower=1.2)
            for a, b, code in ((before, same, 0), (before, after, 1), (after, before, 0),
                               (before / "run0.txt", same / "run1.txt", 0), (before / "run0.txt", after / "run1.txt", 1)):
                ran = tacet("compare", "--format", "json", a, b)
                report = ran.report
                self.assertEqual(ran.code, code, report["headline"])
                self.assertEqual(report["regressed"], code == 1)
                large = [line for line in report["lines"] if "above 4 MiB" in line["name"]]
                self.assertEqual(len(large), 1)
                self.assertEqual(large[0]["result"] == "slower", code == 1, large)
            junit = tacet("compare", "--format", "junit", before, after)
            root = xml.etree.ElementTree.fromstring(junit.out)
            self.assertGreater(int(root.get("failures")), 0)
            self.assertEqual(len(root.findall(".//failure")), int(root.get("failures")))

    def test_wrong_results_fail_however_fast(self):
        with tempfile.TemporaryDirectory() as scratch:
            good, bad = self.runs(pathlib.Path(scratch) / "a", 2), self.runs(pathlib.Path(scratch) / "b", 2, wrong=7)
            ran = tacet("compare", good, bad)
            self.assertEqual(ran.code, 1)
            self.assertIn("wrong results", ran.text.splitlines()[0])
            self.assertEqual(tacet("compare", bad, good).code, 0)
            self.assertEqual(tacet("compare", "--gate", "never", good, bad).code, 0)

    def test_nothing_in_common(self):
        for other in ("sendrecv_2.19.txt", GOLDEN / "rank_computes_longer_in_nsight_exports" / "input"):
            ran = tacet("compare", self.SAMPLES / "all_reduce_2.19.txt", self.SAMPLES / other)
            self.assertEqual(ran.code, 2)
            self.assertIn("tacet: ", ran.message)


class PublishedFigures(unittest.TestCase):
    """Timelines and traces of others, which lie beside the repository, through the program as a user runs it."""
    PUBLIC = GOLDEN.parents[1].parent / "shared" / "public"

    def profile(self, path):
        if not path.exists():
            self.skipTest(f"{path} is not here")
        ran = tacet("profile", "--format", "json", path)
        self.assertEqual(ran.code, 0, ran.message)
        return ran.report["jobs"][0]

    def test_what_if_replay(self):
        folder = self.PUBLIC / "straggler"
        timelines = sorted(folder.glob("timeline-*.json.gz"))
        if not timelines:
            self.skipTest("the public timelines are not here")
        for timeline in timelines:
            name = timeline.name.removeprefix("timeline-").removesuffix(".json.gz")
            with self.subTest(name):
                published = json.loads((folder / f"result-{name}.json").read_text())
                replay = self.profile(timeline)["what_if"][0]
                slowdown = published["blocking_slowdown"]
                self.assertAlmostEqual(replay["slowdown"] / slowdown, 1, delta=0.01)
                self.assertEqual(replay["steps"], len(published["step_t_base"]))
                for key, parts in (("by_dp_rank", "dp_rank"), ("by_stage", "stage")):
                    figures = {int(part): value for part, value in published[f"blocking_decompose_by_{parts}"].items()}
                    self.assertEqual(len(replay[key]), len(figures))
                    for part, value in figures.items():
                        self.assertAlmostEqual(replay[key][part] / value, 1, delta=0.01, msg=f"{parts} {part}")
                    top = max(figures, key=figures.get)
                    self.assertEqual(replay[f"worst_{parts}"], top)
                for kind, value in published["blocking_decompose_by_optype"].items():
                    self.assertAlmostEqual(replay["by_operation"][kind] / value, 1, delta=0.01, msg=kind)
                for key, file, figure in (("m_w", "mw", "Mw"), ("m_s", "ms", "Ms")):
                    value = json.loads((folder / f"{file}-{name}.json").read_text())[figure]
                    self.assertAlmostEqual(replay[key], value, delta=0.02, msg=key)

    def test_overlap_of_the_dlrm_traces(self):
        job = self.profile(self.PUBLIC / "dlrm")
        published = [4.50, 2.47, 7.88, 3.31, 0.56, 0.64, 7.56, 9.51]
        self.assertEqual([rank["rank"] for rank in job["ranks"]], list(range(8)))
        for rank, value in zip(job["ranks"], published):
            self.assertAlmostEqual(100 * rank["hidden_fraction"], value, delta=0.01, msg=f"rank {rank['rank']}")
        self.assertEqual(job["stragglers"]["found"], [], "one step does not tell who is always late")


if __name__ == "__main__":
    TACET = str(pathlib.Path(sys.argv.pop(1)).resolve())
    if b"__asan_init" in pathlib.Path(TACET).read_bytes():
        # Shadow memory and quarantine are the sanitizer's, not the program's.
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8:detect_leaks=0"
        LIMIT_KB = LIMIT_KB * 5 // 4
    unittest.main()
