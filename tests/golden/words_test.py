#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words_test.py TACET: known bad patterns in what is printed, documented and shown. CONTRIBUTING.md, "Words", has the rules."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACET = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else ""

PER = r"(?:job|rank|step|node|stage|line|second|device|process|call|group|host|side|folder|channel|token)"
THING = r"(?:rank|file|call|step|process|node|host|line|job|operation|collective|channel|device|setting)"
VERB = r"(?:wait|are|have|do|issue|use|make|report|run|see|send|receive|cannot finds|come)"
VERBS = r"(?:waits|is|has|does|issues|uses|makes|reports|runs|sees|sends|receives|was|comes)"

# (what is wrong, how to find it)
BAD = [
    ("'per', not 'a'", rf"\b(?:verdict|file|line|row|chunk|call|run|check|test|record|agent|trace|TFLOP|MB|GB|µs|ms)s? a {PER}\b"),
    ("'per', not 'a'", rf"\b[0-9]+ (?:s|times) a {PER}\b"),
    ("agreement", rf"\b1 {THING}(?:e?s)\b(?!')"),
    ("agreement", rf"(?<![.,#0-9-])\b(?:[2-9]|[1-9][0-9]+) {THING}\b(?![-'])"),
    ("agreement", rf"(?<!does )(?<!Does )(?<!Did )(?<!did )\b[Rr]ank [0-9]+ {VERB}\b"),
    ("agreement", rf"\b[Rr]anks [0-9][0-9, and-]* {VERBS}\b"),
    ("agreement", r"(?<!of )(?<!of all )(?<!between )\branks (?:is|has|does|waits|was)\b|\b[Nn]o rank find\b|\bclasss\b"),
    ("doubled word", r"\b([A-Za-z]{2,}) \1\b(?![./])"),
    ("two spaces", r"[a-z][,;:] {2,}[a-z]"),
    ("µs with a space", r"[0-9] us\b|[0-9]\.[0-9]+us\b|[0-9]µs\b"),
    ("'12 %', with a space", r"(?<![%a-zA-Z0-9.])[0-9]+(?:\.[0-9]+)?%(?![0-9a-zA-Z%.*|;}]|,[0-9]|\))"),
    ("'64 MiB' for powers of two", r"\b(?:128|256|512|1024|2048|4096) [KMG]B\b(?!/s)"),
    ("digits in groups of three", r"\b[0-9]{1,3}(?:,[0-9]{3})*,[0-9]{1,2}\b(?![0-9,:.x\]-])(?! and)|\b[0-9]{1,3}(?:\.[0-9]{3}){2,}\b"),
    ("'setup', 'timeout', 'forever', 'cleanup'", r"\b[Ss]et-ups?\b|\b[Tt]ime-outs?\b|\bfor ever\b|\b[Cc]lean-ups?\b"),
    ("'unknown', 'does not show'", r"\b(?:cannot|could not|can not) be told\b|\bis not told\b|\bnot told\b|\bholds it up\b|\bholds up the job\b"),
    ("'makes no progress'", r"\b(?:does|do) not (?:get|go) on\b|\bstands? still\b|\bstood still\b"),
    ("'arrives', 'joins'", r"\bdoes not come\b|\bdid not come\b|\bnever came\b|\bcomes late\b|\b[0-9]+ of [0-9]+ came\b"),
    ("'heartbeat'", r"\b(?:its|his|her|whose|the) heart\b|\bheart stopped\b"),
    ("'exited cleanly'", r"\bended in order\b|\bends? in order\b|\ban orderly end\b"),
    ("'last seen'", r"\bLAST SIGN\b"),
    ("'internal error'", r"\bbugs? of ours\b"),
    ("'different'", r"\b(?:issued|passed|used) another (?:size|operation|type|root|reduction)\b"),
    ("'which rank caused'", r"\bWho is guilty\b"),
    ("'a faster transport'", r"\bfaster way than\b|\bLet the GPU begin\b|\bof the step computes\b|\bof the others comes\b"),
    ("'bytes / bandwidth'", r"\b[mµn]?s \+ [0-9.]+ GB/s"),
    ("'nothing found'", r"\b[Nn]othing here says anything\b"),
    ("American spelling", r"\b(?:[Cc]olour|[Nn]eighbour|[Bb]ehaviour|[Uu]tilis(?:e|ation))[a-z]*|\b[Ss]ynchronis(?:e[ds]?|ing|ation)\b"
     r"|\b(?:[Rr]ecogn|[Ss]erial|[Ii]nitial|[Oo]ptim|[Ss]ummar|[Tt]oken|[Nn]ormal)is(?:e[drs]?|ing|ation)\b"),
    ("'until it timed out'", r"\buntil (?:its|their) timeout\b"),
    ("'usually'", r"\bmostly it is\b"),
    ("'if the error returns'", r"\bor it repeats\b"),
    ("'repaired'", r"\bis mended\b"),
    ("'XLA threads'", r"\bthreads of XLA\b"),
    ("'at this severity or above'", r"\bfrom this severity on\b"),
    ("'on the result'", r"\bwhat it leaves\b"),
    ("'What is it doing?'", r"\b[Ww]hat do(?:es)? (?:it|they) do\b"),
    ("the file and line of the error", r"\bat the cited line\b"),
    ("'healthy'", r"\b(?:both|all) are well\b"),
    ("'a different ... from'", r"\banother [A-Za-z]+ library than\b"),
    ("'being loaded'", r"\bthat is loaded is\b"),
    ("'an HCCL error'", r"\ban error of (?:HCCL|oneCCL|HCL|NCCL)\b"),
    ("'reached its end'", r"\bhad come to its end\b"),
    ("'may still have free memory'", r"\bplentiful\b"),
    ("'the other 3 ranks'", r"\bof [0-9]+ more ranks?\b"),
    ("'a GPU kernel'", r"\bor a kernel on it\b"),
    ("'was killed by signal 9'", r"\bprocess is gone: signal\b"),
    ("a rank is on one host", r"\b[Rr]ank [0-9]+ on [0-9]+ hosts\b"),
    ("'on each side'", r"\bruns of each side\b"),
    ("'starting with'", r"\bfirst of process\b"),
    ("'so setup failed'", r"; the setup fails\b"),
    ("'which rank it was'", r"\bmemory; the log does not say on which rank\b"),
    ("'is still read'", r"\band still read\b"),
    ("'which is normal while'", r"\bas usual while the scaler\b"),
    ("'in a file of its own'", r"\brank by itself \("),
    ("'was not used'", r"\bholds nothing that Tacet\b"),
    ("'at the same position', 'one collective ahead'", r"\bissued this at (?:the same|another) place\b|\bone place (?:ahead|behind)\b"),
    ("'of an unknown rank'", r"\b(?:error|exception) without a rank\b"),
    ("'which rank it is'", r"\bdoes not say which rank$"),
    ("'which may be the number of a task'", r"\bmay count (?:tasks|within)\b"),
    ("'ended at the same time'", r"\ball at once: of\b"),
    ("'1.2 GiB is'", r"\bGiB (?:are|that were)\b"),
    ("'probably does not'", r": probably an? [a-z ]+ does not\b"),
    ("'the earliest error in these files'", r"\bfirst error on record\b"),
    ("'a flapping port'", r"\bport that flaps\b"),
    ("'reports that it failed'", r"\breports its own (?:port|failure)\b"),
    ("'is the one that matters'", r"\bthe (?:first|earliest) error counts\b"),
    ("'Other causes considered'", r"\bWould explain it\b"),
    ("'save most'", r"\bwould gain most\b"),
    ("'more than noise'", r"\bbeyond noise\b"),
    ("'mean of all workers'", r"\bof the mean worker\b"),
    ("'For orientation'", r"\b[Aa]s an orientation\b"),
    ("'of what comparable pairs reach'", r"% of comparable pairs\b|\bof comparable pairs \("),
    ("'connects', 'use'", r"\bNVLink joins\b|\btalk over (?:shared memory|the network)\b"),
    ("'bytes per second'", r"\bbytes a second\b"),
    ("'since NCCL 2.22'", r"\bsince the release after [0-9]"),
    ("'computes wrong numbers'", r"\bcomputes rubbish\b"),
    ("'unpacked from'", r"\blines extracted from\b"),
    ("'the path through host memory'", r"\bthe detour\b"),
    ("'the last heartbeat'", r"\b(?:the|its) last beat\b"),
    ("'Waiting'", r"\bHeld up\b"),
    ("'everything'", r"\beverything that is not in the bundle\b"),
    ("'see ...'", r"\btells? more\b|\bdeserves? a look\b|\banew\b"),
    ("'after its line'", r"\bbehind (?:its|this|that) line\b"),
    ("'according to'", r", by (?:its|their) last lines?\b|, by (?:the launcher's list|Open MPI's|PyTorch's|the job's own)"),
    ("'until it timed out'", r"\bits time was up\b"),
    ("'delayed', 'blocks'", r"\bwas held up\b|\bholds them up\b"),
    ("'a separate cause'", r"\bcauses? of (?:its|their) own\b"),
    ("'an outlier'", r"\b(?:is|are) out of line\b"),
    ("'the same on all ranks'", r"\bon all (?:ranks|hosts|nodes) alike\b|\bended alike\b"),
    ("'to the last digit'", r"\bin all digits\b"),
    ("'a progress line appears every'", r"\bprogress line takes\b"),
    ("'percent'", r"\bper cent\b"),
]
# Only in what the program prints: a document may speak of people.
BAD_OUTPUT = BAD + [
    ("'is not a'", r"(?<![Tt]here )(?<!where )\b(?:is|are) no (?!longer|more|reason|faster|slower|other|output|file)[a-z]+"),
    ("a person", r"\b(?:nobody|somebody|everybody)\b"),
    ("'a few'", r"\bsome (?:seconds|minutes|thousands|kilobytes|slow steps)\b"),
    ("American spelling", r"\b(?:[Hh]onour|[Ff]avour)[a-z]*|\bcancell(?:ed|ing)\b"),
    ("'check that', 'check whether'", r"\b[Ss]ee (?:that|whether)\b"),
    ("'normal'", r"\b(?:is|are) usual\b"),
    ("'continues'", r"\bgoes on (?:with|without)\b|\bwent on (?:after|without)\b"),
    ("'a consequence'", r"\bfollows? from it\b"),
    ("'fix'", r"\b[Mm]end\b"),
    ("'especially'", r"\babove all\b"),
    ("'these files do not show'", r"\b[Nn]othing here says how\b"),
    ("'a different ... from'", r"\banother (?:release|version|architecture|shape|network|number|format) (?:than|from)\b|\bother (?:data|settings) than\b"),
    ("'persists'", r"\bstays so\b"),
    ("'still working'", r"\bstill at work\b"),
    ("'one time more than'", r"\bonce more than\b"),
    ("'so setup failed'", r"; process-group setup fails\b"),
    ("'..., so nothing starts'", r"\b(?:answer|reached|loaded|yet|runs), so that\b"),
]
# What programs other than this one print, which readers look for, and names.
FOREIGN = re.compile(r"^(?:src/evidence/|src/analysis/process/signs_of_life|src/model/events/nccl_warning|src/model/events/site_messages|src/base/redact|src/launch/python_hook)")
LITERAL = re.compile(r'R"([A-Za-z]*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|//[^\n]*|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\[^\n]{1,4}?)\'', re.S)


def literals(path):
    """(line, text) of the string literals of a source; neighbours are one text, as the compiler has it."""
    text, joined, end = path.read_text(), [], -1
    for match in LITERAL.finditer(text):
        value = match[2] if match[2] is not None else match[3]
        if value is None or text[text.rfind("\n", 0, match.start()) + 1:match.start()].lstrip().startswith("#include"):
            continue
        if end >= 0 and joined and not text[end:match.start()].strip():
            joined[-1][1] += value
        else:
            joined.append([text.count("\n", 0, match.start()) + 1, value])
        end = match.end()
    return joined


def faults(text, bad):
    return [f"{what}: ...{text[max(0, match.start() - 30):match.end() + 30]!r}" for what, pattern in bad for match in re.finditer(pattern, text)]


def prose(path):
    """Paragraphs of a document without its code, pictures' names and the table of bad examples."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    text = re.sub(r"<!-- bad words -->.*?<!-- end -->", "", text, flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "`code`", text)


class Words(unittest.TestCase):
    maxDiff = None

    def test_patterns_find_what_they_are_for_and_no_more(self):
        for wrong in ("one verdict a job", "18 classs", "No rank find no network interface", "Ranks 0, 2, 4 and 6 makes", "its heart stopped", "1 ranks",
                      "takes 287.8 us", "10% of the step", "the the rank", "why it does not come", "LAST SIGN", "a bug of ours", "cannot be told",
                      "Rank 3 wait in", "3 rank wait", "128 MB of text", "10,00 files", "ranks is", "does not get on", "288 µs + 1.74 GB/s",
                      "(3 of 4 came)", "used another size", "is no address", "GPU utilisation", "no colours", "until its timeout", "diagnose what it leaves.",
                      "what does it do (py-spy dump)", "Fix the error at the cited line", "If both are well", "an error of HCCL",
                      "the output of 31 more ranks", "Rank 13 on 2 hosts", "process is gone: signal 11", "; the setup fails",
                      "What would gain most", "where, and beyond noise", "forward-compute of the mean worker", "As an orientation:",
                      "reaches 36 % of comparable pairs (", "talk over shared memory although NVLink joins", "1e9 bytes a second",
                      "since the release after 2.21", "computes rubbish", "the last beat of rank 2",
                      "found another NCCL library than", "avoid synchronisation", "the output of each rank by itself (torchrun)",
                      "28 % of it holds nothing that Tacet uses.", "ranks 0-2 issued this at the same place", "an exception without a rank",
                      "; the log does not say which rank", "0.11 GiB are reserved", "which may count tasks", "the first error counts",
                      "twice, some seconds apart", "a call behind its line 'x'", "waits, by its last line: 'x'", "it was held up itself",
                      "is a cause of its own", "2 sizes are out of line", "raise it on all ranks alike", "See that sshd runs",
                      "which is usual under load", "NCCL goes on without it", "this follows from it", "Mend what it names",
                      "another release than this process", "training is lost if it stays so", "several per cent", "rank 0, which was still at work",
                      "the host does not answer, so that nothing was started there"):
            self.assertTrue(faults(wrong, BAD_OUTPUT), wrong)
        for right in ("one verdict per job", "18 classes", "Ranks 0, 2, 4 and 6 make", "1 rank waits", "12 % of the step", "288 µs + bytes / 1.74 GB/s",
                      "Rank 3 waits in", "2,000,128 calls in 4 ranks", "there is no address", "takes a step", "128 MiB", "%.1f %%", "width: 100%|",
                      "optimistic", "utilization", "What is it doing (py-spy dump)?", "an HCCL error", "the other 31 ranks", "Ranks 1 and 13 on 2 hosts", "until it timed out",
                      "the log does not say which rank it is", "0.11 GiB is reserved", "it is usually slow", "see what grew", "traces of a few steps", "each rank in a file of its own (torchrun)"):
            self.assertEqual(faults(right, BAD_OUTPUT), [], right)

    def test_what_sources_print(self):
        found, seen = [], 0
        for folder in ("src", "plugin"):
            for path in sorted([*(ROOT / folder).rglob("*.cc"), *(ROOT / folder).rglob("*.h")]):
                name = str(path.relative_to(ROOT))
                if re.search(r"_test\.cc$|_fuzz\.cc$|/testing/|/sample_|/samples/", name):
                    continue
                bad = [entry for entry in BAD if entry[0] != "doubled word"] if FOREIGN.match(name) else BAD_OUTPUT
                for line, text in literals(path):
                    if " " in text.strip():
                        seen += 1
                        found += [f"{name}:{line}: {fault}" for fault in faults(text.replace('\\"', '"').replace("\\n", "\n"), bad)]
        self.assertGreater(seen, 2000)
        self.assertEqual(found, [])

    def test_what_pages_show(self):
        found = []
        for path in sorted((ROOT / "web").glob("*.js")):
            for line, text in enumerate(path.read_text().splitlines(), 1):
                for value in re.findall(r'"((?:[^"\\]|\\.)*)"', text):
                    if " " in value.strip():
                        found += [f"{path.name}:{line}: {fault}" for fault in faults(value, BAD_OUTPUT)]
        self.assertEqual(found, [])

    def test_dashboards_and_alerts(self):
        found, seen = [], 0
        for path in [*sorted((ROOT / "dashboards").glob("*.json")), *sorted((ROOT / "dashboards").rglob("*.yml"))]:
            for text in re.findall(r'\b(?:title|description|summary)"?: "((?:[^"\\]|\\.)*)"', path.read_text()):
                seen += 1
                found += [f"{path.name}: {fault}" for fault in faults(text, BAD_OUTPUT)]
        self.assertGreater(seen, 50)
        self.assertEqual(found, [])

    def test_documents(self):
        found = []
        for path in [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "plugin/README.md")),
                     *sorted((ROOT / "docs").rglob("*.md"))]:
            if path.name not in ("measurements.md", "accuracy.md", "security.md"):  # written by hand, beside their figures
                found += [f"{path.name}: {fault}" for fault in faults(prose(path), BAD)]
        self.assertEqual(found, [])


# Keys of a report whose values are words of the program, and not of the evidence.
OWN = {"headline", "explanation", "fix", "prevent", "prevention", "says", "question", "missing", "title", "assumptions", "capture", "need"}


def sentences(value, key=""):
    if isinstance(value, dict):
        for name, part in value.items():
            yield from sentences(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from sentences(part, key)
    elif isinstance(value, str) and key in OWN:
        yield value


class Reports(unittest.TestCase):
    """Agreement shows only in whole sentences: numbers and lists are put in when a report is made."""

    def test_sentences_of_all_recorded_incidents(self):
        found, seen = [], set()
        cases = [path for path in sorted((ROOT / "tests" / "corpus").iterdir()) if path.is_dir()]
        cases += [path for path in sorted((ROOT / "tests" / "golden").glob("*/input"))]
        self.assertGreater(len(cases), 200)
        for case in cases:
            ran = subprocess.run([TACET, "diagnose", "--json", "-j1", case], capture_output=True, text=True, timeout=120, check=False)
            report = json.loads(ran.stdout)
            new = set(sentences(report)) - seen
            seen |= new
            found += [f"{case.name}: {fault}" for text in sorted(new) for fault in faults(text, BAD_OUTPUT)
                      if not re.search(r"raised|Error|error:", text)]
            verdict = report["verdict"]
            if len(verdict["ranks"]) > 1 and verdict["headline"].endswith("wait for it"):
                found.append(f"{case.name}: {verdict['headline']}")
        self.assertGreater(len(seen), 500)
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
