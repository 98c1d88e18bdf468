// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/wait_graph.h"

#include <gtest/gtest.h>

#include <chrono>

#include "analysis/analyses.h"
#include "analysis/calls/left_replay.h"
#include "analysis/process/standstill.h"
#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

struct Waiting {
  explicit Waiting(JobSketch& job, CallSource source = CallSource::flight_recorder)
      : incident(job.Finish()),
        groups(CollectGroupCalls(incident, source)),
        links(MatchPointToPoint(incident, source)),
        graph(BuildWaitGraph(incident, source, groups, links)) {}
  std::vector<Rank> Roots(RootKind kind) const {
    std::vector<Rank> ranks;
    for (const WaitRoot& root : graph.roots)
      if (root.kind == kind) ranks.push_back(root.rank);
    return ranks;
  }
  Incident incident;
  std::vector<GroupCalls> groups;
  std::vector<P2pLink> links;
  WaitGraph graph;
};

TEST(WaitGraph, AFinishedJobHasNoWaits) {
  JobSketch job(8);
  job.Rounds(20);
  const Waiting waiting(job);
  EXPECT_TRUE(waiting.graph.operations.empty());
  EXPECT_TRUE(waiting.graph.roots.empty());
  EXPECT_TRUE(waiting.graph.cycles.empty());
  EXPECT_TRUE(waiting.graph.blocked_in.empty());
  EXPECT_EQ(waiting.graph.common_stall, nullptr);
}

TEST(WaitGraph, WhoHasNotIssuedTheOperationIsTheRoot) {
  JobSketch job(4);
  job.Rounds(5);
  job.IssueOn({0, 1, 3}, kStarted);
  const Waiting waiting(job);
  ASSERT_EQ(waiting.graph.operations.size(), 1u);
  EXPECT_EQ(waiting.graph.operations[0].waiters, Ranks({0, 1, 3}));
  ASSERT_EQ(waiting.graph.operations[0].missing.size(), 1u);
  EXPECT_EQ(waiting.graph.operations[0].missing[0].rank, Rank{2});
  EXPECT_EQ(waiting.graph.operations[0].missing[0].reason, WaitReason::not_entered);
  ASSERT_EQ(waiting.graph.roots.size(), 1u);
  EXPECT_EQ(waiting.graph.roots[0].kind, RootKind::not_entered);
  EXPECT_EQ(waiting.graph.roots[0].call->seq, 6u);
  EXPECT_EQ(waiting.graph.blocked_in.size(), 3u);
}

TEST(WaitGraph, WhoseFileEndsInTheMiddleMayHaveIssuedIt) {
  for (const CallSource source : {CallSource::flight_recorder, CallSource::nccl_log}) {
    JobSketch job(4, {source});
    job.Rounds(10);
    job.IssueOn({0, 1, 3}, kStarted);
    job.StreamOf(2, source).cut = true;
    EXPECT_TRUE(Waiting(job, source).graph.roots.empty());
  }
}

TEST(WaitGraph, TheRecordersOwnCountersTellTheEndOfACutFile) {
  // They leave out a call that an abort ended before it was counted.
  for (const auto& [counted, roots] : {std::pair{9, Ranks({2})}, std::pair{10, Ranks({})}}) {
    JobSketch job(4);
    job.Rounds(10);
    job.IssueOn({0, 1, 3}, kStarted);
    CallStream& stream = job.StreamOf(2);
    stream.cut = true;
    stream.calls.resize(5);
    stream.progress.push_back({kWorld, counted, counted, counted});
    EXPECT_EQ(Waiting(job).Roots(RootKind::not_entered), roots) << counted;
  }
}

TEST(WaitGraph, ACutRecordWhoseCountersShowSomethingOpenIsNoRoot) {
  // Rank 2 waits in another group itself; that call is lost, its counters are not.
  for (const int64_t completed : {4, 5}) {
    JobSketch job(4);
    const GroupIndex pair = job.AddGroup("pair", {2, 3});
    job.Rounds(10);
    job.IssueOn({0, 1}, kStarted);
    CallStream& stream = job.StreamOf(2);
    stream.cut = true;
    stream.calls.resize(5);
    stream.progress.push_back({kWorld, 9, 9, 9});
    stream.progress.push_back({pair, 5, 5, completed});
    EXPECT_EQ(Waiting(job).Roots(RootKind::not_entered), completed == 5 ? Ranks({2, 3}) : Ranks({3}));
  }
}

TEST(WaitGraph, CountersThatMixSendsWithCollectivesTellNoEnd) {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, kStarted);
  job.Issue(2, {.kind = OpKind::send, .peer = 0});
  CallStream& stream = job.StreamOf(2);
  stream.cut = true;
  stream.calls.resize(5);
  job.Issue(2, {.kind = OpKind::send, .peer = 0});
  stream.progress.push_back({kWorld, 48, 48, 48});
  EXPECT_TRUE(Waiting(job).Roots(RootKind::not_entered).empty());
}

TEST(WaitGraph, ARankWithoutRecordIsASilentRoot) {
  JobSketch job(4);
  job.Rounds(5);
  job.IssueAll(kStarted);
  job.LoseRecord(1);
  EXPECT_EQ(Waiting(job).Roots(RootKind::silent), Ranks({1}));
}

TEST(WaitGraph, AGpuThatHasNotBegunWhatOthersBeganIsARoot) {
  JobSketch job(4);
  job.Rounds(5);
  job.IssueOn({0, 2, 3}, kStarted);
  job.IssueOn({1}, kEnqueued);
  const Waiting waiting(job);
  EXPECT_EQ(waiting.Roots(RootKind::gpu_not_started), Ranks({1}));
  EXPECT_EQ(waiting.graph.roots.size(), 1u);
}

TEST(WaitGraph, AGpuThatIsTwoOperationsBehindIsARoot) {
  for (const int behind : {1, 2, 5}) {
    JobSketch job(4);
    job.Rounds(5);
    for (int i = 0; i < behind; ++i) {
      job.IssueOn({0, 2, 3}, {});
      job.IssueOn({1}, kStarted);
    }
    const Waiting waiting(job);
    EXPECT_EQ(waiting.Roots(RootKind::gpu_behind), behind >= 2 ? Ranks({1}) : Ranks({}));
  }
}

TEST(WaitGraph, TheOldestOpenOperationOfARankIsWhereItWaits) {
  // Rank 0 issued three ahead; the first of them is the one that holds it up.
  JobSketch job(2);
  job.Rounds(3);
  for (int i = 0; i < 3; ++i) job.Issue(0, kStarted);
  const Waiting waiting(job);
  ASSERT_EQ(waiting.graph.operations.size(), 1u);
  EXPECT_EQ(waiting.graph.operations[0].seq, 4u);
  EXPECT_EQ(waiting.graph.blocked_in.at(Rank{0})->seq, 4u);
}

TEST(WaitGraph, AChainOverSeveralGroupsEndsInOneRoot) {
  // Rank i waits in the pair {i, i+1} for rank i+1; the last one has not issued anything.
  constexpr int32_t kWorld16 = 16;
  JobSketch job(kWorld16);
  std::vector<GroupIndex> pairs;
  for (int32_t r = 0; r + 1 < kWorld16; ++r) pairs.push_back(job.AddGroup("pair", {r, r + 1}));
  job.Rounds(2);
  for (int32_t r = 0; r + 1 < kWorld16; ++r)
    job.Issue(r, {.group = pairs[static_cast<size_t>(r)], .state = CallState::started});
  const Waiting waiting(job);
  ASSERT_EQ(waiting.graph.roots.size(), 1u);
  EXPECT_EQ(waiting.graph.roots[0].rank, Rank{kWorld16 - 1});
  EXPECT_EQ(waiting.graph.roots[0].group, pairs.back());
  EXPECT_EQ(waiting.graph.operations.size(), 15u);
  EXPECT_TRUE(waiting.graph.cycles.empty());
}

TEST(WaitGraph, TwoIndependentStallsHaveTwoRoots) {
  JobSketch job(6);
  const GroupIndex left = job.AddGroup("dp", {0, 1, 2}), right = job.AddGroup("dp", {3, 4, 5});
  job.IssueOn({0, 1}, {.group = left, .state = CallState::started});
  job.IssueOn({4, 5}, {.group = right, .state = CallState::started});
  job.Issue(2, {});
  job.Issue(3, {});
  EXPECT_EQ(Waiting(job).Roots(RootKind::not_entered), Ranks({2, 3}));
}

TEST(WaitGraph, OppositeOrdersMakeACycleAndNoRoot) {
  JobSketch job(4);
  const GroupIndex a = job.AddGroup("a", {0, 1, 2, 3}), b = job.AddGroup("b", {0, 1, 2, 3});
  job.IssueOn({0, 1, 2}, {.group = a, .state = CallState::started});
  job.IssueOn({3}, {.group = b, .state = CallState::started});
  const Waiting waiting(job);
  EXPECT_TRUE(waiting.graph.roots.empty());
  ASSERT_EQ(waiting.graph.cycles.size(), 1u);
  EXPECT_EQ(waiting.graph.cycles[0], Ranks({0, 1, 2, 3}));
}

TEST(WaitGraph, SendsInACircleMakeACycle) {
  JobSketch job(5);
  for (int32_t r = 0; r < 4; ++r)
    job.Issue(r, {.kind = OpKind::send, .peer = (r + 1) % 4, .state = CallState::started});
  job.Issue(4, {});
  const Waiting waiting(job);
  ASSERT_EQ(waiting.graph.cycles.size(), 1u);
  EXPECT_EQ(waiting.graph.cycles[0], Ranks({0, 1, 2, 3}));
}

TEST(WaitGraph, WhatAllIssuedIsTheCommonStall) {
  JobSketch job(4);
  job.Rounds(7);
  job.IssueAll(kStarted);
  job.IssueAll(kEnqueued);
  const Waiting waiting(job);
  ASSERT_NE(waiting.graph.common_stall, nullptr);
  EXPECT_EQ(waiting.graph.common_stall->seq, 8u);
  EXPECT_TRUE(waiting.graph.roots.empty());
}

TEST(WaitGraph, AVictimThatLostItsPeerIsNotWaitedFor) {
  JobSketch job(4);
  job.Rounds(7);
  job.IssueOn({0, 1}, kStarted);
  job.Log(2, EventKind::connection_lost);
  EXPECT_EQ(Waiting(job).Roots(RootKind::not_entered), Ranks({3}));
}

TEST(WaitGraph, ALogShowsWhoIsShortOfCallsAlthoughItRecordsNoEnd) {
  JobSketch job(4, {CallSource::nccl_log});
  job.Rounds(7);
  job.IssueOn({0, 1, 3}, {});
  const Waiting waiting(job, CallSource::nccl_log);
  EXPECT_EQ(waiting.Roots(RootKind::not_entered), Ranks({2}));
  EXPECT_EQ(waiting.graph.common_stall, nullptr) << "nothing says that the last common one is unfinished";
}

TEST(WaitGraph, InADumpOfActiveCallsTheCountersTellWhoHasNotCome) {
  JobSketch job(4);
  job.Rounds(7);
  job.IssueOn({0, 1, 3}, kStarted);
  for (int32_t r = 0; r < 4; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.only_active = true;
    std::erase_if(stream.calls, [](const Call& call) { return call.state == CallState::completed; });
    stream.progress.push_back({kWorld, r == 2 ? 7 : 8, -1, 7});
  }
  const Waiting waiting(job);
  EXPECT_EQ(waiting.Roots(RootKind::not_entered), Ranks({2}));
  EXPECT_EQ(waiting.graph.roots.size(), 1u);
}

TEST(WaitGraph, CompletedOnlyByTheAbortIsStillAWait) {
  JobSketch job(4);
  job.Rounds(7);
  job.IssueOn({0, 1, 3}, {.flags = kEndedByAbort});
  EXPECT_EQ(Waiting(job).Roots(RootKind::not_entered), Ranks({2}));
}

TEST(WaitGraph, ACoalescedGroupWaitsByItsClosingEntry) {
  JobSketch job(4);
  job.Rounds(7);
  for (const int32_t r : {0, 1, 3}) {
    for (int i = 0; i < 3; ++i)
      job.Issue(r, {.kind = OpKind::all_gather, .state = CallState::started, .flags = kCoalescedMember});
    job.Issue(r, {.kind = OpKind::coalesced, .state = CallState::started, .flags = kCoalescedEnd});
  }
  const Waiting waiting(job);
  EXPECT_EQ(waiting.Roots(RootKind::not_entered), Ranks({2}));
  EXPECT_EQ(waiting.graph.operations.size(), 1u);
}

TEST(WaitGraph, MembersOfAFinishedCoalescedGroupHoldNobodyUp) {
  // Members of an older recorder stay scheduled for ever; the closing entry is completed.
  JobSketch job(2);
  for (int s = 0; s < 5; ++s) {
    for (int i = 0; i < 3; ++i)
      job.IssueAll({.kind = OpKind::all_gather, .state = CallState::enqueued, .flags = kCoalescedMember});
    job.IssueAll({.kind = OpKind::coalesced, .flags = kCoalescedEnd});
  }
  const Waiting waiting(job);
  EXPECT_TRUE(waiting.graph.roots.empty());
  EXPECT_TRUE(waiting.graph.blocked_in.empty());
}

TEST(WaitGraph, TheNumbersOfTwoGroupsAreNotMixed) {
  JobSketch job(4);
  const GroupIndex pair = job.AddGroup("tp", {0, 1});
  job.Rounds(3);
  for (int i = 0; i < 30; ++i) job.IssueAll({.group = pair});
  job.IssueOn({0, 1, 2}, kStarted);
  const Waiting waiting(job);
  EXPECT_EQ(waiting.Roots(RootKind::not_entered), Ranks({3}));
  EXPECT_EQ(waiting.graph.operations[0].seq, 4u);
}

TEST(WaitGraph, FindsWaitersAmongSortedRanks) {
  BlockedOperation operation;
  operation.waiters = Ranks({3, 9});
  EXPECT_TRUE(HasWaiterIn(operation, Ranks({1, 9})));
  EXPECT_FALSE(HasWaiterIn(operation, Ranks({1, 2, 4})));
  EXPECT_FALSE(HasWaiterIn(operation, {}));
}

// Sixteen thousand ranks: everything must stay linear.

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

constexpr int32_t kMany = 16'384;
// Generous for a loaded machine; a quadratic step takes minutes here or all memory.
constexpr double kSecondsAllowed = 60;

TEST(WaitGraphAtScale, HalfOfAWorldIsSilent) {
  JobSketch job(kMany);
  job.Rounds(2);
  std::vector<int32_t> even;
  for (int32_t r = 0; r < kMany; r += 2) even.push_back(r);
  job.IssueOn(even, kStarted);
  for (int32_t r = 1; r < kMany; r += 2) job.LoseRecord(r);
  const Incident incident = job.Finish();
  const Stopwatch watch;
  const Analyses analyses = Analyse(incident);
  const StandstillView view = FindStandstills(incident, analyses);
  EXPECT_LT(watch.Seconds(), kSecondsAllowed);
  EXPECT_EQ(analyses.sources[0].waits.roots.size(), static_cast<size_t>(kMany / 2));
  EXPECT_TRUE(view.ranks.empty()) << "half of the files were not collected: nobody is suspected";
}

TEST(WaitGraphAtScale, HalfOfAWorldHasNotCome) {
  JobSketch job(kMany);
  job.Rounds(2);
  std::vector<int32_t> even;
  for (int32_t r = 0; r < kMany; r += 2) even.push_back(r);
  job.IssueOn(even, kStarted);
  job.Wait(600 * kSecondNs);
  const Incident incident = job.Finish();
  const Stopwatch watch;
  const Analyses analyses = Analyse(incident);
  const StandstillView view = FindStandstills(incident, analyses);
  EXPECT_LT(watch.Seconds(), kSecondsAllowed);
  EXPECT_EQ(view.ranks.size(), static_cast<size_t>(kMany / 2));
  EXPECT_EQ(view.waiters.size(), static_cast<size_t>(kMany / 2));
}

TEST(WaitGraphAtScale, HalfOfTheGpusHaveNotBegun) {
  JobSketch job(kMany);
  job.Rounds(2);
  for (int32_t r = 0; r < kMany; ++r) job.Issue(r, r % 2 ? kEnqueued : kStarted);
  job.Wait(600 * kSecondNs);
  const Incident incident = job.Finish();
  const Stopwatch watch;
  const Analyses analyses = Analyse(incident);
  EXPECT_LT(watch.Seconds(), kSecondsAllowed);
  EXPECT_EQ(analyses.sources[0].waits.roots.size(), static_cast<size_t>(kMany / 2));
}

TEST(WaitGraphAtScale, AChainThroughAllRanksEndsInTheLast) {
  JobSketch job(kMany);
  std::vector<GroupIndex> pairs;
  for (int32_t r = 0; r + 1 < kMany; ++r) pairs.push_back(job.AddGroup("pair", {r, r + 1}));
  job.Rounds(1);
  for (int32_t r = 0; r + 1 < kMany; ++r)
    job.Issue(r, {.group = pairs[static_cast<size_t>(r)], .state = CallState::started});
  job.Wait(600 * kSecondNs);
  const Incident incident = job.Finish();
  const Stopwatch watch;
  const Analyses analyses = Analyse(incident);
  const StandstillView view = FindStandstills(incident, analyses);
  EXPECT_LT(watch.Seconds(), kSecondsAllowed);
  ASSERT_EQ(view.ranks.size(), 1u);
  EXPECT_EQ(view.ranks[0].rank, Rank{kMany - 1});
  EXPECT_EQ(view.waiters.size(), static_cast<size_t>(kMany - 1));
}

TEST(WaitGraphAtScale, APipelineOfSendsThroughAllRanks) {
  JobSketch job(kMany);
  for (int m = 0; m < 2; ++m) {
    for (int32_t r = 0; r < kMany; ++r) {
      if (r > 0) job.Issue(r, {.kind = OpKind::recv, .peer = r - 1});
      if (r + 1 < kMany) job.Issue(r, {.kind = OpKind::send, .peer = r + 1});
    }
  }
  for (int32_t r = 1; r < kMany; ++r) job.Issue(r, {.kind = OpKind::recv, .peer = r - 1, .state = CallState::started});
  job.Wait(600 * kSecondNs);
  const Incident incident = job.Finish();
  const Stopwatch watch;
  const Analyses analyses = Analyse(incident);
  const StandstillView view = FindStandstills(incident, analyses);
  EXPECT_LT(watch.Seconds(), kSecondsAllowed);
  ASSERT_EQ(view.ranks.size(), 1u);
  EXPECT_EQ(view.ranks[0].rank, Rank{0});
}

// A pipeline of four stages whose stage 1 has issued everything, while its GPU is busy with something else.
TEST(WaitGraph, AStageWhoseGpuIsElsewhereHoldsUpItsNeighboursAndNotTheOthers) {
  for (const bool busy : {true, false}) {
    JobSketch job(4);
    for (int m = 0; m < 6; ++m) {
      for (int32_t r = 0; r < 4; ++r) {
        if (r > 0) job.Issue(r, {.kind = OpKind::recv, .peer = r - 1});
        if (r < 3) job.Issue(r, {.kind = OpKind::send, .peer = r + 1});
      }
    }
    const SketchedCall none{};
    const auto issue = [&](int32_t rank, OpKind kind, int32_t peer, CallState state) {
      SketchedCall call = none;
      call.kind = kind;
      call.peer = peer;
      call.state = state;
      job.Issue(rank, call);
    };
    issue(0, OpKind::send, 1, CallState::started);
    issue(1, OpKind::recv, 0, busy ? CallState::enqueued : CallState::started);
    issue(1, OpKind::send, 2, CallState::enqueued);
    issue(2, OpKind::recv, 1, CallState::started);
    issue(2, OpKind::send, 3, CallState::enqueued);
    issue(3, OpKind::recv, 2, CallState::started);
    job.Wait(600 * kSecondNs);
    const Incident incident = job.Finish();
    const Analyses analyses = Analyse(incident);
    const WaitGraph& waits = analyses.Of(CallSource::flight_recorder)->waits;
    if (!busy) {
      EXPECT_TRUE(waits.roots.empty());
      continue;
    }
    ASSERT_EQ(waits.roots.size(), 1u);
    EXPECT_EQ(waits.roots[0].rank, Rank{1});
    EXPECT_EQ(waits.roots[0].kind, RootKind::gpu_not_started);
  }
}

// A communicator, and what CUDA graphs run again on it.
struct GraphJob {
  explicit GraphJob(int32_t world) : job(world, {CallSource::black_box}) {
    job.GroupAt(kWorld).comm_id = 77;
    replays = job.AddGroup("graph replays of default_pg", job.AllBut({}));
    job.GroupAt(replays).replays_of = 77;
    for (int i = 0; i < 10; ++i) job.IssueAll({.group = replays});
    job.Rounds(3);
  }
  void Replay(int32_t rank) { job.Issue(rank, {.group = replays, .state = CallState::started}); }
  JobSketch job;
  GroupIndex replays{};
};

TEST(WaitGraph, AGpuWithCallsInItsQueueDoesNotGetToTheReplayItsPeersAreIn) {
  for (const bool issued : {true, false}) {
    GraphJob graph(4);
    for (const int32_t r : {0, 1, 3}) graph.Replay(r);
    for (int32_t r = 0; r < 4; ++r)
      if (issued || r != 2) graph.job.Issue(r, kEnqueued);
    const Waiting waiting(graph.job, CallSource::black_box);
    EXPECT_EQ(waiting.Roots(RootKind::gpu_not_started), issued ? Ranks({2}) : Ranks({}));
    EXPECT_EQ(waiting.Roots(RootKind::not_entered), issued ? Ranks({}) : Ranks({2}));
  }
}

TEST(LeftReplay, IsThatOfTheRankThatWentOnToACallItsPeersHaveNotReached) {
  for (const bool left_out : {true, false}) {
    GraphJob graph(4);
    for (int32_t r = 0; r < 4; ++r) {
      if (!left_out || r != 1) graph.Replay(r);
      graph.job.Issue(r, kStarted);
    }
    const Incident incident = graph.job.Finish();
    const auto left = FindLeftReplay(incident, CollectGroupCalls(incident, CallSource::black_box));
    ASSERT_EQ(left.has_value(), left_out);
    if (!left) continue;
    EXPECT_EQ(left->rank, Rank{1});
    EXPECT_EQ(left->own_replays, 10);
    EXPECT_EQ(left->replay->seq, 11u);
    EXPECT_EQ(left->waits_in->seq, 4u);
  }
}

TEST(LeftReplay, IsNoneWhereTheRankIsMerelyLate) {
  GraphJob graph(4);
  for (const int32_t r : {0, 2, 3}) {
    graph.Replay(r);
    graph.job.Issue(r, kStarted);
  }
  const Incident incident = graph.job.Finish();
  EXPECT_FALSE(FindLeftReplay(incident, CollectGroupCalls(incident, CallSource::black_box)));
}

}  // namespace
}  // namespace tacet
