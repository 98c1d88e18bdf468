// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_known_line.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"

namespace tacet {
namespace {

constexpr int64_t kMostSeconds = 10'000'000;
constexpr std::string_view kOwnLimit = "a limit of its own";  // TorchLogRecord::file

// "Waited 1800.21 seconds", "for last 20 seconds"; -1 where it is not told
int64_t LimitMs(std::string_view text) {
  for (const std::string_view words : {"Waited ", "for last ", "within ", "after "})
    if (auto rest = After(text, words)) {
      double seconds = 0;
      if (TakeDouble(*rest, &seconds) && rest->starts_with(" second") && seconds >= 0 && seconds < kMostSeconds)
        return static_cast<int64_t>(seconds * 1000);
    }
  return -1;
}

// "at address 10.4.1.2:6379 within", "node url: 10.1.1.1:8118", "Read error [10.2.0.4]:17443: No route to host"
std::string AddressIn(std::string_view text) {
  for (const std::string_view words : {"at address ", "node url: ", "Read error ", "writev "})
    if (auto rest = After(text, words)) {
      std::string_view word = TakeWord(*rest);
      while (word.ends_with(':') || word.ends_with('.') || word.ends_with(',')) word.remove_suffix(1);
      std::string address(word.substr(0, 200));
      if (const size_t close = address.find(']'); address.starts_with('[') && close != std::string::npos)
        address = address.substr(1, close - 1) + address.substr(close + 1);
      return address;
    }
  return "";
}

// "2026-11-09 10:11:12.100000: F external/local_tsl/tsl/platform/default/env.cc:74] Check failed: ...": the message.
std::string_view MessageOf(std::string_view text, std::string_view words) {
  const size_t close = text.substr(0, std::min(text.find(words), text.size())).rfind("] ");
  text = Trim(close == std::string_view::npos ? text : text.substr(close + 2));
  // "ERROR:megatron.core.rerun_state_machine:Rank 3, node ...": the level and the name of Python's logger
  const size_t level = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  if (level == std::string_view::npos || level < 4 || text[level] != ':') return text;
  const size_t end = text.find_first_of(": ", level + 1);
  return end == std::string_view::npos || text[end] == ' ' ? text : Trim(text.substr(end + 1));
}

std::string_view LostRoute(std::string_view text) {
  for (const std::string_view words : {"No route to host", "Network is unreachable", "Connection timed out"})
    if (Contains(text, words)) return words;
  return {};
}

// Find timeout start but not finish task:group_key:pg_2,...,comm_count:812,op:ALLREDUCE,...,numel:1048576,nranks:4
void TakePaddlesCall(std::string_view text, TorchLogRecord& record) {
  if (const auto op = After(text, ",op:")) record.op = Capped(op->substr(0, op->find(',')), 60);
  record.seq = IntAfter(text, ",comm_count:").value_or(-1);
  if (const auto group = After(text, "group_key:")) record.group_name = Capped(group->substr(0, group->find(',')), 100);
}

TorchLogKind KindOf(KnownTold told) {
  switch (told) {
    case KnownTold::failed: return TorchLogKind::exception;
    case KnownTold::stops: return TorchLogKind::abort_signal;
    case KnownTold::gone: return TorchLogKind::process_exited;
    case KnownTold::node_gone: return TorchLogKind::node_failed;
    case KnownTold::hangs: return TorchLogKind::watchdog_timeout;
    case KnownTold::waits: return TorchLogKind::rendezvous_incomplete;
    case KnownTold::lost: return TorchLogKind::connection_lost;
    case KnownTold::no_ssh: return TorchLogKind::store_unreachable;
    case KnownTold::no_memory:
    case KnownTold::bad_gpu: return TorchLogKind::cuda_error;
  }
  return TorchLogKind::exception;
}

// Ray's own lines: "[2026-07-07 10:12:10,120 W 1201 1201] ...", where W is tried again.
bool IsWarning(std::string_view text) {
  const std::string_view head = text.substr(0, 120);
  const size_t close = head.find(']');
  return close != std::string_view::npos && Contains(head.substr(0, close), " W ");
}

}  // namespace

const KnownLine* FindKnownLine(std::string_view text) {
  for (const KnownLine& known : kKnownLines)
    if (Contains(text, known.all[0]) && (known.all[1].empty() || Contains(text, known.all[1]))) return &known;
  return nullptr;
}

LineUse ReadKnownLine(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const KnownLine* known = FindKnownLine(text);
  if (known == nullptr) return LineUse::not_understood;
  // With its type it is an exception, as its traceback has it.
  if (known->told == KnownTold::failed && !FindBareError(text).empty()) return LineUse::not_understood;
  if (known->told == KnownTold::lost && IsWarning(text)) return LineUse::ignored;
  // gloo's words for a peer that hung up have a reader of their own.
  if (Contains(text, "transport/") && ContainsAny(text, {"closed by peer", "reset by peer", "Broken pipe"}))
    return LineUse::not_understood;
  const std::string address = AddressIn(text);
  // A route that is gone says nothing of the process at its other end.
  if (const std::string_view route = LostRoute(text); known->told == KnownTold::lost && !route.empty()) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::connect_failed, line, address);
    if (is_new) record->object = address, record->subject = route, record->text = Capped(Trim(text), 600);
    return LineUse::understood;
  }
  const int32_t rank = known->rank_after.empty() ? -1 : IntAfter<int32_t>(text, known->rank_after).value_or(-1);
  const std::string key = std::string(known->all[0]) + '/' + std::to_string(rank);
  const auto [record, is_new] = out.AddOnce(KindOf(known->told), line, key);
  if (!is_new) return LineUse::understood;
  record->text = Capped(MessageOf(text, known->all[0]), 600);
  if (rank >= 0) record->rank = rank;
  switch (known->told) {
    case KnownTold::failed:
      record->subject = known->name;
      record->value2 = out.highest_step();
      break;
    case KnownTold::stops: record->object = known->name; break;
    case KnownTold::gone:
      record->value = 255;
      record->subject = known->name;
      break;
    case KnownTold::node_gone: {
      record->object = kHeartbeat;
      // Ray lists the address of the actor above.
      if (const TorchLogRecord* actor = out.Said(TorchLogKind::process_exited, line, "ray"))
        record->subject = actor->host;
      break;
    }
    case KnownTold::hangs:
      record->value = LimitMs(text);
      record->file = kOwnLimit;
      TakePaddlesCall(text, *record);
      break;
    case KnownTold::waits: break;
    case KnownTold::lost: record->subject = address; break;
    case KnownTold::no_ssh: record->object = "ssh"; break;
    case KnownTold::no_memory:
      record->subject = "out of memory";
      record->value2 = out.highest_step();
      break;
    case KnownTold::bad_gpu: record->subject = known->name; break;
  }
  return LineUse::understood;
}

void DropPassedLimits(TorchLog& log, uint32_t served) {
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::progress) served = std::max(served, record.source.line);
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::watchdog_timeout && record.file == kOwnLimit && record.source.line < served;
  });
  for (TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::watchdog_timeout && record.file == kOwnLimit) record.file.clear();
}

}  // namespace tacet
