// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

SketchedCall Send(int32_t to, CallState state = CallState::completed) {
  return {.kind = OpKind::send, .peer = to, .state = state};
}
SketchedCall Recv(int32_t from, CallState state = CallState::completed) {
  return {.kind = OpKind::recv, .peer = from, .state = state};
}

// p2p-cycle

class Rings : public testing::TestWithParam<int32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Rings, testing::Values(2, 3, 4, 8, 64, 1024));

TEST_P(Rings, EverybodySendsFirstAndNobodyReceives) {
  const int32_t n = GetParam();
  for (const CallSource source : {CallSource::flight_recorder, CallSource::nccl_log}) {
    JobSketch job(n, {source});
    job.Rounds(4);
    for (int32_t r = 0; r < n; ++r) job.Issue(r, Send((r + 1) % n, CallState::started));
    job.Wait(600 * kSecondNs);
    const JudgedCase judged(job);
    const Finding finding = judged.Only("p2p-cycle");
    EXPECT_EQ(finding.ranks, RankRange(0, n));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.operation->kind, OpKind::send);
    EXPECT_FALSE(judged.Fires("p2p-unmatched"));
    EXPECT_EQ(judged.Verdict().cause, "p2p-cycle");
  }
}

TEST(P2pCycle, EverybodyReceivesFirst) {
  JobSketch job(4);
  job.Rounds(4);
  for (int32_t r = 0; r < 4; ++r) job.Issue(r, Recv((r + 3) % 4, CallState::started));
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("p2p-cycle");
  EXPECT_EQ(finding.ranks, RankRange(0, 4));
  EXPECT_EQ(finding.operation->kind, OpKind::recv);
}

// Hosts run ahead of their GPUs: the receives are issued, and stand behind the sends in each rank's queue.
TEST(P2pCycle, ReceivesQueuedBehindSendsMakeACircle) {
  JobSketch job(4);
  job.Rounds(4);
  for (int32_t r = 0; r < 4; ++r) {
    job.Issue(r, Send((r + 1) % 4, CallState::started));
    job.Issue(r, Recv((r + 3) % 4, CallState::enqueued));
  }
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("p2p-cycle");
  EXPECT_EQ(finding.ranks, RankRange(0, 4));
  EXPECT_NE(finding.headline.find("queued behind its own"), std::string::npos) << finding.headline;
  EXPECT_EQ(judged.Verdict().cause, "p2p-cycle");
}

// The same ring where one rank's GPU has not come to its own send: it is busy with something else.
// Records without starts: both wait for what the other would send behind its own receive.
TEST(P2pCycle, ReceivesThatWaitForEachOtherMakeACircle) {
  for (const bool meets : {false, true}) {
    JobSketch job(2);
    for (int i = 0; i < 3; ++i) {
      job.Issue(0, Send(1, CallState::completed));
      job.Issue(1, Recv(0, CallState::completed));
    }
    job.Issue(0, meets ? Send(1, CallState::enqueued) : Recv(1, CallState::enqueued));
    job.Issue(1, Recv(0, CallState::enqueued));
    for (int32_t r = 0; r < 2; ++r) job.StreamOf(r).knows_start = false;
    job.Wait(600 * kSecondNs);
    for (int32_t r = 0; r < 2; ++r) job.TimeOut(r, 4);
    EXPECT_EQ(JudgedCase(job).Fires("p2p-cycle"), !meets);
  }
}

// Rank 0 waits for rank 1 as well, and nobody waits for rank 0.
TEST(P2pCycle, WhoeverWaitsForTheCircleIsNoPartOfIt) {
  JobSketch job(3);
  for (int i = 0; i < 3; ++i) {
    for (int32_t r = 0; r < 2; ++r) job.Issue(r, Send(r + 1, CallState::completed));
    for (int32_t r = 0; r < 2; ++r) job.Issue(r + 1, Recv(r, CallState::completed));
  }
  for (int32_t r = 0; r < 3; ++r) job.Issue(r, Recv(r == 1 ? 2 : 1, CallState::enqueued));
  for (int32_t r = 0; r < 3; ++r) job.StreamOf(r).knows_start = false;
  job.Wait(600 * kSecondNs);
  for (int32_t r = 0; r < 3; ++r) job.TimeOut(r, r == 1 ? 7 : 4);
  EXPECT_EQ(JudgedCase(job).Only("p2p-cycle").ranks, Ranks({1, 2}));
}

TEST(P2pCycle, ARankWhoseGpuIsElsewhereOpensTheCircle) {
  JobSketch job(4);
  job.Rounds(4);
  for (int32_t r = 0; r < 4; ++r) {
    job.Issue(r, Send((r + 1) % 4, r == 2 ? CallState::enqueued : CallState::started));
    job.Issue(r, Recv((r + 3) % 4, CallState::enqueued));
  }
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("p2p-cycle"));
}

TEST(P2pCycle, NamesOnlyTheRanksOfTheCircle) {
  JobSketch job(8);
  job.Rounds(4);
  job.Issue(2, Send(3, CallState::started));
  job.Issue(3, Send(2, CallState::started));
  job.IssueOn(job.AllBut({2, 3}), kStarted);
  job.Wait(600 * kSecondNs);
  EXPECT_EQ(JudgedCase(job).Only("p2p-cycle").ranks, Ranks({2, 3}));
}

TEST(P2pCycle, TwoCirclesOfPairsAreNamedTogether) {
  JobSketch job(4);
  job.Rounds(4);
  for (int32_t r = 0; r < 4; ++r) job.Issue(r, Send(r ^ 1, CallState::started));
  job.Wait(600 * kSecondNs);
  EXPECT_EQ(JudgedCase(job).Only("p2p-cycle").ranks, RankRange(0, 4));
}

TEST(P2pCycle, AnExchangeThatPostsBothHalvesIsFine) {
  JobSketch job(4);
  for (int s = 0; s < 20; ++s) {
    for (int32_t r = 0; r < 4; ++r) {
      job.Issue(r, Send((r + 1) % 4));
      job.Issue(r, Recv((r + 3) % 4));
    }
    job.Wait(10 * kMillisecondNs);
  }
  // Taken in the middle of an exchange.
  for (int32_t r = 0; r < 4; ++r) {
    job.Issue(r, Send((r + 1) % 4, CallState::started));
    job.Issue(r, Recv((r + 3) % 4, CallState::started));
  }
  job.Wait(20 * kMillisecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
}

TEST(P2pCycle, CollectivesInOppositeOrderAreAnotherKindOfCircle) {
  JobSketch job(4);
  const GroupIndex a = job.AddGroup("a", {0, 1, 2, 3}), b = job.AddGroup("b", {0, 1, 2, 3});
  job.IssueOn({0, 1, 2}, {.group = a, .state = CallState::started});
  job.IssueOn({3}, {.group = b, .state = CallState::started});
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("p2p-cycle"));
}

// p2p-unmatched

// A chain of stages in which each sends `count` messages to the next.
void Pipeline(JobSketch& job, int32_t world, int count) {
  for (int m = 0; m < count; ++m) {
    for (int32_t r = 0; r < world; ++r) {
      if (r > 0) job.Issue(r, Recv(r - 1));
      if (r + 1 < world) job.Issue(r, Send(r + 1));
    }
    job.Wait(10 * kMillisecondNs);
  }
}

class Chains : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, Chains,
                         testing::Values(FaultPlace{4, 1, 8}, FaultPlace{4, 3, 3}, FaultPlace{8, 4, 16},
                                         FaultPlace{64, 63, 2}, FaultPlace{1024, 500, 2}),
                         [](const auto& info) { return PlaceName(info.param); });

TEST_P(Chains, AStageThatExpectsOneMessageMoreWaitsForAPeerThatHasMovedOn) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world);
  Pipeline(job, world, rounds);
  job.Issue(rank, Recv(rank - 1, CallState::started));
  job.IssueOn(job.AllBut({rank}), kStarted);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("p2p-unmatched");
  EXPECT_EQ(finding.ranks, Ranks({rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.operation->kind, OpKind::recv);
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
  EXPECT_EQ(judged.Verdict().cause, "p2p-unmatched");
  EXPECT_EQ(judged.Verdict().ranks, Ranks({rank}));
}

TEST_P(Chains, AStageThatSendsOneMessageTooFewIsNamed) {
  const auto [world, rank, rounds] = GetParam();
  JobSketch job(world);
  // `rank` - 1 forgets its last message; everybody else moves on to the world's all-reduce.
  Pipeline(job, world, rounds);
  for (int32_t r = 0; r < world; ++r) {
    if (r > 0) job.Issue(r, Recv(r - 1, r == rank ? CallState::started : CallState::completed));
    if (r == rank) continue;
    if (r + 1 < world && r + 1 != rank) job.Issue(r, Send(r + 1));
    job.Issue(r, kStarted);
    if (r + 1 == rank) continue;
  }
  if (rank + 1 < world) {
    // Downstream of the waiting stage nothing more arrives.
    CallStream& next = job.StreamOf(rank + 1);
    std::erase_if(next.calls, [&](const Call& call) { return call.state == CallState::started; });
    next.calls.back().kind == OpKind::send ? next.calls.pop_back() : void();
    next.calls.back().state = CallState::started;
  }
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("p2p-unmatched");
  EXPECT_EQ(finding.operation->kind, OpKind::recv);
  if (world > 4) {
    EXPECT_EQ(finding.ranks, Ranks({rank - 1}));  // most links carry one message more than this one
  }
}

TEST(P2pUnmatched, WhoFinishedWaitsForNoMessage) {
  // The peer's log was cut: the owner, whose output tells of its end, got its message.
  for (const bool owner_finished : {false, true}) {
    JobSketch job(4, {CallSource::nccl_log});
    Pipeline(job, 4, 8);
    job.Issue(1, Recv(0));
    job.Say(0, EventKind::process_finished);
    if (owner_finished) job.Say(1, EventKind::process_finished);
    EXPECT_EQ(JudgedCase(job).Fires("p2p-unmatched"), !owner_finished);
  }
}

TEST(P2pUnmatched, ACommunicatorForTwoThatThePeerNeverMakesTellsOfAMissingHalf) {
  for (const bool peer_failed : {false, true}) {
    JobSketch job(4, {});
    Event& wait = job.Say(3, EventKind::store_wait_timeout);
    wait.peer = Rank{0};
    wait.Make<StoreWait>() = {"/default_pg/0//cuda//0:3", 12'000, true};
    if (peer_failed) job.Say(0, EventKind::exception).Make<Raised>().type = "ValueError";
    const JudgedCase judged(job);
    EXPECT_EQ(judged.Fires("p2p-unmatched"), !peer_failed);
    if (peer_failed) continue;
    EXPECT_TRUE(judged.Only("p2p-unmatched").ranks.empty());
    EXPECT_EQ(judged.Only("p2p-unmatched").headline,
              "rank 3 gave up on its first send or receive with rank 0 after 12 s: rank 0 had made no matching call");
  }
}

TEST(P2pUnmatched, APeerThatIsStuckOnItsHostIsNoUnmatchedReceive) {
  JobSketch job(4);
  Pipeline(job, 4, 8);
  job.Issue(1, Recv(0, CallState::started));
  job.IssueOn({2, 3}, kStarted);
  job.Wait(600 * kSecondNs);
  job.Stack(0, InDataLoader());
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({0}));
}

TEST(P2pWords, TheHalfOnRecordIsThatOfTheRankThatWaits) {
  for (const bool receives : {true, false}) {
    JobSketch job(2);
    for (int i = 0; i < 8; ++i) {
      job.Issue(0, receives ? Send(1) : Recv(1));
      job.Issue(1, receives ? Recv(0) : Send(0));
    }
    job.Issue(1, receives ? Recv(0, CallState::started) : Send(0, CallState::started));
    job.Wait(600 * kSecondNs);
    job.Stack(0, InDataLoader());
    const std::string headline = JudgedCase(job).Only("rank-stuck-on-host").headline;
    const char* owed = receives ? "has not sent what rank 1 waits for in recv #9 on default_pg; rank 1 waits for it"
                                : "has not received what rank 1 sends in send #9 on default_pg; rank 1 waits for it";
    EXPECT_NE(headline.find(owed), std::string::npos) << headline;
  }
}

TEST(P2pUnmatched, APipelineThatStandsBecauseOfALaterStageHasNone) {
  // Stage 3 is stuck; 2 waits in its send, 1 in its send, 0 too: everybody else is merely behind.
  JobSketch job(4);
  Pipeline(job, 4, 8);
  job.Issue(2, Send(3, CallState::started));
  job.Issue(1, Send(2, CallState::started));
  job.Issue(0, Send(1, CallState::started));
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
  EXPECT_EQ(judged.Verdict().ranks, Ranks({3}));
}

TEST(P2pUnmatched, ASmallSendThatEndedWithoutItsReceiveHoldsNobodyUp) {
  JobSketch job(4);
  Pipeline(job, 4, 8);
  job.Issue(0, Send(1));  // buffered
  job.Rounds(3);
  job.FinishAll();
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
}

TEST(P2pUnmatched, ARunningPipelineHasMessagesOnTheirWay) {
  JobSketch job(4);
  Pipeline(job, 4, 8);
  job.Issue(0, Send(1, CallState::started));
  job.Issue(0, Send(1, CallState::enqueued));
  job.Issue(1, Recv(0, CallState::started));
  job.Wait(20 * kMillisecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
}

TEST(P2pUnmatched, ARecordThatLostItsBeginningPairsWhatIsOpen) {
  JobSketch job(2);
  for (int m = 0; m < 30; ++m) {
    job.Issue(0, Send(1));
    job.Issue(1, Recv(0));
  }
  CallStream& stream = job.StreamOf(1);
  stream.from_start = false;
  stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 12);
  job.Issue(0, Send(1, CallState::started));
  job.Issue(1, Recv(0, CallState::started));
  job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(job).Fires("p2p-unmatched"));
}

// A batch of sends and receives closes with an entry of its own, which alone tells how far the batch got.
void Batch(JobSketch& job, int32_t rank, const std::vector<SketchedCall>& halves, CallState state) {
  for (SketchedCall half : halves) {
    half.flags |= kCoalescedMember;
    half.state = state;
    job.Issue(rank, half);
  }
  job.Issue(rank, {.kind = OpKind::coalesced,
                   .elements = -1,
                   .out_elements = -1,
                   .state = state,
                   .flags = static_cast<uint8_t>(kCoalescedEnd | kPointToPoint)});
}

TEST(P2pBatches, ARankThatHasNotPostedItsHalfIsWaitedFor) {
  JobSketch job(4);
  for (int s = 0; s < 10; ++s)
    for (int32_t r = 0; r < 4; ++r) Batch(job, r, {Send((r + 1) % 4), Recv((r + 3) % 4)}, CallState::completed);
  for (const int32_t r : {0, 1, 3}) Batch(job, r, {Send((r + 1) % 4), Recv((r + 3) % 4)}, CallState::started);
  job.Wait(600 * kSecondNs);
  job.Stack(2, InDataLoader());
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({2}));
  EXPECT_EQ(judged.Verdict().ranks, Ranks({2}));
}

TEST(P2pBatches, AFinishedExchangeIsFine) {
  JobSketch job(4);
  for (int s = 0; s < 10; ++s)
    for (int32_t r = 0; r < 4; ++r) Batch(job, r, {Send((r + 1) % 4), Recv((r + 3) % 4)}, CallState::completed);
  job.FinishAll();
  const JudgedCase judged(job);
  EXPECT_TRUE(judged.standstill().ranks.empty());
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
}

// Steps of a pipeline with a metric of all ranks after each second one; `left_out` skips a step.
JobSketch PipelineSteps(int32_t world, int steps, int32_t left_out) {
  JobSketch job(world);
  for (int32_t r = 0; r < world; ++r) {
    for (int step = 0; step < steps; ++step) {
      if (r == left_out && step == 6) continue;
      const CallState state = step < 6 ? CallState::completed : CallState::enqueued;
      for (int m = 0; m < 4; ++m) {
        if (r > 0) job.Issue(r, {.kind = OpKind::recv, .peer = r - 1, .state = state});
        if (r + 1 < world) job.Issue(r, {.kind = OpKind::send, .peer = r + 1, .state = state});
      }
      if (step % 2 == 1) job.Issue(r, {.state = state});
    }
  }
  job.Wait(600 * kSecondNs);
  for (int32_t r = 0; r < world; ++r) job.TimeOut(r, 4);
  return job;
}

TEST(P2pUnmatched, ARankThatLeftAStepOutHasFewerMessagesOnAllItsLinks) {
  for (const int32_t rank : {0, 1, 2, 4}) {
    JobSketch job = PipelineSteps(5, 10, rank);
    const Finding finding = JudgedCase(job).Only("p2p-unmatched");
    EXPECT_EQ(finding.ranks, Ranks({rank}));
    EXPECT_NE(finding.headline.find("skipped messages"), std::string::npos) << finding.headline;
  }
}

// Even ranks send to the odd rank beside them, then all reduce. `left_out` skips its half of the last round but one and
// posts the next, which stands behind a collective that its partner never reaches.
JobSketch PairSteps(int32_t world, int steps, int32_t left_out) {
  JobSketch job(world);
  const int32_t partner = left_out < 0 ? -1 : left_out ^ 1;
  for (int32_t r = 0; r < world; ++r) {
    for (int step = 0; step < steps; ++step) {
      const CallState state = step + 2 < steps ? CallState::completed : CallState::enqueued;
      const bool skips = r == left_out && step + 2 == steps;
      if (!skips) job.Issue(r, {.kind = r % 2 ? OpKind::recv : OpKind::send, .peer = r ^ 1, .state = state});
      if (r == partner && step + 2 == steps) break;
      job.Issue(r, {.state = state});
    }
  }
  job.Wait(600 * kSecondNs);
  for (int32_t r = 0; r < world; ++r) job.TimeOut(r, static_cast<uint32_t>(steps - 1));
  return job;
}

TEST(P2pUnmatched, AHalfThatComesOnlyBehindACollectiveOfAllWasLeftOut) {
  for (const int32_t rank : {0, 1, 2, 5}) {
    JobSketch job = PairSteps(6, 9, rank);
    const Finding finding = JudgedCase(job).Only("p2p-unmatched");
    EXPECT_EQ(finding.ranks, Ranks({rank}));
  }
  JobSketch even = PairSteps(6, 9, -1);
  EXPECT_FALSE(JudgedCase(even).Fires("p2p-unmatched"));
}

TEST(P2pUnmatched, AHungPipelineWithEvenCountsHasNone) {
  JobSketch job = PipelineSteps(5, 10, -1);
  EXPECT_FALSE(JudgedCase(job).Fires("p2p-unmatched"));
}

}  // namespace
}  // namespace tacet
