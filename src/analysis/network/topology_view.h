// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/incident.h"

namespace tacet {

struct GpuView {
  uint64_t bus = 0;
  int32_t device = -1;
  Rank rank;
  double nvlink_gbs = 0, pci_gbs = 0;    // 0: not told
  NcclPath nearest = NcclPath::unknown;  // the path to its nearest NIC
  std::vector<uint32_t> nearest_nics;    // indices into NodeView::nics
  std::string name;
};

struct NicView {
  int32_t index = -1;  // NCCL's number of it
  std::string name, link;
  double speed_gbs = 0, pci_gbs = 0;
  int32_t gdr = -1;
  NcclPath nearest = NcclPath::unknown;  // the path from its nearest GPU
  uint32_t ring_sends = 0;               // hops of rings that leave the node through it, all communicators together
};

// What NCCL counts as a node: the processes of one host, as a rule.
struct NodeView {
  bool of_file = false;  // no log names it: `name` is the file that describes it
  std::string name;
  std::vector<uint32_t> processes;
  std::vector<Rank> ranks;
  std::vector<GpuView> gpus;
  std::vector<NicView> nics;
  std::string net;  // "IB", "Socket"; empty where not told
  bool has_nvlink = false, has_nvswitch = false, knows_paths = false;
  const Hardware* hardware = nullptr;  // the fullest tree that one of its processes printed
  const NetDevices* devices = nullptr;
  int32_t local_ranks = -1;  // the most that a communicator has here, as NCCL counts them
  const NicView* Nic(int32_t index) const;
  const GpuView* GpuOf(Rank rank) const;
};

// One hop of a ring, and how its two ends see it.
struct Hop {
  int32_t from = -1, to = -1;                      // group ranks
  uint32_t sends = kNoIndex, receives = kNoIndex;  // index into Incident::transports
};

struct RingView {
  int32_t channel = -1;
  std::vector<Hop> hops;  // of the whole ring in order where it closes; else all that are known
  bool whole = false;     // it closes and holds every rank once
  // What contradicts a ring: this rank has two successors, or two predecessors, or the ring closes too early.
  struct Break {
    enum class Kind : uint8_t { two_next, two_previous, closes_early, skips } kind{};
    int32_t rank = -1, one = -1, other = -1;
    uint32_t record = kNoIndex;  // who says so: index into Incident::rank_channels
  };
  std::vector<Break> breaks;
  std::vector<std::pair<uint32_t, int>> reentered;  // (node, how often it is entered), where that is more than once
};

struct TreeView {
  int32_t channel = -1;
  std::vector<std::pair<int32_t, int32_t>> parents;  // (rank, parent) of the ranks that are known
  int32_t root = -1;
};

struct CommView {
  GroupIndex group = GroupIndex::none;
  int32_t ranks = -1, nodes = -1;
  bool mnnvl = false;
  std::vector<uint32_t> records;  // indices into Incident::rank_channels
  std::vector<uint32_t> setups;   // indices into Incident::nccl_setups
  std::unordered_map<uint32_t, std::vector<uint32_t>> setups_of_node;
  std::unordered_map<int32_t, uint32_t> process_of;  // group rank -> process
  std::vector<RingView> rings;
  std::vector<TreeView> trees;
  int32_t coll_channels = -1, nvls_channels = -1, collnet_channels = -1;
};

struct TopologyView {
  std::vector<NodeView> nodes;
  std::vector<CommView> comms;  // the largest first
  std::unordered_map<uint32_t, uint32_t> node_of_process;

  bool empty() const { return nodes.empty() && comms.empty(); }
  uint32_t NodeOfProcess(uint32_t process) const;
  uint32_t NodeOf(const CommView& comm, int32_t group_rank) const;
};

TopologyView ReadTopology(const Incident& incident);

// The parts of it, in order.
void FindNodes(const Incident& incident, TopologyView& view);
void FindComms(const Incident& incident, TopologyView& view);

// Paths that stay below one PCIe switch, or come near it: GPUDirect RDMA is possible.
bool IsNear(NcclPath path);

}  // namespace tacet
