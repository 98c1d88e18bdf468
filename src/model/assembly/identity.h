// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/incident.h"

namespace tacet {

// For every fragment, speaker index -> index into Incident::processes.
using SpeakerMap = std::vector<std::vector<uint32_t>>;

// Joins speakers into processes: by stated rank, by (host, pid), by pid alone where it is unique, by a rank assumed
// from a file name. Fills processes, process_of and world_size, and notes what was assumed.
SpeakerMap JoinSpeakers(const std::vector<Fragment>& fragments, const std::vector<size_t>& members, Incident& incident);

// Finds processes by pid. A file may name a hundred thousand processes, so that nobody can look through them for each
// line.
class PidIndex {
 public:
  // After a process was added, or its pid or host became known. Adding it again does no harm.
  void Add(const Incident& incident, uint32_t process);
  // The process with this pid; host may be empty. kNobody when there is none or more than one.
  uint32_t Find(const Incident& incident, int64_t pid, std::string_view host) const;

 private:
  std::unordered_map<int64_t, std::vector<uint32_t>> all_, hostless_;
  std::map<std::pair<int64_t, std::string>, std::vector<uint32_t>, std::less<>> by_host_;
};
uint32_t FindByPid(const Incident& incident, int64_t pid, std::string_view host);

// False where two names are of different hosts. An unknown name and an address agree with any.
bool HostsAgree(std::string_view a, std::string_view b);

}  // namespace tacet
