// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text_scan.h"
#include "lint/variable_rows.h"

namespace tacet {
namespace {

constexpr std::pair<std::string_view, ValueKind> kKinds[] = {{"integer", ValueKind::integer},
                                                             {"text", ValueKind::text},
                                                             {"choice", ValueKind::choice},
                                                             {"level", ValueKind::level},
                                                             {"algorithms", ValueKind::algorithms},
                                                             {"protocols", ValueKind::protocols},
                                                             {"list", ValueKind::list},
                                                             {"torch_flag", ValueKind::torch_flag},
                                                             {"torch_integer", ValueKind::torch_integer}};

std::string_view TakeColumn(std::string_view& row) {
  const std::string_view column = TakeUntil(row, '|');
  if (!row.empty()) row.remove_prefix(1);
  return column;
}

// A whole minor release ends with its last patch.
ReleaseNumber ParseEnd(std::string_view text) {
  const ReleaseNumber release = ParseReleaseNumber(text);
  return release != 0 && std::count(text.begin(), text.end(), '.') == 1 ? release + 99 : release;
}

Variable ParseRow(std::string_view row) {
  Variable variable;
  variable.name = TakeColumn(row);
  const std::string_view kind = TakeColumn(row);
  for (const auto& [word, value] : kKinds)
    if (word == kind) variable.kind = value;
  variable.standard = TakeColumn(row);
  variable.since = ParseReleaseNumber(TakeColumn(row));
  variable.until = ParseEnd(TakeColumn(row));
  const std::string_view agreement = TakeColumn(row);
  variable.agreement = agreement == "must" ? Agreement::must : agreement == "may" ? Agreement::may : Agreement::should;
  variable.instead = TakeColumn(row);
  variable.effect = row;
  return variable;
}

std::vector<Variable> ParseAllRows() {
  std::vector<Variable> variables;
  for (std::string_view rows :
       {NcclVariableRows(), NcclNetworkVariableRows(), TorchVariableRows(), PluginVariableRows()})
    while (!rows.empty()) {
      const std::string_view row = TakeUntil(rows, '\n');
      if (!rows.empty()) rows.remove_prefix(1);
      if (!row.empty()) variables.push_back(ParseRow(row));
    }
  return variables;
}

constexpr PastDefault kPastDefaults[] = {
    {"NCCL_IB_TIMEOUT", "14", 21400, "a short link flap ends the job"},
    {"NCCL_IB_TIMEOUT", "18", 22300, "a link flap of a few seconds ends the job"},
    {"NCCL_IB_GID_INDEX", "0", 22100, "NCCL finds the RoCE v2 address itself, and index 0 is often not one"},
    {"NCCL_IB_SPLIT_DATA_ON_QPS", "1", 22000, "small pieces cost more than spreading them gains"},
    {"NCCL_IB_SL", "0", 22600, "a service level given by the application is overridden"},
    {"NCCL_IB_TC", "0", 22600, "a traffic class given by the application is overridden"},
    {"NCCL_IB_FIFO_TC", "0", 22400, "control messages no longer follow NCCL_IB_TC"},
    {"NCCL_IB_AR_THRESHOLD", "8192", 23000, "NCCL chooses by the device now"},
    {"NCCL_NET_FORCE_FLUSH", "1", 21900, "a flush after every receive costs latency"},
    {"NCCL_GRAPH_REGISTER", "0", 21900, "buffers of CUDA graphs are copied"},
    {"NCCL_CUMEM_ENABLE", "0", 21900, "NVLink SHARP and user buffers need cuMem"},
    {"NCCL_CUMEM_HOST_ENABLE", "0", 22400, "NCCL chooses by driver and container now"},
    {"NCCL_NVLS_NCHANNELS", "16", 22500, "NCCL chooses by the GPU now"},
    {"NCCL_NET_GDR_C2C", "0", 22700, "GPUDirect RDMA over C2C is off"},
    {"NCCL_PXN_C2C", "0", 22800, "the path through the GPU next to the network device is off over C2C"},
    {"NCCL_NCHANNELS_PER_NET_PEER", "2", 22000, "NCCL chooses by the number of peers now"},
    {"NCCL_NET_PLUGIN_REF_COUNT", "1", 22800, "the plugin is unloaded and loaded again"},
    {"NCCL_CGA_CLUSTER_SIZE", "0", 21600, "clusters are off on Hopper and later"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", 20200, "a communicator is aborted before flight records are written"},
    {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "120", 20300, "a busy GPU may be taken for a stuck watchdog"},
    {"NCCL_NVLS_ENABLE", "1", 21800, "NVLink SHARP is forced even where it does not work"},
};

constexpr NeverRead kNeverRead[] = {
    {"NCCL_TIMEOUT", "pass timeout= to init_process_group or new_group; NCCL itself has no timeout"},
    {"NCCL_TIMEOUT_MS", "pass timeout= to init_process_group or new_group; NCCL itself has no timeout"},
    {"NCCL_COMM_TIMEOUT", "pass timeout= to init_process_group or new_group; NCCL itself has no timeout"},
    {"NCCL_WATCHDOG_TIMEOUT", "pass timeout= to init_process_group; the watchdog of PyTorch follows it"},
    {"TORCH_NCCL_TIMEOUT", "pass timeout= to init_process_group or new_group"},
    {"TORCH_NCCL_TIMEOUT_SEC", "pass timeout= to init_process_group or new_group"},
    {"TORCH_DISTRIBUTED_TIMEOUT", "pass timeout= to init_process_group or new_group"},
    {"NCCL_SOCKET_TIMEOUT", "set NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC (2.24)"},
    {"NCCL_NVLINK_DISABLE", "set NCCL_P2P_DISABLE=1, or NCCL_P2P_LEVEL=PIX to keep PCIe"},
    {"NCCL_DYNAMIC_CHUNK_SIZE", "unset it; NCCL chooses"},
    {"NCCL_AVOID_RECORD_STREAMS", "set TORCH_NCCL_AVOID_RECORD_STREAMS"},
    {"NCCL_HEARTBEAT_TIMEOUT_SEC", "set TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"},
    {"NCCL_IB_HCA1", "name all adapters in NCCL_IB_HCA, separated by commas"},
    {"NCCL_EXCLUDE_IB_HCA", "set NCCL_IB_HCA=^NAME,..."},
    {"NCCL_IB_ENABLE", "set NCCL_IB_DISABLE=1 to forbid InfiniBand; it is on by default"},
    {"NCCL_P2P_ENABLE", "set NCCL_P2P_DISABLE=1 to forbid it; it is on by default"},
    {"NCCL_SHM_ENABLE", "set NCCL_SHM_DISABLE=1 to forbid it; it is on by default"},
    {"NCCL_NVLS_DISABLE", "set NCCL_NVLS_ENABLE=0"},
    {"NCCL_RAS_DISABLE", "set NCCL_RAS_ENABLE=0"},
    {"NCCL_GDR_ENABLE", "set NCCL_NET_GDR_LEVEL"},
};

}  // namespace

std::span<const Variable> AllVariables() {
  static const std::vector<Variable> kVariables = ParseAllRows();
  return kVariables;
}

const Variable* FindKnownVariable(std::string_view name) {
  static const std::unordered_map<std::string_view, const Variable*> kByName = [] {
    std::unordered_map<std::string_view, const Variable*> by_name;
    for (const Variable& variable : AllVariables()) by_name.emplace(variable.name, &variable);
    return by_name;
  }();
  const auto found = kByName.find(name);
  return found != kByName.end() ? found->second : nullptr;
}

const PastDefault* FindPastDefault(std::string_view name, std::string_view value, ReleaseNumber release) {
  for (const PastDefault& past : kPastDefaults)
    if (past.name == name && past.value == value && (release == 0 || release >= past.changed)) return &past;
  return nullptr;
}

std::string_view DefaultOf(const Variable& variable, ReleaseNumber release) {
  const PastDefault* then = nullptr;
  for (const PastDefault& past : kPastDefaults)
    if (past.name == variable.name && release != 0 && release < past.changed && (!then || past.changed < then->changed))
      then = &past;
  return then != nullptr ? then->value : variable.standard;
}

std::string EarlierDefaults(std::string_view name) {
  std::string words;  // the rows go forward in time, the words backward
  for (const PastDefault& past : kPastDefaults)
    if (past.name == name)
      words = std::string(past.value) + " before " + ReleaseWords(past.changed) + (words.empty() ? "" : ", ") + words;
  return words;
}

const NeverRead* FindNeverRead(std::string_view name) {
  for (const NeverRead& one : kNeverRead)
    if (one.name == name) return &one;
  return nullptr;
}

ReleaseNumber ParseReleaseNumber(std::string_view text) {
  while (!text.empty() && !IsDigit(text.front())) text.remove_prefix(1);
  int major = 0, minor = 0, patch = 0;
  if (!TakeNumber(text, &major)) return 0;
  if (major >= 1000 && major < 100000) {  // "22809" of NCCL_VERSION_CODE; "2804" before 2.9
    return major >= 10000 ? major : major / 1000 * 10000 + major / 100 % 10 * 100 + major % 100;
  }
  if (major > 9 || !TakeLiteral(text, ".") || !TakeNumber(text, &minor) || minor < 0 || minor > 99) return 0;
  if (TakeLiteral(text, ".") && (!TakeNumber(text, &patch) || patch < 0 || patch > 99)) patch = 0;
  return major * 10000 + minor * 100 + patch;
}

std::string ReleaseWords(ReleaseNumber release) {
  const int patch = release % 100;
  std::string words = std::to_string(release / 10000) + "." + std::to_string(release / 100 % 100);
  if (patch != 0 && patch != 99) words += "." + std::to_string(patch);
  return words;
}

}  // namespace tacet
