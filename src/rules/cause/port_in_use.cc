// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/library_words.h"
#include "rules/words/words.h"

namespace tacet {

// "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2": Lightning prints it.
static bool PrintsMembers(const Incident& incident) {
  return std::any_of(incident.outlines.begin(), incident.outlines.end(),
                     [](const LogOutline& outline) { return !outline.joining.empty(); });
}

// "start_exporter (forecast.py:235)": the program's own code listens there, not the rendezvous store; empty: no
// traceback shows it.
static std::string OwnListener(const Case& facts, const ToldEvents& told) {
  std::string place;
  for (const Event* event : told.events) {
    const Event* raised = ExceptionAround(facts.incident, *event);
    if (!raised || event->As<PortTaken>().of_store || raised->As<Raised>().during == Activity::setup) return "";
    if (place.empty()) place = RaisedPlaceWords(*raised);
    if (place.empty()) return "";
  }
  return place;
}

// NCCL lets the kernel choose its ports, unless one is set for its rendezvous.
static bool ChosenByKernel(const Case& facts, const ToldEvents& told) {
  const bool by_nccl = std::all_of(told.events.begin(), told.events.end(),
                                   [](const Event* event) { return event->kind == EventKind::nccl_warning; });
  const auto sets_port = [](const Event& event) {
    return event.kind == EventKind::environment && event.As<EnvironmentSetting>().name == "NCCL_COMM_ID";
  };
  return by_nccl && std::none_of(facts.incident.events.begin(), facts.incident.events.end(), sets_port);
}

static void TellNoFreePort(const ToldEvents& told, Finding& finding) {
  finding.confidence = Confidence::likely;
  finding.headline = "no port was free for NCCL: " + TellerWords(told) +
                     " could not open a listening socket, and the kernel chooses the port of such sockets itself" +
                     HostUnknownWords(told);
  finding.fix = {
      "While the job runs, count the sockets on that host: ss -s, and ss -tanp | grep 'pid=PID'. Numbers that grow "
      "with "
      "each step show that communicators or process groups are created again and again: create them once, and destroy "
      "those that are not needed any more (dist.destroy_process_group(group)).",
      "Look at the range that the kernel chooses from, which all jobs of the host share: sysctl "
      "net.ipv4.ip_local_port_range. Widen it if the job needs that many ports.",
      "If NCCL_COMM_ID is set: another process holds its port; choose another one."};
}

static RuleAnswer JudgePortInUse(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, [](const Event& event) {
    return event.kind == EventKind::port_in_use || IsFatalWarning(event, {"port-in-use"});
  });
  if (!told) return answer;
  // NCCL's word has the port in no field of its own.
  int64_t port = -1;
  bool of_store = false, of_spawn = false;
  for (const Event* event : told.events) {
    const auto& taken = event->As<PortTaken>();
    if (event->kind == EventKind::port_in_use && port < 0) port = taken.port;
    of_store |= taken.of_store, of_spawn |= taken.of_spawn;
  }
  Finding finding = ToldFinding(facts, "port-in-use", told, "the port could not be opened");
  // Whoever cannot listen keeps all others from coming together.
  if (!told.ranks.empty()) {
    finding.affected_ranks.clear();
    for (const auto& [rank, life] : facts.analyses.life.ranks)
      if (!std::binary_search(told.ranks.begin(), told.ranks.end(), rank)) finding.affected_ranks.push_back(rank);
  }
  // The store of the rendezvous is rank 0's, wherever the line stands.
  const bool rank0 = of_store && told.ranks.empty();
  const std::string which = port > 0 ? "port " + std::to_string(port) : rank0 ? "MASTER_PORT" : "a port";
  finding.ranks_suffer = true;
  finding.headline = which + " is already in use: " + (rank0 ? "rank 0" : TellerWords(told)) + " cannot listen on it" +
                     (rank0 ? " for the rendezvous store" : HostUnknownWords(told));
  const std::string number = port > 0 ? std::to_string(port) : "PORT";
  finding.fix = {(rank0 ? "On the host that MASTER_ADDR names, find" : "On that host find") +
                     (" what holds it, and whose it is: ss -ltnp 'sport = :" + number +
                      "', ps -o user,lstart,args -p PID. If it is left over from an earlier run of yours, end it; if "
                      "it belongs to another user or to a running job, leave it.") +
                     (of_spawn ? " If the program itself listens there (a server, a dashboard), give that one another "
                                 "port."
                               : ""),
                 of_spawn ? "Choose another port: MASTER_PORT, or the port in init_method."
                          : "Choose another port (--master-port, MASTER_PORT), or let torchrun choose: --standalone, "
                            "or --rdzv-endpoint=HOST:0 on one node.",
                 "Each job on a host needs a port of its own: derive it from the job id."};
  if (of_store && PrintsMembers(facts.incident))
    finding.fix[1] =
        "Choose another port: MASTER_PORT, or torchrun --master-port. Lightning without a launcher chooses a free one "
        "where MASTER_PORT is not set.";
  if (const auto steps = LibraryPortSteps(told.events.front()->library); !steps.empty()) {
    finding.fix.resize(1);
    finding.fix.insert(finding.fix.end(), steps.begin(), steps.end());
  }
  if (const std::string place = OwnListener(facts, told); !place.empty() && finding.fix.size() == 3) {
    finding.headline += " in " + place;
    finding.fix[1] =
        "If this code runs on every rank: give each rank of a host a port of its own (a first port plus LOCAL_RANK), "
        "or listen on one rank of each host only. The program itself chooses this port; it is not MASTER_PORT.";
  }
  if (ChosenByKernel(facts, told)) TellNoFreePort(told, finding);
  // Below 1024 it is a service of the host, and only root may listen there.
  if (port > 0 && port < 1024)
    finding.fix = {
        "Choose another port (--master-port, MASTER_PORT): those below 1024 belong to services of the host, "
        "such as sshd on 22."};
  if (!rank0) AskWhichHost(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kPortInUseRule;
const Rule kPortInUseRule = {
    "port-in-use",
    "A port is already in use",
    "the output of the launcher or of the rank that listens (usually rank 0), or its NCCL log",
    "A process must listen on a port for the others to find it, and another process holds that port: an earlier run "
    "that did not end, another job on the same host, or the launcher itself.",
    "Refused connections mean the reverse: nothing listens. 'Cannot assign requested address' means that the address "
    "is "
    "not one of this host. A warning about [::] alone is harmless where IPv6 is off.",
    {"On that host find what holds it, and whose it is: ss -ltnp 'sport = :PORT', ps -o user,lstart,args -p PID. End "
     "it only if it is left over from an earlier run of yours.",
     "Choose another port (--master-port, MASTER_PORT), or let torchrun choose: --standalone, or "
     "--rdzv-endpoint=HOST:0 "
     "on one node.",
     "Each job on a host needs a port of its own: derive it from the job id."},
    {"Do not use a fixed port in job scripts that may share a host.",
     "Make sure that the processes of a job are gone when it ends."},
    JudgePortInUse};

}  // namespace tacet
