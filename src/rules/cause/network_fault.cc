// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/nccl_warnings.h"
#include "rules/findings/fallback_findings.h"
#include "rules/first_end.h"
#include "rules/unexplained/passed_trouble.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/connect_advice.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Verbs completion status that speaks of the fabric itself; a flush (5) only follows another error on the same queue
// pair, and a local protection error (4) is the host's.
bool IsFirstHandStatus(int64_t status) { return status != 4 && status != 5 && status >= 0; }

bool IsWarning(const Event& event, std::string_view id) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().id == id;
}

// The adapter speaks of its own port.
bool IsOwnPort(const Event& event) {
  return event.kind == EventKind::nccl_warning &&
         (event.As<Warning>().id == "ib-async-fatal" || event.As<Warning>().id == "ib-device-failed");
}

bool SpeaksOfNetwork(const Event& event) {
  if (event.kind == EventKind::link_down) return true;
  if (event.kind != EventKind::nccl_warning) return false;
  const auto& warning = event.As<Warning>();
  if (warning.id == "ib-completion-error") return IsFirstHandStatus(warning.number);
  if (warning.id == "net-device-setup-failed" || warning.id == "net-plugin-failed")
    return !IsSurvivedSetup(event);  // NCCL went on with another network
  return IsOwnPort(event) || warning.id == "net-peer-unresponsive" || warning.id == "ib-modify-qp-failed" ||
         warning.id == "net-peer-blocked" || warning.id == "net-plugin-timeout" || warning.id == "ucx-failed" ||
         warning.id == "transfer-failed";
}

// "No answer" (12): either the path failed or the peer is gone, and this end cannot tell which.
bool IsNoAnswer(const Event& event) {
  constexpr int64_t kRetriesExceeded = 12;
  return (IsWarning(event, "ib-completion-error") || IsWarning(event, "ucx-failed") ||
          IsWarning(event, "transfer-failed")) &&
         event.As<Warning>().number == kRetriesExceeded;
}

// NCCL gives up: the error reaches the program.
bool IsFatal(const Event& event) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause;
}

// Who is at fault: the one address that several ranks cannot reach, or the one rank that cannot reach several.
std::vector<Rank> CommonEnd(const Case& facts, const std::vector<const Event*>& events) {
  std::map<std::string, std::set<Rank>> complaints;  // address -> who complains
  std::set<Rank> complaining, own_port;
  for (const Event* event : events)
    if (event->rank.known() && IsOwnPort(*event)) own_port.insert(event->rank);
  if (!own_port.empty()) return {own_port.begin(), own_port.end()};
  for (const Event* event : events) {
    if (!event->rank.known()) continue;
    complaining.insert(event->rank);
    if (const std::string& address = event->As<Warning>().object;
        !address.empty() && !IsWarning(*event, "ib-modify-qp-failed"))  // that names its own adapter
      complaints[address].insert(event->rank);
  }
  // One rank that cannot reach a peer it names: either end may be at fault. The same where nobody else has a word.
  if (complaining.size() == 1)
    return complaints.empty() && facts.analyses.life.Present() > 1 ? std::vector<Rank>{*complaining.begin()}
                                                                   : std::vector<Rank>{};
  if (complaints.size() != 1) return {};
  // Ranks of one host that cannot reach another host: either end may be at fault.
  std::set<std::string> hosts;
  for (const Rank rank : complaining)
    if (const auto process = facts.incident.process_of.find(rank); process != facts.incident.process_of.end())
      hosts.insert(facts.incident.processes[process->second].host);
  if (hosts.size() < 2) return {};
  std::set<Rank> owners;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::interface_used && event.rank.known() &&
        event.As<NetworkDevice>().address.starts_with(complaints.begin()->first) && !complaining.contains(event.rank))
      owners.insert(event.rank);
  return {owners.begin(), owners.end()};
}

// " (peer 10.0.3.7)": those that cannot be reached. A name that somebody blanked out (xxx.xxx.xxx.xxx) tells nothing.
std::string PeerWords(const std::vector<const Event*>& events) {
  std::set<std::string> peers;
  for (const Event* event : events) {
    std::string address = event->As<Warning>().object;
    address.resize(std::min(address.size(), address.find('<')));  // "10.0.3.7<54862>": the port tells nothing
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    if ((IsWarning(*event, "ib-completion-error") || IsWarning(*event, "net-peer-unresponsive")) &&
        std::any_of(address.begin(), address.end(), is_digit))
      peers.insert(address);
  }
  constexpr size_t kMost = 3;
  if (peers.empty()) return "";
  if (peers.size() > kMost) return ", of " + std::to_string(peers.size()) + " peers";
  std::string list;
  for (const std::string& peer : peers) list += (list.empty() ? "" : ", ") + peer;
  return (peers.size() == 1 ? ", peer " : ", peers ") + list;
}

// "rank 3 reports transport errors, peer 10.0.3.7"; "process 4121 on gpu17 reports ..."; by whom it is not told.
std::string ReportWords(const std::vector<const Event*>& events, const ToldEvents& told) {
  const size_t tellers = HostsTell(told)      ? told.hosts.size()
                         : told.ranks.empty() ? told.rankless.size()
                                              : told.ranks.size();
  const std::string peers = PeerWords(events);
  if (tellers == 0 && told.hosts.empty()) return "; the log does not say which rank reports it" + peers;
  return ": " + TellerWords(told) + (tellers > 1 ? " report" : " reports") + " transport errors" + peers +
         RankUnknownWords(told);
}

// Two adapters cannot be connected: the set-up fails, before any data flows.
std::string ConnectWords(const Event& lead, const ToldEvents& told) {
  const std::string& port = lead.As<Warning>().object;
  if (const auto& warning = lead.As<Warning>(); warning.gid == GidProblem::empty)
    return "GID index " + std::to_string(warning.gid_index) + (port.empty() ? "" : " of " + port) + " is empty " +
           AtTellerWords(told) + ", so the adapter cannot be connected" + RankUnknownWords(told);
  return "two network adapters cannot be connected: " +
         std::string(lead.library == Library::nvshmem ? "NVSHMEM cannot set up a queue pair "
                                                      : "ibv_modify_qp fails ") +
         AtTellerWords(told) + (port.empty() ? "" : " (" + port + ")") + RankUnknownWords(told);
}

// A call on the host itself fails, before anything is sent.
std::string DeviceSetupWords(const ToldEvents& told) {
  return "the network device cannot be set up " + AtTellerWords(told) +
         ": a call to its network library fails on its own host, before anything is sent" + RankUnknownWords(told);
}

// " got no answer from peer 10.0.3.7"
std::string WithoutAnswer(const std::vector<const Event*>& events) {
  const std::string peers = PeerWords(events);
  return " got no answer from " + (peers.empty() ? "a peer" : peers.substr(peers.starts_with(", of ") ? 5 : 2));
}

std::string NoAnswerWords(const std::vector<const Event*>& events, const ToldEvents& told) {
  return TellerWords(told) + WithoutAnswer(events) +
         ": the network between them failed, or the peer's process is gone" + RankUnknownWords(told);
}

// "the port mlx5_4:1 of gpu17 reports an error; rank 3 got no answer from peer 10.0.3.7"
std::string OwnPortWords(const Case& facts, const Event& port, const std::vector<const Event*>& events) {
  const std::string& name = port.As<Warning>().object;
  const Subject owner = SubjectOf(facts.incident, port);
  ToldEvents others;
  for (const Event* event : events)
    if (IsNoAnswer(*event)) TakeTold(facts, *event, others);
  const bool of_port = port.As<Warning>().number == 1;
  return (of_port ? "the network port" : "the network adapter") + (name.empty() ? "" : " " + name) + " of " +
         (owner.host.empty()   ? SubjectWords(owner)
          : owner.rank.known() ? owner.host + " (" + SubjectWords(owner) + ")"
                               : owner.host) +
         (of_port ? " went down" : " failed") + (others ? "; " + TellerWords(others) + WithoutAnswer(events) : "");
}

std::vector<std::string> OwnPortSteps(const Case& facts, const Event& port) {
  const std::string host = SubjectOf(facts.incident, port).host, &name = port.As<Warning>().object;
  const std::string device = name.substr(0, name.find(':'));
  if (port.As<Warning>().number != 1)
    return {"On " + (host.empty() ? "that host" : host) +
                ": dmesg -T for what the adapter's driver reported at that time (firmware, PCIe), and ibstat" +
                (device.empty() ? "" : " " + device) + ", rdma link.",
            "Drain the node; reset the adapter or reboot, and update its firmware where the driver reports one of its "
            "errors.",
            "Replace the adapter if it fails again, and restart the job without that node."};
  return {"On " + (host.empty() ? "that host" : host) + ": ibstat" + (device.empty() ? "" : " " + device) +
              ", rdma link, mlxlink" + (device.empty() ? "" : " -d " + device) +
              ", and dmesg -T for the time at which the link went down.",
          "Check the cable, the transceiver and the switch port; a flapping port ends the whole job.",
          "Drain the node until the port is stable, and restart the job without it."};
}

// What helps depends on who reports: an adapter's port, a connection that cannot be set up, or libfabric.
std::vector<std::string> NetworkAdvice(const Event& lead) {
  const auto& warning = lead.As<Warning>();
  if (warning.gid == GidProblem::empty && IsWarning(lead, "ib-modify-qp-failed"))
    return {
        "Unset NCCL_IB_GID_INDEX: NCCL 2.21 and newer choose a RoCE v2 GID themselves. For older ones, show_gids lists "
        "the index of each address; it may differ between hosts and change when an interface gets another address.",
        "If nothing sets it: the interface of that adapter has no address (ip -br addr), or the container does not see "
        "it (--network=host)."};
  if (warning.gid == GidProblem::link_local && IsWarning(lead, "ib-modify-qp-failed"))
    return {
        "Set NCCL_IB_GID_INDEX to the index of a RoCE v2 GID with an IPv4 address (show_gids), the same kind on every "
        "host, or leave it unset so that NCCL looks for one: GID index " +
            std::to_string(warning.gid_index) +
            " is a link-local address here (fe80::), which reaches no other subnet.",
        "Check that the two adapters reach each other: ping -I INTERFACE from one's address to the other's. Where "
        "every "
        "rail is a network of its own, set NCCL_CROSS_NIC=0."};
  if (IsWarning(lead, "ib-modify-qp-failed")) {
    const bool nvshmem = lead.library == Library::nvshmem;
    std::vector<std::string> steps = {
        "Compare the GIDs of both ends (show_gids, or ibv_devinfo -v) and " +
            std::string(nvshmem ? "NVSHMEM_IB_GID_INDEX" : "NCCL_IB_GID_INDEX") +
            ": the index must name a RoCE v2 address of the same kind on every host, and one that is routed between "
            "them: "
            "an IPv4 address (::ffff:...), not a link-local one (fe80::).",
        "Check that the two adapters reach each other: ping -I INTERFACE from one's address to the other's. " +
            std::string(nvshmem ? "NVSHMEM_HCA_LIST names the adapters that may be used."
                                : "Where every rail is a network of its own, set NCCL_CROSS_NIC=0.")};
    constexpr int64_t kNoSuchDevice = 19;
    if (lead.As<Warning>().number == kNoSuchDevice)
      steps.insert(steps.begin(),
                   "Check the port first: it is down, or the container does not see it (ibstat, rdma link, ls "
                   "/dev/infiniband).");
    return steps;
  }
  if (IsWarning(lead, "net-device-setup-failed"))
    return {
        "Use versions of libfabric, of the NCCL plugin and of the adapter's driver that go together (EFA installer).",
        "On that host and inside the container: fi_info -p efa, ls /dev/infiniband, ulimit -l, and dmesg -T | grep "
        "-iE 'efa|infiniband'.",
        "Look for other processes that hold the device: an adapter has a limited number of domains and queues."};
  if (IsWarning(lead, "ucx-failed")) {
    const auto& told = lead.As<Warning>();
    const std::string lid = std::to_string(told.peer_lid), kind = told.dynamic ? "UCX_DC_MLX5_" : "UCX_RC_";
    return {(told.peer_lid > 0 ? "Find the peer's host: it has the port with LID " + lid + " (saquery " + lid +
                                     ", or ibnetdiscover). Look at its output"
                               : std::string("Look at the peer's output")) +
                ": a process that has ended gives the same error on its peers.",
            "Check the adapters of both hosts (ibstat, rdma link, perfquery), then measure between them: ib_write_bw.",
            "If both are healthy and the fabric is only slow to answer: raise " + kind + "TIMEOUT. " + kind +
                "RETRY_COUNT cannot be raised: it is 7 by default, which is the most that InfiniBand allows."};
  }
  if (IsWarning(lead, "transfer-failed"))
    return {"Look at the peer's output: a process that has ended gives the same error on its peers.",
            "Test the two adapters that the line names (local_nic, peer_nic) against each other: ib_write_bw -d DEVICE "
            "between the hosts. Where every adapter is on a network of its own, name only pairs that reach each other "
            "(device_name of the transfer engine).",
            "On RoCE: the GID index must name a routable address (show_gids); MC_GID_INDEX sets it."};
  if (IsWarning(lead, "net-peer-blocked")) return BlockedSteps();
  if (IsNoAnswer(lead))
    return {
        "Look at the peer first: whether its process still runs, and what it wrote last. A process that has ended "
        "gives the same error.",
        "If it runs: check the adapters and switch ports of both ends (ibstat, perfquery, mlxlink), cable and "
        "transceiver.",
        "On RoCE: check the GID index, the VLAN, and that the traffic class has flow control (PFC); compare with two "
        "hosts that can connect.",
        "Drain the node if the port's error counters rise."};
  if (IsWarning(lead, "net-peer-unresponsive"))
    return {"Look at " + lead.As<Warning>().object +
                " first: is the instance up, do its processes still run, and what did they write last? A process that "
                "has ended gives the same error on its peers.",
            "If it runs: fi_pingpong -p efa between it and a host that reports the error; dmesg -T | grep -i efa on "
            "both.",
            "If no pair of hosts works: the security group must allow all traffic to and from itself, in both "
            "directions."};
  if (IsWarning(lead, "net-plugin-timeout"))
    return {
        "Look at the output of the peers first: a process that hangs or has ended gives the same error on its peers.",
        "Check that the receive daemon of the plugin (RxDM, a container beside the job) runs on both hosts, and read "
        "its log.",
        "Use a plugin and a daemon of one release, and the settings that belong to it, on all hosts."};
  if (IsWarning(lead, "net-plugin-failed"))
    return {"EFA: the security group must allow all traffic to and from itself, in both directions.",
            "On both hosts and inside the container: fi_info -p efa, ls /dev/infiniband; then fi_pingpong -p efa "
            "between them.",
            "Look at the peer's output: a process that has ended gives the same error on its peers.",
            "Use versions of libfabric and of the NCCL plugin that go together (EFA installer)."};
  return {};
}

}  // namespace

// NCCL warns with host and pid, and PyTorch quotes the warning with the rank: one process, told twice. The peer's
// address and port, or the two GIDs, are of one connection.
static bool IsToldByARank(const Event& warning, const std::vector<const Event*>& of_ranks) {
  constexpr size_t kTelling = 40;
  if (warning.rank.known()) return false;
  return std::any_of(of_ranks.begin(), of_ranks.end(), [&](const Event* other) {
    const size_t length = std::min(warning.text.size(), other->text.size());
    return length >= kTelling && warning.text.compare(0, length, other->text, 0, length) == 0;
  });
}

// " of rank 3", " on gpu17"
static std::string PlaceOfError(const Case& facts, const Event& event) {
  if (event.rank.known()) return " of " + RankWords({event.rank});
  const Process* process = ProcessOf(facts.incident, event);
  return process && !process->host.empty() ? " on " + process->host : "";
}

static RuleAnswer JudgeNetworkFault(const Case& facts) {
  RuleAnswer answer;
  std::map<Rank, std::vector<const Event*>> by_rank;
  std::vector<const Event*> events;
  for (const Event& event : facts.incident.events) {
    if (!SpeaksOfNetwork(event) || (IsOwnPort(event) && IsUpAgain(facts.incident, event))) continue;
    events.push_back(&event);
    by_rank[event.rank].push_back(&event);
  }
  if (events.empty()) return answer;
  const bool fatal = std::any_of(events.begin(), events.end(), [](const Event* e) { return IsFatal(*e); });
  const bool failed = (fatal && !facts.analyses.outcome.ended_in_order) || facts.analyses.outcome.hangs() ||
                      facts.analyses.outcome.first_failure || facts.analyses.outcome.unfinished_calls;
  const bool only_links =
      std::all_of(events.begin(), events.end(), [](const Event* e) { return e->kind == EventKind::link_down; });
  Finding finding;
  finding.cause = "network-fault";
  const bool hangs = facts.analyses.outcome.hangs() || facts.analyses.end.kind == JobEnding::hung;
  // NCCL's error ends its process; who times out later waits for one that is gone.
  const bool ended = std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::nccl_error && EndedBeforeTimeouts(facts, event);
  });
  finding.status = (fatal || facts.analyses.outcome.first_failure) && (!hangs || ended) ? Status::crash : Status::hang;
  finding.severity = failed ? Severity::critical : Severity::warning;
  if (!failed) finding.status = Status::degraded;
  finding.ranks = CommonEnd(facts, events);
  by_rank.erase(Rank{});
  // A link that went down may have come back before it mattered.
  finding.confidence = finding.ranks.empty() || only_links ? Confidence::possible : Confidence::likely;
  for (const auto& [rank, list] : by_rank)
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end())
      finding.affected_ranks.push_back(rank);
  const auto own_port =
      std::find_if(events.begin(), events.end(), [](const Event* event) { return IsOwnPort(*event); });
  const auto named = std::find_if(events.begin(), events.end(),
                                  [](const Event* event) { return IsWarning(*event, "net-peer-unresponsive"); });
  // The adapter's own word first, then whoever names its peer.
  const auto first = own_port != events.end() ? own_port : named != events.end() ? named : events.begin();
  std::rotate(events.begin(), first, first + 1);
  const Event& lead = *events.front();
  const bool own = IsOwnPort(lead);
  if (own) finding.confidence = Confidence::likely;
  if (own && finding.ranks.empty()) finding.subjects = SubjectsOf(facts.incident, {&lead});
  ToldEvents told;
  std::vector<const Event*> of_ranks;
  for (const Event* event : events)
    if (constexpr size_t kMostCompared = 64; event->rank.known() && of_ranks.size() < kMostCompared)
      of_ranks.push_back(event);
  for (const Event* event : events)
    if (!IsToldByARank(*event, of_ranks)) TakeTold(facts, *event, told);
  finding.headline = lead.kind == EventKind::link_down
                         ? "the network link " + lead.As<NetworkLink>().device + " went down" +
                               (told.hosts.size() == 1 ? " on " + *told.hosts.begin() : "")
                     : own                                        ? OwnPortWords(facts, lead, events)
                     : IsWarning(lead, "net-peer-unresponsive")   ? NoAnswerWords(events, told)
                     : IsWarning(lead, "ib-modify-qp-failed")     ? ConnectWords(lead, told)
                     : IsWarning(lead, "net-device-setup-failed") ? DeviceSetupWords(told)
                     : IsWarning(lead, "net-peer-blocked")        ? BlockedWords(told)
                     : lead.As<Warning>().over_tcp                ? TcpConnectWords(lead, told)
                     : std::all_of(events.begin(), events.end(), [](const Event* event) { return IsNoAnswer(*event); })
                         ? NoAnswerWords(events, told)
                         : "the network failed between ranks" + ReportWords(events, told);
  finding.fix = own                           ? OwnPortSteps(facts, lead)
                : lead.As<Warning>().over_tcp ? TcpConnectSteps(lead, told)
                                              : NetworkAdvice(lead);
  for (const Event* event : events) {
    if (finding.evidence.size() == 3) break;
    const bool cited = std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
      return item.source.file == event->source.file && item.source.line == event->source.line;
    });
    if (cited) continue;
    finding.evidence.push_back(
        CiteEvent(*event, event->kind == EventKind::link_down            ? "the kernel saw the link go down"
                          : IsWarning(*event, "net-device-setup-failed") ? "the setup call that failed"
                          : finding.evidence.empty() && own
                              ? std::string((lead.As<Warning>().number == 1 ? "the adapter reports that its port failed"
                                                                            : "the adapter reports that it failed"))
                              : "a transport error" + PlaceOfError(facts, *event)));
  }
  if (IsWarning(lead, "ib-modify-qp-failed")) TellGidSetting(facts, lead, finding);
  if (lead.As<Warning>().id.starts_with("ib-")) TellInactivePorts(facts, finding);
  if (facts.standstill.operation) finding.operation = RefOf(*facts.standstill.operation);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kNetworkFaultRule;
const Rule kNetworkFaultRule = {
    "network-fault",
    "The network failed",
    "NCCL logs (completion and async errors) or the kernel log (link changes)",
    "A link, NIC or switch failed while ranks were communicating: InfiniBand completions with retry exceeded, "
    "asynchronous port errors, a link that went down.",
    "Status 5 (flushed) and 'connection closed by remote peer' are secondary: look for the first error, or for a rank "
    "that died. A stall without any recorded error is a transport stall.",
    {"Check the adapter and its switch port: ibstat, perfquery, mlxlink; cable and transceiver.",
     "Status 12 on RoCE: wrong GID index, VLAN, or a traffic class without flow control (PFC); compare with a working "
     "host.",
     "Drain the node if the port's error counters rise."},
    {"Watch link_downed, symbol errors and retransmits of every port.",
     "Leave NCCL_IB_TIMEOUT at its default or higher on large fabrics."},
    JudgeNetworkFault};

}  // namespace tacet
