#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the inputs of the golden cases from the recordings in tests/corpus: make_inputs.py [case ...]

The inputs are committed; this says where each comes from and makes them anew, byte for byte. What was written by hand
stands in the functions below. Needs the zstd command.
"""
import gzip, json, pathlib, pickle, random, re, shutil, subprocess, sys

GOLDEN = pathlib.Path(__file__).resolve().parent
CORPUS = GOLDEN.parent / "corpus"
HOUR_NS = 3600 * 10**9


def files(case, *patterns):
    found = sorted(f for p in patterns or ("*",) for f in (CORPUS / case).glob(p) if f.is_file())
    return [f for f in found if not f.name.startswith("trace_rank")]


def copy(case, to, *patterns):
    to.mkdir(parents=True, exist_ok=True)
    for f in files(case, *patterns):
        shutil.copyfile(f, to / f.name)


def timed_lines(case, rank, *patterns):
    """The lines of a rank's files with the time each was written; one without a stamp follows the one before it."""
    out = []
    for pattern in patterns:
        now = out[-1][0] if pattern.startswith("stack") else ""
        for f in files(case, pattern.format(rank=rank)):
            for line in f.read_bytes().splitlines():
                stamp = re.search(rb"(?:1115|11-15[ T]) ?(\d\d:\d\d:\d\d)", line[:60])
                now = max(now, stamp[1].decode()) if stamp else now
                out.append((now, line))
    return sorted(out, key=lambda timed: timed[0])


def one_log_of_all(case, prefix, *patterns):
    """What a launcher that labels lines makes of four ranks: each rank's lines in order, the ranks mixed."""
    rng, out = random.Random(4711), []
    for rank in range(4):
        out += [(now, rng.random(), rank, line) for now, line in timed_lines(case, rank, *patterns)]
    # Within a second the ranks come in any order, each with its own lines in order.
    slots = sorted((now, noise, rank) for now, noise, rank, _ in out)
    queues = {rank: iter([line for _, _, r, line in out if r == rank]) for rank in range(4)}
    return b"".join(prefix(rank).encode() + next(queues[rank]) + b"\n" for _, _, rank in slots)


def rank_stuck_in_data_loader(to):
    copy("stuck_data", to)


def rank_stuck_while_another_process_is_oom_killed(to):
    copy("stuck_data", to)
    (to / "dmesg.txt").write_text(oom_kill(pid=28117, name="jupyter-lab"))


def oom_kill(pid, name):
    text = (CORPUS / "oom_rank" / "dmesg.txt").read_text()
    return text.replace("1533", str(pid)).replace("python3", name)


def healthy_job_beside_an_oom_kill(to):
    copy("clean_fsdp", to)
    (to / "dmesg.txt").write_text(oom_kill(pid=28117, name="python3"))


def healthy_job(to):
    copy("sizes", to, "nccl_*", "stdout_*")


def rank_stuck_in_one_labelled_log(to):
    """srun --label: every line of every rank begins with its task number."""
    log = one_log_of_all("stuck_data", lambda r: f"{r}: ", "nccl_rank{rank}.log", "stdout_rank{rank}.log",
                         "stack_rank{rank}.txt")
    to.mkdir(parents=True)
    (to / "slurm-4711.out").write_bytes(log)


def collective_skipped_in_one_tagged_log(to):
    """mpirun --tag-output, which also tells the job number and the stream."""
    log = one_log_of_all("hang_missing", lambda r: f"[1,{r}]<stdout>:", "nccl_rank{rank}.log", "stdout_rank{rank}.log")
    to.mkdir(parents=True)
    (to / "train.log").write_bytes(log)


def rank_dead_in_compressed_files(to):
    to.mkdir(parents=True)
    for f in files("dead_rank"):
        if f.name.startswith("nccl_trace"):
            subprocess.run(["zstd", "-q", "-19", "--no-check", f, "-o", to / (f.name + ".zst")], check=True)
        elif f.name.startswith("nccl_rank"):
            (to / (f.name + ".gz")).write_bytes(gzip.compress(f.read_bytes(), 9, mtime=0))
        else:
            shutil.copyfile(f, to / f.name)


def two_jobs_one_of_them_hangs(to):
    copy("sizes", to / "job-101", "nccl_rank*.log", "stdout_rank*.log")
    copy("gpu_spin", to / "job-102")


def rank_frozen_beside_a_stale_dump(to):
    """Rank 2 was stopped and wrote nothing; what lies there under its name is from the day before."""
    copy("stopped_rank", to)
    dump = pickle.loads((CORPUS / "clean_ddp" / "nccl_trace_rank_2").read_bytes())
    for entry in dump["entries"]:
        for key in ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"):
            if entry.get(key):
                entry[key] -= 24 * HOUR_NS
    (to / "nccl_trace_rank_2").write_bytes(pickle.dumps(dump, protocol=2))


def unused_parameter_ends_every_rank(to):
    copy("unused_param", to)


def one_rank_reduces_with_max(to):
    copy("hang_reduceop", to)


def rank_out_of_memory(to):
    copy("oom_rank", to)


def exception_text_with_markup(to):
    """What a job prints may be meant for whoever opens the report."""
    to.mkdir(parents=True)
    evil = b"</script><script>alert('tacet')</script><img src=x onerror=alert(1)> ]]> &lt; \x1b]0;owned\x07\x1b[31m \xff\xfe"
    for f in files("app_exception", "stdout_rank*.log"):
        text = f.read_bytes()
        at = text.index(b"RuntimeError: ") + len(b"RuntimeError: ")
        (to / f.name).write_bytes(text[:at] + evil + text[at:])


def victims_log_alone(to):
    copy("stuck_data", to, "stdout_rank0.log")


def rank_sleeps_before_every_step(to):
    copy("straggler_cpu", to, "stdout_rank*.log")
    for f in sorted((CORPUS / "straggler_cpu").glob("trace_rank*.json.gz")):
        shutil.copyfile(f, to / f.name)


def environment_forces_a_slow_path(to):
    copy("fallback_env", to, "nccl_rank*.log", "stdout_rank*.log")


def rank_never_joins(to):
    copy("init_missing", to)


def neighbours_both_send_first(to):
    copy("p2p_deadlock", to)


def rank_computes_longer_in_nsight_exports(to):
    to.mkdir(parents=True, exist_ok=True)
    for f in sorted((GOLDEN.parents[1] / "src/evidence/nsys/samples").glob("nsys_2025_rank*.sqlite")):
        shutil.copyfile(f, to / f.name.replace("rank", "report_"))


def even_ranks_in_one_nsight_export(to):
    to.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(GOLDEN.parents[1] / "src/evidence/nsys/samples/nsys_2022_one_host.sqlite", to / "report.sqlite")


def benchmark(to, *samples):
    to.mkdir(parents=True, exist_ok=True)
    for name in samples:
        shutil.copyfile(GOLDEN.parents[1] / "src/evidence/nccl_tests/samples" / name, to / name)


def benchmark_computes_wrong_results(to):
    benchmark(to, "wrong_2.16.txt", "all_reduce_2.19.txt")


def benchmark_ends_in_order(to):
    benchmark(to, "two_tables_srun_labels.txt", "broadcast_2.11_differences.txt", "all_reduce_2.19.json")


def pipeline_timeline(to, slow):
    """A 1F1B pipeline of three stages and two data-parallel ranks, drawn by what waits for what; slow(dp, stage) says
    how much longer a worker computes. Microseconds."""
    stages, microbatches, steps, rng, events = 3, 6, 4, random.Random(7), []

    def draw(name, dp, stage, tid, begin, end, step, seq, **more):
        events.append({"name": name, "cat": name, "pid": dp, "tid": 10 * stage + tid, "ts": begin, "dur": end - begin, "ph": "X",
                       "args": {"step": step, "seq_id": seq, **more}})

    now = 0.0
    for step in range(1, steps + 1):
        ends = []
        for dp in range(2):
            order = {}
            for stage in range(stages):
                ahead = min(microbatches, stages - 1 - stage)
                order[stage] = [("f", m) for m in range(ahead)]
                for m in range(microbatches):
                    order[stage] += ([("f", m + ahead)] if m + ahead < microbatches else []) + [("b", m)]
            done, free = {}, [now] * stages
            while any(order.values()):
                for stage in range(stages):
                    while order[stage]:
                        kind, m = order[stage][0]
                        before = (kind, stage + (-1 if kind == "f" else 1), m)
                        if kind == "b" and stage == stages - 1:
                            before = ("f", stage, m)
                        if 0 <= before[1] < stages and before not in done:
                            break
                        arrived = done.get(before, now) + (50 if before[1] != stage and before in done else 0)
                        begin = max(free[stage], arrived)
                        name = "forward" if kind == "f" else "backward"
                        if before[1] != stage and before in done:
                            draw(f"{name}-send", dp, before[1], 1, done[before], arrived, step, m)
                            draw(f"{name}-recv", dp, stage, 1, max(done[before], free[stage]), max(arrived, free[stage]), step, m)
                        end = begin + (1000 if kind == "f" else 2000) * slow(dp, stage) * rng.uniform(0.99, 1.01)
                        draw(f"{name}-compute", dp, stage, 0, begin, end, step, m, mb_id=m, model_chunk=0)
                        free[stage] = done[(kind, stage, m)] = end
                        order[stage].pop(0)
            ends.append(free)
        for stage in range(stages):
            begin = max(ends[0][stage], ends[1][stage])
            for dp in range(2):
                draw("grads-reduce-scatter", dp, stage, 2, ends[dp][stage], begin + 300, step, 0)
        now = max(max(free) for free in ends) + 500
    for dp in range(2):
        events.append({"name": "process_name", "pid": dp, "ph": "M", "args": {"name": f"DP rank [{dp}]"}})
        for stage in range(stages):
            for tid, name in enumerate(("compute", "pp-comm", "dp-comm")):
                events.append({"name": "thread_name", "pid": dp, "tid": 10 * stage + tid, "ph": "M",
                               "args": {"name": f"PP rank {stage}, TP rank 0, {name}"}})
    to.mkdir(parents=True, exist_ok=True)
    (to / "timeline.json").write_text("[" + ",\n".join(map(json.dumps, events)) + "]\n")


def pipeline_worker_computes_longer(to):
    pipeline_timeline(to, lambda dp, stage: 1.7 if (dp, stage) == (1, 2) else 1)


def pipeline_stage_has_more_work(to):
    pipeline_timeline(to, lambda dp, stage: 1.6 if stage == 1 else 1)


def pipeline_is_balanced(to):
    pipeline_timeline(to, lambda dp, stage: 1.05 if stage == 2 else 1)


CASES = [rank_stuck_in_data_loader, rank_stuck_in_one_labelled_log, rank_stuck_while_another_process_is_oom_killed,
         rank_dead_in_compressed_files, rank_frozen_beside_a_stale_dump, rank_out_of_memory, rank_never_joins,
         collective_skipped_in_one_tagged_log, one_rank_reduces_with_max, neighbours_both_send_first,
         two_jobs_one_of_them_hangs, unused_parameter_ends_every_rank, exception_text_with_markup,
         rank_sleeps_before_every_step, environment_forces_a_slow_path, healthy_job, healthy_job_beside_an_oom_kill,
         victims_log_alone, rank_computes_longer_in_nsight_exports, even_ranks_in_one_nsight_export,
         benchmark_computes_wrong_results, benchmark_ends_in_order, pipeline_worker_computes_longer,
         pipeline_stage_has_more_work, pipeline_is_balanced]

for case in CASES:
    if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
        continue
    to = GOLDEN / case.__name__ / "input"
    shutil.rmtree(to, ignore_errors=True)
    case(to)
    print(f"{case.__name__}: {sum(f.stat().st_size for f in to.rglob('*') if f.is_file()) // 1024} KiB")
