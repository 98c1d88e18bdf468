// SPDX-License-Identifier: Apache-2.0
#include "analysis/stack_errand.h"

#include <algorithm>
#include <string_view>

#include "base/text_scan.h"

namespace tacet {
namespace {

using ErrandKind = StackErrand::Kind;

constexpr size_t kMostFramesLookedAt = 64;

struct NamedFrame {
  std::string_view function, file;
};

bool IsWait(std::string_view function) {
  return ContainsAny(function, {"sched_yield", "poll", "ioctl", "nanosleep", "clock_gettime", "pthread_cond", "accept",
                                "recv", "select", "connect", "futex", "__read", "_read"});
}

bool IsLaunch(std::string_view function) {
  return ContainsAny(function, {"cudaLaunchKernel", "cudaLaunchCooperative", "cuLaunchKernel", "cudaGraphLaunch",
                                "cuGraphLaunch", "hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunch"});
}

bool IsDriver(std::string_view file) {
  return ContainsAny(file, {"libcuda.so", "libamdhip64", "libhsa-runtime", "libascend"});
}

bool SetsUpCommunicator(std::string_view function) {
  return function.starts_with("bootstrapInit") || function.starts_with("ncclCommInit") ||
         function.starts_with("initTransportsRank") || function.starts_with("ncclCommSplit") ||
         function.starts_with("pncclCommInit") || function.starts_with("ncclTransportP2pSetup");
}

// "PMPI_Bcast_c" is MPI_Bcast; empty where it is no call of MPI.
std::string MpiCall(std::string_view function) {
  if (function.starts_with("PMPI_")) function.remove_prefix(1);
  if (!function.starts_with("MPI_")) return "";
  if (function.ends_with("_c")) function.remove_suffix(2);
  return std::string(function.substr(0, 60));
}

bool IsNextBatch(const std::vector<NamedFrame>& frames) {
  bool queue = false;
  for (const NamedFrame& frame : frames) {
    const FrameKind kind = ClassifyFrame(frame.function, frame.file);
    const bool waits = kind == FrameKind::lock || kind == FrameKind::interpreter ||
                       (kind == FrameKind::io && !frame.file.ends_with(".py"));
    if (waits) {
      queue |= frame.file.ends_with("queue.py") || frame.file.ends_with("multiprocessing/queues.py") ||
               frame.file.ends_with("multiprocessing/connection.py");
      continue;
    }
    return queue && (frame.function == "__next__" || frame.function == "_try_get_data");
  }
  return false;
}

}  // namespace

StackErrand FindErrand(const Incident& incident, const std::vector<Frame>& frames) {
  std::vector<NamedFrame> named;
  for (size_t i = 0; i < std::min(frames.size(), kMostFramesLookedAt); ++i)
    named.push_back({incident.strings.Get(frames[i].function), incident.strings.Get(frames[i].file)});
  if (named.empty()) return {};
  if (IsNextBatch(named)) return {ErrandKind::next_batch, ""};
  const bool waits = IsWait(named.front().function);
  bool driver = false;
  for (const NamedFrame& frame : named) {
    if (waits && SetsUpCommunicator(frame.function)) return {ErrandKind::communicator_setup, ""};
    if (waits && driver && IsLaunch(frame.function))
      return {ErrandKind::kernel_launch, std::string(frame.function.substr(0, 60))};
    driver |= IsDriver(frame.file);
    // The progress loop runs as long as a call waits.
    if (const std::string call = MpiCall(frame.function); !call.empty())
      return waits || ContainsAny(named.front().function, {"rogress"}) ? StackErrand{ErrandKind::mpi_call, call}
                                                                       : StackErrand{};
  }
  return {};
}

}  // namespace tacet
