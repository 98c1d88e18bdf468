#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tacet bandwidth as a user or a script meets it: bandwidth_cli_test.py TACET [unittest arguments]"""
import json, os, pathlib, re, stat, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "src" / "evidence"
sys.path.insert(0, str(ROOT / "tests" / "topology"))
sys.dont_write_bytecode = True
import cluster_shape
import make_setup_logs
TACET = ""


def run(*arguments, **more):
    return subprocess.run([TACET, "bandwidth", *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def report(*arguments):
    ran = run(*arguments, "--format", "json")
    if ran.returncode not in (0, 1):
        raise AssertionError(ran.stderr)
    return json.loads(ran.stdout)


def table(rows, ranks=8, host="node0", operation="all_reduce", head="", type_name="float"):
    """What nccl-tests print: rows of (bytes, time in us)."""
    lines = [head] if head else []
    lines += ["# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809",
              f"# Collective test starting: {operation}_perf", "#", "# Using devices"]
    lines += [f"#  Rank {r:2d} Group  0 Pid {4000 + r} on {host} device {r} [0000:00:06] NVIDIA H100" for r in range(ranks)]
    lines += ["#", "#                                                              out-of-place                       in-place",
              "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong",
              "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"]
    factor = 2 * (ranks - 1) / ranks
    for size, us in rows:
        algbw = size / us / 1000
        side = f"{us:9.2f} {algbw:7.2f} {algbw * factor:7.2f}       0"
        lines.append(f"{size:12d} {size // 4:12d} {type_name:>8s}     sum      -1 {side} {side}")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.0", "#", f"# Collective test concluded: {operation}_perf", "#"]
    return "\n".join(lines) + "\n"


def sweep(alpha, gbs, first=1 << 10, last=1 << 30):
    size, rows = first, []
    while size <= last:
        rows.append((size, alpha + size / gbs / 1000))
        size *= 2
    return rows


class Scratch(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Reading(Scratch):
    def test_every_sample_is_read_and_its_figures_are_the_files_own(self):
        nv = report(SAMPLES / "nvbandwidth/samples/four_gpus.txt")["matrices"]
        self.assertEqual(nv[1]["cells"][1], [368.34, None, 368.22, 184.31])
        self.assertAlmostEqual(nv[0]["sum"], 193.50, places=2)
        self.assertAlmostEqual(nv[2]["cells"][0][0], 0.77258, places=6)
        p2p = report(SAMPLES / "p2p_latency/samples/four_gpus.txt")["matrices"]
        self.assertEqual(p2p[0]["cells"][2][3], 98.13)
        iperf = report(SAMPLES / "iperf3/samples/client.txt")["streams"][0]
        self.assertAlmostEqual(iperf["received_gbs"] * 8, 15.9, places=6)
        self.assertEqual(len(iperf["intervals"]), 2)
        perftest = report(SAMPLES / "perftest/samples/write_bw.txt")["sweeps"][0]
        self.assertAlmostEqual(perftest["points"][0]["bus_gbs"] * 8, 391.05, places=6)
        osu = report(SAMPLES / "osu/samples/bandwidth.txt")["sweeps"][0]
        self.assertAlmostEqual(osu["points"][-1]["bus_gbs"], 24.10277, places=6)
        kept = report(SAMPLES / "bench_table/samples/kept_sweep.txt")["sweeps"][0]
        self.assertEqual((kept["operation"], kept["ranks"], kept["points"][0]["bus_gbs"]), ("all_reduce", 16, 23.95))

    def test_a_benchmark_behind_other_output_is_found(self):
        noise = "".join(f"cpu-bind=MASK - gpu{i:04d}, task {i:4d} {i % 8:2d} [{10000 + i}]: mask 0xff set\n" for i in range(4000))
        self.assertGreater(len(noise), 200000)
        path = self.write("slurm.out", noise + table(sweep(20, 100)))
        self.assertEqual(report(path)["sweeps"][0]["operation"], "all_reduce")

    def test_runs_of_different_ranks_are_never_pooled(self):
        self.write("eight.txt", table(sweep(20, 100), ranks=8))
        self.write("four.txt", table(sweep(10, 200), ranks=4))
        got = report(self.dir)["sweeps"]
        self.assertEqual(sorted(one["ranks"] for one in got), [4, 8])
        self.assertTrue(all(point["measurements"] == 1 for one in got for point in one["points"]))

    def test_repeated_runs_are_one_sweep_with_a_spread(self):
        self.write("a.txt", table(sweep(20, 100)))
        self.write("b.txt", table([(size, us * 1.02) for size, us in sweep(20, 100)]))
        got = report(self.dir)["sweeps"]
        self.assertEqual(len(got), 1)
        self.assertAlmostEqual(got[0]["points"][0]["spread"], 0.014, places=2)

    def test_the_fit_gives_back_what_the_sweep_was_made_of(self):
        rows = sweep(12, 2, last=64 << 10) + sweep(60, 40, first=128 << 10)
        got = report(self.write("all_reduce.txt", table(rows)))["sweeps"][0]["fit"]
        self.assertEqual(len(got["segments"]), 2)
        small, large = got["segments"]
        self.assertAlmostEqual(small["alpha_us"], 12, delta=0.2)
        self.assertAlmostEqual(large["bandwidth_gbs"], 40, delta=0.4)
        self.assertEqual(large["first_bytes"], 128 << 10)

    def test_a_table_that_leaves_sizes_out_says_so_and_has_the_best(self):
        rows = [(size, us * (0.7 if size == 256 << 20 else 1)) for size, us in sweep(20, 100)]
        path = self.write("all_reduce.txt", table(rows))
        short, whole = run(path).stdout, run(path, "--verbose").stdout
        self.assertRegex(short, r"\d+ of 21 sizes; --verbose shows all")
        self.assertNotIn("--verbose", whole)
        self.assertIn("at 256 MiB.", short)
        self.assertRegex(short, r"\n  256 MiB +\d")

    def test_an_error_has_two_digits(self):
        rows = [(size, us * (1.001 if i % 2 else 0.999)) for i, (size, us) in enumerate(sweep(0.36 * 1000, 24))]
        text = run(self.write("all_reduce.txt", table(rows))).stdout
        errors = re.findall(r" ± ([\d.]+) ", text)
        self.assertTrue(errors, text)
        for error in errors:
            self.assertEqual(len(error.replace(".", "").lstrip("0")), 2, text)

    def test_without_a_log_it_says_what_is_missing(self):
        ran = run(self.write("all_reduce.txt", table(sweep(20, 100))))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("Unknown:", ran.stdout)
        self.assertIn("NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING", " ".join(ran.stdout.split()))
        # The rough comparison is told once.
        self.assertEqual(" ".join(ran.stdout.split()).count("that NCCL's model expects for 8 x H100 on one node"), 1)
        self.assertLessEqual(max(len(line) for line in ran.stdout.splitlines()), 100)

    def test_without_a_log_nothing_is_called_as_fast_as_expected(self):
        text = run(self.write("all_reduce.txt", table(sweep(20, 100)))).stdout
        self.assertTrue(text.startswith("1 operation cannot be judged without NCCL's log of the run."), text[:200])
        self.write("all_gather.txt", table(sweep(20, 100), operation="all_gather"))
        self.assertEqual(run(self.dir).stdout.count("Is this normal?"), 1)

    def test_several_runs_have_a_mean(self):
        one = run(self.write("a.txt", table(sweep(20, 100)))).stdout
        self.assertIn("highest bus bandwidth", one)
        self.write("b.txt", table(sweep(20, 90)))
        self.assertIn("2 runs; highest mean bus bandwidth", run(self.dir).stdout)

    def test_who_lacks_a_log_is_named(self):
        for operation in ("all_reduce", "all_gather", "sendrecv"):
            self.write(operation + ".txt", table(sweep(20, 100), operation=operation))
        text = " ".join(run(self.dir).stdout.split())
        self.assertIn("Is this normal? Unknown for all_gather, all_reduce: NCCL's log", text)

    def test_a_matrix_of_one_cell_is_not_judged(self):
        text = ("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nRunning host_to_device_memcpy_ce.\n"
                "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0\n 0     54.64\n\nSUM host_to_device_memcpy_ce 54.64\n\n"
                "Running device_to_device_memcpy_read_ce.\nWaived:\n\n")
        out = " ".join(run(self.write("nv.txt", text)).stdout.split())
        self.assertTrue(out.startswith("1 matrix cannot be judged: these files do not show how fast it should be."), out)
        self.assertNotIn("typical", out)
        self.assertIn("1 test was waived", out)
        four = " ".join(run(SAMPLES / "nvbandwidth/samples/two_gpus.json").stdout.split())
        self.assertNotIn("Nothing is slower than expected", four)

    def test_matrices_do_not_hide_what_cannot_be_judged(self):
        self.write("all_reduce.txt", table(sweep(20, 100)))
        self.write("pairs.json", (SAMPLES / "nvbandwidth/samples/two_gpus.json").read_text())
        text = " ".join(run(self.dir).stdout.split())
        self.assertTrue(text.startswith("1 operation cannot be judged without NCCL's log of the run. "), text[:200])
        self.assertIn("No outlier in the rest.", text[:300])

    def test_a_slow_first_size_is_one_size_and_may_be_warm_up(self):
        rows = sweep(20, 100)
        rows[0] = (rows[0][0], 4 * rows[0][1])
        text = " ".join(run(self.write("all_reduce.txt", table(rows))).stdout.split())
        self.assertIn("1 size is an outlier (below).", text)
        self.assertIn("this may be warm-up", text)
        rows = sweep(20, 100)
        rows[5] = (rows[5][0], 4 * rows[5][1])
        self.assertNotIn("warm-up", run(self.write("all_reduce.txt", table(rows))).stdout)

    def test_plots_are_straight_and_have_a_legend(self):
        text = run(self.write("all_reduce.txt", table(sweep(40, 200, first=8)))).stdout
        bars = {line.index("|") for line in text.splitlines() if re.match(r"^ *(?:[0-9.]+ GB/s)? \|", line)}
        self.assertEqual(len(bars), 1, text)
        self.assertIn("* measured, in place and out of place   - fit", text)

    def test_a_pipelined_test_has_no_latency(self):
        text = run(SAMPLES / "perftest/samples/write_bw.txt").stdout
        self.assertIn("per message", text)
        self.assertNotRegex(text, r"latency|algorithm|\bbus\b|ranks")

    def test_wrong_results_come_first_and_fail(self):
        case = ROOT / "tests/golden/benchmark_computes_wrong_results/input"
        ran = run(case)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        first = " ".join(ran.stdout.split())
        self.assertTrue(first.startswith("wrong-results: reduce_scatter (4 ranks, float32) gives wrong results at 256 KiB and 1 MiB; "
                                         "its bandwidth means nothing"), first[:300])
        found = report(case)
        self.assertEqual([one["cause"] for one in found["findings"]], ["wrong-results"])
        judged = {one["operation"]: one.get("is_normal", "") for one in found["sweeps"]}
        self.assertIn("the results are wrong", judged["reduce_scatter"])
        self.assertNotIn("wrong", judged["all_reduce"])
        self.assertEqual(run(case, "--fail-on", "never").returncode, 0)

    def test_no_benchmark_is_told_once(self):
        ran = run(ROOT / "tests/corpus/dead_rank")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))

    def test_a_slow_pair_is_named_and_even_pairs_are_not(self):
        ran = run(SAMPLES / "p2p_latency/samples/four_gpus.txt")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("slow-link: GPU 2 -> GPU 3 reaches 36 %", " ".join(ran.stdout.split()))
        text = (SAMPLES / "p2p_latency/samples/four_gpus.txt").read_text().replace(" 98.13", "271.13")
        self.assertEqual(run(self.write("p2p.txt", text)).returncode, 0)

    def test_a_slow_column_is_named(self):
        found = [one["headline"] for one in report(SAMPLES / "nvbandwidth/samples/four_gpus.txt")["findings"]]
        self.assertTrue(any(one.startswith("GPU 3 as the target") for one in found), found)

    def test_json_page_and_text_agree_on_the_findings(self):
        page = self.dir / "page.html"
        ran = run(SAMPLES / "p2p_latency/samples/four_gpus.txt", "--html", page)
        html = page.read_text()
        self.assertIn("slow-link", html)
        self.assertIn("default-src 'none'", html)
        self.assertIn("script-src 'sha256-", html)
        self.assertIn("slow-link", ran.stdout)

    def test_markup_in_a_host_name_stays_text(self):
        page = self.dir / "page.html"
        run(self.write("t.txt", "# pair <img/src=x> b\n" + (SAMPLES / "iperf3/samples/client.txt").read_text()), "--html", page)
        self.assertNotIn("<img", page.read_text())

    def test_hostile_files_are_survived(self):
        for name, text in {"empty.txt": "", "cut.json": '{"nvbandwidth":{"testcases":[{"name":"x","bandwidth_matrix":[["1"',
                           "deep.json": '{"start":' + "[" * 5000, "nul.txt": "nvbandwidth Version:\0\0\0",
                           "claims.txt": "Running x.\nmemcpy GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 99999999999999999999\n"}.items():
            self.assertIn(run(self.write(name, text)).returncode, (0, 1, 2), name)


class AgainstTheMachine(Scratch):
    """Set-up logs of made clusters beside sweeps of known speed."""

    def logs(self, shape, nodes, fault="none"):
        job = make_setup_logs.Job(cluster_shape.SHAPES[shape](), nodes, fault, 15)
        for rank in range(job.ranks):
            self.write("logs/nccl_%s_%d.log" % (job.host(job.node_of(rank)), 4000 + job.gpu_of(rank)), job.text(rank))
        return job

    def check(self, shape, nodes, gbs, fault="none"):
        job = self.logs(shape, nodes, fault)
        text = table(sweep(40, gbs, first=1 << 20, last=8 << 30), ranks=job.ranks)
        for rank in range(job.ranks):
            text = text.replace(f"Pid {4000 + rank} on node0", f"Pid {4000 + job.gpu_of(rank)} on {job.host(job.node_of(rank))}")
        self.write("all_reduce.txt", text)
        return report(self.dir)

    def test_the_waterfall_sums_to_the_difference(self):
        for shape, nodes in (("h100", 2), ("a100", 4), ("h100", 1)):
            with self.subTest(shape=shape, nodes=nodes):
                got = self.check(shape, nodes, 80)["sweeps"][0]
                fall = got["model"]["waterfall"]
                self.assertAlmostEqual(sum(step["lost_gbs"] for step in fall["steps"]), fall["line_gbs"] - fall["measured_gbs"], places=6)
                self.assertEqual(fall["steps"][-1]["step"], "measured")
                self.assertGreater(fall["line_gbs"], 0)
                self.assertRegex(got["is_normal"], "^Large sizes: (yes|no|probably not), they reach")
                for path in (self.dir / "logs").iterdir():
                    path.unlink()

    def test_half_of_the_model_is_not_normal(self):
        fast = self.check("a100", 4, 10_000)["sweeps"][0]["model"]["points"][-1]["predicted_gbs"]
        ranks = 32
        algorithm = fast / (2 * (ranks - 1) / ranks)
        slow = self.check("a100", 4, 0.5 * algorithm)
        self.assertEqual([one["cause"] for one in slow["findings"]], ["bandwidth-below-model"])
        self.assertTrue(slow["sweeps"][0]["is_normal"].startswith("Large sizes: no, "))
        usual = self.check("a100", 4, 0.95 * algorithm)
        self.assertEqual(usual["findings"], [])
        self.assertTrue(usual["sweeps"][0]["is_normal"].startswith("Large sizes: yes, "))

    def test_a_cap_on_channels_is_named_in_the_waterfall(self):
        fall = self.check("a100", 4, 50, "few-channels")["sweeps"][0]["model"]["waterfall"]
        step = next(one for one in fall["steps"] if one["step"] == "channels")
        self.assertIn("uses 4 of 8 channels", step["taken_by"])

    def test_logs_of_other_ranks_are_not_taken(self):
        self.logs("a100", 4)
        got = report(self.write("all_reduce.txt", table(sweep(40, 50), ranks=8)), self.dir / "logs")["sweeps"][0]
        self.assertNotIn("model", got)
        self.assertIn("none of the NCCL logs here describes a communicator of 8 ranks", got["is_normal"])


class ChosenAgainstBest(Scratch):
    def test_a_faster_way_is_named_and_written_for_the_tuner(self):
        plain = sweep(30, 100)
        self.write("default/all_reduce.txt", table(plain))
        better = [(size, us * (0.7 if 1 << 20 <= size <= 4 << 20 else 1.5)) for size, us in plain]
        self.write("forced/all_reduce.txt", table(better, head="+ NCCL_ALGO=Tree NCCL_PROTO=LL128 ./build/all_reduce_perf -b 1K -e 1G -f 2 -g 8"))
        tuner = self.dir / "tuner.csv"
        ran = run(self.dir / "default", self.dir / "forced", "--tuner", tuner)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertIn("algorithm-misfit", ran.stdout)
        rows = [line for line in tuner.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(rows, [f"allreduce,{1 << 20},{4 << 20},tree,ll128,-1,1,8,-1,-1"])
        self.assertIn("30 % less time", tuner.read_text())
        self.assertIn("Undo it", tuner.read_text())

    def test_within_the_noise_nothing_is_written(self):
        plain = sweep(30, 100)
        self.write("default/all_reduce.txt", table(plain))
        self.write("forced/all_reduce_ring_simple.txt", table([(size, us * 0.97) for size, us in plain]))
        tuner = self.dir / "tuner.csv"
        ran = run(self.dir, "--tuner", tuner)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertFalse(tuner.exists())
        self.assertIn("no tuner file was written", ran.stderr)


RECORDED = pathlib.Path(__file__).resolve().parent / "sweep_of_four_ranks"


class RecordedSweep(unittest.TestCase):
    """Four ranks that share an H200 and pass for four nodes, over loopback sockets: lab/sweep.sh, NCCL's log reduced."""

    def setUp(self):
        self.report = report(RECORDED)

    def sweep(self, operation, way):
        found = [one for one in self.report["sweeps"] if one["operation"] == operation and one["algorithm"] + one["protocol"] == way]
        self.assertEqual(len(found), 1, (operation, way))
        return found[0]

    def test_operations_ranks_and_forced_ways_are_told_apart_by_the_log_of_the_same_processes(self):
        ways = sorted((one["operation"], one["algorithm"] + " " + one["protocol"]) for one in self.report["sweeps"])
        self.assertEqual(ways, [("all_gather", " "), ("all_gather", "Ring Simple"), ("all_reduce", " "), ("all_reduce", "Ring Simple"),
                                ("all_reduce", "Tree Simple"), ("reduce_scatter", " "), ("reduce_scatter", "Ring Simple")])
        self.assertEqual({one["ranks"] for one in self.report["sweeps"]}, {4})

    def test_every_sweep_has_the_model_of_its_own_communicator(self):
        for one in self.report["sweeps"]:
            self.assertIsNotNone(one["model"], one["operation"])
            self.assertEqual(len(one["model"]["points"]), 17)
        forced = self.sweep("all_reduce", "TreeSimple")["model"]["points"]
        self.assertEqual({(point["algorithm"], point["protocol"]) for point in forced}, {("Tree", "Simple")})
        largest = self.sweep("all_reduce", "RingSimple")["model"]["points"][-1]
        self.assertEqual(largest["bytes"], 64 << 20)
        self.assertAlmostEqual(largest["predicted_gbs"], 1.2, delta=0.01)

    def test_the_steps_of_each_waterfall_sum_to_the_difference(self):
        for one in self.report["sweeps"]:
            fall = one["model"]["waterfall"]
            lost = sum(step["lost_gbs"] for step in fall["steps"])
            self.assertAlmostEqual(lost, fall["line_gbs"] - fall["measured_gbs"], places=6)
            self.assertAlmostEqual(fall["line_gbs"], 1.25, places=6)

    def test_bandwidth_of_small_sizes_has_digits(self):
        first = self.sweep("all_reduce", "")["points"][0]
        self.assertAlmostEqual(first["algorithm_gbs"], 1024 / 673.92 / 1000, places=9)
        text = run(RECORDED).stdout
        self.assertNotIn("0.00 GB/s", text)
        self.assertIn("0.00152 GB/s", text)

    def test_a_run_that_was_disturbed_is_no_bad_choice(self):
        # NCCL's own run chose Ring Simple at 64 MiB and took four times as long as the run with Ring Simple forced.
        for one in self.report["better"]:
            self.assertGreater(one["run_noise"], 0.5, one["operation"])
            self.assertEqual(one["cells"], [], one["operation"])
        self.assertNotIn("algorithm-misfit", [one["cause"] for one in self.report["findings"]])
        self.assertIn("Measure again on a quiet machine", " ".join(run(RECORDED).stdout.split()))

    def test_a_model_that_one_way_beats_judges_no_other(self):
        # all_gather with Ring Simple forced reached twice what the model allows on this device.
        self.assertNotIn("bandwidth-below-model", [one["cause"] for one in self.report["findings"]])
        text = " ".join(run(RECORDED).stdout.split())
        self.assertNotIn("Large sizes: no", text)
        self.assertIn("NCCL's model does not fit: 2.30 GB/s measured", text)

    def test_one_run_by_itself_is_still_judged(self):
        self.assertIn("bandwidth-below-model", [one["cause"] for one in report(RECORDED / "default")["findings"]])

    def test_logged_choices_are_predicted(self):
        told = subprocess.run([TACET, "predict", str(RECORDED / "default")], capture_output=True, text=True, timeout=60)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"(\d+) of \1 logged choices are the predicted ones")
        self.assertRegex(told.stdout, r"(\d+) of \1 rows of the printed tuning table are reproduced")


FAKE_IPERF = """#!/bin/sh
case "$*" in *-s*) sleep 0.1; exit 0;; esac
to=$2; from=$FAKE_FROM; rate=11.7
case "$0 $*" in *" $BAD "*) rate=3.1;; esac
[ "$2" = "$BAD" ] && rate=3.1
echo "Connecting to host $2, port 5201"
echo "[  5] local 10.0.0.1 port 41234 connected to $2 port 5201"
echo "[ ID] Interval           Transfer     Bitrate         Retr"
echo "[  5]   0.00-5.00   sec  54.0 GBytes  $rate GBytes/sec    0             sender"
echo "[  5]   0.00-5.00   sec  54.0 GBytes  $rate GBytes/sec                  receiver"
"""
FAKE_SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" = -tt ] && shift
host=$1; shift
case "$*" in *"-c $BAD"*) ;; esac
if [ "$host" = "$BAD" ]; then SELF_IS_BAD=1; fi
out=$(sh -c "$*") || exit 1
if [ -n "$SELF_IS_BAD" ]; then out=$(printf '%s\\n' "$out" | sed 's/11.7 GBytes/3.1 GBytes/'); fi
printf '%s\\n' "$out"
"""


class Measuring(Scratch):
    def program(self, name, text):
        path = self.write("bin/" + name, text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def environment(self, **more):
        return {**os.environ, "PATH": f"{self.dir / 'bin'}:/usr/bin:/bin", **more}

    def test_what_is_missing_is_said(self):
        ran = run("--run", "nccl-tests", "--bin", self.dir, cwd=self.dir)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("all_reduce_perf is not in", ran.stderr)
        self.assertIn("--bin", ran.stderr)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_dry_run_shows_the_commands(self):
        ran = run("--run", "nccl-tests", "--launcher", "srun", "--hosts", "a:8,b:8", "--ways", "Ring:LL", "--sizes", "1M:8G", "--dry-run")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("srun --nodes=2 --ntasks=16 --nodelist=a,b", ran.stdout)
        self.assertIn("NCCL_ALGO=Ring", ran.stdout)
        self.assertIn("-b 1M -e 8G", ran.stdout)

    def test_two_rounds_of_pairs_isolate_a_bad_host(self):
        self.program("iperf3", FAKE_IPERF)
        self.program("ssh", FAKE_SSH)
        for hosts in (["a", "b", "c", "d"], ["h1", "h2", "h3", "h4", "h5"]):
            bad = hosts[2]
            ran = run("--run", "iperf3", "--launcher", "ssh", "--hosts", ",".join(hosts), "--pairs", "--save", self.dir / ("saved_" + bad),
                      "--format", "json", env=self.environment(BAD=bad))
            self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
            found = json.loads(ran.stdout)["findings"]
            self.assertEqual([one["hosts"] for one in found], [[bad]], found)
            self.assertIn("[", ran.stderr)  # progress

    def test_nccl_tests_are_run_saved_and_read(self):
        self.program("all_reduce_perf", "#!/bin/sh\ncat <<'END'\n" + table(sweep(20, 100)) + "END\n")
        ran = run("--run", "nccl-tests", "--ranks", "8", "--save", self.dir / "saved", "--format", "json", env=self.environment())
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(json.loads(ran.stdout)["sweeps"][0]["ranks"], 8)
        self.assertEqual([path.name for path in (self.dir / "saved").iterdir()], ["all_reduce_8ranks.txt"])

    def test_a_program_that_fails_is_told(self):
        self.program("all_reduce_perf", "#!/bin/sh\necho no GPU >&2\nexit 3\n")
        ran = run("--run", "nccl-tests", "--ranks", "8", "--save", self.dir / "saved", env=self.environment())
        self.assertEqual(ran.returncode, 2)
        self.assertIn("ended with exit code 3", ran.stderr)

    def test_wrong_usage_is_refused(self):
        for arguments in (["--run", "nothing"], ["--run", "iperf3", "--launcher", "telnet"], ["--run", "nccl-tests", "--sizes", "a:b"],
                          ["--run", "nccl-tests", "--op", "../x"], ["--run", "nccl-tests", "--op", "all_reduce,foo", "--dry-run"], [], ["--format", "xml", "x"]):
            self.assertEqual(run(*arguments, cwd=self.dir).returncode, 2, arguments)


if __name__ == "__main__":
    TACET = sys.argv.pop(1)
    unittest.main()
