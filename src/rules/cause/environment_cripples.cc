// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lint/variable_harm.h"
#include "rules/findings/odd_holders.h"
#include "rules/rule.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

using Values = std::map<std::string, Holders>;  // name -> value -> where

Values CollectValues(const Case& facts) {
  Values values;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::environment && !event.Means(Meaning::in_prose)) {
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
    if (event.kind == EventKind::device_found && !event.Means(Meaning::in_prose) && !device) device = &event;
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

// What a setting that slows jobs down does to this one.
enum class Toll {
  slow,
  no_network,  // nothing: all ranks are on one host, and it is about the network
  no_peer,     // nothing: NCCL_HOSTID makes a host of each process, and it is about the inside of a host
};

// Processes that share a host with others, and whose NCCL_HOSTID no other process has.
static std::set<uint32_t> LoneSpeakers(const Incident& incident, const Values& values) {
  std::set<uint32_t> lone;
  const auto ids = values.find("NCCL_HOSTID");
  if (ids == values.end()) return lone;
  std::map<std::string, std::set<uint32_t>> on_host;
  for (const auto& [value, events] : ids->second) {
    std::set<uint32_t> speakers;
    for (const Event* event : events) speakers.insert(event->speaker);
    for (const uint32_t speaker : speakers)
      if (speaker < incident.processes.size()) on_host[incident.processes[speaker].host].insert(speaker);
    if (speakers.size() == 1) lone.insert(*speakers.begin());
  }
  std::erase_if(lone, [&](uint32_t speaker) {
    if (speaker >= incident.processes.size()) return true;
    const std::string& host = incident.processes[speaker].host;
    return host.empty() || on_host[host].size() < 2;
  });
  return lone;
}

static Toll TollOf(const VariableHarm& setting, const std::vector<const Event*>& events, bool one_host,
                   const std::set<uint32_t>& lone) {
  const bool all_lone =
      std::all_of(events.begin(), events.end(), [&](const Event* event) { return lone.contains(event->speaker); });
  if (IsInsideHost(setting.name) && all_lone) return Toll::no_peer;
  return one_host && setting.of_network ? Toll::no_network : Toll::slow;
}

static std::string_view CostWords(const VariableHarm& setting, Toll toll) {
  switch (toll) {
    case Toll::slow: break;
    case Toll::no_network: return "no network is used on one host";
    case Toll::no_peer: return "NCCL_HOSTID makes the process a host of its own";
  }
  return setting.cost;
}

static std::string TollWords(const std::string& names, Toll toll, const std::string& whose) {
  const bool one = names.find(", ") == std::string::npos;
  switch (toll) {
    case Toll::slow: break;
    case Toll::no_network:
      return names + (one ? " costs" : " cost") + " nothing here: all ranks are on one host, and no network is used";
    case Toll::no_peer:
      return names + (one ? " has" : " have") +
             " no effect here: NCCL_HOSTID makes each process a host of its own, and P2P and shared memory "
             "are used inside a host only";
  }
  return "the environment forces slow paths on " + whose + ": " + names;
}

static std::string_view ThenWords(Toll toll) {
  return toll == Toll::no_network ? " before running the job on several hosts."
                                  : " once all processes of a host have the same NCCL_HOSTID again.";
}

// Of the settings that weigh so.
static std::optional<Finding> CripplesFinding(const Case& facts, const Values& values, bool one_host,
                                              const std::set<uint32_t>& lone, Toll toll) {
  Finding finding;
  ToldEvents told;
  std::string names, unset = "unset", missing;
  bool sockets = false;
  for (const VariableHarm& setting : AllVariableHarms()) {
    if (setting.kind != HarmKind::slow) continue;
    const auto found = values.find(std::string(setting.name));
    if (found == values.end()) continue;
    for (const auto& [value, events] : found->second) {
      if (!setting.applies(value) || TollOf(setting, events, one_host, lone) != toll) continue;
      for (const Event* event : events) TakeTold(facts, *event, told);
      sockets |= setting.name == "NCCL_NET" || setting.name == "NCCL_IB_DISABLE";
      names += (names.empty() ? "" : ", ") + std::string(setting.name) + "=" + value;
      const bool named = unset.ends_with(setting.name);
      if (!named) unset += " " + std::string(setting.name);
      if (!setting.without.empty() && !named)
        missing.append(missing.empty() ? "" : "; ").append(setting.name).append(": ").append(setting.without);
      finding.evidence.push_back(CiteEvent(
          *events.front(), std::string(setting.name) + "=" + value + ": " + std::string(CostWords(setting, toll))));
    }
  }
  if (names.empty()) return std::nullopt;
  if (sockets && toll == Toll::slow) TellSockets(facts, told, finding);
  finding.cause = "environment-cripples";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::certain;
  finding.ranks = told.ranks;
  finding.headline =
      TollWords(names, toll, TellerWords(told)) + (toll == Toll::slow ? PartnerWords(finding.affected_ranks) : "");
  finding.fix.assign(kEnvironmentCripplesRule.fix.begin(), kEnvironmentCripplesRule.fix.end());
  finding.fix.front() =
      unset + " (in the job script, the container image, /etc/nccl.conf, ~/.nccl.conf)" +
      (toll != Toll::slow
           ? std::string(ThenWords(toll))
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

// Nothing of the job's own environment is here, and a sentence says what a setting costs it.
static void JudgeToldCost(const Case& facts, RuleAnswer& answer) {
  if (FindToldWords(facts.incident, EventKind::told_hang) || FindToldWords(facts.incident, EventKind::told_remedy))
    return;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::told_slow || event.As<ToldPlace>().setting.empty()) continue;
    const std::string& setting = event.As<ToldPlace>().setting;
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals), value = setting.substr(std::min(setting.size(), equals + 1));
    const auto harms = AllVariableHarms();
    const auto harm = std::find_if(harms.begin(), harms.end(), [&](const VariableHarm& one) {
      return one.kind == HarmKind::slow && one.name == name && one.applies(value);
    });
    if (harm == harms.end()) continue;
    Finding finding;
    finding.cause = "environment-cripples";
    finding.status = Status::slow;
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.headline =
        setting + " makes the job slower, as the text around the log says (" + std::string(harm->cost) + ")";
    finding.evidence.push_back(CiteEvent(event, "said in the text around the log"));
    finding.fix.assign(kEnvironmentCripplesRule.fix.begin(), kEnvironmentCripplesRule.fix.end());
    finding.fix.front() = "unset " + name +
                          " (in the job script, the container image, /etc/nccl.conf, ~/.nccl.conf), and measure again "
                          "with nccl-tests; NCCL_DEBUG=INFO shows which network NCCL uses then.";
    answer.findings.push_back(std::move(finding));
    return;
  }
}

static RuleAnswer JudgeEnvironment(const Case& facts) {
  RuleAnswer answer;
  JudgeNothingLeft(facts, answer);
  if (!answer.findings.empty()) return answer;
  const Values values = CollectValues(facts);
  // Between ranks of one host no network is used: what it is forced to be costs nothing there.
  const bool one_host = NodesOf(facts.incident) == 1;
  const std::set<uint32_t> lone = LoneSpeakers(facts.incident, values);
  if (auto finding = CripplesFinding(facts, values, one_host, lone, Toll::slow))
    answer.findings.push_back(std::move(*finding));
  if (answer.findings.empty()) JudgeToldCost(facts, answer);
  for (const Toll toll : {Toll::no_network, Toll::no_peer}) {
    auto finding = CripplesFinding(facts, values, one_host, lone, toll);
    if (!finding) continue;
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
    "separate cause (transport-fallback).",
    {"Remove the named variables (job script, container image, /etc/nccl.conf, ~/.nccl.conf) and measure again with "
     "nccl-tests.",
     "If such a variable is a workaround for a hang, say so in a comment next to it, and test again without it after "
     "each "
     "NCCL upgrade."},
    {"Keep NCCL variables in one reviewed file for all jobs.",
     "Compare the ENV lines of all ranks: tuning variables must be the same on all ranks."},
    JudgeEnvironment};

}  // namespace tacet
