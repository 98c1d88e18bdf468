// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/network_address.h"
#include "rules/told_finding.h"

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

}  // namespace

static RuleAnswer JudgeForeignConnection(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, IsStranger);
  if (!told) return answer;
  bool fatal = false;
  int64_t times = 0;
  std::string address;
  for (const Event* event : told.events) {
    fatal |= IsFatalWarning(*event, {"bootstrap-stranger"});
    times += std::max<int64_t>(event->As<Warning>().times, 1);
    if (address.empty()) address = HostPart(event->As<Warning>().object);
  }
  Finding finding =
      ToldFinding(facts, "foreign-connection", told, "a connection that does not speak this job's protocol");
  finding.affected_ranks = finding.ranks;
  finding.ranks.clear();  // whoever is called upon is not at fault
  const std::string from = address.empty() ? "" : " from " + address;
  finding.headline = "something that is not part of this job connected" + from + " to a port of " + TellerWords(told) +
                     (fatal ? " and broke the setup" : "") + ": a port scanner, a health check or another job";
  if (fatal) {
    finding.confidence = Confidence::likely;
  } else if (SetupFails(facts)) {
    finding.confidence = Confidence::possible;
    finding.headline += "; the setup did not complete";
  } else {
    finding.severity = Severity::note;
    finding.status = Status::healthy;
    finding.headline +=
        " (" + std::to_string(times) + (times == 1 ? " time" : " times") + "); NCCL refused it and continued";
  }
  if (finding.severity != Severity::note && address.empty())
    answer.open.push_back(
        {"Who connects to the port?",
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
    "different NCCL versions or world sizes give plausible numbers; a stranger's are absurd.",
    {"On that host: find what connects (ss -tnp, tcpdump), and exclude the cluster's network from scans.",
     "Look for a process of an earlier run that still tries to connect: end it, and use another MASTER_PORT.",
     "NCCL before 2.14 has no protection: update it."},
    {"Keep the nodes on a network of their own (firewall, VPC).",
     "Give every job its own port, and set NCCL_SOCKET_IFNAME to an internal network."},
    JudgeForeignConnection};

}  // namespace tacet
