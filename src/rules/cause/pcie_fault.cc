// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct PcieDevice {
  const Event* worst = nullptr;
  int64_t times = 0;
};

ErrorSeverity SeverityOfPcie(const Event& event) { return event.As<HardwareError>().severity; }

std::string_view PcieSeverityWord(ErrorSeverity severity, bool one) {
  switch (severity) {
    case ErrorSeverity::fatal: return one ? "a fatal PCIe error" : "fatal PCIe errors";
    case ErrorSeverity::uncorrected: return one ? "an uncorrected PCIe error" : "uncorrected PCIe errors";
    default: return one ? "a corrected PCIe error" : "corrected PCIe errors";
  }
}

}  // namespace

static RuleAnswer JudgePcieFault(const Case& facts) {
  RuleAnswer answer;
  std::map<std::pair<std::string, std::string>, PcieDevice> devices;  // host, address
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::pcie_error || event.As<HardwareError>().device.empty()) continue;
    if (SeverityOfPcie(event) == ErrorSeverity::not_told) continue;
    PcieDevice& device = devices[{SubjectOf(facts.incident, event).host, event.As<HardwareError>().device}];
    device.times += std::max<int64_t>(event.As<HardwareError>().times, 1);
    if (!device.worst || SeverityOfPcie(event) > SeverityOfPcie(*device.worst)) device.worst = &event;
  }
  if (devices.empty()) return answer;
  const auto worst = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    // Of a port and of the GPU behind it the GPU matters.
    const auto weight = [](const PcieDevice& one) {
      return std::tuple(SeverityOfPcie(*one.worst), one.worst->As<HardwareError>().of_gpu, one.times);
    };
    return weight(a.second) < weight(b.second);
  });
  const auto& [place, device] = *worst;
  const ErrorSeverity severity = SeverityOfPcie(*device.worst);
  const bool corrected = severity == ErrorSeverity::corrected;
  Finding finding;
  finding.cause = "pcie-fault";
  // A link that corrects its errors works. What was not corrected is lost, and what becomes of it is the driver's.
  finding.severity = corrected ? Severity::note : Severity::warning;
  finding.status = corrected ? Status::healthy : Status::degraded;
  finding.confidence = corrected ? Confidence::certain : Confidence::possible;
  const bool failed = facts.analyses.end.kind == JobEnding::hung || facts.analyses.end.kind == JobEnding::crashed;
  // The driver of a GPU that cannot recover from a fatal error has lost the device, and whoever used it.
  const bool lost = severity == ErrorSeverity::fatal && device.worst->As<HardwareError>().of_gpu;
  if (lost && !facts.analyses.outcome.ended_in_order) {
    finding.severity = Severity::critical;
    finding.status = Status::crash;
  }
  if (severity == ErrorSeverity::fatal && failed && !facts.analyses.outcome.ended_in_order) {
    finding.severity = Severity::critical;
    finding.status = Status::undetermined;
  }
  finding.headline = "the kernel reports " + std::string(PcieSeverityWord(severity, device.times == 1)) +
                     (device.worst->As<HardwareError>().of_gpu ? " at the GPU " : " at the device ") + place.second +
                     (place.first.empty() ? "" : " on " + place.first) +
                     (device.times > 1 ? " (" + std::to_string(device.times) + " times)" : "") +
                     (corrected ? ": the link still works and retransmits what was lost" : "");
  if (devices.size() > 1)
    finding.headline += "; " + std::to_string(devices.size() - 1) +
                        (devices.size() == 2 ? " more device reports" : " more devices report") + " errors";
  finding.evidence.push_back(CiteEvent(*device.worst, "what the kernel reports"));
  for (const auto& [key, other] : devices)
    if (other.worst != device.worst && finding.evidence.size() < 3)
      finding.evidence.push_back(CiteEvent(*other.worst, "another device"));
  finding.fix = {
      "Look at the device: lspci -s " + place.second +
          " -vv; an error at a port (pcieport, root port) concerns the link to the device behind it (lspci -t).",
      corrected ? "Many per second cost bandwidth, and often precede a failure: compare LnkSta with LnkCap (speed, "
                  "width), reseat "
                  "the card or the riser."
                : "Drain the node; reseat or replace the card, the riser or the cable; look at the BMC's log."};
  if (!place.first.empty()) {
    Subject subject;
    subject.host = place.first;
    finding.subjects.push_back(subject);
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kPcieFaultRule;
const Rule kPcieFaultRule = {
    "pcie-fault",
    "A PCIe link reports errors",
    "the kernel log (AER, DPC, pciehp)",
    "A link between the CPU, a switch and a card lost data. Corrected errors are retried and cost only time; "
    "uncorrected ones reach the driver, and fatal ones take the device away.",
    "A GPU that falls off the bus is a separate cause (Xid 79, gpu-fault), and such errors often precede it. Corrected "
    "errors alone are only noted: many machines have a few.",
    {"lspci -s DEVICE -vv shows what it is, and the state of its link (LnkSta against LnkCap).",
     "Drain a node with uncorrected errors; reseat or replace card, riser or cable."},
    {"Watch the AER counters in /sys/bus/pci/devices/*/aer_dev_*."},
    JudgePcieFault};

}  // namespace tacet
