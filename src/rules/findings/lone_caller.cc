// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/lone_caller.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/process/odd_stack.h"
#include "base/text_scan.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct Apart {
  const StackReading* one = nullptr;     // the rank that is elsewhere
  const StackReading* others = nullptr;  // one of those at the same place
  std::vector<Rank> ranks;               // all of those
  std::string place;                     // "train_step (train.py:108)"; without a line where theirs differ
  explicit operator bool() const { return one != nullptr; }
};

// Lines differ within a loop; another function is another place.
bool AreInOneFunction(const StackReading& one, const StackReading& other) {
  return one.innermost_user.function == other.innermost_user.function &&
         one.innermost_user.file == other.innermost_user.file &&
         (one.innermost_user.function != StringId{} || one.where == other.where);
}

// Whole stacks of all ranks, at least three; all but one of them in one function.
Apart FindApart(const Case& facts) {
  const std::vector<StackReading>& stacks = facts.analyses.stacks;
  if (stacks.size() < 3 || stacks.size() != facts.analyses.life.ranks.size()) return {};
  if (!std::all_of(stacks.begin(), stacks.end(),
                   [](const StackReading& one) { return one.whole && !one.where.empty(); }))
    return {};
  const OddStack found = FindOddStack(stacks, AreInOneFunction);
  if (!found) return {};
  Apart apart{found.odd, found.usual, {}, found.usual->where};
  for (const StackReading& each : stacks) {
    if (&each == found.odd) continue;
    apart.ranks.push_back(each.rank);
    if (each.where != found.usual->where)
      apart.place = facts.incident.strings.Get(found.usual->innermost_user.function);
  }
  return apart;
}

// It waits for the GPU, or in its own code in a way that no Python frame shows: `.item()`, `.wait()`.
bool MayWaitForTheGpu(const Incident& incident, const StackReading& one) {
  using Place = StackReading::Place;
  if (WaitsForALock(incident, one)) return false;
  return one.place == Place::device_wait || (one.place == Place::host && !one.certain) || one.in_library;
}

// Below the function in which the two go different ways, both are in a function of their own: a rank that is merely at
// the end of the loop in which the others still are made no call of its own.
bool AreInTwoBranches(const Incident& incident, const StackReading& one, const StackReading& other) {
  const std::vector<Frame>& a = incident.stacks.Get(one.thread->stack);
  const std::vector<Frame>& b = incident.stacks.Get(other.thread->stack);
  size_t same = 0;
  while (same < std::min(a.size(), b.size()) && a[a.size() - 1 - same] == b[b.size() - 1 - same]) ++same;
  // The function in which they part: the same one, at two lines.
  if (same < std::min(a.size(), b.size()) && a[a.size() - 1 - same].function == b[b.size() - 1 - same].function) ++same;
  const auto has_own = [&](const std::vector<Frame>& frames) {
    return std::any_of(frames.begin(), frames.end() - static_cast<std::ptrdiff_t>(same), [&](const Frame& frame) {
      const std::string_view file = incident.strings.Get(frame.file);
      const FrameKind kind = ClassifyFrame(incident.strings.Get(frame.function), file);
      const bool of_torch = file.starts_with("torch/") || Contains(file, "-packages/torch/");
      return kind == FrameKind::user || (kind == FrameKind::framework && !of_torch);
    });
  };
  return has_own(a) && has_own(b);
}

// What the others say of their wait names nobody else.
bool IsNobodyElseNamed(const Case& facts, Rank rank) {
  const auto& told = facts.analyses.told;
  return facts.analyses.sources.empty() &&
         std::all_of(told.begin(), told.end(), [&](const ToldLaggard& one) { return one.rank == rank; });
}

Finding FindingOf(const Case& facts, const Apart& apart, std::string_view cause) {
  Finding finding;
  finding.cause = cause;
  finding.status = facts.analyses.end.kind == JobEnding::crashed ? Status::crash : Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  finding.ranks = {apart.one->rank};
  finding.affected_ranks = apart.ranks;
  finding.evidence.push_back(
      CiteStack(facts.incident, *apart.one->thread, "where " + RankWords(finding.ranks) + " is"));
  finding.evidence.push_back(
      CiteStack(facts.incident, *apart.others->thread, "where " + RankWords({apart.others->rank}) + " is"));
  return finding;
}

}  // namespace

std::optional<Finding> LoneCallerFinding(const Case& facts) {
  if (facts.analyses.end.kind != JobEnding::hung) return std::nullopt;
  const Apart apart = FindApart(facts);
  if (!apart || apart.one->place != StackReading::Place::communication ||
      !MayWaitForTheGpu(facts.incident, *apart.others) || !IsNobodyElseNamed(facts, apart.one->rank) ||
      !AreInTwoBranches(facts.incident, *apart.one, *apart.others))
    return std::nullopt;
  const std::string_view function = facts.incident.strings.Get(apart.one->decisive.function);
  if (!IsCollectiveCall(function)) return std::nullopt;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.exception) return std::nullopt;
  Finding finding = FindingOf(facts, apart, "collective-extra");
  const std::string who = RankWords(finding.ranks);
  finding.headline = who + " is in " + std::string(function) + ", called in " + apart.one->where + ", while " +
                     RankWords(apart.ranks) + (apart.ranks.size() == 2 ? " are both in " : " are all in ") +
                     apart.place + ": most likely only " + who +
                     " makes this call, and no rank can finish its operation";
  finding.fix = {
      "Find out why " + who + " calls " + std::string(function) + " in " + apart.one->where +
          " and the others do not: a call under 'if rank == 0' (saving, evaluation, metrics, logging), a branch on a "
          "local value, or fewer batches on one rank.",
      "Let all ranks make this call, or none. Compute a metric on all ranks where it is reduced over them, even if "
      "only one rank prints it.",
      "If all ranks make it: what do the others wait for in " + apart.place +
          "? Take their stacks twice, a few seconds apart (py-spy dump --native --pid PID)."};
  return finding;
}

std::optional<Finding> WentOnFinding(const Case& facts) {
  if (facts.analyses.end.kind != JobEnding::hung && facts.analyses.end.kind != JobEnding::crashed) return std::nullopt;
  const Apart apart = FindApart(facts);
  if (!apart || !IsNobodyElseNamed(facts, apart.one->rank)) return std::nullopt;
  const auto& processes = facts.incident.processes;
  const SurvivedError* error = nullptr;
  for (const SurvivedError& one : facts.incident.survived) {
    if (one.raised.type.empty() || one.speaker >= processes.size()) continue;
    // An error that the others met as well made them all go the same way.
    if (processes[one.speaker].rank != apart.one->rank) return std::nullopt;
    error = &one;
  }
  if (!error) return std::nullopt;
  Finding finding = FindingOf(facts, apart, "collective-skipped");
  const std::string who = RankWords(finding.ranks), place = CodePlaceWords(error->raised.place);
  finding.confidence = Confidence::likely;
  finding.headline = who + " continued after " + error->raised.type + (place.empty() ? "" : " in " + place) +
                     " and is in " + apart.one->where + ", while " + RankWords(apart.ranks) + " are in " + apart.place +
                     ": most likely it left out collectives that the others make there";
  finding.evidence.insert(finding.evidence.begin(),
                          {error->source, error->words, "the error after which " + who + " continued"});
  finding.fix = {"Fix the error" + (place.empty() ? "" : " in " + place) + " on " + who + ": " + error->raised.type +
                     (error->words.empty() ? "." : " (" + MessageWords(error->words, 100) + ")."),
                 "Do not catch an error around a collective on one rank only: that rank must end the job, or all ranks "
                 "must agree to "
                 "skip the collective (all_reduce a flag first).",
                 "Discard results computed after this point: they may be wrong even if the job continued."};
  return finding;
}

}  // namespace tacet
