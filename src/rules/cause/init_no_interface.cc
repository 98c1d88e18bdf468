// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <variant>

#include "rules/findings/init_finding.h"
#include "rules/words/words.h"

namespace tacet {

static bool HasCommunicated(const Case& facts) {
  const auto& streams = facts.incident.streams;
  return facts.analyses.outcome.ended_in_order ||
         std::any_of(streams.begin(), streams.end(), [](const CallStream& stream) { return !stream.calls.empty(); }) ||
         std::any_of(facts.incident.events.begin(), facts.incident.events.end(),
                     [](const Event& event) { return event.kind == EventKind::progress; });
}

// Of gloo's error, which alone names the interface; null for all others.
static const ErrorObject* InterfaceOfGloo(const Event& event) {
  return std::get_if<ErrorObject>(&event.As<Raised>().about);
}

// Gloo reads a variable of its own, knows no patterns in it and reads no file.
static void TellGloo(const std::string& interface, const std::vector<Rank>& ranks, Finding& finding) {
  finding.headline = "gloo found no address for " +
                     (interface.empty() ? "its network interface" : "the interface " + interface) +
                     (ranks.empty() ? "; the log does not say on which rank" : " on " + RankWords(ranks));
  // The setting is NCCL's syntax, which gloo takes for a name: "^lo,docker", "=eth0".
  if (interface.starts_with('^') || interface.starts_with('=')) {
    finding.headline = "gloo takes " + interface + " for the name of an interface: '^' and '=' are NCCL's syntax" +
                       (ranks.empty() ? "; the log does not say on which rank" : " (" + RankWords(ranks) + ")");
    finding.fix = {
        "Set GLOO_SOCKET_IFNAME to one exact name that has an address on every host (ip -br addr), or unset it; gloo "
        "knows no '^', no '=' and no patterns.",
        "NCCL_SOCKET_IFNAME may keep its '^' or '=': gloo does not read it."};
    return;
  }
  finding.fix = {
      "On that host: ip -br addr" + (interface.empty() ? "" : " show " + interface) +
          "; the interface must exist there and have an address.",
      "Set GLOO_SOCKET_IFNAME to an interface that has an address on every host, or unset it; gloo does not read "
      "NCCL_SOCKET_IFNAME."};
}

static RuleAnswer JudgeNoInterface(const Case& facts) {
  RuleAnswer answer;
  std::vector<Rank> ranks;
  std::vector<EvidenceItem> evidence;
  bool only_of_peers = true;
  const ErrorObject* gloo = nullptr;
  for (const Event& event : facts.incident.events) {
    if (!event.Means(Meaning::no_interface)) continue;
    const bool of_peer = event.As<Warning>().id == "peer-address-missing";  // it complains about another rank
    // Who has communicated has an interface: two ranks that both send get each other's data for an address.
    if (of_peer && HasCommunicated(facts)) continue;
    only_of_peers &= of_peer;
    if (evidence.empty()) gloo = InterfaceOfGloo(event);
    if (!of_peer && event.rank.known() && std::find(ranks.begin(), ranks.end(), event.rank) == ranks.end())
      ranks.push_back(event.rank);
    const std::string who = SubjectWords(SubjectOf(facts.incident, event));
    const bool again = std::any_of(evidence.begin(), evidence.end(),
                                   [&](const EvidenceItem& item) { return item.says.starts_with(who + " finds "); });
    const bool told = std::any_of(evidence.begin(), evidence.end(), [&](const EvidenceItem& item) {
      return item.says == who + " fails for that reason";
    });
    if (evidence.size() < 3 && !(again && told))
      evidence.push_back(
          CiteEvent(event, who + (of_peer                  ? " got no usable address from a peer"
                                  : again                  ? " fails for that reason"
                                  : InterfaceOfGloo(event) ? " finds no address for " + InterfaceOfGloo(event)->words
                                                           : " finds no network interface to use")));
  }
  if (evidence.empty()) return answer;
  std::sort(ranks.begin(), ranks.end());
  std::string setting;
  for (const Event& event : facts.incident.events) {
    const auto& told = event.As<EnvironmentSetting>();
    if (told.name != (gloo ? "GLOO_SOCKET_IFNAME" : "NCCL_SOCKET_IFNAME")) continue;
    if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), event.rank) == ranks.end()) continue;
    setting = told.value;
    evidence.push_back(CiteEvent(event, "the setting that leaves no interface there"));
    break;
  }
  Finding finding = InitFinding("init-no-interface", ranks);
  finding.evidence = std::move(evidence);
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) finding.affected_ranks.push_back(rank);
  if (only_of_peers) finding.confidence = Confidence::likely;
  finding.headline = "no network interface" +
                     (setting.empty()            ? " is usable"
                      : setting.starts_with('^') ? " is left: NCCL_SOCKET_IFNAME=" + setting + " excludes all"
                                                 : " matches NCCL_SOCKET_IFNAME=" + setting) +
                     (ranks.empty() ? "; the log does not say on which rank"
                                    : " on " + RankWords(ranks) + ", so process-group setup failed");
  if (gloo) TellGloo(gloo->words, ranks, finding);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kInitNoInterfaceRule;
const Rule kInitNoInterfaceRule = {
    "init-no-interface",
    "No usable network interface",
    "NCCL logs (WARN) or the rank's exception",
    "NCCL and gloo need an interface for their setup traffic, and one of them found none: NCCL_SOCKET_IFNAME (gloo: "
    "GLOO_SOCKET_IFNAME) names one that does not exist on that host, or none is up.",
    "An interface that exists but does not reach the peers gives connection errors instead. A rank that never joined "
    "gives no error at all. Gloo reads GLOO_SOCKET_IFNAME only: an exact name, without '=' or '^', of an interface "
    "that "
    "has an address on every host.",
    {"On that host: ip -br addr, and compare with NCCL_SOCKET_IFNAME (prefix match; '=name' for an exact one, "
     "'^docker' to exclude).",
     "Unset NCCL_SOCKET_IFNAME where hosts name their interfaces differently, or list all names: "
     "NCCL_SOCKET_IFNAME=eth0,ens5.",
     "The value may come from /etc/nccl.conf or ~/.nccl.conf rather than from the environment."},
    {"Give interfaces the same names on all hosts, or leave the choice to NCCL."},
    JudgeNoInterface};

}  // namespace tacet
