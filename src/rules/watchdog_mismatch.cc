// SPDX-License-Identifier: Apache-2.0
#include "rules/watchdog_mismatch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/watchdog_waits.h"
#include "rules/shape_report.h"
#include "rules/side_stacks.h"
#include "rules/words.h"

namespace tacet {
namespace {

std::string ElementWords(const Event& wait) {
  const int64_t elements = wait.As<WatchdogTimeout>().elements;
  return std::to_string(elements) + (elements == 1 ? " element" : " elements");
}

std::string WaitWords(const std::vector<Rank>& ranks) {
  return RankWords(ranks) + (ranks.size() == 1 ? " waits" : " wait");
}

std::string PastWaitWords(const std::vector<Rank>& ranks) { return RankWords(ranks) + " waited"; }

CallerSide OddSide(const WatchdogDifference& difference) { return {difference.odd_ranks, difference.odd}; }
CallerSide UsualSide(const WatchdogDifference& difference) { return {difference.usual_ranks, difference.usual}; }

// "1 element, called in loop_tensor (trainjob.py:142)"
std::string CallWords(const Event& wait) {
  const std::string place = CallerPlaceWords(wait);
  return ElementWords(wait) + (place.empty() ? "" : ", called in " + place);
}

Finding WatchdogFinding(const WatchdogDifference& difference, std::string_view cause, bool blames) {
  Finding finding;
  finding.cause = cause;
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  if (blames) finding.ranks = difference.odd_ranks;
  finding.affected_ranks = difference.usual_ranks;
  if (!blames) {
    finding.affected_ranks.insert(finding.affected_ranks.end(), difference.odd_ranks.begin(),
                                  difference.odd_ranks.end());
    std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
  }
  finding.operation = OperationRef{difference.odd->op, difference.odd->seq, -1};
  const auto waited = [&](std::vector<Rank> ranks) {
    std::erase_if(ranks, [&](Rank rank) {
      return std::any_of(difference.failed.begin(), difference.failed.end(),
                         [&](const Event* one) { return one->rank == rank; });
    });
    return PastWaitWords(ranks) + " in this call";
  };
  finding.evidence.push_back(CiteEvent(*difference.odd, waited(difference.odd_ranks)));
  finding.evidence.push_back(CiteEvent(*difference.usual, waited(difference.usual_ranks)));
  if (!difference.failed.empty())
    finding.evidence.push_back(CiteEvent(*difference.failed.front(),
                                         "NCCL refused this call of " + RankWords({difference.failed.front()->rank})));
  return finding;
}

bool SpeaksAlone(const Case& facts) { return facts.analyses.sources.empty(); }

bool AreTwoCalls(const WatchdogDifference& difference) { return AreDifferentCalls(*difference.odd, *difference.usual); }

bool IsSkip(const WatchdogDifference& difference) {
  return difference.size && !difference.tied && difference.odd_is_ahead && AreTwoCalls(difference);
}

}  // namespace

void JudgeWatchdogDifference(const Case& facts, CallAspect aspect, std::string_view cause, RuleAnswer& answer) {
  if (!SpeaksAlone(facts) || (aspect != CallAspect::size && aspect != CallAspect::operation)) return;
  const bool size = aspect == CallAspect::size;
  for (const WatchdogDifference& difference : FindWatchdogDifferences(facts.incident)) {
    if (difference.size != size) continue;
    const CallerSide odd = OddSide(difference), usual = UsualSide(difference);
    ThreadStep step = SecondThreadStep(facts, odd, usual);
    if (step.proven || IsSkip(difference)) return;
    const auto words = [&](const Event& event) { return size ? ElementWords(event) : std::string(Name(event.op)); };
    Finding finding = WatchdogFinding(difference, cause, !difference.tied);
    const std::string in = size ? " with " : " in ";
    const auto stand = [&](const std::vector<Rank>& ranks) {
      return difference.failed.empty() ? WaitWords(ranks) : RankWords(ranks) + " issued";
    };
    const std::string as = !difference.failed.empty() && !size ? " " : in;
    finding.headline = stand(difference.odd_ranks) + (!difference.failed.empty() && size ? " a call" : "") + as +
                       (size ? "a different size" : "a different operation") + " at #" +
                       std::to_string(difference.odd->seq) + ": " + words(*difference.odd) + " where " +
                       stand(difference.usual_ranks) + (!difference.failed.empty() && size ? " one" : "") + as +
                       words(*difference.usual);
    const std::string seen = SideStackWords(facts, odd, usual);
    finding.fix = {"Find the branch that makes ranks call different things" +
                       (seen.empty() ? ": take the stack of one rank of each side (py-spy dump --pid PID), or flight "
                                       "records with stacks."
                                     : ". Compare the stacks: " + seen + "."),
                   "Decide such branches on values that are equal on all ranks (broadcast the condition first)."};
    if (size && !AreTwoCalls(difference))
      finding.fix = UnequalSizeSteps(
          seen.empty() ? "Take the stack of one rank of each side (py-spy dump --pid PID), or flight records with "
                         "stacks, and look at the call."
                       : "Look at the call in the stacks: " + seen + ".");
    if (!step.words.empty()) finding.fix.insert(finding.fix.begin(), std::move(step.words));
    answer.open.push_back({"Is this the first difference, or did an earlier call differ?",
                           "flight records or NCCL logs (NCCL_DEBUG_SUBSYS=INIT,COLL) of all ranks"});
    answer.findings.push_back(std::move(finding));
    return;
  }
}

void JudgeWatchdogSkip(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  if (!SpeaksAlone(facts)) return;
  for (const WatchdogDifference& difference : FindWatchdogDifferences(facts.incident)) {
    if (!IsSkip(difference) || SecondThreadStep(facts, OddSide(difference), UsualSide(difference)).proven) continue;
    const bool one = difference.odd_ranks.size() == 1;
    const std::string it = one ? "it" : "they", has = one ? "has" : "have";
    Finding finding = WatchdogFinding(difference, cause, true);
    finding.operation = OperationRef{difference.usual->op, difference.usual->seq, -1};
    finding.headline =
        RankWords(difference.odd_ranks) + " most likely skipped a call that " + RankWords(difference.usual_ranks) +
        (difference.usual_ranks.size() == 1 ? " waits" : " wait") + " in: " + std::string(Name(difference.usual->op)) +
        " #" + std::to_string(difference.usual->seq) + " (" + CallWords(*difference.usual) + "). " +
        (one ? "Its" : "Their") + " own #" + std::to_string(difference.odd->seq) + " is a different call (" +
        CallWords(*difference.odd) + "), and " + it + " " + has + " already enqueued the next one";
    if (difference.ahead)
      finding.evidence.push_back(
          CiteEvent(*difference.ahead, RankWords({difference.ahead->rank}) + " has enqueued calls up to #" +
                                           std::to_string(difference.ahead->As<WorkCounters>().last_enqueued) + ", " +
                                           RankWords(difference.usual_ranks) + " none beyond #" +
                                           std::to_string(difference.others_enqueued)));
    const std::string place = CallerPlaceWords(*difference.usual);
    finding.fix = {
        "Look at the call" + (place.empty() ? std::string() : " in " + place) + ": which condition makes " +
            RankWords(difference.odd_ranks) +
            " skip it (a batch that is left out, a loss that is not finite, code "
            "that only some ranks run)? If there is none, " +
            RankWords(difference.odd_ranks) + " issued one call too many.",
        "Decide such branches on values that are equal on all ranks (all_reduce or broadcast the condition first)."};
    answer.open.push_back({"Was the call skipped, or did " + it + " issue one too many?",
                           "flight records of all ranks (TORCH_FR_BUFFER_SIZE=2000): they list the calls of each"});
    answer.findings.push_back(std::move(finding));
    return;
  }
}

void JudgeWatchdogThreads(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  if (!SpeaksAlone(facts)) return;
  for (const WatchdogDifference& difference : FindWatchdogDifferences(facts.incident)) {
    ThreadStep step = SecondThreadStep(facts, OddSide(difference), UsualSide(difference));
    if (!step.proven) continue;
    Finding finding = WatchdogFinding(difference, cause, false);
    const auto words = [&](const Event& wait) {
      return difference.size ? "with " + ElementWords(wait) : "in " + std::string(Name(wait.op));
    };
    finding.headline = "two threads issue collectives on one group, and their order differs between ranks: at #" +
                       std::to_string(difference.odd->seq) + " " + WaitWords(difference.odd_ranks) + " " +
                       words(*difference.odd) + ", " + WaitWords(difference.usual_ranks) + " " +
                       words(*difference.usual) + "; one of the two calls is made by a thread beside the main one, " +
                       step.place;
    finding.fix = {std::move(step.words), "A lock is not enough: the order must be the same on all ranks."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

}  // namespace tacet
