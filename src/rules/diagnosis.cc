// SPDX-License-Identifier: Apache-2.0
#include "rules/diagnosis.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/events/event_witness.h"
#include "rules/findings/ended_thread.h"
#include "rules/findings/lone_issuer_finding.h"
#include "rules/findings/own_exit.h"
#include "rules/findings/peer_access.h"
#include "rules/findings/site_finding.h"
#include "rules/findings/stated_settings.h"
#include "rules/precedence.h"
#include "rules/suspects.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/open_verdict.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/unexplained/tried_steps.h"
#include "rules/unexplained/unread_error.h"
#include "rules/words/hang_capture.h"
#include "rules/words/site_steps.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// A rule speaks of "the named rank"; a finding knows which.
std::string NameTheRank(const std::vector<Rank>& ranks, std::string step) {
  constexpr std::string_view kNamed = "the named rank";
  if (ranks.size() != 1) return step;
  for (size_t at = step.find(kNamed); at != std::string::npos; at = step.find(kNamed, at + 1))
    step.replace(at, kNamed.size(), RankWords(ranks));
  return step;
}

void FillTexts(const Rule& rule, const Incident& incident, Finding& finding) {
  if (finding.explanation.empty())
    finding.explanation = std::string(rule.meaning) + " " + std::string(rule.look_alikes);
  if (finding.fix.empty()) {
    finding.fix.reserve(rule.fix.size());
    for (const std::string_view step : rule.fix)
      finding.fix.push_back(NameTheRank(finding.ranks, PlainStep(incident, step)));
  }
  for (std::string& advice : finding.fix) advice = NamePlaces(incident, finding.ranks, std::move(advice));
  if (finding.prevent.empty()) finding.prevent.assign(rule.prevent.begin(), rule.prevent.end());
  finding.headline = Capitalised(std::move(finding.headline));
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

// Whom a finding is about where it names no rank: the processes behind the lines that it cites.
void FillSubjects(const Incident& incident, const std::map<std::pair<FileId, uint32_t>, const Event*>& by_line,
                  Finding& finding) {
  if (!finding.subjects.empty()) return;
  for (const Rank rank : finding.ranks) finding.subjects.push_back(SubjectOf(incident, rank));
  if (!finding.ranks.empty()) return;
  std::vector<const Event*> cited;
  for (const EvidenceItem& item : finding.evidence)
    if (const auto found = by_line.find({item.source.file, item.source.line}); found != by_line.end())
      cited.push_back(found->second);
  finding.subjects = SubjectsOf(incident, cited);
}

// What happened to the job is known by how it ended, whoever is responsible.
Status StatusOf(const Case& facts, const Finding& finding) {
  // Nothing in the lines ends a process, and the text around them says that the job hangs.
  const JobEnd& end = facts.analyses.end;
  if (finding.status == Status::crash && end.told && end.told->kind == EventKind::told_hang) return Status::hang;
  if (finding.status != Status::undetermined) return finding.status;
  switch (end.kind) {
    case JobEnding::hung: return Status::hang;
    case JobEnding::crashed: return facts.analyses.outcome.ended_in_order ? finding.status : Status::crash;
    default: return finding.status;
  }
}

using LineEvents = std::map<std::pair<FileId, uint32_t>, const Event*>;

// PyTorch's exception ends with NCCL's own words, a few lines further down.
bool QuotesNccl(const LineEvents& by_line, const EvidenceItem& exception, const EvidenceItem& words) {
  constexpr uint32_t kLongestException = 8;
  const auto raised = by_line.find({exception.source.file, exception.source.line});
  const auto warned = by_line.find({words.source.file, words.source.line});
  return raised != by_line.end() && warned != by_line.end() &&
         (raised->second->Means(Meaning::nccl_failed) || raised->second->kind == EventKind::nccl_error) &&
         warned->second->kind == EventKind::nccl_warning && words.source.line > exception.source.line &&
         words.source.line - exception.source.line <= kLongestException;
}

// What a weaker finding says of nothing but the lines that the verdict cites is the same error told twice.
bool RepeatsVerdict(const Finding& verdict, const Finding& other, const LineEvents& by_line) {
  if (other.evidence.empty() || verdict.severity != Severity::critical || other.cause == verdict.cause) return false;
  return std::all_of(other.evidence.begin(), other.evidence.end(), [&](const EvidenceItem& item) {
    return item.source.line > 0 &&
           std::any_of(verdict.evidence.begin(), verdict.evidence.end(), [&](const EvidenceItem& cited) {
             return cited.source.file == item.source.file &&
                    (cited.source.line == item.source.line || QuotesNccl(by_line, item, cited));
           });
  });
}

// Whose error it was does not matter where another cause explains it.
bool AsksOfAConsequence(const Diagnosis& diagnosis, std::string_view rule, const CannotTell& open) {
  return open.question == "Which rank was it?" &&
         std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& finding) { return finding.cause == rule && !finding.explained_by.empty(); });
}

// Why a job stalled before somebody ended it is what a verdict of a hang tells, or asks in its own words.
void DropAnsweredQuestions(Diagnosis& diagnosis) {
  const bool told = !diagnosis.cause.empty();
  if (diagnosis.status != Status::hang || (!told && diagnosis.open.size() < 2)) return;
  std::erase_if(diagnosis.open, [](const CannotTell& open) { return open.question == kWhyItStalled; });
}

// The runner-up that nothing explains and that is as sure as the verdict: which of the two came first stays open.
void AskWhichCameFirst(Diagnosis& diagnosis) {
  if (diagnosis.findings.size() < 2) return;
  const Finding &first = diagnosis.findings[0], &second = diagnosis.findings[1];
  if (second.severity != Severity::critical || !second.explained_by.empty() || second.confidence != first.confidence ||
      first.cause.empty() || second.cause.empty() || first.cause == second.cause ||
      AreIndependent(first.cause, second.cause))
    return;
  diagnosis.open.push_back(
      {"Which came first: " + first.cause + " or " + second.cause + "?", "logs with times of the processes concerned"});
}

// Two readers may have understood one line: it is cited once.
void DropRepeatedEvidence(Finding& finding) {
  auto& evidence = finding.evidence;
  for (size_t i = evidence.size(); i-- > 1;)
    if (std::any_of(evidence.begin(), evidence.begin() + static_cast<ptrdiff_t>(i), [&](const EvidenceItem& one) {
          return one.source.line > 0 && one.source.file == evidence[i].source.file &&
                 one.source.offset == evidence[i].source.offset && one.says == evidence[i].says;
        }))
      evidence.erase(evidence.begin() + static_cast<ptrdiff_t>(i));
}

// NCCL itself told what failed, which ends its process. What stays open is at most whose fault it was.
bool CitesNcclsReason(const LineEvents& by_line, const Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
    const auto found = by_line.find({item.source.file, item.source.line});
    return found != by_line.end() && found->second->kind == EventKind::nccl_warning &&
           found->second->As<Warning>().role == NcclWarningRole::cause;
  });
}

bool CitesReporter(const LineEvents& by_line, const Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
    const auto found = by_line.find({item.source.file, item.source.line});
    return found != by_line.end() && WitnessOf(*found->second) == Witness::reporter;
  });
}

// A sentence around the log supports what a line tells: it is cited behind the lines, and alone it makes nothing
// certain.
void PutLinesBeforeSentences(const LineEvents& by_line, Finding& finding) {
  const auto is_line = [&](const EvidenceItem& item) {
    const auto found = by_line.find({item.source.file, item.source.line});
    return found == by_line.end() || !found->second->Means(Meaning::in_prose);
  };
  const auto sentences = std::stable_partition(finding.evidence.begin(), finding.evidence.end(), is_line);
  if (sentences == finding.evidence.begin() && !finding.evidence.empty() && finding.confidence == Confidence::certain)
    finding.confidence = Confidence::likely;
}

}  // namespace

Diagnosis Diagnose(const Incident& incident, const Analyses& analyses, const StandstillView& standstill) {
  const Case facts{incident, analyses, standstill};
  Diagnosis diagnosis;
  std::vector<std::pair<std::string_view, CannotTell>> asked;  // which rule asks what
  for (const Rule* rule : AllRules()) {
    RuleAnswer answer = rule->judge(facts);
    for (Finding& finding : answer.findings) {
      FillTexts(*rule, incident, finding);
      std::erase_if(finding.affected_ranks, [&](Rank rank) {
        return std::find(finding.ranks.begin(), finding.ranks.end(), rank) != finding.ranks.end();
      });
      DropRepeatedEvidence(finding);
      diagnosis.findings.push_back(std::move(finding));
    }
    for (CannotTell& open : answer.open) asked.emplace_back(rule->id, std::move(open));
  }
  const size_t of_rules = diagnosis.findings.size();
  AddSiteFindings(facts, diagnosis.findings);
  for (size_t i = of_rules; i < diagnosis.findings.size(); ++i)
    if (const Rule* rule = FindRule(diagnosis.findings[i].cause)) FillTexts(*rule, incident, diagnosis.findings[i]);
  LineEvents by_line;
  for (const Event& event : incident.events) by_line.try_emplace({event.source.file, event.source.line}, &event);
  // A benchmark that stops says so at the end; where a rule knows the cause, that is what happened.
  const bool known = std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(), [&](const Finding& one) {
    return one.severity == Severity::critical && !one.cause.empty() &&
           (one.confidence != Confidence::possible || CitesNcclsReason(by_line, one));
  });
  if (auto failed = FindFailedBenchmark(incident); failed && !known) diagnosis.findings.push_back(std::move(*failed));
  TellLoneIssuer(facts, diagnosis);
  if (auto alone = FindSeparateBenchmarks(incident)) diagnosis.findings.push_back(std::move(*alone));
  if (auto slow = FindSlowPeerAccess(incident)) diagnosis.findings.push_back(std::move(*slow));
  if (auto falls = FindFallingBenchmark(incident)) diagnosis.findings.push_back(std::move(*falls));
  for (Finding& finding : diagnosis.findings)
    if (TellOwnExit(facts, finding)) FillTexts(*FindRule(finding.cause), incident, finding);
  for (Finding& finding : diagnosis.findings) FillSubjects(incident, by_line, finding);
  for (Finding& finding : diagnosis.findings) PutLinesBeforeSentences(by_line, finding);
  OrderByPrecedence(diagnosis.findings);
  if (auto stated = TellStatedDifference(facts, diagnosis.findings)) {
    FillTexts(*FindRule(stated->cause), incident, *stated);
    FillSubjects(incident, by_line, *stated);
    diagnosis.findings.push_back(std::move(*stated));
    OrderByPrecedence(diagnosis.findings);
  }
  std::set<std::string, std::less<>> repeated;
  for (size_t i = diagnosis.findings.size(); i-- > 1;) {
    if (!RepeatsVerdict(diagnosis.findings[0], diagnosis.findings[i], by_line)) continue;
    repeated.insert(diagnosis.findings[i].cause);
    diagnosis.findings.erase(diagnosis.findings.begin() + static_cast<ptrdiff_t>(i));
  }
  for (auto& [rule, open] : asked)
    if (!repeated.contains(rule) && !AsksOfAConsequence(diagnosis, rule, open))
      diagnosis.open.push_back(std::move(open));
  const bool proven = !diagnosis.findings.empty() && diagnosis.findings[0].severity != Severity::note;
  const bool critical = proven && diagnosis.findings[0].severity == Severity::critical;
  // A slow rank holds its peers up at most moments: that it is behind when the records end is no more than that.
  const bool slow = proven && diagnosis.findings[0].status == Status::slow && !analyses.outcome.hangs();
  const bool suspects = !critical && !slow && AddSuspects(facts, diagnosis);
  // A setting that slows the job down answers no question about a job whose end, and some of whose ranks, nobody saw.
  // ... unless it is what whoever pasted the text speaks of.
  const bool unseen = proven && diagnosis.findings[0].status == Status::degraded &&
                      !CitesReporter(by_line, diagnosis.findings[0]) && !analyses.outcome.ended_in_order &&
                      !SawAllToTheEnd(facts);
  // So does one that slows a job down which then stood still or crashed.
  const bool ended_badly = analyses.end.kind == JobEnding::hung || analyses.outcome.hangs() ||
                           (analyses.end.kind == JobEnding::crashed && !analyses.outcome.ended_in_order);
  if ((!proven && !suspects) || (unseen && !suspects) || (!critical && !suspects && ended_badly)) {
    SettleWithoutFinding(facts, diagnosis);
    AddToldTrouble(facts, diagnosis);
    diagnosis.headline = Capitalised(std::move(diagnosis.headline));
    if (!diagnosis.findings.empty() && diagnosis.findings[0].cause.empty())
      diagnosis.findings[0].headline = diagnosis.headline;
    TellThreadBeforeHang(facts, diagnosis);
    DropAnsweredQuestions(diagnosis);
    PutTriedStepsLast(incident, diagnosis.findings);
    return diagnosis;
  }
  Finding& first = diagnosis.findings[0];
  first.status = StatusOf(facts, first);
  FillSubjects(incident, by_line, first);
  // The cause is in the lines; that the job hangs is not.
  const auto cited = [&](const EvidenceItem& item) {
    return item.source.file == analyses.end.told->source.file && item.source.line == analyses.end.told->source.line;
  };
  if (const Event* told = analyses.end.told; first.status == Status::hang && told &&
                                             told->kind == EventKind::told_hang &&
                                             std::none_of(first.evidence.begin(), first.evidence.end(), cited))
    first.evidence.push_back(CiteEvent(*told, "the text around the log says that the job hangs"));
  first.headline = Capitalised(std::move(first.headline));
  diagnosis.status = first.status;
  diagnosis.cause = first.cause;
  diagnosis.ranks = first.ranks;
  diagnosis.subjects = first.subjects;
  diagnosis.confidence = first.confidence;
  diagnosis.headline = first.headline;
  TellThreadBeforeHang(facts, diagnosis);
  QuoteBesideAnEnd(facts, diagnosis);
  AskWhichCameFirst(diagnosis);
  DropAnsweredQuestions(diagnosis);
  PutTriedStepsLast(incident, diagnosis.findings);
  return diagnosis;
}

}  // namespace tacet
