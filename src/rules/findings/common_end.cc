// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/common_end.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/process/signs_of_life.h"
#include "rules/words/end_advice.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Two segmentation faults may be a rank and the peer that it tore down. A bus error comes from memory of the host that
// is not there, and no peer's end gives one.
size_t SeveralOf(int64_t code) { return code == -11 ? 3 : 2; }
constexpr int64_t kBusError = -7;

bool IsFaultOfItsOwn(int64_t code) { return code == -4 || code == -7 || code == -8 || code == -11; }

}  // namespace

void JudgeCommonEnd(const Case& facts, RuleAnswer& answer) {
  std::map<int64_t, std::vector<const Event*>> ends;  // by code
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (life.oom_killed || life.exception || life.cuda_oom || life.gpu_error || life.unused_parameters) return;
    if (life.exited && IsFaultOfItsOwn(life.exited->As<ProcessEnd>().code))
      ends[life.exited->As<ProcessEnd>().code].push_back(life.exited);
  }
  const auto most = std::max_element(ends.begin(), ends.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == ends.end() || most->second.size() < SeveralOf(most->first)) return;
  const std::vector<const Event*>& alike = most->second;
  // One that is certainly before all others brought them down.
  for (const Event* one : alike)
    if (std::all_of(alike.begin(), alike.end(),
                    [&](const Event* other) { return other == one || IsBefore(*one, *other); }))
      return;
  const Event* first = *std::min_element(alike.begin(), alike.end(), [](const Event* a, const Event* b) {
    const bool first_a = a->As<ProcessEnd>().first_failure.value_or(false);
    const bool first_b = b->As<ProcessEnd>().first_failure.value_or(false);
    if (first_a != first_b) return first_a;  // by the launcher's own list
    return a->source.file == b->source.file && a->source.line < b->source.line;
  });
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  std::vector<Rank> ranks;
  ranks.reserve(alike.size());
  for (const Event* one : alike) ranks.push_back(one->rank);
  const auto& end = first->As<ProcessEnd>();
  finding.headline = "the processes of " + RankWords(ranks) + (ranks.size() == 2 ? " were both" : " were all") +
                     " ended by signal " + std::to_string(-end.code) + (end.how.empty() ? "" : " (" + end.how + ")") +
                     ", so the fault is not specific to one rank";
  finding.evidence.push_back(CiteEvent(*first, first->As<ProcessEnd>().first_failure.value_or(false)
                                                   ? "how the first of them ended, according to the launcher's list"
                                                   : "how one of them ended"));
  finding.fix = EndAdvice(*first);
  if (end.code == kBusError)
    finding.fix = {
        "Look at the shared memory of the host and of the container: df -h /dev/shm; raise it (docker --shm-size, an "
        "emptyDir with medium: Memory), or use fewer loader workers.",
        "Look at files that the program maps (data sets, checkpoints, shared libraries): one that was truncated or "
        "replaced while it was mapped, or lies on a file system that failed, gives the same signal.",
        "Third, hardware memory errors: see dmesg -T."};
  else
    finding.fix.insert(
        finding.fix.begin(),
        "Look for what all of them share: the versions of the framework and of the libraries that it was "
        "built against, the container, the driver; does the same program run on one process?");
  answer.open.push_back({"Where in the program did they fail?",
                         "a core dump or PYTHONFAULTHANDLER=1: the stack of one of these processes"});
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
