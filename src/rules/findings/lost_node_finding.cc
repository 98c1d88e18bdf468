// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/lost_node_finding.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct LostNodes {
  std::vector<const Event*> events;
  std::vector<std::string> names;  // in the order in which they are told, each once
  std::vector<Rank> ranks;
  bool by_heartbeat = true;  // nobody saw them end: no sign of life came
};

LostNodes CollectLostNodes(const Incident& incident) {
  LostNodes lost;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::node_failed) continue;
    lost.events.push_back(&event);
    const auto& failure = event.As<NodeFailure>();
    lost.by_heartbeat = lost.by_heartbeat && failure.by_heartbeat;
    if (!failure.node.empty() && std::find(lost.names.begin(), lost.names.end(), failure.node) == lost.names.end())
      lost.names.push_back(failure.node);
    lost.ranks.insert(lost.ranks.end(), event.ranks.begin(), event.ranks.end());
  }
  std::sort(lost.ranks.begin(), lost.ranks.end());
  lost.ranks.erase(std::unique(lost.ranks.begin(), lost.ranks.end()), lost.ranks.end());
  return lost;
}

}  // namespace

void JudgeLostNodes(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.outcome.ended_in_order) return;
  LostNodes lost = CollectLostNodes(facts.incident);
  if (lost.events.empty()) return;
  const bool several = lost.names.size() > 1;
  const std::string nodes =
      lost.names.empty() ? "a node of the job" : (several ? "nodes " : "node ") + ListWords(lost.names);
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = lost.ranks.empty() ? Confidence::likely : Confidence::certain;
  const std::string with =
      lost.ranks.empty() ? "" : ", and " + RankWords(lost.ranks) + " with " + (several ? "them" : "it");
  finding.headline = lost.by_heartbeat ? "Ray counts " + nodes + " as dead: it received no heartbeats from " +
                                             (several ? "them" : "it") + with
                                       : nodes + " failed" + with;
  finding.ranks = std::move(lost.ranks);
  // The line that names it, before one that only says that some node failed.
  const auto named = std::find_if(lost.events.begin(), lost.events.end(),
                                  [](const Event* event) { return !event->As<NodeFailure>().node.empty(); });
  finding.evidence.push_back(CiteEvent(named == lost.events.end() ? *lost.events.front() : **named,
                                       "reported by the scheduler or the launcher"));
  const std::string its = several ? "their" : "its";
  if (lost.by_heartbeat)
    finding.fix = {"Check whether " + std::string(several ? "the nodes are" : "the node is") +
                       " still there: an autoscaler or a preemption that takes a node away gives the same line, and so "
                       "does a raylet that was killed for lack of memory (raylet.out, dmesg -T).",
                   "If the node runs: its network or its CPUs were busy for longer than the heartbeat allows "
                   "(RAY_health_check_timeout_ms)."};
  else
    finding.fix = {
        "Take the " + std::string(several ? "nodes" : "node") + " out of service and start again without " +
            (several ? "them." : "it."),
        "Look at " + its + " console, " + its + " power and " + its + " kernel log from just before the failure."};
  answer.findings.push_back(std::move(finding));
}

}  // namespace tacet
