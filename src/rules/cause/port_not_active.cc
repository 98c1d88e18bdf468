// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

bool IsBad(const PortState& port) { return port.health != PortHealth::active; }

// "mlx5_0 (ib0)", "mlx5_0 port 2", "ib0"
std::string PortWords(const PortState& port) {
  if (port.device.empty()) return port.interface;
  return port.device + (port.port > 1 ? " port " + std::to_string(port.port) : "") +
         (port.interface.empty() ? "" : " (" + port.interface + ")");
}

std::string PortList(const std::vector<const Event*>& ports) {
  constexpr size_t kMost = 6;
  std::string list;
  for (size_t i = 0; i < std::min(ports.size(), kMost); ++i)
    list += (i == 0 ? "" : i + 1 == ports.size() ? " and " : ", ") + PortWords(ports[i]->As<PortState>());
  return list + (ports.size() > kMost ? " and " + std::to_string(ports.size() - kMost) + " more" : "");
}

// An IP interface on InfiniBand that is down shows nothing of the port where no such interface is up: RDMA needs no IP.
bool UsesIpOverInfiniband(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    const auto& port = event.As<PortState>();
    return event.kind == EventKind::port_state && port.infiniband && !port.interface.empty() && !IsBad(port);
  });
}

// What NCCL's own lines say of the devices that the job has, or shall use: "mlx5_0:1/IB", "mlx5_0,mlx5_1".
struct DeviceUsers {
  bool listed = false;       // NCCL lists its devices here
  std::string used, wished;  // each name between commas
};

DeviceUsers FindDeviceUsers(const Incident& incident) {
  DeviceUsers users;
  for (const Event& event : incident.events) {
    if (event.Means(Meaning::in_prose)) continue;
    if (event.kind == EventKind::device_found || event.kind == EventKind::interface_used) {
      const std::string& name = event.As<NetworkDevice>().name;
      users.listed |= event.kind == EventKind::device_found;
      users.used += "," + name.substr(0, name.find_first_of(":/")) + ",";
    }
    const auto& setting = event.As<EnvironmentSetting>();
    if (setting.name == "NCCL_IB_HCA" || setting.name == "NCCL_SOCKET_IFNAME" || setting.name == "UCX_NET_DEVICES")
      if (!setting.value.starts_with('^')) users.wished += "," + setting.value + ",";
  }
  for (char& c : users.wished)
    if (c == ':' || c == '=' || c == ' ') c = ',';
  return users;
}

bool Names(const std::string& list, const std::string& name) {
  return !name.empty() && list.find("," + name + ",") != std::string::npos;
}

bool NamesPort(const std::string& list, const PortState& port) {
  return Names(list, port.device) || Names(list, port.interface);
}

// The ports of one host.
struct HostPorts {
  std::vector<const Event*> bad, good;
};

// Whether somebody should look at it. Adapters have ports that nobody uses, and onboard ones more often than not:
// only an InfiniBand port, a host without any active one, and one that the job asks for are worth a verdict.
bool Matters(const PortState& port, const HostPorts& host, const DeviceUsers& users) {
  if (NamesPort(users.wished, port) || NamesPort(users.used, port)) return true;
  if (users.listed) return false;
  if (port.health == PortHealth::disabled) return port.infiniband && !host.good.empty();
  return port.infiniband || port.health == PortHealth::initializing || host.good.empty();
}

std::string_view HealthWord(PortHealth health) {
  switch (health) {
    case PortHealth::initializing: return "initializing";
    case PortHealth::disabled: return "disabled";
    default: return "down";
  }
}

// "mlx5_1 is down, mlx5_3 is initializing"
std::string BadWords(const std::vector<const Event*>& bad) {
  std::map<PortHealth, std::vector<const Event*>> by_health;
  for (const Event* event : bad) by_health[event->As<PortState>().health].push_back(event);
  std::string words;
  for (const auto& [health, ports] : by_health)
    words += (words.empty() ? "" : ", ") + PortList(ports) + (ports.size() == 1 ? " is " : " are ") +
             std::string(HealthWord(health));
  return words;
}

std::vector<std::string> PortSteps(const std::vector<const Event*>& bad, const HostPorts& host) {
  std::vector<std::string> steps;
  const auto any = [&](auto test) {
    return std::any_of(bad.begin(), bad.end(), [&](const Event* event) { return test(event->As<PortState>()); });
  };
  if (any([](const PortState& port) { return port.health == PortHealth::initializing; }))
    steps.push_back(
        "Initializing: the link is up, but no subnet manager has configured the port. Look at the subnet manager "
        "(sminfo, opensm, or the one of the switches).");
  const auto down = std::find_if(bad.begin(), bad.end(),
                                 [](const Event* event) { return event->As<PortState>().health == PortHealth::down; });
  if (down != bad.end()) {
    const std::string& name = (*down)->As<PortState>().device;
    const bool typed = !name.empty() && name.find_first_of(" ,") == std::string::npos;
    steps.push_back("Down: check the cable, the transceiver and the switch port (mlxlink -d " +
                    (typed ? name : std::string("DEVICE")) + " -m, iblinkinfo)." +
                    ((*down)->As<PortState>().polling
                         ? " Its physical state is Polling: it detects no link partner."
                         : " A port whose physical state is Polling detects no link partner."));
  }
  if (any([](const PortState& port) { return port.health == PortHealth::disabled; }))
    steps.push_back(
        "Disabled: the port is switched off by a setting. Enable it (ibportstate, mlxlink -d DEVICE -a EN) if it is "
        "meant to be used.");
  const std::string& first = bad.front()->As<PortState>().device;
  if (!host.good.empty() && !first.empty() && first.find(' ') == std::string::npos)
    steps.push_back("If it is not meant to be used, keep NCCL off it: NCCL_IB_HCA=^" + first +
                    " (UCX: UCX_NET_DEVICES).");
  return steps;
}

// The links of the GPUs of one host, by number.
using LinksByNumber = std::map<int64_t, HostPorts>;

// Cards without a bridge list links that nothing is connected to. One that all other GPUs of the host have is missed.
void JudgeNvlinks(const LinksByNumber& links, RuleAnswer& answer) {
  constexpr size_t kFewestOthers = 2;
  std::map<std::string, std::vector<const Event*>> missed;  // by GPU
  for (const auto& [number, ports] : links)
    if (ports.bad.size() == 1 && ports.good.size() >= kFewestOthers)
      missed[ports.bad.front()->As<PortState>().device].push_back(ports.bad.front());
  for (const auto& [gpu, events] : missed) {
    const auto& port = events.front()->As<PortState>();
    std::string numbers;
    for (size_t i = 0; i < events.size(); ++i)
      numbers += (i == 0                   ? ""
                  : i + 1 == events.size() ? " and "
                                           : ", ") +
                 std::to_string(events[i]->As<PortState>().port);
    Finding finding;
    finding.cause = "port-not-active";
    finding.severity = Severity::warning;
    finding.status = Status::degraded;
    finding.confidence = Confidence::certain;
    finding.headline = (events.size() == 1 ? "NVLink link " + numbers + " of " : "NVLink links " + numbers + " of ") +
                       gpu + (port.host.empty() ? "" : " on " + port.host) + (events.size() == 1 ? " is" : " are") +
                       " inactive, while the other GPUs have " + (events.size() == 1 ? "it" : "them");
    for (const Event* event : events)
      if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "the state of this link"));
    finding.fix = {
        "On that host: nvidia-smi nvlink -e (errors of each link), dmesg -T | grep -iE 'xid|nvlink|nvswitch', "
        "and the log of the fabric manager.",
        "With no job on the host, reset its GPUs together (nvidia-smi -r), or reboot. If the link stays "
        "inactive, drain the host and have the GPU and the baseboard checked."};
    answer.findings.push_back(std::move(finding));
  }
}

// The links of one GPU alone: there is nothing to compare with, and a part of them that is inactive is worth a note.
void NoteNvlinks(const LinksByNumber& links, RuleAnswer& answer) {
  std::map<std::string, HostPorts> gpus;
  for (const auto& [number, ports] : links) {
    for (const Event* event : ports.bad) gpus[event->As<PortState>().device].bad.push_back(event);
    for (const Event* event : ports.good) gpus[event->As<PortState>().device].good.push_back(event);
  }
  if (gpus.size() != 1) return;
  const auto& [gpu, ports] = *gpus.begin();
  if (ports.bad.empty() || ports.good.empty()) return;
  Finding finding;
  finding.cause = "port-not-active";
  finding.severity = Severity::note;
  finding.status = Status::healthy;
  finding.confidence = Confidence::certain;
  finding.headline = std::to_string(ports.bad.size()) + " of the " +
                     std::to_string(ports.bad.size() + ports.good.size()) + " NVLink links of " + gpu +
                     (ports.bad.size() == 1 ? " is inactive" : " are inactive") +
                     "; that is a fault if all links of the host's other GPUs are active";
  for (const Event* event : ports.bad)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "the state of this link"));
  finding.fix = {
      "Compare with the other GPUs, and with another host of the same kind: nvidia-smi nvlink -s, nvidia-smi topo -m.",
      "If it should be active: dmesg -T | grep -iE 'xid|nvlink|nvswitch', nvidia-smi nvlink -e, and the state of the "
      "fabric manager (systemctl status nvidia-fabricmanager)."};
  answer.findings.push_back(std::move(finding));
}

// ibdev2netdev prints "(Down)" for an InfiniBand port without IP, too.
Finding InterfaceNote(const std::vector<const Event*>& ports, const std::string& host) {
  Finding finding;
  finding.cause = "port-not-active";
  finding.severity = Severity::note;
  finding.status = Status::healthy;
  finding.confidence = Confidence::certain;
  finding.headline = "the IP " + std::string(ports.size() == 1 ? "interface of " : "interfaces of ") + PortList(ports) +
                     (host.empty() ? "" : " on " + host) + (ports.size() == 1 ? " is" : " are") +
                     " down; that does not show whether the InfiniBand " +
                     (ports.size() == 1 ? "port is" : "ports are") + " active, and RDMA does not need IP";
  for (const Event* event : ports)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*event, "the state of the IP interface"));
  finding.fix = {"Look at the ports themselves: ibstat, ibv_devinfo or rdma link (State: Active).",
                 "If the job is to use sockets over them (NCCL_SOCKET_IFNAME), set the interfaces up: ip link set "
                 "INTERFACE up, with an address."};
  return finding;
}

}  // namespace

static RuleAnswer JudgePortNotActive(const Case& facts) {
  RuleAnswer answer;
  std::map<std::string, HostPorts> hosts;
  std::map<std::string, LinksByNumber> links;
  for (const Event& event : facts.incident.events)
    if (const auto& port = event.As<PortState>(); event.kind == EventKind::port_state && port.nvlink) {
      HostPorts& ports = links[port.host][port.port];
      (IsBad(port) ? ports.bad : ports.good).push_back(&event);
    }
  for (const auto& [host, of_host] : links) {
    const size_t before = answer.findings.size();
    JudgeNvlinks(of_host, answer);
    if (answer.findings.size() == before) NoteNvlinks(of_host, answer);
  }
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::port_state && !event.As<PortState>().nvlink) {
      HostPorts& host = hosts[event.As<PortState>().host];
      (IsBad(event.As<PortState>()) ? host.bad : host.good).push_back(&event);
    }
  const DeviceUsers users = FindDeviceUsers(facts.incident);
  const bool ip_used = UsesIpOverInfiniband(facts.incident);
  for (auto& [name, host] : hosts) {
    // Only what an IP interface shows, which is not the port itself.
    const auto quiet = std::stable_partition(host.bad.begin(), host.bad.end(), [&](const Event* event) {
      const auto& port = event->As<PortState>();
      return !port.of_interface || ip_used || Names(users.wished, port.interface);
    });
    const std::vector<const Event*> interfaces(quiet, host.bad.end());
    if (!interfaces.empty()) answer.findings.push_back(InterfaceNote(interfaces, name));
    host.bad.erase(quiet, host.bad.end());
    if (host.bad.empty()) continue;
    const bool matters = std::any_of(host.bad.begin(), host.bad.end(),
                                     [&](const Event* event) { return Matters(event->As<PortState>(), host, users); });
    const bool wished = std::any_of(host.bad.begin(), host.bad.end(), [&](const Event* event) {
      return NamesPort(users.wished, event->As<PortState>());
    });
    Finding finding;
    finding.cause = "port-not-active";
    finding.severity = matters ? Severity::warning : Severity::note;
    finding.status = matters ? Status::degraded : Status::healthy;
    // The state is what the tool prints; whether the job uses it is another matter.
    const bool unseen = std::all_of(host.bad.begin(), host.bad.end(),
                                    [](const Event* event) { return event->As<PortState>().of_interface; });
    finding.confidence = unseen ? Confidence::possible : Confidence::certain;
    const size_t all = host.bad.size() + host.good.size();
    finding.headline =
        (all == 1 ? std::string("the network port listed here")
                  : std::to_string(host.bad.size()) + " of the " + std::to_string(all) + " network ports listed") +
        (name.empty() ? "" : " on " + name) + (host.bad.size() == 1 ? " is" : " are") +
        " not active: " + BadWords(host.bad) +
        (host.good.empty() ? "" : "; " + PortList(host.good) + (host.good.size() == 1 ? " is active" : " are active")) +
        (wished    ? "; the job is set to use " + std::string(host.bad.size() == 1 ? "it" : "one of them")
         : matters ? ""
                   : "; nothing here shows that the job uses " + std::string(host.bad.size() == 1 ? "it" : "them"));
    for (const Event* event : host.bad)
      if (finding.evidence.size() < 3)
        finding.evidence.push_back(
            CiteEvent(*event, "the state of " + PortWords(event->As<PortState>()) +
                                  (event->As<PortState>().polling ? "; its physical state is Polling" : "")));
    finding.fix = PortSteps(host.bad, host);
    if (!name.empty()) {
      Subject subject;
      subject.host = name;
      finding.subjects.push_back(subject);
    }
    answer.findings.push_back(std::move(finding));
  }
  return answer;
}

extern const Rule kPortNotActiveRule;
const Rule kPortNotActiveRule = {
    "port-not-active",
    "A network port is not active",
    "ibstat, ibstatus, ibv_devinfo, ibdev2netdev, iblinkinfo, rdma link, ip -br link or nvidia-smi nvlink -s of a host",
    "A port of a network adapter is down or waits for its subnet manager, or a GPU lacks an NVLink link that the other "
    "GPUs of its host have. A job that is meant to use it runs over fewer adapters or links, over a slower network, or "
    "not at all.",
    "Many hosts have unused ports, especially onboard ones: they are noted but not counted as a cause. The interface "
    "on an InfiniBand port may be down while the port itself is active and used.",
    {"Check the cable, the transceiver and the switch port (mlxlink -d DEVICE -m, iblinkinfo).",
     "A port that stays in Initializing: look at the subnet manager (sminfo)."},
    {"Compare the ports of all hosts before a job starts (tacet preflight)."},
    JudgePortNotActive};

}  // namespace tacet
