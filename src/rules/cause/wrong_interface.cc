// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "model/network_address.h"
#include "rules/findings/init_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_remedy.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr int64_t kUsualNode = 8;  // GPUs of a host: more ranks than that are on several, as a rule

// A connection to this address failed, or is tried again and again.
bool IsFailedConnect(const Event& event) {
  if (event.kind == EventKind::connect_failed) return true;
  // ssh goes by names of its own.
  if (event.kind == EventKind::store_unreachable) return event.As<StoreUnreachable>().how == Unreachable::store;
  const std::string_view id = event.As<Warning>().id;
  return event.kind == EventKind::nccl_warning && (id == "connect-failed" || id == "connect-retry");
}

const NetworkDevice& DeviceIn(const Event& event) { return event.As<NetworkDevice>(); }

std::string DeviceWords(const NetworkDevice& device) { return device.name + ":" + device.address; }

struct SetupNetwork {
  ToldEvents local;                  // processes that chose an interface which other hosts can hardly reach
  ToldEvents usable;                 // and those that chose an ordinary one
  std::vector<const Event*> failed;  // connections that failed
  bool completed = false;            // some communicator was set up
  bool called = false;               // collectives were issued
};

// A bridge of Docker or libvirt has the same address on every host; so has the loopback. Hosts that each have an
// address of their own may share a network that only looks like one.
bool SharesAddress(const Case& facts, const ToldEvents& told) {
  std::map<std::string, std::string> host_of;
  for (const Event* event : told.events) {
    const Process* process = ProcessOf(facts.incident, *event);
    if (!process || process->host.empty()) continue;
    const auto [known, is_new] = host_of.emplace(std::string(HostPart(DeviceIn(*event).address)), process->host);
    if (!is_new && known->second != process->host) return true;
  }
  return false;
}

// Gloo warns that it takes the loopback, also where all its peers are on this host; it names no address.
bool IsFallbackOfGloo(const Event& event) {
  return event.kind == EventKind::interface_used && DeviceIn(event).name == "lo" && DeviceIn(event).address.empty();
}

SetupNetwork ReadSetupNetwork(const Case& facts) {
  SetupNetwork network;
  const bool failed = std::any_of(facts.incident.events.begin(), facts.incident.events.end(), IsFailedConnect);
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::interface_used && (failed || !IsFallbackOfGloo(event)))
      TakeTold(facts, event,
               IsOnlyLocal(DeviceIn(event).name, DeviceIn(event).address) ? network.local : network.usable);
    if (IsFailedConnect(event)) network.failed.push_back(&event);
    network.completed |= event.kind == EventKind::init_completed;
  }
  network.called = std::any_of(facts.incident.streams.begin(), facts.incident.streams.end(),
                               [](const CallStream& stream) { return !stream.calls.empty(); });
  return network;
}

// The first failed connection whose target only its own host can reach.
const Event* FindLocalTarget(const SetupNetwork& network) {
  for (const Event* event : network.failed) {
    const std::string_view target = TargetOf(*event);
    if (!target.empty() && ScopeOf(target) != AddressScope::unknown) return event;
  }
  return nullptr;
}

// Every rank is seen, and all under the name of one host: NCCL counts nodes by NCCL_HOSTID, which may be set otherwise.
bool AllOnOneHost(const Incident& incident, int64_t ranks) {
  std::set<Rank> seen;
  std::string_view host;
  for (const Process& process : incident.processes) {
    if (!process.rank.known()) continue;
    if (process.host.empty() || (!host.empty() && process.host != host)) return false;
    host = process.host;
    seen.insert(process.rank);
  }
  return ranks > 0 && static_cast<int64_t>(seen.size()) >= ranks;
}

// More hosts than one, or more ranks than the processes that are seen here: there may be others elsewhere.
bool MaySpanHosts(const Case& facts) {
  int64_t ranks = facts.incident.world_size;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::init_started) ranks = std::max(ranks, event.As<CommunicatorSetup>().ranks);
  if (AllOnOneHost(facts.incident, ranks)) return false;
  const int64_t nodes = NodesOf(facts.incident);
  if (nodes >= 0) return nodes > 1;
  return ranks < 0 || ranks > static_cast<int64_t>(facts.incident.processes.size());
}

const Event* FindSetting(const Case& facts, const Event& chosen) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::environment && event.speaker == chosen.speaker &&
        (event.As<EnvironmentSetting>().name == "NCCL_SOCKET_IFNAME" ||
         event.As<EnvironmentSetting>().name == "GLOO_SOCKET_IFNAME"))
      return &event;
  return nullptr;
}

// The process that listens at this address, where its log tells.
const Event* FindOwner(const Case& facts, std::string_view target) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::interface_used && HostPart(DeviceIn(event).address) == HostPart(target)) return &event;
  return nullptr;
}

// The first three numbers of an IPv4 address: most networks between hosts are that large or larger.
std::string SubnetOf(std::string_view address) {
  const std::string_view host = HostPart(address);
  const size_t dot = host.rfind('.');
  return dot == std::string_view::npos ? "" : std::string(host.substr(0, dot));
}

// An interface of the same name that has an address of the same subnet on two hosts or more; empty: none is seen.
std::string SharedInterface(const Case& facts, const ToldEvents& usable) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> seen;  // by name and subnet
  for (const Event* event : usable.events) {
    const Process* process = ProcessOf(facts.incident, *event);
    const NetworkDevice& device = DeviceIn(*event);
    const std::string subnet = SubnetOf(device.address);
    if (!process || process->host.empty() || subnet.empty()) continue;
    auto& hosts = seen[{device.name, subnet}];
    hosts.emplace(process->host, HostPart(device.address));
    std::set<std::string> addresses;
    for (const auto& [host, address] : hosts) addresses.insert(address);
    if (hosts.size() > 1 && addresses.size() == hosts.size()) return device.name;
  }
  return "";
}

// Gloo listens where the name of its own host leads to.
std::vector<std::string> LoopbackSteps() {
  return {
      "Set GLOO_SOCKET_IFNAME to the interface that connects the hosts (ip -br addr), on every host and in the "
      "environment of every worker: Ray, srun and pods pass on only what they are told to.",
      "On each host: getent hosts $(hostname) must give an address that the other hosts can reach, neither 127.0.0.1 "
      "nor 127.0.1.1: correct /etc/hosts or the DNS."};
}

Finding FromChoice(const Case& facts, const SetupNetwork& network) {
  const Event& choice = *network.local.events.front();
  const NetworkDevice& chosen = DeviceIn(choice);
  Finding finding = ToldFinding(facts, "wrong-interface", network.local, "the interface that was chosen");
  // One line of a process is enough: "Bootstrap : Using ..." and "NET/Socket : Using ..." say the same.
  const auto& events = network.local.events;
  const bool same = events.size() > 1 && events[0]->speaker == events[1]->speaker;
  finding.evidence.resize(std::min<size_t>(finding.evidence.size(), same ? 1 : 2));
  finding.headline = TellerWords(network.local) + (TellSeveral(network.local) ? " use " : " uses ") + chosen.name +
                     (chosen.address.empty() ? "" : " (" + std::string(HostPart(chosen.address)) + ")") +
                     " to reach other hosts: " + std::string(WhyOnlyLocal(chosen.name, chosen.address)) +
                     RankUnknownWords(network.local);
  for (EvidenceItem& item : finding.evidence) item.excerpt.clear();  // the whole line: whose it is stands before it
  if (IsFallbackOfGloo(choice)) finding.fix = LoopbackSteps();
  if (const Event* setting = FindSetting(facts, choice)) {
    finding.evidence.push_back(CiteEvent(*setting, "the setting that forces it"));
    const auto& [name, value] = setting->As<EnvironmentSetting>();
    const std::string host = SubjectOf(facts.incident, *setting).host;
    finding.fix = {"Unset " + name + " (now " + value + (host.empty() ? "" : ", seen on " + host) +
                   "), or name the interface that connects the hosts "
                   "(ip -br addr; ip route get ADDRESS)."};
  }
  return finding;
}

Finding FromTarget(const Case& facts, const SetupNetwork& network, const Event& failed) {
  const std::string target(HostPart(TargetOf(failed)));
  ToldEvents complaining;
  for (const Event* event : network.failed)
    if (HostPart(TargetOf(*event)) == target) TakeTold(facts, *event, complaining);
  Finding finding = ToldFinding(facts, "wrong-interface", complaining, "the connection that failed");
  finding.affected_ranks = complaining.ranks;
  finding.ranks.clear();
  std::string interface;
  if (const Event* owner = FindOwner(facts, target)) {
    interface = DeviceIn(*owner).name;
    if (owner->rank.known()) finding.ranks = {owner->rank};
    std::erase(finding.affected_ranks, owner->rank);
    finding.evidence.push_back(CiteEvent(*owner, "what listens at this address"));
    finding.evidence.back().excerpt = DeviceWords(DeviceIn(*owner));
  }
  const bool store = failed.kind == EventKind::store_unreachable;
  if (failed.library == Library::mpi)
    finding.fix = {
        "Tell Open MPI which network the hosts share: mpirun --mca btl_tcp_if_include NET/BITS (and "
        "oob_tcp_if_include), "
        "or exclude the others: btl_tcp_if_exclude.",
        "On each host: ip -br addr shows which interface has that address."};
  finding.confidence = ScopeOf(target) == AddressScope::container ? Confidence::likely : Confidence::certain;
  finding.headline = TellerWords(complaining) + " cannot connect to " + target + ", " +
                     std::string(WhyOnlyLocal(interface, target)) + RankUnknownWords(complaining);
  if (ScopeOf(target) == AddressScope::loopback && failed.kind == EventKind::connect_failed &&
      failed.library != Library::mpi)
    finding.fix = LoopbackSteps();
  if (store)
    finding.fix = {"Set MASTER_ADDR (or --rdzv-endpoint) to an address of the first node that all nodes can reach."};
  if (target == "127.0.1.1" || target.starts_with("127.0.1."))
    finding.fix = {
        "/etc/hosts gives the host's own name 127.0.1.1, as Debian and Ubuntu do: remove that line, or set "
        "GLOO_SOCKET_IFNAME to the interface that connects the hosts."};
  return finding;
}

}  // namespace

extern const Rule kWrongInterfaceRule;

static RuleAnswer JudgeChosenAddress(const Case& facts) {
  RuleAnswer answer;
  const SetupNetwork network = ReadSetupNetwork(facts);
  if (network.called || facts.analyses.outcome.ended_in_order || !MaySpanHosts(facts)) return answer;
  const Event* target = FindLocalTarget(network);
  const int64_t nodes = NodesOf(facts.incident);
  // Nobody says how many hosts there are: so many ranks are seldom on one.
  const bool many = nodes < 0 && facts.incident.world_size > kUsualNode;
  const bool several = nodes > 1 || many;
  // A communicator that was set up proves that its members reach each other; of one process alone it may be its own.
  const bool alike = !network.completed && several && SharesAddress(facts, network.local);
  const bool troubled = !network.failed.empty() || alike || facts.analyses.outcome.hangs();
  if (!troubled || (!network.local && !target)) return answer;
  // On one host everybody reaches the loopback. Who shares the host with whom must be known before it is called wrong.
  const bool loopback = target ? ScopeOf(TargetOf(*target)) == AddressScope::loopback
                               : ScopeOf(DeviceIn(*network.local.events.front()).address) == AddressScope::loopback ||
                                     IsFallbackOfGloo(*network.local.events.front());
  const bool debian = target && HostPart(TargetOf(*target)).starts_with("127.0.1.");
  if (loopback && !several && !debian) {
    answer.open.push_back({"Does the job span several hosts? The loopback address connects only processes of one.",
                           "the logs of all ranks, or the number of nodes in the job's start command"});
    return answer;
  }
  Finding finding = network.local && !target   ? FromChoice(facts, network)
                    : target && !network.local ? FromTarget(facts, network, *target)
                                               : FromChoice(facts, network);
  if (target && network.local) finding.evidence.push_back(CiteEvent(*target, "a connection to such an address failed"));
  if (network.local && !target) {
    finding.confidence = network.failed.empty() && !alike ? Confidence::possible : Confidence::likely;
    if (alike)
      finding.headline += std::string("; ") + (HostsSeen(facts.incident).size() == 2 ? "both" : "several") +
                          " hosts announce this same address";
    if (!network.failed.empty())
      finding.evidence.push_back(CiteEvent(*network.failed.front(), "a connection that failed"));
  }
  if (loopback && many) finding.confidence = std::max(finding.confidence, Confidence::likely);
  // A log that ends within the set-up shows no failure yet.
  if (network.failed.empty() && !facts.analyses.outcome.hangs()) finding.status = Status::undetermined;
  finding.ranks_suffer = true;
  if (const std::string name = SharedInterface(facts, network.usable); !name.empty() && finding.fix.empty())
    finding.fix = {"Set NCCL_SOCKET_IFNAME=" + name + " (and GLOO_SOCKET_IFNAME=" + name +
                       "): the hosts have addresses of one subnet there.",
                   "On each host: ip -br addr, and ip route get ADDRESS for the address of another host."};
  if (finding.ranks.empty()) AskWhichRank({}, answer);
  // Settings of MPI are of no use where no line is MPI's.
  const auto of_mpi = [](const Event& event) { return event.library == Library::mpi; };
  if (finding.fix.empty() && std::none_of(facts.incident.events.begin(), facts.incident.events.end(), of_mpi))
    for (const std::string_view step : kWrongInterfaceRule.fix)
      if (!step.starts_with("Open MPI")) finding.fix.emplace_back(step);
  answer.findings.push_back(std::move(finding));
  return answer;
}

static RuleAnswer JudgeWrongInterface(const Case& facts) {
  RuleAnswer answer = JudgeChosenAddress(facts);
  if (auto finding = RemedyFinding(facts, "wrong-interface"); finding && answer.findings.empty())
    answer.findings.push_back(std::move(*finding));
  return answer;
}

const Rule kWrongInterfaceRule = {
    "wrong-interface",
    "NCCL, gloo or MPI chose an address that peers cannot reach",
    "NCCL logs (Bootstrap and NET/Socket lines, WARN about connect), or the errors of gloo, Open MPI and the store",
    "Each process announces to the others the address at which it listens. Here only its own host, or its own network "
    "segment, "
    "can reach that address: the loopback, a link-local address, a bridge of Docker, libvirt or a CNI plugin, a "
    "tunnel. Peers on other hosts are refused, find no route, or connect to themselves.",
    "Within one host all of these addresses work; if a connection fails there, the peer's process is gone or has not "
    "started yet. An ordinary address that does not answer points to a firewall, a route, or a dead peer.",
    {"Set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) to the interface that connects the hosts, or exclude the others: "
     "NCCL_SOCKET_IFNAME=^lo,docker,br-,virbr,veth,cni.",
     "Open MPI: mpirun --mca btl_tcp_if_include INTERFACE --mca oob_tcp_if_include INTERFACE; UCX: UCX_NET_DEVICES.",
     "On each host: ip -br addr, and ip route get ADDRESS for the address of another host.",
     "Containers: use the host's network (--network=host), or an overlay that all hosts share."},
    {"Set NCCL_SOCKET_IFNAME in the image or in /etc/nccl.conf of all hosts.",
     "Compare NCCL's Bootstrap lines of all hosts (grep -E 'Bootstrap ?: Using') before long jobs."},
    JudgeWrongInterface};

}  // namespace tacet
