// SPDX-License-Identifier: Apache-2.0
// Ranks that issue different things at the same place of a group's order.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// One way to deviate from the all-reduce of the others.
struct Deviation {
  const char* name;
  const char* cause;
  SketchedCall usual, odd;
  bool in_log_only = false;
};

const Deviation kDeviations[] = {
    {"Operation", "collective-mismatch-operation", {}, {.kind = OpKind::broadcast, .peer = 0}},
    {"Size", "collective-mismatch-size", {}, {.elements = 1000}},
    {"Dtype", "collective-mismatch-dtype", {}, {.type = DataType::float16}},
    {"Reduction", "collective-mismatch-reduction", {}, {.reduction = ReduceOp::max}, true},
    {"Root",
     "collective-mismatch-root",
     {.kind = OpKind::broadcast, .peer = 0},
     {.kind = OpKind::broadcast, .peer = 1}},
    {"GatheredSize",
     "collective-mismatch-size",
     {.kind = OpKind::all_gather, .elements = 10, .out_elements = 80},
     {.kind = OpKind::all_gather, .elements = 10, .out_elements = 70}},
    {"ReducedRoot",
     "collective-mismatch-root",
     {.kind = OpKind::reduce, .peer = 1},
     {.kind = OpKind::reduce, .peer = 0}},
};

struct Example {
  Deviation deviation;
  FaultPlace place;
};

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const Deviation& deviation : kDeviations)
    for (const FaultPlace& place : {FaultPlace{4, 0, 5}, FaultPlace{4, 3, 0}, FaultPlace{8, 5, 60},
                                    FaultPlace{64, 40, 11}, FaultPlace{1024, 1023, 2}})
      examples.push_back({deviation, place});
  return examples;
}

class Mismatch : public testing::TestWithParam<Example> {
 protected:
  // Rank `rank` deviates once; everybody goes on in step for `after` rounds.
  JobSketch Deviate(int after) const {
    const auto& [deviation, place] = GetParam();
    JobSketch job(place.world, {deviation.in_log_only ? CallSource::nccl_log : CallSource::flight_recorder});
    job.Rounds(place.rounds);
    for (const int32_t r : job.AllBut({place.rank})) job.Issue(r, deviation.usual);
    job.Issue(place.rank, deviation.odd);
    job.Wait(10 * kMillisecondNs);
    job.Rounds(after);
    return job;
  }
  void Check(const Finding& finding, Status status) const {
    const auto& [deviation, place] = GetParam();
    EXPECT_EQ(finding.cause, deviation.cause);
    EXPECT_EQ(finding.ranks, Ranks({place.rank}));
    EXPECT_EQ(finding.status, status);
    EXPECT_EQ(finding.confidence, Confidence::certain);
    ASSERT_TRUE(finding.operation);
    EXPECT_EQ(finding.operation->seq, place.rounds + 1);
    EXPECT_EQ(finding.operation->kind, deviation.odd.kind);
    EXPECT_EQ(finding.affected_ranks.size(), static_cast<size_t>(place.world - 1));
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Mismatch, testing::ValuesIn(Examples()), [](const auto& info) {
  return std::string(info.param.deviation.name) + PlaceName(info.param.place);
});

TEST_P(Mismatch, IsFoundWhereItHappenedAlthoughTheStallComesLater) {
  JobSketch job = Deviate(20);
  job.IssueAll(kStarted);
  job.Wait(600 * kSecondNs);
  if (GetParam().deviation.in_log_only) job.TimeOut(0, GetParam().place.rounds + 22);
  const JudgedCase judged(job);
  Check(judged.Only(GetParam().deviation.cause), Status::hang);
  EXPECT_EQ(judged.Verdict().cause, GetParam().deviation.cause);
  EXPECT_EQ(judged.Verdict().ranks, Ranks({GetParam().place.rank}));
}

TEST_P(Mismatch, OfAJobThatEndedInOrderMeansWrongNumbers) {
  JobSketch job = Deviate(20);
  job.FinishAll();
  Check(JudgedCase(job).Only(GetParam().deviation.cause), Status::corrupt);
}

TEST_P(Mismatch, BeforeAnErrorIsACrash) {
  JobSketch job = Deviate(3);
  Event& error = job.Say(GetParam().place.rank, EventKind::process_exited);
  error.Make<ProcessEnd>().code = 1;
  Check(JudgedCase(job).Only(GetParam().deviation.cause), Status::crash);
}

TEST_P(Mismatch, FiresNoOtherMismatchRule) {
  JobSketch job = Deviate(20);
  job.FinishAll();
  const JudgedCase judged(job);
  for (const std::string_view cause :
       {"collective-mismatch-operation", "collective-mismatch-size", "collective-mismatch-dtype",
        "collective-mismatch-reduction", "collective-mismatch-root", "collective-skipped", "collective-extra"})
    EXPECT_EQ(judged.Fires(cause), cause == GetParam().deviation.cause) << cause;
}

void ExpectNoMismatch(JobSketch& job) {
  const JudgedCase judged(job);
  for (const SourceAnalysis& source : judged.analyses().sources) EXPECT_TRUE(source.differences.empty());
  for (const std::string_view cause :
       {"collective-mismatch-operation", "collective-mismatch-size", "collective-mismatch-dtype",
        "collective-mismatch-reduction", "collective-mismatch-root"})
    EXPECT_FALSE(judged.Fires(cause)) << cause;
}

// Healthy look-alikes.

TEST(MismatchLookAlikes, UnevenSplitsOfAllToAllAreLegal) {
  JobSketch job(4);
  for (int s = 0; s < 10; ++s)
    for (int r = 0; r < 4; ++r)
      job.Issue(r, {.kind = OpKind::all_to_all, .elements = 100 + 17 * r + s, .out_elements = 300 - 5 * r});
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, UnequalShardsOfAGatherAreLegal) {
  JobSketch job(4);
  for (int r = 0; r < 4; ++r) {
    job.Issue(r, {.kind = OpKind::all_gather, .elements = 10 + r, .out_elements = 46});
    job.Issue(r, {.kind = OpKind::gather, .elements = 10 + r, .out_elements = r == 0 ? 46 : 0, .peer = 0});
    job.Issue(r, {.kind = OpKind::scatter, .elements = r == 0 ? 46 : 0, .out_elements = 10 + r, .peer = 0});
    job.Issue(r, {.kind = OpKind::reduce_scatter, .elements = 46, .out_elements = 10 + r});
  }
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, BarriersHaveNoSizeAndNoType) {
  JobSketch job(4);
  for (int r = 0; r < 4; ++r)
    job.Issue(r, {.kind = OpKind::barrier, .elements = r, .type = r == 0 ? DataType::uint8 : DataType::float32});
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, MixedPrecisionIsFineWhereAllRanksUseTheSameTypeAtTheSamePlace) {
  JobSketch job(4);
  for (int s = 0; s < 20; ++s) job.IssueAll({.type = s % 2 ? DataType::bfloat16 : DataType::float32});
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, GroupsOfDifferentStagesMayHaveDifferentSizes) {
  JobSketch job(8);
  const GroupIndex first = job.AddGroup("dp", {0, 1, 2, 3}), second = job.AddGroup("dp", {4, 5, 6, 7});
  for (int s = 0; s < 20; ++s) {
    job.IssueAll({.group = first, .elements = 1000});
    job.IssueAll({.group = second, .elements = 777, .type = DataType::bfloat16});
  }
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, WhatIsNotRecordedIsNoDifference) {
  JobSketch job(4);
  job.IssueOn({0, 1}, {.elements = -1, .out_elements = -1, .type = DataType::unknown});
  job.IssueOn({2, 3}, {});
  job.IssueOn({0, 1}, {.kind = OpKind::unknown});
  job.IssueOn({2, 3}, {});
  job.IssueOn({0, 1}, {.kind = OpKind::broadcast, .peer = -1});
  job.IssueOn({2, 3}, {.kind = OpKind::broadcast, .peer = 2});
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, RecordsThatLostTheirBeginningAreComparedByNumber) {
  JobSketch job(4);
  const OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter};
  for (int s = 0; s < 60; ++s) job.IssueAll({.kind = kinds[s % 3]});
  for (int r = 0; r < 4; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.from_start = false;
    stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 7 + 5 * r);
  }
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, ALogThatLostItsBeginningCannotBeNumberedAndIsNotCompared) {
  JobSketch job(4, {CallSource::nccl_log});
  const OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter};
  for (int s = 0; s < 60; ++s) job.IssueAll({.kind = kinds[s % 3]});
  CallStream& stream = job.StreamOf(2, CallSource::nccl_log);
  stream.from_start = false;
  stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 7);
  for (uint32_t i = 0; i < stream.calls.size(); ++i) stream.calls[i].seq = i + 1;  // counted from the first line left
  ExpectNoMismatch(job);
}

TEST(MismatchLookAlikes, FlightRecordsHoldNoReduction) {
  JobSketch job(4);
  job.Rounds(10);
  job.IssueOn({0, 1, 3}, {});
  job.IssueOn({2}, {.reduction = ReduceOp::max});
  job.GiveOutputs();
  job.FinishAll();
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("collective-mismatch-reduction"));
  // So a job with flight records alone is never called healthy.
  const Diagnosis verdict = judged.Verdict();
  EXPECT_EQ(verdict.status, Status::undetermined);
  ASSERT_FALSE(verdict.open.empty());
  EXPECT_NE(verdict.open.back().missing.find("NCCL_DEBUG"), std::string::npos);
}

// Who is the odd one?

TEST(MismatchBlame, OfTwoRanksTheOneWithTheUnusualCallIsOdd) {
  JobSketch job(2);
  job.Rounds(20);
  job.Issue(0, {});
  job.Issue(1, {.elements = 999});
  job.Rounds(5);
  job.FinishAll();
  const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
  EXPECT_EQ(finding.ranks, Ranks({1}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(MismatchBlame, OfTwoRanksWithEquallyRareCallsNobodyIsBlamed) {
  JobSketch job(2);
  job.Rounds(20);
  job.Issue(0, {.elements = 555});
  job.Issue(1, {.elements = 999});
  job.Rounds(5);
  job.FinishAll();
  const JudgedCase judged(job);
  const Finding finding = judged.Only("collective-mismatch-size");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.status, Status::undetermined);
  EXPECT_EQ(finding.confidence, Confidence::possible);
  EXPECT_EQ(finding.affected_ranks, Ranks({0, 1}));
  EXPECT_TRUE(judged.Verdict().ranks.empty());
}

TEST(MismatchBlame, HalfAgainstHalfIsDecidedByHabitOnly) {
  JobSketch job(8);
  job.Rounds(20);
  job.IssueOn({0, 1, 2, 3}, {});
  job.IssueOn({4, 5, 6, 7}, {.elements = 999});
  job.FinishAll();
  const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
  EXPECT_EQ(finding.ranks, Ranks({4, 5, 6, 7}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(MismatchBlame, ThreeEqualSidesAreUndecided) {
  JobSketch job(3);
  job.Rounds(20);
  for (int r = 0; r < 3; ++r) job.Issue(r, {.elements = 100 + r});
  job.FinishAll();
  EXPECT_TRUE(JudgedCase(job).Only("collective-mismatch-size").ranks.empty());
}

TEST(MismatchBlame, TheFirstOfTwoDifferencesCounts) {
  JobSketch job(8);
  const GroupIndex half = job.AddGroup("tp", {0, 1, 2, 3});
  job.Rounds(10);
  for (const int r : {0, 1, 3}) job.Issue(r, {.group = half});
  job.Issue(2, {.group = half, .type = DataType::float16});
  job.Wait(kSecondNs);
  for (const int r : job.AllBut({6})) job.Issue(r, {});
  job.Issue(6, {.elements = 999});
  job.FinishAll();
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("collective-mismatch-dtype").ranks, Ranks({2}));
  EXPECT_FALSE(judged.Fires("collective-mismatch-size"));
}

// Reports of TORCH_DISTRIBUTED_DEBUG=DETAIL.

void Report(JobSketch& job, int32_t reporter, int32_t other, const char* aspect) {
  Event& event = job.Say(reporter, EventKind::mismatch_report);
  event.Make<MismatchReport>().aspect = aspect;
  event.peer = Rank{other};
  event.ranks = Ranks({reporter, other});
  event.op = OpKind::all_reduce;
  event.seq = 17;
}

TEST(DetailReport, TheRankInEveryReportIsOdd) {
  for (const auto& [aspect, cause] :
       {std::pair{"shape", "collective-mismatch-size"}, std::pair{"dtype", "collective-mismatch-dtype"},
        std::pair{"op", "collective-mismatch-operation"}}) {
    JobSketch job(4, {});
    for (const int r : {0, 1, 3}) Report(job, r, 2, aspect);
    Report(job, 2, 0, aspect);
    const Finding finding = JudgedCase(job).Only(cause);
    EXPECT_EQ(finding.ranks, Ranks({2})) << aspect;
    EXPECT_EQ(finding.status, Status::crash);
    EXPECT_EQ(finding.operation->seq, 17);
  }
}

// Rank 3's batch is shorter; each rank compares itself with another.
TEST(DetailReport, TheShapeOfMostRanksIsTheUsualOne) {
  JobSketch job(5, {});
  struct Pair {
    int32_t reporter, other;
    const char *own, *its;
  };
  for (const Pair& pair : {Pair{0, 3, "[32, 768]", "[17, 768]"}, Pair{1, 4, "[32, 768]", "[9, 768]"},
                           Pair{2, 3, "[32, 768]", "[17, 768]"}}) {
    Event& event = job.Say(pair.reporter, EventKind::mismatch_report);
    event.ranks = Ranks({pair.reporter, pair.other});
    event.op = OpKind::all_gather;
    event.seq = 41;
    auto& told = event.Make<MismatchReport>();
    told.aspect = "shape";
    told.tensor = pair.own;
    told.other_tensor = pair.its;
  }
  const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
  EXPECT_EQ(finding.ranks, Ranks({3, 4}));
  EXPECT_EQ(finding.affected_ranks, Ranks({0, 1, 2}));
  EXPECT_NE(finding.headline.find("where ranks 0-2 passed shape [32, 768]"), std::string::npos) << finding.headline;
  EXPECT_NE(finding.fix.at(0).find("drop_last=True"), std::string::npos);
}

// SequenceNumber=88 on one side, SequenceNumber=3 on the other: each is at a call of its own.
TEST(DetailReport, CallsOfDifferentNumbersAreToldWithBoth) {
  JobSketch job(6, {});
  Event& event = job.Say(2, EventKind::mismatch_report);
  event.peer = Rank{5};
  event.ranks = Ranks({2, 5});
  event.op = OpKind::all_reduce;
  event.seq = 88;
  auto& told = event.Make<MismatchReport>();
  told.aspect = "op";
  told.tensor = "ALLREDUCE";
  told.other_tensor = "BROADCAST";
  told.expected = 3;
  const Finding finding = JudgedCase(job).Only("collective-mismatch-operation");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_FALSE(finding.operation.has_value());
  EXPECT_NE(finding.headline.find("rank 2 was at all_reduce #88, rank 5 was at broadcast #3"), std::string::npos)
      << finding.headline;
}

TEST(DetailReport, OfTwoRanksNobodyIsBlamed) {
  JobSketch job(2, {});
  Report(job, 0, 1, "shape");
  Report(job, 1, 0, "shape");
  const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_EQ(finding.status, Status::undetermined);
}

TEST(DetailReport, FiresOnlyTheRuleOfItsAspect) {
  JobSketch job(4, {});
  for (const int r : {0, 1, 3}) Report(job, r, 2, "dtype");
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("collective-mismatch-size"));
  EXPECT_FALSE(judged.Fires("collective-mismatch-root"));
  EXPECT_FALSE(judged.Fires("collective-mismatch-reduction"));
}

// An all-to-all as NCCL's log shows it; `odd` doubles what it exchanges with each of `with`.
JobSketch Exchange(int32_t world, int32_t odd, const std::vector<int32_t>& with) {
  JobSketch job(world, {CallSource::nccl_log});
  for (int step = 0; step < 10; ++step) {
    for (int32_t r = 0; r < world; ++r) {
      for (int32_t peer = 0; peer < world; ++peer) {
        // Uneven splits are legal as long as both sides agree.
        int64_t elements = 64 + 16 * ((r + peer + step) % 3);
        const bool doubled = step == 6 && r == odd && std::find(with.begin(), with.end(), peer) != with.end();
        if (doubled) elements *= 2;
        job.Issue(r, {.kind = OpKind::send, .elements = elements, .peer = peer});
        job.Issue(r, {.kind = OpKind::recv, .elements = elements, .peer = peer});
      }
    }
  }
  job.TimeOut(0, 7);
  return job;
}

TEST(UnequalHalves, UnevenSplitsThatAgreeAreLegal) {
  JobSketch job = Exchange(4, -1, {});
  EXPECT_FALSE(JudgedCase(job).Fires("collective-mismatch-size"));
}

TEST(UnequalHalves, TheRankThatDisagreesWithSeveralIsNamed) {
  for (const int32_t odd : {0, 2}) {
    JobSketch job = Exchange(4, odd, {1, 3});
    const Finding finding = JudgedCase(job).Only("collective-mismatch-size");
    EXPECT_EQ(finding.ranks, Ranks({odd}));
    EXPECT_EQ(finding.status, Status::hang);
  }
}

TEST(UnequalHalves, BetweenTwoNobodyIsNamed) {
  JobSketch job = Exchange(4, 2, {3});
  const Diagnosis verdict = JudgedCase(job).Verdict();
  EXPECT_EQ(verdict.cause, "collective-mismatch-size");
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_TRUE(verdict.ranks.empty());
  EXPECT_NE(verdict.headline.find("to rank 2"), std::string::npos) << verdict.headline;
}

TEST(CallSites, AreNamedWhereTheyAreKnownAndSearchedWhereNot) {
  for (const bool known : {true, false}) {
    JobSketch job(4);
    job.Rounds(3);
    job.IssueOn(job.AllBut({2}), {.state = CallState::started, .site = "average"});
    job.Issue(2, {.type = DataType::float64, .state = CallState::started, .site = "average"});
    if (!known) job.LastCall(2).stack = StackId{};
    job.Wait(600 * kSecondNs);
    const Finding finding = JudgedCase(job).Only("collective-mismatch-dtype");
    ASSERT_FALSE(finding.fix.empty());
    const std::string& step = finding.fix[0];
    EXPECT_EQ(step.find(known ? "Look at average (" : "Find where rank 2 issues all_reduce of 1024 float64"), 0u)
        << step;
    EXPECT_EQ(step.find("cited"), std::string::npos) << step;
  }
}

}  // namespace
}  // namespace tacet
