// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/benchmark_verdict.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "model/events/nccl_warnings.h"
#include "model/events/refusals.h"
#include "rules/unexplained/open_finding.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

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

// All sizes are there, whether or not somebody kept the lines behind them.
bool IsComplete(const BenchmarkRun& run) { return run.concluded || (run.reached_largest && run.failure.empty()); }

double BusBandwidth(const BenchmarkLine& line) { return std::max(line.out_of_place.bus_gbs, line.in_place.bus_gbs); }

}  // namespace

namespace {

// NCCL's log of the same run is here, too. The warning behind which its setup stops is the reason; those of its other
// threads, whose connections close then, follow from it.
const Event* LastCauseOf(const Incident& incident) {
  const Event *last = nullptr, *first_hand = nullptr;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::nccl_warning || SetupWentOn(incident, event)) continue;
    last = &event;
    if (event.As<Warning>().role == NcclWarningRole::cause) first_hand = &event;
  }
  return first_hand ? first_hand : last;
}

void TellReason(const Incident& incident, const SourceRef& failed_at, Finding& finding) {
  const Event* reason = LastCauseOf(incident);
  if (!reason || (reason->source.file == failed_at.file && reason->source.line == failed_at.line)) return;
  const NcclWarning* known = FindNcclWarning(reason->As<Warning>().id);
  finding.headline += "; NCCL had warned: '" + MessageWords(reason->text) + "'";
  finding.evidence.push_back(CiteEvent(*reason, "NCCL's warning before it"));
  finding.fix = {
      "Fix what the cited NCCL warning names: the results of the calls below it ('-> N') show that NCCL gave up "
      "there."};
  if (known && known->id != "other") finding.fix.push_back("That is: " + std::string(known->advice) + ".");
  finding.fix.push_back("If what it names is correct: try a newer release of NCCL.");
}

// ": the last size is 32 MiB of 16 GiB; bus bandwidth ...; results so far are correct"
std::string ProgressWords(const BenchmarkRun& run) {
  if (run.lines.empty()) return "";
  std::string out = ": the last size is " + SizeWords(run.lines.back().bytes);
  if (run.largest_bytes > run.lines.back().bytes) out += " of " + SizeWords(run.largest_bytes);
  out += LevelWords(run);
  if (run.checks_results && IsChecked(run) && CountWrongLines(run) == 0) out += "; the results so far are correct";
  return out;
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
  const std::string ranks =
      run.ranks > 0 ? std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks") : std::string();
  if (run.operation.empty()) return ranks.empty() ? "operation not shown" : ranks + ", operation not shown";
  return ranks.empty() ? run.operation : run.operation + " of " + ranks;
}

bool MeasuresNetwork(const BenchmarkRun& run) { return run.tool == "iperf3"; }

// Rows are not shown, and the summary counts no wrong value.
static bool IsCountedInSummary(const BenchmarkRun& run) {
  return run.lines.empty() && run.concluded && run.failed_checks == 0;
}

bool IsChecked(const BenchmarkRun& run) {
  if (!run.checks_results) return true;
  if (run.lines.empty()) return IsCountedInSummary(run);
  return !run.lines.empty() && std::all_of(run.lines.begin(), run.lines.end(), [](const BenchmarkLine& line) {
    return line.out_of_place.wrong >= 0 || line.in_place.wrong >= 0;
  });
}

static bool ChecksAny(const BenchmarkRun& run) {
  if (IsCountedInSummary(run)) return run.checks_results;
  return run.checks_results && std::any_of(run.lines.begin(), run.lines.end(), [](const BenchmarkLine& line) {
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
    // What the call answers may be known by itself.
    if (const Refusal* refusal = ClassifyRefusal(run.failure)) {
      finding.headline += ": " + std::string(refusal->sentence);
      finding.explanation = "A call to CUDA or NCCL failed; the error that it returned names the reason.";
      finding.fix.clear();
      for (const std::string_view step : refusal->steps)
        if (!step.empty()) finding.fix.emplace_back(step);
      return finding;
    }
    TellReason(incident, run.failed_at, finding);
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> FindSeparateBenchmarks(const Incident& incident) {
  for (const BenchmarkRun& run : incident.benchmark_runs) {
    if (run.separate_runs < 2) continue;
    const std::string count = std::to_string(run.separate_runs);
    Finding finding;
    finding.status = Status::degraded;
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.headline =
        count + " processes each ran the benchmark alone, as " + count + " runs" +
        (run.ranks < 1    ? std::string(" instead of one run of all ranks")
         : run.ranks == 1 ? " of 1 rank instead of one run of " + count + " ranks"
                          : " of " + std::to_string(run.ranks) + " ranks instead of one run of " +
                                std::to_string(run.separate_runs * run.ranks) + " ranks") +
        (run.devices.empty() ? ": every size appears " + (count == "2" ? "twice" : count + " times") : "") +
        (run.devices.empty() ? ", and nothing was sent between the processes"
                             : ": nothing was sent between the processes");
    finding.explanation =
        std::string(run.devices.empty() ? "" : "Each process calls itself rank 0. ") +
        "The tests take their rank and the number of ranks from MPI; built without "
        "MPI, or against a different MPI than the launcher's, every process starts a run of its own." +
        std::string(run.ranks == 1 ? " With 1 rank the bus bandwidth is 0 by definition, and the other figures only "
                                     "measure a copy within one GPU."
                                   : "");
    for (const BenchmarkRun& one : incident.benchmark_runs)
      for (const BenchmarkDevice& device : one.devices)
        if (one.separate_runs > 1 && device.rank == Rank{0} && finding.evidence.size() < 3)
          finding.evidence.push_back(
              {device.source, "process " + std::to_string(device.pid) + " on " + device.host, "calls itself rank 0"});
    if (finding.evidence.empty() && run.lines.size() > 1)
      finding.evidence.push_back({run.lines.back().source, "", "a size that appears once per process"});
    finding.fix = {
        "Build the tests with MPI, against the MPI whose mpirun or srun starts them: make MPI=1 "
        "MPI_HOME=/path/to/mpi.",
        "Check that the list of devices then shows one Rank 0 and as many ranks as were started."};
    return finding;
  }
  return std::nullopt;
}

namespace {

// From this size on the bandwidth stays below half of what smaller sizes reach: no fit of latency and bandwidth does
// that. As many lines as there are if it does not fall.
size_t FallOfBandwidth(const BenchmarkRun& run) {
  double best = 0;
  size_t from = run.lines.size();
  for (size_t i = 0; i < run.lines.size(); ++i) {
    const double here = BusBandwidth(run.lines[i]);
    if (here <= 0 || (i > 0 && run.lines[i].bytes <= run.lines[i - 1].bytes)) return run.lines.size();
    if (here < best / 2 && from == run.lines.size()) from = i;
    if (here >= best / 2) from = run.lines.size();
    best = std::max(best, here);
  }
  return from + 1 < run.lines.size() ? from : run.lines.size();  // one size alone may be chance
}

std::string FallWords(const BenchmarkRun& run) {
  const size_t from = FallOfBandwidth(run);
  if (from == run.lines.size()) return "";
  double best = 0;
  for (size_t i = 0; i < from; ++i) best = std::max(best, BusBandwidth(run.lines[i]));
  return "; bus bandwidth falls from " + Figure(best) + " GB/s to " + Figure(BusBandwidth(run.lines.back())) +
         " GB/s: from " + SizeWords(run.lines[from].bytes) + " on it is less than half of what smaller sizes reach";
}

}  // namespace

std::string LevelWords(const BenchmarkRun& run) {
  if (std::string fall = run.ranks == 1 ? std::string() : FallWords(run); !fall.empty()) return fall;
  if (run.ranks == 1) return "; with 1 rank the bus bandwidth is 0 by definition";
  const double best = BestBusBandwidth(run);
  if (best <= 0 && run.lines.empty() && run.average_bus_gbs > 0)
    return "; average bus bandwidth " + Figure(run.average_bus_gbs) + " GB/s";
  if (best <= 0) return "";
  const std::string plain = "; best bus bandwidth " + Figure(best) + " GB/s";
  const size_t count = run.lines.size();
  if (count < 3 || run.lines[count - 1].bytes <= run.lines[count - 2].bytes) return plain;
  // Level: within 5 % of the last size, and less than 2 % for each doubling of the size: in the middle of a sweep the
  // bandwidth rises by 4 % and more from one size to the next.
  const double last = BusBandwidth(run.lines.back());
  const auto is_level = [&](const BenchmarkLine& line) {
    const double off = std::fabs(BusBandwidth(line) - last) / last;
    const double doublings = std::log2(static_cast<double>(run.lines.back().bytes) / static_cast<double>(line.bytes));
    return off < 0.05 && off < 0.02 * doublings;
  };
  size_t from = count - 1;
  while (from > 0 && run.lines[from - 1].bytes > 0 && run.lines[from - 1].bytes < run.lines[from].bytes &&
         is_level(run.lines[from - 1]))
    --from;
  if (from + 1 < count)
    return "; bus bandwidth levels off at " + Figure(last) + " GB/s from " + SizeWords(run.lines[from].bytes) + " on";
  return last < best ? plain
                     : "; bus bandwidth " + Figure(last) + " GB/s at " + SizeWords(run.lines.back().bytes) +
                           ", the largest size shown, and still rising";
}

// # Avg bus bandwidth    : 10.536 FAILED
// Whoever started it said what it must reach (NCCL_TESTS_MIN_BW), and it did not.
static std::optional<Finding> FindMissedAverage(const Incident& incident) {
  for (const BenchmarkRun& run : incident.benchmark_runs) {
    if (!run.average_too_low) continue;
    Finding finding;
    finding.status = Status::slow;
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.headline =
        "the benchmark (" + BenchmarkWords(run) + ") did not reach the bandwidth that it is required to reach";
    if (run.average_bus_gbs > 0)
      finding.headline += ": the average bus bandwidth is " + Figure(run.average_bus_gbs) + " GB/s";
    finding.explanation = "NCCL_TESTS_MIN_BW sets what the average must reach; the benchmark then ends with an error.";
    finding.evidence.push_back({run.summary, "", "the benchmark's own check of the average"});
    finding.fix = {
        "Compare the largest sizes with what the hardware allows: tacet bandwidth on the same output, with "
        "NCCL_DEBUG=INFO.",
        "The average counts all sizes, small ones too: begin at a large size (-b 1G) to judge the links."};
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> FindFallingBenchmark(const Incident& incident) {
  if (auto missed = FindMissedAverage(incident)) return missed;
  for (const BenchmarkRun& run : incident.benchmark_runs) {
    const std::string fall = run.ranks > 1 && run.failure.empty() ? FallWords(run) : std::string();
    if (fall.empty()) continue;
    const BenchmarkLine &first = run.lines[FallOfBandwidth(run)], &last = run.lines.back();
    Finding finding;
    finding.status = Status::slow;
    finding.severity = Severity::warning;
    finding.confidence = Confidence::possible;
    finding.headline = "the benchmark (" + BenchmarkWords(run) + ") is slow for large sizes" + fall;
    finding.explanation =
        "The bandwidth of a healthy path rises with the size and then stays. A fall means that another path, algorithm "
        "or protocol carries the large sizes, or that the network loses or delays packets under load.";
    finding.evidence.push_back({first.source, "", "the first size that is slow"});
    finding.evidence.push_back({last.source, "", "the largest size"});
    finding.fix = {
        "Run again with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING, and with NCCL_ALGO=Ring and NCCL_ALGO=Tree in turn: "
        "where one of them does not fall, the choice at that size is the reason.",
        "Run it within one node, then between two: where it only falls between nodes, look at the network under load "
        "(dropped and paused packets: ethtool -S, perfquery; PFC and ECN on RoCE)."};
    return finding;
  }
  return std::nullopt;
}

bool SettleBenchmarks(const Incident& incident, Diagnosis& diagnosis) {
  if (!HoldsBenchmarksOnly(incident)) return false;
  const std::vector<BenchmarkRun>& runs = incident.benchmark_runs;
  const bool separate =
      std::any_of(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return run.separate_runs > 1; });
  const auto open = std::find_if(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return !IsComplete(run); });
  // What a part of the pairs shows stands by itself.
  const bool found = open != runs.end() && !open->matrices.empty() && !diagnosis.findings.empty() &&
                     diagnosis.findings.front().severity != Severity::note;
  if (open != runs.end() && !separate && !found) {
    if (open->devices.empty() && open->largest_bytes < 0 && !open->lines.empty()) {
      diagnosis.headline = "Part of a benchmark's table (" + BenchmarkWords(*open) + ")" + ProgressWords(*open);
      if (!FallWords(*open).empty()) diagnosis.status = Status::slow, diagnosis.confidence = Confidence::possible;
      diagnosis.open.push_back({"Did the benchmark finish?", "its whole output, from the command line to the summary"});
      return true;
    }
    if (open->lines.empty() && !open->devices.empty() && open->failure.empty() && open->matrices.empty()) {
      // Who hangs in the first operation prints no more, and neither does who pastes the head alone.
      const size_t listed = open->devices.size();
      diagnosis.headline =
          "The benchmark's output (" + (open->operation.empty() ? "" : open->operation + ", ") +
          std::to_string(listed) + (listed == 1 ? " rank" : " ranks") +
          " listed) has no line of its table: it is cut there, or the first operation did not complete";
      diagnosis.open.push_back(
          {"What did the benchmark measure?",
           "the rest of its output; if it hangs there, NCCL_DEBUG=INFO and the stacks of its processes"});
      return true;
    }
    diagnosis.headline =
        "The benchmark (" + BenchmarkWords(*open) + ") did not finish, or its output is cut" + ProgressWords(*open);
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
  const bool closed = std::all_of(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return run.concluded; });
  diagnosis.confidence = blind == 0 && closed ? Confidence::certain : Confidence::likely;
  const bool none = std::none_of(runs.begin(), runs.end(), ChecksAny);
  std::string level = runs.size() == 1 ? LevelWords(runs[0])
                      : best > 0       ? "; best bus bandwidth " + Figure(best) + " GB/s"
                                       : "";
  if (blind > 0 && level.size() > 2) level = ". " + std::string(1, level[2] == 'b' ? 'B' : 'W') + level.substr(3);
  if (runs.size() == 1 && MeasuresNetwork(runs[0]) && best > 0) {
    diagnosis.headline = "The network test (iperf3, " + runs[0].link + ") measured " + Figure(best * 8) + " Gbit/s" +
                         (runs[0].from.empty() || runs[0].from != runs[0].to ? " between two hosts" : " on one host");
    diagnosis.open.push_back(
        {"Is it as fast as it was before?", "the output of an earlier run: `tacet compare BEFORE AFTER`"});
    return true;
  }
  diagnosis.headline =
      (runs.size() == 1 ? "The benchmark (" + BenchmarkWords(runs[0]) + ") completed"
                        : std::to_string(runs.size()) + " benchmark runs completed") +
      (blind > 0 && none ? runs.size() == 1 ? "; its results were not checked" : "; their results were not checked"
       : blind > 0       ? "; not all results were checked"
       : checkable       ? " and all results are correct"
                         : "") +
      level;
  if (blind > 0)
    diagnosis.open.push_back(
        {"Were all results correct?",
         "a run that checks them and prints it for each size: nccl-tests 2.13 or later with -c 1"});
  diagnosis.open.push_back(
      {"Is it as fast as it was before?", "the output of an earlier run: `tacet compare BEFORE AFTER`"});
  return true;
}

}  // namespace tacet
