// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_topic.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

bool EndsWithInit(std::string_view message) {
  return message.ends_with("Init COMPLETE") || message.ends_with("Init START");
}

// "misc/socket.cc:845 -> 6": a source file, a colon and a line number.
bool BeginsWithSourcePlace(std::string_view message) {
  const size_t colon = message.substr(0, 80).find(':');
  if (colon == std::string_view::npos || colon + 1 >= message.size() || !IsDigit(message[colon + 1])) return false;
  const std::string_view file = message.substr(0, colon);
  if (file.find(' ') != std::string_view::npos) return false;
  for (const std::string_view ending : {".cc", ".h", ".cu", ".c", ".cpp"})
    if (file.ends_with(ending)) return true;
  return false;
}

// AllReduce: opCount 1f sendbuff 0x7f7e1d800000 recvbuff 0x7f7e1d800000 count 262144 ...
// AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}
// AllGather [Symmetric]: 4096 Bytes -> Kernel AllGather_LL nchannels 2 nthreads 512 nWorks 1
NcclTopic ClassifyFunctionLine(std::string_view message) {
  size_t colon = 0;
  while (colon < message.size() && colon < 40 && message[colon] != ':') ++colon;
  if (colon + 2 >= message.size() || message[colon] != ':') return NcclTopic::perhaps;
  const std::string_view rest = message.substr(colon + 1);
  if (rest.starts_with(" opCount ")) return rest.ends_with(" DONE") ? NcclTopic::call_done : NcclTopic::call;
  return rest[0] == ' ' && IsDigit(rest[1]) ? NcclTopic::choice : NcclTopic::perhaps;
}

// comm 0x2ad6a510 rank 1 nranks 4 cudaDev 0 busId 60 - Destroy COMPLETE
// comm 0x2ad6a510 rank 1 nRanks 4 nNodes 4 localRanks 1 localRank 0 MNNVL 0
NcclTopic ClassifyComm(std::string_view message) {
  if (EndsWithInit(message)) return NcclTopic::init;
  if (Contains(message, " nNodes ")) return NcclTopic::comm_shape;
  for (const std::string_view word : {" - Destroy ", " - Abort ", " - Revoke "})
    if (Contains(message, word)) return NcclTopic::comm_end;
  return NcclTopic::perhaps;
}

// NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
// NET/Socket : Using [0]eth0:192.0.2.2<0>
// NET/0-0 :GPU/0-60 (3/1.2/PHB) CPU/0-ffffffffffffff (2/1.2/PHB)
NcclTopic ClassifyNet(std::string_view message) {
  const size_t colon = message.substr(0, 40).find(':');
  if (colon == std::string_view::npos) return Contains(message, " nics)") ? NcclTopic::net_remark : NcclTopic::ignored;
  std::string_view rest = message.substr(colon + 1);
  SkipBlanks(rest);
  if (rest.starts_with("Using ["))
    return message.starts_with("NET/Socket") ? NcclTopic::interfaces : NcclTopic::devices;
  if (rest.starts_with("No device found")) return NcclTopic::no_device;
  if (rest.starts_with("GPU Direct RDMA ")) return NcclTopic::gpu_direct;
  if (Contains(message, " nics)")) return NcclTopic::net_remark;
  return IsDigit(message[4]) ? NcclTopic::graph : NcclTopic::perhaps;
}

// ReduceScatter |    21.6/   0.8 | ...
bool IsTableRow(std::string_view message) {
  constexpr size_t kBar = 14;
  return message.size() > kBar && message[kBar] == '|';
}

// 12 : NET/0-0 GPU/0-60 NET/0-0
// 24 coll channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer
// 4198400 Bytes -> Algo 1 proto 2 time 8.5
NcclTopic ClassifyNumber(std::string_view message) {
  const std::string_view front = message.substr(0, 40);
  if (Contains(front, " Bytes -> ")) return NcclTopic::choice;
  return Contains(front, " : ") || Contains(front, " coll channels") ? NcclTopic::graph : NcclTopic::ignored;
}

// The rest of the lines that begin with a blank: rows of tables, of searches and of the system's tree.
NcclTopic ClassifyRow(std::string_view message) {
  if (IsTableRow(message)) return NcclTopic::tuning_row;
  const size_t at = message.find_first_not_of(' ');
  if (at == std::string_view::npos) return NcclTopic::ignored;
  return message[at] == '+' || IsDigit(message[at]) ? NcclTopic::graph : NcclTopic::ignored;
}

NcclTopic ClassifyCapitalC(std::string_view message) {
  if (message.starts_with("CPU/")) return NcclTopic::graph;
  if (message.starts_with("Could not find a path for pattern")) return NcclTopic::graph;
  if (message.starts_with("Channel ")) return Contains(message, " via ") ? NcclTopic::connection : NcclTopic::topology;
  if (message.starts_with("Connected "))
    return message.starts_with("Connected to ") ? NcclTopic::ignored : NcclTopic::topology;
  if (message.starts_with("Could not get speed")) return NcclTopic::ignored;
  if (message.starts_with("CollNet ") || message.starts_with("Coll "))
    return Contains(message, " via ") ? NcclTopic::connection : NcclTopic::perhaps;
  return NcclTopic::perhaps;
}

NcclTopic ClassifyLowerCase(std::string_view message) {
  if (message.starts_with("comm ")) return ClassifyComm(message);
  if (message[0] == 'n' && EndsWithInit(message)) return NcclTopic::init;
  if (message.ends_with("abort called")) return NcclTopic::abort_called;
  if (message.starts_with("threadThresholds ")) return NcclTopic::graph;
  if (message.starts_with("cudaDriverVersion ")) return NcclTopic::driver;
  return BeginsWithSourcePlace(message) ? NcclTopic::propagation : NcclTopic::perhaps;
}

}  // namespace

NcclTopic ClassifyInfo(std::string_view message) {
  if (message.size() < 2) return NcclTopic::ignored;
  const char first = message[0], second = message[1];
  switch (first) {
    case 'A': return second == 'l' ? ClassifyFunctionLine(message) : NcclTopic::perhaps;
    case 'B':
      if (second == 'r') return ClassifyFunctionLine(message);
      if (message.starts_with("Best tuning {")) return NcclTopic::choice;
      if (message.starts_with("Bootstrap") && Contains(message.substr(0, 20), ": Using")) return NcclTopic::interfaces;
      return NcclTopic::perhaps;
    case 'C': return ClassifyCapitalC(message);
    case 'F':
      return message.starts_with("Failed to initialize NET plugin") ? NcclTopic::net_fallback : NcclTopic::perhaps;
    case 'G':
      if (second == 'P' || second == 'I')
        return message.substr(0, 4).ends_with('/') ? NcclTopic::graph : NcclTopic::perhaps;
      return second == 'a' ? ClassifyFunctionLine(message) : NcclTopic::perhaps;
    case 'I': return message.starts_with("Input: { .comm") ? NcclTopic::choice : NcclTopic::perhaps;
    case 'L': return message.starts_with("Latency/AlgB") ? NcclTopic::tuning_row : NcclTopic::perhaps;
    case 'N':
      if (second == 'e') return message.starts_with("New proxy ") ? NcclTopic::ignored : NcclTopic::perhaps;
      if (message.starts_with("NET/")) return ClassifyNet(message);
      if (message.starts_with("NVLS comm ") || message.starts_with("NVLS multicast support is "))
        return NcclTopic::topology;
      if (message.starts_with("NCCL version ")) return NcclTopic::version;
      return message.starts_with("NCCL_") && Contains(message, " set ") ? NcclTopic::environment : NcclTopic::perhaps;
    case 'P':
      if (second == 'u') return ClassifyFunctionLine(message);
      if (message.starts_with("Pattern ")) return NcclTopic::graph;
      if (message.starts_with("PXN Disabled")) return NcclTopic::net_remark;
      return message.starts_with("PROFILER/Plugin: init commName: ") ? NcclTopic::comm_hash : NcclTopic::perhaps;
    case 'R':
      if (second == 'e') return IsTableRow(message) ? NcclTopic::tuning_row : ClassifyFunctionLine(message);
      if (message.starts_with("Ring ")) return Contains(message, " via ") ? NcclTopic::connection : NcclTopic::topology;
      return message.starts_with("RCCL version ") ? NcclTopic::version : NcclTopic::perhaps;
    case 'S':
    case 'W': return ClassifyFunctionLine(message);
    case 'T': return message.starts_with("Tree") ? NcclTopic::topology : NcclTopic::perhaps;
    case 'U': return message.starts_with("Using network ") ? NcclTopic::network : NcclTopic::perhaps;
    case '[': return message.starts_with("[Rank ") && EndsWithInit(message) ? NcclTopic::init : NcclTopic::perhaps;
    case '#': return message.starts_with("## [") ? NcclTopic::kernel_trace : NcclTopic::perhaps;
    case ' ': return ClassifyRow(message);
    case '+': return NcclTopic::graph;
    case '=': return message.starts_with("=== System") ? NcclTopic::graph : NcclTopic::ignored;
    default:
      if (first >= 'a' && first <= 'z') return ClassifyLowerCase(message);
      if (IsDigit(first)) return ClassifyNumber(message);
      return NcclTopic::perhaps;
  }
}

NcclTopic ClassifyCall(std::string_view message) {
  if (!message.starts_with("nccl")) return NcclTopic::ignored;
  if (message.starts_with("ncclCommInitRank(") || message.starts_with("ncclCommSplit(")) return NcclTopic::api_init;
  const std::string_view name = message.substr(4, message.find('(') - 4);
  for (const std::string_view function : {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send",
                                          "Recv", "AlltoAll", "Gather", "Scatter", "AllGatherV"})
    if (name == function && message.size() > name.size() + 4) return NcclTopic::api_call;
  return NcclTopic::ignored;
}

}  // namespace tacet
