#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""front_cli_test.py TACET: spelling, short forms, help, completions and man pages, all from the commands' help."""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG = ROOT / "tests" / "golden" / "rank_stuck_in_data_loader" / "input"
TACET = os.path.abspath(sys.argv.pop(1))


def tacet(*arguments, **options):
    return subprocess.run([TACET, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options)


def steady(text):
    """A report without the time it took."""
    return re.sub(r'"seconds":[0-9.e-]+|Took [0-9.]+ s\.\s', "", text)


def commands():
    return tacet("completion", "--list").stdout.split()


def options_of(command):
    """(letter, name) of the rows of a help text, read with other eyes than the program's."""
    return re.findall(r"^(?:  -(\w), |      )(--[a-z-]+)", tacet(command, "--help").stdout, re.M)


class Spelling(unittest.TestCase):
    def says(self, ran, text):
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn(text, ran.stderr)

    def test_commands(self):
        for wrong, right in (("diagnoze", "diagnose"), ("daignose", "diagnose"), ("diag", "diagnose"), ("profil", "profile"), ("topo", "topology")):
            self.says(tacet(wrong), f"did you mean '{right}'?")
            self.says(tacet("help", wrong), f"did you mean '{right}'?")

    def test_options(self):
        self.says(tacet("diagnose", "--fromat", "json", HANG), "did you mean '--format'?")
        self.says(tacet("diagnose", "--colour", "never", HANG), "did you mean '--color'?")
        self.says(tacet("serve", "--agent-token", "x"), "did you mean '--agent-token-file'?")

    def test_causes(self):
        self.says(tacet("explain", "rank-stuck"), "did you mean 'rank-stuck-on-host'?")
        self.says(tacet("explain", "collective-mismatch"), "did you mean one of 'collective-mismatch-")
        self.says(tacet("explain", "colective-skipped"), "did you mean 'collective-skipped'?")
        self.says(tacet("explain", "out-of-memory"), "did you mean 'rank-out-of-memory'?")
        self.says(tacet("explain", "out", "of", "memory"), "did you mean 'rank-out-of-memory'?")
        self.assertEqual(tacet("explain", "rank", "out", "of", "memory").stdout, tacet("explain", "rank-out-of-memory").stdout)

    def test_faults_of_the_lab(self):
        self.says(tacet("lab", "run", "stuck-lok"), "did you mean 'stuck-lock'?")

    def test_the_argument_that_is_wrong_is_named(self):
        self.says(tacet("capture", "--pid", "4436", "4437"), "unexpected argument '4437'")
        self.says(tacet("capture", "--pid", "4436", "4437"), "separate process ids by commas: --pid 4436,4437")
        self.says(tacet("capture", "--pid", "1", "logs"), "unexpected argument 'logs'")
        self.says(tacet("capture"), "capture needs --pid, --slurm or --pod")
        self.says(tacet("profile", "/etc/passwd"), "no timing data was found in /etc/passwd")
        self.says(tacet("profile", "/etc/passwd", "/etc/group"), "no timing data was found in these paths")
        self.says(tacet("compare", "/no/such/path", HANG), "tacet: '/no/such/path': no such file or folder")

    def test_words_that_are_near_nothing_get_no_suggestion(self):
        for ran in (tacet("xyzzy"), tacet("diagnose", "--xyzzy", HANG), tacet("explain", "xyzzy"), tacet("d" * 5000)):
            self.assertEqual(ran.returncode, 2)
            self.assertNotIn("did you mean", ran.stderr)

    def test_an_option_without_its_value_is_told_what_it_takes(self):
        self.says(tacet("diagnose", HANG, "--fail-on"), "severity")
        self.says(tacet("diagnose", HANG, "-f"), "'-f' needs a value")
        self.says(tacet("run", "--on-hang", "--", "true"), "'--on-hang' needs a value")
        self.says(tacet("--nothing"), "unknown option '--nothing'")


class ShortForms(unittest.TestCase):
    def test_json_in_every_spelling(self):
        forms = (("--format", "json"), ("--format=json",), ("-f", "json"), ("-fjson",), ("--json",), ("-vfjson",))
        reports = [steady(tacet("diagnose", HANG, *form).stdout) for form in forms]
        self.assertTrue(reports[0].startswith("{"))
        for form, report in zip(forms, reports):
            self.assertEqual(report, reports[0], form)

    def test_the_last_of_two_formats_counts(self):
        self.assertTrue(tacet("diagnose", HANG, "--json", "-f", "text").stdout.startswith("HANG"))
        self.assertTrue(tacet("diagnose", HANG, "-f", "text", "--json").stdout.startswith("{"))

    def test_numbers_behind_letters(self):
        self.assertEqual(steady(tacet("diagnose", HANG, "-j1").stdout), steady(tacet("diagnose", HANG, "--threads", "1").stdout))
        refused = tacet("diagnose", HANG, "-j0")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--threads takes a number", refused.stderr)

    def test_a_switch_takes_no_value(self):
        self.assertEqual(tacet("diagnose", HANG, "--json=1").returncode, 2)
        self.assertIn("unknown option '-x'", tacet("diagnose", HANG, "-vx").stderr)

    def test_a_page_that_cannot_be_written_keeps_the_report(self):
        for command, path in (("diagnose", HANG), ("profile", ROOT / "tests/corpus/straggler")):
            ran = tacet(command, path, "--html", "/nowhere/page.html")
            self.assertEqual(ran.returncode, 2, command)
            self.assertIn("/nowhere/page.html", ran.stderr)
            self.assertEqual(steady(ran.stdout), steady(tacet(command, path).stdout))
            self.assertGreater(len(ran.stdout.splitlines()), 5)


def on_a_terminal(columns, *arguments):
    """What a terminal of this width shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    shown = b""
    with subprocess.Popen([TACET, *map(str, arguments)], stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as running:
        os.close(theirs)
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the end, as Linux tells it
            pass
        running.wait(timeout=60)
    os.close(ours)
    return shown.decode().replace("\r", "")


def columns_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Narrow(unittest.TestCase):
    """Reports of every command fit 60 columns; what cannot be broken (a path, a command to copy) may stand out."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.job = pathlib.Path(folder.name) / "job.sh"
        self.job.write_text("export NCCL_IB_DISABLE=true NCCL_TIMEOUT=1800\nexport NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/shared/nccl.log\n")
        self.logs = pathlib.Path(folder.name) / "logs"
        subprocess.run([sys.executable, ROOT / "tests/topology/make_setup_logs.py", self.logs, "--shape", "h100", "--nodes", "2",
                        "--fault", "nic-missing"], check=True, stdout=subprocess.DEVNULL)

    def commands(self):
        corpus, formats = ROOT / "tests/corpus", ROOT / "src/evidence"
        hardware = ("--gpus", "8xH100", "--nodes", "16", "--nics", "4x200G")
        yield from (("diagnose", corpus / case) for case in ("mesh_stuck", "lab_frozen_mesh_r7_w8", "straggler", "init_missing", "oom_rank"))
        yield "diagnose", "-v", corpus / "mesh_stuck"
        yield from (("profile", corpus / case) for case in ("straggler", "gpt_pp_heavy", "gpt_fsdp", "gpt_ddp_b1", "lab_traced_experts_w4"))
        yield "profile", formats / "pipeline_trace/samples/two_stages.json"
        yield "profile", "--explain"
        yield "compare", "-v", corpus / "gpt_ddp_b1", corpus / "gpt_ddp_b250"
        yield "topology", "-v", self.logs
        yield "predict", corpus / "sizes", "-v"
        yield "predict", *hardware, "--what-if", "nics=8x400G"
        yield "predict", "--alpha", "5us", "--bandwidth", "46", "--ranks", "64", "--op", "all", "--explain"
        yield ("predict", *hardware, "--step-time", "4.2s", "--model", "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256,seq=8192",
               "--layout", "dp=16,tp=8,micro=8")
        yield "bandwidth", formats / "nccl_tests/samples/all_reduce_2.19.txt"
        yield "bandwidth", formats / "p2p_latency/samples/four_gpus.txt"
        yield "lint", self.job
        yield ("formats",)
        yield "explain", "--list"
        yield "explain", "rank-dead"
        yield "lab", "list"

    def test_sixty_columns(self):
        for command in self.commands():
            wide = [line for line in on_a_terminal(60, *command).splitlines() if columns_of(line) > 60 and not re.search(r"\S{40}", line)]
            self.assertEqual(wide, [], command)

    def test_no_figure_is_lost(self):
        def figures(text):
            return sorted(set(re.findall(r"[0-9]+\.[0-9]+", steady(text))))
        for command in (("profile", ROOT / "tests/corpus/straggler"), ("predict", "--gpus", "8xH100", "--nodes", "4", "--nics", "8x400G")):
            self.assertEqual(figures(on_a_terminal(60, *command)), figures(on_a_terminal(120, *command)), command)

    def test_columns_of_the_environment_count_without_a_terminal(self):
        command = ("profile", ROOT / "tests/corpus/straggler")
        narrow = tacet(*command, env=os.environ | {"COLUMNS": "60"}).stdout
        self.assertEqual(narrow, on_a_terminal(60, *command))
        usual = tacet(*command, env={name: value for name, value in os.environ.items() if name != "COLUMNS"}).stdout
        for nonsense in ("", "wide", "-5", "7", "99999999999999999999"):
            wish = tacet(*command, env=os.environ | {"COLUMNS": nonsense}).stdout
            self.assertIn("Stragglers", wish)
            if nonsense != "99999999999999999999":
                self.assertEqual(wish, usual)

    def test_lists_that_people_read_are_wrapped_when_asked(self):
        for command in (("lab", "list"), ("explain", "transport-stalled"), ("formats",)):
            listed = tacet(*command, env=os.environ | {"COLUMNS": "60"}).stdout.splitlines()
            self.assertEqual([line for line in listed if columns_of(line) > 60], [], command)

    def test_the_lab_lists_verdicts_of_which_one_is_right(self):
        self.assertIn("-> timeout-too-short or rank-stuck-on-host", tacet("lab", "list").stdout)

    def test_an_empty_file_is_told_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "empty.txt"
            path.write_text("")
            self.assertEqual(tacet("diagnose", path).stdout.count("is empty"), 1)

    def test_help_knows_version(self):
        ran = tacet("help", "version")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("tacet --version", ran.stdout)

    def test_lists_that_programs_read_have_one_line_per_entry(self):
        listed = tacet("explain", "--list", env=os.environ | {"COLUMNS": "40"}).stdout.splitlines()
        self.assertTrue(all(re.match(r"  [a-z0-9]+(-[a-z0-9]+)* +[A-Z/]|[A-Z]|$", line) for line in listed), listed)


class Pipes(unittest.TestCase):
    def test_a_reader_that_has_seen_enough_gets_no_message(self):
        ran = subprocess.run(["bash", "-c", f'"{TACET}" explain --markdown | head -n 1; exit ${{PIPESTATUS[0]}}'], capture_output=True, text=True, check=False)
        self.assertEqual((ran.stdout, ran.stderr), ("# Causes\n", ""))

    def test_a_full_disk_gets_one(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("/dev/full is not here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run([TACET, "explain", "--list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("cannot write to standard output", ran.stderr)


class ExitCodes(unittest.TestCase):
    """As README.md and the help have them."""

    def test_by_status(self):
        golden = ROOT / "tests" / "golden"
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder) / "empty.log"
            empty.touch()
            noise = pathlib.Path(folder) / "noise.bin"
            noise.write_bytes(bytes(range(256)) * 16)
            for expected, path in ((0, golden / "healthy_job/input"), (1, HANG), (1, golden / "victims_log_alone/input"), (2, empty), (2, noise), (2, folder),
                                   (2, "/no/such/folder")):
                for form in ("text", "json", "junit", "sarif", "html"):
                    self.assertEqual(tacet("diagnose", "-f", form, path).returncode, expected, f"{path} {form}")

    def test_fail_on_moves_the_limit(self):
        self.assertEqual(tacet("diagnose", "--fail-on", "never", HANG).returncode, 0)
        self.assertEqual(tacet("diagnose", "--fail-on", "note", HANG).returncode, 1)


class Help(unittest.TestCase):
    def test_help_fits_a_narrow_window_and_loses_no_word(self):
        def words(text):
            return "".join(text.replace("\\\n", "").split())

        for command in [*commands(), "environment", ""]:
            asked = ["help", command] if command else ["help"]
            whole = tacet(*asked).stdout
            for width in (40, 60, 80):
                fitted = tacet(*asked, env={**os.environ, "COLUMNS": str(width)}).stdout
                for line in fitted.splitlines():
                    self.assertLessEqual(len(line), width, f"{command} at {width}: {line}")
                # A path may be longer than a line; a backslash continues an example.
                self.assertEqual(words(fitted), words(whole), f"{command} at {width}")
        self.assertIn("""
  -f, --format F       text (default), json, html, junit or
                       sarif
      --json           the same as --format json
""", tacet("help", "diagnose", env={**os.environ, "COLUMNS": "60"}).stdout)

    def test_help_of_a_command_is_its_help(self):
        for command in commands():
            self.assertEqual(tacet("help", command).stdout, tacet(command, "--help").stdout)
        self.assertEqual(tacet("help").stdout, tacet("--help").stdout)

    def test_every_variable_that_is_read_is_told(self):
        told = tacet("help", "environment").stdout
        self.assertEqual(tacet("help", "variables").stdout, told)
        read = set()
        for folder in ("src", "plugin"):
            for path in (ROOT / folder).rglob("*.cc"):
                if not path.name.endswith("_test.cc"):
                    read.update(re.findall(r'"(TACET_[A-Z_]+)"', path.read_text()))
                    read.update(re.findall(r'getenv\("([A-Z_]+)"\)', path.read_text()))
        self.assertGreater(len(read), 10)
        self.assertEqual(sorted(name for name in read - {"PATH", "HOME"} if not re.search(rf"\b{name}\b", told)), [])

    def test_plugin_path(self):
        ran = tacet("plugin-path")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(pathlib.Path(ran.stdout.strip()).is_file())
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(TACET, folder)
            ran = subprocess.run([alone, "plugin-path"], capture_output=True, text=True, check=False)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""))


class ManPages(unittest.TestCase):
    def test_every_option_and_no_stray_request(self):
        for command in commands():
            page = tacet("help", "--man", command).stdout
            self.assertTrue(page.startswith(".TH TACET\\-"), command)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"):
                self.assertEqual(page.count(f".SH {section}\n"), 1, f"{command}: {section}")
            plain = page.replace("\\-", "-")
            for letter, name in options_of(command):
                self.assertIn((f"\\fB-{letter}\\fR, " if letter else ".TP\n") + f"\\fB{name}\\fR", plain, command)
            for line in page.splitlines():
                if line.startswith((".", "'")):
                    self.assertRegex(line, r"^\.(TH|ad|SH|TP|PP|nf|fi|BR)\b", command)

    def test_troff_has_nothing_to_say(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not here")
        for command in ("", *commands()):
            page = tacet("help", "--man", *([command] if command else [])).stdout
            ran = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, text=True, check=False)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), command)


class Completions(unittest.TestCase):
    def bash(self, *words):
        script = (f"source <({TACET} completion bash); tacet() {{ {TACET} \"$@\"; }}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _tacet; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        ran = subprocess.run(["bash", "-c", script, "bash", "tacet", *words], capture_output=True, text=True, check=False)
        self.assertEqual(ran.stderr, "")
        return ran.stdout.split()

    def test_bash_completes_commands_options_values_and_causes(self):
        self.assertEqual(self.bash("dia"), ["diagnose"])
        self.assertEqual(set(commands()) | {"--help", "--version"}, set(self.bash("")))
        self.assertEqual(self.bash("diagnose", "--for"), ["--format"])
        self.assertEqual(self.bash("diagnose", "--format", "j"), ["json", "junit"])
        self.assertEqual(self.bash("diagnose", "-f", "sa"), ["sarif"])
        self.assertEqual(self.bash("diagnose", "--format", "=", "h"), ["html"])
        self.assertEqual(self.bash("diagnose", "--fail-on", ""), ["critical", "warning", "note", "never"])
        self.assertEqual(self.bash("diagnose", "--color", ""), ["auto", "always", "never"])
        self.assertEqual(self.bash("predict", "--gdr", ""), ["on", "off"])
        self.assertEqual(self.bash("explain", "rank-stuck"), ["rank-stuck-on-host"])
        self.assertEqual(self.bash("help", "environ"), ["environment"])
        self.assertEqual(self.bash("diagnose", "x"), [])  # files, by readline itself
        self.assertEqual(self.bash("run", "--", "--for"), [])

    def test_every_option_is_in_all_three(self):
        scripts = {shell: tacet("completion", shell).stdout for shell in ("bash", "zsh", "fish")}
        for command in commands():
            in_bash = re.search(rf"^      {command}\) _tacet_words '([^']*)'", scripts["bash"], re.M)[1].split()
            in_zsh = re.search(rf"^        {command}\)\n(.*?);;", scripts["zsh"], re.M | re.S)[1]
            in_fish = re.findall(rf"seen_subcommand_from {command}'.* -l (\S+)", scripts["fish"])
            for _, name in options_of(command):
                self.assertIn(name, in_bash)
                self.assertRegex(in_zsh, rf"{name}\b")
                self.assertIn(name[2:], in_fish)

    def test_shells_find_no_mistake_in_them(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                ran = subprocess.run([shell, "-n", "/dev/stdin"], input=tacet("completion", shell).stdout, capture_output=True, text=True, check=False)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), shell)
        self.assertEqual(tacet("completion", "tcsh").returncode, 2)


if __name__ == "__main__":
    unittest.main()
