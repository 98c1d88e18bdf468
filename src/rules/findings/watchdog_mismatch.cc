// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/watchdog_mismatch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeouts/watchdog_waits.h"
#include "rules/findings/output_finding.h"
#include "rules/findings/shape_report.h"
#include "rules/findings/side_stacks.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string ElementWords(const Event& wait) {
  const int64_t elements = ElementsOf(wait);
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
  const auto stand = [&](const Event& call, std::vector<Rank> ranks) {
    if (call.kind == EventKind::nccl_error) return RankWords(ranks) + " failed in this call";
    std::erase_if(ranks, [&](Rank rank) {
      return std::any_of(difference.failed.begin(), difference.failed.end(),
                         [&](const Event* one) { return one->rank == rank; });
    });
    return PastWaitWords(ranks) + " in this call";
  };
  finding.evidence.push_back(CiteEvent(*difference.odd, stand(*difference.odd, difference.odd_ranks)));
  finding.evidence.push_back(CiteEvent(*difference.usual, stand(*difference.usual, difference.usual_ranks)));
  for (const Event* failed : difference.failed)
    if (failed != difference.odd && failed != difference.usual) {
      finding.evidence.push_back(CiteEvent(*failed, RankWords({failed->rank}) + " failed in this call"));
      break;
    }
  return finding;
}

// No record tells of the calls of these ranks: the watchdogs' words are all there is of them.
bool SpeaksAlone(const Case& facts, const std::vector<Rank>& ranks) {
  return std::none_of(facts.incident.streams.begin(), facts.incident.streams.end(), [&](const CallStream& stream) {
    return !stream.stub && std::find(ranks.begin(), ranks.end(), stream.rank) != ranks.end();
  });
}

bool SpeaksAlone(const Case& facts) { return facts.analyses.sources.empty(); }

// Records of all ranks but those that are apart leave the difference to the watchdogs' words.
bool SpeaksAlone(const Case& facts, const WatchdogDifference& difference) {
  return SpeaksAlone(facts) || (!difference.tied && SpeaksAlone(facts, difference.odd_ranks));
}

bool AreTwoCalls(const WatchdogDifference& difference) { return AreDifferentCalls(*difference.odd, *difference.usual); }

bool IsSkip(const WatchdogDifference& difference) {
  return difference.size && !difference.tied && difference.odd_is_ahead && AreTwoCalls(difference);
}

constexpr std::string_view kAgreeOnBranches =
    "Decide such branches on values that are equal on all ranks (broadcast the condition first).";

// As many wait in the one call as in the other. Of a job with more ranks the lines that the program prints may tell who
// is apart: then the others are where the rank of the other side is.
bool BreakTie(const Case& facts, WatchdogDifference& difference) {
  const OutputFront& front = facts.analyses.front;
  if (!difference.tied || !front || difference.odd_ranks.size() != 1 || facts.incident.AllRanks().size() < 3)
    return false;
  if (front.rank == difference.usual_ranks.front()) {
    std::swap(difference.usual, difference.odd);
    std::swap(difference.usual_ranks, difference.odd_ranks);
  }
  difference.tied = front.rank != difference.odd_ranks.front();
  return !difference.tied;
}

// What the odd one issued is not told, only that it was not what the others wait in.
void JudgeStranger(const Case& facts, std::string_view cause, RuleAnswer& answer) {
  const WatchdogStranger stranger = FindWatchdogStranger(facts.incident);
  if (!stranger || (!SpeaksAlone(facts) && !SpeaksAlone(facts, {stranger.rank}))) return;
  const std::string who = RankWords({stranger.rank}), number = "#" + std::to_string(stranger.wait->seq);
  Finding finding;
  finding.cause = cause;
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.ranks = {stranger.rank};
  finding.affected_ranks = stranger.others;
  finding.operation = OperationRef{stranger.wait->op, stranger.wait->seq, -1};
  finding.headline =
      WaitWords(stranger.others) + " in " + std::string(Name(stranger.wait->op)) + " " + number +
      (stranger.misfit
           ? ", and " + who + " has issued its own " + number +
                 ", which does not match: a message has a different size from the one that its receiver expects. "
           : ", which " + who +
                 " has completed, although no rank can complete it before "
                 "the others. ") +
      "The " + number + " of " + who + " is most likely a different call";
  finding.evidence.push_back(
      CiteEvent(*stranger.wait, RankWords(stranger.others) + " waited in this call until they timed out"));
  const auto& counters = stranger.counters->As<WorkCounters>();
  finding.evidence.push_back(CiteEvent(
      *stranger.counters, stranger.misfit ? who + " had issued calls up to #" + std::to_string(counters.last_enqueued)
                                          : who + " had completed #" + std::to_string(counters.last_completed)));
  if (stranger.misfit)
    finding.evidence.push_back(CiteEvent(*stranger.misfit, "what one rank sends is not what another one expects"));
  if (facts.analyses.front && facts.analyses.front.rank == stranger.rank) CiteOutputFront(facts, finding);
  const std::string place = CallerPlaceWords(*stranger.wait);
  finding.fix = {"Look at what comes before the call" + (place.empty() ? std::string() : " in " + place) +
                     ": which condition makes " + who +
                     " issue fewer or more collectives than the others (a loop that ends earlier, a batch that is "
                     "left out, a branch that depends on its data)?",
                 std::string(kAgreeOnBranches)};
  answer.open.push_back({"At which call do the ranks first differ?",
                         "flight records of all ranks (TORCH_FR_BUFFER_SIZE=2000): they list the calls of each rank"});
  answer.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeWatchdogDifference(const Case& facts, CallAspect aspect, std::string_view cause, RuleAnswer& answer) {
  if (aspect != CallAspect::size && aspect != CallAspect::operation) return;
  const bool size = aspect == CallAspect::size;
  for (WatchdogDifference& difference : FindWatchdogDifferences(facts.incident)) {
    if (difference.size != size || !SpeaksAlone(facts, difference)) continue;
    const bool by_output = BreakTie(facts, difference);
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
    if (by_output) CiteOutputFront(facts, finding);
    const std::string seen = SideStackWords(facts, odd, usual);
    finding.fix = {"Find the branch that makes ranks issue different calls" +
                       (seen.empty() ? ": take the stack of one rank of each side (py-spy dump --pid PID), or flight "
                                       "records with stacks."
                                     : ". Compare the stacks: " + seen + "."),
                   std::string(kAgreeOnBranches)};
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
  if (!size) JudgeStranger(facts, cause, answer);
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
    answer.open.push_back(
        {"Was the call skipped, or did " + it + " issue one too many?",
         "flight records of all ranks (TORCH_FR_BUFFER_SIZE=2000): they list the calls of each rank"});
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
                       words(*difference.usual) + "; one of the two calls comes from a second thread, started in " +
                       step.place;
    finding.fix = {std::move(step.words), "A lock is not enough: the order must be the same on all ranks."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

}  // namespace tacet
