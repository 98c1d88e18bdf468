// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_watchdog.h"

#include <algorithm>
#include <optional>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/torch_log_prefix.h"

namespace tacet {
namespace {

void SetGroup(const GroupPrefix& prefix, TorchLogRecord& record) {
  if (!prefix.known()) return;
  record.group_name = Capped(prefix.name, 200);
  record.group_description = Capped(prefix.description, 200);
  record.group_rank = prefix.group_rank;
}

void SetWork(const LoggedWork& work, TorchLogRecord& record) {
  record.seq = work.seq;
  record.op = Capped(work.op, 60);
  record.count = work.elements;
  record.count_out = work.elements_out;
  record.value = work.timeout_ms;
}

// Failed to retrieve NCCL_DESYNC_DEBUG report. Please file an issue. Error: ... Timeout rank [0] last trace item must
// be kEventStart. thisSeq = 0, col = RECV The report could not be made; that somebody's time was up is told all the
// same.
LineUse ReadBrokenReport(const LogLine& line, RecordList& out) {
  const auto rank = IntAfter<int32_t>(line.text, "Timeout rank [");
  if (!rank) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, "report" + std::to_string(*rank));
  if (!is_new) return LineUse::understood;
  record->rank = *rank;
  if (auto op = After(line.text, "col = ")) record->op = Capped(TakeWord(*op), 60);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// RuntimeError: Collective call timed out: allreduce, waited 600000 ms
// Libraries without a watchdog of PyTorch's: who waits in vain raises. What a program logs of such an error is its own
// business.
LineUse ReadTimedOutCall(const LogLine& line, WatchdogState& state, RecordList& out) {
  if (!IsRaisedTimeout(line.text)) return LineUse::not_understood;
  const std::string_view rest = *After(line.text, " timed out");
  std::string_view op;
  if (rest.starts_with(": ")) {
    op = rest.substr(2);
    op = op.substr(0, op.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
  }
  const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, op);
  if (!is_new) return LineUse::understood;
  record->op = Capped(op, 60);
  for (const std::string_view key : {" waited ", " after "})
    if (auto time = After(rest, key)) {
      int64_t ms = -1;
      if (TakeNumber(*time, &ms) && Trim(*time).starts_with("ms")) record->value2 = ms;
    }
  record->text = Capped(line.text);
  state.timed_out = record;
  return LineUse::understood;
}

// [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(...) ran for 600042 milliseconds before timing out.
// [Rank 3] Caught collective operation timeout: WorkNCCL(...) ran for 1803000 milliseconds before timing out.
// Work WorkNCCL(...) timed out in blocking wait.
LineUse ReadTimeout(const LogLine& line, WatchdogState& state, RecordList& out) {
  LoggedWork work;
  const bool whole = FindWork(line.text, &work);
  // A line that was cut or wrapped inside the operation's description still says that somebody's time was up.
  if (!whole && Contains(line.text, "aught collective operation timeout")) {
    const int32_t rank = IntAfter<int32_t>(line.text, "[Rank ").value_or(-1);
    const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, "cut" + std::to_string(rank));
    if (!is_new) return LineUse::understood;
    record->seq = IntAfter(line.text, "SeqNum=").value_or(-1);
    record->text = Capped(line.text);
    state.timed_out = record;
    return LineUse::understood;
  }
  if (!whole) return ReadTimedOutCall(line, state, out);
  // A paste that ends within the sentence has said it all the same.
  const bool ran = work.rest.starts_with(" ran for ") || Contains(line.text, "aught collective operation timeout");
  if (!ran && !work.rest.starts_with(" timed out")) return LineUse::ignored;
  const int64_t elapsed_ms = IntAfter(work.rest, " ran for ").value_or(-1);
  const GroupPrefix group = FindGroupPrefix(line.text);
  // The same sentence returns when the watchdog thread ends and when the process does, then with its group.
  const std::string key = std::to_string(work.seq) + '/' + std::string(work.op.substr(0, 60)) + '/' +
                          std::to_string(elapsed_ms) + '/' + std::to_string(IntAfter(line.text, "[Rank ").value_or(-1));
  const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, key);
  if (!is_new) {
    if (record->group_name.empty()) SetGroup(group, *record);
    return LineUse::understood;
  }
  SetWork(work, *record);
  record->value2 = elapsed_ms;
  record->text = Capped(line.text);
  SetGroup(group, *record);
  state.timed_out = record;
  if (!group.known() && state.without_group.size() < 64) state.without_group.push_back(record);
  return LineUse::understood;
}

// [PG 0 Rank 2] Timeout at NCCL work: 5, last enqueued NCCL work: 7, last completed NCCL work: 4.
// [PG 0 (default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 5, last enqueued NCCL
// work: 7, ... [PG ID 1 PG GUID 1187ab66 Rank 1]  failure detected by watchdog at work sequence id: 13 PG status: last
// enqueued work: 13, ...
LineUse ReadStatus(const LogLine& line, WatchdogState& state, RecordList& out) {
  TorchLogRecord& record = out.Add(TorchLogKind::watchdog_status, line);
  for (const std::string_view key : {"at work sequence id: ", "watchdog at work: ", "Timeout at NCCL work: "})
    if (const auto seq = IntAfter(line.text, key)) record.seq = *seq;
  for (const std::string_view key : {"last enqueued work: ", "last enqueued NCCL work: "})
    if (const auto last = IntAfter(line.text, key)) record.value = *last;
  for (const std::string_view key : {"last completed work: ", "last completed NCCL work: "})
    if (const auto last = IntAfter(line.text, key)) record.value2 = *last;
  const GroupPrefix group = FindGroupPrefix(line.text);
  SetGroup(group, record);
  record.text = Capped(line.text);
  if (!group.known()) return LineUse::understood;
  auto& works = state.without_group;
  const auto work =
      std::find_if(works.begin(), works.end(), [&](const TorchLogRecord* w) { return w->seq == record.seq; });
  if (work != works.end()) {
    SetGroup(group, **work);
    works.erase(work);
  }
  return LineUse::understood;
}

// Received a timeout signal from this local rank and will start to dump the debug info.
// Received a global dump signal from rank 3, and will start to dump the debug info.
// Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last
// enqueued ...
LineUse ReadDumpSignal(const LogLine& line, RecordList& out) {
  const auto rest = After(line.text, "Received a ");
  if (!rest || (!Contains(*rest, "dump") && !Contains(*rest, "timeout"))) return LineUse::not_understood;
  TorchLogRecord& record = out.Add(TorchLogKind::dump_signal, line);
  SetGroup(FindGroupPrefix(line.text), record);
  record.peer_is_self = Contains(rest->substr(0, 120), "from this local rank");
  for (const std::string_view key : {"from  rank ", "from rank "})
    if (const auto peer = IntAfter<int32_t>(rest->substr(0, 120), key)) record.peer = *peer;
  record.value = IntAfter(line.text, "Last enqueued NCCL work: ").value_or(-1);
  record.value2 = IntAfter(line.text, "last completed NCCL work: ").value_or(-1);
  record.text = Capped(line.text.substr(0, line.text.find("This is most likely caused")));
  return LineUse::understood;
}

// ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0
// ProcessGroupNCCL dumping nccl trace to /scratch/nccl_trace_rank_3
// Finished writing Flight Recorder debug info to /scratch/nccl_trace_rank_3
LineUse ReadDump(const LogLine& line, RecordList& out) {
  const bool written = line.has(Keyword::finished_writing);
  if (written && !Contains(line.text, "Finished writing")) return LineUse::ignored;
  const auto kind = written ? TorchLogKind::dump_written : TorchLogKind::dump_started;
  std::string_view file;
  for (const std::string_view key : {"debug info to ", "dumping nccl trace to "})
    if (const auto rest = After(line.text, key)) file = Trim(*rest);
  const auto [record, is_new] = out.AddOnce(kind, line, file);
  if (!is_new) return LineUse::understood;
  SetGroup(FindGroupPrefix(line.text), *record);
  record->subject = Capped(file, 500);
  record->text = Capped(line.text);
  return LineUse::understood;
}

// ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.
// This ... NCCL monitor thread timeout. Basically, this could be due to CUDA or NCCL calls being unexpectedly blocking,
// ... Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.
LineUse ReadHeartbeat(const LogLine& line, RecordList& out) {
  std::string_view reason = line.text;
  bool stuck = true;
  if (const auto rest = After(line.text, "debug info, due to ")) {
    reason = *rest;
    stuck = Contains(reason, "hang");
  } else if (const size_t at = line.text.find("ProcessGroupNCCL's"); at != std::string_view::npos) {
    reason = line.text.substr(at);
  } else if (const auto text = After(line.text, "] ")) {
    reason = *text;
  }
  const auto [record, is_new] =
      out.AddOnce(stuck ? TorchLogKind::heartbeat_stuck : TorchLogKind::abort_signal, line, reason.substr(0, 60));
  // A line of the level F is the last one of its process.
  if (line.severity == 'F' && stuck) record->value2 = 1;
  if (!is_new) return LineUse::understood;
  SetGroup(FindGroupPrefix(line.text), *record);
  record->value = IntAfter(line.text, "got stuck for ").value_or(-1);
  record->subject = Capped(reason.substr(0, reason.find('.')), 200);
  record->text = Capped(line.text);
  return LineUse::understood;
}

// Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error:
// Broken pipe [c10d] sendBytes failed on SocketImpl(fd=46, addr=[localhost]:39242, remote=[node1]:29621): Broken pipe
// Failed to broadcast signal exception_dump through TCPStore. Error: Broken pipe
LineUse ReadStoreLost(const LogLine& line, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_lost, line, "");
  if (const auto remote = After(line.text, "remote="); remote && record->subject.empty())
    record->subject = Capped(remote->substr(0, remote->find(')')), 200);
  if (is_new) record->text = Capped(line.text);
  // Who has come to its own end already needs no store.
  if (is_new && out.Said(TorchLogKind::program_left, line, "") != nullptr) record->value2 = 1;
  return LineUse::understood;
}

// WARNING: destroy_process_group() was not called before program exit, which can leak resources.
// The process comes to its own end: a store that was gone before had been left behind by those who were done.
LineUse ReadGroupLeft(const LogLine& line, RecordList& out) {
  if (TorchLogRecord* lost = out.Said(TorchLogKind::store_lost, line, "")) lost->value2 = 1;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::program_left, line, "");
  if (is_new) record->text = Capped(line.text, 300);
  return LineUse::understood;
}

// ProcessGroupNCCL initialization options: size: 8, global rank: 3, TIMEOUT(ms): 600000, ..., PG Name: 0
LineUse ReadInitOptions(const LogLine& line, RecordList& out) {
  const GroupPrefix group = FindGroupPrefix(line.text);
  if (!group.is_default && IntAfter(line.text, "PG Name: ").value_or(-1) != 0) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_started, line, "options");
  if (!is_new) return LineUse::ignored;
  record->value = IntAfter(line.text, "options: size: ").value_or(-1);
  record->rank = IntAfter<int32_t>(line.text, "global rank: ").value_or(-1);
  record->text = Capped(line.text, 300);
  return LineUse::understood;
}

// [TC][rank=3][name=tp] Operation timed out after 600000 ms
LineUse ReadNewComms(const LogLine& line, WatchdogState& state, RecordList& out) {
  const auto head = After(line.text, "[TC][rank=");
  if (!head || !Contains(*head, "timed out after ")) return LineUse::ignored;
  TorchLogRecord& record = out.Add(TorchLogKind::watchdog_timeout, line);
  record.group_rank = IntAfter<int32_t>(line.text, "[TC][rank=").value_or(-1);
  if (const auto name = After(*head, "[name=")) record.group_name = Capped(name->substr(0, name->find(']')), 200);
  record.value = IntAfter(*head, "timed out after ").value_or(-1);
  record.text = Capped(line.text);
  state.timed_out = &record;
  return LineUse::understood;
}

// NCCL Work update periodically: last enqueued NCCL work: 7, last completed NCCL work: 4.
LineUse ReadPeriodicStatus(const LogLine& line, RecordList& out) {
  const GroupPrefix group = FindGroupPrefix(line.text);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_status, line, group.name);
  // Only the newest says anything.
  record->source = line.source;
  record->time = line.time;
  record->value = IntAfter(line.text, "last enqueued NCCL work: ").value_or(-1);
  record->value2 = IntAfter(line.text, "last completed NCCL work: ").value_or(-1);
  SetGroup(group, *record);
  record->text = Capped(line.text);
  return LineUse::understood;
}

}  // namespace

bool IsRaisedTimeout(std::string_view text) {
  const std::string_view type = text.substr(0, text.find(' '));
  return (type.ends_with("Error:") || type.ends_with("Exception:")) &&
         ContainsAny(text, {"ollective call timed out", "ollective operation timed out"});
}

bool FindWork(std::string_view text, LoggedWork* work) {
  // WorkNCCL(, and WorkHCCL(, WorkMCCL( or WorkBKCL( of libraries made in its likeness.
  std::optional<std::string_view> begin;
  for (size_t at = text.find("Work"); at != std::string_view::npos && !begin; at = text.find("Work", at + 4))
    if (text.substr(at + 4).find("CL(") == 2) begin = text.substr(at + 9);
  if (!begin) return false;
  const size_t end = begin->find("Timeout(ms)=");
  if (end == std::string_view::npos) return false;
  const std::string_view inside = begin->substr(0, end);
  std::string_view rest = begin->substr(end + 12);
  if (!TakeNumber(rest, &work->timeout_ms) || !TakeLiteral(rest, ")")) return false;
  work->rest = rest;
  work->seq = IntAfter(inside, "SeqNum=").value_or(-1);
  if (const auto op = After(inside, "OpType=")) work->op = op->substr(0, op->find(','));
  if (const auto elements = IntAfter(inside, "NumelIn=")) work->elements = *elements;
  if (const auto elements = IntAfter(inside, "NumelOut=")) work->elements_out = *elements;
  // Before 2.1: the shape of the first tensor.
  if (const auto shape = After(inside, "TensorShape=[")) {
    std::string_view sizes = shape->substr(0, shape->find(']'));
    int64_t product = 1, size = 0;
    while (TakeNumber(sizes, &size)) {
      if (__builtin_mul_overflow(product, size, &product)) return true;
      if (!TakeLiteral(sizes, ",")) break;
      SkipBlanks(sizes);
    }
    work->elements = product;
  }
  return true;
}

LineUse ReadWatchdogLine(const LogLine& line, WatchdogState& state, RecordList& out) {
  if (!line.keywords.any()) return LineUse::ignored;
  if (line.has(Keyword::broken_report)) return ReadBrokenReport(line, out);
  if (line.has(Keyword::failed_work)) return ReadStatus(line, state, out);
  if (line.has(Keyword::received_signal)) return ReadDumpSignal(line, out);
  if (line.has(Keyword::prepare_dump) || line.has(Keyword::dump_to) || line.has(Keyword::finished_writing))
    return ReadDump(line, out);
  if (line.has(Keyword::got_stuck) || line.has(Keyword::monitor_timeout) || line.has(Keyword::terminating))
    return ReadHeartbeat(line, out);
  if (line.has(Keyword::acquire_gil)) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::gil_blocked, line, "");
    if (is_new) record->text = Capped(line.text);
    return LineUse::understood;
  }
  if (line.has(Keyword::should_dump) || line.has(Keyword::on_socket) || line.has(Keyword::broadcast_failed) ||
      line.has(Keyword::store_down))
    return ReadStoreLost(line, out);
  if (line.has(Keyword::group_left)) return ReadGroupLeft(line, out);
  if (line.has(Keyword::init_options)) return ReadInitOptions(line, out);
  if (line.has(Keyword::new_comms)) return ReadNewComms(line, state, out);
  if (line.has(Keyword::enqueued_work)) return ReadPeriodicStatus(line, out);
  if (line.has(Keyword::work)) return ReadTimeout(line, state, out);
  return LineUse::ignored;
}

LineUse ReadFailedStack(const LogLine& line, WatchdogState& state) {
  std::string_view rest = line.text;
  int number = 0;
  if (!TakeLiteral(rest, "#") || !TakeNumber(rest, &number) || !TakeLiteral(rest, " ")) return LineUse::not_understood;
  const size_t from = rest.find(" from ");
  const size_t colon = rest.rfind(':');
  if (from == std::string_view::npos || colon == std::string_view::npos || colon < from + 6)
    return LineUse::not_understood;
  const std::string_view file = rest.substr(from + 6, colon - from - 6);
  std::string_view digits = rest.substr(colon + 1);
  uint32_t code_line = 0;
  if (!TakeNumber(digits, &code_line)) return LineUse::not_understood;
  TorchLogRecord* record = state.timed_out;
  if (record != nullptr && record->file.empty() && IsUserFile(file)) {
    record->function = Capped(rest.substr(0, from), 200);
    record->file = Capped(file, 500);
    record->code_line = code_line;
  }
  return LineUse::understood;
}

}  // namespace tacet
