// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/ras_dead_finding.h"

#include <string>
#include <utility>

#include "rules/unexplained/told_finding.h"

namespace tacet {

void JudgeRasDead(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told = CollectTold(facts, [](const Event& event) { return event.kind == EventKind::ras_rank_dead; });
  if (!told || facts.analyses.outcome.ended_in_order) return;
  Finding finding = ToldFinding(facts, "rank-dead", told, "NCCL RAS counts it as dead");
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  const bool several = TellSeveral(told);
  finding.headline = "NCCL RAS counts " + TellerWords(told) + " as dead: " + (several ? "they do" : "it does") +
                     " not answer on the RAS network";
  finding.fix = {
      "Check whether the " +
          std::string(several ? "processes run (ps), and on their hosts" : "process runs (ps), and on its host") +
          ": dmesg -T | grep -iE 'killed process|segfault|xid', and the launcher's output.",
      "If " + std::string(several ? "they run" : "it runs") +
          ": the network between the hosts failed, or the process is stopped (state T or D in ps)."};
  answer.open.push_back({"What ended " + TellerWords(told) + "?",
                         "the kernel log of its host (dmesg -T) and the launcher's output with exit codes"});
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
