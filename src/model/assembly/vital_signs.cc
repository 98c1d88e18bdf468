// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/vital_signs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/assembly/identity.h"

namespace tacet {
namespace {

std::map<FileId, uint32_t> StreamsByFile(const Incident& incident) {
  std::map<FileId, uint32_t> by_file;
  for (uint32_t i = 0; i < incident.streams.size(); ++i)
    if (incident.streams[i].source == CallSource::black_box) by_file[incident.streams[i].file] = i;
  return by_file;
}

std::string_view HostOf(const Incident& incident, uint32_t process) {
  return process < incident.processes.size() ? std::string_view(incident.processes[process].host) : "";
}

// Pods on one host's network share its name and count their pids alike, so the rank that the witness read is asked
// first.
const Pulse* PulseOf(const Incident& incident, const Sight& sight) {
  const auto same = [&](const Pulse& pulse) {
    return pulse.pid == sight.pid && pulse.start_jiffies == sight.start_jiffies &&
           HostOf(incident, pulse.speaker) == HostOf(incident, sight.speaker);
  };
  auto found = std::find_if(incident.pulses.begin(), incident.pulses.end(),
                            [&](const Pulse& pulse) { return pulse.rank == sight.rank && same(pulse); });
  if (found == incident.pulses.end()) found = std::find_if(incident.pulses.begin(), incident.pulses.end(), same);
  return found == incident.pulses.end() ? nullptr : &*found;
}

bool IsListed(const Incident& incident, const Sight& sight) {
  return sight.speaker == kNobody && IsReadAs(incident.files[static_cast<uint32_t>(sight.source.file)], "host_table");
}

// Lists of processes name every process of a host. Of a rank it is the one with its pid that counts; where no pid is
// known, or the pids of a container are others, the one whose command names the rank. Workers have that command, too:
// where several name one rank, all must be in one state.
void SettleListedProcesses(Incident& incident) {
  PidIndex by_pid;
  std::map<Rank, int64_t> pid_of;
  for (uint32_t i = 0; i < incident.processes.size(); ++i) {
    by_pid.Add(incident, i);
    if (incident.processes[i].rank.known()) pid_of.try_emplace(incident.processes[i].rank, incident.processes[i].pid);
  }
  std::map<Rank, std::set<TaskState>> states;
  std::set<Rank> by_own_pid;
  for (Sight& sight : incident.sights) {
    if (!IsListed(incident, sight)) continue;
    const uint32_t process = by_pid.Find(incident, sight.pid, "");
    if (const Rank rank = process == kNobody ? Rank{} : incident.processes[process].rank;
        rank.known() && (!sight.rank.known() || sight.rank == rank)) {
      sight.rank = rank;
      by_own_pid.insert(rank);
    }
    if (sight.rank.known()) states[sight.rank].insert(sight.state);
  }
  std::erase_if(incident.sights, [&](const Sight& sight) {
    if (!IsListed(incident, sight)) return false;
    const auto pid = pid_of.find(sight.rank);
    if (!sight.rank.known() || pid == pid_of.end()) return true;
    return by_own_pid.contains(sight.rank) ? pid->second != sight.pid : states[sight.rank].size() > 1;
  });
}

}  // namespace

void SettleVitalSigns(Incident& incident) {
  const auto by_file = StreamsByFile(incident);
  std::erase_if(incident.in_flight, [&](InFlight& flight) {
    const auto stream = by_file.find(flight.source.file);
    if (stream == by_file.end() || flight.call >= incident.streams[stream->second].calls.size()) return true;
    flight.stream = stream->second;
    return false;
  });
  // A box whose calls were set aside is of another run. What a watch saw from outside never had calls.
  std::erase_if(incident.pulses, [&](const Pulse& pulse) {
    const bool by_watch = incident.files[static_cast<uint32_t>(pulse.source.file)].format == "run_record";
    return !pulse.rank.known() || (!by_watch && !by_file.contains(pulse.source.file));
  });
  std::stable_sort(incident.pulses.begin(), incident.pulses.end(), [](const Pulse& a, const Pulse& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.last_beat_wall_ns > b.last_beat_wall_ns;
  });
  const auto same_rank = [](const Pulse& a, const Pulse& b) { return a.rank == b.rank; };
  incident.pulses.erase(std::unique(incident.pulses.begin(), incident.pulses.end(), same_rank), incident.pulses.end());
  SettleListedProcesses(incident);
  std::erase_if(incident.sights, [&](Sight& sight) {
    if (IsListed(incident, sight)) return false;
    const Pulse* pulse = PulseOf(incident, sight);
    if (pulse) sight.rank = pulse->rank;
    return pulse == nullptr;
  });
  std::stable_sort(incident.sights.begin(), incident.sights.end(), [](const Sight& a, const Sight& b) {
    return std::tuple(a.rank, a.speaker, a.since_wall_ns) < std::tuple(b.rank, b.speaker, b.since_wall_ns);
  });
}

}  // namespace tacet
