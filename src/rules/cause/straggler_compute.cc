// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "analysis/printed/training_trend.h"
#include "model/events/gpu_state.h"
#include "rules/findings/straggler_finding.h"
#include "rules/words/words.h"

namespace tacet {

static bool IsStragglerCompute(const Straggler& straggler) {
  return (straggler.origin == StragglerOrigin::gpu_work || straggler.origin == StragglerOrigin::unknown) &&
         straggler.pattern == StragglerPattern::persistent;
}

extern const Rule kStragglerComputeRule;

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
                     (one ? " is slower" : " are slower") +
                     " than the others, according to the job's own straggler detection" +
                     (told.score.empty() ? "" : " (GPU score " + told.score + ", 1 is the fastest)") +
                     ": all ranks run at " + (one ? "its pace" : "their pace");
  finding.evidence.push_back(CiteEvent(*report, "the warning that names " + RankWords(report->ranks)));
  if (one && !told.host.empty()) {
    finding.fix.assign(kStragglerComputeRule.fix.begin(), kStragglerComputeRule.fix.end());
    for (std::string& step : finding.fix)
      if (const size_t at = step.find("on its host"); at != std::string::npos) step.replace(at, 11, "on " + told.host);
  }
  answer.findings.push_back(std::move(finding));
}

// nvidia-smi shows one GPU, or a few, with a clock that heat or a power brake holds down while the others run at
// theirs.
static void TellThrottled(const Case& facts, RuleAnswer& answer) {
  constexpr double kSlowShare = 0.8;
  std::vector<const Event*> slowed;
  std::string gpus;
  double usual = -1;
  size_t others = 0;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::gpu_load) continue;
    const GpuState state = ReadGpuState(event.text);
    if (!state.slowed_by.empty() && state.mhz > 0) {
      slowed.push_back(&event);
    } else if (state.mhz > 0) {
      usual = usual < 0 ? state.mhz : std::min(usual, state.mhz);
      ++others;
    }
  }
  std::erase_if(slowed, [&](const Event* event) { return ReadGpuState(event->text).mhz > kSlowShare * usual; });
  if (slowed.empty() || others < slowed.size()) return;
  for (const Event* event : slowed)
    gpus += (gpus.empty() ? "" : event == slowed.back() ? " and " : ", ") + std::to_string(event->As<GpuLoad>().index);
  const bool one = slowed.size() == 1;
  const GpuState state = ReadGpuState(slowed.front()->text);
  char clock[96];
  std::snprintf(clock, sizeof clock, "%.0f MHz where the others run at %.0f MHz or more", state.mhz, usual);
  char heat[32] = "";
  if (state.celsius > 0) std::snprintf(heat, sizeof heat, ", %.0f °C", state.celsius);
  Finding finding;
  finding.cause = "straggler-compute";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = FindSlowingSteps(facts.incident) ? Confidence::likely : Confidence::possible;
  finding.headline = (one ? "GPU " : "GPUs ") + gpus + (one ? " is throttled (" : " are throttled (") +
                     std::string(state.slowed_by) + heat + "): " + clock + "; all ranks of a job wait for " +
                     (one ? "it" : "them") + " in every step";
  for (const Event* event : slowed)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "the clock of this GPU"));
  finding.fix = {
      "Check the cooling and the power supply of that host (fans, airflow, inlet temperature, power cables); "
      "dcgmi diag -r 3 on it.",
      "Run the job without that node, or without that GPU, until its clock stays up under load.",
      "If it was measured while other work ran: measure again with the job alone."};
  answer.findings.push_back(std::move(finding));
}

// The plain table of nvidia-smi shows no clocks. At this temperature GPUs lower theirs; somewhat below it the power
// tells: a GPU that is slowed down draws less than the others under the same load.
static void TellHot(const Case& facts, RuleAnswer& answer) {
  constexpr double kSlowdown = 90, kNear = 85;
  constexpr float kLessPower = 0.75F, kUnderLoad = 80;
  std::vector<const Event*> hot, warm;
  float usual = 0;  // the least power of those that are not hot
  size_t others = 0;
  for (const Event& event : facts.incident.events) {
    const auto& load = event.As<GpuLoad>();
    if (event.kind != EventKind::gpu_load || load.percent < kUnderLoad) continue;
    const double celsius = ReadGpuState(event.text).celsius;
    if (celsius >= kNear) (celsius >= kSlowdown ? hot : warm).push_back(&event);
    if (celsius >= kNear || load.watts <= 0) continue;
    usual = others == 0 ? load.watts : std::min(usual, load.watts);
    ++others;
  }
  for (const Event* event : warm)
    if (const float watts = event->As<GpuLoad>().watts; watts > 0 && watts < kLessPower * usual) hot.push_back(event);
  if (hot.empty()) return;
  std::sort(hot.begin(), hot.end(), [](const Event* a, const Event* b) { return a->source.line < b->source.line; });
  std::string gpus;
  double most = 0;
  bool less = others > 0;
  for (const Event* event : hot) {
    gpus += (gpus.empty() ? "" : event == hot.back() ? " and " : ", ") + std::to_string(event->As<GpuLoad>().index);
    most = std::max(most, ReadGpuState(event->text).celsius);
    less &= event->As<GpuLoad>().watts > 0 && event->As<GpuLoad>().watts < kLessPower * usual;
  }
  const bool one = hot.size() == 1;
  char heat[160];
  std::snprintf(heat, sizeof heat, "%s %.0f °C, close to the temperature at which GPUs throttle",
                one ? " is at" : " are at up to", most);
  char power[120] = "";
  if (less)
    std::snprintf(power, sizeof power, ", and %s %.0f W where the others draw %.0f W or more",
                  one ? "draws" : "the first draws", static_cast<double>(hot.front()->As<GpuLoad>().watts),
                  static_cast<double>(usual));
  Finding finding;
  finding.cause = "straggler-compute";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  finding.headline = (one ? "GPU " : "GPUs ") + gpus + heat + power;
  for (const Event* event : hot)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "the temperature of this GPU"));
  finding.fix = {
      "Check whether its clock is held down: nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE shows the reasons and the "
      "temperature at which this model slows down.",
      "Check the cooling of that host (fans, airflow, inlet temperature); run the job without that GPU until it stays "
      "cool."};
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeStragglerCompute(const Case& facts) {
  RuleAnswer answer = JudgeStragglers(facts, IsStragglerCompute, "straggler-compute", "its GPU work takes longer",
                                      "their GPU work takes longer");
  if (answer.findings.empty()) TellReported(facts, answer);
  if (answer.findings.empty()) TellPrintedStraggler(facts, "straggler-compute", answer);
  if (answer.findings.empty()) TellThrottled(facts, answer);
  if (answer.findings.empty() && facts.analyses.end.kind == JobEnding::open) TellHot(facts, answer);
  return answer;
}

const Rule kStragglerComputeRule = {
    "straggler-compute",
    "A rank's GPU work takes longer",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less; or the warning "
    "of a straggler detection in the job's output; or the clocks of all GPUs (nvidia-smi --query-gpu, as CSV)",
    "In every step one rank reaches the collectives later than the others because its kernels take longer or there are "
    "more of them. All ranks wait for it, so the whole job runs at its pace. Its own collectives look short: the last "
    "to arrive waits least.",
    "A slow host leaves the GPU idle before the collective. An intermittent straggler is late only now and then. A "
    "pipeline stage with more layers is late by design: rebalance it. A slow link delays all members alike.",
    {"Compare the named rank's kernels with another rank's. If the same kernels take longer, look at clocks, thermal "
     "throttling, ECC and other processes on the GPU; if there are more kernels, look for extra work in the code.",
     "Run nvidia-smi -q -d PERFORMANCE,CLOCK,ECC on its host and look for throttle reasons.",
     "If the delay follows the node: drain the node. If it follows the rank: look at the code and the data of that "
     "rank."},
    {"Watch GPU clocks and throttle reasons of all nodes.",
     "Run a short matmul benchmark on every node before long jobs."},
    JudgeStragglerCompute};

}  // namespace tacet
