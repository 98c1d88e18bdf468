// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/collapse_finding.h"

#include <algorithm>
#include <optional>
#include <string>

#include "analysis/process/stopped_heartbeat.h"
#include "rules/words/words.h"

namespace tacet {

void JudgeCollapse(const Case& facts, RuleAnswer& answer) {
  const std::optional<Collapse> collapse = FindCollapse(facts.incident, facts.analyses);
  if (!collapse) return;
  const size_t all = facts.incident.pulses.size();
  const bool one_first = collapse->first.size() == 1 && all > 1;
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = one_first && collapse->seen ? Confidence::likely : Confidence::possible;
  if (one_first) finding.ranks = collapse->first;
  for (const Rank rank : collapse->lost)
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end())
      finding.affected_ranks.push_back(rank);
  const std::string count = std::to_string(collapse->lost.size());
  std::string what = collapse->lost.size() == all ? (all == 1 ? "the only process" : "all " + count + " processes")
                                                  : count + " of " + std::to_string(all) + " processes";
  what += collapse->lost.size() == 1 ? " is gone" : " are gone";
  what += " without a clean exit";
  if (one_first) {
    finding.headline = what + "; " + RankWords(collapse->first) + " was first, " + DurationWords(collapse->spread_ns) +
                       " before the last";
  } else {
    finding.headline =
        what + (all > 1 ? ", within " + DurationWords(std::max<int64_t>(collapse->spread_ns, 1'000'000)) +
                              ": too close together to say which was first"
                        : std::string());
  }
  finding.evidence.push_back({collapse->pulse->source, "",
                              RankWords({collapse->pulse->rank}) +
                                  "'s heartbeat stopped first; its box does not say that the process exited cleanly"});
  answer.open.push_back({one_first ? "What ended " + RankWords(collapse->first) + "?" : "What ended the processes?",
                         "the launcher's output with exit codes, and the kernel logs of the hosts (dmesg -T)"});
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
