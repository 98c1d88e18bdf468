// SPDX-License-Identifier: Apache-2.0
#include "rules/order_finding.h"

#include "rules/mismatch_finding.h"
#include "rules/words.h"

namespace tacet {

bool SomethingIsWrong(const Case& facts) {
  if (facts.analyses.outcome.hangs() || facts.analyses.outcome.first_failure) return true;
  for (const SourceAnalysis& source : facts.analyses.sources)
    if (!source.waits.cycles.empty() || !source.waits.roots.empty()) return true;
  return false;
}

const Divergence* FindDivergence(const Case& facts, Divergence::Kind kind) {
  for (const SourceAnalysis& source : facts.analyses.sources)
    for (const Divergence& divergence : source.divergences)
      if (divergence.kind == kind) return &divergence;
  return nullptr;
}

namespace {

Finding FromDivergence(const Case& facts, const Divergence& divergence) {
  const bool skipped = divergence.kind == Divergence::Kind::skipped;
  const Call& call = skipped ? *divergence.usual_call : *divergence.odd_call;
  Finding finding;
  finding.ranks = divergence.odd;
  finding.affected_ranks = divergence.usual;
  finding.group = divergence.odd_call->group;
  finding.operation = RefOf(call);
  const std::string their = divergence.odd.size() == 1 ? "its" : "their";
  const std::string how_many = divergence.count > 1 ? std::to_string(divergence.count) : std::string();
  finding.headline =
      RankWords(divergence.odd) +
      (skipped ? " skipped " + how_many : " issued " + (how_many.empty() ? "one" : how_many) + " more ") +
      (skipped && !how_many.empty() ? " " : "") + std::string(Name(call.kind)) + (how_many.empty() ? "" : " calls") +
      (skipped ? "" : " than " + their + " peers") + " (" + (how_many.empty() ? "#" : "the first is #") +
      std::to_string(call.seq) + " on " + facts.incident.groups[static_cast<uint32_t>(call.group)].Label() +
      "); from there on " + their + " calls pair up wrongly";
  finding.evidence.push_back(CiteCall(
      facts.incident, *divergence.odd_stream, *divergence.odd_call,
      RankWords(divergence.odd) + " issued this after " + std::to_string(divergence.shared_calls) + " equal calls"));
  finding.evidence.push_back(CiteCall(facts.incident, *divergence.usual_stream, *divergence.usual_call,
                                      RankWords(divergence.usual) + ", in the same role, issued this at that place"));
  return finding;
}

// "Rank 3 issued 5 extra calls, beginning at #12 on default_pg (all_reduce of 1 float32, one every 4 calls), and is 5
// places behind its peers"
std::string DriftWords(const CallDifference& difference, const Call& call, std::string_view label) {
  const bool skipped = difference.reading == CallDifference::Reading::skipped, one = difference.odd.size() == 1;
  const std::string count = std::to_string(difference.count);
  std::string words = RankWords(difference.odd) + (skipped ? " skipped " : " issued ") + count +
                      (skipped ? " calls" : " extra calls") + ", beginning at #" + std::to_string(difference.seq) +
                      " on " + std::string(label) + " (" + (difference.alike ? "" : "the first: ") + ShapeWords(call);
  if (difference.every > 1) words += ", one every " + std::to_string(difference.every) + " calls";
  words += one ? "), and is " : "), and are ";
  return words + count + " places " + (skipped ? "ahead of " : "behind ") + (one ? "its peers" : "their peers");
}

Finding FromDifference(const Case& facts, const CallDifference& difference) {
  const bool skipped = difference.reading == CallDifference::Reading::skipped;
  const CallSide& usual = difference.sides[0];
  const CallSide& odd = difference.sides[1];
  const Call& call = skipped ? *usual.call : *odd.call;
  Finding finding;
  finding.ranks = difference.odd;
  finding.affected_ranks = usual.ranks;
  finding.group = difference.group;
  finding.operation = RefOf(call);
  const std::string place = " at #" + std::to_string(difference.seq) + " on " +
                            facts.incident.groups[static_cast<uint32_t>(difference.group)].Label();
  const bool one = difference.odd.size() == 1;
  const std::string peers = one ? "its peers" : "their peers";
  if (difference.round > 0)
    finding.headline = RankWords(difference.odd) + " skipped a whole round of " + std::to_string(difference.round) +
                       " calls:" + place + (one ? " it" : " they") + " issued " + ShapeWords(*odd.call) + ", " + peers +
                       " " + ShapeWords(*usual.call);
  else if (difference.count > 1)
    finding.headline =
        DriftWords(difference, call, facts.incident.groups[static_cast<uint32_t>(difference.group)].Label());
  else
    finding.headline = RankWords(difference.odd) + (skipped ? " skipped " : " issued an extra ") + ShapeWords(call) +
                       place + (one ? " and continues one place " : " and continue one place ") +
                       (skipped ? "ahead of " : "behind ") + peers;
  finding.evidence.push_back(CiteCall(facts.incident, *odd.stream, *odd.call, RankWords(odd.ranks) + " issued this"));
  finding.evidence.push_back(
      CiteCall(facts.incident, *usual.stream, *usual.call, RankWords(usual.ranks) + " issued this at the same place"));
  return finding;
}

}  // namespace

std::optional<Finding> OrderFinding(const Case& facts, Divergence::Kind kind, CallDifference::Reading reading,
                                    std::string_view cause) {
  std::optional<Finding> finding;
  const CallDifference* difference = FirstDifferenceOf(facts);
  if (difference && !difference->odd.empty() && difference->reading == reading) {
    finding = FromDifference(facts, *difference);
  } else if (const Divergence* divergence = FindDivergence(facts, kind);
             divergence && !difference && SomethingIsWrong(facts)) {
    finding = FromDivergence(facts, *divergence);
  }
  if (!finding) return finding;
  finding->cause = cause;
  finding->status = StatusAfterDisagreement(facts);
  finding->severity = Severity::critical;
  finding->confidence =
      finding->affected_ranks.size() > finding->ranks.size() ? Confidence::certain : Confidence::likely;
  return finding;
}

}  // namespace tacet
