// SPDX-License-Identifier: Apache-2.0
#include "evidence/kernel_log/kernel_log_parse.h"

#include <string>
#include <unordered_map>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Kind = KernelRecord::Kind;
using Shape = KernelLine::Shape;

// A kernel that oopses in a loop repeats itself a million times; distinct records are kept up to this many.
constexpr size_t kMaxRecords = 1'000'000;

class KernelLogBuilder {
 public:
  explicit KernelLogBuilder(KernelLog& log) : log_(log) {}

  void Take(KernelMessage answer, KernelRecord record) {
    if (record.kind == Kind::oom_kill) return TakeOom(answer, record);
    if (answer != KernelMessage::record) return KeepDevice(record);
    // The driver tells over three lines that a GPU is lost, and names it in the first of them.
    if (record.kind == Kind::xid && record.subject.empty() && record.line <= device_line_ + 3) record.subject = device_;
    if (record.kind == Kind::xid && record.value == 0 && record.pid < 0 && owner_.pid > 0 &&
        record.subject == owner_.subject && record.line <= owner_.line + 3)
      record.pid = owner_.pid, record.process = owner_.process;
    // The same fault over and over is one record with a count; a link is told again only when it changed.
    if (record.kind == Kind::segfault) return Keep(record), void();
    std::string key(record.host);
    const bool link = record.kind == Kind::link_down || record.kind == Kind::link_up;
    const bool storage = record.kind == Kind::storage_lost || record.kind == Kind::storage_back;
    key += '\n';
    key += link ? 'l' : storage ? 's' : static_cast<char>('A' + static_cast<int>(record.kind));
    key += record.subject;
    if (!link && !storage) key += '\n' + std::to_string(record.value);
    if (record.kind == Kind::site_message) key += record.module;
    // A pid leads to a rank, so each one counts.
    if (record.kind == Kind::hung_task || record.kind == Kind::ecc_error || record.kind == Kind::xid)
      key += '\n' + std::to_string(record.pid);
    const auto [found, added] = last_.try_emplace(std::move(key), log_.records.size());
    if (!added) {
      KernelRecord& before = log_.records[found->second];
      if (before.kind == record.kind) {
        if (!IsDetail(record)) before.count += record.count;
        announced_ = record;
        return;
      }
      found->second = log_.records.size();
    }
    if (!Keep(record)) last_.erase(found);
    announced_ = record;
  }

  //  [<ffffffffa09c376e>] uvm_gpu_retain_by_uuid+0x1e/0x40 [nvidia_uvm]
  // Below a task that hangs stands where it waits: the first frame that is of a module. "?" marks what was left on the
  // stack by earlier calls.
  void TakeFrame(std::string_view message, uint32_t number) {
    constexpr uint32_t kLongestTrace = 40;
    if (log_.records.empty()) return;
    KernelRecord& task = log_.records.back();
    if (task.kind != Kind::hung_task || !task.module.empty() || number > task.line + kLongestTrace) return;
    message = Trim(message);
    if (!message.ends_with(']') || !Contains(message, "+0x") || Contains(message, "? ")) return;
    const size_t open = message.rfind(" [");
    if (open == std::string_view::npos || open + 3 >= message.size()) return;
    const std::string_view module = message.substr(open + 2, message.size() - open - 3);
    if (module.size() < 40 &&
        module.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos)
      task.module = module;
  }

 private:
  // pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:40:01.1
  // pcieport 0000:40:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
  // One error: the second line tells more of what the first one announces.
  bool IsDetail(const KernelRecord& record) const {
    return record.kind == Kind::pcie_error && announced_.kind == record.kind && announced_.host == record.host &&
           announced_.subject == record.subject && announced_.value == record.value &&
           record.line <= announced_.line + 3 && record.text.find("PCIe Bus Error: ") != std::string_view::npos &&
           announced_.text.find("AER: ") != std::string_view::npos;
  }

  void KeepDevice(const KernelRecord& record) {
    if (record.kind != Kind::xid || record.subject.empty()) return;
    // Whose fault it was that the line above told, or, where that line is lost, the one below will tell.
    owner_ = record.pid > 0 ? record : KernelRecord();
    if (record.pid > 0 && !log_.records.empty()) {
      KernelRecord& fault = log_.records.back();
      if (fault.kind == Kind::xid && fault.value == 0 && fault.pid < 0 && fault.subject == record.subject &&
          record.line <= fault.line + 3)
        fault.pid = record.pid, fault.process = record.process, owner_ = KernelRecord();
    }
    device_ = record.subject;
    device_line_ = record.line;
  }

  struct OomContext {
    int64_t value = -1;  // said by "Task in … killed as a result of limit of …"
    std::string_view cgroup;
    uint32_t invocation = 0;  // a pid that is killed again after a new one is another process
  };

  // One kill is told by up to four lines; they become one record, at the line that names the memory.
  void TakeOom(KernelMessage answer, const KernelRecord& record) {
    OomContext& context = oom_[record.host];
    if (answer != KernelMessage::record) {
      context.value = record.value;
      context.cgroup = record.cgroup;
      if (Contains(record.text, " invoked oom-killer")) ++context.invocation;
      return;
    }
    const std::string key = std::string(record.host) + '\n' + std::to_string(record.pid);
    const auto found = killed_.find(key);
    const bool reaped = record.text.starts_with("oom_reaper");
    if (found == killed_.end() || (!reaped && found->second.invocation != context.invocation)) {
      KernelRecord fresh = record;
      if (fresh.value < 0) fresh.value = context.value >= 0 ? context.value : 0;
      if (fresh.cgroup.empty() && fresh.value == 1) fresh.cgroup = context.cgroup;
      const size_t index = log_.records.size();
      if (Keep(fresh)) killed_[key] = {index, context.invocation};
      return;
    }
    KernelRecord& before = log_.records[found->second.record];
    if (record.value2 > 0 && before.value2 < 0) {
      before.value2 = record.value2;
      before.text = record.text;
      before.line = record.line;
      before.offset = record.offset;
    }
    if (record.value >= 0) before.value = record.value;
    if (before.cgroup.empty()) before.cgroup = record.cgroup;
  }

  bool Keep(const KernelRecord& record) {
    if (log_.records.size() >= kMaxRecords) return false;
    log_.records.push_back(record);
    return true;
  }

  KernelLog& log_;
  std::string_view device_;  // that a line which is no record named
  KernelRecord owner_;       // the process that the last of these lines named
  uint32_t device_line_ = 0;
  KernelRecord announced_;  // the last record: another line may tell more of it
  struct Kill {
    size_t record = 0;
    uint32_t invocation = 0;
  };
  std::unordered_map<std::string, size_t> last_;
  std::unordered_map<std::string, Kill> killed_;
  std::unordered_map<std::string_view, OomContext> oom_;
};

// mlx5_core 0000:5e:00.0 ib0: Link down; amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!
// A driver and the device that it speaks of: a line of the kernel, whatever became of the head of the line.
bool BeginsWithDevice(std::string_view message) {
  const std::string_view driver = TakeWord(message);
  if (driver.size() < 3 || driver.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != std::string_view::npos)
    return false;
  std::string_view device = TakeWord(message);
  if (device.ends_with(':')) device.remove_suffix(1);
  // domain:bus:slot.function
  return device.size() == 12 && device[4] == ':' && device[7] == ':' && device[10] == '.' &&
         device.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

KernelMessage ParseKnownMessage(std::string_view message, bool stamped, KernelRecord* record) {
  const KernelMessage answer = ParseUnmistakable(message, record);
  // The driver says much that is only context; NVLink and ECC may be in it.
  if (answer == KernelMessage::record || !stamped) return answer;
  KernelRecord other;
  if (const KernelMessage hardware = ParseHardwareMessage(message, &other); hardware != KernelMessage::nothing) {
    *record = other;
    return hardware;
  }
  if (answer != KernelMessage::nothing) return answer;
  if (const KernelMessage storage = ParseStorageMessage(message, record); storage != KernelMessage::nothing)
    return storage;
  return ParseLinkMessage(message, record);
}

KernelMessage ParseMessage(const KernelLine& line, KernelRecord* record) {
  if (line.shape == Shape::other) return KernelMessage::nothing;
  const bool stamped = line.shape != Shape::bare || BeginsWithDevice(line.message);
  const KernelMessage answer = ParseKnownMessage(line.message, stamped, record);
  // Errors of the host's own memory and processors mean more than that there was one, and Xid 154 tells what the GPU
  // needs now.
  constexpr int64_t kRecoveryAction = 154;
  const bool tells_more =
      answer == KernelMessage::record && ((record->kind == Kind::ecc_error && record->value != 0) ||
                                          (record->kind == Kind::xid && record->value == kRecoveryAction));
  if (!stamped || (answer == KernelMessage::record && !tells_more)) return answer;
  KernelRecord site;
  if (ParseSiteMessage(line.message, &site) != KernelMessage::record) return answer;
  site.pid = record->pid;
  *record = site;
  return KernelMessage::record;
}

}  // namespace

KernelLog ParseKernelLog(std::string_view bytes) {
  KernelLog log;
  KernelLogBuilder builder(log);
  LineReader reader(bytes);
  std::string_view text;
  while (reader.Next(&text)) {
    if (HasTerminalCodes(text)) text = log.owned.emplace_back(DropTerminalCodes(text));
    const KernelLine line = ParseKernelLine(text);
    KernelRecord record;
    const KernelMessage answer = ParseMessage(line, &record);
    if (answer == KernelMessage::nothing) builder.TakeFrame(line.message, reader.number());
    if (answer != KernelMessage::nothing) {
      record.wall_ns = line.wall_ns;
      record.clock_s = line.clock_s;
      record.host = line.host;
      record.line = reader.number();
      record.offset = reader.offset();
      builder.Take(answer, record);
      log.understood += reader.line_bytes();
    } else if (line.shape == Shape::bare && !Trim(text).empty()) {
      log.not_understood += reader.line_bytes();
    } else {
      log.ignored += reader.line_bytes();
    }
  }
  return log;
}

KernelSigns CountKernelSigns(std::string_view prefix) {
  KernelSigns signs;
  LineReader reader(prefix);
  std::string_view text;
  std::string plain;
  while (reader.Next(&text) && signs.lines < 1000) {
    if (reader.next_offset() >= prefix.size() && signs.lines > 100) break;  // cut anywhere
    if (HasTerminalCodes(text)) text = plain = DropTerminalCodes(text);
    if (Trim(text).empty()) continue;
    const KernelLine line = ParseKernelLine(text);
    KernelRecord record;
    ++signs.lines;
    signs.kernel += line.shape == Shape::kernel;
    signs.loose += line.shape == Shape::loose;
    signs.other += line.shape == Shape::other;
    signs.records += ParseMessage(line, &record) == KernelMessage::record;
  }
  return signs;
}

}  // namespace tacet
