// SPDX-License-Identifier: Apache-2.0
// make_setup_logs FOLDER NODES PEERS: the set-up logs of NODES x 8 H100 in NCCL's formats, one file a rank, with
// connections to PEERS ranks each, as an all-to-all makes them. The same job as tests/topology/make_setup_logs.py
// writes, without its faults.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kGpus = 8, kGraphChannels = 8, kChannels = 16;
constexpr const char* kBuses[kGpus] = {"1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000"};

class RankLog {
 public:
  RankLog(int nodes, int peers, int rank)
      : nodes_(nodes), peers_(peers), rank_(rank), node_(rank / kGpus), gpu_(rank % kGpus) {
    char prefix[64];
    std::snprintf(prefix, sizeof prefix, "gpu%03d:%d:%d [%d] NCCL INFO ", node_, 4000 + gpu_, 4000 + gpu_, gpu_);
    prefix_ = prefix;
  }

  const std::string& Write() {
    const char* const who =
        "ncclCommInitRankConfig comm 0x55d0c0a0 rank %d nranks %d cudaDev %d nvmlDev %d busId %s commId "
        "0x5069d6244cb80784 - Init %s";
    Line("NCCL version 2.27.7+cuda12.9");
    Line("NCCL_DEBUG_SUBSYS set by environment to INIT,ENV,NET,GRAPH,TUNING");
    Line("NCCL_SOCKET_IFNAME set by environment to eth0");
    std::string devices;
    for (int i = 0; i < kGpus; ++i) devices += "[" + std::to_string(i) + "]mlx5_" + std::to_string(i) + ":1/IB ";
    Line("NET/IB : Using %s[RO]; OOB eth0:10.0.%d.%d<0>", devices.c_str(), node_ / 250, node_ % 250 + 1);
    Line("Using network IB");
    Line(who, rank_, nodes_ * kGpus, gpu_, gpu_, kBuses[gpu_], "START");
    Line("NVLS multicast support is available on dev %d", gpu_);
    for (int i = 0; i < kGpus; ++i) Line("NET/IB : GPU Direct RDMA Enabled for HCA %d 'mlx5_%d'", i, i);
    WriteSystem();
    WriteGraphs();
    Line("comm 0x55d0c0a0 rank %d nRanks %d nNodes %d localRanks 8 localRank %d MNNVL 0", rank_, nodes_ * kGpus, nodes_,
         gpu_);
    for (int c = 0; c < kChannels; ++c) Line("Ring %02d : %d -> %d -> %d", c, Neighbour(c, -1), rank_, Neighbour(c, 1));
    std::string trees = "Trees";
    for (int c = 0; c < kChannels; ++c) {
      const int at = Place(c), up = at > 0      ? node_ * kGpus + (c + at - 1) % kGpus
                                    : node_ > 0 ? (node_ - 1) / 2 * kGpus + c % kGpus
                                                : -1;
      const int down = at < kGpus - 1 ? node_ * kGpus + (c + at + 1) % kGpus : -1;
      trees += " [" + std::to_string(c) + "] " + std::to_string(down) + "/-1/-1->" + std::to_string(rank_) + "->" +
               std::to_string(up);
    }
    Line("%s", trees.c_str());
    Line("threadThresholds 8/8/64 | %d/8/64 | 512 | 512", 8 * nodes_ * kGpus);
    Line("%d coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer", kChannels);
    Line(who, rank_, nodes_ * kGpus, gpu_, gpu_, kBuses[gpu_], "COMPLETE");
    WriteConnections();
    return text_;
  }

 private:
  [[gnu::format(printf, 2, 3)]] void Line(const char* format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_.append(prefix_).append(line, static_cast<size_t>(length)).append("\n");
  }
  int Place(int channel) const { return (gpu_ - channel % kGpus + kGpus) % kGpus; }
  int Neighbour(int channel, int step) const {
    const int at = Place(channel) + step, first = channel % kGpus;
    const int node = (node_ + (at < 0 ? -1 : at >= kGpus ? 1 : 0) + nodes_) % nodes_;
    return node * kGpus + (first + (at + kGpus) % kGpus) % kGpus;
  }

  void WriteSystem() {
    Line("=== System : maxBw 48.0 totalBw 370.8 ===");
    for (int cpu = 0; cpu < 2; ++cpu) {
      Line("CPU/0-%d (1/1/2)", cpu);
      for (int g = 4 * cpu; g < 4 * cpu + 4; ++g) {
        Line("+ PCI[48.0] - PCI/0-%x (1000c0301000100b)", 0x100000 + 0x10000 * g);
        Line("              + PCI[48.0] - GPU/0-%s (%d)", kBuses[g], node_ * kGpus + g);
        Line("                            + NVL[370.8] - NVS/0-0");
        Line("              + PCI[48.0] - NIC/0-%x", 0x104000 + 0x10000 * g);
        Line("                            + NET[50.0] - NET/0-%d (%x/1/50.000000)", g, 0xa0880003 + g);
      }
      Line("+ SYS[10.0] - CPU/0-%d", 1 - cpu);
    }
    Line("==========================================");
    for (int g = 0; g < kGpus; ++g) {
      std::string row = std::string("GPU/0-") + kBuses[g] + " :";
      for (int o = 0; o < kGpus; ++o)
        row += std::string("GPU/0-") + kBuses[o] + (o == g ? " (0/5000.0/LOC) " : " (2/370.8/NVL) ");
      for (int n = 0; n < kGpus; ++n)
        row += "NET/0-" + std::to_string(n) + (n == g ? " (4/48.0/PXB) " : " (5/48.0/PXN) ");
      Line("%s", row.c_str());
    }
  }

  void WriteGraphs() {
    for (const int pattern : {4, 1, 5}) {
      Line("Pattern %d, crossNic 0, nChannels %d, bw 48.000000/48.000000, type NVL/PXN, sameChannels 0", pattern,
           kGraphChannels);
      for (int c = 0; c < kGraphChannels; ++c) {
        std::string row;
        for (int i = 0; i < (pattern == 5 ? 1 : kGpus); ++i)
          row += std::string("GPU/0-") + kBuses[(c + i) % kGpus] + " ";
        Line("%2d : NET/0-%d %sNET/0-%d", c, c, row.c_str(), c);
      }
    }
  }

  void WriteHop(int channel, int index, int from, int to, bool sends, int nic, const char* shared) {
    if (from / kGpus == to / kGpus) {
      if (sends)
        Line("Channel %02d/%d : %d[%d] -> %d[%d] via P2P/CUMEM", channel, index, from, from % kGpus, to, to % kGpus);
      return;
    }
    char relay[16] = "";
    if (sends && nic != from % kGpus) std::snprintf(relay, sizeof relay, "(%d)", node_ * kGpus + nic);
    Line("Channel %02d/%d : %d[%d] -> %d[%d] %s via NET/IB/%d%s/GDRDMA%s", channel, index, from, from % kGpus, to,
         to % kGpus, sends ? "[send]" : "[receive]", nic, relay, shared);
  }

  void WriteConnections() {
    for (int c = 0; c < kChannels; ++c) {
      WriteHop(c, 0, Neighbour(c, -1), rank_, false, c % kGpus, "");
      WriteHop(c, 0, rank_, Neighbour(c, 1), true, c % kGpus, "");
    }
    Line("Connected all rings, use ring PXN 1 GDR 1");
    Line("Connected all trees");
    const int ranks = nodes_ * kGpus;
    for (int step = 1; step <= peers_ && step < ranks; ++step) {
      const int from = (rank_ - step + ranks) % ranks, to = (rank_ + step) % ranks;
      for (int c = step * 2 % 16; c < step * 2 % 16 + 2; ++c) {
        WriteHop(c, 1, from, rank_, false, gpu_, "/Shared");
        WriteHop(c, 1, rank_, to, true, to % kGpus, "/Shared");
      }
    }
  }

  int nodes_, peers_, rank_, node_, gpu_;
  std::string prefix_, text_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_setup_logs FOLDER NODES PEERS\n");
    return 2;
  }
  const int nodes = std::atoi(argv[2]), peers = std::atoi(argv[3]);
  for (int rank = 0; rank < nodes * kGpus; ++rank) {
    char path[4096];
    std::snprintf(path, sizeof path, "%s/nccl_gpu%03d_%d.log", argv[1], rank / kGpus, 4000 + rank % kGpus);
    std::FILE* file = std::fopen(path, "w");
    RankLog log(nodes, peers, rank);
    const std::string& text = log.Write();
    const bool well = file && std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fclose(file) == 0;
    if (!well) {
      std::fprintf(stderr, "make_setup_logs: cannot write %s\n", path);
      return 1;
    }
  }
  return 0;
}
