// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// What every step would gain if one rank were like the others: the recorded operations are played again with the times
// of a peer, taken from another step, in place of the rank's own. So the jitter of hosts, of which the step waits for
// the worst, is as large as before, and what the hosts hide stays hidden.
//
// The rules of the replay, all learnt from the record:
// - A host issues an operation so long after the one before; or, at places in the step where it is never seen to issue
//   before all its operations have ended and where this makes its times steadier, so long after that end: it waits for
//   its GPU there.
// - An operation arrives when it is issued and the one before it on its group has ended, and when the GPU has done what
//   it had to do after each of these first. Where starts are not known and there are several groups, that which ended
//   last before it began takes the place of the one before it, whatever its group.
// - It ends when its last member has arrived, and as long after as it took then.
// Behind a late rank the others' GPUs have their work done when an operation ends, so what that work takes is not seen.
// `least` leaves the rank's own GPU times at such places as they are, `most` takes the others' for it.
struct ReplayedGain {
  bool known = false;
  double step_ns = 0;               // typical
  double noise_ns = 0;              // of the ends, where these are not recorded but follow from the lengths
  bool several_groups = false;      // and what their operations wait for in each other is a guess: starts are not known
  std::vector<double> steps;        // lengths, ns
  std::vector<double> least, most;  // gains in them, ns
};

// Needs the moments of issue, steps, and a place at which hosts wait; not known without them.
ReplayedGain ReplayWithPeers(const std::vector<CollectiveRound>& rounds, Rank rank);

}  // namespace tacet
