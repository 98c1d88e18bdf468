// SPDX-License-Identifier: Apache-2.0
// How late a rank's host was, as a limit to how late the rank can have been.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/timing/pace.h"

namespace tacet {
namespace {

// Of a rank's lateness its host's must explain so much, operation by operation, before it limits the sum.
constexpr double kByHost = 0.8;
// Where both measures agree but for noise, nothing was counted more than once: over all steps, and in one.
constexpr double kCountedAgain = 1.15, kCountedAgainInStep = 1.5;

struct HostLag {
  double most = 0;            // how much later than the median host it issued the operation that it was latest with
  double late = 0, told = 0;  // all lateness of its operations, and as much of it as the host's own explains
  bool known = false;
};

// The median without one of the values: of two, one is as late as the other is early. `sorted` holds `own`.
double MedianOfOthers(const std::vector<double>& sorted, double own) {
  const auto place = static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), own) - sorted.begin());
  const auto other = [&](size_t k) { return sorted[k < place ? k : k + 1]; };
  const size_t others = sorted.size() - 1;
  return others % 2 == 1 ? other(others / 2) : (other(others / 2 - 1) + other(others / 2)) / 2;
}

// By rank and step.
class Lags {
 public:
  Lags(const Pace& pace, const std::map<int64_t, size_t>& columns) : columns_(columns), steps_(pace.steps()) {
    for (size_t r = 0; r < pace.ranks.size(); ++r) rows_.emplace(pace.ranks[r], r);
    table_.resize(pace.ranks.size() * steps_);
  }
  HostLag& At(size_t row, size_t column) { return table_[row * steps_ + column]; }
  // Null for a rank or a step that the pace does not have.
  HostLag* Of(Rank rank, int64_t step) {
    const auto row = rows_.find(rank);
    const auto column = columns_.find(step);
    if (row == rows_.end() || column == columns_.end()) return nullptr;
    return &At(row->second, column->second);
  }

 private:
  const std::map<int64_t, size_t>& columns_;
  size_t steps_;
  std::unordered_map<Rank, size_t> rows_;
  std::vector<HostLag> table_;
};

void TakeRound(const CollectiveRound& round, Lags& lags) {
  std::vector<double> enters, durations;
  for (const RoundMember& m : round.members) {
    if (m.enter_ns == kNoTime || m.enter_is_estimate || m.length_ns() < 0) return;
    enters.push_back(static_cast<double>(m.enter_ns));
    durations.push_back(static_cast<double>(m.length_ns()));
  }
  if (round.members.size() < 2) return;
  std::vector<double> sorted_enters = enters, sorted_durations = durations;
  std::sort(sorted_enters.begin(), sorted_enters.end());
  std::sort(sorted_durations.begin(), sorted_durations.end());
  for (size_t i = 0; i < round.members.size(); ++i) {
    HostLag* const lag = lags.Of(round.members[i].rank, round.step);
    if (lag == nullptr) continue;
    lag->known = true;
    const double behind = enters[i] - MedianOfOthers(sorted_enters, enters[i]);
    lag->most = std::max(lag->most, behind);
    // By what it waited less: clocks that were set by these very operations may hide who is always late.
    const double late = MedianOfOthers(sorted_durations, durations[i]) - durations[i];
    if (late <= 0) continue;
    lag->late += late;
    lag->told += std::clamp(behind, 0.0, late);
  }
}

// The steps of traces are those that hosts have marked, and a host that runs ahead of its GPU is in the next one when
// the operations of this one run.
double MostOf(Lags& lags, Rank rank, int64_t step) {
  const HostLag* const lag = lags.Of(rank, step);
  return lag != nullptr ? lag->most : 0;
}

}  // namespace

// A host that is five milliseconds behind all through a step issues every operation as late, and its peers wait in each
// of them: for the next one to be issued, not for five more milliseconds. The step as a whole is late by the five.
void LimitByHostLag(const std::vector<CollectiveRound>& rounds, const std::map<int64_t, size_t>& columns, Pace& pace) {
  Lags lags(pace, columns);
  for (const CollectiveRound& round : rounds)
    if (round.synchronises() && columns.count(round.step)) TakeRound(round, lags);
  for (size_t r = 0; r < pace.ranks.size(); ++r) {
    double late = 0, told = 0;
    std::vector<std::pair<double*, double>> cells;  // with the host's lag
    for (const auto& [step, column] : columns) {
      const HostLag& own = lags.At(r, column);
      double& cell = pace.late_ns[r * pace.steps() + column];
      if (!own.known || std::isnan(cell)) continue;
      late += own.late, told += own.told;
      cells.emplace_back(&cell, own.most);
      if (pace.source != PaceSource::traces) continue;
      for (const int64_t beside : {step - 1, step + 1})
        cells.back().second = std::max(cells.back().second, MostOf(lags, pace.ranks[r], beside));
    }
    if (late <= 0 || told < kByHost * late) continue;
    double counted = 0, lagged = 0;
    for (const auto& [cell, lag] : cells) counted += std::max(0.0, *cell), lagged += lag;
    const bool again = counted > kCountedAgain * lagged;
    if (again) pace.counted_again.insert(pace.ranks[r]);
    const double most = again ? 1 : kCountedAgainInStep;
    for (const auto& [cell, lag] : cells)
      if (*cell > most * lag) *cell = lag;
  }
}

}  // namespace tacet
