// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/event_words.h"
#include "model/events/xid.h"
#include "rules/findings/failed_check.h"
#include "rules/findings/kernel_reason.h"
#include "rules/first_end.h"
#include "rules/rule.h"
#include "rules/words/end_sentence.h"
#include "rules/words/gpu_advice.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Ranks issued different things at the same place, and all that the GPUs report is an access out of bounds.
bool FollowsAMismatch(const Case& facts, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks)
    if (!facts.analyses.life.Of(rank)->gpu_error->Means(Meaning::illegal_access)) return false;
  return std::any_of(facts.analyses.sources.begin(), facts.analyses.sources.end(),
                     [](const SourceAnalysis& source) { return !source.differences.empty(); });
}

// One fault of a GPU gives several lines, of which not all name the device: those that stand close together in one log
// are of one incident, unless they name different devices.
std::string PciOfIncident(const Case& facts, const Event& lead) {
  constexpr uint32_t kCloseLines = 20;
  std::string pci = lead.As<Xid>().pci;
  if (!pci.empty()) return pci;
  for (const Event& event : facts.incident.events) {
    const std::string& other = event.As<Xid>().pci;
    if (event.kind != lead.kind || other.empty() || event.source.file != lead.source.file ||
        event.source.line < lead.source.line || event.source.line > lead.source.line + kCloseLines)
      continue;
    if (!pci.empty() && pci != other) return "";
    pci = other;
  }
  return pci;
}

// "; the GPU at PCI 0000:4c:00 reports errors as well": faults of other devices of the host, whose ranks nobody knows.
std::string OtherDevices(const Case& facts, const Event& lead) {
  constexpr size_t kMostNamed = 4;
  if (lead.As<Xid>().pci.empty()) return "";  // then it may be one of them
  std::set<std::string> others;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::xid && IsDeviceFault(event) && !event.rank.known() &&
        !event.Means(Meaning::of_service) && event.source.file == lead.source.file)
      others.insert(event.As<Xid>().pci);
  others.erase(lead.As<Xid>().pci);
  others.erase("");
  if (others.empty() || others.size() > kMostNamed) return "";
  return std::string(others.size() == 1 ? "; the GPU at PCI " : "; the GPUs at PCI ") +
         ListWords({others.begin(), others.end()}) + (others.size() == 1 ? " reports" : " report") + " errors as well";
}

bool HasLinkErrors(const Incident& incident) {
  constexpr int64_t kLink = 74, kLinkAccess = 137;
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    const int64_t number = event.kind == EventKind::xid ? event.As<Xid>().number : -1;
    return event.kind == EventKind::nvlink_error || number == kLink || number == kLinkAccess;
  });
}

// A text that tells of one Xid may tell of others: " and Xid 63, 94".
std::string OtherToldXids(const Incident& incident, const Event& lead) {
  std::string others;
  if (!lead.Means(Meaning::in_prose)) return others;
  for (const Event& event : incident.events) {
    const int64_t number = event.As<Xid>().number;
    if (event.kind != EventKind::xid || !event.Means(Meaning::in_prose) || number <= 0) continue;
    if (number != lead.As<Xid>().number) others += (others.empty() ? " and Xid " : ", ") + std::to_string(number);
  }
  return others;
}

// A kernel that failed keeps its GPU from what comes next, such as a switch to another context: the first fault of a
// device is the cause, unless what comes later is one of hardware, which no program makes.
bool MayFollowFrom(const Event& first, const Event& later) {
  const auto &one = first.As<Xid>(), &other = later.As<Xid>();
  const XidMeaning* meaning = FindXid(other.number);
  return first.kind == EventKind::xid && later.kind == EventKind::xid && one.pci == other.pci && meaning &&
         meaning->origin != XidOrigin::hardware && meaning->origin != XidOrigin::driver;
}

bool IsNamed(const Case& facts, const Event& event) {
  return event.speaker < facts.incident.processes.size() && facts.incident.processes[event.speaker].rank == event.rank;
}

// A traceback without a name was given to the rank whose watchdog repeats it: that line is the proof.
const Event* LineThatNames(const Case& facts, const Event& error) {
  if (error.kind != EventKind::cuda_error || IsNamed(facts, error)) return nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == error.kind && event.rank == error.rank && IsNamed(facts, event)) return &event;
  return nullptr;
}

// The kernel of that host may say why CUDA failed: its word and its advice come first. Null where it says nothing.
const Event* TakeKernelReason(const Case& facts, Finding& finding) {
  constexpr size_t kMostAsked = 64;
  for (size_t i = 0; i < std::min(finding.ranks.size(), kMostAsked); ++i) {
    const Event& error = *facts.analyses.life.Of(finding.ranks[i])->gpu_error;
    const Event* reason = KernelReasonOf(facts, error);
    if (!reason) continue;
    const bool same = IsSameHost(facts, *reason, error);
    finding.evidence.insert(
        finding.evidence.begin(),
        CiteEvent(*reason, (same ? "the kernel of its host reports this" : "the kernel reports this") +
                               WhenWords(facts, *reason, error) + (same ? "" : ", without naming a rank")));
    if (!same) finding.confidence = Confidence::likely;
    return reason;
  }
  return nullptr;
}

void CitePcieErrors(const Case& facts, const Event& fault, Finding& finding) {
  constexpr size_t kMost = 5;
  for (const Event* error : PcieErrorsBeside(facts, fault))
    if (finding.evidence.size() < kMost)
      finding.evidence.push_back(CiteEvent(*error, "the PCIe link reports this in the same minute"));
}

// The link to the device is lost, and no Xid tells of it.
std::vector<std::string> LostLinkSteps(const Event& fault) {
  const std::string& device = fault.As<HardwareError>().device;
  return {"Drain the node: the PCIe link at " + (device.empty() ? std::string("the device") : device) +
              " failed (lspci -t shows what is behind it; nvidia-smi -q whether all GPUs answer).",
          "Reseat or replace the card, the riser or the cable; look at the BMC's log.",
          "Restart the job without that node."};
}

}  // namespace

static RuleAnswer JudgeGpuFault(const Case& facts) {
  RuleAnswer answer;
  Finding finding;
  const Event *lead = nullptr, *mild = nullptr, *reason = nullptr;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.gpu_error) continue;
    finding.ranks.push_back(rank);
    if (!lead) lead = life.gpu_error;
    if (finding.evidence.size() < 3)
      finding.evidence.push_back(CiteEvent(*life.gpu_error, "the GPU error of " + RankWords({rank})));
    if (const Event* named = LineThatNames(facts, *life.gpu_error); named && finding.evidence.size() < 3)
      finding.evidence.push_back(CiteEvent(*named, "this line names the rank"));
  }
  // An Xid that programs survive is a hint only where everybody waits for that very rank and nothing else tells why.
  for (const Standstill& still : facts.standstill.ranks) {
    const RankLife* life = facts.analyses.life.Of(still.rank);
    if (lead || !life || !life->mild_xid) continue;
    if (still.kind != StandstillKind::unclear && still.kind != StandstillKind::gpu) continue;
    mild = life->mild_xid;
    finding.ranks.push_back(still.rank);
    finding.evidence.push_back(CiteEvent(*mild, "the GPU error of " + RankWords({still.rank})));
  }
  if (!lead && mild) {
    lead = mild;
    finding.confidence = Confidence::likely;
  } else if (!lead) {
    // A fault whose rank is not told still matters when somebody stands still or the job failed.
    for (const Event& event : facts.incident.events) {
      // NCCL's own call fails with the error of an earlier kernel.
      const bool by_nccl = event.kind == EventKind::nccl_warning && event.Means(Meaning::illegal_access);
      const bool by_cuda = event.kind == EventKind::cuda_error && event.As<CudaError>().words != "out of memory";
      const bool told = by_cuda || by_nccl;
      if ((!IsDeviceFault(event) && !told) || event.rank.known()) continue;
      if (IsOfForeignProcess(facts, event)) {
        if (answer.open.empty() && facts.analyses.outcome.hangs())
          answer.open.push_back({"Was pid " + std::to_string(event.pid) +
                                     ", to which the kernel attributes a GPU error, a " +
                                     "rank of this job in a container with pids of its own?",
                                 "NCCL logs with INIT lines (busId), to tie the GPU to a rank"});
        continue;
      }
      // The program's own faults (13, 31) matter less than those of the hardware, and a tool that merely asked the GPU
      // less than a process that may be a rank.
      if (!lead || (IsOfAProgram(*lead) && !IsOfAProgram(event) && !MayFollowFrom(*lead, event)) ||
          (lead->Means(Meaning::of_service) && !event.Means(Meaning::of_service) &&
           IsOfAProgram(*lead) == IsOfAProgram(event)))
        lead = &event;
      // One sentence may tell of several.
      if (finding.evidence.size() < 3 &&
          (finding.evidence.empty() || finding.evidence.back().source.line != event.source.line))
        finding.evidence.push_back(
            CiteEvent(event, told ? "the " + DeviceWord(event.maker) + " error of an unknown rank"
                             : event.Means(Meaning::in_prose) ? "said in the text around the log"
                             : event.Means(Meaning::reported) ? "the driver cannot reach this GPU"
                             : event.kind == EventKind::nvlink_error && event.As<Xid>().number >= 0
                                 ? "the kernel's report of the NVSwitch error"
                                 : "the kernel's report of the GPU error"));
    }
    if (!lead) {
      JudgeFailedChecks(facts, answer);
      NoteMildXid(facts, answer);
      return answer;
    }
    finding.confidence = Confidence::possible;
    if (const Rank waited = IsOfAProgram(*lead) ? Rank{} : AwaitedOn(facts, *lead); waited.known()) {
      finding.ranks = {waited};
      finding.confidence = Confidence::likely;
    }
    if (finding.ranks.empty())
      answer.open.push_back(
          lead->pid > 0 && !lead->Means(Meaning::of_service)
              ? CannotTell{"Which rank was process " + std::to_string(lead->pid) + "?",
                           "the launcher's list of ranks and pids, or NCCL logs of that host "
                           "with INIT lines (pid, busId)"}
              : CannotTell{"Which rank used this GPU?",
                           lead->kind == EventKind::cuda_error && lead->maker == GpuMaker::amd
                               ? "RCCL logs of all ranks with INIT lines (busId), and rocminfo of the "
                                 "host, which lists the BDF of each node"
                           : SubjectOf(facts.incident, *lead).host.empty()
                               ? "NCCL logs of all ranks with INIT lines (busId)"
                               : "NCCL logs of that host with INIT lines (busId)"});
    if (lead->maker == GpuMaker::google && !answer.open.empty())
      answer.open = {{"Which worker's TPU failed first?", "the logs of all workers, with times"}};
  } else {
    finding.confidence = Confidence::certain;
    // Buffers of different sizes make NCCL's own kernels run over their ends.
    if (FollowsAMismatch(facts, finding.ranks)) {
      finding.confidence = Confidence::possible;
    } else {
      reason = TakeKernelReason(facts, finding);
    }
    if (reason && reason->kind != EventKind::pcie_error && !IsOfAProgram(*reason)) lead = reason;
  }
  CitePcieErrors(facts, *lead, finding);
  const bool hangs = facts.analyses.outcome.hangs() || facts.analyses.end.kind == JobEnding::hung;
  const JobEnding end = facts.analyses.end.kind;
  const bool failed = facts.analyses.outcome.first_failure || end == JobEnding::crashed || end == JobEnding::hung;
  finding.cause = "gpu-fault";
  // The error ended the rank's process; who times out later waits for one that is gone.
  const bool ended = std::any_of(finding.ranks.begin(), finding.ranks.end(), [&](Rank rank) {
    const RankLife* life = facts.analyses.life.Of(rank);
    return life && life->gpu_error && life->gpu_error->kind == EventKind::cuda_error &&
           EndedBeforeTimeouts(facts, *life->gpu_error);
  });
  // Where only tools saw the fault, nothing shows a job that ended.
  finding.status = hangs && !ended                               ? Status::hang
                   : failed || !lead->Means(Meaning::of_service) ? Status::crash
                                                                 : Status::degraded;
  finding.severity = hangs || failed ? Severity::critical : Severity::warning;
  // A kernel of a program that is no part of a job failed: that harms no other program.
  const bool elsewhere = lead->Means(Meaning::of_service) && IsOfAProgram(*lead);
  if (elsewhere) answer.open.clear();
  // The job got through: what the device reports is for whoever looks after the machine.
  const bool only_possible = finding.confidence == Confidence::possible && finding.ranks.empty();
  if (facts.analyses.outcome.ended_in_order || (only_possible && facts.analyses.end.said) || elsewhere) {
    finding.status = Status::healthy;
    finding.severity = Severity::note;
  }
  std::string what(WordOf(*lead));
  const auto& fault = lead->As<Xid>();
  if (lead->kind == EventKind::xid) {
    what = fault.words.empty() ? "Xid " + std::to_string(fault.number) : fault.words;
    if (const XidMeaning* entry = fault.words.empty() ? FindXid(fault.number) : nullptr)
      what += " (" + std::string(entry->name) + ")";
    what += OtherToldXids(facts.incident, *lead);
  } else if (lead->kind == EventKind::nvlink_error) {
    what = fault.number >= 0 ? "SXid " + std::to_string(fault.number) + " (NVSwitch error)" : "an NVLink error";
  } else if (lead->kind == EventKind::nccl_warning) {
    what = lead->As<Warning>().object;
  } else if (lead->kind == EventKind::ecc_error) {
    what = "an uncorrectable memory error";
  }
  // The driver names the device; the process it names may be a tool that merely asked it.
  const bool placed = lead->kind == EventKind::xid || lead->kind == EventKind::nvlink_error;
  const std::string device = DeviceWord(lead->maker);
  std::string who = "the " + device + " of " + RankWords(finding.ranks);
  const std::string pci = placed ? PciOfIncident(facts, *lead) : std::string();
  if (const std::string host = SubjectOf(facts.incident, *lead).host;
      !pci.empty() && (finding.ranks.empty() || (lead == reason && finding.ranks.size() > 1)))
    who = (lead->kind == EventKind::nvlink_error && fault.number >= 0 ? "the NVSwitch at PCI " : "the GPU at PCI ") +
          pci + (host.empty() ? "" : " on " + host) +
          (lead->Means(Meaning::of_service) && !elsewhere ? " (seen by " + fault.process + ")"
           : lead->pid > 0
               ? " (process " + std::to_string(lead->pid) + (fault.process.empty() ? "" : ", " + fault.process) + ")"
               : "");
  else if (finding.ranks.empty() && !SubjectOf(facts.incident, *lead).known())
    who = "a " + device;
  else if (finding.ranks.empty())
    who = "the " + device + " of " + SubjectWords(SubjectOf(facts.incident, *lead));
  const bool quoted = lead->kind == EventKind::cuda_error || lead->kind == EventKind::nccl_warning;
  finding.headline = who + (quoted ? " failed with '" + what + "'" : " reports " + what) +
                     (elsewhere               ? "; nothing shows that it belonged to a job"
                      : finding.ranks.empty() ? "; the log does not say which rank used it"
                                              : "");
  if (IsOfAKernel(*lead)) {
    const std::string program = !finding.ranks.empty() ? RankWords(finding.ranks)
                                                       : SubjectWords(SubjectOf(facts.incident, *lead)) +
                                                             (fault.process.empty() ? "" : " (" + fault.process + ")");
    finding.headline = program +
                       (finding.ranks.size() > 1 ? " made illegal memory accesses on their GPUs"
                                                 : " made an illegal memory access on its GPU") +
                       (finding.ranks.empty() ? "; the log does not say which rank it is" : "");
  }
  if (lead->kind == EventKind::xid && lead->Means(Meaning::reported))
    finding.headline =
        (fault.words.empty() ? "the driver cannot reach " + who + ", as happens when a GPU has fallen off the bus (Xid "
                             : who + " " + fault.words + " (Xid ") +
        std::to_string(fault.number) + ")" + (finding.ranks.empty() ? "; the log does not say which rank used it" : "");
  if (lead->kind == EventKind::xid && lead->Means(Meaning::setup_failed))
    finding.headline = who + " does not start: the driver cannot initialize it" +
                       (finding.ranks.empty() ? "; the log does not say which rank used it" : "");
  finding.fix =
      reason && reason->kind == EventKind::pcie_error ? LostLinkSteps(*reason) : GpuAdvice(facts.incident, *lead);
  if (lead->kind == EventKind::xid && finding.ranks.empty() && !elsewhere && !lead->Means(Meaning::in_prose)) {
    finding.headline += OtherDevices(facts, *lead);
    if (lead->As<Xid>().number != 74 && HasLinkErrors(facts.incident))
      finding.fix.insert(
          finding.fix.begin(),
          "The kernel log also reports NVLink or NVSwitch errors: before the next job look at nvidia-smi nvlink -s "
          "and -e on that host, and drain it if a link is down or its counters rise.");
  }
  if (MakerOfGpus(facts.incident, *lead) == GpuMaker::amd) SayOfAmd(finding);
  if (lead->maker == GpuMaker::google) SayOfTpu(finding);
  // What makes it a hang, where only the fault itself is told so far.
  if (const Event* told = facts.analyses.end.told; finding.status == Status::hang && finding.ranks.empty() && told &&
                                                   told->kind == EventKind::watchdog_timeout && told != lead) {
    const std::string sentence = EndSentence(facts, *told);
    finding.headline += "; " + sentence;
    finding.evidence.push_back(CiteEvent(*told, "the timeout"));
  }
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
    finding.affected_ranks = facts.standstill.waiters;
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kGpuFaultRule;
const Rule kGpuFaultRule = {"gpu-fault",
                            "A GPU, or a GPU kernel, failed",
                            "the kernel log (Xid, NVLink, ECC) or the rank's CUDA errors",
                            "The driver or CUDA reports a device error: a memory error, a broken NVLink, a "
                            "device that fell off the bus, or an illegal access by some kernel. The rank's "
                            "collectives never finish and its peers wait or crash.",
                            "Xid 43 and 45 after a kill are consequences. An illegal memory access is usually a bug in "
                            "an earlier kernel, not in NCCL, although a collective reports it. "
                            "A stalled GPU shows no error at all.",
                            {"Hardware Xids (48, 64, 74, 95, 119, 120): drain the node, reset or replace the GPU, run "
                             "dcgmi diag -r 3. Xid 79: reboot the node, since a reset does not reach the GPU. Xid 63 "
                             "and 94: reset the GPU when it is free.",
                             "Xid 13, 31 or 'illegal memory access': rerun with CUDA_LAUNCH_BLOCKING=1 or "
                             "compute-sanitizer to find the faulty kernel.",
                             "Restart the job without that node."},
                            {"Watch Xid messages and ECC counters of all nodes (DCGM exporter).",
                             "Run a short diagnostic on every node before long jobs."},
                            JudgeGpuFault};

}  // namespace tacet
