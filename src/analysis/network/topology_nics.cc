// SPDX-License-Identifier: Apache-2.0
// Network devices: how many each node has, which of them the rings use, and whether rails are kept.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/network/topology_checks.h"

namespace tacet {
namespace {

// Devices that carry the job's traffic: of the fastest kind, and next to GPUs where any is. A host's other devices
// (storage, management) may idle.
std::vector<const NicView*> DataNics(const NodeView& node) {
  double fastest = 0;
  bool any_near = false;
  for (const NicView& nic : node.nics) {
    fastest = std::max(fastest, nic.speed_gbs);
    any_near |= IsNear(nic.nearest);
  }
  std::vector<const NicView*> nics;
  for (const NicView& nic : node.nics)
    if (nic.speed_gbs >= 0.9 * fastest && (!any_near || IsNear(nic.nearest))) nics.push_back(&nic);
  return nics;
}

void CountDevices(const TopologyView& view, TopologyChecks& checks) {
  std::map<std::string, std::map<size_t, std::vector<uint32_t>>> by_net;  // net -> number of devices -> nodes
  for (uint32_t i = 0; i < view.nodes.size(); ++i) {
    const NodeView& node = view.nodes[i];
    if (node.net == "Socket" || node.net.empty() || node.nics.empty()) continue;
    by_net[node.net][DataNics(node).size()].push_back(i);
  }
  for (const auto& [net, counts] : by_net) {
    if (counts.size() < 2) continue;
    size_t usual = 0, most = 0;
    for (const auto& [count, nodes] : counts)
      if (nodes.size() >= most) usual = count, most = nodes.size();
    const uint32_t usual_node = counts.at(usual).front();
    for (const auto& [count, nodes] : counts) {
      if (count >= usual) continue;
      for (const uint32_t node : nodes) {
        FewerNics fewer{node, usual_node, count, usual, {}};
        std::set<std::string> own;
        for (const NicView& nic : view.nodes[node].nics) own.insert(nic.name);
        for (const NicView* nic : DataNics(view.nodes[usual_node]))
          if (!nic->name.empty() && !own.contains(nic->name)) fewer.missing.push_back(nic->name);
        checks.fewer_nics.push_back(std::move(fewer));
      }
    }
  }
}

// Hops of rings that leave through each device, where all ranks of the node have spoken.
void FindUneven(const Incident& incident, const TopologyView& view, TopologyChecks& checks) {
  for (uint32_t n = 0; n < view.nodes.size(); ++n) {
    const NodeView& node = view.nodes[n];
    if (node.local_ranks < 2 || node.processes.size() < static_cast<size_t>(node.local_ranks)) continue;
    const std::vector<const NicView*> nics = DataNics(node);
    if (nics.size() < 2) continue;
    UnevenNics uneven{n, {}, UINT32_MAX, 0};
    for (const NicView* nic : nics) {
      uneven.least = std::min(uneven.least, nic->ring_sends);
      uneven.most = std::max(uneven.most, nic->ring_sends);
      if (nic->ring_sends == 0) uneven.idle.push_back(nic);
    }
    // Where channels are no multiple of the devices, some carry one ring more.
    if (uneven.most == 0 || uneven.least * 2 >= uneven.most) continue;
    // Fewer channels than devices cannot use them all: that has another reason.
    const bool enough = std::any_of(view.comms.begin(), view.comms.end(), [&](const CommView& comm) {
      const NcclGraphSearch* ring = GraphOfNode(incident, comm, n, NcclAlgorithm::ring);
      return comm.nodes > 1 && ring && static_cast<size_t>(std::max(ring->channels, 0)) >= nics.size() &&
             static_cast<size_t>(std::max(comm.coll_channels, 0)) >= nics.size();
    });
    if (enough && (node.knows_paths || uneven.idle.empty())) checks.uneven.push_back(std::move(uneven));
  }
}

// The rail of a device: its name, which is the same on all hosts of a kind; else its number.
std::string RailOf(const NodeView& node, int32_t device) {
  const NicView* nic = node.Nic(device);
  return nic && !nic->name.empty() ? nic->name : "device " + std::to_string(device);
}

bool KeepsRails(const Incident& incident, const CommView& comm) {
  bool told = false;
  for (const uint32_t index : comm.setups)
    if (const NcclGraphSearch* ring = incident.nccl_setups[index].GraphOf(NcclAlgorithm::ring)) {
      if (ring->cross_nic != 0) return false;
      told = true;
    }
  return told;
}

void FindCrossed(const Incident& incident, const TopologyView& view, TopologyChecks& checks) {
  constexpr size_t kMostCrossed = 4096;
  for (uint32_t c = 0; c < view.comms.size(); ++c) {
    const CommView& comm = view.comms[c];
    if (!KeepsRails(incident, comm)) continue;
    for (const RingView& ring : comm.rings)
      for (const Hop& hop : ring.hops) {
        if (hop.sends == kNoIndex || hop.receives == kNoIndex || checks.crossed.size() >= kMostCrossed) continue;
        const Transport &sends = incident.transports[hop.sends], &receives = incident.transports[hop.receives];
        const uint32_t from = view.NodeOf(comm, hop.from), to = view.NodeOf(comm, hop.to);
        if (!sends.fast_net() || !receives.fast_net() || from == to || from == kNoIndex || to == kNoIndex) continue;
        std::string out = RailOf(view.nodes[from], sends.device), in = RailOf(view.nodes[to], receives.device);
        if (out != in) checks.crossed.push_back({c, ring.channel, hop, std::move(out), std::move(in)});
      }
  }
}

}  // namespace

void CheckNics(const Incident& incident, const TopologyView& view, TopologyChecks& checks) {
  CountDevices(view, checks);
  FindUneven(incident, view, checks);
  FindCrossed(incident, view, checks);
}

}  // namespace tacet
