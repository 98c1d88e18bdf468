// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/parted_stacks.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/words/words.h"

namespace tacet {
namespace {

struct StackSide {
  std::string operation;  // "barrier", "the backward pass"
  const StackReading* example = nullptr;
  std::vector<Rank> ranks;
};

// The operation with others that a rank is in; empty where its stack does not show one, or one of two ranks alone.
std::string SharedOperation(const Incident& incident, const StackReading& reading) {
  const std::string_view function = incident.strings.Get(reading.decisive.function);
  if (reading.place == StackReading::Place::communication)
    return IsCollectiveCall(function) ? std::string(function) : std::string();
  const std::string_view innermost = incident.strings.Get(reading.innermost.function);
  return reading.in_library && innermost == "backward" ? "the backward pass" : "";
}

// Those of most ranks first; empty where a stack does not show what its rank is in.
std::vector<StackSide> SidesOf(const Case& facts) {
  std::map<std::string, StackSide> by_operation;
  for (const StackReading& reading : facts.analyses.stacks) {
    std::string operation = reading.whole ? SharedOperation(facts.incident, reading) : "";
    if (operation.empty()) return {};
    StackSide& side = by_operation[operation];
    side.operation = std::move(operation);
    if (!side.example) side.example = &reading;
    side.ranks.push_back(reading.rank);
  }
  std::vector<StackSide> sides;
  for (auto& [operation, side] : by_operation) sides.push_back(std::move(side));
  std::stable_sort(sides.begin(), sides.end(),
                   [](const StackSide& a, const StackSide& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

std::string SideWords(const StackSide& side) {
  return RankWords(side.ranks) + (side.ranks.size() == 1 ? " is in " : " are in ") + side.operation +
         (side.example->where.empty() ? "" : ", called in " + side.example->where);
}

}  // namespace

std::optional<Finding> PartedStacksFinding(const Case& facts) {
  const Analyses& analyses = facts.analyses;
  if (!analyses.sources.empty() || !analyses.told.empty() || analyses.end.kind != JobEnding::hung ||
      analyses.stacks.size() < 2 || analyses.stacks.size() != analyses.life.ranks.size())
    return std::nullopt;
  for (const auto& [rank, life] : analyses.life.ranks)
    if (life.exception || life.timeout || life.gloo_timeout) return std::nullopt;  // these say more
  const std::vector<StackSide> sides = SidesOf(facts);
  if (sides.size() != 2) return std::nullopt;
  const bool alone = sides[1].ranks.size() == 1 && sides[0].ranks.size() > 1;
  Finding finding;
  finding.cause = "collective-mismatch-operation";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  for (const StackSide& side : sides) {
    auto& list = alone && &side == &sides[1] ? finding.ranks : finding.affected_ranks;
    list.insert(list.end(), side.ranks.begin(), side.ranks.end());
    finding.evidence.push_back(CiteStack(facts.incident, *side.example->thread,
                                         "where " + RankWords(side.ranks) + (side.ranks.size() == 1 ? " is" : " are")));
  }
  std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
  finding.headline = SideWords(sides[1]) + ", while " + SideWords(sides[0]) +
                     ": most likely they issue different operations, and none of them can finish";
  const std::string who = alone ? RankWords(sides[1].ranks) : "the ranks on one side";
  finding.fix = {
      "Find out why " + who + (alone ? " calls " : " call ") + sides[1].operation + " in " +
          (sides[1].example->where.empty() ? "that place" : sides[1].example->where) +
          " and the others do not: a call under 'if rank == 0', fewer batches on one rank, a branch on a local value.",
      "Let all ranks make this call, or none; decide such branches on values that are equal on all ranks (broadcast "
      "the "
      "condition first).",
      "TORCH_DISTRIBUTED_DEBUG=DETAIL in a short run names the first call that differs."};
  return finding;
}

}  // namespace tacet
