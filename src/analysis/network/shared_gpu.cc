// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/shared_gpu.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tacet {
namespace {

std::vector<std::vector<Rank>> SharedBy(const std::map<std::string, std::set<Rank>>& ranks_of) {
  std::vector<std::vector<Rank>> shared;
  for (const auto& [gpu, ranks] : ranks_of)
    if (ranks.size() > 1) shared.emplace_back(ranks.begin(), ranks.end());
  return shared;
}

// By host and bus id, of ranks that NCCL_HOSTID makes different hosts of.
std::map<std::string, std::set<Rank>> RanksOfBuses(const Incident& incident) {
  const std::map<uint32_t, std::string> ids = HostIdsOf(incident);
  std::map<std::string, std::map<Rank, std::string>> id_of;  // by GPU
  for (const NcclSetup& setup : incident.nccl_setups) {
    const std::string_view bus = incident.strings.Get(setup.bus_id);
    const auto id = ids.find(setup.speaker);
    if (!setup.rank.known() || bus.empty() || id == ids.end() || setup.speaker >= incident.processes.size()) continue;
    const std::string& host = incident.processes[setup.speaker].host;
    if (!host.empty()) id_of[host + "/" + std::string(bus)].emplace(setup.rank, id->second);
  }
  std::map<std::string, std::set<Rank>> ranks_of;
  for (const auto& [gpu, ranks] : id_of) {
    std::set<std::string_view> names;
    for (const auto& [rank, name] : ranks) names.insert(name);
    if (names.size() != ranks.size()) continue;
    for (const auto& [rank, name] : ranks) ranks_of[gpu].insert(rank);
  }
  return ranks_of;
}

}  // namespace

std::map<uint32_t, std::string> HostIdsOf(const Incident& incident) {
  std::map<uint32_t, std::string> ids;
  for (const Event& event : incident.events)
    if (const auto& setting = event.As<EnvironmentSetting>(); setting.name == "NCCL_HOSTID")
      ids[event.speaker] = setting.value;
  return ids;
}

std::vector<std::vector<Rank>> FindSharedGpus(const Incident& incident) {
  std::map<std::string, std::set<Rank>> ranks_of;
  for (const auto& [rank, process] : incident.process_of)
    if (const std::string& uuid = incident.processes[process].gpu_uuid; !uuid.empty()) ranks_of[uuid].insert(rank);
  std::vector<std::vector<Rank>> shared = SharedBy(ranks_of.empty() ? RanksOfBuses(incident) : ranks_of);
  std::sort(shared.begin(), shared.end());
  return shared;
}

}  // namespace tacet
