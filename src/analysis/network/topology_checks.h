// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/network/topology_view.h"

namespace tacet {

// A node whose own search found less than the others': all ranks of the communicator take the least of all.
struct LowerNode {
  uint32_t node = kNoIndex, comm = kNoIndex;
  NcclAlgorithm graph = NcclAlgorithm::ring;
  const NcclGraphSearch *own = nullptr, *usual = nullptr;
  std::vector<std::string> lowered;  // "7 channels instead of 8", "24 GB/s per channel instead of 48"
  std::vector<std::string> lacks;    // what its hardware has less of than a usual node's
};

struct FailedSearch {
  uint32_t node = kNoIndex, comm = kNoIndex;
  const NcclGraphSearch* graph = nullptr;
};

// A hop between nodes that leaves on one rail and arrives on another.
struct CrossedHop {
  uint32_t comm = kNoIndex;
  int32_t channel = -1;
  Hop hop;
  std::string sends, receives;  // names of the devices
};

// The rings of a node leave through some of its NICs more often than through others.
struct UnevenNics {
  uint32_t node = kNoIndex;
  std::vector<const NicView*> idle;  // of those that are as near and as fast as the used ones
  uint32_t least = 0, most = 0;
};

struct FewerNics {
  uint32_t node = kNoIndex, usual_node = kNoIndex;
  size_t count = 0, usual = 0;
  std::vector<std::string> missing;
};

// Two ranks that do not use the fastest way between them.
struct SlowPair {
  uint32_t node = kNoIndex, record = kNoIndex;
  int32_t from = -1, to = -1;
  uint32_t transport = kNoIndex;
  uint32_t line = 0;
  uint64_t offset = 0;
};

// A GPU whose hardware is less than that of nearly all others.
struct OddGpu {
  uint32_t node = kNoIndex;
  const GpuView* gpu = nullptr;
  std::string differs;  // "its NVLinks carry 185 GB/s, those of 15 other GPUs 371"
};

struct TopologyChecks {
  std::map<std::string, const Event*, std::less<>> settings;  // the first of each NCCL_* variable
  std::vector<LowerNode> lower_nodes;
  std::vector<FailedSearch> failed_searches;
  std::vector<CrossedHop> crossed;
  std::vector<UnevenNics> uneven;
  std::vector<FewerNics> fewer_nics;
  std::vector<SlowPair> slow_pairs;  // SHM or a network between GPUs that NVLink joins
  std::vector<SlowPair> staged;      // a fast network without GPUDirect RDMA, one for each rank
  std::vector<uint32_t> far_nodes;   // rings reach NICs through the CPU though these hang on switches
  std::vector<SlowPair> unrelayed;   // sends that cross rails without a relay (PXN), one for each rank
  const NetDevices* pxn_disabled = nullptr;
  std::vector<OddGpu> odd_gpus;
  uint32_t scattered = kNoIndex;  // the communicator whose ranks take turns over nodes
  int scattered_runs = 0;

  const Event* Setting(std::string_view name) const {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : found->second;
  }
};

TopologyChecks CheckTopology(const Incident& incident, const TopologyView& view);

// The graph that a rank of this node searched for this communicator; nullptr where none was printed.
const NcclGraphSearch* GraphOfNode(const Incident& incident, const CommView& comm, uint32_t node,
                                   NcclAlgorithm algorithm);

// 28 for 2.28.9; -1 where the log does not tell.
int MinorReleaseOf(const Incident& incident, const CommView& comm);

// The parts of it.
void CheckGraphs(const Incident& incident, const TopologyView& view, TopologyChecks& checks);
void CheckNics(const Incident& incident, const TopologyView& view, TopologyChecks& checks);
void CheckWays(const Incident& incident, const TopologyView& view, TopologyChecks& checks);
void CheckHardware(const Incident& incident, const TopologyView& view, TopologyChecks& checks);

}  // namespace tacet
