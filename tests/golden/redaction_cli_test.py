#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redaction_cli_test.py TACET SOURCE_DIR: secrets of the evidence reach no report, and nothing else is lost."""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from planted_secrets import KINDS, leak_of, planted  # noqa: E402  pylint: disable=wrong-import-position

TACET, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
FORMS = ("text", "json", "html", "junit", "sarif")
# Every command that reads evidence, with every form it writes, and the formats it is tried on.
COMMANDS = {
    "diagnose": (FORMS, None),
    "profile": (("text", "json", "html", "csv", "perfetto"), ("torch_trace", "inspector", "pipeline_trace")),
    "topology": (("text", "json", "html", "dot"), ("nccl_log", "topology_xml", "nvidia_smi")),
    "predict": (("text", "json", "csv"), ("nccl_log",)),
    "lint": (("text", "json"), ("nccl_log",)),
    "bandwidth": (("text", "json", "html"), ("nccl_tests", "nvbandwidth", "iperf3", "perftest", "osu", "p2p_latency", "bench_table")),
    "compare": (("text", "json", "html", "junit"), ("torch_trace", "nccl_tests")),
}
PLANTINGS = int(os.environ.get("TACET_PLANTINGS", "150"))
# Put together here, so that no scanner of this repository takes them for real ones.
SECRETS = {
    "password": "hunter2correcthorse",
    "token": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "cloud": "AKIA" + "IOSFODNN7EXAMPLE",
    "environment": "0123456789abcdef0123456789abcdef01234567",
    "command": "s3cr3tOfTheCommandLine",
    "url": "passw0rdOfTheUrl",
}
LOG = """Traceback (most recent call last):
  File "/home/u/train.py", line 41, in main
    connect(url)
  File "/home/u/train.py", line 17, in connect
    raise RuntimeError(message)
RuntimeError: 3f786850e387550fdab836ed7e6dc881de23001b login failed: password={password} token {token} key {cloud} at https://bot:{url}@git.example.org/x \
(command: train.py --api-key {command} --lr 0.1; environment: WANDB_API_KEY={environment} NCCL_DEBUG=INFO)
""".format(**SECRETS)


class Redaction(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-redact-")
        self.addCleanup(shutil.rmtree, self.folder)
        for rank in range(2):
            with open(os.path.join(self.folder, f"stderr_rank{rank}.log"), "w", encoding="utf-8") as file:
                file.write(LOG)

    def report(self, form, *options, paths=None):
        done = subprocess.run([TACET, "diagnose", "--format", form, "--verbose", *options, *(paths or [self.folder])],
                              capture_output=True, timeout=300, check=False)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.stdout.decode(errors="replace")

    def test_planted_secrets_are_in_no_form_of_the_report(self):
        for form in FORMS:
            text = self.report(form)
            for name, secret in SECRETS.items():
                self.assertNotIn(secret, text, f"{name} in {form}")
            self.assertIn("[redacted: password]", text.replace("\n", " "), form)
        said = json.loads(self.report("json"))
        self.assertIn("secrets were removed", " ".join(said["assumptions"]))
        self.assertIn("3f786850e387550fdab836ed7e6dc881de23001b", json.dumps(said), "an id of a commit is no secret")

    def run_tacet(self, *words):
        done = subprocess.run([TACET, *words], capture_output=True, timeout=300, check=False)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        return done.stdout.decode(errors="replace")

    def samples(self, formats):
        """Format and path of the samples of text."""
        for folder, _, files in sorted(os.walk(os.path.join(SOURCE, "src", "evidence"))):
            kind = os.path.relpath(folder, os.path.join(SOURCE, "src", "evidence")).split(os.sep)[0]
            if "samples" not in folder or (formats is not None and kind not in formats):
                continue
            for name in sorted(files):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    if b"\0" not in file.read(4096) and os.path.getsize(path) < 200000:
                        yield kind, path

    def test_a_secret_in_place_of_any_word_is_in_no_output_of_any_command(self):
        """Names of hosts, devices, kernels, groups, files: wherever a word stands in the evidence, a secret may stand."""
        rng, kinds = random.Random(11), [kind for kind, (before, _, _) in KINDS.items() if not before]
        shown, leaks = 0, []
        for command, (forms, formats) in COMMANDS.items():
            paths = [path for _, path in self.samples(formats)]
            for _ in range(PLANTINGS // len(COMMANDS)):
                path, kind, form = rng.choice(paths), rng.choice(kinds), rng.choice(forms)
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                words = sorted(set(re.findall(r"[A-Za-z][\w.-]{2,}", text)))
                if not words:
                    continue
                word = rng.choice(words)
                text = re.sub(r"(?<![\w.-])" + re.escape(word) + r"(?![\w.-])", planted(kind), text)
                copy = os.path.join(self.folder, os.path.basename(path))
                with open(copy, "w", encoding="utf-8") as file:
                    file.write(text)
                out = self.run_tacet(command, "--format", form, *([copy] * (2 if command == "compare" else 1)))
                if leak_of(kind, out):
                    leaks.append(f"{kind} for {word} of {path}, {command} --format {form}")
                if "[redacted" in out:
                    shown += 1
                    kept = self.run_tacet(command, "--format", form, "--no-redact", *([copy] * (2 if command == "compare" else 1)))
                    self.assertNotIn("[redacted", kept, f"{command} --no-redact, {kind} for {word} of {path}")
                os.remove(copy)
        self.assertFalse(leaks, "\n".join(leaks))
        self.assertGreater(shown, PLANTINGS // 50, "what is planted would be seen")

    def test_every_kind_in_a_kernel_a_group_and_a_job_of_a_trace(self):
        trace = os.path.join(self.folder, "trace", "rank0.json")
        os.makedirs(os.path.dirname(trace))
        for kind in KINDS:
            name = json.dumps(planted(kind))[1:-1]
            with open(trace, "w", encoding="utf-8") as file:
                file.write('{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1, "pg_config": '
                           '[{"pg_name": "0", "pg_desc": "%s", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}]}, "traceEvents": [\n'
                           '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": 1.0, "dur": 5.0, "args": {"External id": 1, '
                           '"device": 0, "stream": 7}},\n{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, '
                           '"tid": 8, "ts": 7.0, "dur": 5.0, "args": {"External id": 2, "device": 0, "stream": 8, "Collective name": "allreduce", '
                           '"In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", "Group size": 2, "Process Group Name": "0", '
                           '"Process Group Description": "%s"}}]}' % (name, name, name))
            for form in COMMANDS["profile"][0]:
                self.assertEqual(leak_of(kind, self.run_tacet("profile", "--format", form, trace)), "", f"{kind}, profile --format {form}")
            self.assertIn("[redacted: ", self.run_tacet("profile", "--format", "perfetto", trace), kind)
            kept = json.loads(self.run_tacet("profile", "--format", "perfetto", "--no-redact", trace))
            self.assertIn(planted(kind), {event["name"] for event in kept["traceEvents"]}, "on request it stays")

    def test_every_kind_in_an_exception_a_page_about_it_and_a_bundle(self):
        log = os.path.join(self.folder, "stderr_rank0.log")
        os.remove(os.path.join(self.folder, "stderr_rank1.log"))
        bundle = os.path.join(self.folder, "..", os.path.basename(self.folder) + ".tar")
        self.addCleanup(lambda: os.path.exists(bundle) and os.remove(bundle))
        for kind in KINDS:
            with open(log, "w", encoding="utf-8") as file:
                file.write('Traceback (most recent call last):\n  File "/home/u/train.py", line 41, in main\n    connect()\n'
                           "RuntimeError: login failed with " + planted(kind) + "\n")
            for form in FORMS:
                self.assertEqual(leak_of(kind, self.report(form)), "", f"{kind}, diagnose --format {form}")
            for form in ("markdown", "html"):
                self.assertEqual(leak_of(kind, self.run_tacet("postmortem", "--format", form, self.folder)), "", f"{kind}, postmortem --format {form}")
            self.run_tacet("collect", "--no-host", "-o", bundle, log)
            with tarfile.open(bundle) as tar:
                held = b"".join(tar.extractfile(member).read() for member in tar if member.isfile()).decode(errors="replace")
            self.assertIn("RuntimeError: login failed with", held)
            self.assertEqual(leak_of(kind, held), "", f"{kind}, collect")
            os.remove(bundle)

    def test_every_kind_in_variables_hosts_and_file_names(self):
        for kind in KINDS:
            secret = planted(kind)
            script = os.path.join(self.folder, "job.sh")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"export NCCL_SOCKET_IFNAME={secret}\nexport NCCL_TIMEOUT={secret}\nexport NCCL_DEBUG_FILE=/tmp/{secret}.log\n")
            for form in ("text", "json"):
                self.assertEqual(leak_of(kind, self.run_tacet("lint", "--format", form, script)), "", f"{kind}, lint --format {form}")
            os.remove(script)

    def test_nothing_is_taken_out_of_evidence_without_secrets(self):
        for command, (forms, formats) in COMMANDS.items():
            if command == "diagnose":
                continue  # below, on whole incidents
            paths = [path for _, path in self.samples(formats)]
            for i, path in enumerate(paths):
                out = self.run_tacet(command, "--format", forms[i % len(forms)], *([path] * (2 if command == "compare" else 1)))
                self.assertNotIn("[redacted", out, f"{command} {path}")

    def test_they_stay_where_they_are_asked_for(self):
        text = self.report("json", "--no-redact")
        for name in ("password", "token", "cloud"):
            self.assertIn(SECRETS[name], text, name)
        self.assertNotIn("[redacted", text)

    def test_nothing_else_is_lost(self):
        """Every recorded incident, with and without."""
        corpus = os.path.join(SOURCE, "tests", "corpus")
        cases = sorted(name for name in os.listdir(corpus) if os.path.isdir(os.path.join(corpus, name)))
        self.assertGreater(len(cases), 20)
        for case in cases:
            both = []
            for options in ((), ("--no-redact",)):
                report = json.loads(self.report("json", *options, paths=[os.path.join(corpus, case)]))
                report.pop("seconds", None)
                both.append(report)
            self.assertEqual(both[0], both[1], case)

    def test_invisible_characters_are_shown(self):
        hidden = "\u202e\u2066\u200b\ufeff\u00ad\U000e0041"
        with open(os.path.join(self.folder, "stderr_rank0.log"), "w", encoding="utf-8") as file:
            file.write(LOG.replace("login failed", "login" + hidden + " failed"))
        for form in FORMS:
            text = self.report(form, "--no-redact")
            for character in hidden:
                self.assertNotIn(character, text, f"U+{ord(character):04x} in {form}")
                self.assertNotIn('"login\\u202e', text, "an escape of JSON becomes the character again")
            self.assertIn("\\u202e", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
