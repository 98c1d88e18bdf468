// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_mpi_error.h"

#include <string_view>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"

namespace tacet {
namespace {

constexpr int32_t kMostMpiRanks = 10'000'000;
constexpr size_t kMostBlocks = 4096;

// "PMPI_Allgather" and "internal_Recv" are the calls MPI_Allgather and MPI_Recv.
std::string CallName(std::string_view name) {
  name = name.substr(0, name.find_first_of(" :(,."));
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  if (TakeLiteral(name, "internal_")) return "MPI_" + Capped(name, 60);
  return Capped(name, 60);
}

TorchLogRecord* AddMpiError(const LogLine& line, std::string_view call, std::string_view words, int32_t rank,
                            RecordList& out) {
  const std::string subject = "an MPI error in " + CallName(call);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, subject + '/' + std::to_string(rank));
  if (!is_new) return record;
  record->subject = subject;
  record->text = Capped(words, 600);
  record->rank = rank >= 0 && rank < kMostMpiRanks ? rank : -1;
  record->value2 = out.highest_step();
  return record;
}

TorchLogRecord* AddAbortCall(const LogLine& line, int32_t rank, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "MPI_Abort/" + std::to_string(rank));
  if (!is_new) return record;
  record->value = 1;
  record->subject = "MPI_Abort";
  record->rank = rank >= 0 && rank < kMostMpiRanks ? rank : -1;
  record->text = Capped(Trim(line.text), 600);
  return record;
}

// Signals that a process receives for what it did itself; SIGTERM and SIGINT come from others.
bool IsOwnSignal(int64_t signal) { return signal == 4 || signal == 6 || signal == 7 || signal == 8 || signal == 11; }

// "[node7:4121]", "[node7:4121:0:4121]"
void SplitHostPid(std::string_view text, std::string_view* host, int64_t* pid) {
  if (!TakeLiteral(text, "[")) return;
  const size_t colon = text.find_first_of(":]");
  if (colon == std::string_view::npos || text[colon] != ':') return;
  std::string_view digits = text.substr(colon + 1);
  SkipBlanks(digits);
  if (TakeNumber(digits, pid)) *host = text.substr(0, colon);
}

// Abort(1734410) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Bcast: Message truncated, error stack:
// Rank 3 [Tue Mar 12 10:00:00 2024] [c0-0c0s1n2] Fatal error in PMPI_Bcast: Invalid root, error stack:
// flux-shell[0]: FATAL: MPI_Abort: Fatal error in PMPI_Bcast:
LineUse ReadFatalError(const LogLine& line, RecordList& out, TorchLogRecord** stack) {
  const auto call = After(line.text, "Fatal error in ");
  if (!call) return LineUse::not_understood;
  const size_t colon = call->find(':');
  if (colon == std::string_view::npos) return LineUse::not_understood;
  int32_t rank = -1;
  // Only in communicator 0, MPI_COMM_WORLD, is it the rank of the job.
  if (const auto own = After(line.text, "(rank "); own && Contains(own->substr(0, 30), " in comm 0)"))
    rank = IntAfter<int32_t>(line.text, "(rank ").value_or(-1);
  else if (line.text.starts_with("Rank ") && Contains(line.text.substr(0, 16), " ["))
    rank = IntAfter<int32_t>(line.text, "Rank ").value_or(-1);
  std::string_view words = Trim(call->substr(colon + 1));
  words = words.substr(0, words.find(", error stack"));
  TorchLogRecord* record = AddMpiError(line, call->substr(0, colon), words, rank, out);
  *stack = Contains(*call, ", error stack") ? record : nullptr;
  return LineUse::understood;
}

// "MPIDI_OFI_handle_cq_error(1075): OFI poll failed (...)" -> the words, which most of the calls lack
bool TakeStackLine(std::string_view text, std::string_view* words) {
  text = Trim(text);
  const size_t open = text.find('(');
  if (open == std::string_view::npos || open == 0 || open > 80) return false;
  for (const char c : text.substr(0, open))
    if (!IsDigit(c) && c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) return false;
  text.remove_prefix(open + 1);
  int64_t place = 0;
  if (!TakeNumber(text, &place) || !TakeLiteral(text, ")")) return false;
  while (TakeLiteral(text, ".")) {
  }
  if (!TakeLiteral(text, ":")) return false;
  *words = Trim(text);
  return true;
}

// ERROR on proc 71: Out of range atoms - cannot compute (../src/pppm.cpp:1927)
LineUse ReadErrorOnProc(const LogLine& line, RecordList& out) {
  const auto rank = IntAfter<int32_t>(line.text, "ERROR on proc ");
  auto words = After(line.text, "ERROR on proc ");
  if (!rank || *rank < 0 || *rank >= kMostMpiRanks || !words) return LineUse::not_understood;
  words = After(*words, ": ");
  if (!words) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "proc/" + std::to_string(*rank));
  if (!is_new) return LineUse::understood;
  record->subject = "an error";
  record->text = Capped(Trim(*words), 600);
  record->rank = *rank;
  record->value2 = out.highest_step();
  return LineUse::understood;
}

}  // namespace

LineUse MpiErrorReader::AddSignal(const LogLine& line, int64_t signal, std::string_view host, int64_t pid, int32_t rank,
                                  RecordList& out) {
  if (!IsOwnSignal(signal)) return LineUse::ignored;
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::process_exited, line, "signal/" + std::to_string(pid) + '/' + std::to_string(rank));
  if (!is_new) return LineUse::understood;
  record->value = -signal;
  record->subject = std::string(SignalName(signal));
  record->host = Capped(host, 200);
  record->of_itself = true;
  record->pid = pid > 0 ? pid : -1;
  record->rank = rank;
  record->text = Capped(Trim(line.text), 600);
  if (signal == 11 || signal == 7) backtrace_.Begin(record);
  return LineUse::understood;
}

// [node7:4121:0:4121] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)    UCX
// MPT ERROR: Rank 3(g:0) received signal SIGSEGV(11).                                                    HPE
LineUse MpiErrorReader::ReadCaughtSignal(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const auto rank = IntAfter<int32_t>(text, "MPT ERROR: Rank "); rank && Contains(text, "received signal SIG")) {
    const auto name = After(text, "received signal ");
    return AddSignal(line, IntAfter(*name, "(").value_or(SignalNumber(*name)), "", -1, *rank, out);
  }
  // [cn4:mpi_rank_4][error_sighandler] Caught error: Segmentation fault (signal 11)                       MVAPICH
  if (const auto error = After(text, "] Caught error: ")) {
    const auto signal = IntAfter(*error, "(signal ");
    if (!signal) return LineUse::not_understood;
    return AddSignal(line, *signal, "", -1, IntAfter<int32_t>(text, ":mpi_rank_").value_or(-1), out);
  }
  const size_t at = text.find("] Caught signal ");
  if (at == std::string_view::npos) return LineUse::not_understood;
  const size_t open = text.rfind('[', at);
  std::string_view host;
  int64_t pid = -1;
  if (open != std::string_view::npos) SplitHostPid(text.substr(open), &host, &pid);
  return AddSignal(line, IntAfter(text, "Caught signal ").value_or(-1), host, pid, -1, out);
}

LineUse MpiErrorReader::ReadAbort(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (aborted_ != nullptr && abort_lines_-- > 0)
    for (const std::string_view key : {"with errorcode ", "Errorcode: "})
      if (const auto code = IntAfter(text, key)) {
        if (aborted_->object.empty()) aborted_->object = std::to_string(*code);
        aborted_ = nullptr;
        return LineUse::understood;
      }
  if (const auto rank = IntAfter<int32_t>(text, "MPI_ABORT was invoked on rank ")) {
    aborted_ = AddAbortCall(line, *rank, out);
    abort_lines_ = 4;
    if (const auto code = IntAfter(text, "with errorcode "); code && aborted_->object.empty())
      aborted_->object = std::to_string(*code);
    return LineUse::understood;
  }
  bool any = false;
  for (std::string_view rest = text;;) {  // what two processes print at once stands on one line
    const auto call = After(rest, "application called MPI_Abort(");
    if (!call) break;
    const auto rank = IntAfter<int32_t>(*call, ") - process ");
    TorchLogRecord* record = AddAbortCall(line, rank.value_or(-1), out);
    if (const auto code = IntAfter(*call, ", "); code && record->object.empty()) record->object = std::to_string(*code);
    rest = *call;
    any = true;
  }
  return any ? LineUse::understood : LineUse::not_understood;
}

LineUse MpiErrorReader::ReadBlock(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const size_t stars = text.find("*** ");
  std::string_view head = Trim(text.substr(0, stars == std::string_view::npos ? 0 : stars));
  if (const size_t open = head.rfind('['); open != std::string_view::npos) head.remove_prefix(open);
  if (const auto call = After(text, "*** An error occurred in ")) {
    std::string_view host;
    int64_t pid = -1;
    SplitHostPid(head, &host, &pid);
    TorchLogRecord& record = out.Add(TorchLogKind::exception, line);
    record.subject = "an MPI error in " + CallName(*call);
    record.host = Capped(host, 200);
    record.pid = pid;
    record.value2 = out.highest_step();
    if (blocks_.size() < kMostBlocks) blocks_[std::string(head)] = &record;
    return LineUse::understood;
  }
  // *** The MPI_Comm_rank() function was called before MPI_INIT was invoked.
  if (const auto call = After(text, "*** The "); call && Contains(*call, " function was called ")) {
    const size_t when = call->find(" was called ") + 5;
    AddMpiError(line, *call, call->substr(when, call->rfind('.') - when), -1, out);
    return LineUse::understood;
  }
  const auto block = blocks_.find(head);
  if (block == blocks_.end()) return LineUse::not_understood;
  TorchLogRecord& record = *block->second;
  if (const auto process = After(text, "*** reported by process [")) {
    const auto rank = IntAfter<int32_t>(*process, ",");
    if (rank && *rank >= 0 && *rank < kMostMpiRanks) record.rank = *rank;
    return LineUse::understood;
  }
  // Of MPI_Init: no communicator exists yet, since nothing that MPI knows started the process.
  if (Contains(text, "*** on a NULL communicator") && record.text.empty() && Contains(record.subject, "MPI_Init")) {
    record.text = "on a NULL communicator";
    return LineUse::understood;
  }
  if (const auto words = After(text, "*** MPI_ERR_")) {
    if (record.text.empty() || record.text == "on a NULL communicator")
      record.text = "MPI_ERR_" + Capped(Trim(*words), 300);
    return LineUse::understood;
  }
  return LineUse::ignored;
}

LineUse MpiErrorReader::ReadErrorStack(const LogLine& line) {
  std::string_view words;
  if (!TakeStackLine(line.text, &words)) {
    stack_ = nullptr;
    return LineUse::not_understood;
  }
  // The outermost repeats the call with its arguments.
  if (!words.empty() && !words.starts_with("MPI_")) stack_->text = stack_head_ + ": " + Capped(words, 300);
  return LineUse::understood;
}

LineUse MpiErrorReader::Read(const LogLine& line, RecordList& out) {
  if (backtrace_.Read(line.text)) return LineUse::understood;
  if (stack_ != nullptr && ReadErrorStack(line) != LineUse::not_understood) return LineUse::understood;
  if (!line.has(Keyword::mpi_error) && !line.has(Keyword::mpi_detail)) return LineUse::not_understood;
  if (const LineUse use = ReadAbort(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadBlock(line, out); use != LineUse::not_understood) return use;
  if (Contains(line.text, "*** Process received signal ***")) {
    signal_lines_ = 8;
    return LineUse::understood;
  }
  // [node7:4121] Signal: Segmentation fault (11)
  const size_t at = line.text.find("Signal: ");
  if (at != std::string_view::npos) {
    const size_t open = line.text.substr(0, at).rfind('[');
    std::string_view host;
    int64_t pid = -1;
    if (open != std::string_view::npos) SplitHostPid(line.text.substr(open), &host, &pid);
    // Where the line above was not pasted, host and pid show whose words these are.
    const bool by_itself = line.has(Keyword::mpi_error) && pid > 0;
    if (signal_lines_-- > 0 || by_itself)
      return AddSignal(line, IntAfter(line.text.substr(at), "(").value_or(-1), host, pid, -1, out);
  }
  if (!line.has(Keyword::mpi_error)) return LineUse::not_understood;
  if (const LineUse use = ReadCaughtSignal(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadErrorOnProc(line, out); use != LineUse::not_understood) return use;
  const LineUse use = ReadFatalError(line, out, &stack_);
  if (stack_ != nullptr) stack_head_ = stack_->text;
  return use;
}

}  // namespace tacet
