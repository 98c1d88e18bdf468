#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_input_cli_test.py TACET SOURCE_DIR: files that claim far more than they hold. Memory is bounded by the input and
never by what it claims; every command ends, without a signal and without a bug's exit code."""
import io
import json
import os
import re
import shutil
import struct
import sys
import tarfile
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from limited_run import FREE_BYTES, run_measured  # noqa: E402  pylint: disable=wrong-import-position

TACET, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
EVIDENCE = os.path.join(SOURCE, "src", "evidence")
HUGE = ("2147483647", "10000000", "2147483648", "9223372036854775807")
INIT = ("gpu17:4121:4190 [3] NCCL INFO ncclCommInitRank comm 0x23167e90 rank 3 nranks {n} cudaDev 3 nvmlDev 3 busId c8000 "
        "commId 0x74c2aad0c83fa31 - Init START\n")


def samples():
    for folder, _, files in sorted(os.walk(EVIDENCE)):
        if os.path.basename(os.path.dirname(folder)) == "samples" or os.path.basename(folder) == "samples":
            for name in sorted(files):
                yield os.path.join(folder, name)


class HostileInput(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tacet-hostile-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def check(self, *paths, command="diagnose", form="json", text_bytes=None):
        size = text_bytes if text_bytes is not None else sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
        cost = run_measured([TACET, command, "--format", form, "-j", "2", *paths], seconds=60)
        self.assertIn(cost.code, (0, 1, 2), f"{command} {paths}: {cost.error}")
        self.assertNotIn("internal error", cost.error)
        self.assertTrue(cost.within(size), f"{command} {paths}: {cost.peak_bytes >> 20} MiB for {size} bytes")
        return cost

    def test_a_log_that_claims_two_thousand_million_ranks(self):
        for claim in HUGE:
            path = self.write("nccl.log", INIT.format(n=claim) * 3)
            for form in ("text", "json", "html", "junit", "sarif"):
                cost = self.check(path, form=form)
                self.assertLess(len(cost.out), 1 << 20, f"a report of {len(cost.out)} bytes")
        report = json.loads(self.check(self.write("nccl.log", INIT.format(n=HUGE[0]))).out)
        self.assertEqual(report["job"]["world_size"], 2147483647)
        self.assertEqual(report["job"]["ranks_seen"], [3])
        self.assertIn("claimed-ranks", [one["code"] for one in report["diagnostics"]])

    def test_a_truthful_log_of_a_very_large_job_is_told_in_full(self):
        report = json.loads(self.check(self.write("nccl.log", INIT.format(n="16384"))).out)
        self.assertEqual(report["job"]["world_size"], 16384)
        self.assertEqual([len(group["ranks"]) for group in report["job"]["groups"]], [16384])
        self.assertEqual(report["diagnostics"], [])

    def test_many_communicators_and_many_files_that_claim_much_each(self):
        lines = "".join(
            INIT.format(n="1000000").replace("0x23167e90", hex(0x1000 + i)).replace("0x74c2aad0c83fa31", hex(0x77000 + i))
            for i in range(2000))
        self.check(self.write("many.log", lines))
        total = 0
        for i in range(300):
            total += os.path.getsize(self.write(f"jobs/run{i}/rank3.log", INIT.format(n="30000").replace("0x74c2", hex(i + 1))))
        self.check(os.path.join(self.folder, "jobs"), text_bytes=total)

    def test_a_trace_whose_world_has_two_thousand_million_ranks(self):
        for claim in (*HUGE, "-1", "1e308"):
            trace = ('{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": %s, "pg_count": 1}, '
                     '"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", '
                     '"pid": 0, "tid": 7, "ts": 1.0, "dur": 5.0, "args": {"External id": 1, "device": 0, "stream": 7, '
                     '"Collective name": "allreduce", "In msg nelems": 1, "dtype": "Float", "Group size": %s}}]}') % (claim, claim)
            path = self.write("trace_rank0.json", trace)
            for command in ("diagnose", "profile"):
                cost = self.check(path, command=command)
                self.assertLess(len(cost.out), 1 << 20)

    def test_every_sample_with_every_number_made_huge(self):
        """One variant a file and claim: all its whole numbers, and those behind a name alone."""
        for path in samples():
            with open(path, "rb") as file:
                data = file.read()
            if b"\0" in data[:4096] or path.endswith((".box", ".sqlite")):
                continue
            name = os.path.basename(path)
            for i, claim in enumerate((HUGE[0], HUGE[1])):
                everywhere = re.sub(rb"(?<![\w.])\d+(?![\w.])", claim.encode(), data)
                named = re.sub(rb"((?:n_?ranks|world_?size|size|rank|count|stage|dp|pp|group_size|ranks)\W{1,4})\d+", rb"\g<1>" + claim.encode(), data)
                for variant in (everywhere, named):
                    file = self.write(f"{i}/{name}", variant)
                    self.check(file)
                    if name.endswith(".json") or "trace" in name:
                        self.check(file, command="profile")
                    for command in self.other_readers(path):
                        self.check(file, command=command)

    def other_readers(self, path):
        """Which further commands read a sample. Every one of them has the same ceiling."""
        kind = os.path.relpath(path, EVIDENCE).split(os.sep)[0]
        if kind in ("nccl_log", "topology_xml", "nvidia_smi"):
            return ("topology", "predict", "lint") if kind == "nccl_log" else ("topology",)
        benchmarks = ("nccl_tests", "nvbandwidth", "iperf3", "perftest", "osu", "p2p_latency", "bench_table")
        return ("bandwidth",) if kind in benchmarks else ()

    def test_lines_of_a_scheduler_that_name_every_task_there_could_be(self):
        """Ten bytes name 65,536 tasks; an event each would be 90 MB."""
        line = "srun: error: node{i}: tasks {a}-{b}: Terminated\n"
        self.check(self.write("slurm-1.out", line.format(i=8, a=4, b=HUGE[0])))
        self.check(self.write("slurm-2.out", "".join(line.format(i=i, a=0, b=65535) for i in range(2000))))
        total = 0
        for i in range(300):
            total += os.path.getsize(self.write(f"many/{i}/slurm-{i}.out", line.format(i=i, a=i * 70000, b=i * 70000 + 65535)))
        self.check(os.path.join(self.folder, "many"), text_bytes=total)
        told = json.loads(self.check(self.write("slurm-3.out", line.format(i=1, a=0, b=1023) + "srun: error: node1: task 7: Killed\n")).out)
        self.assertEqual((told["verdict"]["cause"], told["verdict"]["ranks"]), ("rank-dead", [7]), "a truthful line of a large node is told")

    def test_archives_that_claim_more_than_they_hold(self):
        log = INIT.format(n="8").encode() * 20
        plain, packed = io.BytesIO(), io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as tar:
            entry = tarfile.TarInfo("rank3.log")
            entry.size = len(log)
            tar.addfile(entry, io.BytesIO(log))
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("rank3.log", log)
        tar, archive = bytearray(plain.getvalue()), bytearray(packed.getvalue())
        tar[124:136] = b"77777777777\0"  # the size: 8 GiB
        tar[148:156] = b" " * 8
        tar[148:156] = b"%06o\0 " % sum(tar[:512])
        self.check(self.write("claims.tar", bytes(tar)))
        at = archive.rindex(b"PK\x01\x02")
        for place in (at + 24, archive.index(b"PK\x03\x04") + 22):  # what it unpacks to
            struct.pack_into("<I", archive, place, 0xfffffff0)
        self.check(self.write("claims.zip", bytes(archive)))
        # Many names for the same bytes: each is small, all together are not.
        many = bytearray(packed.getvalue())
        at, end = many.rindex(b"PK\x01\x02"), many.rindex(b"PK\x05\x06")
        entry = bytes(many[at:end])
        tail = bytearray(many[end:])
        struct.pack_into("<HHI", tail, 8, 60000, 60000, len(entry) * 60000)
        self.check(self.write("names.zip", bytes(many[:at]) + entry * 60000 + bytes(tail)))

    def test_binary_samples_with_every_small_number_made_huge(self):
        for path in samples():
            with open(path, "rb") as file:
                data = bytearray(file.read())
            if not path.endswith((".box", ".sqlite")) and b"\0" not in data[:4096]:
                continue
            name = os.path.basename(path)
            for small in (2, 4, 8):
                variant = bytearray(data)
                for at in range(0, min(len(variant), 1 << 16) - 4, 4):
                    if struct.unpack_from("<I", variant, at)[0] == small:
                        struct.pack_into("<I", variant, at, 0x7fffffff)
                cost = run_measured([TACET, "diagnose", "--format", "json", self.write(name, bytes(variant))], seconds=60)
                self.assertIn(cost.code, (0, 1, 2), name + cost.error)
                self.assertLess(cost.peak_bytes, FREE_BYTES + 16 * len(data), name)

    def test_a_box_with_as_many_communicators_as_operations(self):
        """65,536 communicators and 131,072 operations in flight: every lookup has to be one."""
        path = self.write("jobs/node-1.box", b"")
        self.write_hostile_box(path, 65536, 131072)
        cost = run_measured([TACET, "diagnose", "--format", "json", path], seconds=120)
        self.assertIn(cost.code, (0, 1, 2), cost.error)
        self.assertLess(cost.cpu_seconds, 20)
        self.assertLess(cost.peak_bytes, FREE_BYTES + 16 * os.path.getsize(path))

    # Piece by piece: what this process holds would count as the program's own.
    def write_hostile_box(self, path, comms, ops):
        with open(os.path.join(EVIDENCE, "black_box", "samples", "healthy_rank0.box"), "rb") as file:
            header = bytearray(file.read(4096))
        at, tables = 4096, []
        for count, stride in ((comms, 256), (16, 64), (ops, 256), (ops, 256), (16, 192), (16, 192)):
            tables.append((at, count, stride))
            at += count * stride
        struct.pack_into("<Q", header, 24, at)
        for i, table in enumerate(tables):
            struct.pack_into("<QII", header, 32 + 16 * i, *table)
        with open(path, "wb") as file:
            file.write(header)
            for i in range(comms):
                file.write(struct.pack("<QQiiii", 3, i + 1, 0, 2, 1, 0).ljust(256, b"\0"))
            file.write(bytes(16 * 64))
            for i in range(ops):
                # word, serial, communicator, number, NCCL's number, count, stream, tag, slot, kind, type
                file.write(struct.pack("<QQQQQQQQHBB", 1 << 26, i, i % comms + 1, 1, 1, 1, 0, 0, i % comms, 1, 7).ljust(256, b"\0"))
            for _ in range(ops):
                file.write(struct.pack("<QII", 1 << 26, 0, 0).ljust(256, b"\0"))
            file.write(bytes(32 * 192))

    def test_files_of_nothing_but_the_shortest_records(self):
        """A record takes more memory than its text. Where a format lets a few characters make one, their number is limited."""
        size = 6_000_000
        head = b"\x80\x02}q\x00(X\x07\x00\x00\x00versionq\x01X\x04\x00\x00\x002.10q\x02X\x07\x00\x00\x00entriesq\x03]q\x04("
        records = {
            "processes.log": ("a:{i}:1 [0] NCCL INFO x\n", ""),
            "communicators.log": ("a:1:1 [0] NCCL INFO comm 0x{i:x} rank 0 nranks 2 cudaDev 0 busId 1 commId 0x{i:x} - Init COMPLETE\n", ""),
            "threads.txt": ('Thread 1 (active): "M"\n    f (a.py:1)\n', "Process 1: python\nPython v3.11.2\n\n"),
            "values.json": ("1,", '{"schemaVersion":1,"deviceProperties":[],"traceEvents":[],"distributedInfo":{"rank":0,"pg_config":['),
        }
        for name, (record, begin) in records.items():
            path = self.write(name, begin)
            with open(path, "a", encoding="ascii") as file:
                for i in range(1, size // len(record)):
                    file.write(record.replace("{i:x}", f"{i:x}").replace("{i}", str(i)))
            cost = self.check(path)
            self.assertLess(cost.cpu_seconds, 10, name)
        for value in (b"N", b"}"):
            path = self.write("nccl_trace_rank_0", head)
            with open(path, "ab") as file:
                for _ in range(size // 10000):
                    file.write(value * 10000)
            self.check(path)

    def test_where_no_thread_can_be_started(self):
        for i in range(12):
            self.write(f"files/rank{i}.log", INIT.format(n="16").replace("rank 3", f"rank {i}"))
        os.chmod(self.folder, 0o755)
        program = shutil.copy(TACET, self.folder)

        import random  # pylint: disable=import-outside-toplevel
        import subprocess  # pylint: disable=import-outside-toplevel

        # Processes are counted for each user on the whole machine: with a number that another run of this test has, too,
        # not even the program could be started.
        for user in random.sample(range(20000, 60000), 5):
            def poor(user=user):
                import resource  # pylint: disable=import-outside-toplevel
                resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
                if os.geteuid() == 0:  # root has no limit
                    os.setgid(user)
                    os.setuid(user)
            try:
                done = subprocess.run([program, "diagnose", "--format", "json", "-j", "8", os.path.join(self.folder, "files")],
                                      preexec_fn=poor, capture_output=True, timeout=120, check=False)
                break
            except BlockingIOError:
                continue
        else:
            self.skipTest("no user was free of processes")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["inputs"]), 12)

    def test_too_little_memory_is_said_and_is_no_bug(self):
        path = self.write("large.log", INIT.format(n="8") * 400000)
        import subprocess  # pylint: disable=import-outside-toplevel

        def poor():
            import resource  # pylint: disable=import-outside-toplevel
            resource.setrlimit(resource.RLIMIT_AS, (90 << 20, 90 << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        done = subprocess.run([TACET, "diagnose", "-j", "8", path, path], preexec_fn=poor, capture_output=True, text=True, timeout=120, check=False)
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)
        if done.returncode == 2:
            self.assertRegex(done.stderr, "out of memory|cannot be read|could be read")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
