// SPDX-License-Identifier: Apache-2.0
// NCCL's errors as PyTorch tells them.
#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/waits/torch_log_watchdog.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

struct NcclResult {
  int code;
  std::string_view name;
  std::string_view text;  // ncclGetErrorString
  bool distinct = false;  // nobody else says so
};

constexpr NcclResult kResults[] = {
    {1, "ncclUnhandledCudaError", "unhandled cuda error", true},
    {2, "ncclSystemError", "unhandled system error", true},
    {3, "ncclInternalError", "internal error"},
    {3, "ncclInternalError", "internal error - please report this issue to the NCCL developers", true},
    {4, "ncclInvalidArgument", "invalid argument"},
    {5, "ncclInvalidUsage", "invalid usage"},
    {6, "ncclRemoteError", "remote process exited"},
    {6, "ncclRemoteError", "remote process exited or there was a network error", true},
    {7, "ncclInProgress", "NCCL operation in progress"},
    {8, "ncclTimeout", "timeout"},
};

void SetResult(const NcclResult& result, TorchLogRecord& record) {
  record.value = result.code;
  record.subject = std::string(result.name);
}

// Collective WorkNCCL(SeqNum=24, ...) raised the following async exception: NCCL error: remote process exited or there
// was a
//   network error, NCCL version 2.28.9
// torch.distributed.DistBackendError: NCCL error in: /pytorch/.../NCCLUtils.cpp:93, invalid usage (run with
// NCCL_DEBUG=WARN
//   for details), NCCL version 2.28.9
LineUse BeginError(const LogLine& line, FailureState& state, RecordList& out) {
  size_t at = line.text.find("NCCL error");
  if (at == std::string_view::npos) at = line.text.find("NCCL Error");
  const std::string_view text = line.text.substr(at);
  // "NCCL Error 2: unhandled system error", "NCCL error(1), unhandled cuda error", "NCCL Error: unhandled system error"
  const std::string_view behind = text.substr(10);
  // raise RuntimeError(f"NCCL error: {error_str}"): the line of the program that a traceback quotes.
  if (behind.starts_with(": {")) return LineUse::not_understood;
  const bool numbered = behind.size() > 3 && (behind[0] == ' ' || behind[0] == '(') && behind[1] >= '1' &&
                        behind[1] <= '8' && (behind[2] == ':' || behind[2] == ')');
  // TensorRT-LLM: "Failed, NCCL error /src/ncclUtils.h:295 'internal error - please report this issue'"
  const bool placed = at >= 8 && line.text.substr(at - 8, 8) == "Failed, ";
  if (!behind.starts_with(" in:") && !behind.starts_with(": ") && !numbered && !placed) return LineUse::not_understood;
  LoggedWork work;
  const bool has_work = FindWork(line.text, &work);
  // The same words come back in the watchdog's exception and in the process's last breath.
  const std::string key = (has_work ? std::to_string(work.seq) : "") + "/" + std::string(text.substr(0, 200));
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, key);
  state.nccl_error = record;
  if (!is_new) return LineUse::understood;
  record->text = Capped(text);
  if (has_work) {
    record->seq = work.seq;
    record->op = Capped(work.op, 60);
    record->count = work.elements;
  }
  TakeNcclResult(text, *record);
  return LineUse::understood;
}

// What may stand behind NCCL's words: a mark, a place, a rank, or nothing.
bool EndsResult(std::string_view told) {
  size_t length = 0;
  for (const NcclResult& result : kResults)
    if (result.distinct && told.starts_with(result.text)) length = result.text.size();
  const std::string_view behind = told.substr(length);
  if (Trim(behind).empty()) return true;
  for (const std::string_view mark : {"'", "\"", ")", "(", ",", ".", ";", "|", "/"})
    if (Trim(behind).starts_with(mark)) return true;
  for (const std::string_view word : {" in ", " at ", " rank", " on rank", " NCCL version"})
    if (behind.starts_with(word)) return true;
  return false;
}

// NCCL failure: unhandled cuda error in bench.cu at line: 86 rank: 0         [2] ncclAllReduce failed: unhandled cuda
// error comm.cpp:120 ncclGroupEnd() 'internal error - please report this issue to the NCCL developers' Programs that
// call NCCL themselves print its fixed words behind words of their own, which name NCCL.
LineUse ReadResultText(const LogLine& line, FailureState& state, RecordList& out) {
  // The benchmark's own report and NCCL's own log have readers of their own.
  if (ContainsAny(line.text, {"Test NCCL failure", "NCCL WARN", "NCCL INFO"})) return LineUse::not_understood;
  size_t at = std::string_view::npos;
  for (const NcclResult& result : kResults)
    if (result.distinct) at = std::min(at, line.text.find(result.text));
  if (at == std::string_view::npos || at == 0) return LineUse::not_understood;
  const std::string_view before = Trim(line.text.substr(0, at));
  if (before.empty() || std::string_view(":'\"(|,").find(before.back()) == std::string_view::npos ||
      !ContainsAny(before, {"nccl", "NCCL", "Nccl"}))
    return LineUse::not_understood;
  // "ncclUnhandledCudaError: unhandled cuda error is what NCCL returns when ...": somebody explains it.
  const std::string_view told = line.text.substr(at);
  if (!EndsResult(told)) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "result/" + Capped(line.text, 200));
  state.nccl_error = record;
  if (!is_new) return LineUse::understood;
  record->text = Capped(line.text);
  TakeNcclResult(told, *record);
  if (const auto rank = IntAfter<int32_t>(told, " rank: "); rank && *rank >= 0 && !line.tagged) record->rank = *rank;
  return LineUse::understood;
}

// ncclInternalError: Internal check failed. | NET/Plugin could not ...: what was joined to PyTorch's fixed words is
// NCCL's own reason, as "Last error:" in a line of its own would tell it.
std::string_view ReasonBehind(std::string_view text) {
  for (const std::string_view fixed : {"function failed.", "device error.", "check failed.", "for an argument.",
                                       "of NCCL library.", "exiting prematurely.", "malloc) failed."}) {
    auto rest = After(text, fixed);
    if (!rest) continue;
    *rest = Trim(*rest);
    while (!rest->empty() && std::string_view("|,;:- ").find(rest->front()) != std::string_view::npos)
      rest->remove_prefix(1);
    TakeLiteral(*rest, "Last error:");
    *rest = Trim(*rest);
    return rest->size() > 8 ? *rest : std::string_view();
  }
  return {};
}

// ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
LineUse ReadResultName(const LogLine& line, FailureState& state, RecordList& out) {
  for (const NcclResult& result : kResults) {
    if (!line.text.starts_with(result.name) || !line.text.substr(result.name.size()).starts_with(':')) continue;
    if (state.nccl_error == nullptr) {
      state.nccl_error = out.AddOnce(TorchLogKind::nccl_error, line, result.name).first;
      state.nccl_error->text = Capped(line.text);
    } else if (!Contains(state.nccl_error->text, result.name)) {
      AppendCapped(state.nccl_error->text, "\n");
      AppendCapped(state.nccl_error->text, line.text);
    }
    SetResult(result, *state.nccl_error);
    if (const std::string_view reason = ReasonBehind(line.text);
        !reason.empty() && !Contains(state.nccl_error->text, "Last error: ")) {
      AppendCapped(state.nccl_error->text, "\nLast error: ");
      AppendCapped(state.nccl_error->text, reason);
      state.nccl_error->reason_line = line.source.line;
    }
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// Last error:
// socketProgress: Connection closed by remote peer node7<41234>
LineUse ReadLastError(const LogLine& line, std::string_view text, FailureState& state, RecordList& out) {
  state.last_error_next = false;
  TorchLogRecord* record = state.nccl_error;
  // NCCL had nothing to add.
  if (text.starts_with("Exception raised from ") || text.starts_with("frame #")) return LineUse::ignored;
  if (record != nullptr && !Contains(record->text, "Last error: ")) {
    AppendCapped(record->text, "\nLast error: ");
    AppendCapped(record->text, text);
    record->reason_line = line.source.line;
    if (ContainsAny(text, {"closed", "reset by peer"})) record->function = Capped(ParsePeerAddress(text), 100);
  } else if (record != nullptr && !Contains(record->text, text)) {
    // The same error of another process, for a reason of its own: "rank 7 and rank 0 both on CUDA device f000".
    TorchLogRecord again = *record;
    const auto [other, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "reason/" + Capped(text, 200));
    if (is_new) {
      other->value = again.value;
      other->subject = again.subject;
      other->text = "Last error: " + Capped(text, 600);
    }
  }
  state.nccl_error = nullptr;
  LogLine told = line;
  if (record != nullptr && !line.dated) told.time = record->time;  // one message over several lines
  ReadLostConnection(told, true, out);
  return LineUse::understood;
}

}  // namespace

bool TakeNcclResult(std::string_view text, TorchLogRecord& record) {
  for (const NcclResult& result : kResults) {
    if (!Contains(text, result.text)) continue;
    SetResult(result, record);
    return true;
  }
  return false;
}

LineUse ReadNcclErrorText(const LogLine& line, FailureState& state, RecordList& out) {
  if (state.last_error_next) {
    if (line.severity == 0 && !line.dated) return ReadLastError(line, Trim(line.text), state, out);
    state.last_error_next = false;
  }
  // NCCL's reason by itself: the lines were cut out, or pasted in another order.
  if (line.has(Keyword::nccl_reason) && line.severity == 0) {
    const std::string_view reason = Trim(line.text);
    const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "reason/" + Capped(reason, 200));
    if (is_new) {
      SetResult(kResults[4], *record);
      record->text = "Last error: " + Capped(Trim(line.text), 600);
    }
    return LineUse::understood;
  }
  // INTERNAL: NCCL operation ncclGroupEnd() failed: remote process exited or there was a network error. Last NCCL
  //   warning(error) log entry (may be unrelated) 'socketProgress: Connection closed by remote peer node7<51022>'.
  if (auto quoted = After(line.text, "CL warning(error) log entry (may be unrelated) '");
      quoted && line.severity == 0) {
    const std::string_view reason = quoted->substr(0, quoted->rfind('\''));
    const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "reason/" + Capped(reason, 200));
    if (!is_new) return LineUse::understood;
    if (!TakeNcclResult(line.text, *record)) SetResult(kResults[2], *record);
    record->text = "Last error: " + Capped(reason, 600);
    record->reason_line = line.source.line;
    if (ContainsAny(reason, {"closed", "reset by peer"})) record->function = Capped(ParsePeerAddress(reason), 100);
    ReadLostConnection(line, true, out);
    return LineUse::understood;
  }
  // invalid usage ... Last NCCL warning(error): 'Bootstrap : no socket interface found'      XLA, whose status may
  // begin on another line
  if (const auto quoted = After(line.text, "Last NCCL warning(error): "); quoted && line.has(Keyword::last_error)) {
    std::string_view reason = Trim(*quoted);
    TakeLiteral(reason, "'");
    reason = reason.substr(0, reason.find('\''));
    const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "reason/" + Capped(reason, 200));
    if (is_new) {
      if (!TakeNcclResult(line.text, *record)) SetResult(kResults[4], *record);
      record->text = "Last error: " + Capped(reason, 600);
      record->reason_line = line.source.line;
    }
    return LineUse::understood;
  }
  if (line.has(Keyword::nccl_error))
    if (const LineUse use = BeginError(line, state, out); use != LineUse::not_understood) return use;
  if (line.has(Keyword::nccl_result))
    if (const LineUse use = ReadResultText(line, state, out); use != LineUse::not_understood) return use;
  if (line.has(Keyword::nccl_error)) return LineUse::not_understood;
  if (line.severity != 0) {
    state.nccl_error = nullptr;
    return LineUse::not_understood;
  }
  if (line.text.starts_with("nccl")) return ReadResultName(line, state, out);
  if (line.has(Keyword::last_error) && line.text.starts_with("Last error:")) {
    const std::string_view rest = Trim(line.text.substr(11));
    if (!rest.empty()) return ReadLastError(line, rest, state, out);
    state.last_error_next = true;
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

}  // namespace tacet
