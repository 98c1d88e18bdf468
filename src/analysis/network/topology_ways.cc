// SPDX-License-Identifier: Apache-2.0
// Connections that do not take the fastest way there is, and GPUs whose hardware is less than the others'.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "analysis/network/topology_checks.h"

namespace tacet {
namespace {

constexpr size_t kMostPairs = 4096;

const GpuView* GpuOfPlace(const TopologyView& view, const Incident& incident, const CommView& comm,
                          int32_t group_rank) {
  const auto process = comm.process_of.find(group_rank);
  if (process == comm.process_of.end()) return nullptr;
  const uint32_t node = view.NodeOfProcess(process->second);
  return node == kNoIndex ? nullptr : view.nodes[node].GpuOf(incident.processes[process->second].rank);
}

// NVLink joins these two: the dump says so, or the search found nothing but NVLink inside the node.
bool JoinedByNvlink(const Incident& incident, const TopologyView& view, const CommView& comm, uint32_t node,
                    int32_t from, int32_t to) {
  const GpuView *a = GpuOfPlace(view, incident, comm, from), *b = GpuOfPlace(view, incident, comm, to);
  const Hardware* hardware = view.nodes[node].hardware;
  if (a && b && hardware) {
    const int32_t one = hardware->Find(DeviceKind::gpu, a->bus), other = hardware->Find(DeviceKind::gpu, b->bus);
    if (one >= 0 && other >= 0) {
      const HardwarePath* path = hardware->Path(static_cast<uint32_t>(one), static_cast<uint32_t>(other));
      if (path) return path->type == NcclPath::nvl;
    }
  }
  const NcclGraphSearch* ring = GraphOfNode(incident, comm, node, NcclAlgorithm::ring);
  return ring && ring->type_intra == NcclPath::nvl;
}

SlowPair PairOf(const ChannelUse& use, uint32_t node, uint32_t record) {
  return {node, record, use.from, use.to, use.transport, use.line, use.offset};
}

// What one rank's connections show.
struct RankWays {
  bool direct = false;  // a connection over a fast network with GPUDirect RDMA
  const ChannelUse* staged = nullptr;
  uint32_t record = kNoIndex, node = kNoIndex;
};

class WayCheck {
 public:
  WayCheck(const Incident& incident, const TopologyView& view, TopologyChecks& checks)
      : incident_(incident), view_(view), checks_(checks) {}

  void Run() {
    // Where anybody relays, PXN is on: who does not relay has its reasons.
    relayed_ = std::any_of(incident_.transports.begin(), incident_.transports.end(),
                           [](const Transport& transport) { return transport.proxy_rank >= 0; });
    for (const Transport& transport : incident_.transports) kinds_.push_back(KindOf(transport));
    for (const CommView& comm : view_.comms) {
      FindNodes(comm);
      if (!relayed_) CollectReceives(comm);
      for (const uint32_t record : comm.records) {
        own_ways_ = nullptr;
        for (const ChannelUse& use : incident_.rank_channels[record].uses)
          if (kinds_[use.transport] != Kind::of_no_interest) Take(comm, record, use);
      }
    }
    for (const auto& [process, ways] : by_process_)
      if (ways.staged && !ways.direct) checks_.staged.push_back(PairOf(*ways.staged, ways.node, ways.record));
  }

 private:
  // Millions of connections are looked at: by place where places are as many as ranks, else by search.
  void FindNodes(const CommView& comm) {
    nodes_.clear();
    for (const auto& [rank, process] : comm.process_of) {
      if (rank < 0 || static_cast<size_t>(rank) > 64 * comm.process_of.size()) continue;
      if (nodes_.size() <= static_cast<size_t>(rank)) nodes_.resize(static_cast<size_t>(rank) + 1, kNoIndex);
      nodes_[static_cast<size_t>(rank)] = view_.NodeOfProcess(process);
    }
  }
  uint32_t NodeAt(int32_t rank) const {
    return rank >= 0 && static_cast<size_t>(rank) < nodes_.size() ? nodes_[static_cast<size_t>(rank)] : kNoIndex;
  }

  // The device on which sends between two ranks arrive.
  void CollectReceives(const CommView& comm) {
    receives_.clear();
    for (const uint32_t record : comm.records)
      for (const ChannelUse& use : incident_.rank_channels[record].uses)
        if (use.point_to_point && use.direction == ChannelUse::Direction::receive)
          receives_.emplace(Key(use), incident_.transports[use.transport].device);
  }

  void Take(const CommView& comm, uint32_t record, const ChannelUse& use) {
    const uint32_t from = NodeAt(use.from), to = NodeAt(use.to);
    const uint32_t own = use.direction == ChannelUse::Direction::receive ? to : from;
    if (own == kNoIndex) return;
    if (from == to) {
      if (checks_.slow_pairs.size() < kMostPairs && !comm.mnnvl &&
          JoinedByNvlink(incident_, view_, comm, from, use.from, use.to))
        checks_.slow_pairs.push_back(PairOf(use, from, record));
      return;
    }
    const Kind kind = kinds_[use.transport];
    if (kind == Kind::slow) return;
    if (!own_ways_) own_ways_ = &by_process_[incident_.rank_channels[record].speaker];
    RankWays& ways = *own_ways_;
    ways.record = record;
    ways.node = own;
    ways.direct |= kind == Kind::direct;
    if (kind == Kind::staged && !ways.staged) ways.staged = &use;
    if (!relayed_ && use.point_to_point && use.direction == ChannelUse::Direction::send)
      TakeUnrelayed(record, own, use, incident_.transports[use.transport]);
  }

  void TakeUnrelayed(uint32_t record, uint32_t node, const ChannelUse& use, const Transport& transport) {
    const auto arrives = receives_.find(Key(use));
    const bool crosses = arrives != receives_.end() && arrives->second != transport.device;
    if (!crosses || !view_.nodes[node].has_nvlink || view_.nodes[node].nics.size() < 2) return;
    if (unrelayed_ranks_.insert(incident_.rank_channels[record].speaker).second)
      checks_.unrelayed.push_back(PairOf(use, node, record));
  }

  static uint64_t Key(const ChannelUse& use) {
    return static_cast<uint64_t>(static_cast<uint32_t>(use.from)) << 32 | static_cast<uint32_t>(use.to);
  }

  enum class Kind : uint8_t { of_no_interest, slow, direct, staged };
  static Kind KindOf(const Transport& transport) {
    if (transport.kind == TransportKind::p2p || transport.kind == TransportKind::collnet) return Kind::of_no_interest;
    if (!transport.fast_net()) return Kind::slow;
    return transport.gdr ? Kind::direct : Kind::staged;
  }

  const Incident& incident_;
  const TopologyView& view_;
  TopologyChecks& checks_;
  std::vector<Kind> kinds_;       // of transports: looked at once, not for each of millions of connections
  RankWays* own_ways_ = nullptr;  // of the record looked at
  std::vector<uint32_t> nodes_;   // of the communicator looked at, by group rank
  std::map<uint32_t, RankWays> by_process_;
  std::unordered_map<uint64_t, int32_t> receives_;
  std::set<uint32_t> unrelayed_ranks_;
  bool relayed_ = false;
};

struct GpuField {
  std::string_view what, unit;
  double (*value)(const NodeView&, const GpuView&);
};

double NicSpeed(const NodeView& node, const GpuView& gpu) {
  double speed = 0;
  for (const uint32_t nic : gpu.nearest_nics) speed = std::max(speed, node.nics[nic].speed_gbs);
  return speed;
}

std::string Rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

// Nearly all GPUs agree on a figure, and a few have less.
void FindOdd(const TopologyView& view, const GpuField& field, TopologyChecks& checks) {
  std::map<double, std::vector<std::pair<uint32_t, const GpuView*>>> by_value;
  size_t all = 0;
  for (uint32_t n = 0; n < view.nodes.size(); ++n)
    for (const GpuView& gpu : view.nodes[n].gpus)
      if (const double value = field.value(view.nodes[n], gpu); value > 0 && gpu.rank.known()) {
        by_value[value].emplace_back(n, &gpu);
        ++all;
      }
  if (by_value.size() < 2 || all < 4) return;
  const auto usual = std::max_element(by_value.begin(), by_value.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (usual->second.size() * 8 < all * 7) return;
  for (const auto& [value, gpus] : by_value) {
    if (value >= usual->first * 0.95) continue;
    for (const auto& [node, gpu] : gpus) {
      const bool known = std::any_of(checks.odd_gpus.begin(), checks.odd_gpus.end(),
                                     [gpu = gpu](const OddGpu& odd) { return odd.gpu == gpu; });
      if (!known)
        checks.odd_gpus.push_back({node, gpu,
                                   std::string(field.what) + " " + Rounded(value) + std::string(field.unit) +
                                       " while " + std::to_string(usual->second.size()) + " other GPUs have " +
                                       Rounded(usual->first)});
    }
  }
}

}  // namespace

void CheckWays(const Incident& incident, const TopologyView& view, TopologyChecks& checks) {
  WayCheck(incident, view, checks).Run();
  for (const NetDevices& devices : incident.net_devices)
    if (devices.pxn_disabled && !checks.pxn_disabled) checks.pxn_disabled = &devices;
}

void CheckHardware(const Incident&, const TopologyView& view, TopologyChecks& checks) {
  static constexpr GpuField kFields[] = {
      {"NVLinks of", " GB/s", [](const NodeView&, const GpuView& gpu) { return gpu.nvlink_gbs; }},
      {"a PCIe link of", " GB/s", [](const NodeView&, const GpuView& gpu) { return gpu.pci_gbs; }},
      {"a nearest network device of", " GB/s", NicSpeed},
  };
  for (const GpuField& field : kFields) FindOdd(view, field, checks);
}

}  // namespace tacet
