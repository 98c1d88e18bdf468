// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <variant>

#include "model/events/connect_problem.h"
#include "model/events/event_time.h"
#include "model/network_address.h"
#include "rules/findings/init_finding.h"
#include "rules/findings/ssh_finding.h"
#include "rules/words/connect_advice.h"
#include "rules/words/words.h"

namespace tacet {

// Before the store is reached no worker has started, and NCCL has no part in it.
// The one that all of them name; unknown where they do not.
static Rank PeerOfAll(const std::vector<const Event*>& events) {
  Rank peer;
  for (const Event* event : events) {
    if (!event->peer.known() || (peer.known() && peer != event->peer)) return Rank{};
    peer = event->peer;
  }
  return peer;
}

static bool IsOfTheStore(const Event* event) {
  return IsStoreUnreachable(*event) && event->As<StoreUnreachable>().how == Unreachable::store;
}

// "127.0.0.1:29500", "localhost:29500", "[::1]:29500"
static bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("localhost") || address.starts_with("::1") ||
         address.starts_with("[::1]");
}

// "0.0.0.0:51216", "[::]:51216": where a server listens on all of its addresses, and none that a client can go to.
static bool IsWildcard(const std::string& address) {
  return address.starts_with("0.0.0.0") || address.starts_with("[::]") || address.starts_with("::,");
}

// "/opt/env.sh:29500": the value of a setting that is not what it should be.
static std::string NoHostIn(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (address.empty() || colon == std::string::npos || address.starts_with('[')) return "";
  const std::string host = address.substr(0, colon);
  return IsNoHost(host) ? "'" + host + "'" : "";
}

// What the system answered; one who was refused reached the host.
static ConnectProblem ProblemOf(const std::vector<const Event*>& events) {
  ConnectProblem worst = ConnectProblem::not_told;
  for (const Event* event : events) {
    ConnectProblem problem = ReadConnectProblem(event->text);
    if (problem == ConnectProblem::not_told) problem = ReadConnectProblem(event->As<ConnectFailure>().words);
    if (problem == ConnectProblem::not_told) problem = ReadConnectProblem(event->As<StoreUnreachable>().last_try);
    if (problem == ConnectProblem::refused) return problem;
    if (worst == ConnectProblem::not_told || problem == ConnectProblem::no_route ||
        problem == ConnectProblem::host_unreachable)
      worst = problem == ConnectProblem::not_told ? worst : problem;
  }
  return worst;
}

static std::vector<std::string> RefusedAdvice(bool store, Library library) {
  if (library == Library::jax)
    return {
        "Look at process 0, which runs the coordinator: its output and its exit status; it has exited, or has not "
        "started in time.",
        "Compare coordinator_address (JAX_COORDINATOR_ADDRESS) of all processes: the host is up, so the port, or the "
        "host itself, may be the wrong one."};
  std::vector<std::string> advice = {
      "Look at the process that should listen there: its output and its exit status; it has exited, or has not "
      "started in time.",
      "Check that the address belongs to this run: a file for init_method=file://, a port or a hostfile may be left "
      "over from an earlier run."};
  // NCCL has no part in the rendezvous.
  advice.emplace_back(
      store ? "Compare MASTER_ADDR and MASTER_PORT (--rdzv-endpoint) of all nodes: the host is up, so the port, or the "
              "host itself, may be the wrong one."
            : "If it listens on another interface: set NCCL_SOCKET_IFNAME to the one that connects the hosts.");
  return advice;
}

// The packets get no answer, or have no way: the process that should listen may be well.
// "192.0.2.15", "fe80::1"
static bool IsNumericAddress(std::string_view name) {
  return !name.empty() &&
         (name.find(':') != std::string_view::npos || name.find_first_not_of("0123456789.") == std::string_view::npos);
}

static std::vector<std::string> NoAnswerAdvice(const std::string& address, ConnectProblem problem) {
  const std::string there = address.empty() ? "that address" : address;
  const std::string name = address.substr(0, address.rfind(':'));
  if (problem == ConnectProblem::no_name)
    return {"On the host that reports it: getent hosts " + (name.empty() ? "NAME" : name) +
                "; correct the name (MASTER_ADDR, --rdzv-endpoint), or add it to DNS or /etc/hosts.",
            "In Kubernetes a pod's name resolves once its headless service exists and the pod runs: kubectl get "
            "svc,pod; was the pod of rank 0 created, and in the same namespace?",
            "To test the rest: use the address itself instead of the name."};
  std::vector<std::string> advice = {
      "Check that the address belongs to the host of rank 0, not to another network or an earlier run "
      "(--rdzv-endpoint, MASTER_ADDR, MASTER_PORT)."};
  const std::string host = name.empty() ? "that host" : name;
  if (problem == ConnectProblem::no_route || problem == ConnectProblem::host_unreachable)
    advice.push_back("From the host that reports it: ping " + (name.empty() ? "ADDRESS" : name) +
                     ", and ip route get " + (IsNumericAddress(name) ? name : "ADDRESS (the address of " + host + ")") +
                     "; the two hosts must share a network, or have a route.");
  if (problem == ConnectProblem::host_unreachable)
    advice.push_back("Look at the firewall of " + host +
                     " and between the two (iptables -S, nft list ruleset, firewall-cmd --list-all): a rule that "
                     "rejects gives this error; open the port there.");
  else if (problem != ConnectProblem::no_route)
    advice.push_back("From the host that reports it: ping, and nc -zv to " + there +
                     "; a firewall or a security group that drops packets looks like this: open the port there.");
  advice.push_back("On " + host + ": is torchrun (or rank 0) running, and is it listening on that port (ss -ltn)?");
  return advice;
}

static std::vector<std::string> StoreAdvice(const std::string& address) {
  if (IsWildcard(address))
    return {
        "Give the client the real address or name of the host on which the server runs (MASTER_ADDR, --rdzv-endpoint; "
        "for a separate inference server its host setting): a wildcard address only says on which interfaces a server "
        "listens, and a client that connects to it reaches its own host.",
        "On the server's host: does the process that should serve that port run, and does it listen (ss -ltn)? A "
        "second port, such as one for weight updates, must be open and free as well.",
        "If client and server share a host: use 127.0.0.1 instead."};
  if (IsLoopback(address))
    return {"Check whether rank 0 runs on the same host as this rank and listens on that port (ss -ltn).",
            "Compare MASTER_ADDR and MASTER_PORT (--rdzv-endpoint) of this rank with those of the other ranks.",
            "If rank 0 runs on another host: set MASTER_ADDR to that host; a loopback address is always the host's "
            "own."};
  // A number needs no resolver.
  const bool number = !address.empty() && (address.find_first_not_of("0123456789.:") == std::string::npos ||
                                           std::count(address.begin(), address.end(), ':') > 1);
  const std::string there = address.empty() ? "the address that --rdzv-endpoint or MASTER_ADDR gives" : address;
  return {"On the host of " + there +
              ": has torchrun, or rank 0, been started there, and does it listen on that port (ss -ltn)?",
          "Check that the address belongs to that host, not to another network or an earlier run "
          "(--rdzv-endpoint, MASTER_ADDR, MASTER_PORT).",
          "From the host that reports it: " + std::string(number ? "" : "getent hosts (does the name resolve?), ") +
              "ping, and nc -zv to that port; open it in the firewall."};
}

// An exception that tells of nothing but the program itself.
static bool IsOrdinary(const Event& exception) {
  for (const Meaning meaning :
       {Meaning::refused, Meaning::setup_failed, Meaning::store_unreachable, Meaning::nccl_failed,
        Meaning::no_interface, Meaning::gloo_loss, Meaning::gloo_timeout, Meaning::no_launcher})
    if (exception.Means(meaning)) return false;
  return !exception.Means(Meaning::of_communication) || exception.Means(Meaning::timed_out);
}

// A rank that raised an error of its own is gone, and nothing listens where it did. Null where nobody did, or where the
// connection failed before.
static const Event* ErrorOfThePeer(const Case& facts, const std::vector<Rank>& complaining, const Event& complaint) {
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.exception && IsOrdinary(*life.exception) &&
        !std::binary_search(complaining.begin(), complaining.end(), rank) &&
        OrderOf(complaint, *life.exception) != TimeOrder::before)
      return life.exception;
  return nullptr;
}

static std::string FailureWords(ConnectProblem problem, int64_t limit_ms) {
  switch (problem) {
    case ConnectProblem::refused: return "the connection is refused, so nothing listens there";
    case ConnectProblem::no_answer: return "the address does not answer";
    case ConnectProblem::host_unreachable:
      return "the host is down, there is no route to it, or a firewall rejects the connection ('No route to host')";
    case ConnectProblem::no_route: return "the network of that host is unreachable from here";
    case ConnectProblem::no_name: return "the name does not resolve to an address";
    case ConnectProblem::aborted:
      return "its own host aborted the attempt (ECONNABORTED), as happens after an attempt that got no answer";
    case ConnectProblem::no_own_address: return "its own host has no address or port to connect from (EADDRNOTAVAIL)";
    case ConnectProblem::no_transport: return "Open MPI finds no transport that both processes can use";
    case ConnectProblem::not_told: break;
  }
  if (limit_ms < 1000) return "the connection failed, and the log does not say why";
  return "no connection within " + std::to_string(limit_ms / 1000) + " s";
}

// "10.9.1.20<39217>" and "10.9.1.20:39217"
static bool IsSameEndpoint(std::string_view a, std::string_view b) {
  const auto port = [](std::string_view address) {
    while (!address.empty() && address.back() == '>') address.remove_suffix(1);
    return address.substr(address.find_last_of(":<") + 1);
  };
  return !a.empty() && !b.empty() && HostPart(a) == HostPart(b) && port(a) == port(b);
}

// Whoever raised an error of its own because the same address refused it.
static void AddRefusedRanks(const Case& facts, const std::vector<const Event*>& events, std::vector<Rank>& complaining,
                            std::vector<EvidenceItem>& evidence) {
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.exception || std::find(complaining.begin(), complaining.end(), rank) != complaining.end()) continue;
    const auto* peer = std::get_if<RefusingPeer>(&life.exception->As<Raised>().about);
    if (!peer || std::none_of(events.begin(), events.end(),
                              [&](const Event* event) { return IsSameEndpoint(TargetOf(*event), peer->address); }))
      continue;
    complaining.push_back(rank);
    if (evidence.size() < 3)
      evidence.push_back(CiteEvent(*life.exception, RankWords({rank}) + " cannot reach the same address"));
  }
}

static RuleAnswer JudgeUnreachable(const Case& facts) {
  RuleAnswer answer;
  const InitView init = ReadInit(facts);
  if (init.issued_any) return answer;
  std::vector<Rank> complaining;
  std::vector<EvidenceItem> evidence;
  std::vector<const Event*> events;
  for (const Event& event : facts.incident.events) {
    const bool warned = event.kind == EventKind::nccl_warning && event.As<Warning>().id == "connect-failed";
    if (!warned && !IsStoreUnreachable(event) && event.kind != EventKind::connect_failed) continue;
    events.push_back(&event);
    if (event.rank.known()) complaining.push_back(event.rank);
    // torchrun's exception repeats, without the address, what the socket's line has told.
    const bool repeats = !evidence.empty() && TargetOf(event).empty() && !event.rank.known();
    const bool same = std::any_of(events.begin(), events.end() - 1, [&](const Event* earlier) {
      return event.rank.known() && earlier->rank == event.rank &&
             (TargetOf(event).empty() || TargetOf(*earlier) == TargetOf(event));
    });
    if (evidence.size() >= 3 || repeats || same) continue;
    evidence.push_back(CiteEvent(event, SubjectWords(SubjectOf(facts.incident, event)) + " cannot reach its peer"));
    if (const auto& told = event.As<StoreUnreachable>(); told.try_line > 0 && evidence.size() < 3)
      evidence.push_back(
          {SourceRef{event.source.file, told.try_line, 0}, told.last_try, "the error of its last attempt"});
  }
  if (evidence.empty()) return answer;
  AddRefusedRanks(facts, events, complaining, evidence);
  std::sort(complaining.begin(), complaining.end());
  complaining.erase(std::unique(complaining.begin(), complaining.end()), complaining.end());
  // All complain about one address: its owner is at fault, and who owns it the complaint does not say. One complains
  // alone: its own address of the peer, or its own network, is wrong.
  // Whose output is not here may have reported the same: a reporter is alone only where all others are heard.
  const size_t heard = facts.analyses.life.Present();
  const bool alone = complaining.size() == 1 && heard > 2 && heard == facts.analyses.life.ranks.size();
  Finding finding = InitFinding("init-unreachable", alone ? complaining : std::vector<Rank>{});
  finding.confidence = alone ? Confidence::likely : Confidence::possible;
  if (!alone) finding.status = Status::undetermined;
  finding.affected_ranks = complaining;
  finding.evidence = std::move(evidence);
  const bool agent = complaining.empty() && std::any_of(events.begin(), events.end(), [](const Event* event) {
                       return event->As<StoreUnreachable>().by_agent;
                     });
  const std::string who = !complaining.empty() ? RankWords(complaining)
                          : agent              ? std::string("a torchrun agent")
                                               : SubjectWords(SubjectsOf(facts.incident, events));
  if (agent)
    for (EvidenceItem& item : finding.evidence) item.says = "a torchrun agent cannot reach the rendezvous store";
  std::string address;
  for (const Event* event : events) {
    const std::string_view told = TargetOf(*event);
    if (address.empty()) address = told;
    if (!told.empty() && told != address) {
      address.clear();
      break;
    }
  }
  const bool nameless = std::all_of(events.begin(), events.end(), [](const Event* event) {
    return event->kind == EventKind::connect_failed && TargetOf(*event).empty();
  });
  const bool waits =
      std::all_of(events.begin(), events.end(), [](const Event* event) { return IsStillConnecting(*event); });
  const ConnectProblem problem = ProblemOf(events);
  const bool refused = problem == ConnectProblem::refused;
  const std::string no_host = NoHostIn(address);
  const std::string digits = AddressOfDigits(address);
  const bool of_store = std::all_of(events.begin(), events.end(), IsOfTheStore);
  int64_t limit_ms = -1;
  for (const Event* event : events) limit_ms = std::max(limit_ms, event->As<StoreUnreachable>().timeout_ms);
  const Rank peer = PeerOfAll(events);  // MPI connects when the first message is sent
  finding.headline = who + (waits ? " waits to connect to " : " cannot connect to ") +
                     (agent ? "the rendezvous store at " : "") +
                     (!address.empty() ? address
                      : peer.known()   ? RankWords({peer})
                                       : "a peer") +
                     (peer.known() ? ": " : " during setup: ") +
                     (refused               ? "the connection is refused, so nothing listens there"
                      : IsLoopback(address) ? "nothing answers there"
                      : IsWildcard(address) ? "this is a wildcard, not the address of a host"
                      : !no_host.empty()    ? no_host + " is not the name or the address of a host"
                      : !digits.empty()     ? "a name of digits alone is taken for an IPv4 address, here " + digits
                      : nameless            ? "the message names no address"
                      : waits               ? "nothing has answered there yet"
                                            : FailureWords(problem, limit_ms)) +
                     (alone && !refused ? ", and no other rank reports this" : "");
  const bool special = IsLoopback(address) || IsWildcard(address);
  // torchrun's exception tells that the connection failed, and neither where nor why.
  if (problem == ConnectProblem::not_told && of_store && address.empty() && limit_ms <= 0)
    finding.headline = who + " could not connect to the rendezvous store; these lines do not say why";
  if (refused)
    finding.fix = RefusedAdvice(of_store, events.front()->library);
  else if (of_store)
    finding.fix =
        problem == ConnectProblem::not_told || special ? StoreAdvice(address) : NoAnswerAdvice(address, problem);
  if (!no_host.empty()) {
    finding.confidence = Confidence::certain;
    finding.fix = {
        "Set MASTER_ADDR (--master-addr, --rdzv-endpoint, main_process_ip of Accelerate) to the name or the address of "
        "the first node: its value here is " +
            no_host + ", as when a variable is not set where it is used, or arguments are in the wrong order.",
        "Print it on each node before the start: echo \"$MASTER_ADDR:$MASTER_PORT\"."};
  }
  if (!digits.empty() && !refused) {
    finding.confidence = Confidence::likely;
    finding.fix = NumericNameSteps();
  }
  if (const Event* error = refused ? ErrorOfThePeer(facts, complaining, *events.front()) : nullptr) {
    finding.severity = Severity::warning;
    finding.confidence = Confidence::possible;
    finding.ranks.clear();
    finding.headline = who + " cannot connect to " + (address.empty() ? "a peer" : address) +
                       ": the connection is refused, as happens when the process that listened there has ended; " +
                       SubjectWords(SubjectOf(facts.incident, *error)) + " had raised an error";
  }
  if (!refused && std::all_of(events.begin(), events.end(),
                              [](const Event* event) { return event->kind == EventKind::nccl_warning; }))
    finding.fix = NcclConnectSteps(address);
  TellSsh(events, finding);
  // Gloo has an interface of its own to choose.
  const bool gloo = std::any_of(events.begin(), events.end(),
                                [](const Event* event) { return event->kind == EventKind::connect_failed; });
  const bool mpi = !events.empty() && events.front()->library == Library::mpi;
  if (auto steps = LibraryConnectSteps(*events.front(), address); !steps.empty()) {
    finding.fix = std::move(steps);
  } else if (mpi && problem == ConnectProblem::no_transport) {
    const std::string& tried = events.front()->As<ConnectFailure>().words;
    if (!tried.empty()) finding.headline += " (" + tried + ")";
    finding.fix = {
        "Allow a transport between hosts: remove --mca btl, or name one (--mca btl self,vader,tcp); with InfiniBand "
        "use --mca pml ucx.",
        "Check that this Open MPI has it: ompi_info | grep -E 'btl|pml', on both hosts; both must be the same release.",
        "Over TCP: --mca btl_tcp_if_include NET/BITS names the network that the hosts share."};
  } else if (!events.empty() && events.front()->library == Library::tensorflow)
    finding.fix = {
        "Check whether that task runs, and listens on the address that TF_CONFIG (the cluster specification) gives it: "
        "its output, and ss -ltn on its host.",
        "From the host that reports it: nc -zv HOST PORT; open the port between the hosts.",
        "A proxy (http_proxy, grpc_proxy) breaks gRPC between the hosts: unset it, or add them to no_proxy."};
  else if (!events.empty() && events.front()->library == Library::hccl)
    finding.fix = {
        "Look at the output and the plog (ascend/log/debug/plog) of the peer that is named: it may have failed first.",
        "Check the link between the two NPUs: hccn_tool -i 0 -link -g; hccn_tool -i 0 -ping -g address ADDRESS; the "
        "TLS "
        "setting must be the same on both sides (hccn_tool -i 0 -tls -g).",
        "If the peer is only late: raise HCCL_CONNECT_TIMEOUT equally on all ranks."};
  else if (mpi)
    finding.fix = {
        "Look at the process that should listen there: one that has ended refuses, a firewall lets the attempt time "
        "out.",
        "Tell Open MPI which network the hosts share: mpirun --mca btl_tcp_if_include NET/BITS (and "
        "oob_tcp_if_include).",
        "Open the ports between the hosts: Open MPI takes any, unless btl_tcp_port_min_v4 and btl_tcp_port_range_v4 "
        "limit them."};
  else if (gloo)
    finding.fix = {
        address.empty() ? "Find out which hosts cannot reach each other: ping and nc -zv between all pairs of them."
        : IsLoopback(address) ? "Check whether the peer runs on the same host, and what its output says: it may have "
                                "ended. A peer on another host cannot be reached at a loopback address."
                              : "From the host that reports it: ping and nc -zv to " + address + ".",
        "Set GLOO_SOCKET_IFNAME to the interface that connects the hosts (NCCL_SOCKET_IFNAME is NCCL's own); check "
        "that /etc/hosts does not give the host's own name 127.0.0.1 or 127.0.1.1.",
        "Open the ports between the nodes (gloo uses ephemeral ports)."};
  if (peer.known())
    finding.fix.insert(finding.fix.begin(),
                       "Look at " + RankWords({peer}) + " first: is it still running, and what did it write last?");
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kInitUnreachableRule;
const Rule kInitUnreachableRule = {
    "init-unreachable",
    "A peer's address cannot be reached",
    "NCCL logs (WARN about connect) or the ranks' exceptions",
    "Setup traffic does not get through: a wrong address or port of the rendezvous, a firewall, a wrong interface "
    "(docker0, virbr, an interface without a route to the other hosts), or the peer's process is gone.",
    "'Connection refused' means that nothing listens there (dead process, wrong host); 'no route' and timeouts point "
    "to routing or a firewall. A missing rank gives no connection error.",
    {"Where the store or the rendezvous does not answer: MASTER_ADDR and MASTER_PORT, or --rdzv-endpoint, must be "
     "those "
     "of rank 0's host on all nodes, and rank 0 must have started.",
     "From the host that reports it: ping and nc -zv to the address in the message.",
     "Set NCCL_SOCKET_IFNAME (GLOO_SOCKET_IFNAME for gloo) to the interface that connects the hosts; compare the "
     "addresses in NCCL's Bootstrap lines of all hosts (grep -E 'Bootstrap ?: Using').",
     "Open the ports between the nodes (NCCL uses ephemeral ports)."},
    {"Test the network between all pairs of nodes before long jobs."},
    JudgeUnreachable};

}  // namespace tacet
