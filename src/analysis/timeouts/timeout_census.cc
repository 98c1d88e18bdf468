// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeouts/timeout_census.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

namespace tacet {
namespace {

using CallKey = std::tuple<std::string, OpKind, int64_t>;  // group, operation, number
using Holdings = std::map<CallKey, std::map<Rank, const Event*>>;

void Hold(Holdings& calls, CallKey key, const Event& event) {
  const Event*& held = calls[std::move(key)][event.rank];
  if (!held || (held->kind != EventKind::watchdog_timeout && event.kind == EventKind::watchdog_timeout)) held = &event;
}

// A line tells less than others do: no group, no operation, no number. It is of the one call that fits.
bool FitsInto(const CallKey& vague, const CallKey& full) {
  const auto& [group, op, seq] = vague;
  if (!group.empty() && group != std::get<0>(full)) return false;
  if (op == OpKind::unknown) return std::get<1>(full) != OpKind::unknown && (seq < 0 || seq == std::get<2>(full));
  return group.empty() && !std::get<0>(full).empty() && op == std::get<1>(full) && seq == std::get<2>(full);
}

void JoinVagueLines(Holdings& calls) {
  constexpr size_t kMostCalls = 2000;  // each is compared with all others
  if (calls.size() > kMostCalls) return;
  for (auto it = calls.begin(); it != calls.end();) {
    std::vector<Holdings::value_type*> into;
    for (auto& full : calls)
      if (&full != &*it && FitsInto(it->first, full.first)) into.push_back(&full);
    // Of several that fit it is, for each rank, the one in which that rank says itself that it is.
    if (into.size() > 1)
      std::erase_if(it->second, [&](const auto& line) {
        return std::count_if(into.begin(), into.end(),
                             [&](const auto* full) { return full->second.contains(line.first); }) == 1;
      });
    if (into.size() != 1 && !it->second.empty()) {
      ++it;
      continue;
    }
    if (into.size() != 1) {
      it = calls.erase(it);
      continue;
    }
    for (const auto& [rank, event] : it->second) into.front()->second.try_emplace(rank, event);
    it = calls.erase(it);
  }
}

std::set<Rank> HeardRanks(const Incident& incident) {
  std::set<Rank> heard;
  for (const Event& event : incident.events)
    if (event.rank.known()) heard.insert(event.rank);
  for (const auto& [rank, process] : incident.process_of)
    if (!incident.processes[process].files.empty()) heard.insert(rank);
  return heard;
}

// Of a rank whose line tells nothing of the elements another's line of the same call does.
int64_t GroupSizeOf(const Holdings::value_type& call) {
  for (const auto& [rank, event] : call.second)
    if (const int64_t size = tacet::GroupSizeOf(*event); size > 0) return size;
  return -1;
}

// Of equal ones that of the rank whose line is the first, and of that rank's the one that it issued first.
const Holdings::value_type& MostCommon(const Holdings& calls, Rank first) {
  return *std::max_element(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return std::tuple(a.second.size(), a.second.contains(first), -std::get<2>(a.first)) <
           std::tuple(b.second.size(), b.second.contains(first), -std::get<2>(b.first));
  });
}

// Work that was issued ahead times out as well: a rank stands where its lowest number is, unless most stand elsewhere.
std::map<Rank, const Holdings::value_type*> PlaceRanks(const Holdings& calls, const Holdings::value_type& common) {
  std::map<Rank, const Holdings::value_type*> places;
  for (const auto& [rank, event] : common.second) places.emplace(rank, &common);
  for (const auto& call : calls)
    for (const auto& [rank, event] : call.second) {
      const auto [place, is_new] = places.emplace(rank, &call);
      const int64_t seq = std::get<2>(call.first), known = std::get<2>(place->second->first);
      if (!is_new && place->second != &common && seq >= 0 && (known < 0 || seq < known)) place->second = &call;
    }
  return places;
}

// The watchdog only says COALESCED; a flight record of the same rank says of what.
OpKind RecordedKind(const Incident& incident, const TimedOutCall& told) {
  std::set<OpKind> kinds;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::flight_recorder ||
        !std::binary_search(told.ranks.begin(), told.ranks.end(), stream.rank))
      continue;
    for (const Call& call : stream.calls)
      if (call.seq == told.seq && call.kind != OpKind::unknown && call.kind != OpKind::coalesced &&
          !IsPointToPoint(call.kind))
        kinds.insert(call.kind);
  }
  return kinds.size() == 1 ? *kinds.begin() : told.op;
}

// Nobody completes one of these before all members have issued it. Who has completed what another one waits in has
// most likely issued something else there.
void FindCompleted(const Incident& incident, TimeoutCensus& census) {
  const TimedOutCall* lowest = nullptr;
  for (const TimedOutCall& call : census.calls)
    if (call.seq >= 0 && call.group == census.calls.front().group && (!lowest || call.seq < lowest->seq))
      lowest = &call;
  if (!lowest || lowest->group.empty() ||
      (lowest->op != OpKind::all_reduce && lowest->op != OpKind::all_gather && lowest->op != OpKind::reduce_scatter))
    return;
  std::set<Rank> completed;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::watchdog_status && event.rank.known() && event.group_name == lowest->group &&
        event.As<WorkCounters>().last_completed >= lowest->seq &&
        !std::binary_search(lowest->ranks.begin(), lowest->ranks.end(), event.rank)) {
      completed.insert(event.rank);
      if (!census.proof_of_completed) census.proof_of_completed = &event;
    }
  census.completed.assign(completed.begin(), completed.end());
}

// Members of one group by their number in it, as their lines tell it.
std::map<GroupRank, Rank> MembersOf(const Incident& incident, const std::string& group) {
  std::map<GroupRank, Rank> members;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::watchdog_timeout && event.kind != EventKind::watchdog_status) continue;
    if (!event.rank.known() || !event.group_rank.known() || event.group_name != group) continue;
    const auto [known, is_new] = members.emplace(event.group_rank, event.rank);
    if (!is_new && known->second != event.rank) return {};  // several groups of one name
  }
  const bool sorted =
      std::is_sorted(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return sorted ? members : std::map<GroupRank, Rank>{};
}

// PyTorch sorts the members of a group: below the one with number 0 there is none, and none between two whose numbers
// follow each other.
bool IsOutside(Rank rank, const std::map<GroupRank, Rank>& members) {
  int32_t before = -1;  // the number of the member before
  for (const auto& [number, member] : members) {
    if (rank < member) return number.value == before + 1;
    before = number.value;
  }
  return false;
}

void SetStrangersAside(const Incident& incident, TimeoutCensus& census) {
  std::set<std::string> names;
  for (const TimedOutCall& call : census.calls) names.insert(call.group);
  if (names.contains("")) return;
  std::vector<std::map<GroupRank, Rank>> groups;
  for (const std::string& name : names) groups.push_back(MembersOf(incident, name));
  const auto strangers = std::stable_partition(census.unheard.begin(), census.unheard.end(), [&](Rank rank) {
    return !std::all_of(groups.begin(), groups.end(), [&](const auto& members) { return IsOutside(rank, members); });
  });
  census.outside.assign(strangers, census.unheard.end());
  census.unheard.erase(strangers, census.unheard.end());
}

// Whoever waits itself is not waited for, whatever bar it draws.
void FindBar(TimeoutCensus& census) {
  for (const TimedOutCall& call : census.calls) {
    const std::string& bar = call.first->As<WatchdogTimeout>().bar;
    if (bar.empty()) continue;
    census.bar_ranks = call.first->ranks;
    std::erase_if(census.bar_ranks, [&](Rank rank) { return census.Of(rank) != nullptr; });
    if (census.bar_ranks.empty() && !call.first->ranks.empty()) return;
    census.bar = bar;
    return;
  }
}

}  // namespace

// NCCL's lines tell host, process and device of whoever writes them.
std::vector<Subject> NamelessProcesses(const Incident& incident) {
  std::vector<Subject> found;
  for (const Process& process : incident.processes)
    if (!process.rank.known() && !process.host.empty() && process.pid >= 0 && !process.files.empty())
      found.push_back({{}, process.host, process.pid, process.device, -1});
  return found;
}

int64_t GroupSizeOf(const Event& timeout) {
  const auto& told = timeout.As<WatchdogTimeout>();
  const bool gathers = timeout.op == OpKind::all_gather;
  if (!gathers && timeout.op != OpKind::reduce_scatter) return -1;
  const int64_t part = gathers ? told.elements : told.elements_out, whole = gathers ? told.elements_out : told.elements;
  return part > 0 && whole > part && whole % part == 0 ? whole / part : -1;
}

bool IsLikeABarrier(const Event& timeout) {
  return timeout.op == OpKind::all_reduce && timeout.As<WatchdogTimeout>().elements == 1;
}

bool IsFoundLate(const Event& timeout) {
  constexpr int64_t kMinuteMs = 60'000;
  const auto& told = timeout.As<WatchdogTimeout>();
  return told.timeout_ms > 0 && told.elapsed_ms - told.timeout_ms > kMinuteMs &&
         told.elapsed_ms / 3 > told.timeout_ms / 2;
}

const TimedOutCall* TimeoutCensus::Of(Rank rank) const {
  for (const TimedOutCall& call : calls)
    if (std::binary_search(call.ranks.begin(), call.ranks.end(), rank)) return &call;
  return nullptr;
}

TimeoutCensus CountTimeouts(const Incident& incident) {
  Holdings calls;
  Rank first;
  for (const Event& event : incident.events) {
    const bool told = event.kind == EventKind::watchdog_timeout;
    // PyTorch: "Exception (either an error or timeout) detected by watchdog at work: 1580".
    const bool found = event.kind == EventKind::watchdog_status && event.seq >= 0;
    if (!event.rank.known() || (!told && !found)) continue;
    if (told && !first.known()) first = event.rank;
    Hold(calls, {event.group_name, event.op, event.seq}, event);
  }
  TimeoutCensus census;
  if (!first.known()) return census;  // nobody says that it was a timeout
  JoinVagueLines(calls);
  const auto& common = MostCommon(calls, first);
  std::map<const Holdings::value_type*, size_t> index;
  for (const auto& [rank, call] : PlaceRanks(calls, common)) {
    const auto [at, is_new] = index.emplace(call, census.calls.size());
    if (is_new) {
      const auto& [group, op, seq] = call->first;
      census.calls.push_back({group, op, seq, {}, nullptr, GroupSizeOf(*call)});
    }
    TimedOutCall& one = census.calls[at->second];
    const Event* event = call->second.at(rank);
    one.ranks.push_back(rank);
    if (one.name.empty()) one.name = event->group_description;
    if (!one.first || (one.first->kind != EventKind::watchdog_timeout && event->kind == EventKind::watchdog_timeout))
      one.first = event;
  }
  std::stable_sort(census.calls.begin(), census.calls.end(),
                   [](const TimedOutCall& a, const TimedOutCall& b) { return a.ranks.size() > b.ranks.size(); });
  const auto front = std::find_if(census.calls.begin(), census.calls.end(), [&](const TimedOutCall& call) {
    return std::tuple(call.group, call.op, call.seq) == common.first;
  });
  std::rotate(census.calls.begin(), front, std::next(front));
  for (TimedOutCall& call : census.calls)
    if (call.op == OpKind::coalesced) call.op = RecordedKind(incident, call);
  std::set<Rank> heard = HeardRanks(incident);
  const std::vector<Rank> all = incident.AllRanks();
  // Lines that a rank marks as its own, whatever they say.
  std::set<Rank> marked;
  for (const LogOutline& outline : incident.outlines)
    for (const int32_t rank : outline.ranks) marked.insert(Rank{rank});
  for (const Rank rank : marked)
    if (std::binary_search(all.begin(), all.end(), rank) && heard.insert(rank).second) census.printing.push_back(rank);
  census.heard = heard.size();
  census.unheard = all;
  std::erase_if(census.unheard, [&](Rank rank) { return heard.contains(rank); });
  SetStrangersAside(incident, census);
  census.nameless = NamelessProcesses(incident);
  FindCompleted(incident, census);
  FindBar(census);
  return census;
}

}  // namespace tacet
