// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "rules/rule.h"
#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {

extern const Rule kLinkErrorsRule;

// The counters run since somebody cleared them: whether they rise now a second reading shows.
static RuleAnswer JudgeLinkErrors(const Case& facts) {
  RuleAnswer answer;
  for (const Event& event : facts.incident.events) {
    const auto& port = event.As<PortErrors>();
    if (event.kind != EventKind::port_errors || port.counted.empty()) continue;
    Finding finding;
    finding.cause = "link-errors";
    finding.severity = Severity::warning;
    finding.status = Status::degraded;
    finding.confidence = Confidence::likely;
    const bool nvlink = port.device.starts_with("GPU ");
    finding.headline = (nvlink ? "NVLink link " : "port ") + std::to_string(port.port) + " of " + port.device +
                       (port.host.empty() ? "" : " on " + port.host) + " counted " + ListWords(port.counted) +
                       "; the counters do not show since when";
    finding.evidence.push_back(CiteEvent(event, nvlink ? "the counters of this link" : "the counters of this port"));
    if (nvlink)
      finding.fix = {
          "Read them again under load (nvidia-smi nvlink -e): only counters that rise matter; nvidia-smi nvlink -re "
          "clears them.",
          "dmesg -T | grep -iE 'xid|sxid' on that host: Xid 74 or 144 to 150 name the link that failed.",
          "If they rise: drain the host, reset its GPUs together, and have the GPU and the baseboard checked."};
    if (port.device.starts_with("LID ")) {
      const std::string lid = port.device.substr(4);
      finding.fix = {"Clear the counters and read them again under load: perfquery -R " + lid + " " +
                         std::to_string(port.port) + ", then perfquery " + lid + " " + std::to_string(port.port) +
                         " after a few minutes. Only counters that rise matter.",
                     std::string(kLinkErrorsRule.fix[1]),
                     "Take the node out of service as long as the link keeps going down; smpquery nodedesc " + lid +
                         " names the node or the switch of this LID."};
    }
    answer.findings.push_back(std::move(finding));
  }
  return answer;
}

const Rule kLinkErrorsRule = {
    "link-errors",
    "A network link counts errors",
    "perfquery of a port, or nvidia-smi nvlink -e",
    "The error counters of a port are above the limits of ibqueryerrors. Symbol errors and recoveries come from a bad "
    "cable, transceiver or connector; a link that goes down can end the jobs that use it.",
    "Counters accumulate from the time they were last cleared, and rise a little when a host reboots: a few link downs "
    "from reboots do not matter. A counter at its highest value has stopped counting.",
    {"Clear the counters and read them again under load: perfquery -R LID PORT, then perfquery after a few minutes. "
     "Only counters that rise matter.",
     "If they rise: mlxlink -d DEVICE -m -e, clean or replace the cable and the transceiver, and look at the other end "
     "of "
     "the link (iblinkinfo, ibqueryerrors).",
     "Take the node out of service as long as the link keeps going down; smpquery nodedesc LID names the node or the "
     "switch of a LID."},
    {"Watch symbol errors and link downs of all ports (ibqueryerrors, or the counters in /sys/class/infiniband)."},
    JudgeLinkErrors};

}  // namespace tacet
