// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "rules/findings/watchdog_mismatch.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Calls of one thread keep their order. Where two ranks issued the same calls in another order, and only calls of
// different threads changed places, the threads raced.
struct SwappedThreads {
  const GroupCalls* group = nullptr;
  const MemberCalls *a = nullptr, *b = nullptr;
  const Call *first = nullptr, *second = nullptr;  // of a and b at the same place
};

bool IsSameCall(const Call& a, const Call& b) {
  return a.kind == b.kind && a.in_elements == b.in_elements && a.type == b.type && a.thread == b.thread;
}

// The calls from here on are equal on both. Where nothing follows, both must have issued equally many: one that is
// short of a call left it out.
bool GoesOnAlike(const MemberCalls& a, const MemberCalls& b, size_t from) {
  constexpr size_t kCompared = 64;
  const size_t common = std::min(a.calls.size(), b.calls.size());
  if (from >= common) return a.calls.size() == b.calls.size();
  for (size_t i = from; i < std::min(common, from + kCompared); ++i)
    if (!IsSameCall(a.At(i), b.At(i))) return false;
  return true;
}

// True where the calls from `at` on are the same again after a few, and each thread's own order is equal.
bool RealignsByThread(const MemberCalls& a, const MemberCalls& b, size_t at) {
  constexpr size_t kWindow = 16;  // calls that threads have under way at the same time
  const size_t end = std::min({a.calls.size(), b.calls.size(), at + kWindow});
  for (size_t stop = at + 2; stop <= end; ++stop) {
    // Equal multisets with equal order in each thread: strike the calls of a off against b's, thread by thread.
    std::vector<const Call*> left;
    for (size_t i = at; i < stop; ++i) left.push_back(&b.At(i));
    bool fits = true;
    for (size_t i = at; i < stop && fits; ++i) {
      const auto same_thread =
          std::find_if(left.begin(), left.end(), [&](const Call* call) { return call->thread == a.At(i).thread; });
      fits = same_thread != left.end() && IsSameCall(**same_thread, a.At(i));
      if (fits) left.erase(same_thread);
    }
    if (fits && GoesOnAlike(a, b, stop)) return true;
  }
  return false;
}

bool FindSwap(const GroupCalls& group, const CallDifference& difference, SwappedThreads* found) {
  if (difference.sides.size() < 2) return false;
  const auto member_of = [&](const CallSide& side) -> const MemberCalls* {
    for (const MemberCalls& member : group.members)
      if (!side.ranks.empty() && member.rank == side.ranks.front() && member.stream) return &member;
    return nullptr;
  };
  const MemberCalls *a = member_of(difference.sides[0]), *b = member_of(difference.sides[1]);
  if (!a || !b) return false;
  const auto place_of = [&](const MemberCalls& member) {
    size_t i = 0;
    while (i < member.calls.size() && member.At(i).seq != difference.seq) ++i;
    return i;
  };
  const size_t at = place_of(*a);
  if (at != place_of(*b) || at >= a->calls.size() || at >= b->calls.size()) return false;
  const Call &first = a->At(at), &second = b->At(at);
  if (first.thread == 0 || second.thread == 0 || first.thread == second.thread) return false;
  if (!RealignsByThread(*a, *b, at)) return false;
  *found = {&group, a, b, &first, &second};
  return true;
}

bool FindSwappedThreads(const Case& facts, SwappedThreads* found) {
  for (const SourceAnalysis& source : facts.analyses.sources)
    for (const CallDifference& difference : source.differences)
      for (const GroupCalls& group : source.groups)
        if (group.group == difference.group && FindSwap(group, difference, found)) return true;
  return false;
}

}  // namespace

static RuleAnswer JudgeSharedCommunicator(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents raced = CollectTold(facts, [](const Event& e) { return IsFatalWarning(e, {"launch-race"}); });
  if (raced) {
    Finding finding =
        ToldFinding(facts, "communicator-shared-by-threads", raced, "NCCL saw two threads launch at once");
    finding.headline = "two threads of " + TellerWords(raced) +
                       " launched NCCL operations on one GPU at the same time" + RankUnknownWords(raced);
    // The threads may use communicators of their own: NCCL says no more than that they share the GPU.
    finding.confidence = Confidence::likely;
    finding.fix = {"Issue all NCCL operations of a GPU from one thread, or let the threads wait for each other.",
                   "Look for background threads that communicate: asynchronous checkpoints, prefetching with "
                   "collectives, metrics, evaluation.",
                   "NCCL_LAUNCH_RACE_FATAL=0 only hides it: the order of launches then differs between ranks."};
    AskWhichRank(raced, answer);
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  SwappedThreads swap;
  if (!FindSwappedThreads(facts, &swap)) {
    JudgeWatchdogThreads(facts, "communicator-shared-by-threads", answer);
    return answer;
  }
  Finding finding;
  finding.cause = "communicator-shared-by-threads";
  const bool failed = facts.analyses.outcome.first_failure || facts.analyses.end.kind == JobEnding::crashed;
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : failed ? Status::crash : Status::corrupt;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.group = swap.group->group;
  finding.operation = RefOf(*swap.first);
  finding.affected_ranks = facts.standstill.waiters;
  finding.headline = "two threads share a communicator: operation #" + std::to_string(swap.first->seq) +
                     " came from thread " + std::to_string(swap.first->thread) + " on " + RankWords({swap.a->rank}) +
                     " (" + ShapeWords(*swap.first) + ") and from thread " + std::to_string(swap.second->thread) +
                     " on " + RankWords({swap.b->rank}) + " (" + ShapeWords(*swap.second) +
                     "); the two calls were paired with each other, so results are wrong or the job hangs";
  finding.evidence.push_back(
      CiteCall(facts.incident, *swap.a->stream, *swap.first,
               "issued by thread " + std::to_string(swap.first->thread) + " of " + RankWords({swap.a->rank})));
  finding.evidence.push_back(CiteCall(facts.incident, *swap.b->stream, *swap.second,
                                      "issued by thread " + std::to_string(swap.second->thread) + " of " +
                                          RankWords({swap.b->rank}) + " at the same position"));
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kCommunicatorSharedByThreadsRule;
const Rule kCommunicatorSharedByThreadsRule = {
    "communicator-shared-by-threads",
    "Two threads use one communicator",
    "NCCL logs with COLL (they name the thread of each call), NCCL's warning about threads that race, or stacks of all "
    "threads beside the watchdogs' timeouts",
    "Collectives pair up by the order in which they are issued. When two threads use one communicator without a fixed "
    "order, the order differs between ranks: operations pair up wrongly, and the job hangs, fails or computes "
    "nonsense.",
    "Two threads that take turns are healthy: autograd's thread issues the gradients while the main thread waits, in "
    "the "
    "same order on every rank. One thread that issues calls in a different order on one rank is a mismatch of the "
    "program itself.",
    {"Give each thread its own group (dist.new_group on all ranks, in the same order), or issue from one thread.",
     "Look for background threads that communicate: asynchronous checkpoints, prefetching with collectives, metrics, "
     "evaluation.",
     "A lock around each collective is not enough: the order must be the same on all ranks."},
    {"Use each communicator from one thread only, and say so in the code that creates groups."},
    JudgeSharedCommunicator};

}  // namespace tacet
