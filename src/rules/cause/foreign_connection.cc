// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/network_address.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

bool IsStranger(const Event& event) {
  const std::string_view id = event.As<Warning>().id;
  return event.kind == EventKind::nccl_warning && (id == "socket-stranger" || id == "bootstrap-stranger");
}

// NCCL closes such a connection and goes on waiting. It matters where the set-up does not come to its end.
bool SetupFails(const Case& facts) {
  size_t started = 0, completed = 0;
  bool error = false;
  for (const Event& event : facts.incident.events) {
    started += event.kind == EventKind::init_started;
    completed += event.kind == EventKind::init_completed;
    error |= event.kind == EventKind::nccl_error || event.kind == EventKind::store_wait_timeout;
  }
  bool called = false;
  for (const CallStream& stream : facts.incident.streams) called |= !stream.calls.empty();
  return !called && !facts.analyses.outcome.ended_in_order && completed == 0 &&
         (started > 0 || error || facts.analyses.outcome.hangs());
}

const Event* FailureOfSetup(const Case& facts) {
  for (const Event& event : facts.incident.events) {
    const bool gives_up = event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause;
    if ((gives_up && !IsStranger(event)) || event.kind == EventKind::nccl_error) return &event;
  }
  return nullptr;
}

// NCCL's ports are chosen anew in each run, so that another MASTER_PORT does not help. A release that tells of the
// magic number has the check.
std::vector<std::string> StrangerSteps(const std::string& address, const ToldEvents& told, bool http, bool fatal) {
  const std::string here = told.hosts.size() == 1 ? *told.hosts.begin() : "the hosts of this job";
  std::vector<std::string> steps = {address.empty() ? "While the job starts, find what connects to " + here +
                                                          " (ss -tnp, tcpdump), and exclude the "
                                                          "cluster's network from scans."
                                                    : "On " + address + ": find the process that connects to " + here +
                                                          " (ss -tnp), and exclude the cluster's network from scans.",
                                    "Set NCCL_SOCKET_IFNAME to an internal network that others cannot reach."};
  if (!http) steps.push_back("Look for a process of an earlier run that still tries to connect, and end it.");
  if (fatal) steps.push_back("NCCL before 2.14 has no protection: update it.");
  return steps;
}

}  // namespace

static RuleAnswer JudgeForeignConnection(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, IsStranger);
  if (!told) return answer;
  bool fatal = false, http = false;
  std::map<std::pair<uint32_t, std::string_view>, int64_t> told_by;  // how often
  std::string address;
  const Event* lead = told.events.front();
  for (const Event* event : told.events) {
    fatal |= IsFatalWarning(*event, {"bootstrap-stranger"});
    http |= event->As<Warning>().speaks_http;
    // The first event of a process counts the others.
    auto& known = told_by[{event->speaker, event->As<Warning>().id}];
    known = std::max({known, event->As<Warning>().times, int64_t{1}});
    if (!address.empty()) continue;
    address = HostPart(event->As<Warning>().object);
    if (!address.empty()) lead = event;
  }
  int64_t times = 0;
  for (const auto& [speaker, count] : told_by) times += count;
  Finding finding = ToldFinding(facts, "foreign-connection", told, "");
  finding.evidence = {CiteEvent(*lead, (http ? "a connection that sends an HTTP request"
                                             : "a connection that does not speak this job's protocol") +
                                           (times > 1 ? " (" + std::to_string(times) + " times)" : std::string()))};
  finding.affected_ranks = finding.ranks;
  finding.ranks.clear();  // whoever is called upon is not at fault
  finding.headline = http ? "an HTTP client" + (address.empty() ? "" : " at " + address) + " connected to a port of " +
                                TellerWords(told) + (fatal ? " and broke the setup" : "") +
                                ": a health check, a metrics collector or a port scanner, not part of this job"
                          : "something that is not part of this job connected" +
                                (address.empty() ? "" : " from " + address) + " to a port of " + TellerWords(told) +
                                (fatal ? " and broke the setup" : "") +
                                ": a port scanner, a health check or another job";
  finding.fix = StrangerSteps(address, told, http, fatal);
  if (fatal) {
    finding.confidence = Confidence::likely;
  } else if (SetupFails(facts)) {
    finding.confidence = Confidence::possible;
    finding.headline += "; the setup did not complete";
    if (const Event* failure = FailureOfSetup(facts))
      finding.evidence.push_back(CiteEvent(*failure, "the setup fails"));
  } else {
    finding.severity = Severity::note;
    finding.status = Status::healthy;
    finding.headline += times == 1 ? "; NCCL refused it and continued"
                                   : " (" + std::to_string(times) + " times); NCCL refused it and continued";
  }
  if (finding.severity != Severity::note && address.empty())
    answer.open.push_back(
        {"What connects to the port?",
         "NCCL logs with NCCL_DEBUG=INFO (newer releases print the address), or ss -tnp and tcpdump on "
         "that host while the job starts"});
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kForeignConnectionRule;
const Rule kForeignConnectionRule = {
    "foreign-connection",
    "Something outside the job connected to one of its ports",
    "NCCL logs (WARN or INFO lines of the setup)",
    "NCCL listens on ports while it sets up communicators. Something connected there that is not a rank of this job: a "
    "port scanner, a health check, or a process of another job that was given the same address. Newer releases "
    "recognize it by a magic number and refuse it; older ones read its first bytes as a message and fail.",
    "Ranks of one job that use different networks give 'wrong type 3 != 4': they do belong to the job. Ranks with "
    "different NCCL versions or world sizes give plausible numbers; those of a foreign process are absurd.",
    {"On that host: find what connects (ss -tnp, tcpdump), and exclude the cluster's network from scans.",
     "Look for a process of an earlier run that still tries to connect: end it, and use another MASTER_PORT.",
     "NCCL before 2.14 has no protection: update it."},
    {"Keep the nodes on a network of their own (firewall, VPC).",
     "Give every job its own port, and set NCCL_SOCKET_IFNAME to an internal network."},
    JudgeForeignConnection};

}  // namespace tacet
