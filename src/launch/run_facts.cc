// SPDX-License-Identifier: Apache-2.0
#include "launch/run_facts.h"

#include <algorithm>

#include "analysis/analyses.h"
#include "evidence/load.h"
#include "model/assembly/assembly.h"
#include "render/prediction/prediction_render.h"
#include "report/make_topology_report.h"
#include "report/profile/profile_report.h"

namespace tacet {
namespace {

constexpr size_t kMostTransfers = 3;

std::string ChannelWords(const std::vector<int>& channels) {
  const bool row = channels.back() - channels.front() + 1 == static_cast<int>(channels.size());
  if (channels.size() == 1) return "channel " + std::to_string(channels[0]);
  if (row)
    return "channels " + std::to_string(channels.front()) + (channels.size() == 2 ? " and " : " to ") +
           std::to_string(channels.back());
  std::string out = "channels ";
  for (const int channel : channels) out += (channel == channels[0] ? "" : ", ") + std::to_string(channel);
  return out;
}

// Channels with the same order stand in one line.
std::vector<std::string> RingsOf(const Incident& incident) {
  std::vector<std::string> rings;
  for (const TopologyComm& comm : DescribeTopology(incident, Analyse(incident), {}).comms) {
    // An id differs in every run, and names nothing to a reader.
    const std::string group = comm.label.starts_with("communicator")
                                  ? "a communicator of " + std::to_string(comm.ranks) + " ranks"
                                  : comm.label;
    for (const TopologyRing& ring : comm.rings) {
      if (!ring.whole || ring.same_as >= 0) continue;
      std::string order;
      for (const int rank : ring.order) order += " " + std::to_string(rank);
      std::vector<int> channels;
      for (const TopologyRing& other : comm.rings)
        if (&other == &ring || other.same_as == ring.channel) channels.push_back(other.channel);
      rings.push_back(group + ", " + ChannelWords(channels) + ":" + order);
    }
  }
  return rings;
}

void TakeTimes(const Incident& incident, RunFacts& facts) {
  const ProfileReport profile = BuildProfile(incident, {});
  facts.step_ns = profile.step_ns;
  if (profile.step_ns > 0 && profile.mean.total_ns() > 0 && !profile.budgets.empty())
    facts.exposed_share = static_cast<double>(profile.mean.exposed_ns) / static_cast<double>(profile.mean.total_ns());
  for (const ProfileTableRow& row : profile.table_by_role) {
    if (row.row.bus_gbs <= 0 || facts.transfers.size() == kMostTransfers) continue;
    facts.transfers.push_back(
        {std::string(Name(row.row.kind)) + " on " + row.group + ", up to " + MessageSizeWords(row.row.size_class),
         row.row.bus_gbs});
  }
}

}  // namespace

RunFacts ReadRunFacts(const std::string& path) {
  RunFacts facts;
  auto loaded = LoadEvidence({path}, {});
  if (!loaded) return facts;
  const std::vector<Incident> jobs = Assemble(std::move(loaded->fragments));
  const auto largest = std::max_element(jobs.begin(), jobs.end(), [](const Incident& a, const Incident& b) {
    return a.processes.size() < b.processes.size();
  });
  if (largest == jobs.end()) return facts;
  for (const Event& event : largest->events) {
    if (event.kind != EventKind::environment) continue;
    const auto& setting = event.As<EnvironmentSetting>();
    std::vector<std::string>& values = facts.settings[setting.name];
    if (std::find(values.begin(), values.end(), setting.value) == values.end()) values.push_back(setting.value);
  }
  facts.rings = RingsOf(*largest);
  TakeTimes(*largest, facts);
  return facts;
}

}  // namespace tacet
