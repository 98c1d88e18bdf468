// SPDX-License-Identifier: Apache-2.0
// Rounds from tools that measure operations without a timeline: NCCL Inspector and the Flight Recorder.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "analysis/timing/collective_match.h"

namespace tacet {
namespace {

// Fewer steps than these tell little.
constexpr size_t kEnoughSteps = 12;

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

int64_t EnterOf(const CollectiveRound& round) {
  int64_t first = INT64_MAX;
  for (const RoundMember& m : round.members)
    if (m.enter_ns != kNoTime) first = std::min(first, m.enter_ns);
  return first;
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

// The lag by whose places these values are explained best; 1 where none does.
size_t FindPeriodOfValues(const std::vector<double>& values) {
  constexpr size_t kLongest = 256, kPeriods = 8;
  constexpr double kMinExplained = 0.5, kAsGood = 0.9;
  std::vector<double> explained;  // by lag 2, 3, ...
  for (size_t lag = 2; lag <= kLongest && lag * kPeriods <= values.size(); ++lag)
    explained.push_back(ExplainedByPlace(values, lag));
  if (explained.empty()) return 1;
  const double best = *std::max_element(explained.begin(), explained.end());
  if (best < kMinExplained) return 1;
  const auto first =
      std::find_if(explained.begin(), explained.end(), [&](double one) { return one >= kAsGood * best; });
  return static_cast<size_t>(first - explained.begin()) + 2;
}

double LogOfNs(int64_t ns) { return std::log(static_cast<double>(std::clamp<int64_t>(ns, 1'000, 60'000'000'000))); }

// Where all operations are alike (equal gradient buckets), what repeats are the host's pauses: a long one before the
// first operation of each step. Where the moments of issue are not recorded, it is how long that operation takes, in
// which the ranks wait for each other.
size_t FindPeriodOfTimes(const std::vector<const CollectiveRound*>& all) {
  constexpr size_t kSample = 8192;
  const std::span rounds = std::span(all).last(std::min(all.size(), kSample));
  std::vector<double> pauses, lengths;
  for (size_t i = 1; i < rounds.size(); ++i) {
    int64_t longest = 0;
    for (const RoundMember& m : rounds[i]->members) longest = std::max(longest, m.duration_ns);
    pauses.push_back(LogOfNs(EnterOf(*rounds[i]) - EnterOf(*rounds[i - 1])));
    lengths.push_back(LogOfNs(longest));
  }
  const size_t period = FindPeriodOfValues(pauses);
  return period > 1 ? period : FindPeriodOfValues(lengths);
}

// Which operation of a period is the first of a step: the one before which the host pauses longest.
size_t FindPhase(const std::vector<const CollectiveRound*>& rounds, size_t period) {
  std::vector<double> pause(period, 0);
  for (size_t i = 1; i < rounds.size(); ++i) {
    const int64_t gap = EnterOf(*rounds[i]) - EnterOf(*rounds[i - 1]);
    pause[i % period] += static_cast<double>(std::clamp<int64_t>(gap, 0, 60'000'000'000));
  }
  return static_cast<size_t>(std::max_element(pause.begin(), pause.end()) - pause.begin());
}

// The beginning of a run is no sample of it: connections are made, memory is allocated, kernels are chosen.
int64_t WarmupSteps(int64_t steps) { return steps >= 6 ? std::max<int64_t>(3, steps / 10) : 1; }

}  // namespace

namespace {

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
  for (const auto& [enter, round] : most) out.push_back(round);
  return out;
}

}  // namespace

// Steps are periods of the group with the most operations among the largest groups, as long as these are enough to
// tell; other groups fall into them by time. Where the operations of that group are all alike (the layers of a tensor
// group), steps are periods of what one rank does on all its groups.
void AssignPeriods(std::vector<CollectiveRound>& rounds) {
  using Rounds = std::vector<const CollectiveRound*>;
  std::map<GroupIndex, Rounds> by_group;
  for (const CollectiveRound& round : rounds)
    if (!IsPointToPoint(round.kind) && EnterOf(round) != INT64_MAX) by_group[round.group].push_back(&round);
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
  if (period == 1) period = FindPeriodOfTimes(*main);
  std::vector<int64_t> starts;
  for (size_t i = FindPhase(*main, period); i < main->size(); i += period) starts.push_back(EnterOf(*(*main)[i]));
  for (CollectiveRound& round : rounds) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), EnterOf(round));
    round.step = static_cast<int64_t>(after - starts.begin()) - 1;
  }
}

namespace {

void DropWarmup(std::vector<CollectiveRound>& rounds) {
  int64_t last = -1;
  for (const CollectiveRound& round : rounds) last = std::max(last, round.step);
  if (last < 0) return;
  const int64_t warmup = WarmupSteps(last + 1);
  std::erase_if(rounds, [&](const CollectiveRound& round) { return round.step < warmup; });
}

// Issued, or begun, while the operation before it was still going on.
void MarkQueued(std::vector<CollectiveRound>& rounds) {
  std::map<std::pair<GroupIndex, Rank>, const RoundMember*> before;
  for (CollectiveRound& round : rounds) {
    for (RoundMember& m : round.members) {
      const RoundMember*& last = before[{round.group, m.rank}];
      if (last && last->duration_ns >= 0 && !m.enter_is_estimate) {
        const int64_t begun = last->start_ns != kNoTime ? last->start_ns : last->enter_ns;
        // Starts are noticed by polling, up to milliseconds late.
        const int64_t slack = last->duration_ns / 20 + 1'000'000;
        const bool issued_early = m.enter_ns != kNoTime && begun != kNoTime && m.enter_ns < begun + last->duration_ns;
        const bool began_late =
            m.start_ns != kNoTime && begun != kNoTime && m.start_ns > begun + last->duration_ns + slack;
        m.queued |= issued_early && !began_late;
      }
      last = &m;
    }
  }
}

// When the operations of a communicator ended on a rank, sends and receives as well.
class EarlierEnds {
 public:
  explicit EarlierEnds(std::span<const Measurement> measurements) {
    for (const Measurement& m : measurements) {
      if (!m.rank.known() || m.start_wall_ns == kNoTime || m.duration_ns < 0) continue;
      ends_[{m.comm, m.rank}].push_back({m.start_wall_ns + m.duration_ns, IsPointToPoint(m.op)});
      runs_[m.rank].push_back({m.start_wall_ns, m.start_wall_ns + m.duration_ns});
    }
    for (auto& [key, ends] : ends_) std::sort(ends.begin(), ends.end());
    for (auto& [rank, runs] : runs_) {
      std::sort(runs.begin(), runs.end());
      for (size_t i = 1; i < runs.size(); ++i) runs[i].second = std::max(runs[i].second, runs[i - 1].second);
    }
  }

  // How long the rank had nothing to communicate before it began this.
  void FillAlone(RoundMember& member) const {
    const auto own = runs_.find(member.rank);
    if (own == runs_.end() || member.start_ns == kNoTime) return;
    const auto at = std::lower_bound(own->second.begin(), own->second.end(), std::pair(member.start_ns, INT64_MIN));
    if (at != own->second.begin()) member.alone_ns = std::max<int64_t>(0, member.start_ns - std::prev(at)->second);
  }

  void Fill(uint64_t comm, RoundMember& member) const {
    const auto own = ends_.find({comm, member.rank});
    if (own == ends_.end() || member.start_ns == kNoTime || member.enter_ns == kNoTime) return;
    const auto after = std::upper_bound(own->second.begin(), own->second.end(), End{member.start_ns + kSlackNs, true});
    // An operation that is shorter than the slack ends before it too, by this reckoning.
    const int64_t own_end = member.start_ns + member.duration_ns;
    for (auto at = after; at != own->second.begin();) {
      --at;
      if (at->ns == own_end) continue;
      member.idle_ns = std::max<int64_t>(0, member.start_ns - at->ns);
      // A rank comes to it when its sends and receives let it, and who was late in those is not known.
      member.queued = at->point_to_point && at->ns > member.enter_ns && member.idle_ns < kSlackNs;
      return;
    }
  }

 private:
  static constexpr int64_t kSlackNs = 1'000'000;
  struct End {
    int64_t ns;
    bool point_to_point;
    auto operator<=>(const End&) const = default;
  };
  std::map<std::pair<uint64_t, Rank>, std::vector<End>> ends_;
  std::map<Rank, std::vector<std::pair<int64_t, int64_t>>> runs_;  // begin, and the latest end of all up to here
};

std::vector<CollectiveRound> FinishRounds(std::vector<CollectiveRound> rounds) {
  std::erase_if(rounds, [](const CollectiveRound& round) { return round.members.size() < 2; });
  for (CollectiveRound& round : rounds)
    std::sort(round.members.begin(), round.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::stable_sort(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) { return EnterOf(a) < EnterOf(b); });
  MarkQueued(rounds);
  AssignPeriods(rounds);
  DropWarmup(rounds);
  return rounds;
}

}  // namespace

std::vector<CollectiveRound> MatchMeasurements(std::span<const Measurement> measurements,
                                               std::span<const Group> groups) {
  std::map<uint64_t, GroupIndex> group_of;
  for (uint32_t g = 0; g < groups.size(); ++g)
    if (groups[g].comm_id != 0) group_of[groups[g].comm_id] = static_cast<GroupIndex>(g);
  std::map<std::tuple<uint64_t, OpKind, int64_t>, CollectiveRound> rounds;
  const EarlierEnds ends(measurements);
  for (const Measurement& m : measurements) {
    if (m.seq < 0 || m.duration_ns < 0 || IsPointToPoint(m.op) || m.op == OpKind::unknown) continue;
    CollectiveRound& round = rounds[{m.comm, m.op, m.seq}];
    const auto group = group_of.find(m.comm);
    // A communicator that no other tool knows still tells its operations apart from those of others.
    round.group =
        group != group_of.end() ? group->second : static_cast<GroupIndex>(0x80000000u | static_cast<uint32_t>(m.comm));
    round.kind = m.op;
    round.seq = m.seq;
    round.bytes = m.bytes;
    round.group_size = m.comm_size;
    const Rank rank = m.rank.known() ? m.rank : Rank{m.group_rank.value};
    const bool known =
        std::any_of(round.members.begin(), round.members.end(), [&](const auto& other) { return other.rank == rank; });
    if (!rank.known() || known) continue;
    round.members.push_back({rank, m.enter_wall_ns, m.start_wall_ns, m.finish_wall_ns, m.duration_ns});
    round.members.back().enter_is_estimate = m.enter_is_estimate;
    ends.Fill(m.comm, round.members.back());
    ends.FillAlone(round.members.back());
  }
  std::vector<CollectiveRound> out;
  for (auto& [key, round] : rounds) out.push_back(std::move(round));
  return FinishRounds(std::move(out));
}

std::vector<CollectiveRound> MatchTimedCalls(const Incident& incident) {
  std::map<std::pair<GroupIndex, uint32_t>, CollectiveRound> rounds;
  std::set<std::pair<GroupIndex, uint32_t>> disputed;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::flight_recorder || !stream.rank.known()) continue;
    for (const Call& call : stream.calls) {
      if (call.duration_ms < 0 || call.group == GroupIndex::none) continue;
      if (call.has(kPointToPoint) || call.has(kCoalescedMember) || call.has(kEndedByAbort)) continue;
      const std::pair key{call.group, call.seq};
      CollectiveRound& round = rounds[key];
      const auto n = static_cast<int32_t>(incident.groups[static_cast<uint32_t>(call.group)].members.size());
      const int64_t bytes = OperationBytes(call.kind, call.in_elements, call.out_elements, call.type, n);
      if (!round.members.empty() && (round.kind != call.kind || round.bytes != bytes)) disputed.insert(key);
      round.group = call.group;
      round.kind = call.kind;
      round.type = call.type;
      round.seq = call.seq;
      round.bytes = bytes;
      round.group_size = n;
      const auto duration = static_cast<int64_t>(static_cast<double>(call.duration_ms) * 1e6);
      round.members.push_back({stream.rank, call.enter_wall_ns, kNoTime, kNoTime, duration});
    }
  }
  std::vector<CollectiveRound> out;
  for (auto& [key, round] : rounds)
    if (!disputed.count(key)) out.push_back(std::move(round));
  return FinishRounds(std::move(out));
}

}  // namespace tacet
