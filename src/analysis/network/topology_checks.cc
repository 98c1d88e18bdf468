// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/topology_checks.h"

#include <algorithm>

namespace tacet {
namespace {

// Whether the ranks of one node stand together in the communicator's order. Groups of neighbours (tensor parallel,
// pipeline stages) rely on it.
void CheckOrder(const Incident&, const TopologyView& view, TopologyChecks& checks) {
  if (view.comms.empty()) return;
  const CommView& comm = view.comms.front();
  if (comm.ranks < 4 || comm.process_of.size() != static_cast<size_t>(comm.ranks)) return;
  uint32_t before = kNoIndex;
  int runs = 0;
  std::vector<bool> seen(view.nodes.size(), false);
  for (int32_t rank = 0; rank < comm.ranks; ++rank) {
    const uint32_t node = view.NodeOf(comm, rank);
    if (node == kNoIndex) return;
    seen[node] = true;
    runs += node != before ? 1 : 0;
    before = node;
  }
  const auto nodes = std::count(seen.begin(), seen.end(), true);
  if (nodes < 2 || runs <= nodes) return;
  checks.scattered = 0;
  checks.scattered_runs = runs;
}

}  // namespace

TopologyChecks CheckTopology(const Incident& incident, const TopologyView& view) {
  TopologyChecks checks;
  if (view.empty()) return checks;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::environment && !event.Means(Meaning::in_prose))
      checks.settings.try_emplace(event.As<EnvironmentSetting>().name, &event);
  CheckGraphs(incident, view, checks);
  CheckNics(incident, view, checks);
  CheckWays(incident, view, checks);
  CheckHardware(incident, view, checks);
  CheckOrder(incident, view, checks);
  return checks;
}

}  // namespace tacet
