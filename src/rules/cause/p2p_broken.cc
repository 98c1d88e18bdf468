// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/events/event_words.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_remedy.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/words.h"

namespace tacet {

extern const Rule kP2pBrokenRule;

namespace {

// A process cannot hand out its own buffer (cudaIpcGetMemHandle): no other GPU was asked for anything yet.
bool IsExport(const Event& event) { return IsFatalWarning(event, {"ipc-export-failed"}); }

bool TellsPeerAccess(const Event& event) {
  return event.kind == EventKind::peer_access_failed || IsExport(event) ||
         IsFatalWarning(event, {"p2p-peering-failed", "nvlink-p2p-disabled"});
}

// The IOMMU stopped a GPU of this job. Faults of other devices say nothing about the way between GPUs.
bool IsGpuRefused(const Event& event) { return event.kind == EventKind::iommu_fault && event.rank.known(); }

// RCCL looks at the kernel's command line itself: what it misses there is the first thing to try.
void TellBootOption(const Case& facts, Finding& finding) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::nccl_warning || event.As<Warning>().object != "iommu=pt") continue;
    finding.evidence.push_back(CiteEvent(event, "the host was booted without iommu=pt"));
    const auto boot = std::find_if(finding.fix.begin(), finding.fix.end(), [](const std::string& step) {
      return step.starts_with("Bare metal: boot with iommu=pt");
    });
    if (boot != finding.fix.end()) std::rotate(finding.fix.begin(), boot, boot + 1);
    return;
  }
}

// NCCL's variables change what NCCL does, and no other library that uses the memory of peers: DeepEP, NVSHMEM, the
// all-reduce of vLLM.
bool IsOfNccl(const Case& facts, const ToldEvents& told) {
  if (std::any_of(told.events.begin(), told.events.end(),
                  [](const Event* event) { return event->kind != EventKind::peer_access_failed; }))
    return true;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::nccl_error ||
           (event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause) ||
           (event.kind == EventKind::exception && event.Means(Meaning::nccl_failed));
  });
}

constexpr std::string_view kTestOfNccl = "Test: run with NCCL_P2P_DISABLE=1.";

// The library that reports it needs the path, and only some have a switch for it.
void TellOtherLibrary(Finding& finding) {
  if (finding.fix.empty()) finding.fix.assign(kP2pBrokenRule.fix.begin(), kP2pBrokenRule.fix.end());
  std::erase_if(finding.fix, [](const std::string& step) { return step.starts_with(kTestOfNccl); });
  finding.fix.insert(
      finding.fix.begin(),
      "Test each pair of GPUs: python3 -c 'import torch; "
      "print(torch.cuda.can_device_access_peer(0, 1))'. The library in the cited lines needs peer access "
      "between all GPUs of the host; NCCL variables do not change it. Switch its own all-reduce off instead (vLLM, "
      "SGLang: --disable-custom-all-reduce; TensorRT-LLM: build the engine with --use_custom_all_reduce disable).");
}

// Who pasted the log has run the test already.
void SkipTest(const std::string& setting, Finding& finding) {
  if (finding.fix.empty()) finding.fix.assign(kP2pBrokenRule.fix.begin(), kP2pBrokenRule.fix.end());
  for (std::string& step : finding.fix)
    if (step.starts_with(kTestOfNccl))
      step = setting +
             " helps, as the text around the log says: direct access between GPUs is the part that fails. "
             "Keep the setting until the path is repaired; data then goes through host memory, which is slower.";
}

}  // namespace

static RuleAnswer JudgeP2pBroken(const Case& facts) {
  RuleAnswer answer;
  ToldEvents told = CollectTold(facts, TellsPeerAccess);
  const ToldEvents refused = CollectTold(facts, IsGpuRefused);
  if (!told && !refused) {
    if (auto finding = RemedyFinding(facts, "p2p-broken")) {
      TellBootOption(facts, *finding);
      answer.findings.push_back(std::move(*finding));
    }
    return answer;
  }
  const Outcome& outcome = facts.analyses.outcome;
  // The IOMMU's word alone names the device, not what the job felt of it.
  if (!told && outcome.ended_in_order) return answer;
  const bool said = static_cast<bool>(told);
  if (!said) told = refused;
  Finding finding = ToldFinding(facts, "p2p-broken", told,
                                said ? "a GPU cannot reach the memory of another" : "the IOMMU refused a GPU's access");
  for (const Event* event : refused.events)
    if (said && finding.evidence.size() < 4)
      finding.evidence.push_back(
          {event->source, event->text, "the IOMMU refused a GPU's access at " + event->As<IommuFault>().pci});
  const bool nvlink = std::any_of(told.events.begin(), told.events.end(), [](const Event* event) {
    return event->kind == EventKind::nccl_warning && event->As<Warning>().id == "nvlink-p2p-disabled";
  });
  const bool only_exports =
      said && std::all_of(told.events.begin(), told.events.end(), [](const Event* event) { return IsExport(*event); });
  for (size_t i = 0; said && i < told.events.size() && i < finding.evidence.size(); ++i)
    if (IsExport(*told.events[i])) finding.evidence[i].says = "a GPU buffer could not be shared with another process";
  const std::string who = TellerWords(told);
  const std::string_view word = WordOf(*told.events.front());
  finding.headline = nvlink         ? "GPUs joined by NVLink cannot reach each other's memory (" + who + ")"
                     : only_exports ? "a GPU buffer of " + who + " cannot be shared with another process of its host"
                     : said         ? "direct access between GPUs fails for " + who +
                                  (word.starts_with("p2p-") ? "" : ": " + std::string(word))
                            : "the IOMMU stops the GPU of " + who + " from reaching other devices";
  finding.headline += RankUnknownWords(told);
  // CUDA's error 1 alone (invalid argument), where NCCL opens a peer's memory.
  if (std::all_of(told.events.begin(), told.events.end(),
                  [](const Event* event) { return event->As<Warning>().number == 1; }))
    finding.confidence = Confidence::possible;
  if (only_exports) finding.confidence = Confidence::likely;
  if (!said) finding.confidence = Confidence::likely;
  // It takes two GPUs and what lies between them: whoever reports it is not at fault.
  finding.affected_ranks = std::move(finding.ranks);
  finding.ranks.clear();
  if (MakerOfGpus(facts.incident, *told.events.front()) == GpuMaker::amd) finding.fix = AmdPeerSteps();
  if (!IsOfNccl(facts, told))
    TellOtherLibrary(finding);
  else if (const Event* helped = FindToldWords(facts.incident, EventKind::told_remedy);
           helped && helped->As<ToldRemedy>().of == RemedyOf::peer_access)
    SkipTest(helped->As<ToldRemedy>().setting, finding);
  TellBootOption(facts, finding);
  AskWhichRank(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

const Rule kP2pBrokenRule = {
    "p2p-broken",
    "GPUs of a host cannot reach each other",
    "NCCL logs (WARN), the ranks' CUDA errors or the kernel log (IOMMU faults)",
    "NCCL lets GPUs of one host read and write each other's memory (CUDA IPC, peer access, NVLink). Here that path is "
    "reported as available but does not work: PCIe access control (ACS) or the IOMMU redirects it, containers hide the "
    "GPUs from "
    "each other, or NVLink is broken.",
    "'P2P is disabled' at INFO level is not an error: NCCL then uses shared memory, which is slower but correct. A "
    "hang in the very first collective, with all GPUs busy and no message at all, is often the same fault: "
    "NCCL_P2P_DISABLE=1 shows it.",
    {"Test: run with NCCL_P2P_DISABLE=1. If that helps, direct access between GPUs is the part that fails.",
     "On that host: nvidia-smi topo -p2p r; p2pBandwidthLatencyTest; dmesg | grep -iE 'dmar|amd-vi|iommu|xid'.",
     "Bare metal: boot with iommu=pt, or turn ACS off on the PCIe switches (setpci ... ECAP_ACS+0x6.w=0000).",
     "Containers: one IPC namespace (--ipc=host), all GPUs visible, no MIG devices of different GPUs.",
     "NVLink: if nvidia-smi nvlink -s shows errors, or dmesg an Xid 74, drain the node."},
    {"Run a two-GPU all_reduce_perf on every new machine and image."},
    JudgeP2pBroken};

}  // namespace tacet
