// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/stack_errand.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

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

// "PMPI_Bcast_c" is MPI_Bcast, "ccl_allgather(void const*, ...)" of oneCCL the call that it names; empty where it is
// neither.
std::string MpiCall(std::string_view function, std::string_view file) {
  if (Contains(file, "libccl.so") && function.starts_with("ccl_")) {
    const std::string_view name = function.substr(0, function.find('('));
    for (const std::string_view call :
         {"ccl_allgather", "ccl_allgatherv", "ccl_allreduce", "ccl_alltoall", "ccl_alltoallv", "ccl_barrier",
          "ccl_broadcast", "ccl_reduce", "ccl_reduce_scatter", "ccl_send", "ccl_recv"})
      if (name == call) return std::string(name);
    return "";
  }
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
    return queue && (frame.function == "__next__" || frame.function == "_try_get_data" ||
                     Contains(frame.file, "torch/utils/data/"));
  }
  return false;
}

// Nothing but the queue is shown: what asks it is further out.
bool IsQueueAlone(const std::vector<NamedFrame>& frames) {
  bool queue = false;
  for (const NamedFrame& frame : frames) {
    const bool asks = frame.file.ends_with("multiprocessing/queues.py") && frame.function == "get";
    queue |= asks;
    if (!asks && frame.file.ends_with(".py") && !Contains(frame.file, "multiprocessing/")) return false;
  }
  return queue;
}

bool IsLockCall(std::string_view function) {
  return ContainsAny(function, {"pthread_rwlock_", "pthread_mutex_lock", "lll_lock_wait", "pthread_spin_lock"});
}

// pthread_rwlock_wrlock, libcuda.so, ..., ncclGroupEnd: only the driver's own frames lie between the lock and whoever
// launches.
std::string LaunchBehindDriverLock(const std::vector<NamedFrame>& frames) {
  bool driver = false;
  std::string launch;
  for (const NamedFrame& frame : frames) {
    if (!driver && IsLockCall(frame.function)) continue;
    if (IsDriver(frame.file)) {
      driver = true;
      continue;
    }
    if (!driver) return "";
    const bool nccl = frame.function.starts_with("nccl") || Contains(frame.file, "libnccl");
    if (IsLaunch(frame.function) || frame.function.starts_with("nccl")) launch = frame.function.substr(0, 60);
    // The outermost of NCCL's own functions is the call that was made.
    if (!nccl && !Contains(frame.file, "libcudart")) break;
  }
  return launch;
}

constexpr std::string_view kServices[] = {"libcuda.so", "libpmix.so", "libevent"};

// Where a thread begins that a library starts for itself: it waits for work as long as the process lives.
struct ServiceLoop {
  std::string_view function;
  std::string_view library;
};
constexpr ServiceLoop kServiceLoops[] = {{"ncclProxyService", "NCCL"},       {"ncclProxyProgress", "NCCL"},
                                         {"persistentSocketThread", "NCCL"}, {"ncclIbAsyncThreadMain", "NCCL"},
                                         {"rasThreadMain", "NCCL"},          {"ucs_async_thread_func", "UCX"},
                                         {"blas_thread_server", "OpenBLAS"}, {"c10::ThreadPool::main_loop", "PyTorch"}};

const ServiceLoop* FindServiceLoop(std::string_view function) {
  const auto* found = std::find_if(std::begin(kServiceLoops), std::end(kServiceLoops),
                                   [&](const ServiceLoop& loop) { return function.starts_with(loop.function); });
  return found == std::end(kServiceLoops) ? nullptr : found;
}

bool IsBaseLibrary(std::string_view function, std::string_view file) {
  return file.empty() ? ContainsAny(function, {"start_thread", "clone", "poll", "epoll_wait"})
                      : ContainsAny(file, {"libc.so", "libc-2", "libpthread", "ld-linux", "sysdeps/",
                                           "pthread_create.c", "clone.S"});
}

}  // namespace

StackErrand FindErrand(const Incident& incident, const std::vector<Frame>& frames) {
  std::vector<NamedFrame> named;
  for (size_t i = 0; i < std::min(frames.size(), kMostFramesLookedAt); ++i)
    named.push_back({incident.strings.Get(frames[i].function), incident.strings.Get(frames[i].file)});
  if (named.empty()) return {};
  if (IsNextBatch(named)) return {ErrandKind::next_batch, ""};
  if (IsQueueAlone(named)) return {ErrandKind::queue, ""};
  if (IsLockCall(named.front().function))
    if (std::string launch = LaunchBehindDriverLock(named); !launch.empty())
      return {ErrandKind::driver_lock, std::move(launch)};
  const bool waits = IsWait(named.front().function);
  bool driver = false;
  for (const NamedFrame& frame : named) {
    if (waits && SetsUpCommunicator(frame.function)) return {ErrandKind::communicator_setup, ""};
    if (waits && driver && IsLaunch(frame.function))
      return {ErrandKind::kernel_launch, std::string(frame.function.substr(0, 60))};
    driver |= IsDriver(frame.file);
    // The progress loop runs as long as a call waits.
    if (const std::string call = MpiCall(frame.function, frame.file); !call.empty())
      return waits || ContainsAny(named.front().function, {"rogress", "ccl_executor::wait"})
                 ? StackErrand{ErrandKind::mpi_call, call}
                 : StackErrand{};
  }
  return {};
}

bool IsServiceThread(const Incident& incident, const ThreadStack& thread) {
  const std::vector<Frame>& frames = incident.stacks.Get(thread.stack);
  if (thread.is_main || thread.has_python || frames.empty()) return false;
  for (const Frame& frame : frames)
    if (FindServiceLoop(incident.strings.Get(frame.function)) != nullptr) return true;
  bool service = false, bottom = thread.thread_name.starts_with("cuda");
  for (const Frame& frame : frames) {
    const std::string_view function = incident.strings.Get(frame.function), file = incident.strings.Get(frame.file);
    const bool own = std::any_of(std::begin(kServices), std::end(kServices),
                                 [&](std::string_view name) { return Contains(file, name); });
    if (!own && !IsBaseLibrary(function, file)) return false;
    service |= own;
    bottom |= ContainsAny(function, {"start_thread", "clone", "event_base_loop"});
  }
  return service && bottom;
}

std::string ServiceLibraries(const Incident& incident, const std::vector<const ThreadStack*>& threads) {
  std::set<std::string> names;
  for (const ThreadStack* thread : threads)
    for (const Frame& frame : incident.stacks.Get(thread->stack)) {
      std::string_view file = incident.strings.Get(frame.file);
      file.remove_prefix(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1);
      for (const std::string_view service : kServices)
        if (file.starts_with(service)) names.emplace(file.substr(0, 60));
      if (const ServiceLoop* loop = FindServiceLoop(incident.strings.Get(frame.function))) names.emplace(loop->library);
    }
  std::string words;
  for (auto name = names.begin(); name != names.end(); ++name)
    words += (words.empty() ? "" : std::next(name) == names.end() ? " and " : ", ") + *name;
  return words;
}

}  // namespace tacet
