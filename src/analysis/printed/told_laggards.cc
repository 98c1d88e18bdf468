// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/told_laggards.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/timeouts/watchdog_waits.h"

namespace tacet {
namespace {

constexpr size_t kKinds = sizeof(LaunchCounts::counts) / sizeof(int64_t);

struct CommRank {
  Rank rank;  // unknown: of many that the report does not name
  const LaunchCounts* counts = nullptr;
  int8_t moved = -1;  // since the answer before, see LaunchCounts::moved
};

// Answers in files of their own are told apart by their times alone: two files may hold one answer.
CommRank LatestOf(Rank rank, std::vector<const LaunchCounts*> answers) {
  constexpr int64_t kApart = 2'000'000'000;  // their clock shows seconds
  CommRank latest{rank, answers.back(), answers.back()->moved};
  if (std::any_of(answers.begin(), answers.end(), [](const auto* one) { return one->wall_ns == kNoTime; }))
    return latest;
  std::stable_sort(answers.begin(), answers.end(),
                   [](const auto* a, const auto* b) { return a->wall_ns < b->wall_ns; });
  const LaunchCounts& now = *answers.back();
  latest = {rank, &now, now.moved};
  const auto before = std::find_if(answers.rbegin(), answers.rend(),
                                   [&](const auto* one) { return now.wall_ns - one->wall_ns >= kApart; });
  if (latest.moved >= 0 || before == answers.rend()) return latest;
  const bool more = !std::equal(std::begin(now.counts), std::end(now.counts), std::begin((*before)->counts)) ||
                    now.all_kinds != (*before)->all_kinds;
  latest.moved = more ? 1 : 0;
  return latest;
}

// The latest answer for every rank of every communicator; those of many ranks behind them.
std::map<GroupIndex, std::vector<CommRank>> LatestAnswers(const Incident& incident) {
  std::map<uint64_t, GroupIndex> group_of;
  for (uint32_t i = 0; i < incident.groups.size(); ++i)
    if (incident.groups[i].comm_id != 0) group_of.emplace(incident.groups[i].comm_id, static_cast<GroupIndex>(i));
  std::map<GroupIndex, std::map<Rank, std::vector<const LaunchCounts*>>> answers;
  std::map<GroupIndex, std::vector<CommRank>> crowds;
  for (const LaunchCounts& counts : incident.launch_counts) {
    const auto group = group_of.find(counts.comm);
    if (group == group_of.end() || !counts.responsive) continue;
    const auto& members = incident.groups[static_cast<uint32_t>(group->second)].members;
    if (!counts.group_rank.known()) {
      if (counts.ranks > 1) crowds[group->second].push_back({Rank{}, &counts, counts.moved});
      continue;
    }
    if (static_cast<size_t>(counts.group_rank.value) >= members.size()) continue;
    const Rank rank = members[static_cast<size_t>(counts.group_rank.value)];
    if (rank.known()) answers[group->second][rank].push_back(&counts);
  }
  std::map<GroupIndex, std::vector<CommRank>> out;
  for (const auto& [group, ranks] : answers) {
    for (const auto& [rank, own] : ranks) out[group].push_back(LatestOf(rank, own));
    for (const CommRank& crowd : crowds[group]) out[group].push_back(crowd);
  }
  return out;
}

// -1 where it is not counted. Reports before NCCL 2.26 tell no kinds apart.
int64_t CountOfKind(const LaunchCounts& counts, size_t kind) {
  return kind < kKinds ? counts.counts[kind] : counts.all_kinds;
}

SourceRef PlaceOfKind(const LaunchCounts& counts, size_t kind) {
  if (kind >= kKinds || counts.lines[kind] == 0) return counts.source;
  return {counts.source.file, counts.lines[kind], counts.offsets[kind]};
}

// Who has launched as many as anybody: those that are named, and all that are not, where the many have.
std::vector<Rank> FrontOf(const Incident& incident, GroupIndex group, const std::vector<CommRank>& ranks, size_t kind,
                          int64_t most) {
  std::vector<Rank> front;
  std::set<Rank> named;
  bool crowd = false;
  for (const CommRank& one : ranks) {
    const bool leads = CountOfKind(*one.counts, kind) == most;
    if (one.rank.known()) named.insert(one.rank);
    if (leads && one.rank.known()) front.push_back(one.rank);
    crowd |= leads && !one.rank.known();
  }
  if (crowd)
    for (const Rank rank : incident.groups[static_cast<uint32_t>(group)].members)
      if (rank.known() && !named.contains(rank)) front.push_back(rank);
  std::sort(front.begin(), front.end());
  return front;
}

void AddFromCounts(const Incident& incident, std::map<Rank, ToldLaggard>& behind, std::set<Rank>& ahead) {
  for (const auto& [group, ranks] : LatestAnswers(incident)) {
    for (size_t kind = 0; kind <= kKinds; ++kind) {
      int64_t most = -1, least = INT64_MAX;
      bool moved = false, asked_once = false;
      for (const CommRank& one : ranks) {
        const int64_t count = CountOfKind(*one.counts, kind);
        if (count < 0) continue;
        most = std::max(most, count);
        least = std::min(least, count);
        moved |= one.moved > 0;
        asked_once |= one.moved < 0;
      }
      if (most <= 0 || least == most) continue;
      const std::vector<Rank> front = FrontOf(incident, group, ranks, kind, most);
      ahead.insert(front.begin(), front.end());
      for (const CommRank& one : ranks) {
        const int64_t count = CountOfKind(*one.counts, kind);
        if (count < 0 || count == most || !one.rank.known()) continue;
        const std::string name(kind < kKinds ? Name(static_cast<OpKind>(kind)) : "operations");
        ToldLaggard laggard{one.rank, PlaceOfKind(*one.counts, kind),
                            "has launched " + std::to_string(count) + " " + name +
                                (kind < kKinds ? " operations" : "") + " where its peers launched " +
                                std::to_string(most),
                            front, group};
        laggard.stands = !moved && !asked_once;
        if (laggard.stands) laggard.words += "; none of them has launched anything since the previous report";
        laggard.momentary = (asked_once || moved) && most - count == 1;  // it may be on its way
        behind.try_emplace(one.rank, std::move(laggard));
      }
    }
  }
}

}  // namespace

ToldLead FindToldLead(const Incident& incident) {
  ToldLead lead;
  for (const auto& [group, ranks] : LatestAnswers(incident)) {
    for (size_t kind = 0; kind <= kKinds && !lead; ++kind) {
      const CommRank* crowd = nullptr;
      std::vector<Rank> leaders;
      int64_t most = -1;
      for (const CommRank& one : ranks) most = std::max(most, CountOfKind(*one.counts, kind));
      bool moved = false, asked_once = false;
      for (const CommRank& one : ranks) {
        const int64_t count = CountOfKind(*one.counts, kind);
        if (count < 0) continue;
        moved |= one.moved > 0;
        asked_once |= one.moved < 0;
        if (count == most && one.rank.known()) leaders.push_back(one.rank);
        if (count < most && !one.rank.known() && (!crowd || one.counts->ranks > crowd->counts->ranks)) crowd = &one;
      }
      if (!crowd || leaders.empty()) continue;
      lead = {std::move(leaders),
              crowd->counts->ranks,
              most,
              CountOfKind(*crowd->counts, kind),
              std::string(kind < kKinds ? Name(static_cast<OpKind>(kind)) : "operations"),
              PlaceOfKind(*crowd->counts, kind),
              !moved && !asked_once};
    }
  }
  return lead;
}

namespace {

// Who joined, as the report lists them, and who prints it; whom the report names waits for nobody.
std::vector<Rank> WaitersOf(const Event& report) {
  std::set<Rank> waiters(report.As<DesyncReport>().waiting.begin(), report.As<DesyncReport>().waiting.end());
  if (report.rank.known()) waiters.insert(report.rank);
  for (const Rank rank : report.ranks) waiters.erase(rank);
  return {waiters.begin(), waiters.end()};
}

// Rank 0 asks the others one by one, by their numbers: those below the first that it names have answered. The others
// wait for rank 0's answer, and say that they reached the barrier when it leaves.
std::vector<Rank> BarrierWaiters(const Incident& incident, const Event& report) {
  std::set<Rank> waiters;
  const Rank first = *std::min_element(report.ranks.begin(), report.ranks.end());
  for (const Rank rank : incident.AllRanks())
    if (rank < first) waiters.insert(rank);
  if (report.As<BarrierFailure>().all_listed)
    for (const auto& [rank, process] : incident.process_of) waiters.insert(rank);
  for (const Event& event : incident.events)
    if (event.kind == EventKind::monitored_barrier_failed && event.ranks.empty() && event.rank.known())
      waiters.insert(event.rank);
  if (report.rank.known()) waiters.insert(report.rank);
  for (const Rank rank : report.ranks) waiters.erase(rank);
  return {waiters.begin(), waiters.end()};
}

// HCCL tells which rank a wait was for: "has not received the Notify record from remote rank: [3]". In a ring each
// names its neighbour, who waits as well: only one who is waited for and does not wait itself made the others wait.
void AddFromRemoteRanks(const Incident& incident, std::map<Rank, ToldLaggard>& behind) {
  std::set<Rank> waiting, named;
  const Event* first = nullptr;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::watchdog_timeout || !event.rank.known()) continue;
    waiting.insert(event.rank);
    if (!event.peer.known()) continue;
    named.insert(event.peer);
    if (!first) first = &event;
  }
  for (const Rank rank : waiting) named.erase(rank);
  // What one rank says alone may be of a neighbour whose output is not here.
  if (!first || named.size() != 1 || waiting.size() < 2) return;
  const Rank rank = *named.begin();
  behind.try_emplace(rank, ToldLaggard{rank, first->source,
                                       "is named as the one that " + std::to_string(waiting.size()) +
                                           " ranks wait for, and reports no timeout itself",
                                       std::vector<Rank>(waiting.begin(), waiting.end())});
}

// Horovod lists those whose tensors are ready, and leaves the others to be concluded.
std::string ReportWords(const Event& event) {
  if (event.kind == EventKind::monitored_barrier_failed) return "did not reach the monitored barrier";
  const auto& report = event.As<DesyncReport>();
  if (!report.waiting.empty())
    return report.tensor.empty() ? "did not join, according to PyTorch's desync report"
                                 : "is missing from the list of ready ranks";
  return "is named as missing or behind";
}

}  // namespace

std::vector<ToldLaggard> FindToldLaggards(const Incident& incident) {
  std::map<Rank, ToldLaggard> behind;
  std::set<Rank> ahead;
  AddFromCounts(incident, behind, ahead);
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::desync_report && event.kind != EventKind::monitored_barrier_failed) continue;
    if (event.ranks.empty()) continue;
    const bool barrier = event.kind == EventKind::monitored_barrier_failed;
    const std::vector<Rank> waiters = barrier ? BarrierWaiters(incident, event) : WaitersOf(event);
    for (const Rank rank : event.ranks)
      behind.try_emplace(rank, ToldLaggard{.rank = rank,
                                           .source = event.source,
                                           .words = ReportWords(event),
                                           .waiters = waiters,
                                           .not_issued = barrier});
  }
  AddFromRemoteRanks(incident, behind);
  for (ToldLaggard& laggard : FindWatchdogLaggards(incident)) behind.try_emplace(laggard.rank, std::move(laggard));
  std::vector<ToldLaggard> out;
  for (auto& [rank, laggard] : behind)
    if (!ahead.contains(rank)) out.push_back(std::move(laggard));
  return out;
}

}  // namespace tacet
