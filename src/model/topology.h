// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/nccl_graph.h"

namespace tacet {

// What a connection runs over. In order of speed as a rule, the fastest first.
enum class TransportKind : uint8_t { p2p, shm, net, collnet, unknown };

// One way of connecting two ranks, as NCCL prints it behind "via".
struct Transport {
  TransportKind kind = TransportKind::unknown;
  std::string text;  // "NET/IB/3(5)/GDRDMA/Shared"
  std::string name;  // of a network: "IB", "Socket", "AWS Libfabric"; else "IPC", "CUMEM", "direct pointer", "direct"
  int32_t device = -1;      // of a network
  int32_t proxy_rank = -1;  // the rank whose GPU is next to that device: PXN. -1 where the sender's own GPU is
  bool gdr = false, shared = false, read = false, copy_engine = false;
  bool fast_net() const { return kind == TransportKind::net && name != "Socket"; }
  // Without device number and relay: "NET/IB/GDRDMA", "P2P/CUMEM", "SHM".
  std::string Class() const;
};
Transport ParseTransport(std::string_view via);

// Who stands before and behind a rank in one channel's ring. Group ranks; -1 is nobody.
struct RingPlace {
  int32_t channel = -1, previous = -1, next = -1;
};
struct TreePlace {
  int32_t channel = -1, up = -1;
  int32_t down[3] = {-1, -1, -1};
};
// "Channel 00/24 : 0 7 6 5 ...": the whole ring, which rank 0 alone prints, cut after some 128 characters.
struct RingOrder {
  int32_t channel = -1, channels = -1;
  std::vector<int32_t> ranks;
  bool cut = false;
};
// Numbers of channels. NCCL has up to 64, RCCL up to 128.
struct ChannelSet {
  static constexpr int kMost = 128;
  uint64_t words[2] = {0, 0};
  void Add(int channel) {
    if (channel >= 0 && channel < kMost) words[channel / 64] |= uint64_t{1} << (channel % 64);
  }
  bool Has(int channel) const {
    return channel >= 0 && channel < kMost && (words[channel / 64] >> (channel % 64) & 1) != 0;
  }
  int Count() const { return std::popcount(words[0]) + std::popcount(words[1]); }
  void Merge(const ChannelSet& other) { words[0] |= other.words[0], words[1] |= other.words[1]; }
};

// All channels on which one rank reaches another in one way.
struct ChannelUse {
  enum class Direction : uint8_t { both, send, receive };
  int32_t from = -1, to = -1;
  uint32_t transport = 0;  // index into Fragment::transports, later into Incident::transports
  uint32_t line = 0;       // of the first of them
  uint64_t offset = 0;
  ChannelSet channels;
  Direction direction = Direction::both;
  bool point_to_point = false;  // for send and receive, not for collectives
};

// One communicator as one of its ranks set it up: its place in rings and trees, and how it reaches its neighbours.
struct RankChannels {
  uint32_t speaker = 0;  // index into Fragment::speakers, later into Incident::processes
  Rank rank;             // filled by the assembly
  GroupIndex group = GroupIndex::none;
  GroupRank group_rank;
  int32_t ranks = -1;
  FileId file{};
  std::vector<RingPlace> rings;
  std::vector<TreePlace> trees;
  std::vector<RingOrder> orders;
  std::vector<ChannelUse> uses;
  bool rings_connected = false, trees_connected = false, nvls_connected = false, collnet_connected = false;
  bool connected_in_setup = false;       // rings were connected before the communicator was complete, not at first use
  int32_t ring_pxn = -1, ring_gdr = -1;  // "Connected all rings, use ring PXN 0 GDR 1"
  int32_t nvls_multicast = -1;           // 1: "NVLS multicast support is available on dev 0"
  uint32_t first_line = 0, rings_line = 0, connected_line = 0, multicast_line = 0;
};

// A network device as NCCL numbers it on one host.
struct NetDevice {
  int32_t index = -1;
  std::string name;  // "mlx5_0"
  std::string link;  // "IB", "RoCE"; empty for sockets
  int32_t gdr = -1;  // "GPU Direct RDMA Enabled for HCA 0 'mlx5_0'": 1
};
struct NetDevices {
  uint32_t speaker = 0;
  std::string net;  // "IB", "Socket", "OFI"
  std::vector<NetDevice> devices;
  int32_t claimed = -1;       // "found 4 nics", "Rank 3: 8 Net devices"
  bool pxn_disabled = false;  // "PXN Disabled as plugin is v4"
  SourceRef source, pxn_source;
};

// The hardware of one host as a tree of devices, from NCCL's dump in a log, a topology file, or `nvidia-smi topo -m`.
enum class DeviceKind : uint8_t { cpu, pci, gpu, nic, net, nvswitch, unknown };
struct HardwareDevice {
  DeviceKind kind = DeviceKind::unknown;
  uint64_t id = 0;        // bus id of GPUs and switches, number of CPUs and networks
  int32_t number = -1;    // GPU: rank in the communicator; network: device number
  int32_t parent = -1;    // index of the device it hangs on; -1 at the top
  double link_gbs = 0;    // to its parent
  double nvlink_gbs = 0;  // of a GPU: all its NVLinks together
  double speed_gbs = 0;   // of a network device
  int32_t gdr = -1;
  std::string name;  // "mlx5_0", "GPU3"
};
struct HardwarePath {
  uint32_t from = 0, to = 0;  // devices
  double gbs = 0;
  NcclPath type = NcclPath::unknown;
};
struct Hardware {
  uint32_t speaker = 0xffffffffu;
  GroupIndex group = GroupIndex::none;
  std::string host;  // where the file tells it
  std::vector<HardwareDevice> devices;
  std::vector<HardwarePath> paths;
  SourceRef source;

  int32_t Find(DeviceKind kind, uint64_t id) const;  // -1 where there is none
  const HardwarePath* Path(uint32_t from, uint32_t to) const;
};
// Fills `paths` between GPUs and networks from the tree, as NCCL does.
void DerivePaths(Hardware& hardware);

}  // namespace tacet
