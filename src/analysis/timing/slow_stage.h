// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/pace.h"
#include "analysis/timing/straggler.h"

namespace tacet {

// The stage at whose pace a pipeline runs, by timed flight records. Where each stage is one rank nobody does the same
// work, so nobody is late by comparison; but the stages' own times, which they spend neither in sends and receives nor
// in collectives, can be compared. They hold what the host takes beside the work, so far more is asked for than of
// stage times in traces:
// - The stage has half as much own time again as the next one, in nearly every step.
// - It waits for no more than the way of one microbatch through the other stages, as the slowest stage of a pipeline
//   does. In a balanced one whose hosts or messages set the pace every stage waits for longer than that.
// - At the pace of the next stage, or of the host that has most to do, the step would be shorter by a tenth.
// Of one rank a record does not tell whether its stage has more work or the rank is slow (Straggler::among_stages, of
// unknown origin); where all replicas of a stage take longer it is the stage (StragglerOrigin::stage).
// Does nothing where ranks are no chains, or where somebody is named already: whoever is late makes others wait.
void AddSlowStage(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers,
                  StragglerReport& report);

}  // namespace tacet
