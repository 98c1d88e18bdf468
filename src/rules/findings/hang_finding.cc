// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/hang_finding.h"

#include "rules/words/words.h"

namespace tacet {

Finding HangFinding(std::string_view cause, Rank guilty, const Call& operation, const WaitGraph& waits) {
  Finding finding;
  finding.cause = cause;
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {guilty};
  finding.group = operation.group;
  finding.operation = RefOf(operation);
  for (const auto& [rank, call] : waits.blocked_in)
    if (rank != guilty) finding.affected_ranks.push_back(rank);
  return finding;
}

}  // namespace tacet
