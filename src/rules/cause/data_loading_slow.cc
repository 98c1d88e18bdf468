// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "analysis/printed/plain_figures.h"
#include "analysis/printed/printed_steps.h"
#include "rules/findings/straggler_finding.h"
#include "rules/rule.h"
#include "rules/unexplained/told_finding.h"

namespace tacet {
namespace {

std::string TimeFigure(double seconds) {
  char text[32];
  if (seconds < 1)
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, seconds < 100 ? "%.3g s" : "%.0f s", seconds);
  return text;
}

// "266 to 274 s"
std::string TimeRange(const std::vector<const StepShare*>& steps, double StepShare::*part) {
  double least = steps.front()->*part, most = least;
  for (const StepShare* step : steps) {
    least = std::min(least, step->*part);
    most = std::max(most, step->*part);
  }
  const std::string last = TimeFigure(most), first = TimeFigure(least);
  return first == last ? first : first + " to " + last;
}

void CiteSteps(const std::vector<const StepShare*>& steps, std::string_view says, Finding& finding) {
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < std::min(steps.size(), kMost); ++i)
    finding.evidence.push_back({steps[i]->source, TimeFigure(steps[i]->whole), std::string(says)});
}

Finding DataWaitFinding(const DataWait& wait) {
  Finding finding;
  finding.confidence = Confidence::likely;
  char share[32];
  std::snprintf(share, sizeof share, "%.0f %%", wait.share * 100);
  char longest[32];
  std::snprintf(longest, sizeof longest, "%.0f %%", wait.longest_share * 100);
  if (wait.each_epoch) {
    const std::string whole = TimeRange(wait.longest, &StepShare::whole);
    const std::string data = TimeRange(wait.longest, &StepShare::data);
    finding.headline = "The first batch of each epoch takes " + whole +
                       (whole == data ? ", nearly all of it loading data" : ", of which " + data + " is data loading") +
                       "; later ones take " + TimeFigure(wait.usual);
    finding.fix = {
        "Keep the loader's workers between epochs: DataLoader(persistent_workers=True); without it all of them are "
        "started again, and each reads its first batch before any step runs.",
        "Make what a worker does before its first batch cheaper: the import of modules, the list of files, the opening "
        "of archives; use fewer samples per batch and worker, or more workers that each prepare less.",
        "If the data is on shared storage: copy it to local disks, or pack small files into larger ones."};
    CiteSteps(wait.longest, "the first batch of an epoch", finding);
    return finding;
  }
  if (!wait.longest.empty() && wait.longest.size() * 4 <= wait.lines) {
    finding.headline = std::to_string(wait.longest.size()) + (wait.longest.size() == 1 ? " load" : " loads") + " of " +
                       std::to_string(wait.lines) + " took " + TimeRange(wait.longest, &StepShare::data) +
                       ", while a step usually takes " + TimeFigure(wait.usual) +
                       ": the data loader does not keep up, and the step waits for it (" + longest +
                       " of the time shown)";
    CiteSteps(wait.longest, "a step that waits for its data", finding);
    return finding;
  }
  finding.headline = std::string(share) + " of the step time goes into loading data (" + std::to_string(wait.lines) +
                     " lines show both): the loader, not the GPUs, sets the pace";
  const StepShare* most = &wait.outline->steps.front();
  for (const StepShare& step : wait.outline->steps)
    if (&step != &wait.outline->steps.front() && step.data > most->data) most = &step;
  CiteSteps({most}, "a step that waits for its data", finding);
  return finding;
}

RuleAnswer JudgeDataLoadingSlow(const Case& facts) {
  RuleAnswer answer;
  Finding finding;
  if (const auto& odd = facts.analyses.printed_laggard; odd && odd->part == PrintedLaggard::Part::data) {
    TellPrintedStraggler(facts, "data-loading-slow", answer);
    return answer;
  } else if (const auto wait = FindDataWait(facts.incident)) {
    finding = DataWaitFinding(*wait);
  } else if (const auto first = FindSlowFirstBatches(facts.incident)) {
    finding.confidence = Confidence::possible;
    finding.headline = "The first batch of each epoch takes " + TimeRange(first->first, &StepShare::whole) +
                       ", later ones " + TimeRange(first->later, &StepShare::whole) +
                       ": the data loader may start again with each epoch";
    CiteSteps(first->first, "the first batch of an epoch", finding);
  } else {
    return answer;
  }
  finding.cause = "data-loading-slow";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  answer.findings.push_back(std::move(finding));
  answer.open.push_back({"What does the loader wait for?",
                         "py-spy dump of a DataLoader worker during a slow batch, CPU usage (top -H), and the "
                         "speed of the storage (iostat -x 5)"});
  return answer;
}

}  // namespace

extern const Rule kDataLoadingSlowRule;
const Rule kDataLoadingSlowRule = {
    "data-loading-slow",
    "Steps wait for their data",
    "the job's own lines with the time of a step and the time of its data",
    "The job prints how long its steps take and how long they wait for data, and the wait is the greater part. The "
    "GPUs "
    "are idle meanwhile. All ranks wait for the slowest loader, so one rank's storage or CPUs are enough.",
    "The first batch of a run is always slow: workers start, caches are empty, kernels are compiled. It does not "
    "count. "
    "A slow step without a slow load is an evaluation, a checkpoint or a straggler.",
    {"Give the loader more workers (num_workers, as many as there are CPU cores per GPU), prefetch_factor=4, "
     "persistent_workers=True and pin_memory=True.",
     "Make a sample cheaper: decode and tokenize once and store the result, pack small files into large ones, keep the "
     "data on local disks.",
     "Check whether the CPUs are busy: a container or a Slurm job with few cores (nproc) starves all workers."},
    {"Print the data time next to the step time, for every rank."},
    JudgeDataLoadingSlow};

}  // namespace tacet
