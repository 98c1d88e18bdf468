// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_remedy.h"
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

constexpr int64_t kLocalProtection = 4;  // IBV_WC_LOC_PROT_ERR
constexpr int64_t kNotPermitted = 1, kNoMemory = 12, kDenied = 13, kBadAddress = 14, kNotSupported = 95;  // errno

bool IsLimitWarning(const Event& event) { return event.As<RdmaFailure>().only_warned; }

const Event* FindLimit(const Incident& incident) {
  const auto found = std::find_if(incident.events.begin(), incident.events.end(), IsLimitWarning);
  return found == incident.events.end() ? nullptr : &*found;
}

bool TellsRdma(const Event& event) {
  if (event.kind == EventKind::rdma_failed) return !IsLimitWarning(event);
  if (IsFatalWarning(event, {"ib-completion-error"})) return event.As<Warning>().number == kLocalProtection;
  return IsFatalWarning(event, {"ib-register-failed", "ib-queue-failed", "ib-open-failed"});
}

bool IsOfDriver(const Event* event) { return !event->As<RdmaFailure>().device.empty(); }

RdmaFault RdmaFaultOf(const Event& event) {
  if (event.kind == EventKind::rdma_failed) return event.As<RdmaFailure>().fault;
  const auto& warning = event.As<Warning>();
  if (warning.id == "ib-completion-error") return RdmaFault::protection;
  if (warning.id == "ib-open-failed") return RdmaFault::no_device;
  switch (warning.number) {
    case kNoMemory: return RdmaFault::locked_memory;
    case kBadAddress: return RdmaFault::gpu_memory;
    // Host memory is always supported: it was the GPU's, by DMA-BUF.
    case kNotSupported: return warning.id == "ib-register-failed" ? RdmaFault::gpu_memory : RdmaFault::queues;
    case kNotPermitted:
    case kDenied: return RdmaFault::no_device;
    default: return warning.id == "ib-queue-failed" ? RdmaFault::queues : RdmaFault::unknown;
  }
}

// In bytes; 0 where the line does not tell it.
int64_t LimitOf(const Event& warning) { return warning.As<RdmaFailure>().code; }

// `limit`: the line that tells the limit of locked memory, where there is one.
std::string RdmaFaultWords(RdmaFault fault, const Event& event, const Event* limit) {
  const std::string& adapter = event.As<Warning>().object;
  switch (fault) {
    case RdmaFault::locked_memory:
      return "memory cannot be locked for the InfiniBand adapter: the memlock limit is " +
             (!limit ? "probably too low" : "too low" + (LimitOf(*limit) > 0 ? ", " + SizeWords(LimitOf(*limit)) : ""));
    case RdmaFault::gpu_memory:
      if (event.As<Warning>().number == kNotSupported)
        return "the InfiniBand adapter's driver cannot register GPU memory by DMA-BUF: operation not supported";
      return "the InfiniBand adapter cannot register GPU memory: nvidia_peermem is not loaded or does not match the "
             "driver";
    case RdmaFault::protection:
      return "the InfiniBand adapter was refused access to memory (local protection error): ACS, the IOMMU or "
             "nvidia_peermem";
    case RdmaFault::no_device:
      return "the InfiniBand adapter " + (adapter.empty() ? "" : adapter + " ") + "cannot be opened";
    case RdmaFault::queues: {
      const auto& told = event.As<RdmaFailure>();
      if (told.device.empty()) return "the InfiniBand adapter cannot create a queue pair or a completion queue";
      return "the driver of the adapter " + told.device + " rejects a process's request (error " +
             std::to_string(told.code) +
             (told.code == kNoMemory ? ": memory, or a resource of the adapter, is exhausted)" : ")");
    }
    case RdmaFault::doorbell:
      return "the GPU cannot use the InfiniBand adapter's doorbell, which the IBGDA transport of NVSHMEM needs";
    case RdmaFault::unknown: break;
  }
  return "memory cannot be registered with the InfiniBand adapter";
}

// What each cited line proves.
std::string_view RdmaProof(const Event& event) {
  switch (RdmaFaultOf(event)) {
    case RdmaFault::no_device: return "the adapter cannot be opened";
    case RdmaFault::queues: return "the adapter refuses a queue";
    case RdmaFault::doorbell: return "the adapter's doorbell cannot be mapped";
    default: return "the adapter cannot use the memory that it was given";
  }
}

// DMA-BUF needs all of: the open kernel module, a new kernel, and an RDMA driver that knows it.
std::vector<std::string> DmaBufSteps() {
  return {
      "Run with NCCL_DMABUF_ENABLE=0: NCCL then uses nvidia_peermem (lsmod | grep peermem; modprobe nvidia_peermem).",
      "DMA-BUF needs the open kernel module of the driver, Linux 5.12 or newer, and an RDMA driver (MLNX_OFED, "
      "rdma-core) that supports it: compare ofed_info -s and uname -r with a host on which it works.",
      "NCCL_NET_GDR_LEVEL=LOC works around both, and is slower."};
}

std::vector<std::string> RdmaAdvice(RdmaFault fault, const Event& lead) {
  const Library library = lead.library;
  if (fault == RdmaFault::gpu_memory && lead.As<Warning>().number == kNotSupported) return DmaBufSteps();
  switch (fault) {
    case RdmaFault::locked_memory:
      return {
          "Raise the limit where the job starts: ulimit -l unlimited; /etc/security/limits.conf; "
          "LimitMEMLOCK=infinity in the unit of slurmd, containerd or docker.",
          "Containers: docker run --ulimit memlock=-1 --cap-add IPC_LOCK, in Kubernetes the capability IPC_LOCK; "
          "Singularity and Apptainer have the limit of the shell or daemon that starts them."};
    case RdmaFault::gpu_memory:
      return {
          "On that host: lsmod | grep peermem; modprobe nvidia_peermem (or use DMA-BUF: open driver, Linux 5.12 or "
          "newer).",
          library == Library::nvshmem
              ? "Check which adapters are skipped in this way: at least one of the others must be in the job's network "
                "(NVSHMEM_HCA_LIST)."
              : "NCCL_NET_GDR_LEVEL=LOC works around it, and shows that this is the cause; it is slower."};
    case RdmaFault::protection:
      return {
          "On that host: dmesg | grep -iE 'dmar|amd-vi|iommu'; lspci -vvv | grep ACSCtl: 'ReqRedir+' above a GPU or "
          "NIC is wrong on bare metal.",
          "NCCL_NET_GDR_LEVEL=LOC works around it, and shows that GPUDirect RDMA is the cause.",
          "Load the nvidia_peermem that matches the driver; boot with iommu=pt."};
    case RdmaFault::no_device:
      return {
          "Give the container /dev/infiniband (--device=/dev/infiniband, or the RDMA device plugin) and the right "
          "permissions.",
          "On that host: ls -l /dev/infiniband; ibv_devinfo."};
    case RdmaFault::queues:
      return {
          "On that host: ulimit -l inside the job (queues take locked memory); ibv_devinfo -v shows max_qp and max_cq.",
          "Look for other jobs or left-over processes that hold the adapter's queues: rdma resource show.",
          "Look at the adapter's driver in the kernel log: dmesg -T | grep -iE 'mlx5|infiniband'."};
    case RdmaFault::doorbell:
      return {
          "Load the NVIDIA driver with NVreg_EnableStreamMemOPs=1 and NVreg_RegistryDwords=\"PeerMappingOverride=1;\" "
          "(in /etc/modprobe.d, then reboot); /proc/driver/nvidia/params shows what is set.",
          "Container: give it /dev/infiniband and the capability IPC_LOCK; if it works only with --privileged, the "
          "permissions of the container are the reason.",
          "Test without IBGDA: NVSHMEM_IB_ENABLE_IBGDA=0, where the program allows it."};
    case RdmaFault::unknown: break;
  }
  return {};
}

bool TellsMemoryLimit(const Event& event) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "mpi-memory-limited";
}

// Open MPI compares what the driver can register with what the host has, and goes on.
void JudgeMemoryLimit(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told = CollectTold(facts, TellsMemoryLimit);
  if (!told) return;
  Finding finding = ToldFinding(facts, "rdma-broken", told, "the driver's limit, according to Open MPI's warning");
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  const std::string& sizes = told.events.front()->As<Warning>().object;
  finding.headline = "the InfiniBand driver can register only part of the memory" +
                     (told.hosts.empty() ? "" : " on " + ListWords({told.hosts.begin(), told.hosts.end()})) +
                     (sizes.empty() ? "" : " (" + sizes + ")") + ": jobs that need more can be slow, hang or crash";
  finding.fix = {
      "mlx4 adapters: raise log_num_mtt and log_mtts_per_seg of the module mlx4_core, so that twice the host's memory "
      "can be registered, and load the driver again.",
      "All adapters: ulimit -l must be unlimited inside the job."};
  finding.affected_ranks = std::move(finding.ranks), finding.ranks.clear();
  answer.findings.push_back(std::move(finding));
}

}  // namespace

static RuleAnswer JudgeRdmaBroken(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, TellsRdma);
  if (!told) {
    JudgeMemoryLimit(facts, answer);
    if (auto finding = RemedyFinding(facts, "rdma-broken"); finding && answer.findings.empty())
      answer.findings.push_back(std::move(*finding));
    return answer;
  }
  const bool may_go_on = std::all_of(told.events.begin(), told.events.end(),
                                     [](const Event* event) { return event->As<RdmaFailure>().may_go_on; });
  if (may_go_on && facts.analyses.outcome.ended_in_order) return answer;
  const Event* lead = told.events.front();
  for (const Event* event : told.events)
    if (RdmaFaultOf(*lead) == RdmaFault::unknown && RdmaFaultOf(*event) != RdmaFault::unknown) lead = event;
  // Of what a driver reports, what the adapter lacks says more than the error of a call.
  for (const Event* event : told.events)
    if (IsOfDriver(lead) && lead->As<RdmaFailure>().code != kNoMemory && IsOfDriver(event) &&
        event->As<RdmaFailure>().code == kNoMemory)
      lead = event;
  const RdmaFault fault = RdmaFaultOf(*lead);
  Finding finding = ToldFinding(facts, "rdma-broken", told, "");
  for (size_t i = 0; i < finding.evidence.size(); ++i) finding.evidence[i].says = RdmaProof(*told.events[i]);
  const Event* limit = FindLimit(facts.incident);
  // One line may tell both: UCX names the limit behind the call that failed.
  const bool cited =
      limit && std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& one) {
        return one.source.file == limit->source.file && one.source.line == limit->source.line;
      });
  if (limit && !cited) finding.evidence.push_back({limit->source, limit->text, "the limit of locked memory"});
  // "Cannot allocate memory" may also be nvidia_peermem's, the IOMMU's or the adapter's own.
  const bool guessed = fault == RdmaFault::unknown || (fault == RdmaFault::locked_memory && !limit);
  finding.confidence = guessed ? Confidence::likely : Confidence::certain;
  finding.headline =
      RdmaFaultWords(fault, *lead, limit) +
      (told.ranks.empty() && told.hosts.empty() && told.rankless.empty() ? std::string()
                                                                         : " (" + TellerWords(told) + ")") +
      RankUnknownWords(told);
  finding.fix = RdmaAdvice(fault, *lead);
  if (fault == RdmaFault::locked_memory && !limit)
    finding.fix.emplace_back(
        "Check inside the job itself, not in a login shell: the scheduler applies its own limits.");
  if (fault == RdmaFault::locked_memory && !limit)
    finding.fix.push_back(
        "If ulimit -l is unlimited inside the job: dmesg -T | grep -iE 'mlx5|peermem|iommu|dmar' on that host, and "
        "NCCL_NET_GDR_LEVEL=LOC to check whether only GPU memory is refused.");
  // The kernel speaks of no job in particular, and a program may do without what it was refused.
  if (std::all_of(told.events.begin(), told.events.end(), IsOfDriver)) {
    finding.confidence = Confidence::likely;
    finding.headline =
        RdmaFaultWords(fault, *lead, limit) + (told.hosts.size() == 1 ? " on " + *told.hosts.begin() : "");
    if (facts.analyses.end.kind == JobEnding::open)
      finding.status = Status::degraded, finding.severity = Severity::warning;
  }
  if (may_go_on) {
    if (!limit) finding.confidence = Confidence::likely;
    finding.status = Status::degraded;
    finding.severity = Severity::warning;
    finding.explanation =
        "UCX cannot use this adapter. It ends the job, or continues over another adapter or over TCP, which is slower.";
  }
  // All hosts are set up alike, and all that are seen report it: nobody is the odd one.
  if (!finding.ranks.empty() && finding.ranks.size() >= facts.analyses.life.ranks.size() &&
      (finding.ranks.size() > 1 || !facts.incident.world_told))
    finding.affected_ranks = std::move(finding.ranks), finding.ranks.clear();
  AskWhichRank(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kRdmaBrokenRule;
const Rule kRdmaBrokenRule = {
    "rdma-broken",
    "RDMA does not work",
    "NCCL logs (WARN) or the ranks' output",
    "InfiniBand and RoCE adapters access memory directly; it must be registered and locked for them. That fails when "
    "the limit on locked memory is too low, nvidia_peermem is missing, the device file is not there, or PCIe "
    "access control and the IOMMU refuse the access.",
    "Status 12 (retry exceeded) points to the network. Status 5 (flushed) follows another error. 'No device found' "
    "means that there is no adapter, and NCCL uses sockets.",
    {"ulimit -l must be unlimited inside the job; containers need IPC_LOCK and /dev/infiniband.",
     "lsmod | grep peermem on all hosts; NCCL_NET_GDR_LEVEL=LOC shows whether GPUDirect RDMA is the cause.",
     "lspci -vvv | grep ACSCtl: redirection above GPU and NIC must be off on bare metal."},
    {"Check memlock, nvidia_peermem and ACS on every node before it joins the cluster."},
    JudgeRdmaBroken};

}  // namespace tacet
