// SPDX-License-Identifier: Apache-2.0
// Pace from the durations of operations.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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
// Activations of a layer have one size; gradient buckets seldom have, and there are few of them where they do.
constexpr size_t kManyEqual = 4;

bool IsTimed(const CollectiveRound& round) {
  return round.members.size() > 1 && std::all_of(round.members.begin(), round.members.end(),
                                                 [](const RoundMember& m) { return m.duration_ns >= 0; });
}

// Operations of a step, from the first to before the last number, of which one stands for all.
struct RepeatedRun {
  size_t begin = 0, end = 0, chosen = 0;
};

// The operations of one group, step by step.
struct GroupSteps {
  std::map<int64_t, std::vector<const CollectiveRound*>> by_step;
  std::set<Rank> members;
  size_t usual = 0;               // how many operations most steps have
  std::vector<bool> counts;       // of the usual number: which count
  std::vector<RepeatedRun> runs;  // those in which one lateness shows several times
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

// Most members had the second one ready before the first had ended. Where starts are known, that shows; where only the
// host's times are, it must have issued it by then, which hosts that run ahead do with operations of any kind.
bool IsReadyBefore(const CollectiveRound& first, const CollectiveRound& second, bool many_equal) {
  size_t ready = 0, all = 0;
  auto next = first.members.begin();  // mostly both list their members in the same order
  for (const RoundMember& b : second.members) {
    const auto is_same = [&](const RoundMember& m) { return m.rank == b.rank; };
    const bool in_order = next != first.members.end() && is_same(*next);
    const auto a = in_order ? next++ : std::find_if(first.members.begin(), first.members.end(), is_same);
    if (a == first.members.end() || a->enter_ns == kNoTime || b.enter_ns == kNoTime) continue;
    const bool started = a->start_ns != kNoTime && b.start_ns != kNoTime;
    if (b.enter_is_estimate && !started) continue;
    ++all;
    if (started) {
      const int64_t end = a->start_ns + a->duration_ns;
      ready += b.start_ns < end + kFollowsNs && (b.enter_is_estimate || b.enter_ns < end);
    } else {
      ready += !many_equal && b.enter_ns < a->enter_ns + a->duration_ns;
    }
  }
  return all > 0 && ready * 2 > all;
}

// Most members began the second one as soon as the first had ended, and had issued it before: whatever the kinds are,
// who was late for the first is the same late for the second.
bool IsQueuedBehind(const CollectiveRound& first, const CollectiveRound& second) {
  const auto has_start = [](const RoundMember& m) { return m.start_ns != kNoTime && m.enter_ns != kNoTime; };
  return std::all_of(first.members.begin(), first.members.end(), has_start) &&
         std::all_of(second.members.begin(), second.members.end(), has_start) && IsReadyBefore(first, second, true);
}

// Runs of operations beside the backward pass: consecutive ones of one kind, each ready or already late when the one
// before it ends. Begins of the runs; a lone operation is a run of one.
std::vector<size_t> FindRuns(const GroupSteps& group, const Deficits& deficits) {
  std::vector<size_t> begins;
  const std::vector<const CollectiveRound*>* sample = nullptr;  // a step in the middle of the record
  size_t seen = 0, usual = 0;
  for (const auto& [step, rounds] : group.by_step) usual += rounds.size() == group.usual;
  for (const auto& [step, rounds] : group.by_step)
    if (rounds.size() == group.usual && seen++ == usual / 2) sample = &rounds;
  for (size_t k = 0; k < group.usual; ++k) {
    if (k == 0 || !sample) {
      begins.push_back(k);
      continue;
    }
    const CollectiveRound &before = *(*sample)[k - 1], &now = *(*sample)[k];
    const auto equal = static_cast<size_t>(std::count_if(sample->begin(), sample->end(), [&](const auto* one) {
      return one->kind == now.kind && one->bytes == now.bytes;
    }));
    const bool reduces = now.kind == OpKind::all_reduce || now.kind == OpKind::reduce_scatter;
    const bool like_buckets = reduces && before.kind == now.kind;
    const bool same_run =
        IsQueuedBehind(before, now) || (like_buckets && (IsReadyBefore(before, now, equal >= kManyEqual) ||
                                                         IsCarriedOver(deficits[k - 1], deficits[k])));
    if (!same_run) begins.push_back(k);
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
    group.runs.push_back({begin, end, largest});
  }
}

// How much later than the median member the last one came.
int64_t LatenessIn(const CollectiveRound& round) {
  std::vector<double> durations;
  for (const RoundMember& m : round.members) durations.push_back(static_cast<double>(m.duration_ns));
  return std::llround(Median(durations) - *std::min_element(durations.begin(), durations.end()));
}

// A stall comes before any operation of a run, and shows in that one alone: where another is waited for by far longer
// than the one that stands for the run, and than is usual anywhere in it, that other one stands for it in this step.
size_t ChosenInStep(const RepeatedRun& run, const std::vector<const CollectiveRound*>& rounds, int64_t usual) {
  constexpr int64_t kFarMore = 3, kLongStallNs = 1'000'000;
  const int64_t chosen = LatenessIn(*rounds[run.chosen]);
  size_t latest = run.chosen;
  int64_t most = chosen;
  for (size_t k = run.begin; k < run.end; ++k)
    if (const int64_t here = LatenessIn(*rounds[k]); here > most) most = here, latest = k;
  return most >= kLongStallNs + kFarMore * std::max(usual, chosen) ? latest : run.chosen;
}

bool HasLengthsAlone(const GroupSteps& group) {
  return std::all_of(group.by_step.begin(), group.by_step.end(), [](const auto& step) {
    return std::all_of(step.second.begin(), step.second.end(), [](const CollectiveRound* round) {
      return std::all_of(round->members.begin(), round->members.end(), [](const RoundMember& m) {
        return m.start_ns == kNoTime && (m.enter_ns == kNoTime || m.enter_is_estimate);
      });
    });
  });
}

// Lengths alone do not show whether the others were ready when the operation before had ended. Where a rank is late for
// one operation of the step by far more than for any other, they were: behind that one it stays late, and what it takes
// to issue each of the next is waited for again.
void KeepWhatStandsOut(GroupSteps& group) {
  constexpr double kFarMore = 2.5;
  constexpr size_t kMinOperations = 4;
  if (group.usual < kMinOperations) return;
  const Deficits deficits = MeasureDeficits(group);
  std::vector<double> latest;  // by place, of the rank that is late most
  for (const Rank rank : group.members) {
    std::vector<double> own;
    for (size_t k = 0; k < group.usual; ++k) {
      const auto found = deficits[k].find(rank);
      own.push_back(group.counts[k] && found != deficits[k].end() ? Median(found->second) : 0);
    }
    if (latest.empty() ||
        std::accumulate(own.begin(), own.end(), 0.0) > std::accumulate(latest.begin(), latest.end(), 0.0))
      latest = std::move(own);
  }
  const auto largest = static_cast<size_t>(std::max_element(latest.begin(), latest.end()) - latest.begin());
  std::vector<double> others;
  for (size_t k = 0; k < group.usual; ++k)
    if (k != largest && group.counts[k]) others.push_back(latest[k]);
  if (others.size() + 1 < kMinOperations ||
      latest[largest] < kFarMore * *std::max_element(others.begin(), others.end()))
    return;
  for (size_t k = 0; k < group.usual; ++k) group.counts[k] = k == largest;
  group.runs = {{0, group.usual, largest}};
}

class RoundPace {
 public:
  RoundPace(const std::vector<CollectiveRound>& rounds, std::span<const Transfer> transfers)
      : rounds_(rounds), transfers_(transfers) {
    for (const auto& [step, ns] : MeasureStepTimes(rounds)) {
      column_.emplace(step, pace_.step_ns.size());
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
    largest_.assign(cells, 0);
    seen_.assign(cells, 0);
    for (auto& [index, group] : groups_) TakeGroup(group);
    TakeTransfers();
    for (size_t i = 0; i < cells; ++i)
      if (seen_[i] == 0) waited_[i] = own_[i] = kNotKnown;
    SetLateness(waited_, peers, pace_);
    if (!transfers_.empty()) {  // own time between sends is in no round
      SetShared(rounds_, column_, pace_);
    } else {
      LimitByOwnTime(peers);
      LimitByHostLag(rounds_, column_, pace_);
      if (lengths_alone_) LimitStalls();
    }
    return std::move(pace_);
  }

 private:
  void TakeGroup(GroupSteps& group) {
    std::map<size_t, size_t> sizes;
    for (const auto& [step, rounds] : group.by_step) ++sizes[rounds.size()];
    for (const auto& [size, count] : sizes)
      if (count > sizes[group.usual]) group.usual = size;
    ChooseOperations(group);
    lengths_alone_ &= HasLengthsAlone(group);
    if (lengths_alone_) KeepWhatStandsOut(group);
    std::vector<int64_t> usual;  // by run: the lateness in the operation that stands for it
    for (const RepeatedRun& run : group.runs) {
      std::vector<double> values;
      for (const auto& [step, rounds] : group.by_step)
        if (rounds.size() == group.usual) values.push_back(static_cast<double>(LatenessIn(*rounds[run.chosen])));
      usual.push_back(std::llround(Median(std::move(values))));
    }
    for (const auto& [step, rounds] : group.by_step) {
      std::vector<bool> counts = rounds.size() == group.usual ? group.counts : std::vector<bool>(rounds.size(), true);
      for (size_t i = 0; i < group.runs.size() && rounds.size() == group.usual; ++i) {
        counts[group.runs[i].chosen] = false;
        counts[ChosenInStep(group.runs[i], rounds, usual[i])] = true;
      }
      for (size_t k = 0; k < rounds.size(); ++k) TakeRound(*rounds[k], group, counts[k]);
    }
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
    std::vector<double> durations;
    for (const RoundMember& m : round.members) durations.push_back(static_cast<double>(m.duration_ns));
    const double usual = Median(std::move(durations));
    for (const RoundMember& m : round.members) {
      absent.erase(m.rank);
      const size_t cell = Cell(m.rank, round.step);
      largest_[cell] = std::max(largest_[cell], usual - static_cast<double>(m.duration_ns));
      ++seen_[cell];
      ++pace_.rounds[row_.at(m.rank)];
      if (counts) waited_[cell] += static_cast<double>(m.duration_ns - shortest->duration_ns);
      const int64_t own = m.alone_ns >= 0 ? m.alone_ns : m.idle_ns;
      own_[cell] += own >= 0 && m.timeline == kNoIndex ? static_cast<double>(own) : kNotKnown;
    }
    // Who is missing from a record has not waited less.
    for (const Rank rank : absent) waited_[Cell(rank, round.step)] = own_[Cell(rank, round.step)] = kNotKnown;
  }

  // A stall shows in full in one operation, and the others wait for the rank's host again in those behind it: what a
  // step adds to the rank's ordinary lateness is no more than the most that it was late for one.
  void LimitStalls() {
    const size_t steps = pace_.steps();
    for (size_t r = 0; r < pace_.ranks.size(); ++r) {
      std::vector<double> known;
      for (size_t i = r * steps; i < (r + 1) * steps; ++i)
        if (!std::isnan(pace_.late_ns[i])) known.push_back(pace_.late_ns[i]);
      const double usual = std::max(0.0, Median(std::move(known)));
      for (size_t i = r * steps; i < (r + 1) * steps; ++i)
        if (pace_.late_ns[i] > usual) pace_.late_ns[i] = std::min(pace_.late_ns[i], usual + largest_[i]);
    }
  }

  // Not every communication is in the rounds. Who was let go late by something that is not has not taken longer itself.
  // The two measures agree but for noise where nothing is missing, so only a rank for which they differ is corrected.
  void LimitByOwnTime(const std::map<Rank, uint32_t>& peers) {
    constexpr double kDiffers = 0.5;
    Pace own = pace_;
    for (double& ns : own_) ns = -ns;
    SetLateness(own_, peers, own);
    const size_t steps = pace_.steps();
    for (size_t r = 0; r < pace_.ranks.size(); ++r) {
      std::vector<double> waited, alone;
      for (size_t i = r * steps; i < (r + 1) * steps; ++i) {
        if (std::isnan(pace_.late_ns[i]) || std::isnan(own.late_ns[i])) continue;
        waited.push_back(pace_.late_ns[i]);
        alone.push_back(own.late_ns[i]);
      }
      if (alone.empty() || Median(alone) >= kDiffers * Median(waited)) continue;
      for (size_t i = r * steps; i < (r + 1) * steps; ++i)
        if (!std::isnan(own.late_ns[i])) pace_.late_ns[i] = std::min(pace_.late_ns[i], own.late_ns[i]);
    }
  }

  const std::vector<CollectiveRound>& rounds_;
  const std::span<const Transfer> transfers_;
  std::map<int64_t, size_t> column_;
  std::map<Rank, size_t> row_;
  std::map<GroupIndex, GroupSteps> groups_;
  Pace pace_;
  std::vector<double> waited_, own_, largest_;  // largest: the most that the rank was late for one operation
  std::vector<size_t> seen_;
  bool lengths_alone_ = true;
};

}  // namespace

Pace MeasurePace(const std::vector<CollectiveRound>& rounds, PaceSource source, std::span<const Transfer> transfers) {
  return RoundPace(rounds, transfers).Run(source);
}

}  // namespace tacet
