// SPDX-License-Identifier: Apache-2.0
#include "rules/benchmark_verdict.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace tacet {
namespace {

// All processes that files speak of are those of the benchmarks: NCCL's own log of the same run names them by pid.
bool HoldsBenchmarksOnly(const Incident& incident) {
  if (incident.benchmark_runs.empty()) return false;
  std::set<int64_t> pids;
  for (const BenchmarkRun& run : incident.benchmark_runs)
    for (const BenchmarkDevice& device : run.devices) pids.insert(device.pid);
  return std::all_of(incident.processes.begin(), incident.processes.end(),
                     [&](const Process& process) { return !process.rank.known() || pids.contains(process.pid); });
}

std::string Figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.1f", value);
  return text;
}

double BestBusBandwidth(const BenchmarkRun& run) {
  double best = -1;
  for (const BenchmarkLine& line : run.lines) best = std::max({best, line.out_of_place.bus_gbs, line.in_place.bus_gbs});
  return std::max(best, run.received_gbs);
}

}  // namespace

std::string SizeWords(int64_t bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

std::string BenchmarkWords(const BenchmarkRun& run) {
  std::string out = run.operation.empty() ? "an operation whose name is not shown" : run.operation;
  if (run.ranks > 0) out += " of " + std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks");
  return out;
}

bool IsChecked(const BenchmarkRun& run) {
  if (!run.checks_results) return true;
  return !run.lines.empty() && std::all_of(run.lines.begin(), run.lines.end(), [](const BenchmarkLine& line) {
    return line.out_of_place.wrong >= 0 || line.in_place.wrong >= 0;
  });
}

size_t CountWrongLines(const BenchmarkRun& run) {
  return static_cast<size_t>(std::count_if(run.lines.begin(), run.lines.end(), [](const BenchmarkLine& line) {
    return line.out_of_place.wrong > 0 || line.in_place.wrong > 0;
  }));
}

std::optional<Finding> FindFailedBenchmark(const Incident& incident) {
  for (const BenchmarkRun& run : incident.benchmark_runs) {
    if (run.failure.empty()) continue;
    Finding finding;
    finding.status = Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::certain;
    finding.headline = "The benchmark (" + BenchmarkWords(run) + ") stopped with an error: " + run.failure;
    finding.explanation =
        "A call to NCCL or CUDA failed. The cited line says which one; NCCL's log says why, and which rank failed "
        "first.";
    finding.evidence.push_back({run.failed_at, run.failure, "the benchmark stops here"});
    finding.fix = {"Run it again with NCCL_DEBUG=INFO and give the output of all ranks to `tacet diagnose`."};
    return finding;
  }
  return std::nullopt;
}

bool SettleBenchmarks(const Incident& incident, Diagnosis& diagnosis) {
  if (!HoldsBenchmarksOnly(incident)) return false;
  const std::vector<BenchmarkRun>& runs = incident.benchmark_runs;
  const auto open = std::find_if(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return !run.concluded; });
  if (open != runs.end()) {
    diagnosis.headline = "The benchmark (" + BenchmarkWords(*open) + ") did not finish, or its output is cut";
    diagnosis.open.push_back({"Why did the benchmark not finish?",
                              "the rest of its output, with NCCL_DEBUG=INFO, and stacks of its processes if it hangs"});
    return true;
  }
  if (!diagnosis.findings.empty() && diagnosis.findings.front().severity != Severity::note) {
    // It ended, and what it measured is the answer.
    const Finding& first = diagnosis.findings.front();
    diagnosis.status = first.status;
    diagnosis.cause = first.cause;
    diagnosis.ranks = first.ranks;
    diagnosis.subjects = first.subjects;
    diagnosis.confidence = first.confidence;
    diagnosis.headline = first.headline;
    return true;
  }
  const auto blind = std::count_if(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return !IsChecked(run); });
  const bool checkable =
      std::any_of(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return run.checks_results; });
  double best = -1;
  for (const BenchmarkRun& run : runs) best = std::max(best, BestBusBandwidth(run));
  diagnosis.status = Status::healthy;
  diagnosis.confidence = blind == 0 ? Confidence::certain : Confidence::likely;
  diagnosis.headline = (runs.size() == 1 ? "The benchmark (" + BenchmarkWords(runs[0]) + ") completed"
                                         : std::to_string(runs.size()) + " benchmark runs completed") +
                       (blind > 0   ? ", not all results were checked"
                        : checkable ? " and all results are correct"
                                    : "") +
                       (best > 0 ? "; best bus bandwidth " + Figure(best) + " GB/s" : "");
  if (blind > 0)
    diagnosis.open.push_back(
        {"Were all results correct?",
         "a run that checks them and prints it for each size: nccl-tests 2.13 or later with -c 1"});
  diagnosis.open.push_back(
      {"Is it as fast as it was before?", "the output of an earlier run: `tacet compare BEFORE AFTER`"});
  return true;
}

}  // namespace tacet
