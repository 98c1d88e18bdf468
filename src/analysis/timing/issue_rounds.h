// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/pace.h"

namespace tacet {

// Operations by the moments in which hosts issued them, for records whose GPU times are not to be believed. A round
// lasts from a host's issue to the last one's. An exchange of transfers between all members of a group, which is what
// an all-to-all is to NCCL up to 2.30, is a round as well. Ranks of one host are members of one round: clocks of hosts
// differ.
struct IssueRounds {
  std::vector<CollectiveRound> rounds;
  size_t exchanges = 0;  // made of transfers
};
IssueRounds MatchIssues(const Incident& incident, CallSource source);
IssueRounds MatchIssues(const Incident& incident, std::span<const Measurement> measurements);

// A host that issues an operation after all had issued an earlier one may have waited for that: what it then took by
// itself is what came after. Who takes longer by itself than the others, over a step, is late.
Pace MeasurePaceOfIssues(const std::vector<CollectiveRound>& rounds, PaceSource source);

// Orders rounds without timelines, finds their steps, and leaves out the first steps of the run.
void FinishRounds(std::vector<CollectiveRound>& rounds);

}  // namespace tacet
