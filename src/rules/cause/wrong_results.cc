// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "rules/rule.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/told_remedy.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {

constexpr size_t kMostCited = 5;

static std::string WrongFigures(const BenchmarkLine& line) {
  char text[96];
  std::string out;
  for (const auto& [side, name] :
       {std::pair{&line.out_of_place, "out-of-place"}, std::pair{&line.in_place, "in-place"}}) {
    if (side->wrong <= 0) continue;
    // The benchmark prints six digits: larger numbers are rounded there.
    constexpr double kRounded = 1e6;
    std::snprintf(text, sizeof text, side->wrong < kRounded ? "%.0f" : "%.3g million",
                  side->wrong < kRounded ? side->wrong : side->wrong / kRounded);
    out += (out.empty() ? "" : ", ") + std::string(side->wrong < kRounded ? "" : "about ") + text + " wrong elements " +
           name;
  }
  return out;
}

static RuleAnswer JudgeWrongResults(const Case& facts) {
  RuleAnswer answer;
  for (const BenchmarkRun& run : facts.incident.benchmark_runs) {
    const size_t wrong = CountWrongLines(run);
    if (wrong == 0 && run.failed_checks <= 0) continue;
    Finding finding;
    finding.cause = "wrong-results";
    finding.status = Status::corrupt;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::certain;
    finding.headline = "the results of " +
                       (run.operation.empty() ? "the benchmark (" + BenchmarkWords(run) + ")" : BenchmarkWords(run)) +
                       " are wrong";
    const BenchmarkLine* least = nullptr;
    for (const BenchmarkLine& line : run.lines) {
      if (line.out_of_place.wrong <= 0 && line.in_place.wrong <= 0) continue;
      if (!least || line.bytes < least->bytes) least = &line;
      if (finding.evidence.size() < kMostCited)
        finding.evidence.push_back({line.source, SizeWords(line.bytes) + ": " + WrongFigures(line),
                                    "the benchmark checks its results, and they are wrong"});
    }
    if (least)
      finding.headline += " in " + std::to_string(wrong) + " of " + std::to_string(run.lines.size()) + " lines, from " +
                          SizeWords(least->bytes) + " on";
    if (run.failed_checks > 0)
      finding.evidence.push_back(
          {run.summary, "Out of bounds values : " + std::to_string(run.failed_checks), "the benchmark's own summary"});
    const auto kind = run.operation == "all_to_all_v" ? OpKind::all_to_all : ParseOpKind(run.operation);
    if (kind != OpKind::unknown && least) finding.operation = OperationRef{kind, -1, least->bytes};
    answer.findings.push_back(std::move(finding));
  }
  const Event* told = FindToldWords(facts.incident, EventKind::told_wrong);
  const JobEnding end = facts.analyses.end.kind;
  if (told && answer.findings.empty() && end != JobEnding::crashed && end != JobEnding::hung) {
    Finding finding;
    finding.cause = "wrong-results";
    finding.status = Status::corrupt;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    finding.headline = "the text around the log says that data between GPUs is wrong";
    finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
    TellRemedy(facts, finding);
    answer.findings.push_back(std::move(finding));
  }
  return answer;
}

extern const Rule kWrongResultsRule;
const Rule kWrongResultsRule = {
    "wrong-results",
    "A collective or a copy gives wrong numbers",
    "output of nccl-tests with result checks (-c 1), or of a test that copies between GPUs and compares",
    "A test that knows the right results found wrong ones. Data is damaged between the GPUs: in "
    "memory, on a link, in a plugin, or by a protocol that this hardware does not support. A training job on these "
    "machines computes wrong numbers without any error.",
    "The old column 'error' (before 2.13) holds rounding differences and proves nothing; the summary line is reliable. "
    "Ranks that call different operations give wrong numbers too, but a benchmark does not do that.",
    {"Narrow it down: run with NCCL_PROTO=Simple (LL128 is wrong on some hardware), then NCCL_P2P_DISABLE=1 (PCIe peer "
     "access under an IOMMU or ACS), then NCCL_NET_GDR_LEVEL=LOC or NCCL_NET=Socket (network, its plugin, GPUDirect).",
     "Run it on pairs of GPUs and of hosts: the GPU or host that is in every failing pair has the bad part. Look for "
     "ECC and NVLink errors (nvidia-smi -q -d ECC, nvidia-smi nvlink -e) and Xid 48, 63, 74, 94 in dmesg.",
     "Take the host out of service until the run is clean."},
    {"Run nccl-tests with -c 1 on every host before it joins, and after changes of driver, firmware, NCCL or plugin."},
    JudgeWrongResults};

}  // namespace tacet
