// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/vanished_ranks.h"

#include <algorithm>
#include <utility>

#include "analysis/timeouts/gloo_waits.h"

namespace tacet {
namespace {

// What a process gets when memory that it shares with a dying one goes away under its kernels.
bool HasContagiousError(const RankLife& life) {
  if (!life.gpu_error) return false;
  return life.gpu_error->kind == EventKind::cuda_error ? life.gpu_error->Means(Meaning::spreads)
                                                       : IsOfAProgram(*life.gpu_error);
}

// It had lost a peer before: NCCL then aborts, and takes its memory from under kernels that still run.
bool CameAfterALoss(const RankLife& life) {
  if (!HasContagiousError(life)) return false;
  return (life.lost_peer && IsBefore(*life.lost_peer, *life.gpu_error)) ||
         (life.consequence && IsBefore(*life.consequence, *life.gpu_error));
}

bool RaisesCudaError(const RankLife& life) { return life.exception && life.exception->Means(Meaning::cuda_failed); }

// It ended by itself, with or without words, or its device failed: that alone may have closed the connections.
bool ExplainsItself(const RankLife& life) {
  if (life.oom_killed || life.cuda_oom || life.host_memory || life.segfault || life.unused_parameters || life.finished)
    return true;
  if (life.exited && IsFirstHandEnd(*life.exited)) return true;
  if (life.gpu_error && !HasContagiousError(life)) return true;
  return life.exception && !RaisesCudaError(life);
}

bool HasAWord(const RankLife& life) {
  return life.gpu_error || life.exception || life.consequence || life.lost_peer || life.timeout || life.asked_to_dump ||
         life.has_dump || life.init_error || life.store_lost;
}

// A traceback without its end: what it would have said is lost.
bool HasCutWords(const RankLife& life) {
  return life.consequence && life.consequence->kind == EventKind::exception &&
         life.consequence->Means(Meaning::reported) && life.consequence->text.empty();
}

struct Census {
  std::vector<RankLife*> silent, shaken;
  const Event* closing = nullptr;  // the first connection that somebody saw close
  const Event* timeout = nullptr;  // the first watchdog
  size_t shaken_by_close = 0;      // shaken ranks that lost a peer as well
  size_t absent = 0, told = 0;     // without any file; whose end the launcher or the kernel tells
  size_t cut = 0;                  // who began to say something
  size_t raised = 0;               // whose program raised an error of its own, while its GPU reports nothing
  bool explained = false;
};

void KeepEarlier(const Event*& slot, const Event* event) {
  if (event && (!slot || IsBefore(*event, *slot))) slot = event;
}

Census Count(SignsOfLife& signs) {
  Census census;
  for (auto& [rank, life] : signs.ranks) {
    census.explained |= ExplainsItself(life);
    census.absent += !life.any();
    census.told += !life.gpu_error && (life.segfault || (life.exited && IsFirstHandEnd(*life.exited)));
    census.raised += !life.gpu_error && life.exception;
    census.cut += HasCutWords(life) ? 1 : 0;
    // Whom the launcher ended in the end had lived until then.
    const bool ended_later = life.exited && !IsFirstHandEnd(*life.exited);
    if (life.any() && !HasAWord(life) && !ended_later) census.silent.push_back(&life);
    if (HasContagiousError(life) && !life.oom_killed && !life.cuda_oom) {
      census.shaken.push_back(&life);
      census.shaken_by_close += life.lost_peer != nullptr;
    }
    KeepEarlier(census.closing, life.lost_peer ? life.lost_peer : life.remote_error);
    KeepEarlier(census.timeout, life.timeout);
  }
  return census;
}

void Forgive(RankLife& life) {
  if (!life.gpu_error) return;
  life.shared_gpu_error = std::exchange(life.gpu_error, nullptr);
  if (!RaisesCudaError(life)) return;
  if (!life.consequence) life.consequence = life.exception;
  life.exception = nullptr;
}

// A kernel's own bug strikes one rank, or all; and the rank it strikes loses no peer before.
bool LooksShared(const Census& census) {
  return census.shaken.size() >= 2 || (!census.shaken.empty() && census.shaken_by_close == census.shaken.size());
}

// One rank reports such an error and one says nothing, while all others lost a peer: it may be either, unless the error
// came first. The same where what others said was cut off.
bool IsContested(const Census& census) {
  if (census.shaken.size() != 1 || LooksShared(census)) return false;
  if (census.cut > 0) return true;
  if (std::any_of(census.silent.begin(), census.silent.end(), [](const RankLife* life) { return life->has_cut_file; }))
    return true;
  return census.silent.size() == 1 && census.closing && !IsBefore(*census.shaken[0]->gpu_error, *census.closing);
}

// The job had stood still for long when the connection closed: whatever held it up came before, and this is its end.
bool CameLongAfterTheLastStep(const SignsOfLife& signs, const Event& closing) {
  if (signs.last_progress_wall_ns == kNoTime || closing.wall_ns == kNoTime) return false;
  return closing.wall_ns - signs.last_progress_wall_ns >
         std::max(signs.patience.early_end_ns, 5 * signs.progress_interval_ns);
}

// A connection closed, and no watchdog's abort had closed it.
bool SomebodyLeft(const SignsOfLife& signs, const Census& census) {
  return census.closing && (!census.timeout || IsBefore(*census.closing, *census.timeout)) &&
         !CameLongAfterTheLastStep(signs, *census.closing);
}

// Silence in one kind of file may have a reason of that file's own; in two it is the process'. Where NCCL writes only
// when something is wrong, a log that peers have and the silent rank has not is silence as well.
void MarkSilentRanks(SignsOfLife& signs, const Census& census, bool somebody_left) {
  for (RankLife* life : census.silent) life->vanished = life->has_output && life->has_nccl_log;
  if (!somebody_left) return;
  // PyTorch says when a program ends that has not left its groups. Whoever ended before anybody lost a peer is the one
  // that was lost.
  const auto left_first = [&](const RankLife& life) {
    return life.left && CameBefore(*life.left, *census.closing) &&
           std::all_of(signs.ranks.begin(), signs.ranks.end(), [&](const auto& other) {
             return &other.second == &life || !other.second.left || CameBefore(*life.left, *other.second.left);
           });
  };
  for (RankLife* life : census.silent) life->vanished |= left_first(*life);
  for (RankLife* life : census.silent) {
    if (life->has_voice() || !(life->has_nccl_log || life->has_output)) continue;
    const auto all_others = [&](auto has) {
      return std::all_of(signs.ranks.begin(), signs.ranks.end(),
                         [&](const auto& other) { return other.first == life->rank || has(other.second); });
    };
    life->fell_silent = all_others([](const RankLife& other) { return other.has_voice() || other.shared_gpu_error; });
    const bool others_warn = std::any_of(signs.ranks.begin(), signs.ranks.end(),
                                         [](const auto& other) { return other.second.has_nccl_log; });
    life->vanished |= life->fell_silent && others_warn && census.silent.size() == 1 && life->has_output &&
                      !life->has_cut_file && all_others([](const RankLife& other) { return other.has_output; });
    life->vanished |= life->fell_silent && census.silent.size() == 1 && IsMissedByGloo(signs, *life);
    // All others print that they lost a peer, or its memory under their kernels, in the same kind of file, and none of
    // them got less far.
    const bool one_lost_it = std::any_of(signs.ranks.begin(), signs.ranks.end(),
                                         [](const auto& other) { return other.second.remote_error != nullptr; });
    life->vanished |= life->fell_silent && census.silent.size() == 1 && life->has_output && !life->has_cut_file &&
                      one_lost_it && all_others([&](const RankLife& other) {
                        return other.has_output && (other.remote_error || other.shared_gpu_error) &&
                               other.last_step <= life->last_step;
                      });
  }
}

}  // namespace

void MarkVanishedRanks(SignsOfLife& signs) {
  // The MPS server fails when one of its clients is killed or aborts: no client's GPU is at fault.
  for (auto& [rank, life] : signs.ranks)
    if (life.gpu_error && (life.gpu_error->Means(Meaning::mps_failed) || CameAfterALoss(life))) Forgive(life);
  const Census census = Count(signs);
  if (census.shaken.empty() && census.silent.empty()) return;
  const auto forgive_all = [&] {
    for (RankLife* life : census.shaken) Forgive(*life);
  };
  const size_t present = signs.ranks.size() - census.absent;
  const bool all_shaken = census.shaken.size() == signs.ranks.size();
  // Whoever is told to have ended, raised an error of its own, or left no file at all may be the one whose memory went
  // away. So may a rank that wrote other sizes into a collective and lives on: errors of several ranks, but not of all,
  // have their reason elsewhere.
  const bool elsewhere = census.told == 1 || (census.absent > 0 && census.closing) || census.shaken.size() >= 2;
  const bool may_be_absent =
      census.absent > 0 && present >= 2 && census.shaken.size() + census.told + census.silent.size() == present;
  const bool shared = !all_shaken && (census.raised > 0 || may_be_absent || (elsewhere && LooksShared(census)) ||
                                      (census.absent > 0 && census.closing));
  const bool contested = IsContested(census);
  if (shared || contested) forgive_all();
  if (census.told == 1 || census.raised > 0 || contested) return;
  if (census.explained || census.absent > 0 || census.silent.empty()) return;
  if (!census.shaken.empty() && !LooksShared(census)) return;
  const bool somebody_left = SomebodyLeft(signs, census);
  const bool all_but_the_silent = census.shaken.size() + census.silent.size() == present;
  if (!somebody_left && !(all_but_the_silent && census.shaken.size() >= 2)) return;
  forgive_all();
  // Of many that say nothing, some may merely have lost the end of their files.
  const size_t share = all_but_the_silent ? 3 : 4;
  const bool few = census.silent.size() == 1 || census.silent.size() * share <= signs.ranks.size();
  if (few) MarkSilentRanks(signs, census, somebody_left);
}

}  // namespace tacet
