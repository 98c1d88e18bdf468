// SPDX-License-Identifier: Apache-2.0
#include "rules/first_end.h"

#include <algorithm>

namespace tacet {

bool EndedBeforeTimeouts(const Case& facts, const Event& error) {
  const Event* timeout = facts.analyses.outcome.first_timeout;
  return timeout && CameBefore(error, *timeout);
}

bool AllLeft(const Case& facts, const std::vector<Rank>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    const RankLife* life = facts.analyses.life.Of(rank);
    return life && life->left && !life->exception && !life->consequence && !life->exited && !life->aborted &&
           !life->timeout && !life->gpu_error;
  });
}

}  // namespace tacet
