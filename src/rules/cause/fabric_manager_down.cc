// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_finding.h"

namespace tacet {

// A service that is not needed on this host, and that somebody tries to start: no fault of any job.
static void NoteNoSwitch(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told = CollectTold(facts, [](const Event& event) {
    return event.kind == EventKind::fabric_down && event.As<CudaRefusal>().fabric == FabricFault::no_switch;
  });
  if (!told) return;
  Finding finding = ToldFinding(facts, "fabric-manager-down", told, "it finds no NVSwitch");
  finding.status = Status::healthy;
  finding.severity = Severity::note;
  finding.confidence = Confidence::likely;
  finding.headline =
      "the fabric manager does not start because the host has no NVSwitch: it is not needed there, and jobs run "
      "without it";
  finding.fix = {
      "Disable it: systemctl disable --now nvidia-fabricmanager. Only machines with NVSwitches (HGX, DGX) need it; "
      "NVLink bridges between two cards do not.",
      "If the machine should have NVSwitches: lspci | grep -i nvswitch, and dmesg -T | grep -i nvswitch, show whether "
      "the driver sees them; in a virtual machine they stay with the host."};
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeFabricManager(const Case& facts) {
  RuleAnswer answer;
  NoteNoSwitch(facts, answer);
  const ToldEvents told = CollectTold(facts, [](const Event& event) {
    return (event.kind == EventKind::fabric_down && event.As<CudaRefusal>().fabric != FabricFault::no_switch) ||
           IsFatalWarning(event, {"fabric-not-ready", "nvls-bind-failed", "mnnvl-unusable"});
  });
  if (!told) return answer;
  const Event& lead = *told.events.front();
  const auto& warning = lead.As<Warning>();
  Finding finding = ToldFinding(facts, "fabric-manager-down", told,
                                warning.id == "nvls-bind-failed" ? "the memory could not be bound"
                                : warning.id == "mnnvl-unusable" ? "NVLink between hosts cannot be used"
                                                                 : "the NVSwitch fabric is not ready");
  const std::string who = " " + AtTellerWords(told), unknown = HostUnknownWords(told);
  if (warning.id == "nvls-bind-failed") {
    // 1, invalid argument, has other reasons, too.
    finding.confidence = warning.number == 1 ? Confidence::possible : Confidence::likely;
    finding.headline = "NVLink multicast memory could not be bound" + who +
                       ": probably the fabric manager or an NVSwitch has a fault" + unknown;
    finding.fix = {
        "On that host: systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric must show "
        "Completed and Success.",
        "Test: run with NCCL_NVLS_ENABLE=0. If that helps, NVLS is the part that fails.",
        "With no job on the host, restart the fabric manager and reset the GPUs (nvidia-smi -r). If that does not "
        "help, drain the host."};
  } else if (warning.id == "mnnvl-unusable") {
    finding.confidence = Confidence::likely;
    finding.headline =
        "NVLink between hosts exists but does not work" + who + ": check the IMEX service and its channels" + unknown;
    finding.fix = {"nvidia-imex-ctl -N on all hosts of the domain; the service must be up everywhere.",
                   "Give the job its channel (/dev/nvidia-caps-imex-channels/channel0).",
                   "NCCL_MNNVL_ENABLE=0 works around it."};
  } else if (lead.As<CudaRefusal>().fabric == FabricFault::stopped) {
    finding.confidence = Confidence::likely;
    if (facts.analyses.end.kind != JobEnding::crashed && facts.analyses.end.kind != JobEnding::hung)
      finding.status = Status::degraded, finding.severity = Severity::warning;
    finding.headline =
        "the fabric manager does not run: CUDA does not start on the GPUs of an NVSwitch machine" + unknown;
  } else if (const auto& told_state = lead.As<CudaRefusal>(); told_state.fabric != FabricFault::not_started) {
    const bool listed = told_state.fabric == FabricFault::bad_status;
    finding.confidence = Confidence::likely;
    if (facts.analyses.end.kind != JobEnding::crashed && facts.analyses.end.kind != JobEnding::hung)
      finding.status = Status::degraded, finding.severity = Severity::warning;
    finding.headline = (listed ? "the GPUs are not part of a working NVLink fabric: nvidia-smi -q shows the status '" +
                                     told_state.words + "'"
                               : std::string("the driver's state of the NVLink fabric is out of date: it has lost "
                                             "contact with the fabric manager")) +
                       unknown;
    finding.fix = {
        "With no job on the host, restart the fabric manager (systemctl restart nvidia-fabricmanager) and reset the "
        "GPUs (nvidia-smi -r), or reboot; nvidia-smi -q | grep -A3 Fabric must then show Completed and Success.",
        "Compare the versions of driver, fabric manager and, between hosts, nvidia-imex: updating only one of them "
        "causes this.",
        listed ? "If the status returns: drain the host and have its NVSwitches and NVLinks checked."
               : "Until then NVLink SHARP can be switched off: NCCL_NVLS_ENABLE=0, NVSHMEM_DISABLE_NVLS=1."};
  } else {
    finding.headline = "CUDA cannot start" + who +
                       " (error 802, system not yet initialized): the fabric manager is not running or does not match "
                       "the driver" +
                       unknown;
  }
  // Everybody sits on the same fabric: it names nobody.
  if (!finding.ranks.empty() && finding.ranks.size() >= facts.analyses.life.ranks.size())
    finding.affected_ranks = std::move(finding.ranks), finding.ranks.clear();
  AskWhichHost(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kFabricManagerDownRule;
const Rule kFabricManagerDownRule = {
    "fabric-manager-down",
    "The NVSwitch fabric is not ready",
    "the ranks' output (CUDA error 802), NCCL logs (WARN about NVLS, MNNVL), nvidia-smi -q or the kernel log",
    "On machines with NVSwitch, a service called the fabric manager sets up the switches. Without it, or with a "
    "version other than the driver's, CUDA does not start (error 802), or the multicast memory of NVLink SHARP cannot "
    "be "
    "bound. "
    "Between hosts the IMEX service does the same.",
    "'NVLS multicast support is not available' at INFO level is not an error and costs only speed. A broken NVLink "
    "shows "
    "as "
    "Xid 74 or as an NVLink error.",
    {"On that host: systemctl status nvidia-fabricmanager; its version must equal the driver's (nvidia-smi).",
     "Start it: systemctl enable --now nvidia-fabricmanager; then nvidia-smi -q | grep -A3 Fabric must show Completed "
     "and Success.",
     "It cannot be fixed from inside a container: the service runs on the host."},
    {"Update driver and fabric manager together, and pin both versions.",
     "Check the fabric's state in the prolog of every job."},
    JudgeFabricManager};

}  // namespace tacet
