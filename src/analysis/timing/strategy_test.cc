// SPDX-License-Identifier: Apache-2.0
// By strategy: DDP buckets, FSDP volumes, the communication table.
#include <gtest/gtest.h>

#include "analysis/timing/clock_alignment.h"
#include "analysis/timing/ddp_buckets.h"
#include "analysis/timing/fsdp_volume.h"
#include "analysis/timing/gradient_order.h"
#include "analysis/timing/recorded_timelines.h"
#include "analysis/timing/timeline_fixture.h"

namespace tacet {
namespace {

CollectiveRound Round(OpKind kind, int64_t bytes, int64_t start, int64_t end, int32_t size = 2) {
  CollectiveRound round;
  round.group = static_cast<GroupIndex>(0);
  round.kind = kind;
  round.bytes = bytes;
  round.group_size = size;
  for (int32_t r = 0; r < size; ++r) {
    RoundMember m;
    m.rank = {r};
    m.start_ns = start - 10 * (size - 1 - r);  // the last rank comes last
    m.end_ns = end;
    m.duration_ns = m.end_ns - m.start_ns;
    round.members.push_back(m);
  }
  return round;
}

TEST(CommunicationTable, KeepsWaitingAndTransferApart) {
  const std::vector<CollectiveRound> rounds = {Round(OpKind::all_reduce, 1000, 100, 1100, 4),
                                               Round(OpKind::all_reduce, 1000, 2000, 2500, 4),
                                               Round(OpKind::all_gather, 5000, 3000, 4000, 4)};
  const auto rows = SummariseCommunication(rounds);
  ASSERT_EQ(rows.size(), 2u);
  const CommunicationRow& reduce = rows[0].kind == OpKind::all_reduce ? rows[0] : rows[1];
  EXPECT_EQ(reduce.calls, 2u);
  EXPECT_EQ(reduce.size_class, 1024);
  EXPECT_EQ(reduce.bytes, 2000);
  EXPECT_EQ(reduce.transfer_ns, 1500);
  EXPECT_EQ(reduce.wait_ns, 2 * (30 + 20 + 10));
  EXPECT_EQ(reduce.member_transfer_ns, 4 * 1500);
  EXPECT_DOUBLE_EQ(reduce.algorithm_gbs, 2000.0 / 1500);
  EXPECT_DOUBLE_EQ(reduce.bus_gbs, 1.5 * 2000.0 / 1500);
  EXPECT_DOUBLE_EQ(reduce.best_bus_gbs, 1.5 * 2);
}

TEST(CommunicationTable, MembersWithoutARecordNeitherWaitNorTransfer) {
  std::vector<CollectiveRound> rounds = {Round(OpKind::all_reduce, 1000, 100, 1100, 4)};
  const int64_t wait = SummariseCommunication(rounds)[0].wait_ns;
  rounds[0].members.erase(rounds[0].members.begin() + 1);
  const CommunicationRow some = SummariseCommunication(rounds)[0];
  EXPECT_EQ(some.group_size, 4);
  EXPECT_LT(some.wait_ns, wait);
  EXPECT_EQ(some.member_transfer_ns, 3 * some.transfer_ns);
  rounds[0].members.resize(1);
  EXPECT_EQ(SummariseCommunication(rounds)[0].member_transfer_ns, 0) << "of one alone the waiting is not known";
}

TEST(CommunicationTable, FitsLatencyAndBandwidthWhereSizesDiffer) {
  std::vector<CollectiveRound> rounds;
  for (int64_t mb = 1; mb <= 16; mb *= 2)
    rounds.push_back(Round(OpKind::all_reduce, mb * 1'000'000, 0, 300'000 + mb * 500'000));
  const auto fit = FitLatencyBandwidth(rounds, static_cast<GroupIndex>(0), OpKind::all_reduce);
  ASSERT_TRUE(fit.valid);
  EXPECT_TRUE(fit.latency_measured);
  EXPECT_NEAR(fit.latency_ns, 300'000, 1);
  EXPECT_NEAR(fit.per_byte_ns, 0.5, 1e-9);
  rounds.resize(1);
  const auto assumed = FitLatencyBandwidth(rounds, static_cast<GroupIndex>(0), OpKind::all_reduce);
  EXPECT_TRUE(assumed.valid);
  EXPECT_FALSE(assumed.latency_measured);
  EXPECT_NEAR(assumed.Time(1e6), 800'000, 1);
}

TEST(GradientOrder, TellsPassesFromEqualLayers) {
  Timeline timeline = MakeTimeline(0);
  timeline.threads = {1, 2};
  const TrainingStep step{0, 0, 1'000'000};
  for (int layer = 0; layer < 4; ++layer)  // one pass of equal layers
    for (int p = 0; p < 2; ++p) timeline.gradients.push_back({layer * 100 + p * 50, p == 0 ? 4096 : 64, 1});
  timeline.launches = {{10, 1, 1}, {120, 1, 1}, {240, 1, 1}};
  EXPECT_EQ(GradientsOfStep(timeline, step).size(), 8u);
  timeline.gradients.clear();
  for (int pass = 0; pass < 3; ++pass)  // three passes over the same parameters, forward passes of thread 0 between
    for (int p = 0; p < 5; ++p) timeline.gradients.push_back({pass * 10'000 + p * 50, 100 + p, 1});
  timeline.launches = {{100, 1, 1}, {5'000, 1, 0}, {15'000, 1, 0}, {20'100, 1, 1}};
  const auto last = GradientsOfStep(timeline, step);
  ASSERT_EQ(last.size(), 5u);
  EXPECT_EQ(last[0].ns, 20'000);
}

// The ranking of the three runs by their step times is 25, 1, 250; each run alone must say so.
TEST(DdpBuckets, RankCapsAsTheRecordedRunsDo) {
  struct Run {
    const char* name;
    size_t buckets;
    int64_t first, last;  // bytes
    double recommended;
  };
  for (const Run& run :
       {Run{"gpt_ddp_b1", 18, 8388608 * 2, 8390656 * 2, 25}, Run{"gpt_ddp_b25", 4, 16782336 * 2, 20986880 * 2, 0},
        Run{"gpt_ddp_b250", 1, 67162112 * 2, 67162112 * 2, 25}}) {
    const Incident job = ReadTraces(SharedFolder() / "corpus" / run.name, "trace_rank");
    if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
    auto rounds = MatchCollectives(job.timelines, job.groups);
    ApplyAlignment(AlignClocks(rounds), rounds);
    const DdpReport report = AnalyseDdp(rounds, job.timelines);
    ASSERT_TRUE(report.found) << run.name;
    EXPECT_EQ(report.gradient_bytes, 134324224);
    ASSERT_EQ(report.buckets.size(), run.buckets);
    EXPECT_EQ(report.buckets.front().bytes, run.first);
    EXPECT_EQ(report.buckets.back().bytes, run.last);
    EXPECT_NEAR(report.predicted_ns / report.step_ns, 1, 0.06) << run.name;
    std::map<double, double> step;
    for (const DdpPrediction& prediction : report.predictions) step[prediction.cap_mb] = prediction.step_ns;
    EXPECT_LT(step[25], step[1]) << run.name;
    EXPECT_LT(step[1], step[250]) << run.name;
    EXPECT_EQ(report.recommended_cap_mb, run.recommended) << run.name;
    EXPECT_EQ(report.gain > 0, run.recommended > 0);
  }
}

TEST(DdpBuckets, PredictsNothingWhereTheModelMissesTheStep) {
  Incident job = ReadTraces(SharedFolder() / "corpus" / "gpt_ddp_b25", "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
  const auto rounds = MatchCollectives(job.timelines, job.groups);
  EXPECT_TRUE(AnalyseDdp(rounds, job.timelines).trusted);
  // The host is in the next step while the buckets still run.
  for (Timeline& timeline : job.timelines)
    for (TrainingStep& step : timeline.steps) step.end_ns -= (step.end_ns - step.start_ns) / 2;
  const DdpReport report = AnalyseDdp(rounds, job.timelines);
  ASSERT_TRUE(report.found);
  EXPECT_GT(report.predicted_ns, 1.1 * report.step_ns);
  EXPECT_FALSE(report.trusted);
  EXPECT_TRUE(report.predictions.empty());
  EXPECT_EQ(report.gain, 0);
}

TEST(DdpBuckets, FindsNoneInAShardedJob) {
  const Incident job = ReadTraces(SharedFolder() / "corpus" / "gpt_fsdp", "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
  EXPECT_FALSE(AnalyseDdp(MatchCollectives(job.timelines, job.groups), job.timelines).found);
}

TEST(FsdpVolume, MatchesTheoryInTheRecordedRuns) {
  struct Run {
    const char* name;
    size_t units;
    int64_t parameters, kept;
  };
  // Six blocks in bf16 and the root (embedding and output layer), which is kept after the forward pass; six layers in
  // fp32.
  for (const Run& run : {Run{"gpt_fsdp", 7, 184709120, 33554432}, Run{"clean_fsdp", 6, 25190400, 0}}) {
    const Incident job = ReadTraces(SharedFolder() / "corpus" / run.name, "trace_rank");
    if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
    const FsdpReport report = AnalyseFsdp(MatchCollectives(job.timelines, job.groups), job.timelines);
    ASSERT_TRUE(report.found);
    EXPECT_TRUE(report.parameters_known);
    EXPECT_NEAR(static_cast<double>(report.parameter_bytes) / static_cast<double>(run.parameters), 1, 0.001);
    EXPECT_EQ(report.units.size(), run.units);
    EXPECT_NEAR(static_cast<double>(report.kept_bytes), static_cast<double>(run.kept),
                0.01 * static_cast<double>(run.parameters));
    EXPECT_NEAR(report.gather_ratio, 1, 0.02);
    EXPECT_NEAR(report.scatter_ratio, 1, 0.02);
  }
}

TEST(FsdpVolume, FindsNoneInADdpJob) {
  const Incident job = ReadTraces(SharedFolder() / "corpus" / "gpt_ddp_b25", "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "the recordings are not here";
  EXPECT_FALSE(AnalyseFsdp(MatchCollectives(job.timelines, job.groups), job.timelines).found);
}

}  // namespace
}  // namespace tacet
