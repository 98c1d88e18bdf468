// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/parted_waits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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

// DDP's own reduction: its sizes are those of the model, which all ranks have in common.
bool IsReduction(const Event& raised) { return IsBackward(raised) && raised.op == OpKind::unknown; }

// Gloo ended this one rank alone, by all reports of its check.
const Event* OnlyReport(const Incident& incident) {
  const Event* only = nullptr;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::mismatch_report || !event.As<MismatchReport>().by_gloo) continue;
    if (!event.rank.known() || (only && only->rank != event.rank)) return nullptr;
    if (!only) only = &event;
  }
  return only;
}

const Event* LossOf(const RankLife& one) { return one.gloo_timeout ? one.gloo_timeout : one.gloo_loss; }

// A few numbers where the peers exchange many: a count, a loss or a flag where they reduce a model.
bool ExpectsNextToNothing(const Event& report) {
  constexpr int64_t kFewBytes = 16, kManyTimes = 16;
  const auto& sizes = report.As<MismatchReport>();
  return sizes.elements >= 0 && sizes.elements <= kFewBytes && sizes.expected >= kFewBytes * kManyTimes;
}

// Where the peers of the rank that was ended were, with names or without: all in the reduction of their gradients, or
// in one call of the program, as far as their tracebacks tell. Processes that print into each other leave tracebacks
// that do not, and fewer than there are.
const Event* CallOfPeers(const SignsOfLife& life, const NamelessWaits& nameless, const Event& report) {
  constexpr size_t kFewestPeers = 2;
  std::vector<const Event*> raised = nameless.losses;
  raised.insert(raised.end(), nameless.timeouts.begin(), nameless.timeouts.end());
  for (const auto& [rank, one] : life.ranks) {
    if (rank == report.rank) continue;
    if (const Event* loss = LossOf(one)) raised.push_back(loss);
  }
  std::erase_if(raised, [](const Event* one) { return !TellsItsOperation(*one); });
  const size_t peers = life.ranks.size() - 1;
  if (nameless.error || raised.size() > peers || raised.size() < kFewestPeers || 2 * raised.size() <= peers)
    return nullptr;
  const auto has_place = [](const Event* one) { return !one->As<Raised>().place.file.empty(); };
  const auto placed = std::find_if(raised.begin(), raised.end(), has_place);
  const Event* first = placed != raised.end() ? *placed : raised.front();
  const bool reduce = std::all_of(raised.begin(), raised.end(), [](const Event* one) { return IsReduction(*one); });
  const bool one_call =
      ExpectsNextToNothing(report) && std::all_of(raised.begin(), raised.end(), [&](const Event* one) {
        return has_place(one) && IsSameOperation(*one, *first) && one->As<Raised>().place == first->As<Raised>().place;
      });
  return reduce || one_call ? first : nullptr;
}

// It raised an error of its own, and something of its communication failed after that: it had continued.
bool WentOnAfterAnError(const RankLife& one, const Event& report) {
  if (!one.exception || one.exception->As<Raised>().in_thread) return false;
  const Event* end = one.rank == report.rank ? &report : LossOf(one);
  return end && CameBefore(*one.exception, *end);
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
  if (!time_up || nameless.error || !nameless.of_threads.empty() || nameless.interrupted ||
      (named > 0 && named != life.ranks.size()))
    return {};
  if (named == 0)
    for (const auto* events : {&nameless.timeouts, &nameless.losses})
      for (const Event* raised : *events)
        if (!Add(*raised, Rank{}, waits)) return {};
  if (waits.empty() || (waits.size() == 1 && !IsMessageWait(waits.front()))) return {};
  std::stable_sort(waits.begin(), waits.end(),
                   [](const PartedWait& a, const PartedWait& b) { return a.ranks.size() > b.ranks.size(); });
  return waits;
}

CheckedStranger FindCheckedStranger(const Incident& incident, const SignsOfLife& life, const NamelessWaits& nameless) {
  const Event* report = OnlyReport(incident);
  if (!report) return {};
  CheckedStranger found;
  found.stopped = report->rank;
  found.report = report;
  for (const auto& [rank, one] : life.ranks) {
    if (!one.exception) continue;
    if (found.odd.known() || !WentOnAfterAnError(one, *report)) return {};
    found.odd = rank;
    found.raised = one.exception;
  }
  if (found) return found;
  found.others = CallOfPeers(life, nameless, *report);
  if (found.others) found.odd = report->rank;
  return found;
}

}  // namespace tacet
