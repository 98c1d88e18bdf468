// SPDX-License-Identifier: Apache-2.0
// Rounds from tools that measure operations without a timeline: NCCL Inspector and the Flight Recorder.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "analysis/timing/collective_match.h"
#include "analysis/timing/issue_rounds.h"

namespace tacet {
namespace {

// The beginning of a run is no sample of it: connections are made, memory is allocated, kernels are chosen.
int64_t WarmupSteps(int64_t steps) { return steps >= 6 ? std::max<int64_t>(3, steps / 10) : 1; }

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

// A host notices an operation as begun when it is issued, though the one before it still runs. On one communicator they
// run one after the other: it began when that one had ended. Empty where nothing is to be mended.
std::vector<Measurement> RunOneByOne(std::span<const Measurement> measurements) {
  const auto by_host = [](const Measurement& m) { return m.host_timed && m.start_wall_ns != kNoTime; };
  if (std::none_of(measurements.begin(), measurements.end(), by_host)) return {};
  std::vector<Measurement> out(measurements.begin(), measurements.end());
  std::map<std::tuple<uint64_t, Rank, int32_t>, std::vector<Measurement*>> by_rank;
  for (Measurement& m : out)
    if (!IsPointToPoint(m.op) && m.finish_wall_ns != kNoTime && m.start_wall_ns != kNoTime)
      by_rank[{m.comm, m.rank, m.group_rank.value}].push_back(&m);
  for (auto& [key, list] : by_rank) {
    std::stable_sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->finish_wall_ns < b->finish_wall_ns; });
    for (size_t i = 1; i < list.size(); ++i) {
      const int64_t before = list[i - 1]->finish_wall_ns;
      Measurement& m = *list[i];
      int64_t left = 0;
      if (!m.host_timed || m.duration_ns < 0 || m.start_wall_ns >= before ||
          __builtin_sub_overflow(m.finish_wall_ns, before, &left))
        continue;
      m.start_wall_ns = before;
      m.duration_ns = std::min(m.duration_ns, left);
    }
  }
  return out;
}

// Of what a rank said about an operation more than once the first counts.
void KeepFirstOfEach(std::vector<RoundMember>& members) {
  std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  members.erase(
      std::unique(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.rank == b.rank; }),
      members.end());
}

}  // namespace

void FinishRounds(std::vector<CollectiveRound>& rounds) {
  std::erase_if(rounds, [](const CollectiveRound& round) { return round.members.size() < 2; });
  for (CollectiveRound& round : rounds)
    std::sort(round.members.begin(), round.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const auto& a, const auto& b) { return FirstEnterOf(a) < FirstEnterOf(b); });
  MarkQueued(rounds);
  AssignPeriods(rounds);
  DropWarmup(rounds);
}

std::vector<CollectiveRound> MatchMeasurements(std::span<const Measurement> measured, std::span<const Group> groups) {
  const std::vector<Measurement> mended = RunOneByOne(measured);
  const std::span<const Measurement> measurements = mended.empty() ? measured : std::span<const Measurement>(mended);
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
    if (!rank.known()) continue;
    round.members.push_back({rank, m.enter_wall_ns, m.start_wall_ns, m.finish_wall_ns, m.duration_ns});
    round.members.back().enter_is_estimate = m.enter_is_estimate;
    ends.Fill(m.comm, round.members.back());
    ends.FillAlone(round.members.back());
  }
  std::vector<CollectiveRound> out;
  out.reserve(rounds.size());
  for (auto& [key, round] : rounds) {
    KeepFirstOfEach(round.members);
    out.push_back(std::move(round));
  }
  FinishRounds(out);
  return out;
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
  FinishRounds(out);
  return out;
}

}  // namespace tacet
