// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_scan.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

// Each rank prints its own number. Of those whose output is not here nothing is known: they may have raised the same.
static bool OthersGoOn(const Case& facts) {
  if (facts.standstill.operation || facts.analyses.outcome.first_timeout) return true;
  const auto& ranks = facts.analyses.life.ranks;
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const auto& one) { return one.second.any() && !one.second.unused_parameters; });
}

// The name up to the last full stop that all of them share: "blocks.1" of "blocks.1.mlp.bias" and "blocks.1.qkv.bias".
static std::string SharedModule(const std::vector<std::string>& names) {
  std::string_view shared = names.front();
  for (const std::string& name : names) {
    size_t same = 0;
    while (same < shared.size() && same < name.size() && shared[same] == name[same]) ++same;
    shared = shared.substr(0, same);
  }
  const size_t dot = shared.rfind('.');
  return dot == std::string_view::npos ? "" : std::string(shared.substr(0, dot));
}

// DDP prints indices with blanks between them ("8 9"), names with commas.
// It stops after the first hundred: "98 99 ...".
static std::string ParameterWords(std::string_view names) {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> parts;
  names = Trim(names);
  const bool cut = names.ends_with("...");
  if (cut) names.remove_suffix(3);
  while (true) {
    names = names.substr(std::min(names.find_first_not_of(", "), names.size()));
    if (names.empty()) break;
    const size_t end = std::min(names.find_first_of(", "), names.size());
    parts.emplace_back(names.substr(0, end));
    names.remove_prefix(end);
  }
  // "12 of blocks.1 (blocks.1.mlp.2.bias, ...)"
  if (parts.size() > kMostNamed) {
    const std::string module = SharedModule(parts);
    return (module.empty() ? "" : "of " + module + " ") +
           (std::string(cut ? "(at least " : "(") + std::to_string(parts.size()) + ": " + parts[0] + ", " + parts[1] +
            ", ...)");
  }
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return out;
}

static bool AreIndices(std::string_view names) {
  return names.find_first_not_of("0123456789,. ") == std::string_view::npos;
}

// "rank 0: 4-7; rank 1: 2 and 3": where each rank names others. Empty where all name the same.
static std::string OwnParameters(const std::vector<const Event*>& events) {
  constexpr size_t kMostRanks = 4;
  const auto& lead = events.front()->As<DdpParameters>().names;
  const auto differs = [&](const Event* event) {
    const auto& names = event->As<DdpParameters>().names;
    return event->rank.known() && !names.empty() && names != lead;
  };
  if (lead.empty() || std::none_of(events.begin(), events.end(), differs)) return "";
  std::string words;
  for (size_t i = 0; i < std::min(events.size(), kMostRanks); ++i)
    words += (i == 0 ? "" : "; ") + RankWords({events[i]->rank}) + ": " +
             ParameterWords(events[i]->As<DdpParameters>().names);
  return words + (events.size() > kMostRanks ? "; ..." : "");
}

static std::string ProofWords(std::string_view names) {
  if (names.empty()) return "DDP's error";
  return AreIndices(names) ? "DDP gives the indices of the parameters" : "DDP names the parameters";
}

// The last line that this rank alone printed before it raised: what it did there, the others did not.
static const LineOfRank* LastOwnLine(const Case& facts, Rank rank, const Event& error) {
  const LineOfRank* last = nullptr;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.last_of_ranks)
      if (line.rank == rank.value && line.source.file == error.source.file && line.source.line < error.source.line)
        last = &line;
  if (!last) return nullptr;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const LineOfRank& line : outline.last_of_ranks)
      if (line.rank != last->rank && line.text == last->text) return nullptr;
  return last;
}

static RuleAnswer JudgeUnused(const Case& facts) {
  RuleAnswer answer;
  Finding finding;
  std::vector<const Event*> events;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.unused_parameters) continue;
    finding.ranks.push_back(rank);
    events.push_back(life.unused_parameters);
  }
  if (events.empty()) {
    // The error may stand in a file whose rank is not known.
    for (const Event& event : facts.incident.events)
      if (event.kind == EventKind::ddp_unused_parameters) events.push_back(&event);
  }
  if (events.empty()) return answer;
  // In one output of all ranks several raise it, and few say for which rank.
  size_t nameless = 0;
  for (const Event& event : facts.incident.events)
    nameless += event.kind == EventKind::ddp_unused_parameters && !event.rank.known();
  if (nameless > 0) finding.ranks.clear();
  const auto world = static_cast<size_t>(facts.incident.world_size > 0 ? facts.incident.world_size : 0);
  const bool all = world > 0 && finding.ranks.size() == world;
  const std::vector<Rank> told = finding.ranks;
  if (!all && !OthersGoOn(facts)) finding.ranks.clear();
  finding.cause = "ddp-unused-parameters";
  finding.status = facts.analyses.outcome.first_timeout ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  const auto& lead = events[0]->As<DdpParameters>();
  const std::string which = lead.names.empty() ? "" : " " + ParameterWords(lead.names);
  const std::string own = all ? OwnParameters(events) : std::string();
  const bool single = !lead.names.empty() && lead.names.find_first_of(", ") == std::string::npos;
  const std::string parameters = (single ? "Parameter" : "Parameters") + which;
  finding.headline =
      !own.empty()
          ? "each rank took a different branch: different parameters got no gradient (" + own + "), and DDP stopped"
      : all ? parameters + " got no gradient on any rank, since " + (single ? "it does" : "they do") +
                  " not contribute to the loss, and DDP stopped"
      : finding.ranks.empty() && !told.empty()
          ? parameters + " got no gradient (reported by " + RankWords(told) +
                "), and DDP stopped: " + (single ? "it does" : "they do") +
                " not contribute to the loss, either on all ranks or only on ranks that take a certain branch"
      : finding.ranks.empty()
          ? parameters + " got no gradient, and DDP stopped; the log does not say on which ranks"
          : RankWords(finding.ranks) + " took a branch that leaves " + (single ? "parameter" : "parameters") + which +
                " without a gradient: DDP raises an error there and the others wait";
  for (const Event* event : events) {
    if (finding.evidence.size() == 3) break;
    finding.evidence.push_back(CiteEvent(*event, ProofWords(event->As<DdpParameters>().names) +
                                                     (event->rank.known() ? " on " + RankWords({event->rank}) : "")));
  }
  if (const LineOfRank* line =
          finding.ranks.size() == 1 && !all ? LastOwnLine(facts, finding.ranks[0], *events[0]) : nullptr) {
    finding.headline += "; before that it alone printed '" + line->text + "'";
    finding.evidence.push_back({line->source, line->text, "what only " + RankWords(finding.ranks) + " printed"});
    finding.fix = {
        "Look at what " + RankWords(finding.ranks) +
            " does there: whatever freezes, drops or skips parameters must do so on all ranks in the same step; wrap "
            "the "
            "model in DDP again after parameters were frozen.",
        "DistributedDataParallel(find_unused_parameters=True) as a stopgap: it costs one graph traversal per step."};
  } else if (!own.empty()) {
    finding.fix = {
        "If ranks are meant to take different branches: DistributedDataParallel(find_unused_parameters=True) lets each "
        "of them skip different ones; it costs one graph traversal per step.",
        "If they are not: make the branch the same on all ranks, or add a zero-weighted term so that every parameter "
        "gets a gradient."};
    if (AreIndices(lead.names))
      finding.fix.push_back("TORCH_DISTRIBUTED_DEBUG=INFO prints the parameters' names instead of their indices.");
  } else if (!lead.names.empty() && !AreIndices(lead.names)) {
    finding.fix = {
        "Find these parameters: are they behind a condition (an unused head, a dropped layer, a skipped branch)?",
        "Make the branch the same on all ranks, or add a zero-weighted term so that every parameter gets a gradient.",
        "DistributedDataParallel(find_unused_parameters=True) as a stopgap: it costs one graph traversal per step."};
  }
  const bool switched_on = lead.search_is_on;
  if (which.empty() || switched_on) {
    finding.fix = {
        "Find the parameters: TORCH_DISTRIBUTED_DEBUG=INFO prints their names; or list after backward() "
        "those whose .grad is None.",
        "Make the branch the same on all ranks, or add a zero-weighted term so that every parameter gets a "
        "gradient."};
    if (!switched_on)
      finding.fix.push_back(
          "DistributedDataParallel(find_unused_parameters=True) as a stopgap: it costs one graph traversal per step.");
  }
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
    finding.evidence.push_back(
        CiteCall(facts.incident, *facts.standstill.stream, *facts.standstill.operation, "a peer waits in this bucket"));
    finding.affected_ranks = facts.standstill.waiters;
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kDdpUnusedParametersRule;
const Rule kDdpUnusedParametersRule = {
    "ddp-unused-parameters",
    "DDP found parameters without a gradient",
    "the output of the ranks; flight records show where the peers wait",
    "DistributedDataParallel reduces gradients in buckets and expects every parameter in every backward pass. A "
    "parameter that does not contribute to the loss leaves its bucket unfinished. If this happens on all ranks, the "
    "next forward pass raises an error; if one rank took a different branch, that rank raises the error and the others "
    "wait in the all_reduce of that bucket.",
    "The exception is DDP's own and names parameters; other exceptions in user code have nothing to do with "
    "communication. Without the output it looks like a rank stuck on the host.",
    {"Find these parameters: are they behind a condition (an unused head, a dropped layer, a skipped branch)?",
     "Make the branch the same on all ranks, or add a zero-weighted term so that every parameter gets a gradient.",
     "DistributedDataParallel(find_unused_parameters=True) as a stopgap: it costs one graph traversal per step.",
     "TORCH_DISTRIBUTED_DEBUG=INFO prints the parameters' names instead of their indices."},
    {"Test a step of every branch with two ranks.", "Set static_graph=True if the unused set never changes."},
    JudgeUnused};

}  // namespace tacet
