// SPDX-License-Identifier: Apache-2.0
// Pace from the durations of operations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/timing/pace.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
// A kernel that begins this soon behind another had been ready before: its stream was busy.
constexpr int64_t kFollowsNs = 100'000;
// Carried over: when a rank is later than usual in one operation, it is in the next one too, this much more often than
// not. And so many values must tell.
constexpr double kCarriedOver = 0.25;
constexpr size_t kMinCarried = 24;
bool IsTimed(const CollectiveRound& round) {
  return round.members.size() > 1 && std::all_of(round.members.begin(), round.members.end(),
                                                 [](const RoundMember& m) { return m.duration_ns >= 0; });
}

// The operations of one group, step by step.
struct GroupSteps {
  std::map<int64_t, std::vector<const CollectiveRound*>> by_step;
  std::set<Rank> members;
  size_t usual = 0;          // how many operations most steps have
  std::vector<bool> counts;  // of the usual number: which count
};

// [position][member] -> how much shorter its operation is than the median one, in every step that has all of them.
using Deficits = std::vector<std::map<Rank, std::vector<double>>>;

Deficits MeasureDeficits(const GroupSteps& group) {
  Deficits out(group.usual);
  for (const auto& [step, rounds] : group.by_step) {
    const bool whole = rounds.size() == group.usual && std::all_of(rounds.begin(), rounds.end(), [&](const auto* one) {
                         return one->members.size() == group.members.size();
                       });
    if (!whole) continue;
    for (size_t k = 0; k < rounds.size(); ++k) {
      std::vector<double> all;
      for (const RoundMember& m : rounds[k]->members) all.push_back(static_cast<double>(m.duration_ns));
      const double usual = Median(all);
      for (size_t i = 0; i < all.size(); ++i) out[k][rounds[k]->members[i].rank].push_back(usual - all[i]);
    }
  }
  return out;
}

// Does a rank that is later than usual in one operation stay so in the next? Then nothing made it wait in between: its
// compute does not depend on the first one's result.
bool IsCarriedOver(const std::map<Rank, std::vector<double>>& first,
                   const std::map<Rank, std::vector<double>>& second) {
  std::vector<std::pair<double, double>> moves;
  std::vector<double> sizes;
  for (const auto& [rank, values] : first) {
    const std::vector<double>& next = second.at(rank);
    const double usual = Median(values), next_usual = Median(next);
    for (size_t i = 0; i < std::min(values.size(), next.size()); ++i) {
      moves.emplace_back(values[i] - usual, next[i] - next_usual);
      sizes.push_back(std::fabs(moves.back().first));
    }
  }
  const double least = Median(std::move(sizes));
  double agree = 0, all = 0;
  for (const auto& [a, b] : moves) {
    if (std::fabs(a) <= least || b == 0) continue;
    agree += (a > 0) == (b > 0) ? 1 : -1;
    ++all;
  }
  return all >= static_cast<double>(kMinCarried) && agree / all >= kCarriedOver;
}

int64_t EndOf(const RoundMember& m) { return (m.start_ns != kNoTime ? m.start_ns : m.enter_ns) + m.duration_ns; }

// Most members had issued the second one before the first had ended, and who came last to it had not: its host is
// behind theirs, by as much in the second as in the first, and what they wait in the second is the same lateness again.
bool IsSameLateness(const CollectiveRound& first, const CollectiveRound& second) {
  size_t early = 0, all = 0;
  bool last_is_early = true;
  int64_t shortest = INT64_MAX;
  for (const RoundMember& b : second.members) {
    const auto a = std::find_if(first.members.begin(), first.members.end(),
                                [&](const RoundMember& m) { return m.rank == b.rank; });
    if (a == first.members.end() || a->enter_ns == kNoTime || b.enter_ns == kNoTime) continue;
    const bool is_early = b.enter_ns < EndOf(*a);
    ++all;
    early += is_early;
    if (b.duration_ns >= shortest) continue;
    shortest = b.duration_ns;
    last_is_early = is_early;
  }
  return all > 1 && early * 2 >= all && !last_is_early;
}

// Where starts are known: most members began the second one as soon as the first had ended, so it had been ready
// before.
bool IsReadyBefore(const CollectiveRound& first, const CollectiveRound& second) {
  size_t ready = 0, all = 0;
  for (const RoundMember& b : second.members) {
    const auto a = std::find_if(first.members.begin(), first.members.end(),
                                [&](const RoundMember& m) { return m.rank == b.rank; });
    if (a == first.members.end() || a->start_ns == kNoTime || b.start_ns == kNoTime) continue;
    ++all;
    ready += b.start_ns < EndOf(*a) + kFollowsNs && b.enter_ns < EndOf(*a);
  }
  return all > 0 && ready * 2 > all;
}

// Runs of operations that show one lateness several times: gradient buckets beside the backward pass, and whatever
// peers have queued behind an operation in which they wait for a slow host. Begins of the runs; a lone operation is a
// run of one.
std::vector<size_t> FindRuns(const GroupSteps& group, const Deficits& deficits) {
  std::vector<size_t> begins = {0};
  for (size_t k = 1; k < group.usual; ++k) {
    size_t same = 0, steps = 0;
    bool reduces = false;
    for (const auto& [step, rounds] : group.by_step) {
      if (rounds.size() != group.usual) continue;
      const CollectiveRound &before = *rounds[k - 1], &now = *rounds[k];
      reduces = before.kind == now.kind && (now.kind == OpKind::all_reduce || now.kind == OpKind::reduce_scatter);
      ++steps;
      same += IsSameLateness(before, now) || (reduces && IsReadyBefore(before, now));
    }
    if (same * 2 <= steps && !(reduces && IsCarriedOver(deficits[k - 1], deficits[k]))) begins.push_back(k);
  }
  return begins;
}

// Of a run in which one lateness shows several times, the operation in which it is largest stands for all. Where the
// others add little they stay: what one operation ends late on a rank the next one makes up for.
void ChooseOperations(GroupSteps& group) {
  constexpr double kLittleMore = 1.25;
  group.counts.assign(group.usual, true);
  if (group.usual < 2) return;
  const Deficits deficits = MeasureDeficits(group);
  const std::vector<size_t> begins = FindRuns(group, deficits);
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t begin = begins[i], end = i + 1 < begins.size() ? begins[i + 1] : group.usual;
    if (end - begin < 2) continue;
    double most = 0, most_sum = 0;
    size_t largest = begin;
    for (const Rank rank : group.members) {
      double sum = 0;
      for (size_t k = begin; k < end; ++k) {
        const auto found = deficits[k].find(rank);
        const double usual = found != deficits[k].end() ? Median(found->second) : 0;
        sum += usual;
        if (usual > most) most = usual, largest = k;
      }
      most_sum = std::max(most_sum, sum);
    }
    if (most_sum <= kLittleMore * most) continue;
    for (size_t k = begin; k < end; ++k) group.counts[k] = k == largest;
  }
}

class RoundPace {
 public:
  RoundPace(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers)
      : rounds_(rounds), transfers_(transfers) {
    for (const auto& [step, ns] : MeasureStepTimes(rounds)) {
      column_.emplace(step, pace_.step_ns.size());
      pace_.numbers.push_back(step);
      pace_.step_ns.push_back(ns);
    }
    for (const CollectiveRound& round : rounds) {
      if (!column_.count(round.step) || !IsTimed(round)) continue;
      GroupSteps& group = groups_[round.group];
      group.by_step[round.step].push_back(&round);
      for (const RoundMember& m : round.members) group.members.insert(m.rank);
    }
  }

  Pace Run(PaceSource source) {
    pace_.source = source;
    const std::map<Rank, uint32_t> peers = FindPeers(rounds_, transfers_);
    for (const auto& [rank, number] : peers) {
      row_.emplace(rank, pace_.ranks.size());
      pace_.ranks.push_back(rank);
    }
    const size_t cells = pace_.ranks.size() * pace_.steps();
    pace_.rounds.assign(pace_.ranks.size(), 0);
    pace_.last.assign(pace_.ranks.size(), 0);
    waited_.assign(cells, 0);
    own_.assign(cells, 0);
    seen_.assign(cells, 0);
    for (auto& [index, group] : groups_) TakeGroup(group);
    TakeTransfers();
    for (size_t i = 0; i < cells; ++i)
      if (seen_[i] == 0) waited_[i] = own_[i] = kNotKnown;
    SetLateness(waited_, peers, pace_);
    if (transfers_.empty()) LimitByOwnTime(peers);  // own time between sends is in no round
    return std::move(pace_);
  }

 private:
  void TakeGroup(GroupSteps& group) {
    std::map<size_t, size_t> sizes;
    for (const auto& [step, rounds] : group.by_step) ++sizes[rounds.size()];
    for (const auto& [size, count] : sizes)
      if (count > sizes[group.usual]) group.usual = size;
    ChooseOperations(group);
    for (const auto& [step, rounds] : group.by_step)
      for (size_t k = 0; k < rounds.size(); ++k)
        TakeRound(*rounds[k], group, rounds.size() != group.usual || group.counts[k]);
  }

  size_t Cell(Rank rank, int64_t step) const { return row_.at(rank) * pace_.steps() + column_.at(step); }

  // The whole of a send or receive counts: ranks of one stage have as many of them, of the same size.
  void TakeTransfers() {
    std::vector<std::pair<double, int64_t>> starts;
    for (const auto& [step, ns] : FindStepStarts(rounds_)) starts.emplace_back(ns, step);
    std::sort(starts.begin(), starts.end());
    for (const Transfer& one : transfers_) {
      const auto after =
          std::upper_bound(starts.begin(), starts.end(), std::pair(static_cast<double>(one.at_ns), INT64_MAX));
      if (one.at_ns == kNoTime || after == starts.begin() || !row_.count(one.rank)) continue;
      const int64_t step = std::prev(after)->second;
      if (column_.count(step)) waited_[Cell(one.rank, step)] += static_cast<double>(one.duration_ns);
    }
  }

  void TakeRound(const CollectiveRound& round, const GroupSteps& group, bool counts) {
    if (std::any_of(round.members.begin(), round.members.end(), [&](const auto& m) { return !row_.count(m.rank); }))
      return;
    const auto shortest =
        std::min_element(round.members.begin(), round.members.end(),
                         [](const RoundMember& a, const RoundMember& b) { return a.duration_ns < b.duration_ns; });
    ++pace_.operations;
    if (round.synchronises()) ++pace_.last[row_.at(shortest->rank)];
    std::set<Rank> absent = round.members.size() < group.members.size() ? group.members : std::set<Rank>();
    for (const RoundMember& m : round.members) {
      absent.erase(m.rank);
      const size_t cell = Cell(m.rank, round.step);
      ++seen_[cell];
      ++pace_.rounds[row_.at(m.rank)];
      if (counts) waited_[cell] += static_cast<double>(m.duration_ns - shortest->duration_ns);
      const int64_t own = m.alone_ns >= 0 ? m.alone_ns : m.idle_ns;
      own_[cell] += own >= 0 && m.timeline == kNoIndex ? static_cast<double>(own) : kNotKnown;
    }
    // Who is missing from a record has not waited less.
    for (const Rank rank : absent) waited_[Cell(rank, round.step)] = own_[Cell(rank, round.step)] = kNotKnown;
  }

  // Not every communication is in the rounds. Who was let go late by something that is not has not taken longer itself.
  void LimitByOwnTime(const std::map<Rank, uint32_t>& peers) {
    Pace own = pace_;
    for (double& ns : own_) ns = -ns;
    SetLateness(own_, peers, own);
    TakeSmaller(own, pace_);
  }

  const std::vector<CollectiveRound>& rounds_;
  const std::span<const Transfer> transfers_;
  std::map<int64_t, size_t> column_;
  std::map<Rank, size_t> row_;
  std::map<GroupIndex, GroupSteps> groups_;
  Pace pace_;
  std::vector<double> waited_, own_;
  std::vector<size_t> seen_;
};

}  // namespace

Pace MeasurePace(const std::vector<CollectiveRound>& rounds, PaceSource source, std::span<const Transfer> transfers) {
  return RoundPace(rounds, transfers).Run(source);
}

}  // namespace tacet
