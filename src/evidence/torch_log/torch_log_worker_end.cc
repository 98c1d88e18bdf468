// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_worker_end.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_launcher.h"

namespace tacet {
namespace {

LineUse AddEnd(const LogLine& line, int64_t code, int64_t pid, int32_t rank, RecordList& out) {
  // Who is ended by SIGTERM was ended by its launcher.
  const auto kind = code == -15 ? TorchLogKind::process_killed : TorchLogKind::process_exited;
  const std::string key = std::to_string(code) + '/' + std::to_string(pid) + '/' + std::to_string(rank);
  const auto [record, is_new] = out.AddOnce(kind, line, key);
  if (!is_new) return LineUse::understood;
  record->value = code;
  if (code < 0) record->subject = std::string(SignalName(-code));
  record->pid = pid;
  record->rank = rank;
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

LineUse AddMemoryKill(const LogLine& line, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, "");
  if (!is_new) return LineUse::understood;
  record->value = 1;
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// A table of `kubectl get pods`, or "Reason: OOMKilled" of `kubectl describe`; a sentence that mentions it is neither.
bool IsPodState(std::string_view text) {
  std::string_view rest = Trim(text);
  if (TakeLiteral(rest, "Reason:") || TakeLiteral(rest, "reason:") || TakeLiteral(rest, "\"reason\":"))
    return Contains(rest, "OOMKilled");
  TakeWord(rest);  // the pod
  const std::string_view ready = TakeWord(rest);
  return ready.find('/') != std::string_view::npos && TakeWord(rest) == "OOMKilled";
}

}  // namespace

// [rank: 0] Child process with PID 20114 terminated with code -11. Forcefully terminating all other processes ...
// Global rank 9 (PID 1822) exited with code 1
// ERROR:composer.cli.launcher:Rank 9 crashed with exit code 1.
// subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.
// subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.
// MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD
// x3006c0s13b1n0.hsn: rank 2 died from signal 15
LineUse ReadWorkerEnd(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const auto child = After(text, "Child process with PID "))
    if (const auto code = IntAfter(*child, "terminated with code "); code && *code != 0)
      return AddEnd(line, *code, IntAfter(text, "Child process with PID ").value_or(-1), -1, out);
  if (const auto code = IntAfter(text, ") exited with code "); code && *code != 0)
    if (const auto rank = IntAfter<int32_t>(text, "lobal rank "))
      return AddEnd(line, *code, IntAfter(text, "(PID ").value_or(-1), *rank, out);
  if (const auto code = IntAfter(text, " crashed with exit code "); code && *code != 0)
    if (const auto rank = IntAfter<int32_t>(text, "Rank ")) return AddEnd(line, *code, -1, *rank, out);
  if (Contains(text, "CalledProcessError")) {
    if (const auto name = After(text, " died with <Signals.")) return AddEnd(line, -SignalNumber(*name), -1, -1, out);
    if (const auto code = IntAfter(text, " returned non-zero exit status ")) return AddEnd(line, *code, -1, -1, out);
  }
  if (const auto rank = IntAfter<int32_t>(text, "MPI_ABORT was invoked on rank "))
    return AddEnd(line, 1, -1, *rank, out);
  if (const auto signal = IntAfter(text, " died from signal "); signal && *signal > 0 && *signal <= 64)
    return AddEnd(line, -*signal, -1, IntAfter<int32_t>(text, "rank ").value_or(-1), out);
  // horovodrun: "Process 1 exit with status code 1."
  if (const auto code = IntAfter(text, " exit with status code "); code && *code != 0 && text.starts_with("Process "))
    return AddEnd(line, *code, -1, IntAfter<int32_t>(text, "Process ").value_or(-1), out);
  // vLLM: "Worker proc VllmWorker-3 died unexpectedly, shutting down executor."
  if (Contains(text, "Worker proc ") && Contains(text, " died unexpectedly")) return AddEnd(line, 1, -1, -1, out);
  // Ray: its words are many lines, and only these two tell that a worker is gone for good, or for want of memory.
  if (Contains(text, "Workers (tasks / actors) killed due to memory pressure") ||
      Contains(text, "killed due to the node running low on memory"))
    return AddMemoryKill(line, out);
  if (Contains(text, "Worker exit type: SYSTEM_ERROR")) return AddEnd(line, -9, -1, -1, out);
  if (Contains(text, "OOMKilled") && IsPodState(text)) return AddMemoryKill(line, out);
  return LineUse::not_understood;
}

// [ERROR] 2025-04-08-18:37:21 (PID:92011, Device:3, RankID:3) ERR02200 DIST call hccl api failed.
// EI0002: [PID: 92011] ... The wait execution of the Notify register times out. ... from remote rank: [5]. ...
// RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64
// 2025:01:20-10:20:30:( 4123) |CCL_ERROR| atl_ofi.cpp:214 init: EXCEPTION: no ofi providers found
// Memory access fault by GPU node-4 (Agent handle: 0x9cf1d0) on address 0x7fd7e8200000. Reason: Unknown.
// horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of
// the ranks ...
LineUse ReadOtherLibrary(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "Memory access fault by GPU node")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "memory access fault");
    if (is_new)
      record->subject = "memory access fault", record->text = Capped(text), record->value2 = out.highest_step();
    return LineUse::understood;
  }
  if (Contains(text, "Horovod has been shut down")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::connection_lost, line, "");
    if (is_new) record->text = Capped(text);
    return LineUse::understood;
  }
  if (Contains(text, "EI0002") || Contains(text, "Notify register times out")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, "notify");
    if (!is_new) return LineUse::understood;
    if (const auto tag = After(text, "tag[")) record->op = Capped(tag->substr(0, tag->find_first_of("_]")), 60);
    record->peer = IntAfter<int32_t>(text, "remote rank: [").value_or(-1);
    record->text = Capped(text);
    return LineUse::understood;
  }
  // Which call it was that failed follows, and tells more.
  if (Contains(text, "hccl api failed") || Contains(text, "acl api failed")) return LineUse::understood;
  const bool named = Contains(text, "HCCL error in") || Contains(text, "function error: Hccl") ||
                     Contains(text, "|CCL_ERROR|") || (Contains(text, "[HCL ") && Contains(text, "[error]")) ||
                     ((text.starts_with("EI00") || text.starts_with("EJ00")) && Contains(text.substr(0, 8), ":"));
  if (!named) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "other library");
  if (is_new) {
    record->value = 2;
    record->subject = "ncclSystemError";
    record->text = Capped(text);
  } else {
    AppendCapped(record->text, "\n");
    AppendCapped(record->text, text);
  }
  return LineUse::understood;
}

// One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for
//   remainder of ranks for more than 60 seconds. ...
// Missing ranks:
// 3: [DistributedAdam_Allreduce/grads_17_0, DistributedAdam_Allreduce/grads_18_0 ...]
// DistributedOptimizer_Allreduce/x [missing ranks: 1, 3]
LineUse StallReader::Read(const LogLine& line, RecordList& out) {
  std::string_view text = line.text;
  if (line.has(Keyword::stalled_tensors)) {
    if (report_ == nullptr) {
      report_ = out.AddOnce(TorchLogKind::desync_report, line, "horovod").first;
      report_->text = Capped(text);
    }
    const auto list = After(text, "[missing ranks: ");
    if (!list) return LineUse::understood;
    text = *list;
    for (int32_t rank = 0; TakeNumber(text, &rank) && report_->ranks.size() < 65536;) {
      if (std::count(report_->ranks.begin(), report_->ranks.end(), rank) == 0) report_->ranks.push_back(rank);
      if (!TakeLiteral(text, ",")) break;
      SkipBlanks(text);
    }
    return LineUse::understood;
  }
  if (report_ == nullptr) return LineUse::not_understood;
  int32_t rank = -1;
  if (!TakeNumber(text, &rank) || rank < 0 || !TakeLiteral(text, ": [") || report_->ranks.size() >= 65536) {
    report_ = nullptr;
    return LineUse::not_understood;
  }
  if (std::count(report_->ranks.begin(), report_->ranks.end(), rank) == 0) report_->ranks.push_back(rank);
  AppendCapped(report_->text, "\n" + Capped(line.text, 300));
  return LineUse::understood;
}

}  // namespace tacet
