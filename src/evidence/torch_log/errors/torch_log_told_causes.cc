// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_told_causes.h"

#include <algorithm>
#include <initializer_list>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/waits/torch_log_pending.h"
#include "model/events/nccl_warnings.h"

namespace tacet {

void TakeUcxOwner(std::string_view text, TorchLogRecord& record) {
  if (!TakeLiteral(text, "[")) return;
  const size_t colon = text.substr(0, 100).find(':');
  if (colon == std::string_view::npos || colon == 0 || text.substr(0, colon).find(' ') != std::string_view::npos)
    return;
  // [btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] is a place in the library's source.
  if (text.substr(0, colon).ends_with(".c") || text.substr(0, colon).ends_with(".cc")) return;
  std::string_view rest = text.substr(colon + 1);
  int64_t pid = -1;
  if (!TakeNumber(rest, &pid) || pid <= 0) return;
  SkipBlanks(rest);
  if (!rest.starts_with(':') && !rest.starts_with(']')) return;
  record.host = std::string(text.substr(0, colon));
  record.pid = pid;
}

namespace {

// The record, or null where the same voice has said the same before.
TorchLogRecord* AddTold(TorchLogKind kind, const LogLine& line, std::string_view key, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(kind, line, key);
  if (!is_new) return nullptr;
  record->text = Capped(line.text);
  record->value2 = out.highest_step();
  return record;
}

// The first path between quotes: "No space left on device: '/scratch/ckpt/step_400.pt'", "cp: error writing '/a/b'".
std::string_view QuotedPath(std::string_view text) {
  for (const char quote : {'\'', '"', '`'}) {
    for (size_t open = text.find(quote); open != std::string_view::npos; open = text.find(quote, open + 1)) {
      const size_t close = text.find(quote, open + 1);
      if (close == std::string_view::npos) break;
      const std::string_view path = text.substr(open + 1, close - open - 1);
      if (path.starts_with('/') && path.find(' ') == std::string_view::npos) return path;
    }
  }
  return {};
}

// RuntimeError: DataLoader worker (pid 4211) is killed by signal: Bus error. It is possible that dataloader's workers
// are out of shared memory. Please try to raise your shared memory limit.
// ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).
// RuntimeError: unable to write to file </torch_28_3451>: No space left on device (28)
// RuntimeError: unable to open shared memory object </torch_7_9> in read-write mode: Cannot allocate memory (12)
// Too many open files (24) in the same place is another limit, and Triton's "shared memory" is the GPU's.
bool TellsFullSharedMemory(std::string_view text) {
  if (ContainsAny(
          text, {"killed by signal: Bus error", "workers are out of shared memory", "insufficient shared memory (shm)",
                 "not enough space in /dev/shm", "nexpected bus error encountered in worker"}))
    return true;
  if (const auto segment = After(text, "Error while creating shared memory segment /dev/shm/nccl-"))
    return Contains(*segment, "No space left");
  // A sentence may tell both: "No space left on device, because no shared memory is mounted".
  const bool space = ContainsAny(text, {"No space left on device", "no space left on device"});
  const bool place = ContainsAny(text, {"</torch_", "shared memory object", "shared memory(shm)", "/dev/shm"}) ||
                     (space && ContainsAny(text, {"shared memory", "Shared memory", "shared-memory"}));
  return place && ContainsAny(text, {"No space left on device", "no space left on device", "Cannot allocate memory"});
}

// The worker got SIGBUS, and PyTorch names what mostly leads to it.
bool GuessesSharedMemory(std::string_view text) {
  return ContainsAny(text, {"killed by signal: Bus error", "It is possible that", "might be caused by"});
}

// "could not write /ckpt/final.pt: quota exceeded": a path without quotes.
std::string_view WrittenPath(std::string_view text) {
  for (const std::string_view verb : {"write ", "writing ", "write to ", "writing to ", "save ", "saving ", "save to "})
    if (const auto rest = After(text, verb); rest && rest->starts_with('/'))
      return rest->substr(0, rest->find_first_of(" :,;)"));
  return {};
}

// A program's own words for a quota that is used up; that of a service is one of requests.
bool IsQuotaOfFiles(std::string_view text) {
  if (Contains(text, "Disk quota exceeded")) return true;
  return ContainsAny(text, {"quota exceeded", "Quota exceeded"}) && !WrittenPath(text).empty();
}

// OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_400.pt'
// OSError: [Errno 122] Disk quota exceeded
// 2026-02-11 09:14:55,040 loop ERROR: could not write /ckpt/final.pt: quota exceeded
// RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 640 vs 534
// RuntimeError: PytorchStreamWriter failed writing file data/17: file write failed
// safetensors_rust.SafetensorError: ... IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })
LineUse ReadFullDisk(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool space = ContainsAny(text, {"No space left on device", "no space left on device"});
  const bool quota = IsQuotaOfFiles(text);
  const bool writer = Contains(text, "PytorchStreamWriter failed writing") ||
                      (Contains(text, "inline_container.cc") && Contains(text, "unexpected pos"));
  if (!space && !quota && !writer) return LineUse::not_understood;
  // libfabric:9001:1719999300::cxi:core:...: cxil_alloc_evtq failed: -28:No space left on device
  // ibv_create_cq() failed: No space left on device: of an adapter's resources, not of a disk.
  if (space && (ContainsAny(text, {"libfabric:", "cxil_", "ibv_", "devx_obj_create"}))) return LineUse::not_understood;
  std::string_view path = QuotedPath(text);
  if (path.empty()) path = WrittenPath(text);
  // A writer that only notices a file of the wrong length, and then the error of the file system itself.
  TorchLogRecord* told = writer ? nullptr : out.Said(TorchLogKind::disk_full, line, "");
  if (told && told->value < 0) {
    told->source = line.source;
    told->text = Capped(text);
    told->object = Capped(path, 500);
    told->value = quota ? 1 : 0;
    return LineUse::understood;
  }
  if (TorchLogRecord* record = AddTold(TorchLogKind::disk_full, line, path, out)) {
    record->object = Capped(path, 500);
    record->value = quota ? 1 : space ? 0 : -1;
  }
  return LineUse::understood;
}

// "[::]:29500 (errno: 98 - Address already in use)", "port: 29500, ", "('0.0.0.0', 29500)", "tcp://10.0.0.1:29500"
int64_t FindPort(std::string_view text) {
  if (const auto port = IntAfter(text, "port: ")) return *port;
  if (const size_t end = text.find(" (errno"); end != std::string_view::npos) {
    const size_t colon = text.rfind(':', end);
    std::string_view digits = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    int64_t port = -1;
    if (TakeNumber(digits, &port) && digits.starts_with(" (errno")) return port;
  }
  if (const auto pair = After(text, "bind on address ('")) return IntAfter(*pair, "', ").value_or(-1);
  for (std::string_view rest = text; !rest.empty();) {  // an address with a port, anywhere
    std::string_view word = TakeWord(rest);
    if (word.empty()) break;
    while (!word.empty() && (word.back() == '.' || word.back() == ',' || word.back() == ':' || word.back() == ')'))
      word.remove_suffix(1);
    const size_t colon = word.rfind(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    std::string_view digits = word.substr(colon + 1);
    int64_t port = -1;
    if (TakeNumber(digits, &port) && digits.empty() && port >= 1024 && port < 65536) return port;
  }
  return -1;
}

LineUse ReadPortTaken(const LogLine& line, RecordList& out) {
  // NCCL's monitor, whose line lost its beginning: "ras/client_support.cc:160 NCCL WARN Call to bind failed: ..."
  if (Contains(line.text, "ras/") && Contains(line.text, "NCCL WARN")) return LineUse::ignored;
  const int64_t port = FindPort(line.text);
  if (TorchLogRecord* record = AddTold(TorchLogKind::port_in_use, line, std::to_string(port), out))
    record->value = port > 0 && port < 65536 ? port : -1;
  return LineUse::understood;
}

// RuntimeError: [1]: params[0] in this process with sizes [10, 5] appears not to match sizes of the same param in
// process 0.
// RuntimeError: DDP expects same model across all ranks, but Rank 0 has 10 params, while rank 1 has inconsistent 8
// params.
LineUse ReadModelCheck(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  TorchLogRecord* record = nullptr;
  if (const auto counts = After(text, "expects same model across all ranks, but Rank ")) {
    record = AddTold(TorchLogKind::model_mismatch, line, *counts, out);
    if (record == nullptr) return LineUse::understood;
    record->group_rank = IntAfter<int32_t>(text, "but Rank ").value_or(-1);
    record->peer_group_rank = IntAfter<int32_t>(text, "while rank ").value_or(-1);
    record->subject = "the number of parameters";
    if (const auto own = IntAfter(*counts, " has "))
      if (const auto other = IntAfter(*counts, "has inconsistent "))
        record->object = std::to_string(*own) + " against " + std::to_string(*other), record->count = *own,
        record->count_out = *other;
    return LineUse::understood;
  }
  const size_t params = text.find("]: params[");
  const auto index = IntAfter(text, "]: params[");
  if (!index || params == std::string_view::npos) return LineUse::not_understood;
  record = AddTold(TorchLogKind::model_mismatch, line, text.substr(params), out);
  if (record == nullptr) return LineUse::understood;
  record->value = *index;
  const size_t open = text.rfind('[', params);
  if (open != std::string_view::npos) record->group_rank = IntAfter<int32_t>(text.substr(open), "[").value_or(-1);
  record->peer_group_rank = IntAfter<int32_t>(text, "same param in process ").value_or(-1);
  const bool strides = Contains(text, " with strides ");
  record->subject = strides ? "the strides" : "the shape";
  if (const auto shape = After(text, strides ? " with strides " : " with sizes "))
    record->object = Capped(shape->substr(0, shape->find(']') + 1), 100);
  return LineUse::understood;
}

// RuntimeError: CUDA error: peer access is not supported between these two devices
// RuntimeError: CUDA error: system not yet initialized
// UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). ... Error 802: system not yet
// initialized (Triggered internally at ...)
// fabric manager NVIDIA GPU driver interface version 535.104.05 don't match with driver version 535.129.03
LineUse ReadGpuPath(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do
  // [NV_WARN_NOTHING_TO_DO]: the host has no NVSwitch.
  if (Contains(text, "NVSwitch") && Contains(text, "NV_WARN_NOTHING_TO_DO")) {
    if (TorchLogRecord* record = AddTold(TorchLogKind::fabric_down, line, "no switch", out))
      record->subject = kNoSwitch;
    return LineUse::understood;
  }
  for (const std::string_view word :
       {"fabric manager found but not active", "abric manager is not running", "Fabric Manager is not running"})
    if (Contains(text, word) && !ContainsAny(text, {"?", "if ", "If ", "whether ", "when ", "When "})) {
      if (TorchLogRecord* record = AddTold(TorchLogKind::fabric_down, line, "stopped", out))
        record->subject = kFabricManagerStopped;
      return LineUse::understood;
    }
  for (const std::string_view word : {"system not yet initialized", "GPU driver interface version"})
    if (Contains(text, word)) {
      if (TorchLogRecord* record = AddTold(TorchLogKind::fabric_down, line, word, out)) record->subject = word;
      return LineUse::understood;
    }
  // UserWarning: CUDA initialization: ... Error 803: system has unsupported display driver / cuda driver combination
  // The program goes on without GPUs, if it can: a warning is all that it prints.
  if (const auto reason = After(text, "UserWarning: CUDA initialization: ")) {
    if (TorchLogRecord* record = AddTold(TorchLogKind::exception, line, "CUDA initialization", out)) {
      record->subject = "a CUDA warning";
      const auto error = After(*reason, "already set an error? ");
      const std::string_view words = error.value_or(*reason);
      record->text = Capped(Trim(words.substr(0, words.find(" (Triggered internally"))), 300);
      record->value2 = out.highest_step();
    }
    return LineUse::understood;
  }
  // DeepEP writes the reason below the error, by itself and in quotes.
  if (Trim(text) == "'peer access is not supported between these two devices'") {
    if (TorchLogRecord* record = AddTold(TorchLogKind::peer_access_failed, line, "", out))
      record->subject = "peer access is not supported between these two devices";
    return LineUse::understood;
  }
  // Whole sentences of CUDA are its own, whatever library prints them: "[TensorRT-LLM][ERROR] Encountered an error:
  // peer access is not supported between these two devices".
  const bool of_cuda = ContainsAny(text, {"CUDA", "Cuda", "cuda", "HIP", "hip"});
  for (const std::string_view word :
       {"peer access is not supported between these two devices", "peer mapping resources exhausted",
        "peer access has not been enabled", "cudaIpcOpenMemHandle"})
    if (Contains(text, word) && (of_cuda || word.find(' ') != std::string_view::npos) &&
        ContainsAny(text, {"rror", "ailure", "ailed", "ERROR", "FATAL", "xception", "RuntimeError"}) &&
        !ContainsAny(text, {"?", " if ", "If ", "without"})) {
      if (TorchLogRecord* record = AddTold(TorchLogKind::peer_access_failed, line, word, out)) record->subject = word;
      return LineUse::understood;
    }
  return LineUse::not_understood;
}

// In bytes: "RLIMIT_MEMLOCK is 65536 bytes", "(current: 64 kbytes)"; -1 where the line does not tell it.
int64_t LockedMemoryLimit(std::string_view text) {
  auto rest = After(text, "RLIMIT_MEMLOCK is ");
  if (!rest) rest = After(text, "(current: ");
  int64_t limit = -1;
  if (!rest || !TakeNumber(*rest, &limit) || limit < 0 || limit > (int64_t{1} << 50)) return -1;
  return Trim(*rest).starts_with("kbytes") ? limit * 1024 : limit;
}

// max locked memory       (kbytes, -l) 64             a row of ulimit -a, which is in KiB
// max locked memory           (kbytes, -l) unlimited
LineUse ReadLimitRow(const LogLine& line, RecordList& out) {
  auto rest = After(line.text, "max locked memory");
  if (rest) rest = After(*rest, "(kbytes, -l)");
  if (!rest) return LineUse::not_understood;
  std::string_view value = Trim(*rest);
  constexpr int64_t kEnough = int64_t{1} << 20;  // 1 GiB suffices
  int64_t kib = 0;
  if (!TakeNumber(value, &kib) || kib <= 0 || kib > kEnough) return LineUse::understood;
  if (TorchLogRecord* record = AddTold(TorchLogKind::rdma_failed, line, "limit", out)) {
    record->value = static_cast<int64_t>(RdmaFault::locked_memory);
    record->count = kib * 1024;
    record->subject = "limit";
  }
  return LineUse::understood;
}

// libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.
// ucx ... ibv_reg_mr(address=0x7f..., length=4096, access=0xf) failed: Cannot allocate memory : Please set max locked
// memory (ulimit -l) to 'unlimited'
LineUse ReadRdmaPath(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const LineUse use = ReadLimitRow(line, out); use != LineUse::not_understood) return use;
  RdmaFault fault = RdmaFault::unknown;
  // UCX goes on without the adapter, or with less of it.
  const bool limit =
      Contains(text, "RLIMIT_MEMLOCK is ") || (Contains(text, "UCX ") && Contains(text, "max locked memory"));
  // perftest: "Couldn't allocate MR", and below it "ERRNO: Bad address.", which is of the GPU's memory.
  const bool perftest = Contains(text, "Couldn't allocate MR");
  if (Contains(text, "ERRNO: Bad address")) {
    TorchLogRecord* before = out.Said(TorchLogKind::rdma_failed, line, "failed");
    if (before == nullptr) return LineUse::not_understood;
    if (before->value == static_cast<int64_t>(RdmaFault::unknown))
      before->value = static_cast<int64_t>(RdmaFault::gpu_memory);
    return LineUse::understood;
  }
  if (!limit && !perftest &&
      !((Contains(text, "ibv_reg_") || Contains(text, "ibv_create_")) &&
        ContainsAny(text, {"failed", "Failed", "error"})))
    return LineUse::not_understood;
  // UCX  ERROR ibv_create_ah(dlid=0 ... dgid=::ffff:10.1.0.9) for UD mlx5 connect on mlx5_1 failed: Connection timed
  // out: a peer's address, which is no matter of memory.
  if (!limit && Contains(text, "ibv_create_ah")) return LineUse::not_understood;
  if (Contains(text, "ibv_create_")) fault = RdmaFault::queues;
  if (limit || Contains(text, "Cannot allocate memory")) fault = RdmaFault::locked_memory;
  if (Contains(text, "Bad address")) fault = RdmaFault::gpu_memory;
  // UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory ...
  // No warning: this adapter is lost for the process, which may go on over another one.
  const bool refused = limit && Contains(text, "UCX  ERROR") && ContainsAny(text, {"ibv_create_", "ibv_reg_"});
  const std::string_view subject = refused ? "refused" : limit ? "limit" : "";
  if (TorchLogRecord* record = AddTold(TorchLogKind::rdma_failed, line, subject.empty() ? "failed" : subject, out)) {
    record->value = static_cast<int64_t>(fault);
    record->subject = subject;
    if (limit) record->count = LockedMemoryLimit(text);
    TakeUcxOwner(text, *record);
  }
  if (refused && LockedMemoryLimit(text) >= 0)
    if (TorchLogRecord* record = AddTold(TorchLogKind::rdma_failed, line, "limit", out)) {
      record->value = static_cast<int64_t>(fault);
      record->count = LockedMemoryLimit(text);
      record->subject = "limit";
      TakeUcxOwner(text, *record);
    }
  return LineUse::understood;
}

// [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:22780: Connection refused
// ... timed out connecting: SO_ERROR: Connection refused, remote=[127.0.1.1]:44519
LineUse ReadRefusedConnection(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // perftest's client: "Couldn't connect to 10.0.3.4:18515"
  if (auto server = After(text, "Couldn't connect to ")) {
    const std::string_view word = TakeWord(*server);
    const size_t colon = word.rfind(':');
    std::string_view port = word.substr(std::min(colon, word.size()));
    int64_t number = 0;
    if (!TakeLiteral(port, ":") || !TakeNumber(port, &number) || !port.empty() || colon < 3)
      return LineUse::not_understood;
    if (TorchLogRecord* record = AddTold(TorchLogKind::connect_failed, line, word, out)) {
      record->object = Capped(word.substr(0, colon), 200);
      record->subject = "no connection";
    }
    return LineUse::understood;
  }
  // [W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) address. Using the loopback address
  // as fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function operator())
  // On one host it works; other hosts cannot reach it.
  if (Contains(text, "Using the loopback address as fallback")) {
    AddTold(TorchLogKind::interface_used, line, "loopback", out);
    return LineUse::understood;
  }
  if (!ContainsAny(text, {"gloo", "Gloo", "SO_ERROR"})) return LineUse::not_understood;
  // "failed to connect, willRetry=1, retry=0, ...": it is tried again.
  if (Contains(text, "willRetry=1")) return LineUse::ignored;
  std::string_view word;
  for (const std::string_view known :
       {"Connection refused", "No route to host", "Connection timed out", "Network is unreachable"})
    if (Contains(text, known)) word = known;
  // [E ProcessGroupGloo.cpp:143] Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144]
  // no error
  const bool mesh = Contains(text, "connectFullMesh failed") && !Contains(text, "keys: ");
  if (word.empty() && mesh) word = "no connection";
  if (word.empty()) return LineUse::not_understood;
  // [enforce fail at gloo/transport/tcp/pair.cc:498] optval == 0. 111 vs 0. SO_ERROR: Connection refused
  // Old versions do not tell the address.
  std::string_view address;
  if (const size_t at = std::min(text.find("connect ["), text.find("remote=[")); at != std::string_view::npos) {
    std::string_view rest = text.substr(text.find('[', at) + 1);
    address = rest.substr(0, rest.find(']'));
    if (address.empty()) return LineUse::not_understood;
  }
  if (TorchLogRecord* record = AddTold(TorchLogKind::connect_failed, line, address, out)) {
    record->object = Capped(address.starts_with("::ffff:") ? address.substr(7) : address, 200);
    record->subject = word;
  }
  return LineUse::understood;
}

}  // namespace

// NCCL, without a reason in older versions: "Error while creating shared memory segment /dev/shm/nccl-x (size
// 9637892)". It is NCCL's warning, and not yet a full file system.
static LineUse ReadSegmentWithoutReason(const LogLine& line, RecordList& out) {
  const auto segment = After(line.text, "Error while creating shared memory segment /dev/shm/nccl-");
  if (!segment || Contains(*segment, "error: ")) return LineUse::not_understood;
  if (TorchLogRecord* record = AddTold(TorchLogKind::nccl_warning, line, "segment", out)) {
    record->subject = "shm-extend-failed";
    record->object = "/dev/shm";
    record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
  }
  return LineUse::understood;
}

LineUse ReadToldCause(const LogLine& line, RecordList& out) {
  LineUse use = LineUse::not_understood;
  const auto keep = [&use](LineUse next) { use = std::max(use, next); };
  if (line.has(Keyword::shared_memory) && TellsFullSharedMemory(line.text)) {
    if (TorchLogRecord* record = AddTold(TorchLogKind::shared_memory_full, line, "", out)) {
      record->object = "/dev/shm";
      record->value = GuessesSharedMemory(line.text) ? -1 : 0;
    } else if (TorchLogRecord* before = out.Said(TorchLogKind::shared_memory_full, line, "");
               before && !GuessesSharedMemory(line.text)) {
      before->value = 0;
    }
    return LineUse::understood;
  }
  if (line.has(Keyword::shared_memory)) keep(ReadSegmentWithoutReason(line, out));
  if (line.has(Keyword::no_space)) keep(ReadFullDisk(line, out));
  if (line.has(Keyword::port_taken)) keep(ReadPortTaken(line, out));
  if (line.has(Keyword::model_check)) keep(ReadModelCheck(line, out));
  if (line.has(Keyword::gpu_path)) keep(ReadGpuPath(line, out));
  if (line.has(Keyword::rdma_path)) keep(ReadRdmaPath(line, out));
  if (line.has(Keyword::refused)) keep(ReadRefusedConnection(line, out));
  return use;
}

bool TellsCause(std::string_view text, const KeywordSet& keywords) {
  if (!keywords.any()) return false;
  TorchLog scratch;
  RecordList out(scratch);
  LogLine line;
  line.text = text;
  line.keywords = keywords;
  if (keywords.has(Keyword::setup_words) && ReadSetupWords(line, out) == LineUse::understood) return true;
  return ReadToldCause(line, out) == LineUse::understood || ReadOutsideKill(line, out) == LineUse::understood ||
         ReadPending(line, out) == LineUse::understood;
}

}  // namespace tacet
