// SPDX-License-Identifier: Apache-2.0
#include "model/events/nccl_warnings.h"

#include <array>

#include "base/text_scan.h"
#include "model/events/library_warning_table.h"
#include "model/events/nccl_warning_table.h"

namespace tacet {
namespace {

bool Matches(const NcclWarningPattern& pattern, std::string_view message) {
  return message.starts_with(pattern.opening) && (pattern.part.empty() || Contains(message, pattern.part));
}

// status=12, status=IBV_WC_RETRY_EXC_ERR(12), with error 12
int64_t CompletionStatus(std::string_view message) {
  if (auto rest = After(message, "status=")) {
    int64_t status = -1;
    if (TakeNumber(*rest, &status)) return status;
    return IntAfter(rest->substr(0, 60), "(").value_or(-1);
  }
  return IntAfter(message, "with error ").value_or(-1);
}

// "... No space left on device (28)"
int64_t NumberInLastParentheses(std::string_view message) {
  const size_t open = message.rfind('(');
  return open == std::string_view::npos ? -1 : IntAfter(message.substr(open), "(").value_or(-1);
}

NcclWarningNumbers TwoNumbers(std::string_view message, std::string_view first, std::string_view second) {
  const auto rest = After(message, first);
  if (!rest) return {};
  return {IntAfter(message, first).value_or(-1), IntAfter(*rest, second).value_or(-1)};
}

// Message truncated : received 1195725856 bytes instead of 256
// Bootstrap Root : mismatch in rank count from procs 8 : 542393671
// Lengths and counts of the set-up are small. Larger ones are the first letters of another protocol ("GET ", "SSH-", a
// TLS hello), read as a number.
bool IsForeignMessage(const NcclWarning& warning, std::string_view message) {
  constexpr int64_t kLargest = int64_t{1} << 24;
  if (warning.id != "bootstrap-message-truncated" && warning.id != "bootstrap-nranks-mismatch" &&
      warning.id != "bootstrap-duplicate-rank")
    return false;
  const NcclWarningNumbers numbers = ParseWarningNumbers(warning, message);
  return numbers.value > kLargest || numbers.other > kLargest || numbers.value < -1 || numbers.other < -1;
}

// Call to ibv_reg_mr failed with error Cannot allocate memory
// The system's word as its number; -1 where it is none of those that matter here.
int64_t SystemError(std::string_view message) {
  if (Contains(message, "Cannot allocate memory")) return 12;
  if (Contains(message, "Bad address")) return 14;
  if (Contains(message, "Operation not permitted")) return 1;
  if (Contains(message, "Permission denied")) return 13;
  if (Contains(message, "Invalid argument")) return 22;
  if (Contains(message, "Operation not supported")) return 95;
  return -1;
}

}  // namespace

std::span<const NcclWarning> AllNcclWarnings() { return kNcclWarnings; }

const NcclWarning* FindNcclWarning(std::string_view id) {
  for (const NcclWarning& warning : kNcclWarnings)
    if (warning.id == id) return &warning;
  for (const NcclWarning& warning : kLibraryWarnings)
    if (warning.id == id) return &warning;
  return nullptr;
}

const NcclWarning& ClassifyWarning(std::string_view message) {
  for (const NcclWarningPattern& pattern : kNcclWarnPatterns) {
    if (!Matches(pattern, message)) continue;
    const NcclWarning& warning = *FindNcclWarning(pattern.id);
    return IsForeignMessage(warning, message) ? *FindNcclWarning("bootstrap-stranger") : warning;
  }
  const NcclWarning* quiet = ClassifyInfoWarning(message);
  return quiet ? *quiet : *FindNcclWarning("other");
}

// NET/OFI Failed to initialize rdma protocol
// NET/FasTrak plugin initialization failed with error 3
// NET/Plugin: Failed to initialize AWS Libfabric
// Whatever plugin it is: its name, empty where the line tells no such thing. What NCCL looks for in a plugin and does
// not find ("NET/Plugin: Failed to find ncclNetPlugin_v9 symbol") stops none.
static std::string_view PluginNotStarted(std::string_view message) {
  if (!TakeLiteral(message, "NET/")) return {};
  const std::string_view name = message.substr(0, message.find_first_of(" :"));
  const std::string_view rest = message.substr(name.size());
  if (name.empty() || name == "IB" || name == "Socket" || !Contains(rest, "nitializ") || !Contains(rest, "ailed"))
    return {};
  if (const auto plugin = After(rest, "Failed to initialize "); name == "Plugin")
    return plugin ? Trim(*plugin) : std::string_view();
  return name;
}

const NcclWarning* ClassifyInfoWarning(std::string_view message) {
  // Most INFO lines warn of nothing and start with a letter that no warning starts with.
  static constexpr std::array<bool, 256> kOpens = [] {
    std::array<bool, 256> opens{};
    for (const NcclWarningPattern& pattern : kNcclInfoPatterns)
      opens[static_cast<unsigned char>(pattern.opening[0])] = true;
    return opens;
  }();
  if (message.empty() || !kOpens[static_cast<unsigned char>(message[0])]) return nullptr;
  for (const NcclWarningPattern& pattern : kNcclInfoPatterns)
    if (pattern.opening[0] == message[0] && Matches(pattern, message)) return FindNcclWarning(pattern.id);
  return PluginNotStarted(message).empty() ? nullptr : FindNcclWarning("net-plugin-not-started");
}

// NET/IB: Got completion from peer 10.0.0.7<34567> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) ...
// NET/Socket : peer 10.0.0.7<41234> message truncated : receiving 524288 bytes instead of 65536. If you ...
// Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 vs 1, iroot 0 vs 0
// Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60
NcclWarningNumbers ParseWarningNumbers(const NcclWarning& warning, std::string_view message) {
  const std::string_view id = warning.id;
  if (id == "ib-completion-error") return {CompletionStatus(message), -1};
  if (id == "cuda-failure") return {IntAfter(message, "Cuda failure ").value_or(-1), -1};
  if (id == "nvls-bind-failed")
    return {IntAfter(message, "CUDA error ").value_or(IntAfter(message, "Cuda failure ").value_or(-1)), -1};
  if (id == "ib-modify-qp-failed" || id == "ib-modify-qp-retry")
    return {IntAfter(message, "failed with ").value_or(-1), -1};
  if (id == "ib-register-failed" || id == "ib-queue-failed" || id == "ib-open-failed")
    return {SystemError(message), -1};
  if (id == "network-type-mismatch") return TwoNumbers(message, "wrong type ", "!= ");
  if (id == "fabric-not-ready") return {802, -1};
  // Of a port, not of the whole adapter.
  if (id == "ib-async-fatal") return {Contains(message, "port error") ? 1 : -1, -1};
  if (id == "shm-extend-failed" || id == "shm-open-failed") return {NumberInLastParentheses(message), -1};
  if (id == "message-truncated") return TwoNumbers(message, "receiving ", "instead of ");
  if (id == "bootstrap-message-truncated") return TwoNumbers(message, "received ", "instead of ");
  if (id == "ib-size-mismatch") return TwoNumbers(message, "local size ", "remote ");
  if (id == "bootstrap-nranks-mismatch") {
    if (Contains(message, "nranks ")) return TwoNumbers(message, "nranks ", "vs ");
    return TwoNumbers(message, "procs ", ": ");
  }
  if (id == "mismatched-collective") return {IntAfter(message, "around rank ").value_or(-1), -1};
  if (id == "duplicate-gpu") return TwoNumbers(message, "rank ", "rank ");
  // Mismatched NCCL version detected : rank 1 version 22809 rank 0 version 22707
  if (id == "version-mismatch")
    return TwoNumbers(After(message, "version detected").value_or(message), "version ", "version ");
  if (id == "bootstrap-duplicate-rank") return TwoNumbers(message, "rank ", "of ");
  if (id == "net-count-mismatch" && message.starts_with("Rank ")) return TwoNumbers(message, "Rank ", "has ");
  return {};
}

NcclWarningRole RoleOf(const NcclWarning& warning, NcclWarningNumbers numbers, bool at_info_level) {
  constexpr int64_t kFlushed = 5;
  if (warning.id == "ib-completion-error" && numbers.value == kFlushed) return NcclWarningRole::secondary;
  if (at_info_level && warning.role == NcclWarningRole::cause && warning.id != "ras-peer-dead")
    return NcclWarningRole::notice;
  return warning.role;
}

// Cuda failure 700 'an illegal memory access was encountered'
// Failed to CUDA calloc async 4194304 bytes
std::string_view FatalCudaError(const NcclWarning& warning, std::string_view message) {
  if (warning.id == "gpu-memory-exhausted") return "out of memory";
  if (warning.id == "gpu-lost") return "GPU is lost";
  if (warning.id != "cuda-failure") return {};
  const auto quoted = After(message, "'");
  if (!quoted) return {};
  const std::string_view reason = quoted->substr(0, quoted->find('\''));
  // An illegal access or a launch failure also strikes those whose peer dies under their kernels: NCCL's word alone
  // does not tell whose fault it is.
  for (const std::string_view fault :
       {"out of memory", "illegal instruction", "ECC", "NVLink", "device-side assert", "misaligned address",
        "hardware stack", "over nvlink", "no CUDA-capable device", "GPU is lost", "Contained"})
    if (Contains(reason, fault)) return reason;
  return {};
}

std::string_view ParseWarningObject(const NcclWarning& warning, std::string_view message) {
  const std::string_view id = warning.id;
  if (id.starts_with("shm-")) {
    const size_t at = message.find("/dev/shm");
    if (at == std::string_view::npos) return {};
    std::string_view path = message.substr(at);
    path = TakeWord(path);
    while (path.ends_with(',') || path.ends_with(':')) path.remove_suffix(1);
    return path;
  }
  // NET/OFI Request 0x7f14cc5b60c0 completed with error. RC: 113: something sent to a peer, whom it does not name.
  // UCX  ERROR connect(fd=41, dest_addr=10.44.2.9:51120) failed: Connection timed out
  if (const auto address = After(message, "dest_addr="); address && id == "ucx-failed")
    return address->substr(0, address->find_first_of(") ,"));
  if (id == "net-plugin-failed" || id == "ucx-failed") {
    const size_t at = message.find("Request 0x");
    return at == std::string_view::npos ? std::string_view() : message.substr(at, message.find(' ', at + 8) - at);
  }
  // NET/IB : mlx5_4:1 Got async error event: port error
  if (id == "ib-async-fatal" || id == "ib-port-active") {
    auto rest = After(message, "NET/IB : ");
    const std::string_view port = rest ? TakeWord(*rest) : std::string_view();
    const size_t colon = port.find(':');
    return colon != std::string_view::npos && colon > 0 && colon + 1 < port.size() ? port : std::string_view();
  }
  // Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_4:1, curr state INIT, next state RTR
  if (id == "ib-modify-qp-failed") {
    const auto port = After(message, " on dev ");
    return port ? port->substr(0, port->find_first_of(", ")) : std::string_view();
  }
  // NET/IB : Unable to open device mlx5_3
  if (id == "ib-open-failed") {
    auto name = After(message, "open device ");
    return name ? TakeWord(*name) : std::string_view();
  }
  if (id == "net-plugin-not-started") return PluginNotStarted(message);
  if (id.starts_with("connect") || id == "socket-stranger" || id == "ib-completion-error")
    return ParsePeerAddress(message);
  return {};
}

bool IsConnectionLoss(const NcclWarning& warning) {
  return warning.id == "connection-closed" || warning.id == "connection-reset";
}

// socketProgress: Connection closed by remote peer node07.cluster<41234>
// socketProgressOpt: Call to recv from 10.0.0.7<41234> failed : Connection reset by peer
std::string_view ParsePeerAddress(std::string_view message) {
  for (const std::string_view key : {"remote peer ", " from ", " to ", "peer "}) {
    auto rest = After(message, key);
    if (!rest) continue;
    const std::string_view word = TakeWord(*rest);
    if (word.find('<') != std::string_view::npos || word.find('.') != std::string_view::npos) return word;
  }
  return {};
}

}  // namespace tacet
