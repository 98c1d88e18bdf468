#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tacet topology from end to end: topology_cli_test.py TACET [unittest arguments]

Set-up logs in NCCL's formats are made for two kinds of cluster, clean and with one thing wrong each: the clean ones raise nothing, the others exactly that.
"""
import json, os, pathlib, re, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "topology"))
sys.dont_write_bytecode = True
import cluster_shape
import make_setup_logs

TACET = ""
CORPUS = ROOT / "tests" / "corpus"

# fault -> (cause, words that the headline holds). The node of a fault of one node is the last one.
EXPECTED = {
    "ring-broken": ("ring-broken", ["channel 3"]),
    "ring-reenters": ("ring-reenters-node", ["up to 2 times"]),
    "rails-crossed": ("rails-crossed", ["channels", "mlx5_2", "mlx5_3"]),
    "nic-idle": ("nic-unbalanced", ["mlx5_4", "idle"]),
    "nic-missing": ("nic-count-unequal", ["mlx5_5", "7 channels instead of 8"]),
    "shm": ("transport-fallback", ["shared memory", "NVLink"]),
    "net-in-node": ("transport-fallback", ["the network", "NVLink"]),
    "no-gdr": ("transport-fallback", ["GPUDirect RDMA"]),
    "pxn-off": ("pxn-off", ["PXN is off"]),
    "far-nic": ("nic-path-through-cpu", ["SYS"]),
    "no-ll128": ("ll128-lost", ["LL128"]),
    "simple-order": ("graph-search-failed", ["0.1 GB/s"]),
    "lowered": ("node-lowers-graph", ["PCIe"]),
    "few-channels": ("channels-limited", ["4 channels", "16"]),
    "scattered": ("rank-order-scattered", ["rank 1 is on gpu001"]),
    "unlike": ("rank-unlike-others", ["rank 5", "gpu000"]),
    "socket": ("transport-fallback", ["TCP sockets"]),
}
OF_H100_ALONE = {"no-nvls": ("nvls-not-connected", ["no NVLS channels"]), "nvls-not-connected": ("nvls-not-connected", ["never connected"])}
OF_ONE_NODE = {"nic-missing", "shm", "net-in-node", "no-gdr", "simple-order", "lowered"}
CLEAN = ["none", "crossed-on-purpose", "storage-nic"]


def make_logs(folder, shape, nodes, fault="none", only=None, peers=15):
    job = make_setup_logs.Job(cluster_shape.SHAPES[shape](), nodes, fault, peers)
    for rank in only or range(job.ranks):
        name = "nccl_%s_%d.log" % (job.host(job.node_of(rank)), 4000 + job.gpu_of(rank))
        (pathlib.Path(folder) / name).write_text(job.text(rank))
    return job


def tacet(*arguments, stdin=None):
    done = subprocess.run([TACET, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def report_of(*arguments):
    code, out, err = tacet("topology", "-f", "json", *arguments)
    assert code in (0, 1), err
    return code, json.loads(out)


def faults(report):
    return [finding for finding in report["findings"] if finding["severity"] != "note"]


class Faults(unittest.TestCase):
    def check(self, shape, nodes, fault, cause, words):
        with tempfile.TemporaryDirectory() as folder:
            job = make_logs(folder, shape, nodes, fault)
            code, report = report_of(folder)
            found = faults(report)
            self.assertEqual([finding["cause"] for finding in found], [cause], f"{shape} {fault}: {[f['headline'] for f in found]}")
            self.assertEqual(code, 1)
            self.assertEqual(report["verdict"]["status"], "degraded")
            self.assertEqual(report["verdict"]["cause"], cause)
            headline = found[0]["headline"]
            for word in words + ([job.host(nodes - 1)] if fault in OF_ONE_NODE - {"no-gdr"} else []):
                self.assertIn(word, headline, f"{shape} {fault}")
            self.assertTrue(found[0]["evidence"], fault)
            if fault in OF_ONE_NODE:
                self.assertTrue(found[0]["ranks"] and set(found[0]["ranks"]) <= {job.rank_of(nodes - 1, gpu) for gpu in range(8)}, f"{fault}: {found[0]['ranks']}")

    def test_each_fault_of_two_h100_nodes_is_found_and_nothing_else(self):
        for fault, (cause, words) in (EXPECTED | OF_H100_ALONE).items():
            with self.subTest(fault):
                self.check("h100", 2, fault, cause, words)

    def test_each_fault_of_four_a100_nodes_is_found_and_nothing_else(self):
        for fault, (cause, words) in EXPECTED.items():
            with self.subTest(fault):
                self.check("a100", 4, fault, cause, words)

    def test_clean_clusters_raise_nothing(self):
        for shape, nodes in (("h100", 2), ("a100", 4), ("h100", 5)):
            for fault in CLEAN:
                with self.subTest(shape=shape, fault=fault), tempfile.TemporaryDirectory() as folder:
                    make_logs(folder, shape, nodes, fault)
                    code, report = report_of(folder)
                    self.assertEqual([f["headline"] for f in report["findings"]], [])
                    self.assertEqual((code, report["verdict"]["status"]), (0, "healthy"))

    def test_any_subset_of_ranks_of_a_clean_job_raises_nothing(self):
        for only in ([0], [5], [0, 9], list(range(8)), [3, 4, 11]):
            with self.subTest(only), tempfile.TemporaryDirectory() as folder:
                make_logs(folder, "h100", 2, only=only)
                code, report = report_of(folder)
                self.assertEqual((code, faults(report)), (0, []))
                self.assertIn("%d of 16 ranks" % len(only), report["verdict"]["headline"])

    def test_diagnose_raises_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            make_logs(folder, "h100", 2, "nic-missing")
            code, out, _ = tacet("diagnose", "-f", "json", folder)
            self.assertIn("nic-count-unequal", [f["cause"] for f in json.loads(out)["findings"]])
            self.assertEqual(code, 1)

    def test_recorded_healthy_jobs_raise_nothing_above_a_note(self):
        for name in ("clean_ddp", "gpt_fsdp"):
            if not (CORPUS / name).is_dir():
                continue
            with self.subTest(name):
                code, report = report_of(CORPUS / name)
                self.assertEqual((code, faults(report)), (0, []))


class Picture(unittest.TestCase):
    def test_rings_trees_and_nics_are_rebuilt(self):
        with tempfile.TemporaryDirectory() as folder:
            job = make_logs(folder, "h100", 2)
            topology = report_of(folder)[1]["topology"]
        comm = topology["communicators"][0]
        self.assertEqual((comm["ranks"], comm["nodes"], comm["channels"], comm["nvls_channels"]), (16, 2, 16, 16))
        self.assertEqual(len(comm["rings"]), 16)
        for ring in comm["rings"]:
            self.assertTrue(ring["whole"])
        first = comm["rings"][0]["order"]
        at = job.rings[0].index(first[0])
        self.assertEqual(first, job.rings[0][at:] + job.rings[0][:at])
        self.assertEqual([ring["same_as"] for ring in comm["rings"][8:]], list(range(8)))
        ways = {topology["transports"][way["transport"]]["text"]: way for way in comm["ways"]}
        self.assertEqual(set(ways), {"P2P/CUMEM", "NET/IB/GDRDMA"})
        self.assertEqual(ways["NET/IB/GDRDMA"]["inside"], 0)
        self.assertEqual(ways["P2P/CUMEM"]["between"], 0)
        self.assertEqual(comm["trees"][0]["root"], 0)
        node = topology["nodes"][0]
        self.assertEqual([nic["name"] for nic in node["nics"]], ["mlx5_%d" % i for i in range(8)])
        self.assertEqual([gpu["nics"] for gpu in node["gpus"]], [[i] for i in range(8)])
        self.assertEqual(topology["nodes"][1]["like"], 0)
        self.assertEqual([nic["ring_sends"] for nic in node["nics"]], [2] * 8)

    def test_one_rank_shows_its_own_hops(self):
        with tempfile.TemporaryDirectory() as folder:
            make_logs(folder, "a100", 4, only=[9])
            comm = report_of(folder)[1]["topology"]["communicators"][0]
        self.assertEqual(len(comm["rings"]), 16)
        self.assertFalse(comm["rings"][0]["whole"])
        self.assertEqual(len(comm["rings"][0]["hops"]), 4)

    def test_all_ranks_in_one_file_give_the_same_picture(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            job = make_logs(folder, "h100", 2)
            lines = [job.text(rank).splitlines(True) for rank in range(job.ranks)]
            mixed = "".join(line for i in range(max(map(len, lines))) for rank in lines for line in rank[i:i + 1])
            (pathlib.Path(other) / "job.log").write_text(mixed)
            apart, together = report_of(folder)[1], report_of(other)[1]
        self.assertEqual(apart["topology"]["communicators"], together["topology"]["communicators"])
        self.assertEqual(together["findings"], [])

    def test_topology_files_alone_are_read(self):
        samples = ROOT / "src" / "evidence"
        for path in ("topology_xml/samples/eight_gpus_topo.xml", "topology_xml/samples/eight_gpus_graph.xml", "nvidia_smi/samples/eight_gpus.txt"):
            code, report = report_of(samples / path)
            self.assertEqual((code, report["verdict"]["status"]), (0, "undetermined"))
            self.assertEqual(report["inputs"][0]["not_understood"], 0)
            self.assertTrue(report["inputs"][0]["format"])
            topology = report["topology"]
            if "graph" in path:
                self.assertEqual([(g["name"], g["channels"], g["type_inter"]) for g in topology["communicators"][0]["graphs"]], [("Ring", 8, "PXN"), ("NVLS", 8, "PIX")])
            else:
                self.assertEqual(len(topology["nodes"][0]["gpus"]), 8)
                self.assertEqual([gpu["nics"] for gpu in topology["nodes"][0]["gpus"]], [[i] for i in range(8)])

    def test_a_file_is_not_called_a_node(self):
        text = subprocess.run([TACET, "topology", ROOT / "src/evidence/nvidia_smi/samples/eight_gpus.txt"], capture_output=True, text=True, check=False).stdout
        self.assertRegex(text, r"\n  FILE +RANKS|\n  FILE +GPUS")
        self.assertNotIn("NODE", text)

    def test_a_slow_link_in_a_topology_file_is_found(self):
        text = (ROOT / "src/evidence/topology_xml/samples/eight_gpus_topo.xml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "topo.xml"
            path.write_text(text.replace('busid="0000:61:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"',
                                         'busid="0000:61:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="8"'))
            code, report = report_of(path)
        self.assertEqual((code, [(f["cause"], f["ranks"]) for f in faults(report)]), (1, [("rank-unlike-others", [3])]))


class Output(unittest.TestCase):
    def test_text_has_the_verdict_first_and_all_sections(self):
        with tempfile.TemporaryDirectory() as folder:
            make_logs(folder, "h100", 2, "lowered")
            code, out, _ = tacet("topology", folder)
        self.assertEqual(code, 1)
        self.assertTrue(out.startswith("DEGRADED"), out[:200])
        for part in ("gpu001 lowers all 16 ranks", "Nodes", "16 ranks on 2 nodes", "ring 0,8", "hops by transport", "NIC of each GPU", "lowered by gpu001"):
            self.assertIn(part, out)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_shared_memory_is_inside_a_node_though_only_one_end_has_a_log(self):
        code, out, _ = tacet("topology", ROOT / "tests/golden/gpus_without_a_direct_path/input")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"SHM +1 +0\n")
        self.assertIn("the logs show only 1 of these ranks in it", out)
        self.assertIn("P2P is disabled", out)
        self.assertNotIn("TCP sockets", out, "there is no hop between nodes")

    def test_a_failed_initialization_is_told_before_logs_are_asked_for(self):
        head = "h%d:70:70 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
        start = "h%d:70:70 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank %d nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x99 - Init START\n"
        warns = "\nh1:70:70 [0] bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found\nh1:70:70 [0] NCCL INFO init.cc:126 -> 5\n"
        for failed in (True, False):
            with self.subTest(failed), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "nccl_0.log").write_text(head % 0 + start % (0, 0))
                (pathlib.Path(folder) / "nccl_1.log").write_text(head % 1 + (warns if failed else start % (1, 1)))
                out = tacet("topology", folder)[1]
                words = " ".join(out.split())
                self.assertEqual("No ring was built: NCCL failed during initialization" in words, failed, out)
                self.assertEqual("nccl_1.log:3: Bootstrap : no socket interface found" in words, failed, out)
                self.assertEqual("NCCL logs with NCCL_DEBUG=INFO" in words, not failed, out)

    def test_an_error_of_an_operation_is_no_failed_initialization(self):
        warns = ("h1:70:70 [0] misc/socket.cc:50 NCCL WARN NET/Socket : peer 10.0.0.2<5000> message truncated : receiving 526336 bytes instead of 65536.\n"
                 "h1:70:70 [0] NCCL INFO transport/net.cc:1134 -> 5\n")
        for ring in ("", "h1:70:70 [0] NCCL INFO Channel 00/02 :    0   1\n"):
            with self.subTest(ring), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "nccl_0.log").write_text(ring + warns)
                words = " ".join(tacet("topology", folder)[1].split())
                self.assertTrue(words.startswith("UNDETERMINED"), words)
                self.assertNotIn("initialization", words)
                self.assertIn("Only part of the rings was logged; NCCL reported" if ring else "No ring was logged; NCCL reported", words)

    def test_a_hop_that_either_end_logs_counts_once(self):
        lines = "%s:70:70 [0] NCCL INFO comm 0x5 rank %d nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
        start = "%s:70:70 [0] NCCL INFO ncclCommInitRankConfig comm 0x5 rank %d nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x99 - Init START\n"
        hop = "%s:70:70 [0] NCCL INFO Channel 00/0 : %d[0] -> %d[0] [%s] via NET/Socket/0\n"
        zero = start % ("hA", 0) + lines % ("hA", 0) + hop % ("hA", 0, 1, "send") + hop % ("hA", 1, 0, "receive")
        one = start % ("hB", 1) + lines % ("hB", 1) + hop % ("hB", 1, 0, "send") + hop % ("hB", 0, 1, "receive")
        for text in (zero, zero + one):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "nccl.log").write_text(text)
                ways = report_of(folder)[1]["topology"]["communicators"][0]["ways"]
                self.assertEqual([(way["inside"], way["between"]) for way in ways], [(0, 2)])

    def test_nothing_is_cut_in_a_narrow_window(self):
        ran = subprocess.run([TACET, "topology", ROOT / "tests/corpus/fallback_env"], capture_output=True, text=True, env={**os.environ, "COLUMNS": "60"})
        nodes = ran.stdout[ran.stdout.index("\nNodes"):]
        self.assertNotIn("...", nodes)
        self.assertIn("NICS: 1 NIC eth0 (Socket, 1.2 GB/s)", " ".join(nodes.split()))
        self.assertIn("vm/node0 to vm/node3 (4 identical)", nodes)
        self.assertLessEqual(max(map(len, nodes.splitlines())), 60)

    def test_graphviz_is_well_formed(self):
        with tempfile.TemporaryDirectory() as folder:
            make_logs(folder, "a100", 4, "shm")
            out = tacet("topology", "-f", "dot", folder)[1]
        self.assertTrue(out.startswith("digraph topology {") and out.endswith("}\n"))
        self.assertEqual(out.count("{"), out.count("}"))
        self.assertIn("cluster_3", out)
        self.assertIn("penwidth", out, "the slow hop is marked")

    def test_the_page_is_one_file_with_a_policy(self):
        with tempfile.TemporaryDirectory() as folder:
            make_logs(folder, "h100", 2)
            out = tacet("topology", "-f", "html", folder)[1]
        self.assertIn("Content-Security-Policy", out)
        self.assertIn('"communicators"', out)
        self.assertIsNone(re.search(r'(src|href)="https?:', out))

    def test_wrong_usage_is_told(self):
        self.assertEqual(tacet("topology")[0], 2)
        self.assertEqual(tacet("topology", "-f", "pdf", ".")[0], 2)
        self.assertEqual(tacet("topology", "/no/such/folder")[0], 2)

    def test_hostile_claims_cost_nothing(self):
        line = "h:1:1 [0] NCCL INFO "
        text = "".join(line + words + "\n" for words in (
            "comm 0x1 rank 0 nranks 2147483647 cudaDev 0 nvmlDev 0 busId 1 commId 0x5 - Init START", "Ring 00 : 2147483646 -> 0 -> 2147483645",
            "Ring 99999 : 1 -> 0 -> 1", "Trees [0] 2147483646/-1/-1->0->-1", "Channel 00/2147483647 : 0 2147483646", "Channel 00/0 : 0[0] -> 2147483646[0] via P2P/IPC",
            "Channel -5/0 : 0[0] -> 1[0] via NET/IB/2147483647(2147483647)/GDRDMA", "+ PCI[1e308] - GPU/0-ffffffffffffffffff (0)",
            "NET/IB : Using [2147483647]mlx5_0:1/IB [-1]={[0] mlx5_1:1/RoCE, [1] mlx5_2:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
            "comm 0x1 rank 0 nranks 2147483647 cudaDev 0 nvmlDev 0 busId 1 commId 0x5 - Init COMPLETE"))
        for form in ("json", "text", "dot", "html"):
            code, out, err = tacet("topology", "-f", form, "-", stdin=text.encode())
            self.assertIn(code, (0, 1), err)
            self.assertTrue(out)


if __name__ == "__main__":
    TACET = sys.argv.pop(1)
    unittest.main()
