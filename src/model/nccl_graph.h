// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/source_ref.h"
#include "base/string_table.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// How far two devices are apart, from near to far. RCCL's XGMI is nvl.
enum class NcclPath : uint8_t { unknown, loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };
std::string_view Name(NcclPath path);           // "NVL"
NcclPath ParseNcclPath(std::string_view name);  // "NVL", "XGMI"

// In the order of NCCL's tables.
enum class NcclAlgorithm : uint8_t { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat, unknown };
inline constexpr int kNcclAlgorithms = 7;
std::string_view Name(NcclAlgorithm algorithm);  // "NVLSTree"
// "RING", "Ring", "1", "NVLS_TREE", "CollNetDirect", and "CollNet" of the releases that had one of them.
NcclAlgorithm ParseNcclAlgorithm(std::string_view name);

enum class NcclProtocol : uint8_t { ll, ll128, simple, unknown };
inline constexpr int kNcclProtocols = 3;
std::string_view Name(NcclProtocol protocol);  // "LL128"
NcclProtocol ParseNcclProtocol(std::string_view name);

// The five operations that NCCL tunes, in the order of its tables.
inline constexpr int kNcclTuned = 5;
inline constexpr OpKind kNcclTunedOps[kNcclTuned] = {OpKind::broadcast, OpKind::reduce, OpKind::all_gather,
                                                     OpKind::reduce_scatter, OpKind::all_reduce};
int NcclTunedIndex(OpKind op);  // -1 for other operations

// What patterns are called in "Pattern 4, crossNic 0, ...".
enum NcclPattern : int32_t {
  kPatternBalancedTree = 1,
  kPatternSplitTree = 2,
  kPatternTree = 3,
  kPatternRing = 4,
  kPatternNvls = 5,
  kPatternCollNetDirect = 6
};

// One search for paths, as the rank that printed it saw its own node: the ranks' agreement comes later.
struct NcclGraphSearch {
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;  // which of the five graphs: ring, tree, collnet_*, nvls
  int32_t pattern = 0;
  int32_t cross_nic = 0, channels = 0, same_channels = 0;
  double bw_intra = 0, bw_inter = 0;  // GB/s per channel
  NcclPath type_intra = NcclPath::unknown, type_inter = NcclPath::unknown;
  double latency_inter_us = 0;  // only in graph files
  bool simple_order = false;    // "Could not find a path for pattern 4, falling back to simple order"
  std::vector<StringId> rows;   // one per channel: "NET/0-0 GPU/0-60 NET/0-0"
  SourceRef source;
};

struct NcclTuningCell {
  double latency_us = 0, bandwidth_gbps = 0;  // as printed, one decimal
};

// The table that rank 0 prints of each communicator.
struct NcclTuningTable {
  bool has[kNcclTuned][kNcclAlgorithms] = {};  // the row was printed, for this algorithm
  NcclTuningCell cells[kNcclTuned][kNcclAlgorithms][kNcclProtocols];
  int32_t max_threads[kNcclAlgorithms][kNcclProtocols];
  SourceRef source;
  SourceRef row_sources[kNcclTuned];  // where the operation's first row is
  NcclTuningTable();
};

// What NCCL chose for operations of one size; equal choices are counted.
struct NcclLoggedChoice {
  OpKind op = OpKind::unknown;  // unknown before 2.23
  int64_t bytes = -1;           // as printed; see docs/predict.md for what NCCL counts
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  int32_t first_channel = -1, last_channel = -1;
  int32_t channels = -1, warps = -1;  // of 2.31 and later
  double time_us = -1;                // NCCL's own prediction, where printed (2.20 to 2.23, from 2.31)
  DataType type = DataType::unknown;  // of the call before it, where calls are logged
  ReduceOp reduction = ReduceOp::unknown;
  bool grouped = false;  // several calls stand before it: NCCL may have chosen for their sum
  bool forced = false;
  StringId kernel{};   // of a symmetric kernel or copy engine: "AllGather_LL"; such a choice has no algorithm
  StringId variant{};  // "Symmetric", "Copy Engine", "Hierarchical CE"
  uint64_t times = 0;
  SourceRef source;  // the first of them
};

// One communicator as one process set it up: all that NCCL's INIT, GRAPH and TUNING lines say of it.
struct NcclSetup {
  uint32_t speaker = 0;  // index into Fragment::speakers, later into Incident::processes
  Rank rank;             // filled by the assembly
  GroupIndex group = GroupIndex::none;
  GroupRank group_rank;
  SourceRef source;
  StringId version{};  // "2.28.9+cuda13.0"; of RCCL "RCCL 2.18.3+hip6.0"
  StringId host{};
  int32_t ranks = -1, nodes = -1, local_ranks = -1, local_rank = -1, mnnvl = -1;
  int32_t device = -1;
  StringId bus_id{};
  int32_t coll_channels = -1, collnet_channels = -1, nvls_channels = -1, p2p_channels = -1, p2p_channels_per_peer = -1;
  std::vector<int64_t> thread_thresholds;  // as printed: Tree LL, LL128, Simple; Ring the same; CollNet ...
  double max_bw = -1, total_bw = -1;       // "=== System : maxBw 1.2 totalBw 48.0 ==="
  SourceRef system_source;                 // of the first of the rows below
  std::vector<StringId> system_rows;       // below it, with their indentation: "+ NVL[240.0] - NVS/0-0"
  std::vector<StringId> path_rows;         // "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) NET/0-0 (3/1.2/PHB)"
  std::vector<NcclGraphSearch> graphs;     // in the order printed
  std::vector<NcclTuningTable> tables;     // one, or none
  std::vector<NcclLoggedChoice> choices;

  const NcclGraphSearch* GraphOf(NcclAlgorithm algorithm) const;  // nullptr where it was not searched
};

}  // namespace tacet
