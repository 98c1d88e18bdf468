// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/parted_waits.h"

#include <algorithm>

namespace tacet {
namespace {

bool IsBackward(const Event& raised) { return raised.As<Raised>().during == Activity::backward; }

// DDP reduces the gradients below backward(), which no function of torch.distributed shows.
bool IsSameOperation(const Event& a, const Event& b) { return IsBackward(a) == IsBackward(b) && a.op == b.op; }

bool TellsItsOperation(const Event& raised) { return raised.op != OpKind::unknown || IsBackward(raised); }

bool Add(const Event& raised, Rank rank, std::vector<PartedWait>& waits) {
  if (!TellsItsOperation(raised)) return false;
  auto same = std::find_if(waits.begin(), waits.end(),
                           [&](const PartedWait& one) { return IsSameOperation(*one.raised, raised); });
  if (same == waits.end()) same = waits.insert(waits.end(), PartedWait{&raised, {}});
  if (rank.known()) same->ranks.push_back(rank);
  return true;
}

}  // namespace

bool IsMessageWait(const PartedWait& wait) {
  return wait.raised->op == OpKind::send || wait.raised->op == OpKind::recv;
}

std::vector<PartedWait> FindPartedWaits(const SignsOfLife& life, const NamelessWaits& nameless) {
  std::vector<PartedWait> waits;
  bool time_up = !nameless.timeouts.empty();
  size_t named = 0;
  for (const auto& [rank, one] : life.ranks) {
    const Event* raised = one.gloo_timeout ? one.gloo_timeout : one.gloo_loss;
    if (!raised) continue;
    ++named;
    time_up = time_up || one.gloo_timeout;
    if (one.exception || !Add(*raised, rank, waits)) return {};
  }
  if (!time_up || nameless.error || nameless.interrupted || (named > 0 && named != life.ranks.size())) return {};
  if (named == 0)
    for (const auto* events : {&nameless.timeouts, &nameless.losses})
      for (const Event* raised : *events)
        if (!Add(*raised, Rank{}, waits)) return {};
  if (waits.empty() || (waits.size() == 1 && !IsMessageWait(waits.front()))) return {};
  std::stable_sort(waits.begin(), waits.end(),
                   [](const PartedWait& a, const PartedWait& b) { return a.ranks.size() > b.ranks.size(); });
  return waits;
}

}  // namespace tacet
