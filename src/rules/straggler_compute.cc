// SPDX-License-Identifier: Apache-2.0
#include "rules/straggler_finding.h"
#include "rules/words.h"

namespace tacet {

static bool IsStragglerCompute(const Straggler& straggler) {
  return (straggler.origin == StragglerOrigin::gpu_work || straggler.origin == StragglerOrigin::unknown) &&
         straggler.pattern == StragglerPattern::persistent;
}

// A detector inside the job (nvidia-resiliency-ext, NeMo) has compared the GPUs and names those that are slow. What it
// says last counts.
static void TellReported(const Case& facts, RuleAnswer& answer) {
  const Event* report = nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::straggler_report && (!report || CameBefore(*report, event))) report = &event;
  if (!report || report->ranks.empty()) return;
  const auto& told = report->As<SlowRankReport>();
  const bool one = report->ranks.size() == 1;
  Finding finding;
  finding.cause = "straggler-compute";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.ranks = report->ranks;
  finding.headline = RankWords(report->ranks) + (one && !told.host.empty() ? " on " + told.host : "") +
                     (one ? " is slower" : " are slower") + " than the others, by the job's own straggler detection" +
                     (told.score.empty() ? "" : " (GPU score " + told.score + ", 1 is the fastest)") +
                     ": all ranks run at " + (one ? "its pace" : "their pace");
  finding.evidence.push_back(CiteEvent(*report, "the warning that names " + RankWords(report->ranks)));
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeStragglerCompute(const Case& facts) {
  RuleAnswer answer = JudgeStragglers(facts, IsStragglerCompute, "straggler-compute", "its GPU work takes longer",
                                      "their GPU work takes longer");
  if (answer.findings.empty()) TellReported(facts, answer);
  return answer;
}

extern const Rule kStragglerComputeRule;
const Rule kStragglerComputeRule = {
    "straggler-compute",
    "A rank's GPU work takes longer",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less; or the warning "
    "of a straggler detection in the job's output",
    "In every step one rank reaches the collectives later than the others because its kernels take longer or there are "
    "more of them. All ranks wait for it, so the whole job runs at its pace. Its own collectives look short: the last "
    "to arrive waits least.",
    "A slow host leaves the GPU idle before the collective. An intermittent straggler is late only now and then. A "
    "pipeline stage with more layers is late by design: rebalance it. A slow link delays all members alike.",
    {"Compare the named rank's kernels with another rank's (same names, longer: clocks, thermal throttling, ECC, "
     "another process on the GPU; more kernels: extra work in the code).",
     "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC on its host; look for throttle reasons.",
     "If the delay follows the node: drain the node. If it follows the rank: look at the code and the data of that "
     "rank."},
    {"Watch GPU clocks and throttle reasons of all nodes.",
     "Run a short matmul benchmark on every node before long jobs."},
    JudgeStragglerCompute};

}  // namespace tacet
