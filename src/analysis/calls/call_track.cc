// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_track.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace tacet {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

uint64_t HashText(std::string_view text) { return std::hash<std::string_view>()(text); }

bool HasName(const Group& group) { return !group.description.empty() && group.description != "undefined"; }

// Names compare ranks only where all groups have one: of NCCL's communicators those of ranks with a flight record do,
// and the others would seem to play other roles.
bool AllGroupsHaveNames(const Incident& incident, CallSource source) {
  std::vector<bool> used(incident.groups.size());
  for (const CallStream& stream : incident.streams) {
    if (stream.source != source) continue;
    for (const Call& call : stream.calls)
      if (call.group != GroupIndex::none) used[static_cast<uint32_t>(call.group)] = true;
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i] && !HasName(incident.groups[i])) return false;
  return true;
}

// Groups that mean the same on different ranks: by description and size; nameless ones by size and by the order in
// which the rank first uses them.
class GroupClasses {
 public:
  GroupClasses(const Incident& incident, const CallStream& stream, bool use_names)
      : incident_(incident), rank_(stream.rank), use_names_(use_names) {
    for (const Call& call : stream.calls) ClassOf(call.group);
  }
  uint64_t ClassOf(GroupIndex index) {
    if (index == GroupIndex::none) return 0;
    if (index != last_) {  // most calls are on the group of the call before
      last_class_ = FindClass(index);
      last_ = index;
    }
    return last_class_;
  }
  // Where in the group the rank stands.
  int64_t PlaceIn(GroupIndex index) {
    const auto [found, added] = places_.try_emplace(static_cast<uint32_t>(index), 0);
    if (added) found->second = incident_.groups[static_cast<uint32_t>(index)].IndexOf(rank_).value;
    return found->second;
  }

 private:
  uint64_t FindClass(GroupIndex index) {
    const auto [found, added] = classes_.try_emplace(static_cast<uint32_t>(index), 0);
    if (!added) return found->second;
    const Group& group = incident_.groups[static_cast<uint32_t>(index)];
    const auto size =
        static_cast<uint64_t>(group.members.empty() ? group.size : static_cast<int64_t>(group.members.size()));
    found->second =
        use_names_ && HasName(group) ? Mix(HashText(group.description), size) : Mix(size, 1000 + used_[size]++);
    return found->second;
  }

  const Incident& incident_;
  Rank rank_;
  bool use_names_;
  GroupIndex last_ = GroupIndex::none;
  uint64_t last_class_ = 0;
  std::unordered_map<uint32_t, uint64_t> classes_;
  std::unordered_map<uint32_t, int64_t> places_;
  std::map<uint64_t, uint64_t> used_;
};

// What a send or receive looks like depends on where the rank stands: the same call is the one to the next rank of the
// ring, around its end as well. Where calls go to everybody, as those of an all-to-all do in NCCL's log, their order is
// each rank's own, and only the direction counts.
class PeerReader {
 public:
  PeerReader(const Incident& incident, const CallStream& stream, GroupClasses& classes)
      : incident_(incident), stream_(stream), classes_(classes) {}

  uint64_t Distance(uint32_t at) {
    const Call& call = stream_.calls[at];
    if (at >= run_end_) ReadRun(at);
    if (to_everybody_) return 0;
    const int64_t size = SizeOf(call.group);
    const int64_t distance = int64_t{call.peer.value} - classes_.PlaceIn(call.group);
    return static_cast<uint64_t>((size > 0 && distance < 0 && distance + size > 0 ? distance + size : distance) +
                                 (1 << 20));
  }

 private:
  // Sends and receives of one group that follow each other.
  void ReadRun(uint32_t at) {
    const GroupIndex group = stream_.calls[at].group;
    const int64_t own = classes_.PlaceIn(group);
    peers_.clear();
    for (run_end_ = at; run_end_ < stream_.calls.size(); ++run_end_) {
      const Call& call = stream_.calls[run_end_];
      if (!IsPointToPoint(call.kind) || call.group != group) break;
      if (call.peer.value != own) peers_.insert(call.peer.value);
    }
    const int64_t size = SizeOf(group);
    to_everybody_ = size > 2 && static_cast<int64_t>(peers_.size()) >= size - 1;
  }

  int64_t SizeOf(GroupIndex index) const {
    const Group& group = incident_.groups[static_cast<uint32_t>(index)];
    return std::max<int64_t>(group.size, static_cast<int64_t>(group.members.size()));
  }

  const Incident& incident_;
  const CallStream& stream_;
  GroupClasses& classes_;
  uint32_t run_end_ = 0;
  bool to_everybody_ = false;
  std::unordered_set<int32_t> peers_;
};

// A box that had no room for an operation goes on behind it; the numbers show the hole. What comes after it cannot be
// lined up with other ranks.
class HoleWatch {
 public:
  bool IsBehindHole(const Call& call) {
    uint32_t& last = last_[{call.group, call.has(kPointToPoint)}];
    hole_ |= last != 0 && call.seq > last + 1;
    last = call.seq;
    return hole_;
  }

 private:
  std::map<std::pair<GroupIndex, bool>, uint32_t> last_;
  bool hole_ = false;
};

// Where a record was cut, its last sends and receives may be those of a batch whose closing entry is lost.
size_t CallsToCompare(const CallStream& stream) {
  size_t count = stream.calls.size();
  while (stream.cut && count > 0 && IsPointToPoint(stream.calls[count - 1].kind)) --count;
  return count;
}

// A batch is what its members are, in whatever order they were put into it.
uint64_t SymbolOfBatch(const CallStream& stream, uint32_t end, PeerReader& peers) {
  uint32_t first = end;
  while (first > 0 && stream.calls[first - 1].has(kCoalescedMember) &&
         stream.calls[first - 1].group == stream.calls[end].group)
    --first;
  uint64_t members = 0;
  for (uint32_t i = first; i < end; ++i) {
    const uint64_t kind = Mix(1, static_cast<uint64_t>(stream.calls[i].kind));
    members += IsPointToPoint(stream.calls[i].kind) ? Mix(kind, peers.Distance(i)) : kind;
  }
  return members;
}

// Graphs run when the GPU gets to them, which is no part of the program's order.
bool IsReplay(const Incident& incident, const Call& call) {
  return incident.groups[static_cast<uint32_t>(call.group)].replays_of != 0;
}

std::vector<Track> MakeTracks(const Incident& incident, CallSource source) {
  std::vector<Track> tracks;
  const bool use_names = source != CallSource::nccl_log || AllGroupsHaveNames(incident, source);
  for (const CallStream& stream : incident.streams) {
    if (stream.source != source || stream.stub || stream.only_active || !stream.rank.known() || stream.calls.empty())
      continue;
    Track track{&stream};
    GroupClasses classes(incident, stream, use_names);
    PeerReader peers(incident, stream, classes);
    HoleWatch holes;
    const size_t count = CallsToCompare(stream);
    for (uint32_t i = 0; i < count; ++i) {
      const Call& call = stream.calls[i];
      if (call.has(kCoalescedMember) || call.group == GroupIndex::none || IsReplay(incident, call)) continue;
      if (source == CallSource::black_box && holes.IsBehindHole(call)) break;
      track.calls.push_back(i);
      const uint64_t symbol = Mix(classes.ClassOf(call.group), static_cast<uint64_t>(call.kind));
      track.symbols.push_back(IsPointToPoint(call.kind) ? Mix(symbol, peers.Distance(i))
                              : call.has(kCoalescedEnd) ? Mix(symbol, SymbolOfBatch(stream, i, peers))
                                                        : symbol);
    }
    tracks.push_back(std::move(track));
  }
  return tracks;
}

// Records that lost their beginning are lined up on the most used kind of call: they start at the highest first number.
void LineUp(std::vector<Track>& tracks) {
  const bool all_from_start =
      std::all_of(tracks.begin(), tracks.end(), [](const Track& t) { return t.stream->from_start; });
  if (all_from_start) return;
  std::unordered_map<uint64_t, size_t> use;
  for (const Track& track : tracks)
    for (const uint64_t symbol : track.symbols) ++use[symbol];
  uint64_t anchor = 0;
  size_t most = 0;
  for (const auto& [symbol, count] : use)
    if (count > most) anchor = symbol, most = count;
  uint32_t from = 0;
  const auto first_seq = [&](const Track& track) {
    for (size_t i = 0; i < track.calls.size(); ++i)
      if (track.symbols[i] == anchor) return track.stream->calls[track.calls[i]].seq;
    return uint32_t{0};
  };
  for (const Track& track : tracks) from = std::max(from, first_seq(track));
  for (Track& track : tracks) {
    size_t cut = 0;
    while (cut < track.calls.size() &&
           !(track.symbols[cut] == anchor && track.stream->calls[track.calls[cut]].seq >= from))
      ++cut;
    track.calls.erase(track.calls.begin(), track.calls.begin() + static_cast<long>(cut));
    track.symbols.erase(track.symbols.begin(), track.symbols.begin() + static_cast<long>(cut));
  }
}

}  // namespace

std::vector<Track> CollectTracks(const Incident& incident, CallSource source) {
  std::vector<Track> tracks = MakeTracks(incident, source);
  LineUp(tracks);
  return tracks;
}

}  // namespace tacet
