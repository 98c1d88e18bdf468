// SPDX-License-Identifier: Apache-2.0
// Messages that end processes: the OOM killer, the NVIDIA driver, faults, tasks that hang.
#include <algorithm>

#include "base/text_scan.h"
#include "evidence/kernel_log/kernel_log_parse.h"

namespace tacet {
namespace {

using Kind = KernelRecord::Kind;

int64_t KilobytesAfter(std::string_view text, std::string_view key) {
  const int64_t value = IntAfter(text, key).value_or(0);
  return value > 0 && value < (int64_t{1} << 50) ? value : 0;
}

// "1533 (python3) total-vm:...": the name may hold brackets itself.
bool TakeVictim(std::string_view text, KernelRecord* out) {
  if (!TakeNumber(text, &out->pid) || out->pid <= 0 || !TakeLiteral(text, " (")) return false;
  size_t close = std::string_view::npos;
  for (const std::string_view behind : {") total-vm", "), UID", ") score", "), now ", ") is already"})
    if (close == std::string_view::npos) close = text.find(behind);
  if (close == std::string_view::npos) close = text.find(')');
  if (close == std::string_view::npos) return false;
  out->subject = text.substr(0, close);
  return true;
}

// oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=lab,mems_allowed=0,oom_memcg=/lab,task_memcg=/lab,task=python3,pid=1533,uid=0
// Memory cgroup out of memory: Killed process 1533 (python3) total-vm:314953180kB, anon-rss:3041896kB,
// file-rss:306440kB, ... Out of memory: Kill process 1533 (python3) score 981 or sacrifice child Killed process 1533
// (python3), UID 1000, total-vm:314953180kB, anon-rss:3041896kB, file-rss:306440kB oom_reaper: reaped process 1533
// (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
KernelMessage ParseOom(std::string_view message, KernelRecord* out) {
  out->kind = Kind::oom_kill;
  out->text = message;
  if (message.starts_with("oom-kill:constraint=")) {
    out->value = Contains(message, "CONSTRAINT_MEMCG") ? 1 : 0;
    if (const auto cgroup = After(message, "oom_memcg=")) out->cgroup = cgroup->substr(0, cgroup->find(','));
    const auto task = After(message, ",task=");
    const auto pid = IntAfter(message, ",pid=");
    if (!task || !pid) return KernelMessage::context;
    out->subject =
        task->substr(0, task->rfind(",pid=") == std::string_view::npos ? task->find(',') : task->rfind(",pid="));
    out->pid = *pid;
    return KernelMessage::record;
  }
  if (message.starts_with("oom_reaper: reaped process ")) {
    out->value2 = -1;
    return TakeVictim(message.substr(27), out) ? KernelMessage::record : KernelMessage::context;
  }
  size_t at = message.find("Killed process ");
  size_t skip = 15;
  if (at == std::string_view::npos) at = message.find("Kill process "), skip = 13;
  if (at != std::string_view::npos) {
    const std::string_view before = message.substr(0, at);
    const bool own_words =
        before.empty() || before.starts_with("Out of memory") || before.starts_with("Memory cgroup out of memory");
    if (!own_words || !TakeVictim(message.substr(at + skip), out)) return KernelMessage::nothing;
    if (before.starts_with("Memory cgroup")) out->value = 1;
    if (before.starts_with("Out of memory")) out->value = 0;
    const int64_t kilobytes = KilobytesAfter(message, "anon-rss:") + KilobytesAfter(message, "file-rss:") +
                              KilobytesAfter(message, "shmem-rss:");
    if (kilobytes > 0) out->value2 = kilobytes * 1024;
    return KernelMessage::record;
  }
  if (Contains(message, " invoked oom-killer: ") || message.starts_with("Memory cgroup out of memory: OOM victim"))
    return KernelMessage::context;
  // Older kernels: "Task in /slurm/job_7 killed as a result of limit of /slurm/job_7"
  if (const auto limit = After(message, " killed as a result of limit of ")) {
    out->value = 1;
    out->cgroup = *limit;
    return KernelMessage::context;
  }
  return KernelMessage::nothing;
}

// "PCI:0000:3b:00", "0000:3b:00.0", "PCI:0000:3b:00 GPU-I:05" are all 0000:3b:00: a GPU has one function.
std::string_view GpuAddress(std::string_view text) {
  TakeLiteral(text, "PCI:");
  text = text.substr(0, text.find_first_of(" ,)"));
  const size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? text : text.substr(0, dot);
}

uint64_t TakeHexStatus(std::string_view text) {
  uint64_t status = 0;
  return TakeNumber(text, &status, 16) ? status : 0;
}

// NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
// NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4
// GSP! NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000 nvidia-nvswitch0: SXid
// (PCI:0000:c2:00.0): 20034, Fatal, Link 28 LTSSM Fault Up NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
// Unable to determine the device handle for GPU0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU
// amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!
KernelMessage ParseLostGpu(std::string_view message, KernelRecord* out) {
  out->text = message;
  out->kind = Kind::pcie_error;
  out->value = 2;
  if (message.starts_with("Unable to determine the device handle for") &&
      (Contains(message, "is lost") || Contains(message, ": Unknown Error"))) {
    // What nvidia-smi says of a GPU that the kernel reports with Xid 79.
    out->kind = Kind::xid;
    out->value = 79;
    auto address = After(message, "GPU");
    SkipBlanks(*address);
    // "GPU5: 0000:9B:00.0: GPU is lost": its number stands before the address.
    int64_t index = 0;
    if (std::string_view rest = *address; TakeNumber(rest, &index) && rest.starts_with(": ")) address = rest.substr(2);
    out->subject = GpuAddress(address->substr(0, address->find(": ")));
    return KernelMessage::record;
  }
  // amdgpu 0000:2b:00.0: amdgpu: GPU reset begin!
  // amdgpu 0000:83:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:88 vmid:6 pasid:32809, for process python3 pid 164
  // ... [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring page1 timeout, signaled seq=2216, emitted seq=2218
  // "GPU mode1 reset" by itself is also what the driver does as it loads; that one failed, or lost the memory, is not.
  const bool lost = message.starts_with("[drm] VRAM is lost due to GPU reset");
  const bool reset =
      lost || (message.starts_with("amdgpu ") &&
               (message.ends_with(": GPU reset") ||
                ContainsAny(message, {": GPU reset begin", " reset failed", ": GPU reset succeeded", "VRAM is lost due",
                                      ": GPU reset end with ret = -"}) ||
                (Contains(message, ": GPU reset(") && ContainsAny(message, {") succeeded", ") failed"}))));
  // The register by itself, where the line above it was cut off; a status of zero tells of no fault.
  const auto status = After(message, "PROTECTION_FAULT_STATUS:0x");
  const bool register_told = status && TakeHexStatus(*status) != 0;
  const bool fault = message.starts_with("amdgpu ") && (Contains(message, "page fault (src_id") || register_told);
  // amdgpu 0000:01:00.0: ring sdma0 timeout, signaled seq=309, emitted seq=313
  const bool ring =
      (Contains(message, "amdgpu_job_timedout") && Contains(message, " timeout")) ||
      (message.starts_with("amdgpu ") && Contains(message, ": ring ") && Contains(message, " timeout, signaled seq="));
  // amdgpu 0000:83:00.0: amdgpu:  for process python3 pid 164 thread python3 pid 164)
  // Newer drivers tell whose fault it was in a line of its own, below that of the fault.
  if (const auto whose = After(message, " for process "); whose && !reset && !fault && !ring) {
    if (!message.starts_with("amdgpu ")) return KernelMessage::nothing;
    out->kind = Kind::xid;
    out->value = 0;
    std::string_view rest = message.substr(7);
    out->subject = GpuAddress(rest.substr(0, rest.find(": ")));
    if (const auto pid = IntAfter(*whose, " pid "); pid && *pid > 0) {
      out->pid = *pid;
      out->process = whose->substr(0, whose->find(" pid "));
    }
    return KernelMessage::context;
  }
  // amdgpu: sq_intr: error, detail 0x00000000, type 1, sh 1, priv 1, wave_id 4, simd_id 0, wgp_id 0
  // A wave stopped at an error: the kernel that ran is at fault, or the device.
  // [drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=3
  // The firmware that gives the GPU's queues their turn does not answer any more.
  const bool scheduler =
      Contains(message, "MES") && ContainsAny(message, {"MES failed to respon", "failed to respond to msg="});
  // amdgpu 0000:dd:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!
  // A fatal error of any block of the device; the driver resets it next.
  const bool fatal = message.starts_with("amdgpu ") && Contains(message, "uncorrectable hardware error(ERREVENT");
  const bool wave = fatal || (message.starts_with("amdgpu") && Contains(message, " sq_intr: error, ")) ||
                    (scheduler && (message.starts_with("amdgpu ") || message.starts_with("[drm:mes_")));
  if (!reset && !fault && !ring && !wave) return KernelMessage::nothing;
  out->kind = Kind::xid;  // the nearest that AMD's driver has: no number, but its own words
  out->value = 0;
  if (message.starts_with("amdgpu ")) {
    std::string_view rest = message.substr(7);
    out->subject = GpuAddress(rest.substr(0, rest.find(": ")));
  }
  if (const auto pid = IntAfter(message, " pid "); fault && pid && *pid > 0) {
    out->pid = *pid;
    if (const auto whose = After(message, " for process ")) out->process = whose->substr(0, whose->find(" pid "));
  }
  return KernelMessage::record;
}

// xe 0000:03:00.0: [drm] GT0: Timedout job: seqno=4294967169, lrc_seqno=4294967169, guc_id=9, flags=0x0 in python3
// [8231]
// xe 0000:03:00.0: [drm] GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=9
// i915 0000:3a:00.0: [drm] GPU HANG: ecode 12:10:85def5fa, in python3 [48211]
KernelMessage ParseIntelGpu(std::string_view message, KernelRecord* out) {
  std::string_view rest = message;
  if (!TakeLiteral(rest, "xe ") && !TakeLiteral(rest, "i915 ")) return KernelMessage::nothing;
  if (rest.size() < 12 || rest[4] != ':' || rest[7] != ':') return KernelMessage::nothing;
  const bool job = Contains(rest, "Timedout job"), hang = Contains(rest, "GPU HANG");
  if (!job && !hang && !Contains(rest, "Engine reset: ") && !Contains(rest, "device wedged"))
    return KernelMessage::context;
  out->kind = Kind::xid;  // without a number: the driver's own words
  out->value = 0;
  out->text = message;
  out->subject = GpuAddress(rest.substr(0, rest.find(": ")));
  if (const size_t in = rest.rfind(" in "); (job || hang) && in != std::string_view::npos) {
    std::string_view whose = Trim(rest.substr(in + 4));
    const size_t open = whose.rfind(" [");
    std::string_view digits = open == std::string_view::npos ? std::string_view() : whose.substr(open + 2);
    if (TakeNumber(digits, &out->pid) && out->pid > 0) out->process = whose.substr(0, open);
  }
  return KernelMessage::record;
}

KernelMessage ParseNvidia(std::string_view message, KernelRecord* out) {
  out->text = message;
  const bool driver = message.starts_with("NVRM: "), fabric = message.starts_with("nvidia-nvswitch");
  if (!driver && !fabric) return KernelMessage::nothing;
  if (auto rest = After(message, fabric ? "SXid (" : "Xid (")) {
    out->subject = GpuAddress(*rest);
    rest = After(*rest, "): ");
    if (!rest || !TakeNumber(*rest, &out->value) || out->value < 0) return KernelMessage::context;
    out->kind = fabric ? Kind::nvlink_error : Kind::xid;
    if (fabric) out->value2 = rest->starts_with(", Fatal") ? 1 : 0;
    // Xid 45 only says that work was taken away; newer drivers tell why.
    if (const auto first = IntAfter(*rest, "caused by previous Xid "); !fabric && first && *first > 0)
      out->value = *first;
    if (const auto pid = IntAfter(*rest, ", pid="); pid && *pid > 0) out->pid = *pid;
    // name=<unknown>
    if (const auto name = After(*rest, ", name="); name && out->pid > 0 && !name->starts_with('<'))
      out->process = Trim(name->substr(0, std::min(name->find(','), size_t{64})));
    // NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 05 (0x00000004 ...): the driver's own word.
    if (!fabric && Contains(rest->substr(0, 60), " Nonfatal ")) out->value2 = 0;
    return KernelMessage::record;
  }
  // NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)
  if (driver && Contains(message, ": RmInitAdapter failed!")) {
    const auto address = After(message, "NVRM: GPU ");
    out->kind = Kind::xid;  // without a number: the driver's own words
    out->value = 0;
    out->subject = address ? GpuAddress(address->substr(0, address->find(": "))) : std::string_view();
    return KernelMessage::record;
  }
  // NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 812751949 heartbeat 1899482 ...
  // NVRM: GPU6 _kgspLogRpcTimeout: ********************** GSP Timeout **********************
  // What drivers print of a GSP that does not answer, before the Xid or in its place.
  // NVRM: _kgspLogXid119: ********************** GSP Timeout **********************
  // A function that is called for the Xid is a frame around it; the line of the Xid itself names the GPU.
  if (driver && Contains(message, "_kgspLogXid")) return KernelMessage::context;
  if (driver && ContainsAny(message, {"_kgspIsHeartbeatTimedOut: Heartbeat timed out", "* GSP Timeout *"})) {
    out->kind = Kind::xid;
    out->value = 119;
    return KernelMessage::record;
  }
  // NVRM: The NVIDIA GPU 0000:b3:00.0
  // NVRM: (PCI ID: 10de:26b5) installed in this system has
  // NVRM: fallen off the bus and is not responding to commands.
  if (const auto named = After(message, "NVRM: The NVIDIA GPU "); named && named->starts_with("0000:")) {
    out->subject = GpuAddress(named->substr(0, named->find(' ')));
    return KernelMessage::context;
  }
  if (driver && Contains(message, "fallen off the bus")) {
    const auto address = After(message, "NVRM: GPU ");
    out->kind = Kind::xid;
    out->value = 79;
    out->subject = address ? GpuAddress(address->substr(0, address->find(": "))) : std::string_view();
    return KernelMessage::record;
  }
  return KernelMessage::context;
}

bool TakeNameAndPid(std::string_view text, KernelRecord* out) {
  const size_t open = text.rfind('[');
  if (open == std::string_view::npos || open == 0 || !text.ends_with(']')) return false;
  std::string_view digits = text.substr(open + 1, text.size() - open - 2);
  if (!TakeNumber(digits, &out->pid) || !digits.empty() || out->pid <= 0) return false;
  out->subject = Trim(text.substr(0, open));
  return !out->subject.empty() && out->subject.size() <= 64;
}

// python3[48210]: segfault at 0 ip 00007f3a1c2b9d41 sp 00007ffd8a1e2f10 error 4 in
// libparquet.so.1500[7f3a1c200000+1a3000] traps: python3[65649] general protection fault ip:7552a25149a2
// sp:7551597fec50 error:0 in libc.so.6[289a2,7552a2514000+188000] traps: python3[152365] trap invalid opcode
// ip:7f9d3d1f2f42 sp:7fff19950610 error:0 in libtorch_cpu.so python3[4242]: unhandled level 2 translation fault (11) at
// 0x00000000, esr 0x92000006, in libc.so.6
KernelMessage ParseFault(std::string_view message, KernelRecord* out) {
  out->kind = Kind::segfault;
  out->text = message;
  size_t at = message.find(": segfault at ");
  if (at == std::string_view::npos && Contains(message, "fault (11)")) at = message.find(": unhandled ");
  if (at != std::string_view::npos && TakeNameAndPid(message.substr(0, at), out)) return KernelMessage::record;
  if (!TakeLiteral(message, "traps: ")) return KernelMessage::nothing;
  const size_t close = message.find("] ");
  return close != std::string_view::npos && TakeNameAndPid(message.substr(0, close + 1), out) ? KernelMessage::record
                                                                                              : KernelMessage::nothing;
}

// INFO: task python:4711 blocked for more than 120 seconds.
// watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:4711]
KernelMessage ParseHungTask(std::string_view message, KernelRecord* out) {
  out->kind = Kind::hung_task;
  out->text = message;
  std::string_view task;
  if (message.starts_with("INFO: task ") && Contains(message, " blocked for more than ")) {
    task = message.substr(11, message.find(" blocked for more than ") - 11);
    out->value = IntAfter(message, "more than ").value_or(-1);
  } else if (Contains(message, "BUG: soft lockup - CPU#")) {
    const size_t open = message.rfind('[');
    if (open == std::string_view::npos || !message.ends_with(']')) return KernelMessage::context;
    task = message.substr(open + 1, message.size() - open - 2);
    out->value = IntAfter(message, "stuck for ").value_or(-1);
  } else {
    return KernelMessage::nothing;
  }
  const size_t colon = task.rfind(':');  // "kworker/13:2:4055883"
  if (colon == std::string_view::npos) return KernelMessage::context;
  std::string_view digits = task.substr(colon + 1);
  if (!TakeNumber(digits, &out->pid)) return KernelMessage::context;
  out->subject = task.substr(0, colon);
  return KernelMessage::record;
}

// DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0xfe000000 [fault reason 0x05] PTE Write access is not
// set nvidia 0000:3b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000a address=0x1900000 flags=0x0020] AMD-Vi:
// Event logged [IO_PAGE_FAULT device=3b:00.0 domain=0x000a address=0x1900000 flags=0x0020]
KernelMessage ParseIommu(std::string_view message, KernelRecord* out) {
  const bool intel = Contains(message, "DMAR: ") && Contains(message, "Request device [");
  const bool amd = Contains(message, "AMD-Vi: Event logged [IO_PAGE_FAULT");
  if (!intel && !amd) return KernelMessage::nothing;
  out->kind = Kind::iommu_fault;
  out->text = message;
  const std::string_view before = Trim(message.substr(0, message.find("AMD-Vi: ")));
  if (amd && before.ends_with(':'))
    out->subject = before.substr(before.rfind(' ') + 1, before.size() - before.rfind(' ') - 2);
  for (const std::string_view key : {"Request device [", "device="})
    if (const auto address = After(message, key)) out->subject = address->substr(0, address->find_first_of("] "));
  return out->subject.empty() ? KernelMessage::context : KernelMessage::record;
}

}  // namespace

KernelMessage ParseUnmistakable(std::string_view message, KernelRecord* out) {
  message = message.substr(std::min(message.find_first_not_of(' '), message.size()));  // the driver's own indentation
  for (const auto parse : {ParseNvidia, ParseLostGpu, ParseIntelGpu, ParseOom, ParseFault, ParseHungTask, ParseIommu}) {
    *out = {};
    if (const KernelMessage answer = parse(message, out); answer != KernelMessage::nothing) return answer;
  }
  *out = {};
  return KernelMessage::nothing;
}

}  // namespace tacet
