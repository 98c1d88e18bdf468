#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tacet predict as a user or a script meets it: predict_cli_test.py TACET [unittest arguments]"""
import csv, io, json, os, pathlib, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORPUS = ROOT / "corpus"
TACET = ""
H100 = ["--gpus", "8xH100", "--nodes", "16", "--nics", "8x400G", "--nccl", "2.28.9"]
MODEL = "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256,seq=8192"


def run(*arguments, **more):
    return subprocess.run([TACET, "predict", *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def report(*arguments):
    ran = run(*arguments, "--format", "json")
    if ran.returncode != 0:
        raise AssertionError(ran.stderr)
    return json.loads(ran.stdout)


class FromHardware(unittest.TestCase):
    def test_names_the_winner_of_every_size(self):
        ran = run(*H100)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("128 ranks on 16 nodes", ran.stdout)
        self.assertIn("What wins where", ran.stdout)
        self.assertIn("assumed:", ran.stdout)
        self.assertLessEqual(max(len(line) for line in ran.stdout.splitlines()), 100)

    def test_small_operations_take_trees_and_large_ones_get_the_bandwidth(self):
        points = report(*H100, "--op", "all_reduce", "--size", "1K,1G")["communicators"][0]["points"]
        self.assertEqual((points[0]["algorithm"], points[0]["protocol"]), ("Tree", "LL"))
        self.assertGreater(points[1]["bus_gbps"], 200)

    def test_every_rival_has_a_time_or_a_reason(self):
        for way in report(*H100, "--op", "all_reduce", "--size", "1M")["communicators"][0]["points"][0]["candidates"]:
            self.assertTrue(("time_us" in way) != bool(way.get("forbidden")), way)

    def test_verbose_says_why_not(self):
        out = run(*H100, "--op", "all_reduce", "--size", "1M", "-v", "--proto", "^LL").stdout
        self.assertIn("switched off by NCCL_PROTO=^LL", out)
        self.assertIn("chosen", out)

    def test_no_gpu_sends_more_than_its_own_link(self):
        for gpus in (1, 2, 4):
            got = report("--gpus", f"{gpus}xH100", "--nodes", "4", "--nics", "8x400G", "--op", "all_reduce", "--size", "1G")
            self.assertLessEqual(got["communicators"][0]["points"][0]["bus_gbps"], gpus * 48)
        out = run("--gpus", "1xH100", "--nodes", "4", "--nics", "8x400G", "--op", "all_reduce", "--size", "1G").stdout
        self.assertIn("8 NICs per node, but 1 GPU: its PCIe link (48 GB/s) is the limit", out)

    def test_a_nic_for_each_gpu_is_not_called_too_many(self):
        out = run(*H100, "--op", "all_reduce", "--size", "1G").stdout
        self.assertNotIn("is the limit", out)
        self.assertNotIn("are the limit", out)

    def test_no_change_is_rounded_to_nothing_left(self):
        out = run("--gpus", "8xH100", "--nodes", "4", "--nics", "1x1G", "--op", "all_reduce", "--size", "1G", "--what-if", "nics=8x400G,gdr=on").stdout
        self.assertNotIn("-100 %", out)
        self.assertRegex(out, r"\d+x faster")
        self.assertIn("gdr=on changes only which protocols NCCL may choose", " ".join(out.split()))

    def test_reasons_are_not_cut(self):
        out = run("--gpus", "8xA100", "--nodes", "2", "--nics", "8x200G", "--op", "all_reduce", "--size", "1G", "-v", env={**os.environ, "COLUMNS": "60"}).stdout
        self.assertNotIn("...", out)
        words = " ".join(out.split())
        self.assertIn("Tree LL128, Ring LL128: LL128 is off: the path to the network is too long", words)
        self.assertIn("NVLS Simple, NVLSTree Simple: no graph: NVLink SHARP is needed (NVSwitch, H100 or newer)", words)

    def test_what_if_shows_before_and_after(self):
        slow = ["--gpus", "8xH100", "--nodes", "4", "--nics", "8x100G", "--op", "all_reduce", "--size", "1G"]
        got = report(*slow, "--what-if", "nics=8x400G,version=2.24")
        before, after = got["communicators"][0], got["what_if"]["communicators"][0]
        self.assertLess(after["points"][0]["time_us"], 0.5 * before["points"][0]["time_us"])
        self.assertEqual(after["release"], "NCCL 2.24.0")
        self.assertIn("What if nics=8x400G", run(*slow, "-w", "nics=8x400G").stdout)

    def test_a_setting_that_nccl_refuses_is_told(self):
        self.assertIn("which NCCL 2.28.9 does not have", run(*H100, "--algo", "Rings").stdout)

    def test_csv_has_one_line_per_way(self):
        rows = list(csv.DictReader(io.StringIO(run(*H100, "--format", "csv", "--op", "all_reduce", "--size", "1M").stdout)))
        self.assertEqual(sum(int(row["chosen"]) for row in rows), 1)
        self.assertGreater(len(rows), 4)


class FromLogs(unittest.TestCase):
    def test_reproduces_the_tables_and_choices_of_a_log(self):
        for folder in ("fallback_env", "clean_ddp"):
            for one in report(CORPUS / folder)["communicators"]:
                log = one["log"]
                self.assertEqual(log["table_rows"], log["table_rows_equal"], log["cells_different"])
                self.assertEqual(log["choices"], log["choices_equal"], log["choices_different"])
        self.assertGreater(log["table_rows"], 0)

    def test_names_cells_that_settings_forbid(self):
        one = report(CORPUS / "fallback_env")["communicators"][0]
        self.assertGreater(one["log"]["forbidden_cells"], 0)
        self.assertTrue(any("NCCL_PROTO=LL" in cell.get("forbidden", "") for cell in one["table"]), one["table"])

    def test_one_rank_is_enough(self):
        log = CORPUS / "clean_ddp" / "nccl_rank0.log"
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rank0.log").write_bytes(log.read_bytes())
            ran = run(folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("rows of the printed tuning table are reproduced", ran.stdout)

    def test_release_231_tells_its_own_prediction(self):
        lines = ["NCCL version 2.31.2+cuda13.0",
                 "ncclCommInitRank comm 0xa0 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 60 commId 0x19 - Init START",
                 "comm 0xa0 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0",
                 "ncclCommInitRank comm 0xa0 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 60 commId 0x19 - Init COMPLETE",
                 "Input: { .comm = 0xa0, .tuningMask = 1, .func = AllReduce, .redOp = 0, .devRedop = 0, .dataType = 7, "
                 ".nBytes = 4194304, .numPipesOps = 1, .count = 1048576, .countMax = 1048576, .nWorks = 1, .winRegType = 0, "
                 ".regBuff = 0 }",
                 "Best tuning { .id = 5, .valid = 1, timeUs = 31.250000,  .algo = RING, .proto = LL128, .symKernelId = None, "
                 "nChannels = 12, maxChannels = 24, nWarps = 20, forced = 0 }"]
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "n.log").write_text("".join(f"gpu1:7:7 [0] NCCL INFO {line}\n" for line in lines))
            told = report(folder)["communicators"][0]["log"]["expected_by_nccl"]
        self.assertEqual(told[0]["time_us"], 31.25)
        self.assertEqual(told[0]["way"], "Ring LL128")

    def test_a_log_without_communicators_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "n.log").write_text("gpu1:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n")
            ran = run(folder)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("NCCL_DEBUG_SUBSYS", ran.stderr)


class PlainAndStep(unittest.TestCase):
    def test_alpha_beta_of_all_collectives(self):
        rows = report("--alpha", "5us", "--bandwidth", "50", "--ranks", "8", "--op", "all", "--size", "8000000")["plain"]["rows"]
        ring = next(r for r in rows if r["operation"] == "all_reduce" and r["algorithm"] == "ring")
        self.assertAlmostEqual(ring["time_us"], 14 * 5 + 2 * 7 / 8 * 8e6 / 50e3, places=6)
        self.assertEqual({r["operation"] for r in rows},
                         {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "send"})

    def test_loggp_and_hierarchy(self):
        rows = report("--loggp", "5,1,2,0.02", "--ranks", "32", "--nodes", "4", "--within", "2:370", "--op", "all_reduce",
                      "--size", "1G")["plain"]["rows"]
        self.assertIn("hierarchical", {r["algorithm"] for r in rows})

    def test_the_step_with_memory_and_mfu(self):
        step = report(*H100, "--model", MODEL, "--layout", "dp=16,tp=8,micro=8,zero=1,recompute=selective", "--step-time",
                      "2.5s")["step"]
        self.assertAlmostEqual(step["parameters"] / 1e9, 8.03, places=2)
        self.assertTrue(0 < step["mfu"] < 1)
        self.assertGreaterEqual(step["hfu"], step["mfu"])
        self.assertEqual(step["gpus"], 128)
        self.assertGreater(step["memory_bytes"]["activations"], 0)
        self.assertTrue(all(one["time_ms"] > 0 for one in step["communication"]))

    def test_stored_attention_scores_are_told(self):
        for layout, told in (("dp=16,tp=8", True), ("dp=16,tp=8,recompute=selective", False), ("dp=16,tp=8,recompute=full", False)):
            step = report(*H100, "--model", MODEL, "--layout", layout)["step"]
            self.assertEqual(any("attention scores are stored" in one for one in step["assumptions"]), told, layout)

    def test_names_are_whole_in_a_narrow_page(self):
        narrow = {"env": os.environ | {"COLUMNS": "60"}}
        out = subprocess.run([TACET, "predict", *H100, "--model", MODEL, "--layout", "dp=16,tp=8", "--step-time", "4.2s"], capture_output=True, text=True, **narrow).stdout
        out += subprocess.run([TACET, "predict", "--alpha", "12us", "--bandwidth", "46", "--ranks", "64", "--op", "all_reduce,send", "-s", "1M"],
                              capture_output=True, text=True, **narrow).stdout
        self.assertNotIn("...", out)
        self.assertIn("halving and doubling", out)

    def test_explain_prints_formulas_and_units(self):
        out = run(*H100, "--model", MODEL, "--layout", "dp=16,tp=8", "--explain").stdout
        for word in ("Formulas", "MFU", "bubble", "ZeRO", "GPU-hours", "µs"):
            self.assertIn(word, out)
        # A formula is one line, whatever its name takes of the width.
        for formula in ("tokens x (6 x active parameters without the input embedding + 12 x layers x hidden x sequence)",
                        "1 - (step - max(compute, communication)) / min(compute, communication)",
                        "s b h (10 + 24/t + 5 a s / h t) bytes per layer and microbatch"):
            self.assertTrue(any(line.endswith(formula) for line in out.splitlines()), formula)


    def test_formulas_are_whole_and_counts_are_whole_numbers(self):
        out = run("--alpha", "12us", "--bandwidth", "46", "--ranks", "64", "--op", "all", "--explain").stdout
        self.assertNotIn("...", out)
        self.assertIn("(ceil(log2 n) + n-1) a + 2(n-1)/n m/b", out)
        out = run(*H100, "--model", MODEL, "--layout", "dp=16,tp=8", "--step-time", "2.5s").stdout
        self.assertRegex(out, r"GPU-hours lost per day +[0-9,]+ of 3072 \(against peak\)")

    def test_what_if_keeps_its_meaning_in_any_width(self):
        for width in ("60", "100"):
            ran = subprocess.run([TACET, "predict", *H100, "--what-if", "gdr=off"], capture_output=True, text=True, env={**os.environ, "COLUMNS": width})
            out = ran.stdout[ran.stdout.index("What if"):]
            self.assertNotIn("...", out)
            self.assertIn("host memory is not modeled", " ".join(out.split()))
            tables = [block for block in out.split("\n") if block.lstrip().startswith("size ")]
            self.assertTrue(tables and all(("before" in head) or ("after" in head) for head in tables), tables)
            self.assertLessEqual(max(map(len, out.splitlines())), int(width))


class WrongUsage(unittest.TestCase):
    def test_is_refused_with_a_hint(self):
        for arguments in ([], ["--gpus", "8xZ9000"], ["--gpus", "8xH100", "--nics", "fast"], ["--alpha", "5us"],
                          ["--gpus", "8xH100", "--what-if", "colour=red"], ["--gpus", "8xH100", "--size", "many"],
                          ["--layout", "dp=8"], ["--model", "layers=2"], ["--gpus", "8xH100", "--nodes", "-1"],
                          ["--gpus", "8xH100", "--format", "html"], ["--loggp", "1,2"], ["/nowhere"]):
            ran = run(*arguments)
            self.assertEqual(ran.returncode, 2, arguments)
            self.assertTrue(ran.stderr.startswith("tacet: "), arguments)

    def test_help_has_examples(self):
        self.assertIn("tacet predict --gpus 8xH100 --nodes 16 --nics 8x400G", run("--help").stdout)


if __name__ == "__main__":
    TACET = os.path.abspath(sys.argv.pop(1))
    unittest.main()
