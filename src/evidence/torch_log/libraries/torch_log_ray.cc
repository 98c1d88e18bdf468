// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_ray.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsRaysKill(const TorchLogRecord& record) {
  return record.kind == TorchLogKind::oom_kill && record.subject == kRaysMonitor;
}

// "create_colocated_worker_cls.<locals>.WorkerDict"
std::string_view LastPart(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// ... on the node (IP: 10.7.0.13, ID: 5b1a...) where the task was running was 957.80GB / 1007.51GB (0.950661), which
// ...
void FillFromText(std::string_view text, TorchLogRecord& record) {
  if (auto address = After(text, "IP: "); address && record.host.empty())
    record.host = Capped(address->substr(0, address->find_first_of(",) ")), 100);
  if (auto used = After(text, " was running was "); used && record.cure.empty()) {
    const std::string_view amount = TakeWord(*used);
    if (TakeLiteral(*used, " / ")) record.cure = Capped(amount, 30) + " of " + Capped(TakeWord(*used), 30);
  }
}

}  // namespace

// 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID:
// ..., IP: 10.7.0.13) over the last time period.
// Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: Task was killed due to the node running low on memory.
// ... was running was 219.4GB / 230.4GB (0.952), which exceeds the memory usage threshold of 0.95. Ray killed this
// worker ...
bool IsRaysMemoryKill(std::string_view text) {
  if (const auto before = text.find(" Workers (tasks / actors) killed due to memory pressure");
      before != std::string_view::npos)
    return before == 0 || text[before - 1] != '0' || (before > 1 && IsDigit(text[before - 2]));
  return Contains(text, "killed due to the node running low on memory") ||
         Contains(text, "Worker exit type: NODE_OUT_OF_MEMORY") ||
         (Contains(text, "exceeds the memory usage threshold") && Contains(text, "Ray killed this worker")) ||
         (Contains(text, "Killing worker") && Contains(text, "to free up memory"));
}

// 0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons at node (ID:
// ..., IP: 10.7.0.13) over the last time period.
// Who crashed is told by other lines, above or below it.
bool NoteRaysCount(const LogLine& line, RecordList& out) {
  auto crashed = After(line.text, " killed due to memory pressure (OOM), ");
  int64_t count = 0;
  if (!crashed || !TakeNumber(*crashed, &count) || count <= 0 || !crashed->starts_with(" Workers crashed due to other"))
    return false;
  const auto address = After(*crashed, "IP: ");
  out.NoteSparingNode(Capped(address ? address->substr(0, address->find_first_of(",) ")) : std::string_view(), 100));
  return true;
}

LineUse AddRaysMemoryKill(const LogLine& line, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, "ray");
  if (is_new) {
    record->value = 1;
    record->subject = kRaysMonitor;
    record->text = Capped(line.text, 600);
  }
  record->repeats = 1;  // the same kill, told again
  FillFromText(line.text, *record);
  return LineUse::understood;
}

void RayActorReader::Read(const LogLine& line, RecordList& out) {
  std::string_view text = Trim(line.text);
  if (line.source.line > last_line_ + 2) class_.clear(), ip_.clear(), pid_ = -1;
  const bool listed = line.text.starts_with('\t') || line.text.starts_with("    ");
  if (listed && TakeLiteral(text, "class_name: ")) {
    class_ = Capped(LastPart(Trim(text)), 80), last_line_ = line.source.line;
  } else if (listed && !class_.empty() && TakeLiteral(text, "pid: ")) {
    if (!TakeNumber(text, &pid_)) pid_ = -1;
    last_line_ = line.source.line;
  } else if (listed && !class_.empty() && TakeLiteral(text, "ip: ")) {
    ip_ = Capped(Trim(text), 100), last_line_ = line.source.line;
  } else if (listed && !class_.empty() && Contains(text.substr(0, 20), ": ")) {
    last_line_ = line.source.line;  // the actor's id, its name and its namespace
  }
  // The list stands below the line that tells of the end, and often above the one that tells how.
  if (TorchLogRecord* gone = out.Said(TorchLogKind::process_exited, line, "ray"); gone && !class_.empty()) {
    if (gone->pid < 0) gone->pid = pid_;
    if (gone->host.empty() && !ip_.empty() && IsDigit(ip_[0]) && !ip_.starts_with("127.") && ip_ != "0.0.0.0")
      gone->host = ip_;
  }
  TorchLogRecord* record = out.Said(TorchLogKind::oom_kill, line, "ray");
  if (record == nullptr) return;
  // Memory on the node (IP: ...) where the task was running was ...
  if (Contains(line.text, "Memory on the node ")) FillFromText(line.text, *record);
  if (class_.empty() || !record->object.empty() || !IsRaysMemoryKill(line.text)) return;
  record->object = class_;
  record->pid = pid_;
  record->source = line.source;
  record->text = Capped(line.text, 600);
  if (record->host.empty()) record->host = ip_;
}

void JoinRaysMemoryKills(TorchLog& log) {
  for (TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::process_exited && record.subject == kRaySawItClose)
      record.spared_by_ray = std::any_of(
          log.sparing_nodes.begin(), log.sparing_nodes.end(),
          [&](const std::string& host) { return host.empty() || record.host.empty() || host == record.host; });
  TorchLogRecord* fullest = nullptr;
  for (TorchLogRecord& record : log.records)
    if (IsRaysKill(record) && (fullest == nullptr || (fullest->object.empty() && !record.object.empty())))
      fullest = &record;
  if (fullest == nullptr) return;
  // The raylet of the node and the driver tell of the same kill.
  for (const TorchLogRecord& record : log.records) {
    if (!IsRaysKill(record)) continue;
    if (fullest->host.empty()) fullest->host = record.host;
    if (fullest->cure.empty()) fullest->cure = record.cure;
  }
  const uint32_t kept = fullest->source.line;
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    if (IsRaysKill(record)) return record.source.line != kept;
    return record.kind == TorchLogKind::process_exited && record.subject == kRaySawItClose;
  });
}

}  // namespace tacet
