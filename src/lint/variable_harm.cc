// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_harm.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text_scan.h"

namespace tacet {
namespace {

int64_t NumberOf(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool IsOn(std::string_view value) { return NumberOf(value) == 1; }
bool IsOff(std::string_view value) { return NumberOf(value) == 0; }
bool IsFlagOn(std::string_view v) {
  return v == "1" || v == "true" || v == "True" || v == "yes" || v == "y" || v == "t";
}
bool IsFlagOff(std::string_view v) { return v == "0" || v == "false" || v == "False" || v == "no" || v == "n"; }
bool IsSet(std::string_view value) { return !value.empty() && value != "0"; }
// "Ring" forces one; "Ring,Tree" leaves a choice, "^LL128" only excludes, "allreduce:ring" speaks of one function.
bool IsSingle(std::string_view value) {
  return !value.empty() && value.find_first_of("^,:;") == std::string_view::npos;
}
template <int64_t kMost>
bool IsFew(std::string_view value) {
  const int64_t n = NumberOf(value);
  return n > 0 && n <= kMost;
}
template <int64_t kLeast>
bool IsMany(std::string_view value) {
  return NumberOf(value) >= kLeast;
}

// docker0, veth..., virbr..., br-..., lo: addresses that other hosts cannot reach. Exclusions ("^docker") are fine.
bool IsLocalInterface(std::string_view value) {
  if (value.empty() || value.front() == '^') return false;
  if (value.front() == '=') value.remove_prefix(1);
  while (!value.empty()) {
    const std::string_view name = TakeUntil(value, ',');
    if (!value.empty()) value.remove_prefix(1);
    if (name == "lo" || name.starts_with("docker") || name.starts_with("veth") || name.starts_with("virbr") ||
        name.starts_with("br-") || name.starts_with("cni") || name.starts_with("flannel") || name.starts_with("cali"))
      return true;
  }
  return false;
}

bool ForcesLl128(std::string_view value) {
  return value.find('^') == std::string_view::npos && (Contains(value, "LL128") || Contains(value, "ll128"));
}

// "tcp,self,sm": TCP, and what stays inside a host.
bool IsTcpAlone(std::string_view value) {
  bool tcp = false;
  while (!value.empty()) {
    const std::string_view name = Trim(TakeUntil(value, ','));
    if (!value.empty()) value.remove_prefix(1);
    const bool local = name == "self" || name == "sm" || name == "shm" || name == "mm" || name == "posix" ||
                       name == "sysv" || name == "cma" || name == "knem" || name == "xpmem" || name.starts_with("cuda");
    if (name != "tcp" && !local) return false;
    tcp = tcp || name == "tcp";
  }
  return tcp;
}

// A timeout of 0 never ends; 14 and less ends within a second with all retries. The field has 5 bits.
bool NeverTimesOut(std::string_view v) { return NumberOf(v) == 0; }
bool IsBeyondFiveBits(std::string_view v) { return NumberOf(v) >= 32; }
bool TimesOutAtOnce(std::string_view v) { return NumberOf(v) >= 1 && NumberOf(v) < 14; }
// With 7 retries 23 is 4.6 minutes, 26 is 37, and 27 more than an hour.
bool TimesOutInMinutes(std::string_view v) { return NumberOf(v) >= 23 && NumberOf(v) < 27; }
bool TimesOutInHours(std::string_view v) { return NumberOf(v) >= 27 && NumberOf(v) < 32; }

constexpr std::string_view kNoPeer = "no peer access between GPUs, or one GPU per host";
constexpr std::string_view kNoFabric = "no InfiniBand or RoCE";

// The first part, down to NCCL_LAUNCH_MODE, is what the cause environment-cripples reads.
constexpr VariableHarm kHarms[] = {
    {"NCCL_P2P_DISABLE", IsOn,
     "GPUs of one host no longer use NVLink or PCIe directly; the path through host memory is several times slower",
     false, HarmKind::slow, kNoPeer},
    {"NCCL_P2P_LEVEL", [](std::string_view v) { return v == "LOC" || v == "0"; },
     "direct GPU access is off; inside a node the path through host memory is several times slower", false,
     HarmKind::slow, kNoPeer},
    {"NCCL_SHM_DISABLE", IsOn, "ranks of one host use the network stack instead of shared memory", false,
     HarmKind::slow, "one rank per host"},
    {"NCCL_IB_DISABLE", IsOn, "InfiniBand and RoCE are not used, and TCP sockets are 5 to 20 times slower", true,
     HarmKind::slow, kNoFabric},
    {"NCCL_NET", [](std::string_view v) { return v == "Socket" || v == "socket"; },
     "TCP sockets are forced where a faster network may exist", true, HarmKind::slow, kNoFabric},
    {"NCCL_NET_GDR_LEVEL", [](std::string_view v) { return v == "LOC" || v == "0"; },
     "GPUDirect RDMA is off, and data is staged through host memory", true, HarmKind::slow, "no GPUDirect RDMA"},
    {"NCCL_PXN_DISABLE", IsOn,
     "GPUs cannot use the network device next to another GPU; all_to_all crosses rails, and rings may go through the "
     "CPU",
     true},
    {"NCCL_ALGO", IsSingle, "one algorithm for every size, so small messages take longer or large ones lose bandwidth"},
    {"NCCL_PROTO", IsSingle,
     "one protocol for every size; LL halves the bandwidth of large messages, Simple adds latency to small ones"},
    {"NCCL_MAX_NCHANNELS", IsFew<4>, "too few channels limit the bandwidth"},
    {"NCCL_MAX_CTAS", IsFew<4>, "too few blocks limit the bandwidth"},
    {"NCCL_MAX_NRINGS", IsFew<2>, "too few rings limit the bandwidth"},
    {"NCCL_BUFFSIZE", IsFew<(1 << 20) - 1>, "small buffers stall the pipeline of large messages"},
    {"NCCL_NTHREADS", IsFew<127>, "too few threads limit the bandwidth of a channel"},
    {"NCCL_NVLS_ENABLE", IsOff,
     "NVLink SHARP is off, which costs up to a third of the all_reduce bandwidth on NVSwitch machines", false,
     HarmKind::slow, "no NVSwitch of the third generation"},
    {"NCCL_CHECK_POINTERS", IsOn, "every call checks its pointers"},
    {"NCCL_CHECK_MODE", [](std::string_view v) { return v == "DEBUG_GLOBAL"; },
     "every collective adds an exchange among all ranks"},
    {"NCCL_LAUNCH_MODE", [](std::string_view v) { return v == "GROUP"; }, "the legacy launch mode serializes launches"},
    {"UCX_TLS", IsTcpAlone, "UCX uses TCP between hosts, and neither InfiniBand nor RoCE", true, HarmKind::slow,
     kNoFabric},

    {"NCCL_IB_TIMEOUT", NeverTimesOut, "a dead link is never reported, and the job hangs", true, HarmKind::risky},
    {"NCCL_IB_TIMEOUT", IsBeyondFiveBits,
     "the field has 5 bits (0 to 31); with a larger value the driver may reject it or truncate it to 5 bits; a timeout "
     "may then be infinite",
     true, HarmKind::risky},
    {"NCCL_IB_TIMEOUT", TimesOutAtOnce, "a link flap of a fraction of a second ends the job", true, HarmKind::risky},
    {"NCCL_IB_TIMEOUT", TimesOutInMinutes, "a dead link is reported only after minutes", true, HarmKind::risky},
    {"NCCL_IB_TIMEOUT", TimesOutInHours, "a dead link is reported only after hours", true, HarmKind::risky},
    {"NCCL_IB_RETRY_CNT", [](std::string_view v) { return NumberOf(v) >= 0 && NumberOf(v) < 7; },
     "packets are dropped early, and a short disturbance ends the job", true, HarmKind::risky},
    {"NCCL_IB_QPS_PER_CONNECTION", IsMany<17>, "queue pairs times channels times peers may exhaust the adapter", true,
     HarmKind::risky},
    {"NCCL_IB_RETURN_ASYNC_EVENTS", IsOff, "errors of a port are ignored, and the job hangs instead of ending", true,
     HarmKind::risky},
    {"NCCL_SOCKET_IFNAME", IsLocalInterface, "other hosts cannot reach an address of this interface", true,
     HarmKind::risky},
    {"GLOO_SOCKET_IFNAME", IsLocalInterface, "other hosts cannot reach an address of this interface", true,
     HarmKind::risky},
    {"NCCL_BUFFSIZE", IsMany<(16 << 20) + 1>, "large buffers, per channel and peer, take GPU memory from the model",
     false, HarmKind::risky},
    {"NCCL_MIN_NCHANNELS", IsMany<32>, "many channels take multiprocessors away from compute", false, HarmKind::risky},
    {"NCCL_P2P_LEVEL", [](std::string_view v) { return v == "SYS"; },
     "GPUs access each other across processors, at 1 to 3 GB/s; where ACS or an IOMMU is on, they hang", false,
     HarmKind::risky},
    {"NCCL_NET_GDR_LEVEL", [](std::string_view v) { return v == "SYS"; },
     "GPUDirect RDMA across processors is slower than staging on most machines", true, HarmKind::risky},
    {"NCCL_PROTO", ForcesLl128, "LL128 corrupts data on hardware without atomic 128-byte stores", false,
     HarmKind::risky},
    {"NCCL_GDR_FLUSH_DISABLE", IsOn, "without the flush a GPU may read data before it has arrived", true,
     HarmKind::risky},
    {"NCCL_IGNORE_DISABLED_P2P", IsOn, "a broken NVLink goes unnoticed", false, HarmKind::risky},
    {"NCCL_LAUNCH_RACE_FATAL", IsOff, "two threads that launch at the same time go unnoticed", false, HarmKind::risky},
    {"NCCL_GRAPH_MIXING_SUPPORT", IsOff, "captured and direct calls at the same time hang", false, HarmKind::risky},
    {"NCCL_NET_SHARED_BUFFERS", IsOff, "every peer has its own buffers, and memory grows with the number of ranks",
     true, HarmKind::risky},
    {"NCCL_RAS_ENABLE", IsOff, "ncclras cannot ask this job where its ranks are", false, HarmKind::risky},
    {"NCCL_CHECKS_DISABLE", IsOn, "wrong arguments are not noticed", false, HarmKind::risky},
    {"NCCL_DEBUG", [](std::string_view v) { return v == "TRACE" || v == "trace"; }, "heavy logging slows every step",
     false, HarmKind::debugging},
    {"NCCL_DEBUG_SUBSYS",
     [](std::string_view v) { return v == "ALL" || v == "all" || (!v.starts_with("^") && Contains(v, "PROXY")); },
     "with NCCL_DEBUG=INFO several lines per call, which is slow on a shared file system", false, HarmKind::debugging},
    {"CUDA_LAUNCH_BLOCKING", IsSet, "every step becomes slow, and operations on several communicators may deadlock",
     false, HarmKind::debugging},
    {"CUDA_DEVICE_WAITS_ON_EXCEPTION", IsSet, "a GPU error stops the process until a debugger attaches", false,
     HarmKind::debugging},
    {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", IsSet, "a GPU error writes a core dump of all GPU memory first", false,
     HarmKind::debugging},
    {"CUDA_COREDUMP_FILE", IsSet, "a GPU error writes a core dump of all GPU memory first", false, HarmKind::debugging},
    {"CUDA_INJECTION32_PATH", IsSet, "a library is loaded into every CUDA process", false, HarmKind::debugging},
    {"CUDA_INJECTION64_PATH", IsSet, "a library is loaded into every CUDA process", false, HarmKind::debugging},
    {"CUDA_AUTO_BOOST", IsSet, "clocks may differ between GPUs", false, HarmKind::debugging},
    {"CUDA_PROFILE", IsSet, "every kernel is timed", false, HarmKind::debugging},
    {"COMPUTE_PROFILE", IsSet, "every kernel is timed", false, HarmKind::debugging},
    {"OPENCL_PROFILE", IsSet, "every kernel is timed", false, HarmKind::debugging},
    {"NSIGHT_CUDA_DEBUGGER", IsSet, "the process runs under a debugger", false, HarmKind::debugging},
    {"TORCH_DISTRIBUTED_DEBUG", [](std::string_view v) { return v == "DETAIL" || v == "detail"; },
     "one more small collective per call; steps may take twice as long", false, HarmKind::debugging},
    {"TORCH_NCCL_BLOCKING_WAIT", IsFlagOn,
     "wait() blocks the host, and the watchdog that would dump flight records does not run", false, HarmKind::risky},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", IsOff, "a timeout ends nothing, and the job hangs for good", false,
     HarmKind::risky},
    {"TORCH_NCCL_ENABLE_MONITORING", IsFlagOff, "a watchdog that is stuck ends nothing, and the job hangs for good",
     false, HarmKind::risky},
    {"TORCH_NCCL_DUMP_ON_TIMEOUT", IsFlagOff, "a timeout leaves no flight record", false, HarmKind::risky},
    {"TORCH_NCCL_RETHROW_CUDA_ERRORS", IsFlagOff, "CUDA errors are seen but not raised", false, HarmKind::risky},
};

constexpr std::string_view kForDebugging[] = {
    "NCCL_P2P_DISABLE",    "NCCL_P2P_LEVEL",     "NCCL_SHM_DISABLE",       "NCCL_BUFFSIZE",
    "NCCL_NTHREADS",       "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS",     "NCCL_CHECKS_DISABLE",
    "NCCL_CHECK_POINTERS", "NCCL_LAUNCH_MODE",   "NCCL_IB_DISABLE",        "NCCL_ALGO",
    "NCCL_PROTO",          "NCCL_NVB_DISABLE",   "NCCL_PXN_DISABLE",       "NCCL_P2P_PXN_LEVEL",
    "NCCL_NVLS_ENABLE",    "NCCL_CUMEM_ENABLE",  "NCCL_CUMEM_HOST_ENABLE", "NCCL_COLLNET_NODE_THRESHOLD",
    "NCCL_GRAPH_FILE"};

}  // namespace

std::span<const VariableHarm> AllVariableHarms() { return kHarms; }

bool IsInsideHost(std::string_view name) {
  constexpr std::string_view kNames[] = {"NCCL_P2P_DISABLE",         "NCCL_P2P_LEVEL",   "NCCL_P2P_DIRECT_DISABLE",
                                         "NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_SHM_DISABLE", "NCCL_SHM_USE_CUDA_MEMCPY",
                                         "NCCL_SHM_MEMCPY_MODE"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool IsForDebugging(std::string_view name) {
  return std::find(std::begin(kForDebugging), std::end(kForDebugging), name) != std::end(kForDebugging);
}

}  // namespace tacet
