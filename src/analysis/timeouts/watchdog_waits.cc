// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/watchdog_waits.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/rank_ranges.h"

namespace tacet {
namespace {

bool IsDefault(const Event& event) {
  return event.group_name == "0" || event.group_description == "default_pg" ||
         (event.kind == EventKind::dump_signal && event.group_name.empty());
}

// PyTorch sorts the members of a group: where rank 7 is number 7, ranks 0 to 6 are members, too. That holds only where
// the line tells its global rank beside its number in the group.
bool ReachesTheLastRank(const Incident& incident, const WatchdogGroup& group) {
  const std::vector<Rank> all = incident.AllRanks();
  if (all.empty()) return false;
  const auto process = incident.process_of.find(all.back());
  if (process == incident.process_of.end() || incident.processes[process->second].rank_certainty != Certainty::stated)
    return false;
  const auto is_last = [&](const auto& lines) {
    const auto line = lines.find(all.back());
    return line != lines.end() && line->second->group_rank.value == all.back().value;
  };
  return is_last(group.waits) || is_last(group.enqueued);
}

bool SharesItsName(const std::map<Rank, const Event*>& waits) {
  std::set<GroupRank> seen;
  return std::any_of(waits.begin(), waits.end(), [&](const auto& one) {
    return one.second->group_rank.known() && !seen.insert(one.second->group_rank).second;
  });
}

// Sends and receives count by themselves, and a coalesced group tells nothing of what is in it.
bool IsComparable(const Event& event) {
  return event.seq >= 0 && event.op != OpKind::unknown && event.op != OpKind::coalesced && !IsPointToPoint(event.op);
}

bool IsRaisedInCall(const Event& event) { return event.kind == EventKind::nccl_error && IsComparable(event); }

// NCCL's error in an operation is printed without the group; the watchdog's next line about that operation has it.
const Event* StatusOf(const Incident& incident, const Event& error) {
  for (const Event& event : incident.events)
    if (event.kind == EventKind::watchdog_status && event.rank == error.rank && event.seq == error.seq) return &event;
  return nullptr;
}

std::string CallWords(const Event& wait) { return std::string(Name(wait.op)) + " #" + std::to_string(wait.seq); }

// Files in which several ranks speak: then a rank between them without a word said nothing.
std::map<FileId, std::set<Rank>> RanksByFile(const Incident& incident) {
  std::map<FileId, std::set<Rank>> ranks;
  for (const Process& process : incident.processes)
    for (const FileId file : process.files)
      if (process.rank.known() && IsReadAs(incident.files[static_cast<uint32_t>(file)], "torch_log"))
        ranks[file].insert(process.rank);
  return ranks;
}

bool WasCollected(Rank rank, const std::map<FileId, std::set<Rank>>& by_file) {
  return std::any_of(by_file.begin(), by_file.end(), [&](const auto& file) {
    return file.second.contains(rank) || (*file.second.begin() < rank && rank < *file.second.rbegin());
  });
}

// All wait in one and the same operation of the whole job, and few say nothing.
void AddSilentRanks(const Incident& incident, const WatchdogGroup& group, const std::set<Rank>& waiting,
                    std::vector<ToldLaggard>& out) {
  if (!group.whole_job || group.waits.size() < 2) return;
  const Event& first = *group.waits.begin()->second;
  std::vector<Rank> waiters;
  for (const auto& [rank, wait] : group.waits) {
    if (wait->seq != first.seq || wait->op != first.op) return;
    waiters.push_back(rank);
  }
  const auto by_file = RanksByFile(incident);
  std::vector<Rank> silent;
  for (const Rank rank : incident.AllRanks()) {
    if (waiting.contains(rank)) continue;      // here or in another group: a victim
    if (!WasCollected(rank, by_file)) return;  // nobody knows what it had to say
    if (group.LastEnqueued(rank) < first.seq || !group.enqueued.contains(rank)) silent.push_back(rank);
  }
  // Whoever came late to the operation may be ended by the clean-up before its own limit is over: one silent rank among
  // several that wait is telling, two are not.
  if (silent.size() != 1 || waiters.size() < 3) return;
  for (const Rank rank : silent)
    out.push_back({rank, first.source,
                   "reports no timeout, while " + std::to_string(waiters.size()) + " ranks wait in " + CallWords(first),
                   waiters, GroupIndex::none});
}

// By its own counters it had not issued the operation when somebody's time was up in it, and waits in none of another
// group. It may time out itself later, in an operation behind that one.
bool CameTooLate(const WatchdogGroup& group, const std::vector<WatchdogGroup>& groups, Rank rank, int64_t seq) {
  const auto signal = group.at_signal.find(rank);
  if (signal == group.at_signal.end() || signal->second->As<WorkCounters>().last_enqueued >= seq) return false;
  if (group.LastEnqueued(rank) < seq) return false;
  if (const auto wait = group.waits.find(rank); wait != group.waits.end() && wait->second->seq < seq) return false;
  return std::none_of(groups.begin(), groups.end(),
                      [&](const WatchdogGroup& other) { return &other != &group && other.waits.contains(rank); });
}

// One rank alone waits in an operation that all others have completed and left: what it contributed was enough for
// them, and its own end of it does not finish. Its GPU stands still, or it issued something else than they did.
void AddLeftBehind(const Incident& incident, const WatchdogGroup& group, std::vector<ToldLaggard>& out) {
  if (group.waits.size() < 3 || !group.whole_job || group.waits.size() != incident.AllRanks().size()) return;
  const Event* front = nullptr;
  for (const auto& [rank, wait] : group.waits)
    if (!front || wait->seq < front->seq) front = wait;
  if (!front) return;
  if (!EndsForAllAtOnce(front->op)) return;
  std::vector<Rank> others;
  for (const auto& [rank, wait] : group.waits) {
    if (wait == front) continue;
    const auto line = group.enqueued.find(rank);
    if (wait->seq <= front->seq || line == group.enqueued.end() ||
        line->second->As<WorkCounters>().last_completed < front->seq)
      return;
    others.push_back(rank);
  }
  out.push_back(
      {front->rank, front->source,
       "waits in " + CallWords(*front) + ", which " + std::to_string(others.size()) + " others have completed", others,
       GroupIndex::none});
}

// A server's watchdog names no call: all of its processes stand in the same step, and each has the same limit.
void AddSilentWorker(const Incident& incident, std::vector<ToldLaggard>& out) {
  std::map<Rank, const Event*> waits;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::watchdog_timeout && event.rank.known() && event.seq < 0 &&
        event.op == OpKind::unknown && !event.peer.known())
      waits.try_emplace(event.rank, &event);
  if (waits.size() < 3 || waits.size() + 1 != incident.AllRanks().size()) return;
  std::vector<Rank> waiters;
  waiters.reserve(waits.size());
  for (const auto& [rank, wait] : waits) waiters.push_back(rank);
  const auto by_file = RanksByFile(incident);
  for (const Rank rank : incident.AllRanks())
    if (!waits.contains(rank) && WasCollected(rank, by_file))
      out.push_back({rank, waits.begin()->second->source,
                     "reports no timeout, while " + std::to_string(waiters.size()) + " others do", waiters,
                     GroupIndex::none});
}

bool IsAhead(const WatchdogGroup& group, const std::vector<Rank>& ranks, const std::vector<Rank>& others) {
  const auto known = [&](Rank rank) { return group.LastEnqueued(rank) >= 0; };
  if (!std::all_of(ranks.begin(), ranks.end(), known) || !std::all_of(others.begin(), others.end(), known))
    return false;
  const auto less = [&](Rank a, Rank b) { return group.LastEnqueued(a) < group.LastEnqueued(b); };
  return less(*std::max_element(others.begin(), others.end(), less),
              *std::min_element(ranks.begin(), ranks.end(), less));
}

// The line that tells this call of these ranks, a timeout before an error.
const Event* CallOf(const WatchdogGroup& group, const std::vector<Rank>& ranks, int64_t number) {
  for (const auto* calls : {&group.waits, &group.failed})
    for (const Rank rank : ranks)
      if (const auto call = calls->find(rank); call != calls->end() && call->second->seq == number) return call->second;
  return nullptr;
}

// A wait whose line about the group was lost belongs to the only group there is, where both count the same operation.
// Small numbers meet by chance.
constexpr int64_t kTellingNumber = 100;

void GiveGroups(std::map<std::string, WatchdogGroup>& groups) {
  const auto nameless = groups.find("");
  if (nameless == groups.end() || groups.size() != 2) return;
  WatchdogGroup& named = std::next(groups.begin())->second;  // "" sorts first
  if (!named.whole_job) return;
  std::set<int64_t> numbers;
  for (const auto& [rank, wait] : named.waits) numbers.insert(wait->seq);
  // Received a dump signal ... Last enqueued NCCL work: 8840: others have issued it, too.
  for (const auto& [rank, line] : named.enqueued) numbers.insert(line->As<WorkCounters>().last_enqueued);
  std::erase_if(nameless->second.waits, [&](const auto& one) {
    const auto& [rank, wait] = one;
    return wait->seq >= kTellingNumber && numbers.contains(wait->seq) && named.waits.try_emplace(rank, wait).second;
  });
  if (nameless->second.waits.empty() && nameless->second.enqueued.empty()) groups.erase(nameless);
}

}  // namespace

bool IsRefusedWork(const Event& event) {
  constexpr int64_t kInvalidUsage = 5;
  return event.kind == EventKind::nccl_error && event.As<NcclError>().code == kInvalidUsage && IsComparable(event);
}

bool HasEvenSizes(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::broadcast || kind == OpKind::reduce ||
         kind == OpKind::reduce_scatter || kind == OpKind::all_gather;
}

bool EndsForAllAtOnce(OpKind op) {
  return op == OpKind::all_reduce || op == OpKind::all_gather || op == OpKind::reduce_scatter;
}

int64_t ElementsOf(const Event& call) {
  return call.kind == EventKind::nccl_error ? call.As<NcclError>().elements : call.As<WatchdogTimeout>().elements;
}

int64_t WatchdogGroup::LastEnqueued(Rank rank) const {
  const auto found = enqueued.find(rank);
  return found == enqueued.end() ? -1 : found->second->As<WorkCounters>().last_enqueued;
}

std::vector<WatchdogGroup> ReadWatchdogGroups(const Incident& incident) {
  std::map<std::string, WatchdogGroup> groups;
  for (const Event& event : incident.events) {
    const bool wait = event.kind == EventKind::watchdog_timeout && IsComparable(event);
    const int64_t enqueued = event.As<WorkCounters>().last_enqueued;
    const bool status = event.kind == EventKind::watchdog_status && enqueued >= 0;
    const bool signal = event.kind == EventKind::dump_signal && enqueued >= 0;
    if (!event.rank.known() || (!wait && !status && !signal)) continue;
    WatchdogGroup& group = groups[IsDefault(event) ? "0" : event.group_name];
    group.whole_job |= IsDefault(event);
    if (wait) group.waits.try_emplace(event.rank, &event);
    if (status || signal) {
      const Event*& known = group.enqueued[event.rank];
      if (!known || known->As<WorkCounters>().last_enqueued < enqueued) known = &event;
    }
    if (signal) {
      const Event*& first = group.at_signal[event.rank];
      if (!first || first->As<WorkCounters>().last_enqueued > enqueued) first = &event;
    }
  }
  for (const Event& event : incident.events) {
    if (!event.rank.known() || !IsRaisedInCall(event)) continue;
    const Event* status = StatusOf(incident, event);
    // Where no status is left: a peer's end is no sign of what a rank issued, a refused call is.
    const auto only = groups.size() == 1 && IsRefusedWork(event) ? groups.begin() : groups.end();
    const auto group = status ? groups.find(IsDefault(*status) ? "0" : status->group_name) : only;
    if (group != groups.end()) group->second.failed.try_emplace(event.rank, &event);
  }
  for (auto& [name, group] : groups) group.whole_job |= ReachesTheLastRank(incident, group);
  GiveGroups(groups);
  std::vector<WatchdogGroup> out;
  for (auto& [name, group] : groups) {
    group.name = name;
    if (groups.size() == 1 && name.empty()) group.whole_job = true;
    if (!group.waits.empty() && !SharesItsName(group.waits)) out.push_back(std::move(group));
  }
  return out;
}

using Shapes = std::map<std::tuple<OpKind, int64_t>, std::vector<Rank>>;

// Where a call belongs among those of one number. One whose size is not told is of the only size of its operation.
static std::vector<Rank>& ShapeOf(const Event& call, Shapes& shapes) {
  const int64_t elements = HasEvenSizes(call.op) ? ElementsOf(call) : -1;
  const auto same = [&](const auto& shape) { return std::get<OpKind>(shape.first) == call.op; };
  if (elements < 0 && std::count_if(shapes.begin(), shapes.end(), same) == 1)
    return std::find_if(shapes.begin(), shapes.end(), same)->second;
  return shapes[{call.op, elements}];
}

std::vector<WatchdogDifference> FindWatchdogDifferences(const Incident& incident) {
  std::vector<WatchdogDifference> out;
  for (const WatchdogGroup& group : ReadWatchdogGroups(incident)) {
    std::map<int64_t, Shapes> by_number;
    // A rank issued what it failed in as surely as what it waited in.
    for (const auto* calls : {&group.waits, &group.failed})
      for (const auto& [rank, call] : *calls)
        if (calls == &group.waits || !group.waits.contains(rank) || group.waits.at(rank)->seq != call->seq)
          ShapeOf(*call, by_number[call->seq]).push_back(rank);
    for (auto& [number, shapes] : by_number) {
      if (shapes.size() != 2) continue;
      for (auto& [shape, ranks] : shapes) std::sort(ranks.begin(), ranks.end());
      auto usual = shapes.begin(), odd = std::next(usual);
      if (usual->second.size() < odd->second.size()) std::swap(usual, odd);
      const bool size = std::get<OpKind>(usual->first) == std::get<OpKind>(odd->first);
      out.push_back({size, usual->second.size() == odd->second.size(), CallOf(group, usual->second, number),
                     CallOf(group, odd->second, number), usual->second, odd->second});
      for (const auto* ranks : {&usual->second, &odd->second})
        for (const Rank rank : *ranks)
          if (!group.waits.contains(rank) || group.waits.at(rank)->seq != number)
            out.back().failed.push_back(group.failed.at(rank));
      out.back().odd_is_ahead = IsAhead(group, odd->second, usual->second);
      if (out.back().odd_is_ahead) out.back().ahead = group.enqueued.at(odd->second.front());
      for (const Rank rank : usual->second)
        out.back().others_enqueued = std::max(out.back().others_enqueued, group.LastEnqueued(rank));
    }
  }
  return out;
}

// "its peers waited in broadcast #33", "ranks 2,3 waited in broadcast #33 and rank 0 in all_reduce #35"
static std::string WaitsWords(const WatchdogGroup& group, const Event& front) {
  std::vector<std::pair<std::string, std::vector<Rank>>> calls{{CallWords(front), {}}};
  for (const auto& [rank, wait] : group.waits) {
    const std::string words = CallWords(*wait);
    auto at = std::find_if(calls.begin(), calls.end(), [&](const auto& one) { return one.first == words; });
    if (at == calls.end()) at = calls.insert(calls.end(), {words, {}});
    at->second.push_back(rank);
  }
  if (calls.size() == 1) return "its peers waited in " + calls.front().first;
  std::string text;
  for (size_t i = 0; i < calls.size(); ++i)
    text += std::string(i == 0                 ? ""
                        : i + 1 < calls.size() ? ", "
                                               : " and ") +
            (calls[i].second.size() == 1 ? "rank " : "ranks ") + RankRanges(calls[i].second) +
            (i == 0 ? " waited in " : " in ") + calls[i].first;
  return text;
}

std::vector<ToldLaggard> FindWatchdogLaggards(const Incident& incident) {
  std::vector<ToldLaggard> out;
  const std::vector<WatchdogGroup> groups = ReadWatchdogGroups(incident);
  std::set<Rank> waiting;
  for (const WatchdogGroup& group : groups)
    for (const auto& [rank, wait] : group.waits) waiting.insert(rank);
  for (const WatchdogGroup& group : groups) {
    const Event* front = nullptr;
    for (const auto& [rank, wait] : group.waits)
      if (!front || wait->seq < front->seq) front = wait;
    std::vector<Rank> waiters;
    for (const auto& [rank, wait] : group.waits) waiters.push_back(rank);
    const size_t before = out.size();
    for (const auto& [rank, last] : group.enqueued) {
      const bool late = CameTooLate(group, groups, rank, front->seq);
      const Event* line = late ? group.at_signal.at(rank) : last;
      const int64_t enqueued = line->As<WorkCounters>().last_enqueued;
      if (enqueued >= front->seq || (waiting.contains(rank) && !late)) continue;
      std::vector<Rank> others = waiters;
      std::erase(others, rank);
      out.push_back(
          {rank, line->source,
           "had enqueued work only up to #" + std::to_string(enqueued) + " while " + WaitsWords(group, *front),
           std::move(others), GroupIndex::none});
      out.back().not_issued = true;
      if (late) out.back().arrived = last;
    }
    if (out.size() == before) AddSilentRanks(incident, group, waiting, out);
    if (out.size() == before) AddLeftBehind(incident, group, out);
  }
  if (groups.empty()) AddSilentWorker(incident, out);
  // Of several that lag some may wait for the others in another group, with a limit that was not over yet.
  if (out.size() > 1) out.clear();
  return out;
}

}  // namespace tacet
