// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/event_meaning.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/signal_name.h"
#include "base/text_scan.h"
#include "evidence/meaning/message_facts.h"
#include "evidence/meaning/refused_object.h"
#include "evidence/torch_log/errors/torch_log_chain.h"
#include "evidence/torch_log/libraries/torch_log_known_line.h"
#include "evidence/torch_log/libraries/torch_log_library.h"
#include "evidence/torch_log/torch_log_line.h"
#include "model/events/device_error.h"
#include "model/events/event_words.h"
#include "model/events/nccl_warnings.h"
#include "model/events/refusals.h"

namespace tacet {
namespace {

// gloo's own word for a wait that reached its limit; which wait it was stands on the next line.
constexpr std::string_view kGlooGaveUp = "Application timeout caused pair closure";

// RuntimeError: [.../gloo/transport/tcp/pair.cc:520] Read timeout [10.1.4.9]:23811
bool IsGlooTimeout(std::string_view text) {
  return Contains(text, kGlooGaveUp) ||
         (Contains(text, "gloo/transport/") &&
          ContainsAny(text, {"Timed out waiting", "Read timeout ", "Write timeout ", "Send timeout "}));
}

bool TellsTimeout(std::string_view text) {
  return ContainsAny(text, {"timed out", "times out", "time out", "imeout", "TIMEOUT"});
}

bool TellsCollective(std::string_view text) {
  return ContainsAny(text, {"all_reduce",     "allreduce",       "AllReduce",
                            "Allreduce",      "ALLREDUCE",       "all_gather",
                            "allgather",      "AllGather",       "Allgather",
                            "ALLGATHER",      "reduce_scatter",  "ReduceScatter",
                            "REDUCE_SCATTER", "all_to_all",      "alltoall",
                            "AllToAll",       "ALLTOALL",        "BatchSendRecv",
                            "Broadcast_",     "collective comm", "collective operation"});
}

bool TellsOtherRank(std::string_view text) {
  return ContainsAny(text, {"remote rank", "Remote Rank", "Remote rank", "remote peer", "other ranks"});
}

// A limit that the program sets itself, in its own words: "gradient sync of step 14 not complete after 6 s".
bool TellsOwnLimit(std::string_view text) {
  constexpr std::string_view kNotThere[] = {"not complete", "not finish",  "not done",    "not ready",     "not arrive",
                                            "no answer",    "no response", "no reply",    "still waiting", "gave up",
                                            "waited",       "too long",    "no progress", "stuck"};
  for (const std::string_view words : kNotThere)
    if (auto rest = After(text, words))
      for (const std::string_view how : {" after ", " within ", " in ", " for ", " more than "})
        if (auto limit = After(*rest, how); limit && !limit->empty() && IsDigit((*limit)[0])) return true;
  return false;
}

// What ranks do together, in a program's own words.
bool TellsSync(const std::string& low) {
  return ContainsAny(low, {"gradient sync", "grad sync",  "sync of ",       "synchronization of", "gradient reduction",
                           "barrier",       "all-reduce", "all reduce",     "allreduce",          "all-gather",
                           "all gather",    "allgather",  "reduce-scatter", "all-to-all",         "broadcast",
                           "collective",    "other rank", "other worker",   "all ranks",          "all workers",
                           "peer rank",     "peers"}) &&
         !ContainsAny(low, {"http", "socket", "download", "upload", "redis", "database"});
}

// A program that has a limit of its own for what ranks do together, and gives up.
bool TellsOwnWaitForOthers(std::string_view text) {
  return (TellsTimeout(text) || TellsOwnLimit(text)) && TellsSync(LowerCase(text.substr(0, 400)));
}

// EI0002: ... The wait execution of the Notify register times out. ... from remote rank: [3]. ... tag[AllReduce_...
// Whatever library says so: who waited for others in a collective until its time was up is not who made it wait.
bool TellsWaitForOthers(std::string_view text) {
  return TellsTimeout(text) && (TellsOtherRank(text) || TellsCollective(text));
}

bool IsOfAscend(std::string_view text) {
  if (Contains(text, "synapse error")) return false;  // Gaudi's library has the same name
  return ContainsAny(text, {"NPU function error", "NPU error, error code", "HCCL", "EI00", "EJ00", "Hccl",
                            "Notify register", " acl api failed", "aicore", "AI core", "vector core",
                            "NPU warning, error code", "EE1002", "rtDeviceSynchronize", "rtStreamSynchronize"});
}

// Whose words they are: steps and settings of NCCL and torchrun are of no use for another library.
Library LibraryOf(const Event& event) {
  const std::string_view text = event.text;
  const std::string_view result = event.As<NcclError>().result;
  if (event.Means(Meaning::of_ascend) || Contains(result, "HCCL")) return Library::hccl;
  if (event.kind == EventKind::watchdog_timeout && ContainsAny(text, {"WorkMCCL(", "WorkBCCL(", "WorkBKCL("}))
    return Library::other;
  if (Contains(result, "oneCCL") || ContainsAny(text, {"|CCL_ERROR|", "|CCL_WARN|", "oneCCL"})) return Library::oneccl;
  if (Contains(text, "CCOM WARN ") || Contains(result, "Neuron runtime")) return Library::neuron;
  if (Contains(result, "libfabric")) return Library::libfabric;
  if (Contains(result, "UCX") || (event.kind == EventKind::connect_failed && Contains(text, "UCX ")))
    return Library::ucx;
  if (event.kind == EventKind::connect_failed && ContainsAny(text, {"HYDU_", "MPID_nem"})) return Library::mpi;
  if (ContainsAny(result, {"mpirun", "mpiexec", "Open MPI"})) return Library::mpi;
  if (ContainsAny(result, {"MSCCL++", "UCC", "nccl-tests"}) ||
      (event.kind == EventKind::watchdog_timeout &&
       ContainsAny(text, {"pollSendCq", "Host2HostSemaphore", "UCC  WARN"})))
    return Library::other;
  if (Contains(result, "NVSHMEM") || ContainsAny(text, {"nvshmem", "DeepEP ", "ibgda.cpp:", "ibrc.cpp:",
                                                        "on the specified memory type", "connect EPS failed"}))
    return Library::nvshmem;
  if (ContainsAny(text, {"oordination service", "oordinationService", "jaxlib", "jax_worker", "XlaRuntimeError",
                         "Wait_for_all_tasks_to_register", "Barrier timed out", "JAX ",
                         "RESOURCE_EXHAUSTED: ", "TPU backend initialization is taking"}))
    return Library::jax;
  if (ContainsAny(text, {"tensorflow", "CollectiveExecutor::", "OOM when allocating tensor"}))
    return Library::tensorflow;
  if (ContainsAny(text, {"Out of memory error on GPU ", "paddle::"})) return Library::paddle;
  if (Contains(event.As<Raised>().type, "an MPI error") ||
      ContainsAny(text,
                  {"connect() to ", "Open MPI ", "MPI processes are unable", "unable to complete a TCP connection"}))
    return Library::mpi;
  return Library::not_told;
}

// HIP's errors, those of ROCm's runtime, and RCCL, whose sources are NCCL's behind a path of their own.
GpuMaker MakerOf(const Event& event) {
  const std::string_view text = event.text;
  switch (event.kind) {
    case EventKind::nccl_version:
      return Contains(event.As<Version>().number, "+hip") ? GpuMaker::amd : GpuMaker::not_told;
    case EventKind::nccl_error: return ContainsAny(text, {"hipify/", "rccl"}) ? GpuMaker::amd : GpuMaker::not_told;
    case EventKind::nccl_warning:
      if (ContainsAny(event.As<Warning>().place.file, {"hipify/", "rccl/"})) return GpuMaker::amd;
      break;
    case EventKind::xid:
      if (text.starts_with("xe ") || text.starts_with("i915 ")) return GpuMaker::intel;
      return Contains(text.substr(0, 40), "amdgpu") ? GpuMaker::amd : GpuMaker::not_told;
    case EventKind::exception:
    case EventKind::cuda_error:
    case EventKind::peer_access_failed: break;
    default: return GpuMaker::not_told;
  }
  if (ContainsAny(text, {"HIP error", "HIP failure", "HIP out of memory", "hipIpc", "hipError", "HSA_STATUS_ERROR",
                         "by GPU node-", "/hip/"}))
    return GpuMaker::amd;
  if (ContainsAny(text, {"ore halted unexpectedly", "device halted prematurely", "FATAL ERROR !!!! for [/dev/accel",
                         "SLICE_FAILURE_CHIP"}))
    return GpuMaker::google;
  return ContainsAny(text, {"XPU out of memory", "XPU error", "level_zero backend", "UR_RESULT_ERROR_"})
             ? GpuMaker::intel
             : GpuMaker::not_told;
}

bool MayBeOfALibrary(EventKind kind) {
  switch (kind) {
    case EventKind::watchdog_timeout:
    case EventKind::exception:
    case EventKind::cuda_error:
    case EventKind::nccl_error:
    case EventKind::rendezvous_incomplete:
    case EventKind::store_unreachable:
    case EventKind::connection_lost:
    case EventKind::connect_failed:
    case EventKind::rdma_failed:
    case EventKind::port_in_use: return true;
    default: return false;
  }
}

// A call of Ascend's that was not done in time, by its code: a stream, an event, a task of communication.
bool IsAscendTimeout(std::string_view text) {
  return ContainsAny(text,
                     {"error code is 107020", "error code is 507046", "error code is 507047", "error code is 507048"});
}

// Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root
// cause.
// RuntimeError: Initialization failed. Please see the error messages above.
// Who says so passes on that something else failed.
bool PointsBack(std::string_view text) {
  const std::string low = LowerCase(text.substr(0, std::min<size_t>(text.find('\n'), 400)));
  return ContainsAny(low, {"see stack trace", "see root cause", "see the root cause", "see the stack trace",
                           "error messages above", "error message above", "see the error above", "see the logs above",
                           "see logs above", "see the traceback above", "see above for the"});
}

// An error that only says that somebody else failed: a timeout, a lost peer, a store that is gone.
bool SpeaksOfOthers(const Event& exception) {
  // NCCL error in: ProcessGroupNCCL.cpp:3780, invalid usage (run with NCCL_DEBUG=WARN for details): the call itself is
  // wrong.
  if (ContainsAny(exception.text, {", invalid usage", ", invalid argument"})) return false;
  const std::string& type = exception.As<Raised>().type;
  if (ContainsAny(type, {"DistBackendError", "DistNetworkError", "DistStoreError", "DistError", "ChildFailedError",
                         "ActorDiedError", "RayActorError", "CalledProcessError", "KeyboardInterrupt", "SystemExit",
                         "SignalException", "SIGTERMException", "RendezvousConnectionError", "RendezvousClosedError",
                         // SageMaker: how the user's script ended
                         "UnexpectedStatusException", "ExecuteUserScriptError"}))
    return true;
  // The system's own words: a pipe or socket to a process that is gone. A program that raises one of these with words
  // of its own speaks of something else, such as its data server.
  if (ContainsAny(type, {"BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError"}) &&
      (exception.text.empty() || Contains(exception.text, "[Errno ")))
    return true;
  // A pipe to a dead process gives an EOFError without words; a reader whose file is cut short says so.
  if (Contains(type, "EOFError") && exception.text.empty()) return true;
  if (exception.As<Raised>().of_parent) return true;
  if (exception.As<Raised>().points_back) return true;
  if (PassesOnLibraryWords(exception.text) || IsGlooTimeout(exception.text)) return true;
  if (const KnownLine* known = FindKnownLine(exception.text); known != nullptr && TellsOfOthers(*known)) return true;
  if (exception.text.starts_with("The worker group startup timed out after ")) return true;
  return ContainsAny(
             exception.text,
             {"Watchdog caught", "Connection closed by peer", "Connection reset by peer", "NCCL error in",
              "NCCL communicator was aborted", "Broken pipe", "Timed out waiting", "wait timeout after",
              "Timeout waiting for key: ", "monitoredBarrier", "Socket Timeout", "recvValue failed", "Gloo",
              kGlooGaveUp, "function error: Hccl", "HCCL error in", "unhandled system error", "unhandled cuda error",
              "Failed to meet rendezvous", "stream synchronize failed", "Stream synchronize failed",
              "GetKeyValue() timed out", "collective operation timeout", "operations have failed or timed out",
              "UNAVAILABLE: failed to connect to all", "Coordination service agent in error", "MPI_ERR_OTHER",
              "Other MPI error", "MPI_ERR_PROC_FAILED",
              // vLLM and SGLang: who reports that a worker failed, or that the others did not come so far.
              "EngineCore encountered an issue", "Worker failed with erro",
              "could finish the model loading, but there are other ranks", "Horovod has been shut down",
              "`Termination signal` is detected by",  // Paddle
              "User program failed with ",            // Azure ML, of the user's script
              // TensorFlow: the connection to a peer closed
              "Collective ops is aborted by: Socket closed", "Collective ops is aborted by: Connection reset"}) ||
         exception.text.substr(0, exception.text.find('\n')) == "Wait timeout" ||
         // vLLM's engine waited for its workers.
         (exception.text.starts_with("RPC call to ") && Contains(exception.text, " timed out")) ||
         Contains(exception.text, "watchdog thread terminated with exception") || IsAscendTimeout(exception.text) ||
         TellsWaitForOthers(exception.text);
}

// DataLoader worker (pid 4161) is killed by signal: Killed.
// DataLoader worker (pid(s) 4161, 4162) exited unexpectedly
// (Fatal) DataLoader process (pid 1104) exited is killed by signal: Killed. (at ...data_loader.cc:181)
// The worker is a child of the rank, and the rank lives to tell of it.
void ReadLoaderWorker(Event& event) {
  std::string_view rest;
  for (const std::string_view word : {"DataLoader worker (pid", "DataLoader process (pid"})
    if (const auto found = After(event.text, word)) rest = *found;
  if (rest.empty()) return;
  TakeLiteral(rest, "(s)");
  const size_t close = std::min(rest.find(')'), rest.size());
  event.Set(Meaning::loader_worker);
  LoaderWorkerEnd end;
  end.pids = Trim(rest.substr(0, close));
  const auto signal = After(rest, "killed by signal: ");
  if (const int number = signal ? SignalNumber(*signal) : 0; number > 0) end.signal = number;
  // Whoever ends the job ends the children too.
  event.Set(Meaning::consequence, end.signal == 15 || end.signal == 2 || end.signal == 1);
  event.Make<Raised>().about = std::move(end);
}

bool SpeaksOfHostMemory(const Event& exception) {
  const std::string& type = exception.As<Raised>().type;
  if (type.ends_with("MemoryError") && !type.ends_with("OutOfMemoryError")) return true;
  // /dev/shm is a limit of its own.
  // Nor is memory that an adapter is to reach.
  return ContainsAny(exception.text, {"can't allocate memory", "not enough memory: you tried to allocate",
                                      "annot allocate memory", "std::bad_alloc"}) &&
         !ContainsAny(exception.text, {"shared memory", "/dev/shm", "ibv_", "mlx", "UCX", "RDMA", "rdma"});
}

bool SpeaksOfNoInterface(const Event& event) {
  return ContainsAny(event.text, {"no socket interface found", "no interface found"});
}

// gloo, of GLOO_SOCKET_IFNAME, is the only one that names the interface:
// [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth7
void ReadGlooInterface(Event& event) {
  const auto name = After(event.text, "Unable to find address for: ");
  if (!name) return;
  event.Set(Meaning::no_interface);
  constexpr size_t kMostOfAnInterface = 64;
  const std::string_view interface = name->substr(0, std::min(name->find_first_of(" \t\r\n,;"), kMostOfAnInterface));
  event.Make<Raised>().about = ErrorObject{std::string(interface)};
}

// An assertion in a kernel is the program's own check, as an exception is: neither the device nor its driver failed.
// "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions." stands below every error of CUDA.
bool IsDeviceAssert(std::string_view words) { return Contains(words, "device-side assert triggered"); }

// A program that stops because its loss or its gradients are not finite. numpy raises a FloatingPointError for other
// things, and so does fairseq where ranks differ.
bool TellsDivergence(std::string_view type, std::string_view text) {
  if (ContainsAny(text, {"oss became infinite or NaN", "oss is NaN", "oss is nan", "oss is inf", "NaN loss", "nan loss",
                         "oss is not finite", "on-finite loss", "found NaN in ", "found Inf in ",
                         "returned nan values in its ", "returned in `training_step` is nan",
                         "returned in `training_step` is inf", "contains either `inf`, `nan` or element < 0",
                         // DeepSpeed and fairseq: gradients overflow at every scale
                         "oss scale already at minimum", "inimum loss scale reached"}))
    return true;
  return type.ends_with("FloatingPointError") && ContainsAny(text, {"oss", "radient", "NaN", "nan"}) &&
         !Contains(text, "inconsistent");
}

void ReadException(Event& event) {
  if (PointsBack(event.text)) event.Make<Raised>().points_back = true;
  const bool others = SpeaksOfOthers(event);
  const std::string& type = event.As<Raised>().type;
  event.Set(Meaning::reported, Contains(type, " "));  // no type has a blank in it
  // Open MPI without its reason: "*** An error occurred in MPI_Init", and no more.
  // A traceback that the file ends in tells that its process failed, and not of what.
  // Nor does "on a NULL communicator", which every failure of MPI_Init prints.
  const bool no_reason = (event.text.empty() || event.text == "on a NULL communicator") &&
                         ContainsAny(type, {"an MPI error", "whose name is cut off"});
  // What is unpickled there came from another rank, and from no file.
  const bool of_peer = event.As<Raised>().in_collective && ContainsAny(type, {"UnpicklingError", "EOFError"});
  const bool of_parent = event.As<Raised>().of_parent;
  if (const Refusal* refusal = of_peer     ? FindRefusal("object-damaged")
                               : of_parent ? nullptr
                                           : ClassifyRefusal(type + " " + event.text)) {
    event.Make<Raised>().refusal = refusal->id;
    if (std::string object = RefusedObject(event.text); !object.empty())
      event.Make<Raised>().about = ErrorObject{std::move(object)};
  }
  if (ContainsAny(event.text, {"istributed", "rank", "Rank", "world size", "world_size", "parallel", "multi GPU",
                               "multi-GPU", "/task:", "elastic", "nccl", "NCCL", "loss scale already at minimum"}))
    event.Make<Raised>().of_job = true;
  // A known refusal says itself what is wrong, whatever type of error carries it.
  event.Set(Meaning::consequence, (others && event.As<Raised>().refusal.empty()) || no_reason);
  event.Set(Meaning::of_communication, TellsTimeout(event.text) || TellsCollective(event.text) ||
                                           TellsOtherRank(event.text) || event.As<Raised>().in_collective);
  event.Set(
      Meaning::timed_out,
      TellsTimeout(event.text) && !TellsCollective(event.text) && !TellsOtherRank(event.text) &&
          !ContainsAny(event.text, {"Endpoint timeout", "timed out connecting"}));  // of UCX: a connection that broke
  if (event.As<Raised>().refusal.empty() && !event.Means(Meaning::reported) && TellsOwnWaitForOthers(event.text))
    for (const Meaning meaning : {Meaning::consequence, Meaning::of_communication, Meaning::timed_out})
      event.Set(meaning);
  // Whatever carries it: it tells of a connection to somebody who does not answer.
  event.Set(Meaning::refused, Contains(type, "Connect") ||
                                  ContainsAny(event.text, {"onnection refused", "onnection reset", "onnection closed",
                                                           "roken pipe", "connect to", "to connect"}));
  // ... [Errno 111] Connection refused while trying to connect to 10.9.1.20:39217
  if (auto address = After(event.text, "connect to "); address && Contains(event.text, "onnection refused")) {
    std::string_view target = TakeWord(*address);
    while (!target.empty() && (target.back() == '.' || target.back() == ',' || target.back() == ')'))
      target.remove_suffix(1);
    if (auto& raised = event.Make<Raised>(); std::holds_alternative<std::monostate>(raised.about) &&
                                             target.find(':') != std::string_view::npos && IsDigit(target.back()))
      raised.about = RefusingPeer{std::string(target.substr(0, 200))};
  }
  event.Set(Meaning::host_memory, SpeaksOfHostMemory(event));
  if (others && ContainsAny(event.text, {"gloo/transport/", kGlooGaveUp}))
    event.Set(IsGlooTimeout(event.text) ? Meaning::gloo_timeout : Meaning::gloo_loss);
  // torch.AcceleratorError: CUDA error: an illegal memory access was encountered
  event.Set(Meaning::cuda_failed, Contains(event.text, "CUDA error") || Contains(type, "AcceleratorError"));
  event.Set(Meaning::device_assert, event.Means(Meaning::cuda_failed) && IsDeviceAssert(event.text));
  event.Set(Meaning::nccl_failed, Contains(event.text, "NCCL error in"));
  event.Set(Meaning::calls_differ,
            Contains(event.text, "Detected mismatch between collectives") ||
                Contains(event.text, "op.preamble.length <= op.nbytes. ") ||
                (Contains(event.text, "Mismatched ") && Contains(event.text, ", but another rank ")));
  event.Set(Meaning::setup_failed, ContainsAny(type, {"DistStoreError", "DistNetworkError", "DistBackendError"}));
  event.Set(Meaning::store_unreachable, Contains(type, "DistNetworkError") && Contains(event.text, "connect"));
  event.Set(Meaning::no_interface, SpeaksOfNoInterface(event));
  ReadGlooInterface(event);
  // ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but
  // not set
  event.Set(Meaning::no_launcher,
            (Contains(event.text, "environment variable ") && Contains(event.text, " expected, but not set")) ||
                (type == "KeyError" && ContainsAny(event.text, {"'RANK'", "'LOCAL_RANK'", "'WORLD_SIZE'"})));
  event.Set(Meaning::diverged, TellsDivergence(type, event.text));
  // FileNotFoundError: [Errno 2] No such file or directory: 'configs/base.yaml'
  if (const auto path = After(event.text, "No such file or directory: '"))
    event.Make<Raised>().relative_path = !path->empty() && path->find_first_of("/\\~") != 0 &&
                                         path->substr(0, path->find('\'')).find(':') == std::string_view::npos;
  // makeDeviceForHostname(): unsupported gloo device: gloo has no transport of this platform in it.
  event.Set(Meaning::data_ended, type == "the end of its data");
  event.Set(Meaning::not_in_build, Contains(event.text, "unsupported gloo device"));
  ReadLoaderWorker(event);
  // "This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor
  // after one of the ranks finished execution."
  if (Contains(event.text, "Horovod has been shut down"))
    event.Make<Raised>().about = ErrorReason{"Horovod was shut down because a rank failed, or ended before the others"};
}

void ReadDeviceAssert(Event& event) {
  CudaError error = event.As<CudaError>();
  event.kind = EventKind::exception;
  event.Set(Meaning::device_assert);
  auto& raised = event.Make<Raised>();
  raised.type = std::move(error.words);
  if (!error.assertion.empty()) raised.about = DeviceAssertion{std::move(error.assertion)};
}

// "CUDA driver version is insufficient for CUDA runtime version" is of the program and its host, as an exception is.
void ReadSetupError(Event& event) {
  std::string words = event.As<CudaError>().words;
  event.kind = EventKind::exception;
  event.Set(Meaning::reported);
  event.Set(Meaning::cuda_failed);
  // CUDA did not start, and this does not say why: it may be the driver, the fabric manager or a fork.
  event.Set(Meaning::consequence, Contains(words, "initialization error"));
  event.Make<Raised>().type = Contains(words, "hip") || Contains(words, "HIP") ? "a HIP error" : "a CUDA error";
  if (const Refusal* refusal = ClassifyRefusal(words)) event.Make<Raised>().refusal = refusal->id;
  event.text = std::move(words);
}

void ReadCudaError(Event& event) {
  const std::string& words = event.As<CudaError>().words;
  if (IsDeviceAssert(words)) return ReadDeviceAssert(event);
  if (!IsOfTheDevice(words)) return ReadSetupError(event);
  constexpr std::string_view kIllegal = "an illegal memory access";
  const bool illegal = Contains(words, "illegal memory access");
  const bool mps = Contains(words, "MPS");
  event.Set(Meaning::gpu_memory, Contains(words, "out of memory"));
  event.Set(Meaning::illegal_access, illegal);
  event.Set(Meaning::mps_failed, mps);
  // The last: the file ends within the words.
  event.Set(Meaning::spreads, illegal || mps || Contains(words, "launch failure") || kIllegal.starts_with(words));
}

//   Last error: no algorithm/protocol available for function Broadcast with datatype ncclInt8. NCCL_ALGO was set to
//   Tree.
void ReadNcclError(Event& event) {
  constexpr std::string_view kReason = "Last error: ";
  event.Set(Meaning::no_interface, SpeaksOfNoInterface(event));
  // Of another library: "an HCCL error", "a oneCCL error", "an error of the collective library".
  const std::string_view result = event.As<NcclError>().result;
  event.Set(Meaning::reported, result.starts_with("an ") || result.starts_with("a "));
  event.Set(Meaning::duplicate_gpu, Contains(event.text, "Duplicate GPU detected"));
  if (const size_t at = event.text.find(kReason); at != std::string::npos)
    event.Make<NcclError>().reason = event.text.substr(at + kReason.size());
}

// A number that is the first bytes of an HTTP request, in either order: 0x47455420 is "GET ".
bool IsHttpNumber(uint64_t number) {
  std::string little, big;
  for (int byte = 0; byte < 8; ++byte) {
    const char c = static_cast<char>(number >> (8 * byte) & 0xff);
    if (c == 0) continue;
    little.push_back(c);
    big.insert(big.begin(), c);
  }
  for (const std::string_view method : {"GET ", "POST", "HEAD", "PUT ", "OPTI", "CONN", "PRI "})
    if (little.starts_with(method) || big.starts_with(method)) return true;
  return false;
}

// "wrong type 1195725856 != 3", "socket magic mismatch 0x47455420 != 0x564ab9f2fccb2d95"
bool HoldsHttp(std::string_view text) {
  for (size_t at = text.find_first_of("0123456789"); at < text.size(); at = text.find_first_of("0123456789", at)) {
    const bool hex = text.substr(at).starts_with("0x");
    const char* begin = text.data() + at + (hex ? 2 : 0);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number, hex ? 16 : 10);
    if (error == std::errc() && IsHttpNumber(number)) return true;
    at = std::max<size_t>(static_cast<size_t>(end - text.data()), at + 1);
  }
  return false;
}

// NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime version': what CUDA says means the same
// in a warning as in an exception.
void ReadRefusedCall(Event& event) {
  const Refusal* refusal = ClassifyRefusal(event.text);
  std::string words = event.text;
  if (const auto quoted = After(event.text, "'")) words = quoted->substr(0, quoted->find('\''));
  event.kind = EventKind::exception;
  event.Set(Meaning::reported);
  event.Set(Meaning::cuda_failed);
  event.Make<Raised>().type = "a CUDA error";
  event.Make<Raised>().refusal = refusal->id;
  event.text = std::move(words);
}

void ReadGid(Event& event) {
  Warning& warning = event.Make<Warning>();
  if (const int64_t index = ReadEmptyGidIndex(event.text); index >= 0)
    warning.gid = GidProblem::empty, warning.gid_index = index;
  else if (const int64_t other = ReadLinkLocalGidIndex(event.text); other >= 0)
    warning.gid = GidProblem::link_local, warning.gid_index = other;
}

void ReadNcclWarning(Event& event) {
  auto& warning = event.Make<Warning>();
  if (warning.id == "ib-modify-qp-failed") event.library = LibraryOf(event);
  if (const NcclWarning* known = FindNcclWarning(warning.id); known && known->library != Library::not_told)
    event.library = known->library;
  event.Set(Meaning::host_memory, warning.id == "host-memory-exhausted");
  event.Set(Meaning::no_interface, warning.id == "socket-no-interface" || warning.id == "peer-address-missing");
  event.Set(Meaning::duplicate_gpu, warning.id == "duplicate-gpu");
  if (warning.id == "ib-modify-qp-failed") ReadGid(event);
  warning.speaks_http =
      (warning.id == "socket-stranger" || warning.id == "bootstrap-stranger") && HoldsHttp(event.text);
  // UCX's sock.c: "connect(fd=41, dest_addr=10.44.2.9:51120) failed: Connection timed out"
  warning.over_tcp =
      warning.id == "ucx-failed" && Contains(event.text, "connect(fd=") && Contains(event.text, "Connection timed out");
  // Cuda failure 'an illegal memory access was encountered'
  if (warning.id == "cuda-failure") {
    if (ClassifyRefusal(event.text)) return ReadRefusedCall(event);
    event.Set(Meaning::illegal_access, Contains(event.text, "illegal memory access"));
    if (const auto quoted = After(event.text, "'"); quoted && warning.object.empty())
      warning.object = quoted->substr(0, quoted->find('\''));
  }
  // No algorithm/protocol available for function ReduceScatter with datatype ncclBfloat16. NCCL_ALGO was set to tree.
  if (const auto function = After(event.text, "available for function "); function && warning.id == "no-algorithm")
    warning.object = function->substr(0, function->find_first_of(" ."));
  // Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!
  if (const auto option = After(event.text, "Missing \""); option && warning.id == "rccl-host-setting")
    warning.object = option->substr(0, option->find('"'));
  // Call to posix_fallocate failed : No space left on device: the system's words in place of its number.
  if (warning.id.starts_with("shm-") && warning.number < 0 && Contains(event.text, "No space left on device"))
    warning.number = ENOSPC;
  if (warning.id.starts_with("shm-") && warning.number < 0 && Contains(event.text, "Permission denied"))
    warning.number = EACCES;
  event.Set(Meaning::refused, warning.id == "connect-failed" && Contains(event.text, "refused"));
  // "... from peer 10.0.0.5<34567> with status=12"
  if (const auto peer = After(event.text, "peer "); peer && warning.object.empty() && warning.id.starts_with("ib-"))
    warning.object = peer->substr(0, peer->find_first_of("<: ,"));
}

// What runs on hosts beside jobs and trains nothing.
bool IsService(std::string_view process) {
  for (const std::string_view name :
       {"java", "mysqld", "postgres", "redis-server", "nginx", "mongod", "containerd", "dockerd", "kubelet",
        "prometheus", "grafana", "chrome", "firefox", "systemd", "sshd", "fluentd", "etcd"})
    if (process == name) return true;
  return false;
}

// What looks at GPUs, or draws on them, beside jobs. The kernel cuts names after 15 characters.
bool IsGpuTool(std::string_view process) {
  for (const std::string_view name : {"nvidia-smi", "nv-hostengine", "nvidia-persiste", "nvidia-persistenced", "dcgm",
                                      "gpud", "nvtop", "nvitop", "gpustat", "nvidia-device-p", "node_exporter",
                                      "node-exporter", "X", "Xorg", "Xwayland", "gnome-shell", "cache_mgr_main"})
    if (process == name) return true;
  return process.starts_with("dcgm") || process.starts_with("nvidia_gpu_expo");
}

// What a person starts by hand, beside jobs.
bool IsDesktopProgram(std::string_view process) {
  for (const std::string_view name : {"jupyter", "jupyter-lab", "jupyter-noteboo", "jupyter-notebook", "blender",
                                      "ollama", "ollama_llama_se", "ffmpeg", "vlc", "steam", "obs"})
    if (process == name) return true;
  return false;
}

// Whatever process it is: one that waits inside the driver of a GPU shows that the driver does not answer, and every
// process of a job that uses this host's GPUs meets it there.
bool WaitsInGpuDriver(const HungTask& task) {
  return task.module.starts_with("nvidia") || task.module == "amdgpu" || task.module == "amdkfd" ||
         Contains(task.process, "nvc:[driver]") || task.process == "nvidia-smi" || task.process == "rocm-smi";
}

// INFO: task kworker/u256:1:8812 blocked for more than 120 seconds: threads of the kernel and daemons of file systems
// wait too, for reasons of their own.
bool MayTrain(std::string_view process) {
  return ContainsAny(process, {"python", "torch", "train", "nccl", "_perf", "mpirun", "orterun"}) ||
         process.starts_with("pt_") || process.starts_with("ray:");
}

}  // namespace

static void ReadOwnMeaning(Event& event) {
  if (event.kind == EventKind::watchdog_timeout || event.kind == EventKind::exception ||
      event.kind == EventKind::cuda_error || event.kind == EventKind::nccl_error ||
      event.kind == EventKind::port_in_use || event.kind == EventKind::rendezvous_incomplete ||
      event.kind == EventKind::connect_failed)
    event.Set(Meaning::of_ascend, IsOfAscend(event.text));
  event.maker = MakerOf(event);
  if (event.library == Library::not_told && MayBeOfALibrary(event.kind)) event.library = LibraryOf(event);
  // EI0006: a link between two devices was not made in time, before the first collective that needs it.
  if (event.kind == EventKind::watchdog_timeout && event.Means(Meaning::of_ascend))
    event.Set(Meaning::setup_failed,
              ContainsAny(event.text, {"EI0006", "etting socket times out", "create link timeout"}));
  switch (event.kind) {
    case EventKind::exception: ReadException(event); break;
    case EventKind::cuda_error: ReadCudaError(event); break;
    case EventKind::nccl_error: ReadNcclError(event); break;
    // "Since `find_unused_parameters=True` is enabled, this likely means that not all `forward` outputs participate
    // ..."
    case EventKind::ddp_unused_parameters:
      if (ContainsAny(event.text,
                      {"`find_unused_parameters=True` is enabled", "find_unused_parameters=True is enabled"}))
        event.Make<DdpParameters>().search_is_on = true;
      break;
    case EventKind::nccl_warning: ReadNcclWarning(event); break;
    case EventKind::connect_failed:
    case EventKind::store_unreachable:
      event.Set(Meaning::refused, Contains(event.text, "refused") ||
                                      Contains(event.As<ConnectFailure>().words, "refused") ||
                                      Contains(event.As<StoreUnreachable>().last_try, "refused"));
      break;
    case EventKind::process_exited:
      // "slurmstepd cannot start ...", "the shell cannot find torchrun": that is the reason
      event.Set(Meaning::reported, Contains(event.As<ProcessEnd>().how, " cannot "));
      event.Set(Meaning::by_python, ContainsAny(event.text, {"python", "Python", ".py"}));
      // JAX, MindSpore: nobody saw it end, its sign of life did not come in time
      event.Set(Meaning::timed_out,
                ContainsAny(event.text, {"heartbeat timeout", "Time out nodes are ", "stopped sending heartbeats",
                                         " is timed out. It may exit with exception"}));
      if (event.Means(Meaning::timed_out)) event.library = LibraryOf(event);
      // Paddle's launcher, which writes one file for each trainer.
      if (Contains(event.As<ProcessEnd>().log_file, "workerlog.")) event.library = Library::paddle;
      break;
    // NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)
    case EventKind::xid:
      event.Set(Meaning::of_service, IsGpuTool(event.As<Xid>().process) || IsService(event.As<Xid>().process) ||
                                         IsDesktopProgram(event.As<Xid>().process));
      event.Set(Meaning::setup_failed, Contains(event.text, "RmInitAdapter failed"));
      // amdgpu: [gfxhub] page fault (src_id:0 ...): an address that is not mapped, or may not be written to.
      // The register alone, where the line above it is lost: VM_L2_PROTECTION_FAULT_STATUS:0x00301031
      event.Set(
          Meaning::illegal_access,
          event.As<Xid>().number == 0 && ContainsAny(event.text, {"page fault (src_id", "PROTECTION_FAULT_STATUS"}));
      if (event.As<Xid>().number == 0)
        event.Make<Xid>().words =
            std::string(event.Means(Meaning::illegal_access)                   ? "a page fault"
                        : ContainsAny(event.text, {"timeout", "Timedout job"}) ? "a job that timed out"
                        : Contains(event.text, "GPU HANG")                     ? "a hang of its engine"
                        : ContainsAny(event.text, {"reset", "wedged"})         ? "a reset"
                        : Contains(event.text, "sq_intr")                      ? "errors of running waves (sq_intr)"
                                                                               : "a fault or reset") +
            (event.text.starts_with("xe ")     ? " (xe)"
             : event.text.starts_with("i915 ") ? " (i915)"
                                               : " (amdgpu)");
      if (event.As<Xid>().number == 119 && !Contains(event.text, "Xid"))
        event.Make<Xid>().words = "that its firmware (GSP) does not answer (the meaning of Xid 119)";
      if (event.As<Xid>().number == 79 && Contains(event.text, "has fallen off the bus") &&
          !Contains(event.text, "Xid"))
        event.Make<Xid>().words = "has fallen off the bus";
      // nvidia-smi, or the driver as it loads: no Xid is printed.
      event.Set(Meaning::reported, ContainsAny(event.text, {"Unable to determine the device handle", "fallen off",
                                                            "ERR!", "GPU requires reset"}) &&
                                       !Contains(event.text, "Xid"));
      break;
    case EventKind::shared_memory_full:
      event.Set(Meaning::loader_worker, ContainsAny(event.text, {"DataLoader worker", "encountered in worker"}));
      break;
    case EventKind::hung_task: {
      const auto& task = event.As<HungTask>();
      event.Set(Meaning::of_service, !MayTrain(task.process) && !WaitsInGpuDriver(task));
      break;
    }
    case EventKind::oom_kill:
      // PyTorch names the workers of its data loaders so.
      event.Set(Meaning::loader_worker, event.As<OomKill>().process == "pt_data_worker");
      [[fallthrough]];
    case EventKind::segfault: event.Set(Meaning::of_service, IsService(WordOf(event))); break;
    case EventKind::dump_signal:
      event.Set(Meaning::timed_out,
                Contains(event.text, "timeout signal") || Contains(event.text, "collective timeout"));
      break;
    case EventKind::transport:
      event.Set(Meaning::over_infiniband, event.As<PairTransport>().via.starts_with("NET/IB"));
      event.Set(Meaning::gpu_direct, Contains(event.As<PairTransport>().via, "GDRDMA"));
      break;
    default: break;
  }
}

void ReadMeaning(Event& event) {
  // What an exception led to says nothing of what it is: "KeyError: 'ids'\nwhich led to DistBackendError: NCCL error".
  const size_t end = event.kind == EventKind::exception ? event.text.find(kChainLedTo) : std::string::npos;
  std::string followed = end == std::string::npos ? std::string() : event.text.substr(end);
  event.text.resize(std::min(end, event.text.size()));
  ReadOwnMeaning(event);
  event.text += followed;
  event.folded = static_cast<uint8_t>(std::min<int64_t>(255, ReadFoldedLines(event.text)));
}

}  // namespace tacet
