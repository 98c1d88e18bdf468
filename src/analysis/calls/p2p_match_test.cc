// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/p2p_match.h"

#include <gtest/gtest.h>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

SketchedCall Send(int32_t to, CallState state = CallState::completed) {
  return {.kind = OpKind::send, .peer = to, .state = state};
}
SketchedCall Recv(int32_t from, CallState state = CallState::completed) {
  return {.kind = OpKind::recv, .peer = from, .state = state};
}

TEST(P2pMatch, TheHalfThatIsMissingInACutFileMayHaveBeenThere) {
  for (const bool cut : {false, true}) {
    JobSketch job(2);
    job.Issue(0, Send(1));
    job.Issue(1, Recv(0));
    job.Issue(1, Recv(0, CallState::started));
    job.StreamOf(0).cut = cut;
    const Incident incident = job.Finish();
    const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
    ASSERT_EQ(links.size(), 1u);
    EXPECT_EQ(links[0].unmatched_recv == nullptr, cut);
  }
}

TEST(P2pMatch, PairsTheSendsAndReceivesOfEachOrderedPair) {
  JobSketch job(3);
  for (int i = 0; i < 4; ++i) {
    job.Issue(0, Send(1));
    job.Issue(1, Recv(0));
    job.Issue(1, Send(0));
    job.Issue(0, Recv(1));
  }
  job.Issue(2, Send(0));
  job.Issue(0, Recv(2));
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0].sender, Rank{0});
  EXPECT_EQ(links[0].receiver, Rank{1});
  EXPECT_EQ(links[0].sends.size(), 4u);
  EXPECT_EQ(links[0].recvs.size(), 4u);
  for (const P2pLink& link : links) {
    EXPECT_TRUE(link.counted_from_start);
    EXPECT_EQ(link.unmatched_send, nullptr);
    EXPECT_EQ(link.unmatched_recv, nullptr);
  }
}

// A ring in which each rank sends to the next one, until rank 2 sends to rank 0 what rank 3 should get.
TEST(P2pMatch, AMessageThatItsUsualPartnerLacksWentToTheWrongRank) {
  JobSketch job(4);
  for (int step = 0; step < 4; ++step)
    for (int32_t rank = 0; rank < 4; ++rank) {
      job.Issue(rank, Send((rank + 1) % 4));
      job.Issue(rank, Recv((rank + 3) % 4));
    }
  job.Issue(2, Send(0, CallState::started));
  job.Issue(3, Recv(2, CallState::started));
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  const MisdirectedMessage wrong = FindMisdirected(links);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong.owner, Rank{2});
  EXPECT_EQ(wrong.stray->receiver, Rank{0});
  EXPECT_EQ(wrong.missed->receiver, Rank{3});
  EXPECT_FALSE(wrong.receives);
}

TEST(P2pMatch, AMessageTooManyIsNotOneToTheWrongRank) {
  JobSketch job(4);
  for (int step = 0; step < 4; ++step)
    for (int32_t rank = 0; rank < 4; ++rank) {
      job.Issue(rank, Send((rank + 1) % 4));
      job.Issue(rank, Recv((rank + 3) % 4));
    }
  job.Issue(2, Send(0, CallState::started));
  const Incident incident = job.Finish();
  EXPECT_FALSE(FindMisdirected(MatchPointToPoint(incident, CallSource::flight_recorder)));
}

TEST(P2pMatch, PeersAreGroupRanks) {
  JobSketch job(8);
  const GroupIndex pipe = job.AddGroup("pp", {6, 2});  // in this order
  job.Issue(6, {.kind = OpKind::send, .group = pipe, .peer = 1});
  job.Issue(2, {.kind = OpKind::recv, .group = pipe, .peer = 0});
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].sender, Rank{6});
  EXPECT_EQ(links[0].receiver, Rank{2});
}

TEST(P2pMatch, TheFirstOneWithoutACounterpartIsUnmatched) {
  JobSketch job(2);
  job.Issue(0, Send(1));
  job.Issue(1, Recv(0));
  job.Issue(1, Recv(0, CallState::started));
  job.Issue(1, Recv(0, CallState::enqueued));
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  ASSERT_NE(links[0].unmatched_recv, nullptr);
  EXPECT_EQ(links[0].unmatched_recv->seq, 2u);
  EXPECT_EQ(links[0].unmatched_send, nullptr);
}

TEST(P2pMatch, ABufferedSendThatEndedIsNotUnmatched) {
  JobSketch job(2);
  job.Issue(0, Send(1));
  job.Issue(0, Send(1));
  job.Issue(1, Recv(0));
  const Incident incident = job.Finish();
  EXPECT_EQ(MatchPointToPoint(incident, CallSource::flight_recorder)[0].unmatched_send, nullptr);
}

TEST(P2pMatch, ASendThatOnlyTheAbortEndedIsUnmatched) {
  JobSketch job(2);
  job.Issue(0, Send(1));
  job.Issue(1, Recv(0));
  SketchedCall aborted = Send(1);
  aborted.flags = kEndedByAbort;
  job.Issue(0, aborted);
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  ASSERT_NE(links[0].unmatched_send, nullptr);
  EXPECT_EQ(links[0].unmatched_send->seq, 2u);
}

TEST(P2pMatch, WhereTheBeginningIsLostOnlyWhatIsOpenIsPaired) {
  JobSketch job(2);
  for (int i = 0; i < 20; ++i) {
    job.Issue(0, Send(1));
    job.Issue(1, Recv(0));
  }
  job.Issue(0, Send(1, CallState::started));
  CallStream& stream = job.StreamOf(1);
  stream.from_start = false;
  stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 7);
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  EXPECT_FALSE(links[0].counted_from_start);
  ASSERT_NE(links[0].unmatched_send, nullptr);
  EXPECT_EQ(links[0].unmatched_send->seq, 21u);
}

TEST(P2pMatch, ASideWithoutRecordIsNoUnmatchedCall) {
  JobSketch job(2);
  job.Issue(0, Send(1, CallState::started));
  job.LoseRecord(1);
  const Incident incident = job.Finish();
  const auto links = MatchPointToPoint(incident, CallSource::flight_recorder);
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].recv_stream, nullptr);
  EXPECT_EQ(links[0].unmatched_send, nullptr);
}

TEST(P2pMatch, HostilePeersAreIgnored) {
  JobSketch job(2);
  job.Issue(0, Send(-1));
  job.Issue(0, Send(99));
  job.Issue(0, {.kind = OpKind::send, .group = GroupIndex::none, .peer = 1});
  const Incident incident = job.Finish();
  EXPECT_TRUE(MatchPointToPoint(incident, CallSource::flight_recorder).empty());
}

}  // namespace
}  // namespace tacet
