// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tacet {

// How a job is connected, as plain values for the renderers. Ranks are the job's where they are known, else those of
// the communicator.

struct TopologyGpu {
  int rank = -1, device = -1;
  std::string bus;  // "1b000"
  double nvlink_gbs = 0, pci_gbs = 0;
  std::string nearest;    // path type to its nearest NIC: "PXB"
  std::vector<int> nics;  // those at that distance, by number
  std::vector<int> uses;  // NICs through which it, or a relay for it, sends to other nodes, by number
  int place = -1;         // switches and CPUs are numbered: what hangs on the same one stands together
  int cpu = -1;
};
struct TopologyNic {
  int index = -1;
  std::string name, link, nearest;
  double speed_gbs = 0;
  int gdr = -1;
  unsigned ring_sends = 0;
  int place = -1, cpu = -1;
};
struct TopologyNode {
  std::string name, net;
  std::vector<int> ranks;
  std::vector<TopologyGpu> gpus;
  std::vector<TopologyNic> nics;
  bool nvlink = false, nvswitch = false;
  bool of_file = false;  // `name` is a file that describes a node without naming it
  bool shares_gpus = false;  // another node has the same GPUs: NCCL_HOSTID makes nodes of the ranks of one host
  bool guilty = false;  // a finding names all of its ranks
  int like = -1;        // the first node with the same hardware and the same use of it; itself where it is the first
};
struct TopologyRing {
  int channel = -1;
  int same_as = -1;  // an earlier channel with the same hops; then the rest is empty
  bool whole = false;
  std::vector<int> order;  // of a whole ring: each rank once
  std::vector<int> ways;   // of the hop behind each rank: index into TopologyReport::transports; -1 unknown
  std::vector<std::pair<int, int>> hops;  // of a ring that is not whole
  std::vector<int> slow;                  // places in `order` (or `hops`) whose hop is slower than it could be
  std::vector<std::string> breaks;
};
struct TopologyTree {
  int channel = -1, same_as = -1, root = -1;
  std::vector<std::pair<int, int>> parents;  // (rank, parent)
};
struct TopologyWay {  // how many hops of rings and trees take it
  int transport = -1;
  unsigned inside = 0, between = 0;
};
struct TopologyGraph {
  std::string name;  // "ring", "tree", "NVLS"
  int channels = 0, cross_nic = 0;
  double intra_gbs = 0, inter_gbs = 0;
  std::string type_intra, type_inter;
  std::string lowered_by;  // nodes whose own search found less than the others'
};
struct TopologyComm {
  std::string label;
  int ranks = -1, nodes = -1, seen = 0;
  int channels = -1, nvls_channels = -1, collnet_channels = -1;
  bool mnnvl = false;
  std::vector<TopologyGraph> graphs;  // what all ranks agreed on: the least of all
  std::vector<TopologyRing> rings;
  std::vector<TopologyTree> trees;
  std::vector<TopologyWay> ways;
  std::string connected;  // "rings, trees, NVLS"
};
struct TopologyTransport {
  std::string text;  // "NET/IB/GDRDMA", "P2P/CUMEM", "SHM"
  std::string kind;  // "p2p", "shm", "net", "collnet"
};
struct TopologyReport {
  std::vector<TopologyTransport> transports;
  std::vector<TopologyNode> nodes;
  std::vector<TopologyComm> comms;
};

}  // namespace tacet
