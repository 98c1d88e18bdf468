// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

// Reports built by hand, for the tests of the renderers and for looking at their output. Not part of the product.

namespace tacet {

inline Report SampleHealthy() {
  Report report;
  report.verdict = {
      Status::healthy, "", {}, Confidence::certain, "All 4 ranks finished the same 120 collectives; none waits."};
  report.jobs = {{"",
                  4,
                  {0, 1, 2, 3},
                  {"node-a"},
                  {{"0", "default_pg", {0, 1, 2, 3}}},
                  {{"nccl", "2.28.9"}, {"torch", "2.11.0"}}}};
  for (int rank = 0; rank < 4; ++rank) {
    report.ranks.push_back(
        {rank, "node-a", 1200 + rank, "ok", "all_reduce #120 on default_pg: completed", "", "00:16:08", {"nccl_log"}});
    report.inputs.push_back({"nccl_rank" + std::to_string(rank) + ".log", "nccl_log", rank, 64000, 63000, 1000, 0});
  }
  report.seconds = 0.031;
  return report;
}

// Eight ranks in a mesh of two by four. Rank 5 reads data; its tensor-parallel peer waits for it, and through the
// data-parallel groups so does everybody else.
inline ReportFinding SampleStuckFinding() {
  ReportFinding finding;
  finding.cause = "rank-stuck-on-host";
  finding.title = "A rank is stuck on the host, outside communication";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  finding.ranks = {5};
  finding.affected_ranks = {0, 1, 2, 3, 4, 6, 7};
  finding.group = ReportGroup{"5", "mesh_tp", {4, 5, 6, 7}};
  finding.operation = OperationRef{OpKind::all_reduce, 13, 4198400};
  finding.headline =
      "Rank 5 never issued all_reduce #13 on mesh_tp, which ranks 4, 6 and 7 wait in: it is reading data in "
      "load_next_batch "
      "(train.py:124).";
  finding.explanation =
      "The process is alive and answers, but its main thread is outside communication, so it does not issue the "
      "collective its "
      "peers have already entered. They wait for it on the GPU, and the watchdog of whichever peer is first reports a "
      "timeout. That "
      "rank is a victim.\n\nThis is not a frozen rank, which would leave no stack at all, and not a skipped "
      "collective: rank 5 has "
      "issued every collective its peers issued up to #12, in the same order.";
  finding.evidence = {
      {"stack_rank5.txt", 6, 118, "  File \"/srv/train/train.py\", line 124 in load_next_batch",
       "The main thread of rank 5 is in load_next_batch, in user code."},
      {"nccl_trace_rank_4", 0, 188211, "{collective_seq_id: 13, profiling_name: 'nccl:all_reduce', state: 'started'}",
       "Rank 4 has started all_reduce #13 on mesh_tp and has not finished it."},
      {"nccl_trace_rank_5", 0, 172044, "{collective_seq_id: 12, profiling_name: 'nccl:all_reduce', state: 'completed'}",
       "The last collective of rank 5 on mesh_tp is #12, and it is completed."},
      {"stdout_rank0.log", 41, 9310,
       "[rank0]:[E1115 00:16:08.232184786 ProcessGroupNCCL.cpp:2636] [PG ID 0 PG GUID 0(default_pg) Rank 0] First PG "
       "on this rank "
       "to signal dumping.",
       "Rank 0 reports the timeout first. It is a victim."},
      {"", 0, 0, "", "No kernel log mentions rank 5's process or GPU."}};
  finding.fix = {"Look at what load_next_batch (train.py:124) waits for on rank 5: storage, a worker process, a lock.",
                 "If the read never returns, restart the job without that mount, or with a timeout around the read."};
  finding.prevent = {"Put a timeout on reads from remote storage and let the rank fail loudly.",
                     "Set TORCH_NCCL_TRACE_BUFFER_SIZE=20000, so that every rank leaves a flight record."};
  return finding;
}

inline ReportFinding SampleFallbackFinding() {
  ReportFinding finding;
  finding.cause = "transport-fallback";
  finding.title = "A slower transport is used than the machine has";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = {0, 1, 2, 3};
  finding.headline = "node-a talks over sockets although mlx5_0 is up: NCCL_IB_DISABLE=1 is set.";
  finding.explanation = "NCCL found the InfiniBand device, but a setting forbids it.";
  finding.evidence = {{"nccl_rank0.log", 12, 803,
                       "node-a:1550:1550 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.",
                       "The variable is set on rank 0."}};
  finding.fix = {"Remove NCCL_IB_DISABLE from the job's environment."};
  return finding;
}

inline Report SampleHang() {
  Report report;
  report.findings = {SampleStuckFinding(), SampleFallbackFinding()};
  report.verdict = {Status::hang, "rank-stuck-on-host", {5}, Confidence::certain, report.findings[0].headline};
  report.jobs = {
      {"", 8, {0, 1, 2, 3, 4, 5, 6, 7}, {"node-a", "node-b"}, {}, {{"nccl", "2.28.9"}, {"torch", "2.11.0"}}}};
  report.jobs[0].groups = {{"0", "default_pg", {0, 1, 2, 3, 4, 5, 6, 7}},
                           {"1", "mesh_dp", {0, 4}},
                           {"2", "mesh_dp", {1, 5}},
                           {"3", "mesh_dp", {2, 6}},
                           {"4", "mesh_tp", {0, 1, 2, 3}},
                           {"5", "mesh_tp", {4, 5, 6, 7}}};
  const auto file = [&](std::string name, std::string format, int rank, uint64_t bytes, uint64_t ignored,
                        uint64_t lost) {
    report.inputs.push_back({std::move(name), std::move(format), rank, bytes, bytes - ignored - lost, ignored, lost});
  };
  for (int rank = 0; rank < 8; ++rank) {
    const std::string number = std::to_string(rank);
    ReportRank row{rank, rank < 4 ? "node-a" : "node-b", 1550 + rank, "waits",
                   "",   "synchronize (train.py:61)",    "00:16:08",  {"flight_recorder", "nccl_log", "stacks"}};
    row.last_operation = rank < 4 ? "all_reduce #7 on mesh_dp: started" : "all_reduce #13 on mesh_tp: started";
    if (rank == 5) {
      row.role = "guilty";
      row.last_operation = "all_reduce #12 on mesh_tp: completed";
      row.doing = "load_next_batch (train.py:124)";
      row.last_sign = "00:15:48";
    }
    report.ranks.push_back(row);
    file("nccl_rank" + number + ".log", "nccl_log", rank, 64210, 2100, rank == 3 ? 420 : 0);
    file("nccl_trace_rank_" + number, "flight_recorder", rank, 201300, 0, 0);
    file("stack_rank" + number + ".txt", "stacks", rank, 612, 0, 0);
  }
  file("core.1555", "", -1, 50000, 0, 50000);
  report.waits = {{4, 5, "all_reduce #13 on mesh_tp"}, {6, 5, "all_reduce #13 on mesh_tp"},
                  {7, 5, "all_reduce #13 on mesh_tp"}, {0, 4, "all_reduce #7 on mesh_dp"},
                  {1, 5, "all_reduce #7 on mesh_dp"},  {2, 6, "all_reduce #7 on mesh_dp"},
                  {3, 7, "all_reduce #7 on mesh_dp"}};
  report.diagnostics = {{"warning", "truncated", "The last line is cut.", "nccl_rank3.log",
                         "The process died while writing, or the disk is full.", 911, 1},
                        {"warning", "truncated", "The last line is cut.", "nccl_rank6.log", "", 900, 1},
                        {"note", "unknown-format", "No reader knows this file.", "core.1555", "", 0, 1}};
  report.cannot_tell = {
      {"Is the read of rank 5 slow or stuck?", "Two stacks a few seconds apart: py-spy dump --pid 1555, twice."}};
  report.assumptions = {"stack_rank5.txt belongs to rank 5, after its file name."};
  report.seconds = 1.418;
  return report;
}

// What an attacker, or a binary that lands in a log, can put into evidence.
inline Report SampleHostile() {
  Report report = SampleHang();
  const std::string script =
      "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
  using std::string_literals::operator""s;
  const std::string bytes =
      "\x1b[31mred\x1b[0m \x07 nul\0here bad\xff\xfe\xc3( sep\xe2\x80\xa8 flip\xe2\x80\xae.gpj \xef\xbf\xbf"s
      " ]]> & <b> \"quoted\" 'single' \\u003c"s;
  const std::string both = script + bytes;
  report.verdict.headline = "Hostile: " + both;
  ReportFinding& finding = report.findings[0];
  finding.headline = report.verdict.headline;
  finding.title = finding.explanation = both;
  finding.group->name = finding.group->description = script;
  finding.evidence[0] = {"a:b c/" + script + ".log", 7, 70, both, both};
  finding.fix = finding.prevent = {both};
  for (ReportRank& rank : report.ranks) rank.host = rank.doing = rank.last_operation = both;
  report.ranks[1].role = script;
  for (ReportWait& wait : report.waits) wait.where = both;
  report.inputs[0].file = report.inputs[0].format = both;
  report.diagnostics[0] = {"error", script, both, both, both, 3, 9};
  report.cannot_tell = {{both, both}};
  report.assumptions = {both};
  report.jobs[0].hosts = {both};
  report.jobs[0].versions = {{"nccl", both}, {"__proto__", "polluted"}};
  return report;
}

// A large job: one rank does not come, `world` - 1 wait, every one of them at a slightly different place.
inline Report SampleLarge(int world) {
  Report report = SampleHang();
  const int guilty = world / 3;
  report.ranks.clear();
  report.waits.clear();
  report.inputs.clear();
  report.findings[0].ranks = report.verdict.ranks = {guilty};
  report.findings[0].affected_ranks.clear();
  report.jobs[0].world_size = world;
  report.jobs[0].ranks_seen.clear();
  report.jobs[0].groups.resize(1);
  report.jobs[0].groups[0].ranks.clear();
  for (int rank = 0; rank < world; ++rank) {
    const std::string number = std::to_string(rank);
    const bool culprit = rank == guilty;
    ReportRank row{rank,
                   "node-" + std::to_string(rank / 8),
                   4000 + rank % 8,
                   culprit ? "guilty" : "waits",
                   "all_reduce #" + std::to_string(1000 + rank) + " on default_pg: started",
                   "wait (train.py:61)",
                   "00:16:08",
                   {"flight_recorder"}};
    if (rank % 97 == 5 && !culprit) row.role = "silent";
    if (culprit) row.doing = "load_next_batch (train.py:124)";
    report.ranks.push_back(row);
    report.jobs[0].ranks_seen.push_back(rank);
    report.jobs[0].groups[0].ranks.push_back(rank);
    report.inputs.push_back({"nccl_trace_rank_" + number, "flight_recorder", rank, 200000, 200000, 0, 0});
    if (culprit) continue;
    report.findings[0].affected_ranks.push_back(rank);
    report.waits.push_back({rank, guilty, "all_reduce #13 on default_pg"});
  }
  return report;
}

}  // namespace tacet
