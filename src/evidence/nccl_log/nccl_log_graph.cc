// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_graph.h"

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_fields.h"

namespace tacet {
namespace {

constexpr int32_t kMaxChannels = 1024;  // NCCL's own limit is 64, RCCL's 256
constexpr size_t kMaxThresholds = 32;
constexpr int32_t kMaxCells = kNcclAlgorithms * kNcclProtocols;

bool TakeKeyed(std::string_view& text, std::string_view key, int32_t* value) {
  return TakeLiteral(text, key) && TakeNumber(text, value);
}

// "  14.0/   0.0 " -> 14.0, 0.0
bool ParseCell(std::string_view text, NcclTuningCell* cell) {
  SkipBlanks(text);
  if (!TakeDouble(text, &cell->latency_us) || !TakeLiteral(text, "/")) return false;
  SkipBlanks(text);
  return TakeDouble(text, &cell->bandwidth_gbps);
}

// What stands between two bars; the bar behind is taken too.
bool TakeTableField(std::string_view& text, std::string_view* field) {
  const size_t bar = text.find('|');
  if (bar == std::string_view::npos) return false;
  *field = Trim(text.substr(0, bar));
  text.remove_prefix(bar + 1);
  return true;
}

std::string_view ValueAfter(std::string_view message, std::string_view key) {
  auto rest = After(message, key);
  if (!rest) return {};
  return Trim(rest->substr(0, rest->find_first_of(",}")));
}

template <typename T>
T NumberAfter(std::string_view message, std::string_view key, T otherwise) {
  std::string_view value = ValueAfter(message, key);
  T number{};
  return TakeNumber(value, &number) ? number : otherwise;
}

}  // namespace

// Pattern 4, crossNic 0, nChannels 1, bw 1.200000/1.200000, type LOC/PHB, sameChannels 1
// Pattern 4, crossNic 0, nChannels 2, speed 12.000000/12.000000, type NVL/PIX, sameChannels 1         (up to 2.12)
bool ParseGraphSearch(std::string_view message, NcclGraphSearch* graph) {
  *graph = {};
  if (!TakeKeyed(message, "Pattern ", &graph->pattern) || !TakeKeyed(message, ", crossNic ", &graph->cross_nic) ||
      !TakeKeyed(message, ", nChannels ", &graph->channels))
    return false;
  if (!TakeLiteral(message, ", bw ") && !TakeLiteral(message, ", speed ")) return false;
  if (!TakeDouble(message, &graph->bw_intra) || !TakeLiteral(message, "/") || !TakeDouble(message, &graph->bw_inter) ||
      !TakeLiteral(message, ", type "))
    return false;
  graph->type_intra = ParseNcclPath(TakeUntil(message, '/'));
  TakeLiteral(message, "/");
  graph->type_inter = ParseNcclPath(Trim(TakeUntil(message, ',')));
  TakeKeyed(message, ", sameChannels ", &graph->same_channels);
  return graph->channels >= 0 && graph->channels <= kMaxChannels;
}

//  0 : NET/0-0 GPU/0-60 NET/0-0
// 12 : NET/1 GPU/0 GPU/1 NET/1                                                                       (older)
bool ParseGraphRow(std::string_view message, NcclGraphRow* row) {
  SkipBlanks(message);
  if (!TakeNumber(message, &row->channel) || !TakeLiteral(message, " : ")) return false;
  row->devices = Trim(message);
  return row->channel >= 0 && row->channel <= kMaxChannels &&
         (row->devices.starts_with("NET/") || row->devices.starts_with("GPU/"));
}

// === System : maxBw 1.2 totalBw 48.0 ===
// === System : maxWidth 240.0 totalWidth 240.0 ===                                                   (up to 2.12)
bool ParseSystemLine(std::string_view message, NcclSystemLine* system) {
  *system = {};
  if (!TakeLiteral(message, "=== System : max")) return false;
  TakeUntil(message, ' ');
  SkipBlanks(message);
  if (!TakeDouble(message, &system->max_bw)) return false;
  const size_t total = message.find("total");
  if (total == std::string_view::npos) return true;  // the oldest do not print it
  message.remove_prefix(total);
  TakeUntil(message, ' ');
  SkipBlanks(message);
  TakeDouble(message, &system->total_bw);
  return true;
}

bool IsSystemRow(std::string_view message) {
  SkipBlanks(message);
  if (message.starts_with("+ ")) return Contains(message, "] - ");
  return message.starts_with("CPU/") && Contains(message, " (") && !Contains(message, " :");
}

bool IsPathRow(std::string_view message) {
  if (!message.starts_with("GPU/") && !message.starts_with("NET/") && !message.starts_with("GIN/")) return false;
  const size_t colon = message.substr(0, 48).find(" :");
  return colon != std::string_view::npos && Contains(message, "/LOC)");
}

//   Algorithm   |                            Tree                  |                            Ring        ...
// Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL | ...             (up to 2.17)
bool ParseTableHead(std::string_view message, NcclTableColumns* columns) {
  *columns = {};
  std::string_view field;
  if (!TakeTableField(message, &field)) return false;
  const bool per_cell = field == "Latency/AlgBw" || field == "Latency/AlgBW";
  if (!per_cell && field != "Algorithm") return false;
  NcclAlgorithm last = NcclAlgorithm::unknown;
  while (TakeTableField(message, &field)) {
    if (per_cell) field = Trim(field.substr(0, field.find('/')));
    const NcclAlgorithm algorithm = ParseNcclAlgorithm(field);
    if (algorithm == NcclAlgorithm::unknown) return false;
    if (per_cell && algorithm == last) continue;
    if (columns->count == kNcclAlgorithms) return false;
    columns->algorithms[columns->count++] = last = algorithm;
  }
  return columns->count > 0;
}

//   Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |
//  Max NThreads |            512 |            640 |            512 |            512 |            640 |            256 |
//     AllReduce |    26.8/   0.1 |    48.0/   0.0 |    64.4/   0.5 |    36.6/   0.4 |    65.0/   0.0 |    92.4/   0.8 |
bool ParseTableRow(std::string_view message, const NcclTableColumns& columns, NcclTuningTable* table, int* op) {
  *op = -1;
  std::string_view name, field;
  if (!TakeTableField(message, &name)) return false;
  if (name == "Protocol") return true;
  const bool threads = name == "Max NThreads";
  if (!threads) *op = NcclTunedIndex(ParseOpKind(name));
  if (!threads && *op < 0) return false;
  const int32_t cells = columns.count * kNcclProtocols;
  int32_t i = 0;
  for (; i < cells && i < kMaxCells && TakeTableField(message, &field); ++i) {
    const auto algorithm = static_cast<size_t>(columns.algorithms[i / kNcclProtocols]);
    if (threads) {
      if (!TakeNumber(field, &table->max_threads[algorithm][i % kNcclProtocols])) return false;
      continue;
    }
    if (!ParseCell(field, &table->cells[*op][algorithm][i % kNcclProtocols])) return false;
    if (i % kNcclProtocols == kNcclProtocols - 1) table->has[*op][algorithm] = true;
  }
  return i > 0;
}

// 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer
// 24 coll channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer                      (2.18 to 2.22)
// 24 coll channels, 32 p2p channels, 32 p2p channels per peer                                        (up to 2.16)
bool ParseChannelCounts(std::string_view message, NcclChannelCounts* counts) {
  *counts = {};
  for (;;) {
    int32_t number = -1;
    SkipBlanks(message);
    if (!TakeNumber(message, &number) || !TakeLiteral(message, " ")) return false;
    const std::string_view what = TakeUntil(message, ',');
    if (what == "coll channels") counts->coll = number;
    if (what == "collnet channels") counts->collnet = number;
    if (what == "nvls channels") counts->nvls = number;
    if (what == "p2p channels") counts->p2p = number;
    if (what.starts_with("p2p channels per peer")) counts->p2p_per_peer = number;
    if (!TakeLiteral(message, ",")) break;
  }
  return counts->coll >= 0;
}

// threadThresholds 8/8/64 | 32/8/64 | 512 | 512
bool ParseThreadThresholds(std::string_view message, std::vector<int64_t>* thresholds) {
  thresholds->clear();
  if (!TakeLiteral(message, "threadThresholds ")) return false;
  while (thresholds->size() < kMaxThresholds) {
    int64_t value = -1;
    if (!TakeNumber(message, &value)) break;
    thresholds->push_back(value);
    if (!TakeLiteral(message, " | ") && !TakeLiteral(message, "/")) break;
  }
  return !thresholds->empty();
}

// comm 0x4654b490 rank 0 nRanks 4 nNodes 4 localRanks 1 localRank 0 MNNVL 0
bool ParseCommShape(std::string_view message, NcclCommShape* shape) {
  *shape = {};
  if (!TakeLiteral(message, "comm ") || !TakeAddress(message, &shape->comm)) return false;
  shape->rank = IntAfter<int32_t>(message, " rank ").value_or(-1);
  shape->ranks = IntAfter<int32_t>(message, " nRanks ").value_or(-1);
  shape->nodes = IntAfter<int32_t>(message, " nNodes ").value_or(-1);
  shape->local_ranks = IntAfter<int32_t>(message, " localRanks ").value_or(-1);
  shape->local_rank = IntAfter<int32_t>(message, " localRank ").value_or(-1);
  shape->mnnvl = IntAfter<int32_t>(message, " MNNVL ").value_or(-1);
  return shape->nodes > 0;
}

// Input: { .comm = 0x55d0c0a0, .tuningMask = 111, .func = AllReduce, .redOp = 0, .devRedop = 0, .dataType = 7,
//          .nBytes = 4194304, .numPipesOps = 1, .count = 1048576, .countMax = 1048576, .nWorks = 1, ... }
bool ParseTuningInput(std::string_view message, NcclTuningInput* input) {
  *input = {};
  if (!message.starts_with("Input: {")) return false;
  std::string_view comm = ValueAfter(message, ".comm = ");
  TakeAddress(comm, &input->comm);
  input->op = ParseOpKind(ValueAfter(message, ".func = "));
  input->bytes = NumberAfter<int64_t>(message, ".nBytes = ", -1);
  input->data_type = NumberAfter<int32_t>(message, ".dataType = ", -1);
  input->reduction = NumberAfter<int32_t>(message, ".redOp = ", -1);
  input->operations = NumberAfter<int32_t>(message, ".numPipesOps = ", 1);
  return input->bytes >= 0;
}

// Best tuning { .id = 5, .valid = 1, timeUs = 31.200001,  .algo = RING, .proto = LL, .symKernelId = Undefined,
//               nChannels = 2, maxChannels = 2, nWarps = 16, forced = 0 }
bool ParseBestTuning(std::string_view message, NcclLoggedChoice* choice, std::string_view* kernel) {
  *kernel = {};
  if (!message.starts_with("Best tuning {")) return false;
  std::string_view time = ValueAfter(message, "timeUs = ");
  if (!TakeDouble(time, &choice->time_us)) return false;
  choice->algorithm = ParseNcclAlgorithm(ValueAfter(message, ".algo = "));
  choice->protocol = ParseNcclProtocol(ValueAfter(message, ".proto = "));
  if (choice->algorithm == NcclAlgorithm::unknown) *kernel = ValueAfter(message, ".symKernelId = ");
  choice->channels = NumberAfter<int32_t>(message, " nChannels = ", -1);
  choice->warps = NumberAfter<int32_t>(message, "nWarps = ", -1);
  choice->forced = NumberAfter<int32_t>(message, "forced = ", 0) != 0;
  return true;
}

}  // namespace tacet
