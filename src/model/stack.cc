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

namespace {

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words)
    if (text == word) return true;
  return false;
}

// `file` is or ends in /`name`: py-spy shortens "/usr/lib/python3.10/queue.py" to "queue.py".
bool IsFile(std::string_view file, std::string_view name) {
  return file.ends_with(name) && (file.size() == name.size() || file[file.size() - name.size() - 1] == '/');
}

bool IsNativePath(std::string_view file) {
  return file.ends_with(".so") || Contains(file, ".so.") || file.ends_with(".cc") || file.ends_with(".cpp") ||
         file.ends_with(".c") || file.ends_with(".h") || file.ends_with(".hpp") || file.ends_with(".cu") ||
         file.ends_with(".cuh") || file.ends_with(".S");
}

// py-spy writes paths relative to the place they were imported from: "torch/nn/modules/linear.py", "threading.py".
bool IsShortLibraryPath(std::string_view file) {
  const size_t slash = file.find('/');
  if (slash == std::string_view::npos)
    return IsOneOf(file,
                   {"threading.py", "queue.py", "socket.py", "ssl.py", "selectors.py", "subprocess.py", "contextlib.py",
                    "runpy.py", "functools.py", "tarfile.py", "zipfile.py", "gzip.py", "pickle.py", "shutil.py",
                    "tempfile.py", "pathlib.py", "weakref.py", "copy.py", "socketserver.py"});
  return IsOneOf(file.substr(0, slash), {"torch",        "torchvision", "torchaudio",
                                         "torchdata",    "numpy",       "scipy",
                                         "pandas",       "PIL",         "cv2",
                                         "transformers", "datasets",    "accelerate",
                                         "deepspeed",    "lightning",   "pytorch_lightning",
                                         "triton",       "flash_attn",  "transformer_engine",
                                         "apex",         "xformers",    "sympy",
                                         "fsspec",       "s3fs",        "boto3",
                                         "botocore",     "requests",    "urllib3",
                                         "aiohttp",      "pyarrow",     "h5py",
                                         "ray",          "wandb",       "tensorboard",
                                         "tqdm",         "webdataset",  "horovod",
                                         "mpi4py",       "importlib",   "multiprocessing",
                                         "concurrent",   "asyncio",     "http",
                                         "urllib",       "json",        "logging",
                                         "ctypes",       "encodings",   "email",
                                         "xml",          "unittest"});
}

bool IsLibraryPath(std::string_view file) {
  // torch.compile writes the code it runs below torchinductor_USER.
  return ContainsAny(file, {"site-packages/", "dist-packages/", "/lib/python3", "/usr/lib/", "pytorch/torch/",
                            "torchinductor"}) ||
         file.starts_with("<frozen") || file == "<built-in>" || IsShortLibraryPath(file);
}

// Most of torch/distributed only surrounds the user's code (wrappers of forward, checkpoints, launchers). These files
// issue communication or wait for it.
bool IsCommunicationModule(std::string_view function, std::string_view file) {
  if (IsFile(file, "torch/nn/parallel/distributed.py"))
    return ContainsAny(function, {"_sync_", "broadcast_coalesced", "_verify_param"});
  if (ContainsAny(file, {"deepspeed/comm/", "-packages/horovod/", "-packages/mpi4py/", "ray/util/collective/"}))
    return true;
  // Experts' tokens go to other ranks and come from them in these calls.
  if (ContainsAny(file, {"deep_ep/buffer", "deep_ep/hybrid"})) return ContainsAny(function, {"dispatch", "combine"});
  // Servers wrap their groups: recv_tensor_dict() of vLLM and SGLang is what a stage of a pipeline waits in.
  if (IsFile(file, "distributed/parallel_state.py"))
    for (const std::string_view call : {"send", "recv", "broadcast", "all_", "_all_", "reduce_scatter", "barrier"})
      if (function.starts_with(call)) return true;
  const auto below = After(file, "torch/distributed/");
  if (!below) return false;
  // What DDP and FSDP do first: NCCL connects in there, and waits for the other ranks.
  if (*below == "utils.py") return function.starts_with("_verify_param") || function.starts_with("_sync_");
  if (*below == "distributed_c10d.py")
    return !(function.starts_with("get_") || function.starts_with("is_") || function.starts_with("_get_") ||
             function.starts_with("_check"));
  return IsOneOf(*below, {"_functional_collectives.py", "_functional_collectives_impl.py", "rendezvous.py",
                          "collective_utils.py", "nn/functional.py", "fsdp/_fully_shard/_fsdp_collectives.py",
                          "fsdp/_fully_shard/_fsdp_param_group.py", "_composable/fsdp/_fsdp_collectives.py",
                          "_composable/fsdp/_fsdp_param_group.py"}) ||
         below->starts_with("rpc/") || below->starts_with("_symmetric_memory");
}

bool IsCommunication(std::string_view function, std::string_view file) {
  if (file.ends_with(".py")) return IsCommunicationModule(function, file);
  if (file == "<built-in>")
    return IsOneOf(function, {"wait", "allreduce", "barrier", "allgather", "broadcast", "recv", "send"});
  const bool nccl_api = function.size() > 4 && function.starts_with("nccl") && function[4] >= 'A' && function[4] <= 'Z';
  return nccl_api || ContainsAny(file, {"libnccl", "/nccl/", "c10d/", "libmpi.so", "libccl.so"}) ||
         file == "bootstrap.cc" || file.ends_with("/bootstrap.cc") || function.starts_with("MPI_") ||
         function.starts_with("PMPI_") ||
         ContainsAny(function, {"c10d::", "ProcessGroupNCCL", "ProcessGroupGloo", "TCPStore", "gloo::"});
}

bool IsDeviceWait(std::string_view function, std::string_view file) {
  if (file == "<built-in>") return IsOneOf(function, {"item", "tolist", "cpu", "numpy", "synchronize", "nonzero"});
  if (file.ends_with(".py")) {
    if (ContainsAny(file, {"torch/cuda/", "torch/xpu/", "torch/accelerator/"}) && Contains(function, "synchronize"))
      return true;
    // Printing a tensor copies it to the host; the gradient scaler asks the device whether it found an infinity.
    return IsFile(file, "torch/_tensor_str.py") ||
           (IsFile(file, "torch/cuda/memory.py") && function == "empty_cache") ||
           (IsFile(file, "grad_scaler.py") && function == "_maybe_opt_step") ||
           (IsFile(file, "lightning_fabric/utilities/apply_func.py") && function == "to_item") ||
           (IsFile(file, "torch/_tensor.py") && IsOneOf(function, {"__format__", "__repr__", "__array__", "tolist"}));
  }
  return ContainsAny(function,
                     {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize",
                      "cuCtxSynchronize", "cuEventSynchronize", "cudaEventQuery", "cudaMemcpy", "cuMemcpy",
                      "hipStreamSynchronize", "hipDeviceSynchronize", "hipEventSynchronize", "_local_scalar_dense"}) ||
         ContainsAny(file, {"libcuda.so", "libcudart", "libamdhip64", "libhsa-runtime"});
}

bool IsLock(std::string_view function, std::string_view file) {
  if (file == "<built-in>") return IsOneOf(function, {"acquire", "sleep", "select", "poll"});
  if (IsFile(file, "threading.py"))
    return IsOneOf(function, {"wait", "wait_for", "join", "acquire", "_wait_for_tstate_lock", "__enter__"});
  if (IsFile(file, "queue.py")) return IsOneOf(function, {"get", "put", "join"});
  // Files that stand for a lock.
  if (IsFile(file, "torch/utils/file_baton.py")) return function == "wait";
  if (ContainsAny(file, {"filelock/", "portalocker/", "fasteners/"}))
    return IsOneOf(function, {"acquire", "__enter__"});
  if (IsFile(file, "subprocess.py")) return ContainsAny(function, {"wait", "communicate"});
  if (ContainsAny(file, {"multiprocessing/", "concurrent/futures/"}) && !Contains(file, "torch/multiprocessing/"))
    return ContainsAny(function, {"wait", "get", "poll", "recv", "join", "acquire", "result"});
  if (file.ends_with(".py")) return IsFile(file, "selectors.py") || IsFile(file, "asyncio/base_events.py");
  return ContainsAny(
      function, {"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_mutex_lock", "futex",
                 "sem_wait", "sem_timedwait", "sem_clockwait", "take_gil", "PyThread_acquire_lock", "__lll_lock_wait",
                 "pthread_rwlock_", "nanosleep", "pysleep", "time_sleep"});
}

bool IsIo(std::string_view function, std::string_view file) {
  if (file == "<built-in>")
    return IsOneOf(function, {"read", "readline", "readinto", "write", "recv_into", "open", "connect", "load", "dump"});
  if (file.ends_with(".py"))
    return IsFile(file, "socket.py") || IsFile(file, "ssl.py") || IsFile(file, "tarfile.py") ||
           IsFile(file, "zipfile.py") || IsFile(file, "gzip.py") || IsFile(file, "shutil.py") ||
           IsFile(file, "torch/serialization.py") || IsFile(file, "http/client.py") ||
           ContainsAny(file, {"fsspec/", "s3fs/", "botocore/", "urllib3/", "pyarrow/", "h5py/", "aiohttp/"});
  return function == "poll" || function == "select_poll_poll" ||
         ContainsAny(function, {"__GI___poll", "epoll_wait", "__read", "__write", "__recv", "__select", "__libc_read",
                                "__libc_recv", "__libc_accept", "fsync", "__GI___libc_read", "pread64", "__openat"});
}

}  // namespace

FrameKind ClassifyFrame(std::string_view function, std::string_view file) {
  if (IsCommunication(function, file)) return FrameKind::communication;
  if (IsDeviceWait(function, file)) return FrameKind::device_wait;
  if (IsLock(function, file)) return FrameKind::lock;
  if (IsIo(function, file)) return FrameKind::io;
  if (IsFile(file, "threading.py") || IsFile(file, "runpy.py") || ContainsAny(file, {"importlib", "<frozen"}))
    return FrameKind::interpreter;
  if (IsLibraryPath(file) || IsNativePath(file)) return FrameKind::framework;
  // gdb prints "#3  0x.. in start_thread ()": a native frame without any file.
  if (file.empty()) return FrameKind::framework;
  return FrameKind::user;
}

}  // namespace tacet
