// SPDX-License-Identifier: Apache-2.0
// Jobs whose calls nobody recorded, as with gloo: a watch saw that nothing moves, and every rank has a stack.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr std::string_view kC10d = "/v/dist-packages/torch/distributed/distributed_c10d.py";
const SketchedFrame kMain{"<module>", "/srv/train.py", 90};
const SketchedFrame kBackward{"backward", "/v/dist-packages/torch/autograd/__init__.py", 197};
const SketchedFrame kTrain{"train", "/srv/train.py", 40};
const SketchedFrame kExchange{"exchange", "/srv/train.py", 60};

JobSketch Watched(int32_t world) {
  JobSketch job(world);
  for (int32_t rank = 0; rank < world; ++rank) job.LoseRecord(rank);
  Event& event = job.Tell(EventKind::watchdog_timeout);
  event.Make<WatchdogTimeout>().timeout_ms = 30'000;
  event.Make<WatchdogTimeout>().elapsed_ms = 31'000;
  event.text = "no rank has made progress for 31 s";
  return job;
}
std::vector<SketchedFrame> InBackward() { return {kBackward, kTrain, kMain}; }
std::vector<SketchedFrame> In(std::string_view call) { return {{call, kC10d, 1159}, kExchange, kMain}; }

TEST(StackOnly, ARankOutsideWhileOthersWaitInBackwardIsStuck) {
  JobSketch job = Watched(4);
  for (const int32_t rank : {0, 1, 3}) job.Stack(rank, InBackward());
  job.Stack(2, {{"count_samples", "/srv/data.py", 97}, kTrain, kMain});
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Verdict().cause, "rank-stuck-on-host");
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({2}));
  EXPECT_FALSE(judged.Fires("transport-stalled"));
}

TEST(StackOnly, AllInOneLineIsAStalledTransport) {
  JobSketch job = Watched(4);
  for (int32_t rank = 0; rank < 4; ++rank) job.Stack(rank, InBackward());
  const JudgedCase judged(job);
  const Finding finding = judged.Only("transport-stalled");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.confidence, Confidence::possible);
}

TEST(StackOnly, InTwoLinesItIsNot) {
  JobSketch job = Watched(4);
  for (int32_t rank = 0; rank < 3; ++rank) job.Stack(rank, InBackward());
  job.Stack(3, In("all_reduce"));
  EXPECT_FALSE(JudgedCase(job).Fires("transport-stalled"));
}

TEST(StackOnly, WithoutTheStackOfOneRankNothingIsSaid) {
  JobSketch job = Watched(4);
  for (int32_t rank = 0; rank < 3; ++rank) job.Stack(rank, In("send"));
  job.GiveOutputs();
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
  EXPECT_FALSE(judged.Fires("transport-stalled"));
}

TEST(StackOnly, EveryoneInASendIsACircle) {
  JobSketch job = Watched(3);
  for (int32_t rank = 0; rank < 3; ++rank) job.Stack(rank, In("send"));
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("p2p-cycle").ranks, RankRange(0, 3));
  EXPECT_FALSE(judged.Fires("transport-stalled"));
}

TEST(StackOnly, ASendThatMeetsAReceiveIsNone) {
  JobSketch job = Watched(3);
  job.Stack(0, In("send"));
  job.Stack(1, In("recv"));
  job.Stack(2, In("recv"));
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("p2p-cycle"));
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
}

TEST(StackOnly, OneReceiveBesideACollectiveHasNoPartner) {
  JobSketch job = Watched(4);
  for (const int32_t rank : {0, 1, 3}) job.Stack(rank, InBackward());
  job.Stack(2, In("recv"));
  const Finding finding = JudgedCase(job).Only("p2p-unmatched");
  EXPECT_EQ(finding.ranks, Ranks({2}));
  EXPECT_EQ(finding.confidence, Confidence::possible);
}

// rank-dead by signals that are mostly answers to something else

JobSketch Ended(int64_t signal) {
  JobSketch job(4);
  for (int32_t rank = 0; rank < 4; ++rank) job.LoseRecord(rank);
  job.GiveOutputs();
  Event& end = job.Tell(EventKind::process_exited);
  end.rank = Rank{1};
  end.Make<ProcessEnd>().code = signal;
  for (const int32_t rank : {0, 2, 3}) {
    Event& lost = job.Say(rank, EventKind::exception);
    lost.Make<Raised>().type = "RuntimeError";
    lost.text = "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:13197";
  }
  return job;
}

TEST(StackOnly, AnAbortThatPeersAnswerWithLostConnectionsIsTheFirst) {
  for (const int64_t signal : {-6, -15}) {
    JobSketch job = Ended(signal);
    EXPECT_EQ(JudgedCase(job).Only("rank-dead").ranks, Ranks({1})) << signal;
  }
}

TEST(StackOnly, AnAbortAfterATimeoutIsTheWatchdogs) {
  JobSketch job = Ended(-6);
  job.TimeOut(1, 3);
  for (const Finding& finding : JudgedCase(job).Ask("rank-dead").findings) EXPECT_NE(finding.ranks, Ranks({1}));
}

}  // namespace
}  // namespace tacet
