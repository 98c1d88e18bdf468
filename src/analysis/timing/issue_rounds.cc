// SPDX-License-Identifier: Apache-2.0
// Rounds from the moments in which hosts issued operations, for records whose GPU times are not to be believed: NCCL
// before 2.31 hands its profiler wrong times of kernels once a rank sends to and receives from one peer in a group, as
// an all-to-all does.
//   issued     rank 0: 0.0 ms   rank 1: 9.9 ms   rank 2: 0.1 ms     -> rank 0 waits 9.9 ms, rank 2 9.8 ms
#include "analysis/timing/issue_rounds.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace tacet {
namespace {

struct Issue {
  int64_t enter_ns = 0;
  OpKind kind = OpKind::unknown;
  int64_t seq = -1, bytes = -1;
  GroupRank peer;
};

// What one rank issued on one group.
struct RankIssues {
  std::vector<Issue> issues;
  bool from_start = false;
};

struct GroupIssues {
  int32_t size = -1;
  std::map<Rank, RankIssues> ranks;
};

using Issues = std::map<GroupIndex, GroupIssues>;

// A collective by kind and number; a batch of transfers by the collective before it and how many batches came between.
using RoundKey = std::tuple<OpKind, int64_t, size_t>;

struct Batch {
  std::set<std::pair<GroupRank, OpKind>> transfers;
  size_t Partners(GroupRank own) const {
    std::set<GroupRank> out;
    for (const auto& [peer, kind] : transfers)
      if (peer != own) out.insert(peer);
    return out.size();
  }
};

class IssueMatch {
 public:
  IssueMatch(const Incident& incident, Issues issues) : incident_(incident), issues_(std::move(issues)) {}

  IssueRounds Run() {
    IssueRounds out;
    for (auto& [index, group] : issues_)
      for (auto& [key, round] : RoundsOf(index, group)) {
        out.exchanges += std::get<2>(key) > 0;
        SplitByHost(round, out.rounds);
      }
    FinishRounds(out.rounds);
    for (CollectiveRound& round : out.rounds) {
      int64_t last = INT64_MIN;
      for (const RoundMember& m : round.members) last = std::max(last, m.enter_ns);
      for (RoundMember& m : round.members) m.start_ns = m.enter_ns, m.duration_ns = last - m.enter_ns;
    }
    return out;
  }

 private:
  using Rounds = std::map<RoundKey, CollectiveRound>;

  static Rounds RoundsOf(GroupIndex index, GroupIssues& group) {
    Rounds out;
    for (auto& [rank, own] : group.ranks) {
      std::stable_sort(own.issues.begin(), own.issues.end(),
                       [](const Issue& a, const Issue& b) { return a.enter_ns < b.enter_ns; });
      TakeRank(index, group.size, rank, own, out);
    }
    return out;
  }

  // Transfers that follow each other are of one exchange until one of them comes again. Only where a rank exchanges
  // with all others does nobody get away before everybody has come.
  static void TakeRank(GroupIndex index, int32_t size, Rank rank, const RankIssues& own, Rounds& out) {
    std::tuple<OpKind, int64_t> anchor{OpKind::unknown, -1};
    bool anchored = own.from_start;
    size_t batches = 0;
    Batch batch;
    int64_t begun = 0;
    const auto close = [&] {
      if (batch.transfers.empty()) return;
      ++batches;
      const auto others = static_cast<size_t>(std::max(size, 1)) - 1;
      if (anchored && others > 1 && batch.Partners({}) >= others)
        Join(index, size, rank, {begun, OpKind::all_to_all, -1, -1, {}},
             {std::get<0>(anchor), std::get<1>(anchor), batches}, out);
      batch.transfers.clear();
    };
    for (const Issue& one : own.issues) {
      if (!IsPointToPoint(one.kind)) {
        close();
        anchor = {one.kind, one.seq}, anchored = true, batches = 0;
        Join(index, size, rank, one, {one.kind, one.seq, 0}, out);
        continue;
      }
      if (batch.transfers.count({one.peer, one.kind})) close();
      if (batch.transfers.empty()) begun = one.enter_ns;
      batch.transfers.emplace(one.peer, one.kind);
    }
    close();
  }

  static void Join(GroupIndex index, int32_t size, Rank rank, const Issue& one, const RoundKey& key, Rounds& out) {
    CollectiveRound& round = out[key];
    const bool uneven = !round.members.empty() && round.bytes != one.bytes;
    round.group = index;
    round.kind = one.kind;
    round.seq = one.seq;
    round.bytes = uneven ? -1 : one.bytes;
    round.group_size = size;
    round.members.push_back({rank, one.enter_ns, kNoTime, kNoTime, 0});
  }

  // Clocks of hosts differ by as much as hosts are late: ranks of one host are compared.
  void SplitByHost(const CollectiveRound& round, std::vector<CollectiveRound>& out) {
    std::map<std::string_view, std::vector<RoundMember>> by_host;
    for (const RoundMember& m : round.members) {
      const auto process = incident_.process_of.find(m.rank);
      by_host[process != incident_.process_of.end() ? incident_.processes[process->second].host : std::string_view()]
          .push_back(m);
    }
    for (auto& [host, members] : by_host) {
      if (members.size() < 2) continue;
      CollectiveRound& own = out.emplace_back(round);
      own.group = parts_.try_emplace({round.group, host}, static_cast<GroupIndex>(parts_.size())).first->second;
      own.group_size = static_cast<int32_t>(members.size());
      own.members = std::move(members);
    }
  }

  const Incident& incident_;
  Issues issues_;
  std::map<std::pair<GroupIndex, std::string_view>, GroupIndex> parts_;  // a group on one host
};

}  // namespace

IssueRounds MatchIssues(const Incident& incident, CallSource source) {
  Issues issues;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != source || !stream.rank.known()) continue;
    for (const Call& call : stream.calls) {
      if (call.group == GroupIndex::none || call.enter_wall_ns == kNoTime || call.kind == OpKind::unknown) continue;
      const Group& known = incident.groups[static_cast<uint32_t>(call.group)];
      GroupIssues& group = issues[call.group];
      group.size = std::max<int32_t>(known.size, static_cast<int32_t>(known.members.size()));
      RankIssues& own = group.ranks[stream.rank];
      own.from_start = stream.from_start;
      own.issues.push_back({call.enter_wall_ns, call.kind, call.seq, call.Bytes(), call.peer});
    }
  }
  return IssueMatch(incident, std::move(issues)).Run();
}

IssueRounds MatchIssues(const Incident& incident, std::span<const Measurement> measurements) {
  Issues issues;
  for (const Measurement& m : measurements) {
    const Rank rank = m.rank.known() ? m.rank : Rank{m.group_rank.value};
    if (!rank.known() || m.enter_wall_ns == kNoTime || m.enter_is_estimate || m.op == OpKind::unknown) continue;
    GroupIssues& group = issues[static_cast<GroupIndex>(0x80000000u | static_cast<uint32_t>(m.comm))];
    group.size = m.comm_size;
    group.ranks[rank].issues.push_back({m.enter_wall_ns, m.op, m.seq, m.bytes, m.peer});
  }
  return IssueMatch(incident, std::move(issues)).Run();
}

Pace MeasurePaceOfIssues(const std::vector<CollectiveRound>& rounds, PaceSource source) {
  constexpr size_t kInQueue = 64;
  Pace pace = MeasurePace(rounds, source);
  std::map<int64_t, size_t> columns;
  for (const auto& [step, ns] : MeasureStepTimes(rounds)) columns.emplace(step, columns.size());
  struct Host {
    int64_t enter_ns = kNoTime;
    std::deque<int64_t> all_there;  // of its latest operations: when the last member had issued it
  };
  std::map<Rank, Host> hosts;
  std::map<Rank, size_t> rows;
  for (const Rank rank : pace.ranks) rows.emplace(rank, rows.size());
  std::vector<double> own(pace.late_ns.size(), 0);
  for (const CollectiveRound& round : rounds) {
    const auto column = columns.find(round.step);
    for (const RoundMember& m : round.members) {
      Host& host = hosts[m.rank];
      if (host.enter_ns != kNoTime && column != columns.end() && rows.count(m.rank)) {
        int64_t since = std::min(host.enter_ns, m.enter_ns);
        for (const int64_t there : host.all_there)
          if (there <= m.enter_ns) since = std::max(since, there);
        own[rows[m.rank] * pace.steps() + column->second] -= static_cast<double>(m.enter_ns - since);
      }
      host.enter_ns = m.enter_ns;
      host.all_there.push_back(m.enter_ns + m.duration_ns);
      if (host.all_there.size() > kInQueue) host.all_there.pop_front();
    }
  }
  SetLateness(own, FindPeers(rounds), pace);
  return pace;
}

}  // namespace tacet
