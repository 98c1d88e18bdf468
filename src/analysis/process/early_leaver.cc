// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/early_leaver.h"

#include <algorithm>
#include <array>

#include "model/events/event_time.h"

namespace tacet {
namespace {

// What shows that a rank waited for somebody.
std::array<const Event*, 5> WaitsOf(const RankLife& life) {
  return {life.timeout, life.lost_peer, life.gloo_timeout, life.gloo_loss, life.gave_up};
}

const Event* FirstWait(const RankLife& life) {
  const Event* first = nullptr;
  for (const Event* one : WaitsOf(life))
    if (one && (!first || IsBefore(*one, *first))) first = one;
  return first;
}

// It still told of a wait when this one had ended.
bool WaitedBehind(const RankLife& life, const Event& left) {
  const auto waits = WaitsOf(life);
  return std::any_of(waits.begin(), waits.end(), [&](const Event* one) { return one && CameBefore(left, *one); });
}

// Anything that a rank says of an error, of its own or of others.
bool Complains(const RankLife& life) {
  return FirstWait(life) || life.consequence || life.exception || life.shared_gpu_error || life.gpu_error ||
         life.cuda_oom || life.host_memory || life.segfault || life.oom_killed || life.init_error || life.aborted ||
         life.unused_parameters;
}

bool Left(const RankLife& life) {
  const bool failed = life.exited && life.exited->As<ProcessEnd>().code > 0;
  return life.left && !Complains(life) && !failed;
}

// It tells of a connection of gloo's that closed, and of nothing that could have closed others.
bool OnlyLostAPeer(const RankLife& life) {
  return life.gloo_loss && !life.gloo_timeout && !life.gave_up && !life.timeout && !life.exception && !life.finished &&
         !life.gpu_error && !life.cuda_oom && !life.host_memory && !life.segfault && !life.oom_killed && !life.aborted;
}

// The launcher lists it as failed, and its own words have no name.
bool FailedNameless(const RankLife& life) {
  return life.exited && life.exited->As<ProcessEnd>().code == 1 && !Complains(life) && !life.vanished;
}

// It may say that it is done; how it ended nobody tells.
bool TellsOfNoEnd(const RankLife& life) {
  return !Complains(life) && !life.exited && !life.vanished && !life.has_cut_file;
}

// The first connection that closed was that of the one rank that tells of none.
EarlyLeavers FindFirstToClose(const SignsOfLife& signs, const PrintedLines& printed, const OutputFront& front,
                              const NamelessWaits& nameless) {
  if (!nameless.timeouts.empty() || nameless.error || nameless.interrupted) return {};
  EarlyLeavers found;
  std::vector<const RankLife*> quiet;
  size_t failed = 0, nameless_failed = 0;
  for (const auto& [rank, life] : signs.ranks) {
    if (TellsOfNoEnd(life)) {
      quiet.push_back(&life);
      continue;
    }
    const bool unnamed = FailedNameless(life);
    if (!unnamed && !OnlyLostAPeer(life)) return {};
    found.waiters.push_back(rank);
    nameless_failed += unnamed;
    failed += life.exited && life.exited->As<ProcessEnd>().code == 1;
    if (!found.felt) found.felt = life.gloo_loss;
  }
  // As many tracebacks without a name as ranks that failed without a word: they are theirs.
  if (nameless_failed > 0 && nameless.losses.size() != nameless_failed) return {};
  if (nameless_failed > 0 && !found.felt) found.felt = nameless.losses.front();
  const RankLife* left = quiet.size() == 1 ? quiet.front() : nullptr;
  if (left && found.felt) {
    found.listed = failed == found.waiters.size();
    if (!left->finished && !found.listed) return {};
  } else if (found.waiters.empty() && front.kind == OutputFront::Kind::elsewhere &&
             nameless.losses.size() + 1 == signs.ranks.size()) {
    left = signs.Of(front.rank);
    for (const RankLife* one : quiet)
      if (one != left) found.waiters.push_back(one->rank);
    found.felt = nameless.losses.front();
  }
  if (!left || !found.felt || printed.LastOf(left->rank).empty()) return {};
  found.last = printed.LastOf(left->rank).back();
  found.ranks = {left->rank};
  return found;
}

EarlyLeavers FindTold(const SignsOfLife& signs, const Outcome& outcome) {
  EarlyLeavers found;
  size_t others = 0;
  for (const auto& [rank, life] : signs.ranks) {
    if (!Left(life)) {
      ++others;
      if (const Event* wait = FirstWait(life); wait && (!found.felt || IsBefore(*wait, *found.felt))) found.felt = wait;
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
                     [&](const auto& other) { return !Left(other.second) && WaitedBehind(other.second, left); }))
      return {};
  }
  for (const auto& [rank, life] : signs.ranks)
    if (!Left(life) && FirstWait(life)) found.waiters.push_back(rank);
  return found;
}

}  // namespace

EarlyLeavers FindEarlyLeavers(const SignsOfLife& signs, const Outcome& outcome, const PrintedLines& printed,
                              const OutputFront& front, const NamelessWaits& nameless) {
  EarlyLeavers found = FindTold(signs, outcome);
  return found ? found : FindFirstToClose(signs, printed, front, nameless);
}

}  // namespace tacet
