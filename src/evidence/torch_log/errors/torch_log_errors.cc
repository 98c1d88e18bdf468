// SPDX-License-Identifier: Apache-2.0
// Texts of errors that stand in a log line, in the message of an exception, or by themselves.
#include <algorithm>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/ends/torch_log_worker_end.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/errors/torch_log_mismatch.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "evidence/torch_log/figures/torch_log_health.h"
#include "evidence/torch_log/figures/torch_log_values.h"
#include "evidence/torch_log/libraries/torch_log_known_line.h"
#include "evidence/torch_log/libraries/torch_log_library.h"
#include "model/events/device_error.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

LineUse AddCudaError(const LogLine& line, std::string_view subject, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, subject);
  if (!is_new) return LineUse::understood;
  record->subject = Capped(subject, 200);
  record->text = Capped(line.text);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED
// RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
// What a library calls unsupported or a bad parameter is the program's.
LineUse ReadLibraryError(const LogLine& line, std::string_view status, RecordList& out) {
  if (Contains(status.substr(0, 40), "_STATUS_ALLOC_FAILED")) return AddCudaError(line, "out of memory", out);
  for (const std::string_view fault : {"_EXECUTION_FAILED", "_INTERNAL_ERROR", "_MAPPING_ERROR"})
    if (Contains(status.substr(0, 60), fault)) return AddCudaError(line, status, out);
  return LineUse::not_understood;
}

// Tried to allocate 34.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 21.56 MiB is free. Process 4182 has ...
// (GPU 1; 15.78 GiB total capacity; 13.95 GiB already allocated; 22.75 MiB free; ...)
// The allocator counts the memory only where it has not enough.
bool CountsGpuMemory(std::string_view text) {
  return (Contains(text, "has a total capac") && Contains(text, " is free. ") && Contains(text, " memory in use")) ||
         (Contains(text, " total capacity; ") && Contains(text, " already allocated; "));
}

// RuntimeError: CUDA error: an illegal memory access was encountered
// torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of
// which ... Cuda failure 700 'an illegal memory access was encountered'
// Paddle: "Out of memory error on GPU 2. Cannot allocate 1.250000GB memory on GPU 2, 31.430176GB memory has been ..."
LineUse ReadCudaError(const LogLine& line, RecordList& out) {
  // fairseq: "attempting to recover from OOM in forward/backward pass", behind the error that it caught.
  if (ContainsAny(line.text,
                  {"recover from OOM", "ran out of memory, skipping batch", "ran out of memory, retrying batch"})) {
    if (TorchLogRecord* caught = out.Said(TorchLogKind::cuda_error, line, "out of memory")) {
      caught->handled = true;
      out.Forget(TorchLogKind::cuda_error, line, "out of memory");
    }
    return LineUse::understood;
  }
  if (line.has(Keyword::out_of_memory)) {
    for (const std::string_view context :
         {"CUDA out of memory", "HIP out of memory", "NPU out of memory", "XPU out of memory", "OutOfMemoryError",
          "Cuda failure", "CUDA error: out of memory", "CUDA Error: out of memory", "HIP error: out of memory",
          "Triton Error [CUDA]: out of memory", "CUDA driver error: out of memory", "CUDA runtime error in ",
          "cudaErrorMemoryAllocation", "cudaMalloc failed: out of memory", "Out of memory error on "})
      if (Contains(line.text, context)) return AddCudaError(line, "out of memory", out);
    if (CountsGpuMemory(line.text)) return AddCudaError(line, "out of memory", out);
  }
  // RuntimeError: cuda runtime error (39) : uncorrectable ECC error encountered at
  // /pytorch/aten/src/THC/THCGeneral.cpp:265
  if (auto old = After(line.text, "cuda runtime error ("))
    if (const auto reason = After(*old, ") : ")) {
      const std::string_view words = Trim(reason->substr(0, reason->find(" at /")));
      if (words.starts_with("out of memory")) return AddCudaError(line, "out of memory", out);
      return IsOfTheDevice(words) ? AddCudaError(line, words, out) : LineUse::understood;
    }
  // RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST): SYCL, of Intel's GPUs
  if (Contains(line.text, "UR_RESULT_ERROR_DEVICE_LOST")) return AddCudaError(line, "device lost", out);
  if (const auto status = After(line.text, "cuDNN error: ")) return ReadLibraryError(line, Trim(*status), out);
  if (const auto status = After(line.text, "CUDA error: CUBLAS"); status && status->starts_with("_STATUS_ALLOC_FAILED"))
    return ReadLibraryError(line, *status, out);
  for (const std::string_view context : {"CUDA error:", "HIP error: ", "Triton Error [CUDA]: ", "CUDA driver error: "})
    if (const auto reason = After(line.text, context)) {
      // An exception that carries it does the telling.
      const bool tells_itself = Trim(line.text).starts_with("what():") && !line.has(Keyword::gpu_path);
      if (!IsOfTheDevice(Trim(*reason)) && !tells_itself) return LineUse::understood;
      return AddCudaError(line, Trim(*reason), out);
    }
  if (const auto reason = After(line.text, "Cuda failure ")) {
    const auto quoted = After(*reason, "'");
    const std::string_view words = quoted ? quoted->substr(0, quoted->find('\'')) : *reason;
    if (IsOfTheDevice(words) && words != "unknown error") return AddCudaError(line, words, out);
    // A call of NCCL's own that the driver refuses: neither the program's fault nor the device's.
    const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, words);
    if (!is_new) return LineUse::understood;
    record->subject = "cuda-failure";
    record->object = Capped(words, 200);
    record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
    record->text = Capped(line.text);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// /pytorch/aten/src/ATen/native/cuda/Indexing.cu:1308: indexSelectLargeIndex: block: [3,0,0], thread: [64,0,0]
// Assertion `srcIndex < srcSelectDimSize` failed. Every thread of the kernel prints it: the place and the assertion
// count, not who.
//   .../native/hip/Indexing.hip:1292: indexSelectLargeIndex: Device-side assertion `srcIndex < srcSelectDimSize'
//   failed.
LineUse ReadDeviceAssert(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const size_t block = text.find(": block: ["), thread = text.find(" thread: ["), tick = text.find("] Assertion `");
  const size_t hip = text.find(": Device-side assertion `");
  const bool cuda = block != std::string_view::npos && thread != std::string_view::npos;
  if (hip == std::string_view::npos && (!cuda || tick == std::string_view::npos)) return LineUse::not_understood;
  const std::string_view place = text.substr(0, hip == std::string_view::npos ? block : hip);
  const size_t open = text.find('`', hip == std::string_view::npos ? tick : hip);
  const size_t close = text.find(hip == std::string_view::npos ? '`' : '\'', open + 1);
  const std::string assertion =
      "Assertion `" + Capped(text.substr(open + 1, close == std::string_view::npos ? close : close - open - 1), 150) +
      '`';
  const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, assertion);
  if (!is_new) return LineUse::understood;
  const size_t slash = place.substr(0, place.find(':')).rfind('/');
  record->subject = "device-side assert triggered";
  record->object = Capped(place.substr(slash == std::string_view::npos ? 0 : slash + 1), 160) + ": " + assertion;
  record->text = Capped(text, 600);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error
// indicates ... Parameter indices which did not receive grad for rank 0: 8 9 Parameters which did not receive grad for
// rank 0: head.weight, head.bias
LineUse ReadUnusedParameters(const LogLine& line, FailureState& state, RecordList& out) {
  if (line.has(Keyword::prior_iteration)) {
    state.ddp = &out.Add(TorchLogKind::ddp_unused_parameters, line);
    state.ddp->text = Capped(line.text);
  }
  const auto list = After(line.text, "did not receive grad for rank ");
  if (!list) return LineUse::understood;
  if (state.ddp == nullptr || state.ddp->kind != TorchLogKind::ddp_unused_parameters) {
    state.ddp = &out.Add(TorchLogKind::ddp_unused_parameters, line);
    state.ddp->text = Capped(line.text);
  }
  std::string_view rest = *list;
  TakeNumber(rest, &state.ddp->rank);
  TakeLiteral(rest, ":");
  // With debugging on both forms are printed; names tell more than indices.
  if (state.ddp->subject.empty()) {
    state.ddp->subject = Capped(Trim(rest), 1000);
    if (line.source.line != state.ddp->source.line) state.ddp->reason_line = line.source.line;
  }
  return LineUse::understood;
}

// RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1)
// ... Parameter at index 695 with name base.layers.35.down_proj.weight has been marked as ready twice. This means that
// ...
LineUse ReadMarkedTwice(const LogLine& line, FailureState& state, RecordList& out) {
  const bool begins = line.has(Keyword::ready_once);
  if (begins || state.ddp == nullptr || state.ddp->kind != TorchLogKind::ddp_marked_twice) {
    state.ddp = &out.Add(TorchLogKind::ddp_marked_twice, line);
    state.ddp->text = Capped(line.text);
  }
  const auto place = After(line.text, "Parameter at index ");
  if (!place) return LineUse::understood;
  const std::string_view parameter = place->substr(0, place->find(" has been marked"));
  const auto name = After(parameter, "with name ");
  state.ddp->subject = Capped(Trim(name ? *name : parameter), 500);
  if (line.source.line != state.ddp->source.line) state.ddp->reason_line = line.source.line;
  return LineUse::understood;
}

void TakeRankList(std::string_view text, std::vector<int32_t>& ranks) {
  int32_t rank = 0;
  while (ranks.size() < 100'000 && TakeNumber(text, &rank)) {
    ranks.push_back(rank);
    if (!TakeLiteral(text, ",")) return;
    SkipBlanks(text);
  }
}

//  Original exception:
// [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to ...
// All but rank 0 say the first sentence whatever happened; only gloo's words below tell whether rank 0 is gone or did
// not answer in time. In time it answers when all others have come, so who is late need not be rank 0.
LineUse ReadBarriersError(const LogLine& line, FailureState& state) {
  constexpr uint32_t kLongestMessage = 4;
  if (line.voice != state.barrier_voice && line.tagged) return LineUse::not_understood;
  TorchLogRecord* barrier = state.barrier;
  if (line.source.line - barrier->source.line > kLongestMessage)
    return state.barrier = nullptr, LineUse::not_understood;
  const auto waited = After(line.text, "Timed out waiting ");
  if (!waited || !Contains(line.text, "gloo")) return LineUse::not_understood;
  state.barrier = nullptr;
  std::string_view rest = *waited;
  int64_t limit_ms = 0;
  if (TakeNumber(rest, &limit_ms) && rest.starts_with("ms")) barrier->value = limit_ms;
  barrier->peer = -1;
  return LineUse::understood;
}

// [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 30000 ms
// Rank 0 timed out in monitoredBarrier after 30000 ms.
// Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please
// check ...
LineUse ReadMonitoredBarrier(const LogLine& line, FailureState& state, RecordList& out) {
  const bool failed = Contains(line.text, "failed to pass monitoredBarrier");
  const bool timed_out = Contains(line.text, "timed out in monitoredBarrier");
  const bool errors = Contains(line.text, "reached monitoredBarrier, but received errors");
  if (!failed && !timed_out && !errors) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::monitored_barrier_failed, line, line.text);
  if (!is_new) return LineUse::understood;
  record->text = Capped(line.text);
  if (failed) {
    const size_t end = line.text.find(" failed to pass");
    for (const std::string_view key : {"Ranks ", "Rank "}) {
      const size_t at = line.text.rfind(key, end);
      if (at == std::string_view::npos || !record->ranks.empty()) continue;
      TakeRankList(line.text.substr(at + key.size()), record->ranks);
      record->value2 = key == "Ranks " ? 1 : 0;  // wait_all_ranks=True
    }
    record->value = IntAfter(line.text, "monitoredBarrier in ").value_or(-1);
  }
  if (timed_out) record->value = IntAfter(line.text, "monitoredBarrier after ").value_or(-1);
  if (errors) record->peer = IntAfter<int32_t>(line.text, "from rank ").value_or(-1);
  if (const size_t at = line.text.find("Rank "); errors && at < line.text.find(" successfully reached"))
    record->rank = IntAfter<int32_t>(line.text, "Rank ").value_or(-1);
  if (errors) {
    state.barrier = record;
    state.barrier_voice = line.voice;
    ReadBarriersError(line, state);  // logs as JSON have it all in one line
  }
  return LineUse::understood;
}

LineUse AddAbort(const LogLine& line, std::string_view subject, int32_t peer, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::abort_signal, line, subject);
  if (!is_new) return LineUse::understood;
  record->subject = Capped(subject, 200);
  record->peer = peer;
  record->text = Capped(line.text);
  return LineUse::understood;
}

constexpr std::string_view kEndedByWatchdog = "the watchdog ends the process";

// terminate called after throwing an instance of 'c10::DistBackendError'
// Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, ...
// To avoid data inconsistency, we are taking the entire process down.
// Found key in store: NCCLABORTEDCOMM:... from rank: 3. This means that rank has aborted its NCCL communicators
// previously ...
//  remote error detected from rank: 3
LineUse ReadAbort(const LogLine& line, FailureState& state, RecordList& out) {
  if (line.has(Keyword::terminate_called)) {
    const auto type = After(line.text, "instance of '");
    state.thrown = type ? Capped(type->substr(0, type->find('\'')), 160) : "";
    return AddAbort(line, type ? type->substr(0, type->find('\'')) : "terminate", -1, out);
  }
  const int32_t peer = IntAfter<int32_t>(line.text, "from rank: ").value_or(-1);
  if (line.has(Keyword::aborted_comm)) return AddAbort(line, "a peer aborted its communicators", peer, out);
  if (line.has(Keyword::remote_error)) return AddAbort(line, "remote error", peer, out);
  const LineUse use = AddAbort(line, kEndedByWatchdog, -1, out);
  // The lines that name the operation may be missing.
  if (TorchLogRecord* ended = out.Said(TorchLogKind::abort_signal, line, kEndedByWatchdog);
      ended && Contains(line.text, "NCCL operations have failed or timed out"))
    ended->object = "an NCCL operation failed or timed out, and its watchdog ended the process";
  return use;
}

//   what():  could not open file model.bin
// The error itself, below "terminate called". What PyTorch's watchdog throws only says that somebody else failed.
LineUse ReadThrown(const LogLine& line, FailureState& state, RecordList& out) {
  std::string_view words = Trim(line.text);
  if (!TakeLiteral(words, "what():")) return LineUse::not_understood;
  const std::string type = std::move(state.thrown);
  state.thrown.clear();
  if (type.starts_with("c10::Dist") || line.has(Keyword::work)) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, type);
  if (!is_new) return LineUse::understood;
  record->subject = type;
  record->text = Capped(Trim(words), 600);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// "St13runtime_error" -> "std::runtime_error"; of "N5boost10wrapexceptINS_6system12system_errorEEE" the innermost name
std::string NameOfMangled(std::string_view mangled) {
  const bool standard = mangled.starts_with("St");
  std::string_view name;
  for (std::string_view rest = mangled; !rest.empty();) {
    size_t length = 0;
    if (IsDigit(rest[0]) && TakeNumber(rest, &length) && length > 0 && length <= rest.size())
      name = rest.substr(0, length), rest.remove_prefix(length);
    else
      rest.remove_prefix(1);
  }
  return name.empty() ? std::string(mangled.substr(0, 160)) : (standard ? "std::" : "") + std::string(name);
}

// [2025-03-04 19:28:30,014 E 27497 27497] logging.cc:113: Unhandled exception: St13runtime_error. what(): ...
// What ends a worker of Ray in its C++ part. What PyTorch's watchdog throws only says that somebody else failed.
LineUse ReadUnhandled(const LogLine& line, RecordList& out) {
  const auto thrown = After(line.text, "Unhandled exception: ");
  const size_t end = thrown ? thrown->find(". what(): ") : std::string_view::npos;
  if (end == std::string_view::npos || !Contains(line.text, "logging.cc:")) return LineUse::not_understood;
  std::string_view words = Trim(thrown->substr(end + 10));
  words = Trim(words.substr(0, words.find(" [repeated ")));
  if (line.has(Keyword::work) || Contains(words, "NCCL watchdog")) return LineUse::not_understood;
  const std::string type = NameOfMangled(thrown->substr(0, end));
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, type + std::string(words));
  if (!is_new) return LineUse::understood;
  record->subject = type;
  record->text = Capped(words, 600);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// Fatal Python error: Segmentation fault
LineUse ReadFatalPython(const LogLine& line, RecordList& out) {
  const std::string_view reason = Trim(After(line.text, "Fatal Python error:").value_or(""));
  const int signal = reason == "Segmentation fault"         ? 11
                     : reason == "Bus error"                ? 7
                     : reason == "Floating point exception" ? 8
                                                            : 0;
  if (signal == 0) return AddAbort(line, reason, -1, out);
  TorchLogRecord& record = out.Add(TorchLogKind::process_exited, line);
  record.value = -signal;
  record.subject = signal == 11 ? "SIGSEGV" : signal == 7 ? "SIGBUS" : "SIGFPE";
  record.text = Capped(line.text);
  return LineUse::understood;
}

// *** SIGSEGV (@0x0) received by PID 26955 (TID 0x7f3b...) from PID 0; stack trace: ***
// *** SIGABRT received at time=1720159248 on cpu 5 ***
LineUse ReadFatalSignal(const LogLine& line, RecordList& out) {
  const auto name = After(line.text, "*** SIG");
  if (!name || !ContainsAny(line.text, {"received by PID ", " received at time="})) return LineUse::not_understood;
  const std::string_view word = name->substr(0, name->find(' '));
  const int64_t signal = SignalNumber("SIG" + std::string(word));
  if (signal <= 0) return LineUse::not_understood;
  if (signal == 6 || signal == 15) {
    const LineUse use = AddAbort(line, "SIG" + std::string(word), -1, out);
    // Nobody sends it to himself: it is how a process is asked to end.
    if (TorchLogRecord* ended = out.Said(TorchLogKind::abort_signal, line, "SIGTERM"); ended && signal == 15)
      ended->object = "a process was ended from outside with SIGTERM";
    return use;
  }
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, word);
  if (!is_new) return LineUse::understood;
  record->value = -signal;
  record->subject = "SIG" + std::string(word);
  record->pid = IntAfter(line.text, "received by PID ").value_or(-1);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// (EngineCore_DP1 pid=1455) INFO 05-28 14:44:28 [shm_broadcast.py:681] No available shared memory broadcast block found
// in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work ...
// vLLM's engine waits for its workers. Once is common while they compile; again and again nobody takes anything.
LineUse ReadIdleEngine(const LogLine& line, FailureState& state, RecordList& out) {
  if (++state.idle_engine < 2) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::heartbeat_stuck, line, "engine");
  if (!is_new) return LineUse::understood;
  record->subject = "take no work";
  record->object = "engine";
  record->value = IntAfter(line.text, "block found in ").value_or(-1);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// Loss is nan, stopping training
// The program's own reason to end, printed before sys.exit().
LineUse ReadStatedStop(const LogLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"stopping training", "Stopping training", "stop training", "stopping the training",
                               "aborting training", "Aborting training"}) ||
      !FindNotFinite(line.text))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "stop");
  if (!is_new) return LineUse::understood;
  record->subject = "a loss that is not finite";
  record->text = Capped(Trim(line.text), 300);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.update_actor() (pid=118848, ip=10.130.71.7, ...
// Whose traceback follows.
void ReadRayTask(const LogLine& line, FailureState& state) {
  const auto told = After(line.text, "(pid=");
  if (!told) return;
  std::string_view rest = *told;
  int64_t pid = -1;
  if (!TakeNumber(rest, &pid) || pid <= 0 || !TakeLiteral(rest, ", ip=")) return;
  state.ray_pid = pid;
  state.ray_host = Capped(rest.substr(0, rest.find_first_of(",) ")), 100);
  state.ray_line = line.source.line;
}

// GPU 0 is the only one that a worker of Ray's sees: its process and its host tell more.
void NameRayTask(const LogLine& line, const FailureState& state, RecordList& out) {
  constexpr uint32_t kLongestTraceback = 120;
  if (state.ray_pid < 0 || line.source.line - state.ray_line > kLongestTraceback) return;
  TorchLogRecord* record = out.Said(TorchLogKind::cuda_error, line, "out of memory");
  if (record == nullptr || record->source.line != line.source.line) return;
  record->pid = state.ray_pid;
  record->host = state.ray_host;
}

}  // namespace

LineUse ReadErrorText(const LogLine& line, FailureState& state, RecordList& out) {
  LineUse use = ReadNcclErrorText(line, state, out);
  if (TorchLogRecord* failed = std::exchange(state.condition, nullptr);
      failed != nullptr && line.severity == 0 && !line.dated && !line.keywords.any()) {
    failed->object = Capped(Trim(line.text), 300);
    return LineUse::understood;
  }
  if (line.text.starts_with("ray.exceptions.RayTaskError(") || line.text.starts_with("ray::")) ReadRayTask(line, state);
  if (state.barrier != nullptr && ReadBarriersError(line, state) == LineUse::understood) return LineUse::understood;
  if (!line.keywords.any()) {
    if (!state.thrown.empty() && use == LineUse::not_understood) use = ReadThrown(line, state, out);
    return use;
  }
  const auto keep = [&use](LineUse next) { use = std::max(use, next); };
  if (line.has(Keyword::cuda_error) || line.has(Keyword::out_of_memory) || line.has(Keyword::cuda_failure))
    keep(ReadCudaError(line, out)), NameRayTask(line, state, out);
  if (line.has(Keyword::device_assert)) keep(ReadDeviceAssert(line, out));
  if (line.has(Keyword::mismatch)) keep(ReadMismatch(line, out));
  if (line.has(Keyword::prior_iteration) || line.has(Keyword::no_grad)) keep(ReadUnusedParameters(line, state, out));
  if (line.has(Keyword::ready_once) || line.has(Keyword::ready_twice)) keep(ReadMarkedTwice(line, state, out));
  if (line.has(Keyword::monitored_barrier)) keep(ReadMonitoredBarrier(line, state, out));
  if (line.has(Keyword::terminate_called) || line.has(Keyword::taken_down) || line.has(Keyword::aborted_comm) ||
      line.has(Keyword::remote_error))
    keep(ReadAbort(line, state, out));
  if (line.has(Keyword::unhandled)) keep(ReadUnhandled(line, out));
  if (line.has(Keyword::fatal_python)) keep(ReadFatalPython(line, out));
  if (line.has(Keyword::fatal_signal)) keep(ReadFatalSignal(line, out));
  if (line.has(Keyword::idle_engine)) keep(ReadIdleEngine(line, state, out));
  if (line.has(Keyword::missing_symbol)) keep(ReadMissingSymbol(line, out));
  if (line.has(Keyword::setup_words) && FindBareError(line.text).empty()) keep(ReadSetupWords(line, out));
  const LineUse told = line.has(Keyword::library_line) ? ReadLibraryLine(line, out) : LineUse::not_understood;
  keep(told);
  if ((line.has(Keyword::known_line) || line.has(Keyword::known_error)) && told == LineUse::not_understood)
    keep(ReadKnownLine(line, out));
  if (line.has(Keyword::other_library) && told == LineUse::not_understood) {
    keep(ReadHealthLine(line, out));
    LineUse ascend = ReadAscendSetup(line, state.ascend, out);
    if (ascend != LineUse::understood) ascend = ReadAscend(line, state.ascend, out);
    if (ascend != LineUse::understood) ascend = ReadAscendAdvice(line, state.ascend, out);
    keep(ascend == LineUse::understood ? ascend : ReadOtherLibrary(line, out));
    // Behind an earlier error it only says who could not go on without what is missing.
    TorchLogRecord* failed = out.Said(TorchLogKind::nccl_error, line, "other library");
    if (Contains(line.text, "|CCL_ERROR|") && Trim(line.text).ends_with(" failed") && failed && failed->repeats == 1)
      state.condition = failed;
  }
  if (line.has(Keyword::not_finite)) keep(ReadStatedStop(line, out));
  if (line.has(Keyword::kernel_kill)) keep(ReadMemoryKill(line, out));
  if (told == LineUse::not_understood) {
    keep(ReadToldCause(line, out));
    keep(ReadStoreText(line, state, out));
  }
  if (!state.thrown.empty() && !line.has(Keyword::terminate_called) && use == LineUse::not_understood)
    keep(ReadThrown(line, state, out));
  return use;
}

}  // namespace tacet
