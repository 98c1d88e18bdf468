// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string NodeCount(int64_t count) { return std::to_string(count) + (count == 1 ? " node" : " nodes"); }

// "b007 and g[027-029]"
std::string NodeNames(const std::vector<const Event*>& rows) {
  constexpr size_t kMost = 4;
  std::string names;
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i)
    names += (i == 0 ? "" : i + 1 == rows.size() ? " and " : ", ") + rows[i]->As<ListedNodes>().nodes;
  return names + (rows.size() > kMost ? " and more" : "");
}

// "b007", not "g[027-029]"
bool IsOneNode(const std::vector<const Event*>& rows) {
  return rows.size() == 1 && rows[0]->As<ListedNodes>().nodes.find_first_of("[,") == std::string::npos;
}

// A node is listed once for each partition that it belongs to.
void AddUnlessListed(std::vector<const Event*>& rows, const Event& row) {
  if (std::none_of(rows.begin(), rows.end(),
                   [&](const Event* one) { return one->As<ListedNodes>().nodes == row.As<ListedNodes>().nodes; }))
    rows.push_back(&row);
}

int64_t Sum(const std::vector<const Event*>& rows) {
  int64_t sum = 0;
  for (const Event* row : rows) sum += std::max(row->As<ListedNodes>().count, 0);
  return sum;
}

struct NodeList {
  std::vector<const Event*> failed, silent, draining, maintained;
  std::vector<const Event*> prolog;
  std::map<std::string, int64_t> usable;  // by partition
};

NodeList ReadNodes(const Incident& incident) {
  NodeList list;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::node_state) continue;
    const auto& state = event.As<ListedNodes>();
    if (!state.partition.empty())
      list.usable[state.partition] += state.condition == NodeCondition::takes_jobs ? std::max(state.count, 0) : 0;
    switch (state.condition) {
      case NodeCondition::takes_jobs: break;
      case NodeCondition::failed: AddUnlessListed(list.failed, event); break;
      case NodeCondition::silent: AddUnlessListed(list.silent, event); break;
      case NodeCondition::draining: AddUnlessListed(list.draining, event); break;
      case NodeCondition::maintained: AddUnlessListed(list.maintained, event); break;
      case NodeCondition::prolog_failed: AddUnlessListed(list.prolog, event); break;
    }
  }
  return list;
}

Finding PrologFinding(const NodeList& list) {
  const std::string nodes = NodeNames(list.prolog);
  const std::string first = list.prolog.front()->As<ListedNodes>().nodes;
  // A reason in a list of nodes tells of some job; a tool of this one tells of it.
  const bool listed = !list.prolog.front()->As<ListedNodes>().word.empty();
  Finding finding;
  finding.cause = "node-unavailable";
  finding.status = listed ? Status::degraded : Status::crash;
  finding.severity = listed ? Severity::warning : Severity::critical;
  finding.confidence = Confidence::certain;
  finding.headline = "Slurm's prolog failed on " + nodes + (listed ? "" : ": the job's program was not started there");
  for (const Event* row : list.prolog)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*row, "what Slurm says"));
  finding.fix = {"Submit again without it: --exclude=" + first + ".",
                 "Ask the administrators: the log of slurmd on " + first +
                     " has the prolog's output and exit code; scontrol show node " + first +
                     " and sinfo -R show the reason for which it is drained."};
  Subject subject;
  subject.host = first;
  finding.subjects.push_back(subject);
  return finding;
}

// "partition cpu has no node that accepts jobs"
std::string EmptyPartitions(const NodeList& list) {
  std::vector<std::string> empty;
  for (const auto& [name, count] : list.usable)
    if (count == 0) empty.push_back(name);
  if (empty.empty()) return "";
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(empty.size(), 4); ++i)
    names += (i == 0 ? "" : i + 1 == empty.size() ? " and " : ", ") + empty[i];
  return (empty.size() == 1 ? "partition " : "partitions ") + names +
         (empty.size() == 1 ? " has no node that accepts jobs" : " have no node that accepts jobs");
}

Finding ListFinding(const NodeList& list) {
  const std::string empty = EmptyPartitions(list);
  Finding finding;
  finding.cause = "node-unavailable";
  // Some nodes of a large cluster are always out of service.
  finding.status = empty.empty() ? Status::healthy : Status::degraded;
  finding.severity = empty.empty() ? Severity::note : Severity::warning;
  finding.confidence = Confidence::certain;
  std::string words = empty;
  const auto add = [&](const std::vector<const Event*>& rows, std::string_view what, bool names) {
    if (rows.empty()) return;
    const int64_t count = Sum(rows);
    const bool one = count == 1 || (count == 0 && IsOneNode(rows));
    words += (words.empty() ? std::string() : "; ") +
             (count > 0 ? NodeCount(count) + " "
              : one     ? "node "
                        : "nodes ") +
             (count > 0 && !names ? "" : (count > 0 ? "(" : "") + NodeNames(rows) + (count > 0 ? ") " : " ")) +
             (one ? "is " : "are ") + std::string(what);
    if (finding.evidence.size() < 3)
      finding.evidence.push_back(CiteEvent(*rows.front(), "these nodes are " + std::string(what)));
  };
  add(list.silent, "out of service and not responding", true);
  add(list.failed, "down", true);
  add(list.draining, "draining or drained", Sum(list.draining) <= 4);
  add(list.maintained, "in maintenance or off", false);
  finding.headline = words;
  if (!list.silent.empty() || !list.failed.empty())
    finding.fix.push_back(
        "Nodes that are down or do not answer need the administrators: sinfo -R shows the reasons, "
        "scontrol show node NODE the state.");
  if (!list.draining.empty())
    finding.fix.push_back(
        "Administrators drain nodes before maintenance (@ after the state: a reboot is pending), and Slurm itself does "
        "after a failed prolog or health check, or where a node has less than slurm.conf says (Low RealMemory; slurmd "
        "-C "
        "shows what it has): wait until the nodes are back, or use another partition.");
  return finding;
}

}  // namespace

static RuleAnswer JudgeNodeUnavailable(const Case& facts) {
  RuleAnswer answer;
  const NodeList list = ReadNodes(facts.incident);
  if (!list.prolog.empty()) answer.findings.push_back(PrologFinding(list));
  const bool out = !list.silent.empty() || !list.failed.empty() || !list.draining.empty() || !list.maintained.empty();
  if (out) answer.findings.push_back(ListFinding(list));
  return answer;
}

extern const Rule kNodeUnavailableRule;
const Rule kNodeUnavailableRule = {
    "node-unavailable",
    "Nodes of the cluster do not accept jobs",
    "sinfo, sinfo -R, and lines of salloc or srun about a failed prolog",
    "The scheduler cannot use nodes that the job needs: they are down, do not answer, are drained, or their prolog "
    "failed. No process of the job runs there, and nothing in the job itself can change it.",
    "Some nodes of a large cluster are always out of service: they are mentioned but not reported as a cause as long "
    "as every partition has other usable nodes. A node that fails under a running job is rank-dead.",
    {"Ask for other nodes (--exclude=NODE, another partition).",
     "sinfo -R and scontrol show node NODE show why a node is out of service; only the administrators can repair it."},
    {"Let the scheduler's health check drain bad nodes before jobs start on them."},
    JudgeNodeUnavailable};

}  // namespace tacet
