// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/mismatch_finding.h"

#include <algorithm>
#include <map>
#include <set>

#include "rules/findings/checked_finding.h"
#include "rules/findings/shape_report.h"
#include "rules/findings/side_stacks.h"
#include "rules/findings/watchdog_mismatch.h"
#include "rules/words/site_steps.h"
#include "rules/words/words.h"

namespace tacet {

Status StatusAfterDisagreement(const Case& facts) {
  const Outcome& outcome = facts.analyses.outcome;
  if (outcome.hangs()) return Status::hang;
  if (outcome.first_failure) return Status::crash;
  if (outcome.ended_in_order) return Status::corrupt;
  // Without any word of the end: a flight record in which everything completed went on; a log that just stops did not.
  const bool recorded = facts.analyses.Of(CallSource::flight_recorder) || facts.analyses.Of(CallSource::black_box);
  return recorded && !outcome.unfinished_calls ? Status::corrupt : Status::hang;
}

const CallDifference* FirstDifferenceOf(const Case& facts) {
  const CallDifference* first = nullptr;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    for (const CallDifference& difference : source.differences) {
      if (!first) {
        first = &difference;
        continue;
      }
      const bool timed = difference.enter_wall_ns != kNoTime && first->enter_wall_ns != kNoTime;
      // Clocks of logs have a resolution of a second: within it the better record, which comes first, keeps its place.
      const int64_t slack = difference.source == first->source ? 0 : facts.incident.patience.log_resolution_ns;
      if (timed && difference.enter_wall_ns + slack < first->enter_wall_ns) first = &difference;
    }
  }
  return first;
}

namespace {

std::string_view AspectWords(CallAspect aspect) {
  switch (aspect) {
    case CallAspect::operation: return "a different operation";
    case CallAspect::size: return "a different size";
    case CallAspect::type: return "a different data type";
    case CallAspect::reduction: return "a different reduction";
    case CallAspect::root: return "a different root";
  }
  return "";
}

std::string SideWords(const Call& call, CallAspect aspect) {
  switch (aspect) {
    case CallAspect::operation: return std::string(Name(call.kind));
    case CallAspect::size: return std::to_string(call.in_elements) + (call.in_elements == 1 ? " element" : " elements");
    case CallAspect::type: return std::string(Name(call.type));
    case CallAspect::reduction: return std::string(Name(call.reduction));
    case CallAspect::root: return "root " + std::to_string(call.peer.value);
  }
  return "";
}

// "262144 elements on rank 0, 65536 elements on rank 2, 1024 elements on ranks 1 and 3"; the commonest last.
std::string SideList(const CallDifference& difference) {
  constexpr size_t kMost = 4;
  std::string words;
  for (size_t i = 1; i < difference.sides.size() && i < kMost; ++i)
    words +=
        SideWords(*difference.sides[i].call, difference.aspect) + " on " + RankWords(difference.sides[i].ranks) + ", ";
  if (difference.sides.size() > kMost) words += "others on further ranks, ";
  return words + SideWords(*difference.sides[0].call, difference.aspect) + " on " +
         RankWords(difference.sides[0].ranks);
}

// Where the others stalled, if they did: the difference is the cause, the stall its consequence.
void CiteStall(const Case& facts, const CallDifference& difference, Finding& finding) {
  for (const SourceAnalysis& source : facts.analyses.sources) {
    const WaitGraph& waits = source.waits;
    const Call* stall = waits.common_stall;
    const CallStream* stream = waits.common_stream;
    if (!stall && !waits.operations.empty()) {
      stall = waits.operations.front().call;
      stream = waits.operations.front().stream;
    }
    if (!stall) continue;
    // The better record comes first: where it shows ranks in this very call, a log only shows what was issued ahead.
    if (stall->group == difference.group && stall->seq == difference.seq) return;
    finding.evidence.push_back(CiteCall(facts.incident, *stream, *stall, "where the ranks wait as a result"));
    return;
  }
}

Finding FindingOf(const Case& facts, const CallDifference& difference, std::string_view cause) {
  Finding finding;
  finding.cause = cause;
  finding.status = StatusAfterDisagreement(facts);
  finding.severity = Severity::critical;
  finding.confidence = difference.odd.empty()        ? Confidence::possible
                       : difference.decided_by_habit ? Confidence::likely
                                                     : Confidence::certain;
  // Two sides of equal size may be one that is right and one whose record is not whole; three are no accident.
  const bool many = difference.odd.empty() && difference.sides.size() > 2;
  if (many) finding.confidence = Confidence::likely;
  if (difference.odd.empty() && !many) finding.status = Status::undetermined;
  finding.ranks = difference.odd;
  finding.group = difference.group;
  const CallSide& usual = difference.sides[0];
  const CallSide& odd = difference.sides[1];
  finding.operation = RefOf(difference.odd.empty() ? *usual.call : *odd.call);
  for (size_t i = 0; i < difference.sides.size(); ++i)
    if (difference.odd.empty() || i == 0)
      finding.affected_ranks.insert(finding.affected_ranks.end(), difference.sides[i].ranks.begin(),
                                    difference.sides[i].ranks.end());
  std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
  const std::string place = "#" + std::to_string(difference.seq) + " on " +
                            facts.incident.groups[static_cast<uint32_t>(difference.group)].Label();
  if (many) {
    finding.headline = "ranks used " + std::string(AspectWords(difference.aspect)).substr(2) + "s in " + place + ": " +
                       SideList(difference);
  } else if (difference.odd.empty()) {
    finding.headline = "at " + place + " " + RankWords(usual.ranks) + " issued " + ShapeWords(*usual.call) + " and " +
                       RankWords(odd.ranks) + " issued " + ShapeWords(*odd.call) + "; which side is wrong is unknown";
  } else if (difference.aspect == CallAspect::operation) {
    finding.headline = RankWords(difference.odd) + " issued " + SideWords(*odd.call, difference.aspect) + " as " +
                       place + ", where " + RankWords(usual.ranks) + " issued " +
                       SideWords(*usual.call, difference.aspect);
  } else {
    finding.headline =
        RankWords(difference.odd) + " used " + std::string(AspectWords(difference.aspect)) + " in " +
        std::string(Name(odd.call->kind)) + " " + place + ": " +
        (difference.sides.size() > 2 ? SideList(difference)
                                     : SideWords(*odd.call, difference.aspect) + " where " + RankWords(usual.ranks) +
                                           " used " + SideWords(*usual.call, difference.aspect));
  }
  const std::string site = CallSiteWords(facts.incident, *odd.call);
  if (difference.reordered > 0) {
    finding.headline +=
        "; the same " + std::to_string(difference.reordered) + " operations follow on all ranks, in a different order";
    finding.fix = {
        "Iterate in a fixed order" + (site.empty() ? site : " in " + site) +
            ": a set, a dictionary or a listing of files can give each process an order of its own; use sorted(...).",
        "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL: PyTorch then names the first call that differs."};
  }
  if (ThreadStep step = SecondThreadStep(facts, {odd.ranks, nullptr, odd.call}, {usual.ranks, nullptr, usual.call});
      !step.words.empty())
    finding.fix.insert(finding.fix.begin(), std::move(step.words));
  finding.evidence.push_back(CiteCall(facts.incident, *odd.stream, *odd.call, RankWords(odd.ranks) + " issued this"));
  finding.evidence.push_back(CiteCall(facts.incident, *usual.stream, *usual.call,
                                      RankWords(usual.ranks) + " issued this at the same position"));
  NameCallInSteps(facts, *odd.call, odd.ranks, finding);
  if (finding.status != Status::corrupt) CiteStall(facts, difference, finding);
  return finding;
}

std::string_view SubjectOf(CallAspect aspect) {
  switch (aspect) {
    case CallAspect::operation: return "op";
    case CallAspect::size: return "shape";
    case CallAspect::type: return "dtype";
    default: return "";
  }
}

// Mismatched collective detected, please check your collective calls at and around rank 39. (NCCL 2.4)
void JudgeNcclsOwnCheck(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  const Event* last = nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "mismatched-collective") last = &event;
  if (!last) return;
  const int64_t rank = last->As<Warning>().number;
  Finding finding;
  finding.cause = cause;
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  finding.headline = "ranks issued different collectives: NCCL's own check stopped the job" +
                     (rank >= 0 ? " at and around rank " + std::to_string(rank) : std::string());
  finding.evidence.push_back(CiteEvent(*last, "NCCL compared the calls"));
  const std::string around =
      rank >= 0 ? " of rank " + std::to_string(rank) + " and its neighbors" : std::string(" of all ranks");
  finding.fix = {
      "Record the calls of every rank in a file of its own (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL "
      "NCCL_DEBUG_FILE=nccl.%h.%p.log) and compare the last ones" +
          around + ".",
      "Look for branches that ranks may take differently: unequal numbers of batches, unused parameters, code that "
      "runs "
      "on one rank only."};
  answer.findings.push_back(std::move(finding));
}

// Horovod names what each side waits in: "rank 1 waits in val_acc; ranks 0, 2 and 3 wait in grads_7".
void TellTensors(const MismatchReport& report, Finding& finding) {
  if (report.aspect != "tensor") return;
  finding.operation.reset();
  if (report.tensor.empty() || report.other_tensor.empty() || finding.ranks.empty()) return;
  const auto waits = [](const std::vector<Rank>& ranks) {
    return RankWords(ranks) + (ranks.size() == 1 ? " waits in " : " wait in ");
  };
  finding.headline = waits(finding.ranks) + report.other_tensor + "; " + waits(finding.affected_ranks) + report.tensor;
  finding.fix.front() = "Find the branch that makes ranks issue different calls: where does the program use " +
                        report.other_tensor + "? Compare what each rank does at this point (py-spy dump --pid PID).";
}

// A library compared what the ranks passed, and names none of them.
bool IsOfChecker(const MismatchReport& report) { return report.by_horovod || report.by_gloo; }

std::string CheckerName(const MismatchReport& report) { return report.by_gloo ? "gloo" : "Horovod"; }

// Each rank of a DETAIL report names itself and one other that differs. The odd one is in most reports' other half.
void JudgeDetailReports(const Case& facts, CallAspect aspect, std::string_view cause, RuleAnswer& answer) {
  std::map<Rank, int> accused;
  std::set<Rank> reporters;
  const Event* sample = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::mismatch_report || SubjectOf(aspect).empty()) continue;
    // Where the report is cut before it says what differs, the operation stands for it.
    const std::string_view told = event.As<MismatchReport>().aspect;
    if (told == "seq") continue;  // the calls are alike: see sequence_report
    const std::string_view differs =
        told.empty() || told == "tensor" || told == "device" ? SubjectOf(CallAspect::operation) : told;
    if (differs != SubjectOf(aspect)) continue;
    if (!sample) sample = &event;
    if (event.rank.known() && !reporters.insert(event.rank).second) continue;
    for (const Rank rank : event.ranks) ++accused[rank];
  }
  if (!sample) {
    if (aspect == CallAspect::operation) JudgeNcclsOwnCheck(facts, cause, answer);
    return;
  }
  // The odd rank stands in every report; each innocent one only in its own and a few more.
  int most = 0;
  for (const auto& [rank, count] : accused) most = std::max(most, count);
  std::vector<Rank> odd;
  for (const auto& [rank, count] : accused)
    if (count == most) odd.push_back(rank);
  Finding finding;
  finding.cause = cause;
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  if (odd.size() == 1 && accused.size() > 2) {
    finding.ranks = odd;
    finding.confidence = Confidence::certain;
  } else {
    finding.confidence = Confidence::possible;
    finding.status = Status::undetermined;
  }
  for (const auto& [rank, count] : accused)
    if (finding.ranks.empty() || rank != finding.ranks[0]) finding.affected_ranks.push_back(rank);
  if (sample->op != OpKind::unknown || sample->seq >= 0) finding.operation = OperationRef{sample->op, sample->seq, -1};
  const auto& report = sample->As<MismatchReport>();
  if (IsOfChecker(report)) finding.status = Status::crash, finding.confidence = Confidence::certain;
  finding.headline =
      (finding.ranks.empty() && finding.affected_ranks.empty() ? "ranks disagree"
       : finding.ranks.empty() && finding.affected_ranks.size() == 1
           ? RankWords(finding.affected_ranks) + " and its peers disagree"
       : finding.ranks.empty() ? RankWords(finding.affected_ranks) + " disagree"
                               : RankWords(finding.ranks) + " disagrees with its peers") +
      " about the " +
      std::string(aspect == CallAspect::size   ? (report.by_gloo ? "size" : "shape")
                  : aspect == CallAspect::type ? "data type"
                                               : "operation") +
      (sample->op == OpKind::unknown ? std::string() : " of " + std::string(Name(sample->op))) +
      (sample->seq >= 0 ? " #" + std::to_string(sample->seq) : "") + SidesOfCheck(*sample) + "; " +
      (IsOfChecker(report) ? CheckerName(report) + "'s check stopped the job" : std::string(kStoppedByCheck));
  const bool horovod = report.aspect == "tensor";
  finding.fix = {
      "Find the branch that makes ranks issue different calls: compare what each rank does at this point (its "
      "traceback, or py-spy dump --pid PID).",
      "Decide such branches on values that are equal on all ranks (broadcast the condition first)."};
  // The job has ended: of its processes nothing but their tracebacks is left.
  const bool hung = horovod || facts.analyses.end.kind == JobEnding::hung;
  if (!hung) finding.fix.front() = "Find the branch that makes ranks issue different calls: compare their tracebacks.";
  if (!hung && aspect == CallAspect::operation) TellReportedOperations(facts, *sample, finding);
  if (!hung && aspect == CallAspect::size) TellReportedShapes(facts, *sample, finding);
  if (IsOfChecker(report) && aspect != CallAspect::operation)
    finding.fix = {
        "Print what each rank passes to this call. Gradients differ in shape where the models differ: the number of "
        "classes, the vocabulary, the checkpoint, a configuration file.",
        "Losses and metrics differ where the last batch is smaller on some ranks: reduce them to one number first, or "
        "drop that batch.",
        report.by_gloo ? "Check that all ranks issue the same operations in the same order: a process group on the CPU "
                         "pairs them by their order alone (TORCH_DISTRIBUTED_DEBUG=DETAIL names the rank that differs)."
                       : "Name the operations (name=...) where ranks may issue them in different orders."};
  TellWiderType(*sample, finding);
  const bool named = report.by_gloo && !hung && TellCheckedStranger(facts, finding);
  // Horovod only reports that ranks wait in different tensors.
  if (hung) {
    finding.status = Status::hang;
    finding.headline = (finding.ranks.empty() ? "ranks submit" : RankWords(finding.ranks) + " submits") +
                       " different operations from " +
                       (finding.ranks.empty() ? "each other" : RankWords(finding.affected_ranks)) + ", and all wait";
    TellTensors(report, finding);
  }
  // The check raised on them: they do not wait.
  if (finding.ranks.empty() && finding.status != Status::hang) finding.affected_ranks.clear();
  finding.evidence.push_back(CiteEvent(
      *sample, horovod               ? std::string("Horovod reports which ranks wait in which tensors")
               : IsOfChecker(report) ? CheckerName(report) + " compared what the ranks submitted and reports this"
                                     : std::string("PyTorch compared the calls of all ranks and reports this")));
  if (IsOfChecker(report) && !named)
    answer.open.push_back({"Which rank is the odd one?",
                           "what each rank passes to this call: print the shape and type on every rank before it"});
  answer.findings.push_back(std::move(finding));
}

}  // namespace

RuleAnswer JudgeMismatch(const Case& facts, CallAspect aspect, std::string_view cause) {
  RuleAnswer answer;
  JudgeDetailReports(facts, aspect, cause, answer);
  if (answer.findings.empty()) JudgeWatchdogDifference(facts, aspect, cause, answer);
  const CallDifference* difference = FirstDifferenceOf(facts);
  if (difference && difference->aspect == aspect && difference->reading == CallDifference::Reading::substituted)
    answer.findings.push_back(FindingOf(facts, *difference, cause));
  return answer;
}

}  // namespace tacet
