// SPDX-License-Identifier: Apache-2.0
// Steps of rounds that no framework has marked: what repeats, by kinds and sizes of operations and by the host's
// pauses.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/timing/collective_match.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Fewer steps than these tell little.
constexpr size_t kEnoughSteps = 12;
// So many of the last operations are looked at where times tell.
constexpr size_t kSampled = 8192;

// An operation that comes every fifth step only, a metric say, makes five steps the best repetition. The step itself
// stands out among the lags beside it.
//     lag 11: 0.52   lag 12: 0.88   lag 13: 0.59   ...   lag 61: 1.00
size_t FindPeak(const std::vector<double>& scores) {
  constexpr double kMinScore = 0.75, kMinRise = 0.15;
  for (size_t i = 1; i + 1 < scores.size(); ++i)
    if (scores[i] >= kMinScore && scores[i] >= std::max(scores[i - 1], scores[i + 1]) + kMinRise) return i + 1;
  return 0;
}

// The lag at which the sequence of operations repeats best: how many operations of this group a training step has. The
// smallest of nearly equal ones, since every multiple repeats as well. Setup and a barrier at the end do not fit, so
// most is enough.
size_t FindPeriod(const std::vector<const CollectiveRound*>& all) {
  constexpr size_t kLongest = 4096, kSample = 20000;
  const std::span rounds = std::span(all).last(std::min(all.size(), kSample));
  std::vector<double> scores;  // of lag 1, 2, ...
  for (size_t lag = 1; lag <= kLongest && lag * 3 <= rounds.size(); ++lag) {
    size_t equal = 0;
    for (size_t i = lag; i < rounds.size(); ++i)
      equal += rounds[i]->kind == rounds[i - lag]->kind && rounds[i]->bytes == rounds[i - lag]->bytes &&
               rounds[i]->group == rounds[i - lag]->group;
    scores.push_back(static_cast<double>(equal) / static_cast<double>(rounds.size() - lag));
  }
  if (scores.empty()) return 1;
  const double best = *std::max_element(scores.begin(), scores.end());
  size_t period = 1;
  while (period < scores.size() && (scores[period - 1] < 0.75 || scores[period - 1] < 0.95 * best)) ++period;
  if (scores[period - 1] < 0.75) return 1;
  const size_t peak = rounds.size() < kEnoughSteps * period ? FindPeak(scores) : 0;
  return peak > 0 ? std::min(peak, period) : period;
}

// How much of the scatter of the pauses between operations is explained by their place in a period of `lag`, corrected
// for what chance explains.
double ExplainedByPlace(const std::vector<double>& pauses, size_t lag) {
  std::vector<double> sums(lag, 0), counts(lag, 0);
  double sum = 0, squares = 0, within = 0;
  for (size_t i = 0; i < pauses.size(); ++i) {
    sums[i % lag] += pauses[i];
    counts[i % lag] += 1;
    sum += pauses[i];
  }
  const auto n = static_cast<double>(pauses.size());
  for (size_t i = 0; i < pauses.size(); ++i) {
    const double place = sums[i % lag] / counts[i % lag];
    within += (pauses[i] - place) * (pauses[i] - place);
    squares += (pauses[i] - sum / n) * (pauses[i] - sum / n);
  }
  if (squares <= 0) return 0;
  return 1 - within / squares * (n - 1) / (n - static_cast<double>(lag));
}

// The multiple of `unit` by whose places these values are explained best; 1 where none does.
size_t FindPeriodOfValues(const std::vector<double>& values, size_t unit = 1) {
  constexpr size_t kLongest = 256, kPeriods = 8;
  constexpr double kMinExplained = 0.5, kAsGood = 0.9;
  const size_t shortest = std::max<size_t>(2, unit);
  std::vector<double> explained;
  for (size_t lag = shortest; lag <= std::max(kLongest, unit) && lag * kPeriods <= values.size(); lag += unit)
    explained.push_back(ExplainedByPlace(values, lag));
  if (explained.empty()) return 1;
  const double best = *std::max_element(explained.begin(), explained.end());
  if (best < kMinExplained) return 1;
  const auto first =
      std::find_if(explained.begin(), explained.end(), [&](double one) { return one >= kAsGood * best; });
  return shortest + unit * static_cast<size_t>(first - explained.begin());
}

// Within the bounds of what a step can have.
double BoundedNs(int64_t ns) { return static_cast<double>(std::clamp<int64_t>(ns, 1'000, 60'000'000'000)); }

double PauseBefore(const CollectiveRound& before, const CollectiveRound& now) {
  return BoundedNs(FirstEnterOf(now) - FirstEnterOf(before));
}

// Before each but the first.
std::vector<double> PausesOf(const std::vector<const CollectiveRound*>& rounds) {
  std::vector<double> pauses;
  pauses.reserve(rounds.size());
  for (size_t i = 1; i < rounds.size(); ++i) pauses.push_back(PauseBefore(*rounds[i - 1], *rounds[i]));
  return pauses;
}

std::vector<double> LogsOf(std::vector<double> values) {
  for (double& one : values) one = std::log(one);
  return values;
}

// Where all operations are alike (equal gradient buckets), what repeats are the host's pauses: a long one before the
// first operation of each step. Where the moments of issue are not recorded, it is how long that operation takes, in
// which the ranks wait for each other.
size_t FindPeriodOfTimes(const std::vector<const CollectiveRound*>& rounds) {
  if (const size_t period = FindPeriodOfValues(LogsOf(PausesOf(rounds))); period > 1) return period;
  std::vector<double> lengths;
  for (size_t i = 1; i < rounds.size(); ++i) {
    int64_t longest = 0;
    for (const RoundMember& m : rounds[i]->members) longest = std::max(longest, m.duration_ns);
    lengths.push_back(BoundedNs(longest));
  }
  return FindPeriodOfValues(LogsOf(std::move(lengths)));
}

// Which operation of a period is the first of a step: the one before which the host pauses longest.
size_t FindPhase(const std::vector<const CollectiveRound*>& rounds, size_t period) {
  std::vector<double> pause(period, 0);
  for (size_t i = 1; i < rounds.size(); ++i) {
    const int64_t gap = FirstEnterOf(*rounds[i]) - FirstEnterOf(*rounds[i - 1]);
    pause[i % period] += static_cast<double>(std::clamp<int64_t>(gap, 0, 60'000'000'000));
  }
  return static_cast<size_t>(std::max_element(pause.begin(), pause.end()) - pause.begin());
}

using KindOfRound = std::tuple<OpKind, int64_t, GroupIndex>;

KindOfRound KindOf(const CollectiveRound& round) {
  return {round.kind, static_cast<int64_t>(round.bytes), round.group};
}

// Without what comes once in a period or less: the sum of a metric every tenth step, say.
std::vector<const CollectiveRound*> WithoutRareKinds(const std::vector<const CollectiveRound*>& all, size_t period) {
  constexpr size_t kMostDropped = 2;  // at most one of so many
  std::map<KindOfRound, size_t> counts;
  for (const CollectiveRound* one : all) ++counts[KindOf(*one)];
  const size_t rare = all.size() / period + 2;
  std::vector<const CollectiveRound*> out;
  for (const CollectiveRound* one : all)
    if (counts[KindOf(*one)] > rare) out.push_back(one);
  return out.size() * kMostDropped >= all.size() ? out : all;
}

// Ten steps and a metric repeat as a whole, and so does each of the ten but for the metric. Each of them is the step if
// the host pauses before the first of the ten no longer than before the others: in front of a step stand the optimiser
// and the next batch, in front of a layer the layer before. 0: no shorter step.
size_t FindShorterStep(const std::vector<const CollectiveRound*>& all, size_t period) {
  constexpr double kAlike = 1.5;
  const std::vector<const CollectiveRound*> usual = WithoutRareKinds(all, period);
  if (usual.size() == all.size()) return 0;
  std::vector<size_t> place;  // in `all`
  for (size_t i = 0; i < all.size(); ++i)
    if (place.size() < usual.size() && all[i] == usual[place.size()]) place.push_back(i);
  std::vector<double> pauses;  // before each but the first, from whatever came before it
  for (size_t i = 1; i < usual.size(); ++i) pauses.push_back(PauseBefore(*all[place[i] - 1], *usual[i]));
  const size_t step = FindPeriodOfValues(LogsOf(pauses), FindPeriod(usual));
  if (step < 2 || usual.size() / step * 2 <= all.size() / period * 3) return 0;
  std::vector<double> first, others;
  size_t last = all.size();
  for (size_t i = FindPhase(usual, step); i < usual.size(); i += step) {
    if (i == 0) continue;
    const size_t number = place[i] / period;
    (number != last ? first : others).push_back(pauses[i - 1]);
    last = number;
  }
  return !first.empty() && !others.empty() && Median(first) <= kAlike * Median(others) ? step : 0;
}

// Layers that repeat within a step have a pause in front of the first one that the others have not.
size_t FindLongerStep(const std::vector<const CollectiveRound*>& all, size_t period) {
  constexpr double kFarLonger = 3;
  const std::vector<double> pauses = PausesOf(all);
  const size_t step = FindPeriodOfValues(LogsOf(pauses), period);
  if (step <= period) return period;
  std::vector<double> first, others;
  const size_t phase = FindPhase(all, step);
  for (size_t i = phase % period; i < all.size(); i += period)
    if (i > 0) (i % step == phase ? first : others).push_back(pauses[i - 1]);
  return !first.empty() && !others.empty() && Median(first) >= kFarLonger * Median(others) ? step : period;
}

// All operations of the rank that has most, on whatever group, in its own order.
std::vector<const CollectiveRound*> RoundsOfOneRank(const std::vector<CollectiveRound>& rounds) {
  std::map<Rank, std::vector<std::pair<int64_t, const CollectiveRound*>>> by_rank;
  for (const CollectiveRound& round : rounds)
    for (const RoundMember& m : round.members)
      if (!IsPointToPoint(round.kind) && m.enter_ns != kNoTime) by_rank[m.rank].emplace_back(m.enter_ns, &round);
  std::vector<std::pair<int64_t, const CollectiveRound*>> most;
  for (auto& [rank, list] : by_rank)
    if (list.size() > most.size()) most = std::move(list);
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const CollectiveRound*> out;
  out.reserve(most.size());
  for (const auto& [enter, round] : most) out.push_back(round);
  return out;
}

std::vector<int64_t> StartsOf(const std::vector<const CollectiveRound*>& rounds, size_t period) {
  std::vector<int64_t> starts;
  for (size_t i = FindPhase(rounds, period); i < rounds.size(); i += period) starts.push_back(FirstEnterOf(*rounds[i]));
  return starts;
}

}  // namespace

int64_t FirstEnterOf(const CollectiveRound& round) {
  int64_t first = INT64_MAX;
  for (const RoundMember& m : round.members)
    if (m.enter_ns != kNoTime) first = std::min(first, m.enter_ns);
  return first;
}

// Steps are periods of the group with the most operations among the largest groups, as long as these are enough to
// tell; other groups fall into them by time. Where the operations of that group are all alike (the layers of a tensor
// group), steps are periods of what one rank does on all its groups.
void AssignPeriods(std::vector<CollectiveRound>& rounds) {
  using Rounds = std::vector<const CollectiveRound*>;
  std::map<GroupIndex, Rounds> by_group;
  for (const CollectiveRound& round : rounds)
    if (!IsPointToPoint(round.kind) && FirstEnterOf(round) != INT64_MAX) by_group[round.group].push_back(&round);
  std::vector<const Rounds*> groups;
  for (const auto& [group, list] : by_group)
    if (list.size() >= 4) groups.push_back(&list);
  const auto weight = [](const Rounds& list) { return std::pair(list.front()->group_size, list.size()); };
  std::stable_sort(groups.begin(), groups.end(), [&](auto* a, auto* b) { return weight(*a) > weight(*b); });
  const Rounds* main = nullptr;
  size_t period = 1, most = 0;
  for (const Rounds* list : groups) {
    if (most >= kEnoughSteps) break;
    const size_t own = FindPeriod(*list);
    if (list->size() / own <= most) continue;
    main = list;
    period = own;
    most = list->size() / own;
  }
  if (!main) return;
  const Rounds all = period == 1 && groups.size() > 1 ? RoundsOfOneRank(rounds) : Rounds();
  if (const size_t joint = all.size() >= 4 ? FindPeriod(all) : 1; joint > 1) {
    main = &all;
    period = joint;
  }
  const Rounds sample(main->end() - static_cast<ptrdiff_t>(std::min(main->size(), kSampled)), main->end());
  Rounds usual;
  if (period == 1) {
    period = FindPeriodOfTimes(sample);
  } else if (const size_t shorter = FindShorterStep(sample, period)) {
    usual = WithoutRareKinds(*main, period);
    main = &usual;
    period = shorter;
  } else {
    period = FindLongerStep(sample, period);
  }
  const std::vector<int64_t> starts = StartsOf(*main, period);
  for (CollectiveRound& round : rounds) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), FirstEnterOf(round));
    round.step = static_cast<int64_t>(after - starts.begin()) - 1;
  }
}

std::vector<int64_t> FindPeriodStarts(const std::vector<CollectiveRound>& of_one_rank) {
  std::vector<const CollectiveRound*> all;
  for (const CollectiveRound& round : of_one_rank)
    if (FirstEnterOf(round) != INT64_MAX) all.push_back(&round);
  const size_t period = all.size() >= 4 ? FindPeriod(all) : 1;
  const std::vector<const CollectiveRound*> sample(all.end() - static_cast<ptrdiff_t>(std::min(all.size(), kSampled)),
                                                   all.end());
  const size_t step = period == 1 ? FindPeriodOfTimes(sample) : FindLongerStep(sample, period);
  return step > 1 ? StartsOf(all, step) : std::vector<int64_t>();
}

}  // namespace tacet
