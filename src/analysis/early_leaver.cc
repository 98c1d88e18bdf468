// SPDX-License-Identifier: Apache-2.0
#include "analysis/early_leaver.h"

#include <algorithm>

#include "model/event_time.h"

namespace tacet {
namespace {

// Anything that a rank says of an error, of its own or of others.
const Event* Complaint(const RankLife& life) {
  const Event* first = nullptr;
  for (const Event* one :
       {life.timeout, life.lost_peer, life.gloo_timeout, life.gloo_loss, life.gave_up, life.consequence, life.exception,
        life.shared_gpu_error, life.gpu_error, life.cuda_oom, life.host_memory, life.segfault, life.oom_killed,
        life.init_error, life.aborted, life.unused_parameters})
    if (one && (!first || IsBefore(*one, *first))) first = one;
  return first;
}

// What shows that a rank waited for somebody.
const Event* Wait(const RankLife& life) {
  const Event* first = nullptr;
  for (const Event* one : {life.timeout, life.lost_peer, life.gloo_timeout, life.gloo_loss, life.gave_up})
    if (one && (!first || IsBefore(*one, *first))) first = one;
  return first;
}

// It still told of a wait when this one had ended.
bool Waits(const RankLife& life, const Event& left) {
  for (const Event* one : {life.timeout, life.lost_peer, life.gloo_timeout, life.gloo_loss, life.gave_up})
    if (one && CameBefore(left, *one)) return true;
  return false;
}

bool Left(const RankLife& life) {
  const bool failed = life.exited && life.exited->As<ProcessEnd>().code > 0;
  return life.left && !Complaint(life) && !failed;
}

}  // namespace

EarlyLeavers FindEarlyLeavers(const SignsOfLife& signs, const Outcome& outcome) {
  EarlyLeavers found;
  size_t others = 0;
  for (const auto& [rank, life] : signs.ranks) {
    if (!Left(life)) {
      ++others;
      if (const Event* wait = Wait(life); wait && (!found.felt || IsBefore(*wait, *found.felt))) found.felt = wait;
    } else {
      found.ranks.push_back(rank);
      if (!found.left || IsBefore(*life.left, *found.left)) found.left = life.left;
    }
  }
  const bool first = found.left && found.felt &&
                     (!outcome.first_failure ||
                      (outcome.first_failure->rank.known() && !IsBefore(*outcome.first_failure, *found.left)));
  if (!first || found.ranks.size() >= others) return {};
  // Of one second nobody knows the order; who ends because others gave up says so.
  for (const Rank rank : found.ranks) {
    const Event& left = *signs.Of(rank)->left;
    if (OrderOf(left, *found.felt) == TimeOrder::after) return {};
    if (std::none_of(signs.ranks.begin(), signs.ranks.end(),
                     [&](const auto& other) { return !Left(other.second) && Waits(other.second, left); }))
      return {};
  }
  for (const auto& [rank, life] : signs.ranks)
    if (!Left(life) && Wait(life)) found.waiters.push_back(rank);
  return found;
}

}  // namespace tacet
