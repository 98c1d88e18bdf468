// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/stated_settings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/timeouts/timeout_census.h"
#include "rules/suspects.h"
#include "rules/words/end_sentence.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "rank 2 prints '6' where all other ranks print '0' ('relay 2: protocol version starts at 6')"
std::string DifferenceWords(const StatedDifference& stated) {
  return RankWords({stated.rank}) + " prints '" + stated.own_value + "' where all other ranks print '" +
         stated.other_value + "' (" + QuotedLine(*stated.own) + ")";
}

void CiteDifference(const StatedDifference& stated, Finding& finding) {
  finding.evidence.push_back({stated.own->source, stated.own->text, "printed by " + RankWords({stated.rank})});
  finding.evidence.push_back(
      {stated.other->source, stated.other->text, "the same line of " + RankWords({stated.others.front()})});
}

enum class Matter { other, calls, setup, end };

// What another setting on one rank can bring about.
Matter MatterOf(std::string_view cause) {
  for (const std::string_view one :
       {"collective-mismatch-operation", "collective-mismatch-size", "collective-mismatch-dtype",
        "collective-mismatch-root", "collective-skipped", "collective-extra", "p2p-unmatched"})
    if (cause == one) return Matter::calls;
  for (const std::string_view one : {"init-rank-missing", "init-unreachable", "init-mismatch"})
    if (cause == one) return Matter::setup;
  for (const std::string_view one : {"application-exception", "rank-dead"})
    if (cause == one) return Matter::end;
  return Matter::other;
}

bool IsOfCommunication(const Event& event) {
  if (event.kind == EventKind::nccl_error) return true;
  for (const Meaning meaning : {Meaning::nccl_failed, Meaning::gloo_timeout, Meaning::gloo_loss, Meaning::calls_differ,
                                Meaning::setup_failed, Meaning::of_communication})
    if (event.kind == EventKind::exception && event.Means(meaning)) return true;
  return false;
}

// What is cited for it was raised while ranks met, by what they met with.
bool FailsInSetup(const Case& facts, const Finding& finding) {
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::exception && event.As<Raised>().during == Activity::setup &&
           event.As<Raised>().in_collective &&
           std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
             return item.source.file == event.source.file && item.source.line == event.source.line;
           });
  });
}

Finding SettingFinding(const Case& facts, Status status, Confidence confidence) {
  const StatedDifference& stated = facts.analyses.stated;
  Finding finding;
  finding.cause = "environment-differs";
  finding.status = status;
  finding.severity = Severity::critical;
  finding.confidence = confidence;
  finding.ranks = {stated.rank};
  finding.affected_ranks = stated.others;
  const Event* told = facts.analyses.end.told;
  finding.headline = DifferenceWords(stated) + (stated.must_agree ? "; this must be the same on all ranks" : "");
  if (told)
    finding.headline +=
        "; the job " + std::string(status == Status::hang ? "hung: " : "crashed: ") + EndSentence(facts, *told);
  CiteDifference(stated, finding);
  if (told) finding.evidence.push_back(CiteEvent(*told, "what happened as a result"));
  finding.explanation =
      "Ranks print the same line of settings, and one of them prints another value. Ranks that run with different "
      "settings often issue different collectives, other sizes, or messages that no rank expects.";
  finding.fix = {
      "Find out where " + RankWords({stated.rank}) +
          " gets this value from: its environment, its command "
          "line, a configuration file on its host, or its own data. Give all ranks the same.",
      "Let one rank read the settings and send them to all (broadcast_object_list), or compare them when the "
      "job begins and stop with an error where they differ."};
  return finding;
}

// All wait in one operation with a root, and one rank printed another value just before: it may be the root.
bool WaitsForARoot(const TimeoutCensus& census) {
  if (census.calls.size() != 1) return false;
  const OpKind op = census.calls.front().op;
  return op == OpKind::broadcast || op == OpKind::reduce || op == OpKind::gather || op == OpKind::scatter;
}

std::optional<Finding> ValueFinding(const Case& facts) {
  const StatedDifference& stated = facts.analyses.stated;
  const TimeoutCensus census = CountTimeouts(facts.incident);
  if (!census) return std::nullopt;
  Finding finding = SettingFinding(facts, Status::hang, Confidence::likely);
  const bool root = WaitsForARoot(census);
  finding.cause = root ? "collective-mismatch-root" : "collective-mismatch-operation";
  if (!root) finding.confidence = Confidence::possible;
  finding.operation = ToldOperation(facts.incident);
  finding.headline = "all ranks agreed before, but in the last round " + DifferenceWords(stated) + "; " +
                     (facts.analyses.end.told ? EndSentence(facts, *facts.analyses.end.told) + "; " : "") +
                     (root ? "if this value is the root, the ranks wait for different ones"
                           : "if the next call depends on this value, the ranks issue different ones");
  finding.explanation =
      "All ranks printed the same value in every round before. Code that chooses a root, a size or a branch by a value "
      "that is not the same on all ranks makes them wait for each other.";
  finding.fix = {"Look at how " + RankWords({stated.rank}) +
                     " obtains this value: is it computed from what all ranks share, or from data of its own?",
                 "Let one rank decide and broadcast the decision before anything depends on it."};
  return finding;
}

bool MayAnswer(const Case& facts) {
  const auto& ranks = facts.standstill.ranks;
  return std::all_of(ranks.begin(), ranks.end(), [&](const Standstill& still) {
    return still.rank == facts.analyses.stated.rank &&
           (still.kind == StandstillKind::unclear || still.kind == StandstillKind::host);
  });
}

void AddTo(Finding& finding, const StatedDifference& stated) {
  finding.headline += "; " + DifferenceWords(stated);
  CiteDifference(stated, finding);
}

}  // namespace

std::optional<Finding> TellStatedDifference(const Case& facts, std::vector<Finding>& findings) {
  const StatedDifference& stated = facts.analyses.stated;
  if (!stated || facts.analyses.outcome.ended_in_order) return std::nullopt;
  const auto first = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.severity == Severity::critical && one.explained_by.empty();
  });
  if (first != findings.end()) {
    const Matter matter = MatterOf(first->cause);
    const bool named = first->ranks == std::vector<Rank>{stated.rank};
    const bool setting = stated.kind == StatedDifference::Kind::setting;
    // Without what they must have in common the group cannot be set up.
    const bool of_setup = matter == Matter::end && stated.must_agree && FailsInSetup(facts, *first);
    if (of_setup) return SettingFinding(facts, first->status, Confidence::likely);
    // What a rank issues depends on its settings, and what it needs to join as well.
    const bool explains = (matter == Matter::calls && (named || first->ranks.empty())) || matter == Matter::setup;
    if (explains && setting && first->confidence != Confidence::certain)
      return SettingFinding(facts, first->status, Confidence::likely);
    if (matter == Matter::calls && first->ranks.empty()) first->ranks = {stated.rank};
    if (matter == Matter::end && first->ranks.empty() && stated.own->no_gpu) first->ranks = {stated.rank};
    if (matter != Matter::other && first->ranks == std::vector<Rank>{stated.rank}) AddTo(*first, stated);
    std::erase(first->affected_ranks, stated.rank);
    return std::nullopt;
  }
  const JobEnd& end = facts.analyses.end;
  const bool hangs = end.kind == JobEnding::hung || facts.analyses.outcome.hangs();
  if (stated.kind == StatedDifference::Kind::value)
    return hangs && MayAnswer(facts) ? ValueFinding(facts) : std::nullopt;
  if (hangs && MayAnswer(facts))
    return SettingFinding(
        facts, Status::hang,
        stated.must_agree || !facts.standstill.ranks.empty() ? Confidence::likely : Confidence::possible);
  if (end.kind == JobEnding::crashed && end.told && IsOfCommunication(*end.told))
    return SettingFinding(facts, Status::crash, stated.must_agree ? Confidence::likely : Confidence::possible);
  if (end.kind == JobEnding::open && stated.must_agree)
    return SettingFinding(facts, Status::undetermined, Confidence::likely);
  return std::nullopt;
}

}  // namespace tacet
