// SPDX-License-Identifier: Apache-2.0
#include "model/incident.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tacet {

Incident::Incident() = default;
Incident::Incident(Incident&&) noexcept = default;
Incident& Incident::operator=(Incident&&) noexcept = default;
Incident::~Incident() = default;

std::vector<Rank> Incident::RanksSeen() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, index] : process_of)
    if (!processes[index].files.empty()) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> Incident::AllRanks() const {
  if (world_size <= 0 || world_size > INT32_MAX || !lists_world) return RanksSeen();
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<size_t>(world_size));
  for (int32_t r = 0; r < world_size; ++r) ranks.push_back({r});
  return ranks;
}

const CallStream* Incident::StreamOf(Rank rank, CallSource source) const {
  const auto found = std::lower_bound(streams.begin(), streams.end(), std::pair(source, rank),
                                      [](const auto& s, const auto& key) { return std::pair(s.source, s.rank) < key; });
  return found != streams.end() && found->source == source && found->rank == rank ? &*found : nullptr;
}

bool IsReadAs(const InputFile& file, std::string_view format) {
  std::string_view names = file.format;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('+'));
    if (name == format) return true;
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return false;
}

bool Incident::HasFileOf(Rank rank, std::string_view format) const {
  const auto found = process_of.find(rank);
  if (found == process_of.end()) return false;
  const auto& own = processes[found->second].files;
  return std::any_of(own.begin(), own.end(),
                     [&](FileId file) { return IsReadAs(files[static_cast<uint32_t>(file)], format); });
}

}  // namespace tacet
