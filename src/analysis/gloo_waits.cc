// SPDX-License-Identifier: Apache-2.0
#include "analysis/gloo_waits.h"

#include <algorithm>

namespace tacet {
namespace {

// Its output goes as far as anybody's: nothing of it was cut off, as far as steps can tell.
bool GoesAsFarAsOthers(const SignsOfLife& life, const RankLife& one) {
  if (one.last_step < 0 || one.has_cut_file) return false;
  return std::all_of(life.ranks.begin(), life.ranks.end(),
                     [&](const auto& other) { return other.second.last_step <= one.last_step; });
}

bool SaysNothingOfItsEnd(const RankLife& one) {
  return !one.exception && !one.consequence && !one.exited && !one.finished && !one.segfault && !one.oom_killed &&
         !one.cuda_oom && !one.host_memory && !one.gpu_error && !one.timeout && !one.lost_peer && !one.aborted;
}

// Like that, until the others gave up: that it lost them then, or that its launcher ended it, follows from that.
bool SaidNothingBefore(const SignsOfLife& life, const RankLife& one) {
  RankLife before = one;
  const auto is_later = [&](const Event* event) {
    return event && std::all_of(life.ranks.begin(), life.ranks.end(), [&](const auto& other) {
             const Event* up = other.second.gloo_timeout ? other.second.gloo_timeout : other.second.gave_up;
             return !up || CameBefore(*up, *event);
           });
  };
  if (is_later(before.lost_peer)) before.lost_peer = nullptr;
  if (before.exited && before.exited->As<ProcessEnd>().code == -15) before.exited = nullptr;
  return SaysNothingOfItsEnd(before);
}

// It printed lines of its own after it had noticed that a peer was gone: until then it had not come to where the others
// waited.
const OwnLine* WentOnBehindALoss(const PrintedLines& printed, const RankLife& one) {
  if (!one.has_output || one.gloo_timeout || one.gave_up || one.exception) return nullptr;
  for (const Event* loss : {one.store_lost, one.lost_peer})
    if (const OwnLine* line = loss ? LineBehind(printed, one.rank, *loss) : nullptr) return line;
  return nullptr;
}

}  // namespace

std::vector<ToldLaggard> FindGlooLaggards(const SignsOfLife& life, const std::vector<StackReading>& stacks,
                                          const OutputFront& front, const PrintedLines& printed) {
  const auto is_elsewhere = [&](Rank rank) {
    return std::any_of(stacks.begin(), stacks.end(), [&](const StackReading& one) {
      return one.rank == rank && one.place == StackReading::Place::host;
    });
  };
  std::vector<ToldLaggard> out;
  std::vector<Rank> waiters;
  const Event* first = nullptr;
  const RankLife* silent = nullptr;
  const OwnLine* late = nullptr;
  for (const auto& [rank, one] : life.ranks) {
    const bool apart = front && front.rank == rank;
    const OwnLine* went_on = WentOnBehindALoss(printed, one);
    if (went_on) late = went_on;
    if (went_on || ((one.has_output || is_elsewhere(rank)) &&
                    (SaysNothingOfItsEnd(one) || (apart && SaidNothingBefore(life, one))))) {
      if (silent) return out;
      silent = &one;
    } else if (!one.gloo_timeout && !one.gloo_loss && !one.gave_up) {
      return out;  // somebody tells of something else
    }
    const Event* up = one.gloo_timeout ? one.gloo_timeout : one.gave_up;
    if (up) waiters.push_back(rank);
    if (up && !first) first = up;
  }
  if (silent && first && late) {
    out.push_back({silent->rank, late->source, "was still working after the others had given up and ended", waiters});
    out.back().not_issued = true;
  } else if (silent && first &&
             (GoesAsFarAsOthers(life, *silent) || is_elsewhere(silent->rank) || (front && front.rank == silent->rank)))
    out.push_back({silent->rank, first->source,
                   "reports nothing, while all others raised an error because a peer did not arrive", waiters});
  return out;
}

bool IsMissedByGloo(const SignsOfLife& life, const RankLife& rank) {
  if (!rank.has_output || !SaysNothingOfItsEnd(rank) || !GoesAsFarAsOthers(life, rank)) return false;
  return life.ranks.size() > 1 && std::all_of(life.ranks.begin(), life.ranks.end(), [&](const auto& other) {
           return other.first == rank.rank || (other.second.gloo_loss && !other.second.gloo_timeout);
         });
}

}  // namespace tacet
