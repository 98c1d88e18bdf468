// SPDX-License-Identifier: Apache-2.0
#include "model/stack.h"

#include "base/text_scan.h"

namespace tacet {

StackId StackTable::Intern(std::vector<Frame> frames) {
  uint64_t hash = 1469598103934665603u;
  for (const Frame& frame : frames) {
    for (const uint64_t part : {uint64_t(frame.function), uint64_t(frame.file), uint64_t(frame.line)}) {
      hash = (hash ^ part) * 1099511628211u;
    }
  }
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (stacks_[static_cast<uint32_t>(it->second)] == frames) return it->second;
  const auto id = static_cast<StackId>(stacks_.size());
  stacks_.push_back(std::move(frames));
  by_hash_.emplace(hash, id);
  return id;
}

static bool IsLibraryPath(std::string_view file) {
  return Contains(file, "site-packages/") || Contains(file, "dist-packages/") || Contains(file, "/lib/python3") ||
         Contains(file, "/usr/lib/") || file.starts_with("torch/") || file.starts_with("<frozen");
}

static bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts)
    if (Contains(text, part)) return true;
  return false;
}

static bool IsNativePath(std::string_view file) {
  return file.ends_with(".so") || Contains(file, ".so.") || file.ends_with(".cc") || file.ends_with(".cpp") ||
         file.ends_with(".c") || file.ends_with(".h") || file.ends_with(".cu") || file.ends_with(".S");
}

FrameKind ClassifyFrame(std::string_view function, std::string_view file) {
  if (ContainsAny(file, {"torch/distributed/", "libnccl", "/nccl/", "c10d/"}) ||
      function.starts_with("nccl") || ContainsAny(function, {"c10d::", "ProcessGroupNCCL", "ProcessGroupGloo", "TCPStore"})) {
    // The elastic agent and the launcher live under torch/distributed too, but communicate nothing.
    if (ContainsAny(file, {"torch/distributed/launcher", "torch/distributed/run.py", "torch/distributed/elastic"}))
      return FrameKind::framework;
    return FrameKind::communication;
  }
  if (ContainsAny(function, {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize",
                             "cuCtxSynchronize", "cuEventSynchronize", "cudaEventQuery", "cudaMemcpy"}) ||
      Contains(file, "libcuda.so") || Contains(file, "libcudart") ||
      (Contains(file, "torch/cuda/") && ContainsAny(function, {"synchronize", "wait", "query"})))
    return FrameKind::device_wait;
  if (ContainsAny(function, {"pthread_cond_wait", "pthread_cond_timedwait", "pthread_mutex_lock", "futex", "sem_wait",
                             "sem_timedwait", "take_gil", "PyThread_acquire_lock", "__lll_lock_wait"}))
    return FrameKind::lock;
  if (ContainsAny(function, {"__GI___poll", "epoll_wait", "__read", "__write", "__recv", "__select", "__libc_read", "__libc_recv",
                             "__libc_accept", "fsync"}))
    return FrameKind::io;
  if (file.ends_with("/threading.py") || file == "threading.py" || file.ends_with("/runpy.py") ||
      ContainsAny(file, {"importlib", "<frozen"}))
    return FrameKind::interpreter;
  if (IsLibraryPath(file) || IsNativePath(file)) return FrameKind::framework;
  return FrameKind::user;
}

}  // namespace tacet
