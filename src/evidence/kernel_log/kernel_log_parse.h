// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/kernel_log/kernel_log_line.h"

namespace tacet {

// Views point into the bytes that were parsed, or into KernelLog::owned.
struct KernelRecord {
  enum class Kind : uint8_t {
    oom_kill,
    xid,
    nvlink_error,
    ecc_error,
    segfault,
    hung_task,
    link_down,
    link_up,
    pcie_error,
    iommu_fault,
    rdma_failed,   // value = the system's error
    storage_lost,  // process = the server's address, cgroup = the file system's kind; value 1: operations fail
    storage_back,
    fabric_stale,  // the driver's state of the NVLink fabric is not that of the fabric manager
    site_message   // module = its id in model/events/site_messages.h
  };
  Kind kind = Kind::xid;
  int64_t wall_ns = kKernelTimeUnknown;
  int32_t clock_s = -1;  // as KernelLine has it
  std::string_view host;
  std::string_view subject;  // process, PCI address, interface or memory controller
  std::string_view text;     // the message without its time
  std::string_view cgroup;   // whose limit was met
  std::string_view module;   // of the kernel, in which a hung task waits
  std::string_view process;  // of an Xid: as the driver names it
  int64_t pid = -1;
  int64_t value =
      -1;  // Xid or SXid; 1 for a cgroup's limit, 0 for the host's; seconds; ECC and PCIe: 0 corrected, 1 not, 2 fatal
  int64_t value2 = -1;  // resident bytes of a killed process; 1 for a fatal SXid, 0 for another
  int64_t count = 1;    // how often the same was said
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct KernelLog {
  std::vector<KernelRecord> records;  // in file order
  std::deque<std::string> owned;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

KernelLog ParseKernelLog(std::string_view bytes);

// What one message says: a record, something that belongs to one, or nothing.
enum class KernelMessage : uint8_t { nothing, context, record };

// Only what a line without any stamp may be believed (oom, Xid, SXid, segfault, hung task).
KernelMessage ParseUnmistakable(std::string_view message, KernelRecord* out);
// What needs the stamp of a kernel log beside it: links, ECC, PCIe.
KernelMessage ParseHardwareMessage(std::string_view message, KernelRecord* out);
KernelMessage ParseLinkMessage(std::string_view message, KernelRecord* out);
KernelMessage ParseStorageMessage(std::string_view message, KernelRecord* out);
// What no reader above knows: other drivers, disks, file systems, the kernel's own troubles.
KernelMessage ParseSiteMessage(std::string_view message, KernelRecord* out);

struct KernelSigns {
  uint32_t lines = 0, kernel = 0, loose = 0, other = 0, records = 0;
};
KernelSigns CountKernelSigns(std::string_view prefix);

}  // namespace tacet
