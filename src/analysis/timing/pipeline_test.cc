// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pipeline.h"

#include <gtest/gtest.h>

#include "analysis/timing/recorded_timelines.h"

namespace tacet {
namespace {

// A message of one step, entered by both ends at the given moments.
CollectiveRound Message(int32_t from, int32_t to, int64_t sent, int64_t received) {
  CollectiveRound round;
  round.kind = OpKind::send;
  round.step = 3;
  for (const auto& [rank, ns] : {std::pair{from, sent}, {to, received}}) {
    RoundMember m;
    m.rank = {rank};
    m.enter_ns = ns;
    round.members.push_back(m);
  }
  return round;
}

TEST(Pipeline, TellsGpipeFromOneForwardOneBackward) {
  std::vector<CollectiveRound> gpipe, alternating;
  for (int i = 0; i < 6; ++i) {
    gpipe.push_back(Message(0, 1, 10 * i, 10 * i + 1));
    gpipe.push_back(Message(1, 0, 1000 + 10 * i, 1001 + 10 * i));
    alternating.push_back(Message(0, 1, 100 * i, 100 * i + 1));
    alternating.push_back(Message(1, 0, 100 * i + 120, 100 * i + 130));
  }
  const PipelineReport a = AnalysePipeline(gpipe, {}), b = AnalysePipeline(alternating, {});
  ASSERT_TRUE(a.found);
  EXPECT_EQ(a.stages, 2);
  EXPECT_EQ(a.microbatches, 6);
  EXPECT_EQ(a.schedule, PipelineSchedule::gpipe);
  EXPECT_EQ(b.schedule, PipelineSchedule::one_forward_one_backward);
  EXPECT_DOUBLE_EQ(a.ideal_bubble, 1.0 / 7);
}

TEST(Pipeline, FindsChunksByTheWrapFromLastToFirst) {
  // Three stages, two chunks, four microbatches: the last stage sends the first chunk's output back to the first.
  std::vector<CollectiveRound> rounds;
  int64_t t = 0;
  const auto add = [&](int32_t from, int32_t to, int64_t delay) {
    ++t;
    rounds.push_back(Message(from, to, t, t + delay));
  };
  for (int chunk = 0; chunk < 2; ++chunk)
    for (int m = 0; m < 4; ++m) {
      add(0, 1, 0);
      add(1, 2, 0);
      if (chunk == 0) add(2, 0, 100);
    }
  for (int m = 0; m < 8; ++m) {
    add(2, 1, 0);
    add(1, 0, 200);
  }
  const PipelineReport report = AnalysePipeline(rounds, {});
  ASSERT_TRUE(report.found);
  EXPECT_EQ(report.stages, 3);
  EXPECT_EQ(report.microbatches, 4);
  EXPECT_EQ(report.chunks, 2);
  EXPECT_EQ(report.schedule, PipelineSchedule::interleaved);
  EXPECT_DOUBLE_EQ(report.ideal_bubble, 2.0 / (8 + 2));
}

TEST(Pipeline, FindsNoneWithoutSends) { EXPECT_FALSE(AnalysePipeline({}, {}).found); }

TEST(Pipeline, FindsNoneInAOneWayRing) {
  std::vector<CollectiveRound> rounds;
  for (int r = 0; r < 4; ++r) rounds.push_back(Message(r, (r + 1) % 4, 10 * r, 10 * r + 5));
  EXPECT_FALSE(AnalysePipeline(rounds, {}).found);
}

TEST(Pipeline, ReadsTheRecordedPipelines) {
  for (const char* name : {"gpt_pp", "gpt_pp_heavy"}) {
    const Incident job = ReadTraces(SharedFolder() / "corpus" / name, "trace_rank");
    if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
    const PipelineReport report = AnalysePipeline(MatchCollectives(job.timelines, job.groups), job.timelines);
    ASSERT_TRUE(report.found) << name;
    EXPECT_EQ(report.stages, 4);
    EXPECT_EQ(report.microbatches, 8);
    EXPECT_EQ(report.schedule, PipelineSchedule::one_forward_one_backward);
    EXPECT_NEAR(report.ideal_bubble, 3.0 / 11, 1e-12);
    EXPECT_GT(report.bubble, 0.2);
    EXPECT_EQ(report.heaviest, std::string(name) == "gpt_pp" ? 3 : 2);
    for (int32_t s = 0; s < 4; ++s) EXPECT_EQ(report.by_stage[static_cast<size_t>(s)].ranks, (std::vector<Rank>{{s}}));
  }
}

}  // namespace
}  // namespace tacet
