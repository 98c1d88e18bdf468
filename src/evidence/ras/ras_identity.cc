// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_identity.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace tacet {
namespace {

using SpeakerMap = std::map<std::pair<std::string_view, int64_t>, uint32_t>;

std::optional<uint32_t> SpeakerOf(const LaunchCounts& counts, const SpeakerMap& speakers) {
  const auto found = speakers.find({counts.host, counts.pid});
  if (found == speakers.end() || !counts.group_rank.known()) return std::nullopt;
  return found->second;
}

// Where every process has its rank, every communicator has its members. One that holds the whole job numbers its ranks
// as the job does, although the report may name only those that differ from the others.
void NameMembers(const SpeakerMap& speakers, int32_t whole_job, Fragment& out) {
  std::map<uint64_t, std::map<int32_t, Rank>> members;
  for (const LaunchCounts& counts : out.launch_counts) {
    const auto speaker = SpeakerOf(counts, speakers);
    if (speaker && out.speakers[*speaker].rank.known())
      members[counts.comm].emplace(counts.group_rank.value, out.speakers[*speaker].rank);
  }
  // A report of a few lines may claim any number of ranks.
  uint64_t room = 65'536 + out.bytes.total;
  for (Group& group : out.groups) {
    const auto& known = members[group.comm_id];
    if (group.size == whole_job && static_cast<uint64_t>(whole_job) <= room && !known.empty()) {
      room -= static_cast<uint64_t>(whole_job);
      for (int32_t rank = 0; rank < whole_job; ++rank) group.members.push_back({rank});
      continue;
    }
    if (known.empty() || static_cast<int64_t>(known.size()) != group.size || known.rbegin()->first >= group.size)
      continue;
    for (const auto& [place, rank] : known) group.members.push_back(rank);
  }
}

int64_t AddUp(int64_t sum, int64_t more) { return sum + std::clamp<int64_t>(more, 0, INT64_MAX - sum); }

// -1 where nothing was counted.
int64_t Launched(const LaunchCounts& counts) {
  int64_t sum = counts.all_kinds;
  for (const int64_t count : counts.counts)
    if (count >= 0) sum = AddUp(std::max<int64_t>(sum, 0), count);
  return sum;
}

}  // namespace

// A communicator's rank is the job's rank where that communicator holds every process the report names. Several such
// communicators must agree, and a process that speaks for two ranks has none of its own.
void NameRasRanks(int64_t job_gpus, int32_t largest_row, Fragment& out) {
  SpeakerMap speakers;
  for (uint32_t i = 0; i < out.speakers.size(); ++i)
    speakers.emplace(std::pair(std::string_view(out.speakers[i].host), out.speakers[i].pid), i);
  int32_t largest = largest_row;
  for (const LaunchCounts& counts : out.launch_counts) largest = std::max(largest, counts.comm_size);
  const int64_t processes = job_gpus > 0 ? job_gpus : static_cast<int64_t>(out.speakers.size());
  if (largest < 1 || processes != largest) return;
  std::map<uint32_t, int32_t> rank_of;
  std::map<int32_t, uint32_t> taken;
  for (const LaunchCounts& counts : out.launch_counts) {
    const auto speaker = SpeakerOf(counts, speakers);
    if (counts.comm_size != largest || !speaker) continue;
    const int32_t rank = counts.group_rank.value;
    if (rank_of.try_emplace(*speaker, rank).first->second != rank) return;
    if (taken.try_emplace(rank, *speaker).first->second != *speaker) return;
  }
  for (const auto& [speaker, rank] : rank_of) {
    out.speakers[speaker].rank = {rank};
    out.speakers[speaker].rank_certainty = Certainty::stated;
    out.speakers[speaker].world_size = largest;
  }
  NameMembers(speakers, largest, out);
}

void CompareRasAnswers(const std::vector<RasRecord>& records, uint32_t before, Fragment& out) {
  std::map<std::pair<uint64_t, int32_t>, int64_t> launched;
  std::set<std::tuple<uint64_t, OpKind, int64_t>> shared;  // of many ranks that are not named one by one
  for (const RasRecord& record : records) {
    if (record.answer != before) continue;
    if (record.kind == RasKind::rank_counts) {
      int64_t sum = 0;
      for (const RasCount& count : record.counts) sum = AddUp(sum, count.launched);
      launched[{record.comm, record.rank}] = sum;
    } else if (record.kind == RasKind::rank_launched) {
      int64_t& sum = launched[{record.comm, record.rank}];
      sum = AddUp(sum, record.value);
    } else if (record.kind == RasKind::ranks_launched) {
      shared.emplace(record.comm, ParseOpKind(record.op), record.value);
    }
  }
  for (LaunchCounts& counts : out.launch_counts) {
    const int64_t now = Launched(counts);
    if (now < 0) continue;
    if (!counts.group_rank.known()) {
      bool same = counts.all_kinds >= 0 && shared.contains({counts.comm, OpKind::unknown, counts.all_kinds});
      for (size_t kind = 0; kind < std::size(counts.counts); ++kind)
        same |=
            counts.counts[kind] >= 0 && shared.contains({counts.comm, static_cast<OpKind>(kind), counts.counts[kind]});
      if (!shared.empty()) counts.moved = !same;
      continue;
    }
    const auto found = launched.find({counts.comm, counts.group_rank.value});
    if (found != launched.end()) counts.moved = now > found->second;
  }
}

}  // namespace tacet
