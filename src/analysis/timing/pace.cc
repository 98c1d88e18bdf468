// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/timing/statistics.h"
#include "analysis/timing/time_budget.h"

namespace tacet {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string_view Name(PaceSource source) {
  switch (source) {
    case PaceSource::traces: return "traces";
    case PaceSource::inspector: return "NCCL Inspector records";
    case PaceSource::black_boxes: return "black boxes";
    case PaceSource::flight_records: return "flight records with timing";
  }
  return "";
}

std::map<Rank, uint32_t> FindPeers(const std::vector<CollectiveRound>& rounds) {
  std::map<Rank, Rank> parent;
  const auto find = [&](Rank rank) {
    Rank root = rank;
    for (auto at = parent.try_emplace(rank, rank).first; at->second != root; at = parent.find(root)) root = at->second;
    while (parent[rank] != root) rank = std::exchange(parent[rank], root);
    return root;
  };
  for (const CollectiveRound& round : rounds)
    for (size_t i = 1; i < round.members.size(); ++i) {
      const Rank a = find(round.members[0].rank), b = find(round.members[i].rank);
      parent[b] = a;
    }
  std::map<Rank, uint32_t> out;
  std::vector<Rank> all;
  all.reserve(parent.size());
  for (const auto& [rank, above] : parent) all.push_back(rank);
  for (const Rank rank : all) out[rank] = static_cast<uint32_t>(find(rank).value);
  return out;
}

void SetLateness(const std::vector<double>& waited_ns, const std::map<Rank, uint32_t>& peers, Pace& pace) {
  const size_t steps = pace.steps();
  std::map<uint32_t, std::vector<size_t>> sets;
  for (size_t r = 0; r < pace.ranks.size(); ++r)
    if (const auto found = peers.find(pace.ranks[r]); found != peers.end()) sets[found->second].push_back(r);
  pace.late_ns.assign(waited_ns.size(), kUnknown);
  pace.peers.assign(pace.ranks.size(), UINT32_MAX);
  for (const auto& [number, set] : sets) {
    for (const size_t r : set) pace.peers[r] = number;
    for (size_t s = 0; s < steps; ++s) {
      std::vector<double> known;
      for (const size_t r : set)
        if (!std::isnan(waited_ns[r * steps + s])) known.push_back(waited_ns[r * steps + s]);
      if (known.size() < 2 || known.size() * 2 < set.size()) continue;
      const double usual = Median(std::move(known));
      for (const size_t r : set) pace.late_ns[r * steps + s] = usual - waited_ns[r * steps + s];
    }
  }
}

// Hosts run ahead of their GPUs, so starts tell more than the moments of issue.
StepTimes FindStepStarts(const std::vector<CollectiveRound>& rounds) {
  StepTimes first;
  for (const CollectiveRound& round : rounds) {
    if (round.step < 0) continue;
    for (const RoundMember& m : round.members) {
      if (m.enter_ns == kNoTime) continue;
      const bool started = m.timeline == kNoIndex && m.start_ns != kNoTime;
      const auto at = static_cast<double>(started ? m.start_ns : m.enter_ns);
      const auto [found, added] = first.try_emplace(round.step, at);
      if (!added) found->second = std::min(found->second, at);
    }
  }
  return first;
}

namespace {

bool HasEstimatedTimes(const std::vector<CollectiveRound>& rounds) {
  return std::any_of(rounds.begin(), rounds.end(), [](const CollectiveRound& round) {
    return std::any_of(round.members.begin(), round.members.end(), [](const auto& m) { return m.enter_is_estimate; });
  });
}

// Estimates spread the operations evenly between two writes of the record. Where the job paused in between, or had
// ended, all steps there look longer than they were, and nothing makes them look shorter.
void SetUsualLength(StepTimes& times) {
  constexpr double kWithoutPauses = 0.25;
  std::vector<double> all;
  all.reserve(times.size());
  for (const auto& [step, ns] : times) all.push_back(ns);
  const double usual = all.empty() ? 0 : Quantile(std::move(all), kWithoutPauses);
  for (auto& [step, ns] : times) ns = usual;
}

}  // namespace

StepTimes MeasureStepTimes(const std::vector<CollectiveRound>& rounds) {
  const StepTimes first = FindStepStarts(rounds);
  StepTimes times;
  for (auto at = first.begin(); at != first.end() && std::next(at) != first.end(); ++at)
    if (std::next(at)->first == at->first + 1) times[at->first] = std::next(at)->second - at->second;
  if (!first.empty() && !times.empty()) {
    std::vector<double> all;
    for (const auto& [step, ns] : times) all.push_back(ns);
    times.try_emplace(first.rbegin()->first, Median(std::move(all)));
  }
  if (HasEstimatedTimes(rounds)) SetUsualLength(times);
  return times;
}

namespace {

// By step: how much longer than usual it and the nine before were. Hosts that wait for their GPU in every tenth step
// alone have one that is many times as long as the others, which is no pause.
std::vector<double> MeasureExcess(const std::vector<double>& step_ns) {
  constexpr size_t kCycle = 10;
  std::vector<double> sums;
  double sum = 0;
  for (size_t s = 0; s < step_ns.size(); ++s) {
    sum += step_ns[s] - (s >= kCycle ? step_ns[s - kCycle] : 0);
    sums.push_back(s + 1 < kCycle ? sum / static_cast<double>(s + 1) * kCycle : sum);
  }
  const double usual = Median(sums);
  for (double& one : sums) one -= usual;
  return sums;
}

}  // namespace

std::vector<CollectiveRound> RoundsAfterPause(const std::vector<CollectiveRound>& rounds, const Pace& pace) {
  constexpr size_t kEnoughToTell = 20, kSettling = 3, kLeastPart = 3;
  const double usual = Median(pace.step_ns);
  const std::vector<double> excess = MeasureExcess(pace.step_ns);
  const auto late_in = [&](size_t step) {
    double latest = 0;
    for (size_t r = 0; r < pace.ranks.size() && step < pace.steps(); ++r)
      if (!std::isnan(pace.late(r, step))) latest = std::max(latest, pace.late(r, step));
    return latest;
  };
  int64_t pause = -1;
  size_t s = 0, behind = 0;
  for (const auto& [number, ns] : MeasureStepTimes(rounds)) {
    // The lateness may show in the step behind.
    const bool paused = s < pace.steps() && ns >= kPauseOfJob * usual && excess[s] >= (kPauseOfJob - 1) * usual &&
                        std::max(late_in(s), late_in(s + 1)) < (ns - usual) / 2;
    ++s, ++behind;
    if (paused) pause = number, behind = 0;
  }
  if (pause < 0 || behind < kSettling + kEnoughToTell || behind * kLeastPart < pace.steps()) return {};
  std::vector<CollectiveRound> out;
  for (const CollectiveRound& round : rounds)
    if (round.step > pause + static_cast<int64_t>(kSettling)) out.push_back(round);
  return out;
}

Pace MeasurePaceInTraces(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                         const std::map<Rank, uint32_t>& peers) {
  Pace pace;
  const std::map<Rank, uint32_t> sets = peers.empty() ? FindPeers(rounds) : peers;
  std::map<int64_t, std::map<Rank, TimeBudget>> table;
  for (const Timeline& timeline : timelines) {
    if (!sets.count(timeline.rank)) continue;
    const BudgetMeter meter(timeline);
    for (const TrainingStep& step : timeline.steps)
      table[step.number][timeline.rank] = meter.Measure({step.start_ns, step.end_ns});
  }
  for (const auto& [rank, set] : sets) pace.ranks.push_back(rank);
  pace.rounds.assign(pace.ranks.size(), 0);
  pace.last.assign(pace.ranks.size(), 0);
  const auto place = [&](Rank rank) {
    return static_cast<size_t>(std::lower_bound(pace.ranks.begin(), pace.ranks.end(), rank) - pace.ranks.begin());
  };
  for (const CollectiveRound& round : rounds) {
    if (IsPointToPoint(round.kind) || round.members.size() < 2) continue;
    ++pace.operations;
    for (const RoundMember& m : round.members)
      if (const size_t r = place(m.rank); r < pace.ranks.size()) ++pace.rounds[r];
    if (!round.synchronises()) continue;  // who comes last to a rooted one need not hold up anybody
    if (const size_t r = place(TimeRound(round).last); r < pace.ranks.size()) ++pace.last[r];
  }
  std::vector<double> waited(pace.ranks.size() * table.size(), kUnknown);
  size_t s = 0;
  std::map<int64_t, size_t> columns;
  for (const auto& [number, ranks] : table) {
    columns[number] = s;
    std::vector<double> lengths;
    for (const auto& [rank, budget] : ranks) {
      lengths.push_back(static_cast<double>(budget.total_ns()));
      waited[place(rank) * table.size() + s] = static_cast<double>(budget.exposed_ns);
    }
    pace.step_ns.push_back(Median(std::move(lengths)));
    ++s;
  }
  SetLateness(waited, sets, pace);
  // Stages of a pipeline wait in sends as well.
  (peers.empty() ? LimitByHostLag : SetShared)(rounds, columns, pace);
  return pace;
}

}  // namespace tacet
