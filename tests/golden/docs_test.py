#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say is what the program does: docs_test.py TACET [unittest arguments]

docs_test.py TACET --write puts the real output into README.md and the tutorials."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "plugin" / "README.md",
         *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))
TACET = ""


def run(*arguments):
    ran = subprocess.run([TACET, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return ran.stdout, ran.stderr


def commands():
    return re.findall(r"^  ([a-z-]+) {2,}\S", run("--help")[0], re.M)


def told_options(command):
    """The options at the start of a line of the help, and those beside them."""
    found = set()
    for line in run(command, "--help")[0].splitlines():
        if re.match(r"  (-[a-z], |    )--[a-z]", line):
            found.update(re.findall(r"--[a-z][a-z-]+", re.split(r" {2,}(?!--)(?=\S)", line.strip(), maxsplit=1)[0]))
    return found


def taken_options(command):
    """The parser lists what it takes when it meets something else."""
    err = run(command, "--no-such-option")[1]
    return set(re.findall(r"--[a-z][a-z-]+", err.split("options:", 1)[1])) if "options:" in err else set()


def steps_of(block):
    """(command, output) of a console block: '$ ' begins a command, '> ' goes on with it, the rest is what it prints."""
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1][0] += "\n" + line[2:]
        else:
            steps[-1][1] += line + "\n"
    return steps


def steady(text):
    """Without the time, which is told where the work took long."""
    text = re.sub(r"^Took [0-9.]+ s\. (?=More)", "", text, flags=re.M)
    return re.sub(r"(?:^\n)?^Took [0-9.]+ s\.\n", "", text, flags=re.M)


class Clone:
    """What a reader of a tutorial has: the files of the repository and build/tacet, in a folder that may be written to."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("tests", "src", "docs"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "tacet").symlink_to(TACET)
        self.environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}

    def prints(self, command):
        ran = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=120)
        return steady(ran.stdout)


def with_real_output(page):
    """The text of a tutorial with what its commands print now."""
    def block(match):
        return "```console\n" + "".join(
            "$ " + command.replace("\n", "\n> ") + "\n" + clone.prints(command) for command, _ in steps_of(match.group(1))) + "```"
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(folder)
        return re.sub(r"```console\n(.*?)```", block, page.read_text(), flags=re.S)


class Documents(unittest.TestCase):
    maxDiff = None

    def test_tutorials_show_the_real_output(self):
        self.assertGreaterEqual(len(TUTORIALS), 3)
        for page in TUTORIALS:
            self.assertGreaterEqual(len(re.findall(r"^\$ build/tacet ", page.read_text(), re.M)), 4, page.name)
            self.assertEqual(steady(page.read_text()), with_real_output(page), f"{page.name}: docs_test.py TACET --write")

    def test_pictures_are_small_and_all_shown(self):
        shown = {(page.parent / link).resolve() for page in PAGES for link in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text())}
        kept = {path.resolve() for path in (ROOT / "docs" / "images").iterdir()}
        self.assertEqual(kept, shown)
        for path in kept:
            self.assertLess(path.stat().st_size, 150_000, path.name)

    def test_the_readme_leads_to_every_document(self):
        linked = {(ROOT / link).resolve() for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())}
        wanted = {path.resolve() for path in (ROOT / "docs").glob("*.md")} | {ROOT / "docs" / "decisions" / "README.md"}
        self.assertEqual(sorted(path.name for path in wanted - linked), [])

    def test_the_readme_names_every_command(self):
        text = (ROOT / "README.md").read_text()
        self.assertEqual([command for command in commands() if not re.search(rf"tacet {command}\b", text)], [])

    def test_the_newest_version_of_the_changelog_is_that_of_the_program(self):
        versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
        told = run("--version")[0].split()[1]
        self.assertEqual(next(version for version in versions if version != "Unreleased"), told)

    def test_every_option_is_in_the_help_and_the_help_tells_of_no_other(self):
        for command in commands():
            with self.subTest(command):
                self.assertEqual(told_options(command), taken_options(command))

    def test_jobs_on_several_nodes_know_where_to_meet(self):
        """torchrun without an endpoint makes every node wait for itself."""
        seen = 0
        for name, text in [("help", run("help", "--markdown")[0]), *((page.name, page.read_text()) for page in PAGES)]:
            for line in text.replace("\\\n", " ").splitlines():
                if re.search(r"torchrun\b.*--nnodes[ =](?!1\b)", line):
                    seen += 1
                    self.assertRegex(line, r"--rdzv-endpoint[ =]|--master-addr[ =]", name)
        self.assertGreater(seen, 3)

    def test_every_command_with_options_tells_its_exit_codes(self):
        for command in commands():
            text = run("help", command)[0]
            if told_options(command) and command != "help":
                self.assertRegex(text, r"(?m)^Exit code|^Exits as the job does", command)

    def test_written_documents_are_fresh(self):
        for name, arguments in (("causes.md", ("explain", "--markdown")), ("commands.md", ("help", "--markdown"))):
            self.assertEqual((ROOT / "docs" / name).read_text(), run(*arguments)[0], f"docs/{name}: run make docs")

    def test_the_definitions_of_the_profile_are_those_of_the_program(self):
        page = (ROOT / "docs" / "profile.md").read_text().split("## Definitions", 1)[1]
        written = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", page, re.M))
        told, name = {}, None
        for line in run("profile", "--explain")[0].splitlines():
            if line.startswith("    "):
                told[name] = (told[name] + " " + line.strip()).strip()
            else:
                name = line
                told[name] = ""
        self.assertEqual(written, told)

    def test_documents_name_real_commands_with_real_options(self):
        known = {command: taken_options(command) | {"--help"} for command in commands()} 
        for page in PAGES:
            for line in page.read_text().splitlines():
                for command, rest in re.findall(r"(?<![\w/.-])(?:build/)?tacet ([a-z][a-z-]*)((?: [^`#|;&)\n]*)?)", line):
                    if command not in known:
                        # Prose ("tacet names the rank") is not set as code.
                        self.assertNotRegex(line, rf"`tacet {command}|^    (build/)?tacet {command}", f"{page.name}: there is no such command")
                        continue
                    code = re.search(rf"`tacet {command}[^`]*`|^ {{4,}}.*tacet {command}.*$", line)
                    for option in re.findall(r"(?<=[ `])--[a-z][a-z-]+", rest.split(" -- ")[0] if code else ""):
                        self.assertIn(option, known[command], f"{page.name}: {line.strip()}")

    def test_causes_and_links_exist(self):
        causes = {line.split()[0] for line in run("explain", "--list")[0].splitlines() if line.startswith("  ")}
        for page in PAGES:
            text = page.read_text()
            for cause in re.findall(r"tacet explain ([a-z][a-z0-9]*-[a-z0-9-]+)", text):
                self.assertIn(cause, causes, page.name)
            for link in re.findall(r"\]\(([^)#:]+)\)", text):
                self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")

    def test_the_readme_shows_the_real_output(self):
        text = (ROOT / "README.md").read_text()
        shown = re.search(r"```text\n(.*?)```", text, re.S).group(1)
        out = run("diagnose", ROOT / "tests" / "golden" / "rank_stuck_in_data_loader" / "input")[0]
        self.assertEqual(steady(shown), steady(out))

    def test_every_make_target_of_the_readme_exists(self):
        targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
        for page in PAGES:
            for target in re.findall(r"`make ([a-z]+)|^    make ([a-z]+)", page.read_text(), re.M):
                self.assertIn(target[0] or target[1], targets, page.name)


def write():
    """The documents that hold output, with what the program prints now."""
    for page in TUTORIALS:
        page.write_text(with_real_output(page))
    readme = ROOT / "README.md"
    out = steady(run("diagnose", ROOT / "tests" / "golden" / "rank_stuck_in_data_loader" / "input")[0])
    readme.write_text(re.sub(r"```text\n.*?```", lambda _: "```text\n" + out + "```", readme.read_text(), count=1, flags=re.S))


if __name__ == "__main__":
    TACET = os.path.abspath(sys.argv.pop(1))
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
