// SPDX-License-Identifier: Apache-2.0
#include "rules/words/connect_advice.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text_scan.h"
#include "rules/words/words.h"

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

std::string AddressOfDigits(const std::string& address) {
  constexpr size_t kMostDigits = 10;
  const std::string name = address.substr(0, address.rfind(':'));
  if (name.empty() || name.size() > kMostDigits || name.find_first_not_of("0123456789") != std::string::npos) return "";
  const uint64_t number = std::strtoull(name.c_str(), nullptr, 10);
  if (number > UINT32_MAX) return "";
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8)
    out += (out.empty() ? "" : ".") + std::to_string((number >> static_cast<unsigned>(shift)) & 0xffU);
  return out;
}

std::vector<std::string> NumericNameSteps() {
  return {
      "Give the address itself, or 127.0.0.1 where all processes are on one host: MASTER_ADDR, --rdzv-endpoint, "
      "torchrun --local-addr.",
      "Or give the host or the container a name with a letter in it (docker run --hostname; hostnamectl)."};
}

std::vector<std::string> NcclConnectSteps(const std::string& address) {
  return {"From the host that reports it: ping and nc -zv to " +
              (address.empty() ? "the hosts of its peers" : address) +
              "; no answer means that the host is down, or that a firewall or a missing route is in the way.",
          "Set NCCL_SOCKET_IFNAME to the interface that connects the hosts; compare the addresses in NCCL's Bootstrap "
          "lines of all hosts (grep -E 'Bootstrap ?: Using').",
          "Open the ports between the nodes (NCCL uses ephemeral ports)."};
}

std::vector<std::string> LibraryConnectSteps(const Event& failure, const std::string& address) {
  const std::string look = "Look at the process that should listen at " + (address.empty() ? "that address" : address) +
                           ": one that has ended refuses, a firewall lets the attempt time out.";
  if (failure.library == Library::ucx)
    return {look,
            "Name the network that all hosts share: UCX_NET_DEVICES (ip -br addr on both hosts). Addresses of docker0 "
            "or virbr0 reach no other host.",
            "Open the ports between the hosts: UCX uses ephemeral ports."};
  if (failure.library == Library::mpi && ContainsAny(failure.text, {"HYDU_", "MPID_nem"}))
    return {look,
            "Name the network that the hosts share: mpiexec -iface INTERFACE; check that /etc/hosts does not give a "
            "host's own name 127.0.0.1 or 127.0.1.1.",
            "Open the ports between the hosts, or limit them: MPIR_CVAR_CH3_PORT_RANGE, I_MPI_PORT_RANGE."};
  if (failure.library == Library::other && !address.empty())
    return {
        look,
        "Check that it is the address of the right host of this run, and the same on all hosts: a setting, a file or "
        "a job's metadata may be left over from an earlier run.",
        "From a host that waits: nc -zv to it; open the port between the hosts."};
  return {};
}

std::string BlockedWords(const ToldEvents& told) {
  return "nothing that " + TellerWords(told) + (TellSeveral(told) ? " send" : " sends") +
         " to a peer over EFA gets through: most likely the security group of one of the two instances blocks it" +
         RankUnknownWords(told);
}

std::vector<std::string> BlockedSteps() {
  return {
      "Configure the security group of all instances of the job to allow all traffic to and from itself, in both "
      "directions: inbound and outbound rules that name the group, not an address range.",
      "Check that all instances are in one subnet: EFA traffic is not routed. Then fi_pingpong -p efa between two of "
      "them."};
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
