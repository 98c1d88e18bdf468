// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_ascend.h"

#include <string>
#include <string_view>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr int32_t kMostAscendRanks = 10'000'000;

// Of a stream, an event or a communication task that was not done in time: mostly it waits for another rank.
bool IsWaitCode(int64_t code) { return code == 107020 || code == 507046 || code == 507047 || code == 507048; }

// Of a core that failed or did not end in time: this device's own.
std::string_view CoreWords(int64_t code) {
  switch (code) {
    case 507014: return "an aicore timeout";
    case 507015: return "an aicore exception";
    case 507016: return "an aicore trap";
    case 507034: return "a vector core timeout";
    case 507035: return "a vector core exception";
    case 507036: return "a vector core trap";
    default: return "";
  }
}

std::string_view CoreWords(std::string_view text) {
  if (ContainsAny(text, {"aicore execution times out", "reason=[aicore timeout]"})) return CoreWords(507014);
  if (ContainsAny(text, {"aicore execution is abnormal", "reason=[aicore exception]"})) return CoreWords(507015);
  if (Contains(text, "reason=[vector core timeout]")) return CoreWords(507034);
  if (Contains(text, "reason=[vector core exception]")) return CoreWords(507035);
  return "";
}

// The codes as they are reported, not as somebody mentions them.
bool TellsWait(std::string_view text) {
  return ContainsAny(text, {"EI0002:", "EI0002]", "EI0002(", "EI0002)", "EI0006:", "EI0006]", "EI0006(", "EI0006)",
                            "Notify register times out", "hccl fftsplus task timeout", "tream synchronize timeout",
                            "tream sync timeout"});
}

// A plog: [ERROR] HCCL(2711,python):2025-03-04-10:22:31.114.882 [transport_manager.cc:882][2711][CreateLink]dest
// rank[3] create link timeout[120]s
bool IsPlogError(std::string_view text) { return Contains(text, "[ERROR] HCCL("); }

bool TellsPlogWait(std::string_view text) {
  return IsPlogError(text) && ContainsAny(text, {"timeout", "time out", "timed out", "times out"});
}

void GiveOwner(const AscendBlock& block, TorchLogRecord* record) {
  if (record == nullptr) return;
  if (record->pid < 0) record->pid = block.pid;
  if (record->rank < 0) record->rank = block.rank;
  if (record->kind == TorchLogKind::cuda_error && block.device >= 0 && !Contains(record->subject, " on device "))
    record->subject += " on device " + std::to_string(block.device);
}

// (PID:13075, Device:0, RankID:8): 4294967295 and -1 stand for a rank that it does not know.
void TakeOwner(const LogLine& line, AscendBlock& block, RecordList& out) {
  constexpr uint32_t kLinesBetween = 3;
  const std::string_view text = line.text;
  if (block.pid >= 0 || line.source.line > block.last_line + kLinesBetween) block = AscendBlock();
  block.pid = IntAfter(text, "(PID:").value_or(-1);
  block.device = IntAfter(text, "Device:").value_or(-1);
  if (block.device > 100'000) block.device = -1;
  const int32_t rank = IntAfter<int32_t>(text, "RankID:").value_or(-1);
  block.rank = rank >= 0 && rank < kMostAscendRanks ? rank : -1;
  GiveOwner(block, block.wait);
  GiveOwner(block, block.device_error);
  // "RuntimeError: [ERROR] HCCL error in: ...", and the owner of the error in the line below.
  if (TorchLogRecord* error = out.Said(TorchLogKind::nccl_error, line, "other library");
      error != nullptr && line.source.line <= error->source.line + kLinesBetween)
    GiveOwner(block, error);
}

int32_t RemoteRank(std::string_view text) {
  for (const std::string_view key : {"from remote rank: [", "from remote rank [", "from remote rank:[",
                                     "remote rank: [", "remote rank[", "dest rank["})
    if (const auto rank = IntAfter<int32_t>(text, key); rank && *rank >= 0 && *rank < kMostAscendRanks) return *rank;
  return -1;
}

// EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: ...
std::string WaitWords(std::string_view text) {
  const size_t at = text.find("EI00");
  if (at == std::string_view::npos) return Capped(Trim(text), 300);
  const std::string_view code = text.substr(at, 6);
  std::string_view words = text.substr(at);
  if (const auto stamped = After(words, "[PID: ")) {
    words = *stamped;
    TakeWord(words);  // the process
    TakeWord(words);  // the time
    return Capped(code) + ": " + Capped(Trim(words), 300);
  }
  return Capped(Trim(words), 300);
}

// RuntimeError: InnerRunOpApi:...:281 OPS function error: HcclAllreduce, error code is 6
void AddCallError(const LogLine& line, AscendBlock& block, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "other library");
  if (is_new) {
    record->value = 2;
    record->subject = "an HCCL error";
    record->object = Capped(Trim(line.text), 300);
    record->text = Capped(line.text);
  }
  block.call_error = record;
  block.last_line = line.source.line;
}

void AddWait(const LogLine& line, AscendBlock& block, RecordList& out) {
  const std::string key = "notify/" + std::to_string(block.pid);
  TorchLogRecord* record = block.wait;
  if (record == nullptr) record = out.AddOnce(TorchLogKind::watchdog_timeout, line, key).first;
  block.wait = record;
  block.last_line = line.source.line;
  const bool tells_more = TellsWait(line.text) && !TellsWait(record->text);
  if (record->text.empty() || tells_more) {
    // "[PID: 108272] 2026-05-21-21:41:11.284.296 Communication_Error_Get_Socket(EI0006): ...": who and when are kept.
    std::string_view words = Trim(line.text);
    if (words.starts_with("[PID: "))
      for (int i = 0; i < 3; ++i) TakeWord(words);
    record->text = Capped(Trim(words));
    record->source = line.source;
  }
  if (TellsWait(line.text) && block.call_error != nullptr) {
    block.call_error->object = WaitWords(line.text);
    block.coded = block.call_error;  // "Solution: ..." follows
    block.coded_line = line.source.line;
  }
  if (const auto tag = After(line.text, "tag["); tag && record->op.empty())
    record->op = Capped(tag->substr(0, tag->find_first_of("_]")), 60);
  if (record->peer < 0) record->peer = RemoteRank(line.text);
  GiveOwner(block, record);
}

void AddCoreError(const LogLine& line, std::string_view words, AscendBlock& block, RecordList& out) {
  if (block.device_error != nullptr) return;
  TorchLogRecord& record = out.Add(TorchLogKind::cuda_error, line);
  record.subject = words;
  record.text = Capped(line.text, 600);
  record.value2 = out.highest_step();
  block.device_error = &record;
  block.last_line = line.source.line;
  GiveOwner(block, &record);
}

}  // namespace

bool IsAscendWait(std::string_view text) {
  return TellsWait(text) || TellsPlogWait(text) || IsWaitCode(IntAfter(text, "error code is ").value_or(-1));
}

LineUse ReadAscend(const LogLine& line, AscendBlock& block, RecordList& out) {
  const std::string_view text = line.text;
  const bool begins =
      Contains(text, "error code is ") && ContainsAny(text, {"NPU function error", "NPU error", "NPU warning",
                                                             "OPS function error", "HCCL function error"});
  if (begins) block = AscendBlock();
  const bool owner = Contains(text, "(PID:") && Contains(text, "RankID:");
  if (owner) TakeOwner(line, block, out);
  const int64_t code = begins ? IntAfter(text, "error code is ").value_or(-1) : -1;
  const std::string_view core = code >= 0 ? CoreWords(code) : CoreWords(text);
  if (!core.empty()) {
    AddCoreError(line, core, block, out);
    return LineUse::understood;
  }
  if (begins && Contains(text, "function error: Hccl")) {
    AddCallError(line, block, out);
    return LineUse::understood;
  }
  if (TellsPlogWait(text) && block.pid < 0) block.pid = IntAfter(text, "HCCL(").value_or(-1);
  // [PID: 108272] 2026-05-21-21:41:11.284.296 Communication_Error_Get_Socket(EI0006): Getting socket times out.
  if (TellsWait(text) && block.pid < 0) block.pid = IntAfter(text, "[PID: ").value_or(-1);
  if (IsWaitCode(code) || TellsWait(text) || TellsPlogWait(text)) {
    AddWait(line, block, out);
    return LineUse::understood;
  }
  // Which call it was that failed follows, and tells more.
  if (owner || ContainsAny(text, {"hccl api failed", "acl api failed"})) return LineUse::understood;
  return LineUse::not_understood;
}

}  // namespace tacet
