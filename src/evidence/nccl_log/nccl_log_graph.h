// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "model/nccl_graph.h"

namespace tacet {

// The lines of the GRAPH and TUNING subsystems. Rows without a name of their own (channels below a Pattern line, rows
// of a table) are told by their shape; whose they are is told by what the same thread printed before.

bool ParseGraphSearch(std::string_view message, NcclGraphSearch* graph);

// One channel below a Pattern line: its number and the devices on its way.
struct NcclGraphRow {
  int32_t channel = -1;
  std::string_view devices;  // "NET/0-0 GPU/0-60 NET/0-0"
};
bool ParseGraphRow(std::string_view message, NcclGraphRow* row);

struct NcclSystemLine {
  double max_bw = -1, total_bw = -1;
};
bool ParseSystemLine(std::string_view message, NcclSystemLine* system);
bool IsSystemRow(std::string_view message);  // CPU/0-0 (1/1/2), + PCI[48.0] - GPU/0-60 (0)
bool IsPathRow(std::string_view message);    // GPU/0-60 :GPU/0-60 (0/5000.0/LOC) ...

// The tuning table comes in blocks of three algorithms since 2.18, in one block before.
struct NcclTableColumns {
  NcclAlgorithm algorithms[kNcclAlgorithms];
  int count = 0;
};
bool ParseTableHead(std::string_view message, NcclTableColumns* columns);
// "  Protocol    |", " Max NThreads |", "    AllReduce |": fills what the row says into `table`.
bool ParseTableRow(std::string_view message, const NcclTableColumns& columns, NcclTuningTable* table, int* op);

struct NcclChannelCounts {
  int32_t coll = -1, collnet = -1, nvls = -1, p2p = -1, p2p_per_peer = -1;
};
bool ParseChannelCounts(std::string_view message, NcclChannelCounts* counts);
bool ParseThreadThresholds(std::string_view message, std::vector<int64_t>* thresholds);

struct NcclCommShape {
  uint64_t comm = 0;
  int32_t rank = -1, ranks = -1, nodes = -1, local_ranks = -1, local_rank = -1, mnnvl = -1;
};
bool ParseCommShape(std::string_view message, NcclCommShape* shape);

// From 2.31 on every choice is printed with what it was made for and what it is expected to take.
struct NcclTuningInput {
  uint64_t comm = 0;
  OpKind op = OpKind::unknown;
  int64_t bytes = -1;
  int32_t data_type = -1, reduction = -1, operations = 1;
};
bool ParseTuningInput(std::string_view message, NcclTuningInput* input);
// `kernel` is the symmetric kernel's name, empty where an algorithm was chosen.
bool ParseBestTuning(std::string_view message, NcclLoggedChoice* choice, std::string_view* kernel);

}  // namespace tacet
