// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// How one rank's clock stands against the reference clock. Reference time = own time - offset - drift * (own time -
// origin).
struct RankClock {
  Rank rank;
  int64_t offset_ns = 0;  // at the origin
  double drift = 0;       // ns per ns; 0 where the recording is too short to tell
  int64_t error_ns = 0;   // standard error of the offset: what remains uncertain
  int64_t spread_ns = 0;  // robust deviation of single operations around the fit
  size_t rounds = 0;      // operations it rests on; 0: this rank could not be compared with the reference
  bool applied =
      false;  // clearly more than its uncertainty and than what a transfer's ragged end explains; else left alone
};

struct ClockAlignment {
  int64_t origin_ns = 0;
  Rank reference;  // the rank whose clock is taken as right; only differences between ranks have a meaning
  std::vector<RankClock> clocks;  // by rank
  int64_t worst_error_ns = 0;     // largest error_ns of all ranks that were compared

  const RankClock* Find(Rank rank) const;
  // A rank's own time on the reference clock. Ranks that were not compared and clocks left alone stay as they are.
  int64_t Align(Rank rank, int64_t ns) const;
};

// Estimates the clocks from the collectives themselves: an operation in which everybody takes part ends on all ranks at
// nearly the same moment, whoever came late, so the differences of recorded ends are the differences of the clocks.
// Offsets are chained along the pairs of ranks that share most operations, then refined by alternating medians, which a
// minority of operations with ragged ends cannot move; drift is a median slope (Theil-Sen). Sends count as well, with
// less weight, since both ends of a transfer finish together.
ClockAlignment AlignClocks(const std::vector<CollectiveRound>& rounds);

// Puts the members' times on the reference clock.
void ApplyAlignment(const ClockAlignment& alignment, std::vector<CollectiveRound>& rounds);

}  // namespace tacet
