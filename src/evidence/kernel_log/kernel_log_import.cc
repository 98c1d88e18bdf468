// SPDX-License-Identifier: Apache-2.0
#include "evidence/kernel_log/kernel_log_import.h"

#include <map>
#include <optional>
#include <string>

#include "model/events/site_messages.h"

namespace tacet {
namespace {

EventKind KindOf(KernelRecord::Kind kind) {
  switch (kind) {
    case KernelRecord::Kind::oom_kill: return EventKind::oom_kill;
    case KernelRecord::Kind::xid: return EventKind::xid;
    case KernelRecord::Kind::nvlink_error: return EventKind::nvlink_error;
    case KernelRecord::Kind::ecc_error: return EventKind::ecc_error;
    case KernelRecord::Kind::segfault: return EventKind::segfault;
    case KernelRecord::Kind::hung_task: return EventKind::hung_task;
    case KernelRecord::Kind::link_down: return EventKind::link_down;
    case KernelRecord::Kind::link_up: return EventKind::link_up;
    case KernelRecord::Kind::pcie_error: return EventKind::pcie_error;
    case KernelRecord::Kind::iommu_fault: return EventKind::iommu_fault;
    case KernelRecord::Kind::rdma_failed: return EventKind::rdma_failed;
    case KernelRecord::Kind::storage_lost: return EventKind::storage_lost;
    case KernelRecord::Kind::storage_back: return EventKind::storage_back;
    case KernelRecord::Kind::fabric_stale: return EventKind::fabric_down;
    case KernelRecord::Kind::site_message: return EventKind::site_message;
  }
  return EventKind::xid;
}

ErrorSeverity SeverityOf(int64_t value) {
  return value == 0   ? ErrorSeverity::corrected
         : value == 1 ? ErrorSeverity::uncorrected
         : value == 2 ? ErrorSeverity::fatal
                      : ErrorSeverity::not_told;
}

EventDetail DetailOf(const KernelRecord& record) {
  const std::string subject(record.subject);
  switch (record.kind) {
    case KernelRecord::Kind::oom_kill: {
      const MemoryLimit limit = record.value == 1   ? MemoryLimit::cgroup
                                : record.value == 0 ? MemoryLimit::host
                                                    : MemoryLimit::not_told;
      return OomKill{subject, limit, record.value2, record.count};
    }
    case KernelRecord::Kind::xid:
    case KernelRecord::Kind::nvlink_error: {
      const auto fatal = record.value2 < 0 ? std::optional<bool>() : std::optional<bool>(record.value2 != 0);
      return Xid{record.value, fatal, record.count, subject, std::string(record.process)};
    }
    case KernelRecord::Kind::ecc_error:
    case KernelRecord::Kind::pcie_error:
      // nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)
      return HardwareError{subject, SeverityOf(record.value), record.count,
                           record.text.starts_with("nvidia ") || record.text.starts_with("amdgpu ")};
    case KernelRecord::Kind::segfault: return Segfault{subject, {}};
    case KernelRecord::Kind::hung_task:
      return HungTask{subject, std::string(record.module), record.value, record.count};
    case KernelRecord::Kind::link_down:
    case KernelRecord::Kind::link_up: return NetworkLink{subject, record.count};
    case KernelRecord::Kind::iommu_fault: return IommuFault{subject, record.count};
    case KernelRecord::Kind::storage_lost:
    case KernelRecord::Kind::storage_back:
      return StorageLoss{std::string(record.cgroup), subject, std::string(record.process), record.value == 1};
    case KernelRecord::Kind::fabric_stale: return CudaRefusal{"", FabricFault::out_of_sync};
    case KernelRecord::Kind::site_message: {
      const SiteMessage* message = FindSiteMessage(record.module);
      return SiteNote{message ? message->id : std::string_view(), subject, true};
    }
    case KernelRecord::Kind::rdma_failed: return RdmaFailure{RdmaFault::queues, false, subject, record.value, false};
  }
  return {};
}

}  // namespace

// Memory cgroup out of memory: Kill process 24572 (java) score 0 or sacrifice child
// Killed process 28438 (java) total-vm:20255636kB, anon-rss:466160kB
// Older kernels choose one process and kill a child of it: the second line tells who died.
static bool IsSpared(const KernelLog& log, size_t index) {
  const KernelRecord& chosen = log.records[index];
  if (chosen.kind != KernelRecord::Kind::oom_kill || chosen.text.find("sacrifice child") == std::string_view::npos)
    return false;
  if (index + 1 >= log.records.size()) return false;
  const KernelRecord& next = log.records[index + 1];
  return next.kind == KernelRecord::Kind::oom_kill && next.pid != chosen.pid && next.line <= chosen.line + 3 &&
         next.text.starts_with("Killed process ");
}

void ImportKernelLog(const KernelLog& log, Fragment& out) {
  std::map<std::string_view, uint32_t> speakers;
  for (size_t index = 0; index < log.records.size(); ++index) {
    const KernelRecord& record = log.records[index];
    if (IsSpared(log, index)) continue;
    Event event;
    event.kind = KindOf(record.kind);
    // A host speaks, not a process: the pid stays with the event until the assembly knows whose it is.
    event.speaker = kNobody;
    if (!record.host.empty()) {
      const auto [found, added] = speakers.try_emplace(record.host, static_cast<uint32_t>(out.speakers.size()));
      if (added) {
        Speaker speaker;
        speaker.host = record.host;
        out.speakers.push_back(std::move(speaker));
      }
      event.speaker = found->second;
    }
    event.wall_ns = record.wall_ns == kKernelTimeUnknown ? kNoTime : record.wall_ns;
    event.clock_s = record.clock_s;
    event.source = {FileId{0}, record.line, record.offset};
    event.pid = record.pid;
    event.detail = DetailOf(record);
    // The limit is told of the one that was chosen.
    if (index > 0 && IsSpared(log, index - 1) && log.records[index - 1].value == 1)
      event.Make<OomKill>().limit = MemoryLimit::cgroup;
    event.text = record.text.substr(0, Event::kMaxText);
    if (event.kind == EventKind::oom_kill && !record.cgroup.empty() &&
        event.text.find(record.cgroup) == std::string::npos)
      event.text += " (limit of cgroup " + std::string(record.cgroup.substr(0, 200)) + ")";
    out.events.push_back(std::move(event));
  }
}

}  // namespace tacet
