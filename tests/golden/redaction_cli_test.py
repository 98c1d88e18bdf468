#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redaction_cli_test.py TACET SOURCE_DIR: secrets of the evidence reach no report, and nothing else is lost."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TACET, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
FORMS = ("text", "json", "html", "junit", "sarif")
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
