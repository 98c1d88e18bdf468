// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lint/variable_harm.h"
#include "rules/odd_holders.h"
#include "rules/rule.h"
#include "rules/told_finding.h"
#include "rules/words.h"

namespace tacet {
namespace {

using Values = std::map<std::string, Holders>;  // name -> value -> where

Values CollectValues(const Case& facts) {
  Values values;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::environment) {
      const auto& setting = event.As<EnvironmentSetting>();
      values[setting.name][setting.value].push_back(&event);
    }
  return values;
}

// Both ends of a connection use one network: what is forced on one side is used by the others. A device that NCCL
// lists shows that there is a faster one.
void TellSockets(const Case& facts, const ToldEvents& told, Finding& finding) {
  std::set<Rank> partners;
  const Event* device = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::network && event.As<NetworkName>().name == "Socket" && event.rank.known() &&
        !std::binary_search(told.ranks.begin(), told.ranks.end(), event.rank))
      partners.insert(event.rank);
    if (event.kind == EventKind::device_found && !device) device = &event;
  }
  if (!told.ranks.empty()) finding.affected_ranks.assign(partners.begin(), partners.end());
  if (device)
    finding.evidence.push_back(
        CiteEvent(*device, "a faster network is there: NCCL lists " + device->As<NetworkDevice>().name));
}

// "; rank 1 uses TCP sockets as well"
std::string PartnerWords(const std::vector<Rank>& partners) {
  if (partners.empty()) return "";
  return "; " + RankWords(partners) + (partners.size() == 1 ? " uses" : " use") + " TCP sockets as well";
}

}  // namespace

extern const Rule kEnvironmentCripplesRule;

// `harmless`: the settings that cost nothing on one host, else all others.
static std::optional<Finding> CripplesFinding(const Case& facts, const Values& values, bool one_host, bool harmless) {
  Finding finding;
  ToldEvents told;
  std::string names, unset = "unset", missing;
  bool sockets = false;
  for (const VariableHarm& setting : AllVariableHarms()) {
    if (setting.kind != HarmKind::slow) continue;
    const auto found = values.find(std::string(setting.name));
    if (found == values.end() || (one_host && setting.of_network) != harmless) continue;
    for (const auto& [value, events] : found->second) {
      if (!setting.applies(value)) continue;
      for (const Event* event : events) TakeTold(facts, *event, told);
      sockets |= setting.name == "NCCL_NET" || setting.name == "NCCL_IB_DISABLE";
      names += (names.empty() ? "" : ", ") + std::string(setting.name) + "=" + value;
      const bool named = unset.ends_with(setting.name);
      if (!named) unset += " " + std::string(setting.name);
      if (!setting.without.empty() && !named)
        missing.append(missing.empty() ? "" : "; ").append(setting.name).append(": ").append(setting.without);
      finding.evidence.push_back(
          CiteEvent(*events.front(), std::string(setting.name) + "=" + value + ": " +
                                         (harmless ? "no network is used on one host" : std::string(setting.cost))));
    }
  }
  if (names.empty()) return std::nullopt;
  if (sockets && !harmless) TellSockets(facts, told, finding);
  finding.cause = "environment-cripples";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::certain;
  finding.ranks = told.ranks;
  finding.headline = harmless ? names + " costs nothing here: all ranks are on one host, and no network is used"
                              : "the environment forces slow paths on " + TellerWords(told) + ": " + names +
                                    PartnerWords(finding.affected_ranks);
  finding.fix.assign(kEnvironmentCripplesRule.fix.begin(), kEnvironmentCripplesRule.fix.end());
  finding.fix.front() =
      unset + " (in the job script, the container image, /etc/nccl.conf, ~/.nccl.conf)" +
      (harmless
           ? " before running the job on several hosts."
           : ", and measure again with nccl-tests." +
                 (missing.empty() ? "" : " Where the faster path does not exist (" + missing + "), nothing changes."));
  return finding;
}

// No algorithm/protocol available for function ReduceScatter with datatype ncclBfloat16. NCCL_ALGO was set to tree.
static void JudgeNothingLeft(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told = CollectTold(facts, [](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "no-algorithm";
  });
  if (!told) return;
  Finding finding = ToldFinding(facts, "environment-cripples", told, "NCCL finds no algorithm that is allowed");
  const std::string& operation = told.events.front()->As<Warning>().object;
  std::set<std::string> set;
  for (const Event& event : facts.incident.events)
    if (const auto& one = event.As<EnvironmentSetting>(); one.name == "NCCL_ALGO" || one.name == "NCCL_PROTO")
      set.insert(one.name + "=" + one.value);
  std::string names;
  for (const std::string& one : set) names += (names.empty() ? "" : " with ") + one;
  finding.headline = (names.empty() ? "NCCL_ALGO or NCCL_PROTO" : names) + " leaves NCCL no algorithm for " +
                     (operation.empty() ? "an operation of this job" : operation) + " (" + TellerWords(told) + ")";
  finding.confidence = Confidence::likely;
  finding.ranks.clear();  // the setting is the job's
  finding.fix = {
      "unset NCCL_ALGO NCCL_PROTO (job script, container image, /etc/nccl.conf, ~/.nccl.conf) and run again.",
      "If it was set on purpose: name algorithms by operation (NCCL_ALGO=\"allreduce:tree;allgather:ring\", "
      "NCCL 2.24 and newer), and allow one for every operation."};
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeEnvironment(const Case& facts) {
  RuleAnswer answer;
  JudgeNothingLeft(facts, answer);
  if (!answer.findings.empty()) return answer;
  const Values values = CollectValues(facts);
  // Between ranks of one host no network is used: what it is forced to be costs nothing there.
  const bool one_host = NodesOf(facts.incident) == 1;
  if (auto finding = CripplesFinding(facts, values, one_host, false)) answer.findings.push_back(std::move(*finding));
  if (!one_host) return answer;
  if (auto finding = CripplesFinding(facts, values, one_host, true)) {
    finding->severity = Severity::note;
    finding->status = Status::healthy;
    finding->affected_ranks = std::move(finding->ranks);
    finding->ranks.clear();
    answer.findings.push_back(std::move(*finding));
  }
  return answer;
}

const Rule kEnvironmentCripplesRule = {
    "environment-cripples",
    "Environment variables restrict NCCL",
    "NCCL logs (NCCL_DEBUG=INFO prints ENV lines since 2.18)",
    "A variable switches off a fast transport, an algorithm or channels, or leaves NCCL no algorithm at all. Such "
    "settings are often left over from "
    "debugging, and may come from /etc/nccl.conf or "
    "~/.nccl.conf although NCCL says 'set by environment'.",
    "If the fast path does not exist on this machine, the setting costs nothing. A fallback without any setting is a "
    "cause of its own (transport-fallback).",
    {"Remove the named variables (job script, container image, /etc/nccl.conf, ~/.nccl.conf) and measure again with "
     "nccl-tests.",
     "If such a variable is a workaround for a hang, say so in a comment beside it, and test again without it after "
     "each "
     "NCCL upgrade."},
    {"Keep NCCL variables in one reviewed file for all jobs.",
     "Compare the ENV lines of all ranks: tuning variables must be the same on all ranks."},
    JudgeEnvironment};

}  // namespace tacet
