// SPDX-License-Identifier: Apache-2.0
#include "rules/connect_advice.h"

#include "rules/words.h"

namespace tacet {

std::string TcpConnectWords(const Event& failure, const ToldEvents& told) {
  const std::string& address = failure.As<Warning>().object;
  const std::string whom = failure.peer.known() ? RankWords({failure.peer}) : std::string("a peer");
  return TellerWords(told) + " cannot connect to " + (address.empty() ? whom : whom + " at " + address) +
         " over TCP: no answer arrived in time" + RankUnknownWords(told);
}

std::vector<std::string> TcpConnectSteps(const Event& failure, const ToldEvents& told) {
  std::string target = failure.As<Warning>().object;
  if (const size_t colon = target.rfind(':'); colon != std::string::npos) target[colon] = ' ';
  const std::string from = told.hosts.size() == 1 ? "From " + *told.hosts.begin() : "From the host that reports it";
  return {from + ": ping, and nc -zv " + (target.empty() ? "HOST PORT" : target) +
              ". No answer means that the host is down, or that a firewall or a missing route is in the way; a process "
              "that has ended would refuse the connection.",
          "Name the network that all hosts share: UCX_NET_DEVICES (ip -br addr on both hosts).",
          "Open the ports between the hosts: UCX uses ephemeral ports."};
}

void TellGidSetting(const Case& facts, const Event& failure, Finding& finding) {
  for (const Event& event : facts.incident.events) {
    const auto& setting = event.As<EnvironmentSetting>();
    if (event.kind != EventKind::environment || setting.name != "NCCL_IB_GID_INDEX" || event.speaker != failure.speaker)
      continue;
    finding.headline += "; NCCL_IB_GID_INDEX is set to " + setting.value + " there";
    finding.evidence.push_back(CiteEvent(event, "the GID index is set"));
    finding.fix.insert(finding.fix.begin(),
                       "On RoCE set NCCL_IB_GID_INDEX to the index of the RoCE v2 address (show_gids; often 3), the "
                       "same on all hosts. NCCL 2.21 and newer choose it themselves where it is not set.");
    return;
  }
}

void TellInactivePorts(const Case& facts, Finding& finding) {
  std::vector<const Event*> bad;
  for (const Event& event : facts.incident.events) {
    const auto& port = event.As<PortState>();
    if (event.kind != EventKind::port_state || port.nvlink) continue;
    if (port.health == PortHealth::active) return;
    bad.push_back(&event);
  }
  if (bad.empty()) return;
  const std::string& name = bad.front()->As<PortState>().device;
  const std::string which = name.empty() || bad.size() > 1 ? "the ports" : name;
  finding.headline += bad.size() == 1 ? "; the only adapter port that is listed is not active"
                                      : "; none of the adapter ports that are listed is active";
  finding.evidence.push_back(CiteEvent(*bad.front(), "the state of the port"));
  finding.fix.insert(finding.fix.begin(),
                     "Bring " + which +
                         " up first: cable and transceiver, ip link set INTERFACE up, and the switch "
                         "port; ibstat or rdma link must show Active.");
}

}  // namespace tacet
