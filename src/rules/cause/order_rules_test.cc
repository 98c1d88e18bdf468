// SPDX-License-Identifier: Apache-2.0
// Ranks whose order of calls differs: skipped, extra, two groups the other way round.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// A step of FSDP: all ranks issue gather, scatter, reduce in this order. `plan` may change what one rank does.
const SketchedCall kStep[] = {{.kind = OpKind::all_gather, .elements = 64, .out_elements = 512},
                              {.kind = OpKind::reduce_scatter, .elements = 512},
                              {.kind = OpKind::all_reduce, .elements = 1}};

class OddOrder : public testing::TestWithParam<FaultPlace> {};
INSTANTIATE_TEST_SUITE_P(Places, OddOrder,
                         testing::Values(FaultPlace{4, 0, 4}, FaultPlace{4, 3, 9}, FaultPlace{8, 5, 30},
                                         FaultPlace{64, 40, 6}, FaultPlace{1024, 1023, 3}),
                         [](const auto& info) { return PlaceName(info.param); });

// Everybody runs `rounds` steps; then `rank` leaves out (or repeats) the scatter, and all run on for four steps.
JobSketch Shifted(const FaultPlace& place, bool skip) {
  JobSketch job(place.world);
  for (int s = 0; s < place.rounds; ++s)
    for (const SketchedCall& call : kStep) job.IssueAll(call);
  for (int s = 0; s < 4; ++s) {
    for (size_t i = 0; i < 3; ++i) {
      const bool here = s == 0 && i == 1;
      for (const int32_t r : job.AllBut({place.rank})) job.Issue(r, kStep[i]);
      if (!here || !skip) job.Issue(place.rank, kStep[i]);
      if (here && !skip) job.Issue(place.rank, kStep[i]);
      job.Wait(10 * kMillisecondNs);
    }
  }
  for (int32_t r = 0; r < place.world; ++r) job.LastCall(r).state = CallState::started;
  job.Wait(600 * kSecondNs);
  return job;
}

TEST_P(OddOrder, ALeftOutCallIsNamedWithItsPlace) {
  const FaultPlace& place = GetParam();
  JobSketch job = Shifted(place, true);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("collective-skipped");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_EQ(finding.operation->kind, OpKind::reduce_scatter);
  EXPECT_EQ(finding.operation->seq, 3 * place.rounds + 2);
  EXPECT_FALSE(judged.Fires("collective-extra"));
  EXPECT_FALSE(judged.Fires("collective-mismatch-operation"));
  EXPECT_EQ(judged.Verdict().cause, "collective-skipped");
  EXPECT_EQ(judged.Verdict().ranks, Ranks({place.rank}));
}

TEST_P(OddOrder, AnExtraCallIsNamedWithItsPlace) {
  const FaultPlace& place = GetParam();
  JobSketch job = Shifted(place, false);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("collective-extra");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  // The second scatter stands where the others have their reduce.
  EXPECT_EQ(finding.operation->kind, OpKind::reduce_scatter);
  EXPECT_EQ(finding.operation->seq, 3 * place.rounds + 3);
  EXPECT_FALSE(judged.Fires("collective-skipped"));
  EXPECT_FALSE(judged.Fires("collective-mismatch-operation"));
  EXPECT_EQ(judged.Verdict().cause, "collective-extra");
}

// A mesh of tensor pairs and data groups in which every call looks alike: only the interleaving of groups tells.
struct Mesh {
  explicit Mesh(int32_t world) : job(world) {
    std::vector<int32_t> sides[2];
    for (int32_t r = 0; r < world; ++r) sides[r % 2].push_back(r);
    for (int32_t p = 0; p < world / 2; ++p) pairs.push_back(job.AddGroup("tp", {2 * p, 2 * p + 1}));
    for (const auto& side : sides) data.push_back(job.AddGroup("dp", side));
  }
  void Step(int32_t odd = -1, int skip = -1, int repeat = -1) {
    for (int i = 0; i < 4; ++i) {
      for (int32_t r = 0; r < job.world(); ++r) {
        const GroupIndex group = i < 3 ? pairs[static_cast<size_t>(r / 2)] : data[static_cast<size_t>(r % 2)];
        if (r == odd && i == skip) continue;
        job.Issue(r, {.group = group});
        if (r == odd && i == repeat) job.Issue(r, {.group = group});
      }
      job.Wait(10 * kMillisecondNs);
    }
  }
  JobSketch job;
  std::vector<GroupIndex> pairs, data;
};

TEST(OrderOfGroups, AnExtraCallThatPairsUpWithTheNextOneIsFoundByTheInterleaving) {
  for (const auto& [world, odd] : {std::pair{8, 5}, std::pair{8, 0}, std::pair{16, 15}, std::pair{64, 20}}) {
    Mesh mesh(world);
    for (int s = 0; s < 6; ++s) mesh.Step();
    mesh.Step(odd, -1, 1);
    for (int s = 0; s < 5; ++s) mesh.Step();
    // Its partner is one tensor call short in the end and goes to the data group, the odd one waits for it.
    mesh.job.LastCall(odd).state = CallState::started;
    mesh.job.TimeOut(odd, 1);
    mesh.job.Wait(600 * kSecondNs);
    const JudgedCase judged(mesh.job);
    const Finding finding = judged.Only("collective-extra");
    EXPECT_EQ(finding.ranks, Ranks({odd}));
    EXPECT_EQ(finding.status, Status::hang);
    EXPECT_EQ(finding.group, mesh.pairs[static_cast<size_t>(odd / 2)]);
    EXPECT_EQ(finding.operation->seq, 6 * 3 + 3 + 1);
    EXPECT_FALSE(judged.Fires("collective-skipped"));
  }
}

TEST(OrderOfGroups, ALeftOutCallIsFoundByTheInterleaving) {
  for (const auto& [world, odd] : {std::pair{8, 2}, std::pair{32, 31}}) {
    Mesh mesh(world);
    for (int s = 0; s < 6; ++s) mesh.Step();
    mesh.Step(odd, 1, -1);
    for (int s = 0; s < 5; ++s) mesh.Step();
    mesh.job.LastCall(odd).state = CallState::started;
    mesh.job.TimeOut(odd, 1);
    mesh.job.Wait(600 * kSecondNs);
    const JudgedCase judged(mesh.job);
    EXPECT_EQ(judged.Only("collective-skipped").ranks, Ranks({odd}));
    EXPECT_FALSE(judged.Fires("collective-extra"));
  }
}

TEST(OrderOfGroups, AnExtraCallInEveryStepIsFoundByTheInterleaving) {
  for (const int times : {2, 5}) {
    Mesh mesh(16);
    for (int s = 0; s < 6; ++s) mesh.Step();
    for (int s = 0; s < times; ++s) mesh.Step(5, -1, 1);
    for (int s = 0; s < 5; ++s) mesh.Step();
    mesh.job.LastCall(5).state = CallState::started;
    mesh.job.TimeOut(5, 1);
    mesh.job.Wait(600 * kSecondNs);
    const JudgedCase judged(mesh.job);
    const Finding finding = judged.Only("collective-extra");
    EXPECT_EQ(finding.ranks, Ranks({5}));
    EXPECT_EQ(finding.headline, "rank 5 issued " + std::to_string(times) +
                                    " more all_reduce calls than its peers (the first is #22 on tp); from there on its "
                                    "calls are paired with the wrong calls of the others");
  }
}

TEST_P(OddOrder, ExtraCallsInEveryStepAreCounted) {
  const FaultPlace& place = GetParam();
  JobSketch job(place.world);
  for (int s = 0; s < place.rounds + 9; ++s)
    for (const SketchedCall& call : kStep) {
      for (const int32_t r : job.AllBut({place.rank})) job.Issue(r, call);
      job.Issue(place.rank, call);
      if (s >= place.rounds && call.kind == OpKind::reduce_scatter)
        job.Issue(place.rank, {.elements = 3, .site = "log_metrics"});
      job.Wait(10 * kMillisecondNs);
    }
  for (int32_t r = 0; r < place.world; ++r) job.LastCall(r).state = CallState::started;
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  const Finding finding = judged.Only("collective-extra");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.operation->seq, 3 * place.rounds + 3);
  EXPECT_EQ(finding.headline.substr(finding.headline.find("issued")),
            "issued 9 extra calls, beginning at #" + std::to_string(3 * place.rounds + 3) +
                " on default_pg (all_reduce of 3 float32, one every 4 calls), and is 9 collectives behind its peers");
  EXPECT_FALSE(judged.Fires("collective-skipped"));
  EXPECT_FALSE(judged.Fires("collective-mismatch-operation"));
}

void ExpectNoOrderFault(JobSketch& job) {
  const JudgedCase judged(job);
  for (const std::string_view cause : {"collective-skipped", "collective-extra", "group-order-inversion", "p2p-cycle",
                                       "p2p-unmatched", "collective-mismatch-operation"})
    EXPECT_FALSE(judged.Fires(cause)) << cause;
}

TEST(OrderLookAlikes, PipelineStagesPlayDifferentRoles) {
  // Four stages of two: the first only sends, the last only receives, the middle ones do both; the first and the last
  // also share the embedding.
  JobSketch job(8);
  const GroupIndex pipes[] = {job.AddGroup("pp", {0, 2, 4, 6}), job.AddGroup("pp", {1, 3, 5, 7})};
  const GroupIndex embedding = job.AddGroup("embd", {0, 1, 6, 7});
  for (int s = 0; s < 12; ++s) {
    for (int m = 0; m < 4; ++m) {
      for (int stage = 0; stage < 4; ++stage) {
        for (int side = 0; side < 2; ++side) {
          const int r = 2 * stage + side;
          if (stage > 0) job.Issue(r, {.kind = OpKind::recv, .group = pipes[side], .peer = stage - 1});
          if (stage < 3) job.Issue(r, {.kind = OpKind::send, .group = pipes[side], .peer = stage + 1});
        }
      }
    }
    job.IssueAll({.group = embedding});
    job.IssueAll();
  }
  job.IssueOn(job.AllBut({6}), kStarted);  // and rank 6 hangs, so that somebody is to blame
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_EQ(judged.Only("rank-stuck-on-host").ranks, Ranks({6}));
  EXPECT_FALSE(judged.Fires("collective-skipped"));
  EXPECT_FALSE(judged.Fires("collective-extra"));
  EXPECT_FALSE(judged.Fires("p2p-unmatched"));
}

// Rank 0 sends a metric to rank 1 once in a while.
JobSketch WithMetrics(int rounds, CallSource source) {
  JobSketch job(8, {source});
  for (int s = 0; s < rounds; ++s) {
    if (s == 10 || s == 40) {
      job.Issue(0, {.kind = OpKind::send, .elements = 1, .peer = 1});
      job.Issue(1, {.kind = OpKind::recv, .elements = 1, .peer = 0});
    }
    job.IssueAll();
  }
  return job;
}

TEST(OrderLookAlikes, ARankThatSendsMoreThanOthersInAFinishedJobIsNobodysFault) {
  for (const CallSource source : {CallSource::flight_recorder, CallSource::nccl_log}) {
    JobSketch job = WithMetrics(60, source);
    job.FinishAll();
    ExpectNoOrderFault(job);
  }
}

TEST(OrderLookAlikes, ARankThatSendsMoreThanOthersInARunningJobIsNobodysFault) {
  JobSketch job = WithMetrics(60, CallSource::flight_recorder);
  job.IssueOn(job.AllBut({5}), kStarted);
  job.Wait(50 * kMillisecondNs);
  ExpectNoOrderFault(job);
}

TEST(OrderLookAlikes, AMatchedExtraCallIsNotTheCauseOfAHang) {
  // Rank 5 is stuck; that rank 0 and rank 1 exchanged a metric long before has nothing to do with it.
  JobSketch job = WithMetrics(30, CallSource::flight_recorder);
  job.IssueOn(job.AllBut({5}), kStarted);
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  EXPECT_FALSE(judged.Fires("collective-extra"));
  EXPECT_EQ(judged.Verdict().ranks, Ranks({5})) << judged.Verdict().headline;
}

TEST(OrderLookAlikes, RecordsOfDifferentLengthAreNoDivergence) {
  JobSketch job(8);
  for (int s = 0; s < 30; ++s)
    for (const SketchedCall& call : kStep) job.IssueAll(call);
  for (int r = 0; r < 8; ++r) {
    CallStream& stream = job.StreamOf(r);
    stream.from_start = false;
    stream.calls.erase(stream.calls.begin(), stream.calls.begin() + 3 * r + r % 3);
  }
  ExpectNoOrderFault(job);
}

// group-order-inversion

// Two groups over the same ranks; `odd` uses them the other way round.
JobSketch Inverted(const FaultPlace& place, const std::vector<int32_t>& odd) {
  JobSketch job(place.world);
  std::vector<int32_t> all;
  for (int32_t r = 0; r < place.world; ++r) all.push_back(r);
  const GroupIndex a = job.AddGroup("grads", all), b = job.AddGroup("norms", all);
  for (int s = 0; s < place.rounds; ++s) {
    job.IssueAll({.group = a});
    job.IssueAll({.group = b});
  }
  for (int32_t r = 0; r < place.world; ++r) {
    const bool other = std::find(odd.begin(), odd.end(), r) != odd.end();
    job.Issue(r, {.group = other ? b : a, .state = CallState::started});
  }
  job.Wait(600 * kSecondNs);
  return job;
}

TEST_P(OddOrder, ARankThatUsesTwoGroupsTheOtherWayRoundIsNamed) {
  const FaultPlace& place = GetParam();
  JobSketch job = Inverted(place, {place.rank});
  const JudgedCase judged(job);
  const Finding finding = judged.Only("group-order-inversion");
  EXPECT_EQ(finding.ranks, Ranks({place.rank}));
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.confidence, Confidence::certain);
  EXPECT_EQ(finding.operation->seq, place.rounds + 1);
  EXPECT_EQ(finding.affected_ranks.size(), static_cast<size_t>(place.world - 1));
  EXPECT_EQ(judged.Verdict().cause, "group-order-inversion");
}

TEST(GroupOrderInversion, OfTwoRanksBothAreNamed) {
  JobSketch job = Inverted({2, 0, 12}, {1});
  const Finding finding = JudgedCase(job).Only("group-order-inversion");
  EXPECT_EQ(finding.ranks, Ranks({0, 1}));
  EXPECT_EQ(finding.confidence, Confidence::likely);
}

TEST(GroupOrderInversion, ACircleOfThreeGroupsIsOneToo) {
  // Each rank is first in the group with its right neighbour: 0 in {0,1}, 1 in {1,2}, 2 in {2,0}.
  JobSketch job(3);
  const GroupIndex groups[] = {job.AddGroup("a", {0, 1}), job.AddGroup("b", {1, 2}), job.AddGroup("c", {0, 2})};
  for (int s = 0; s < 10; ++s)
    for (const GroupIndex group : groups) job.IssueAll({.group = group});
  for (int r = 0; r < 3; ++r) job.Issue(r, {.group = groups[r], .state = CallState::started});
  job.Wait(600 * kSecondNs);
  const JudgedCase judged(job);
  ASSERT_EQ(judged.analyses().sources[0].waits.cycles.size(), 1u);
  EXPECT_EQ(judged.Only("group-order-inversion").ranks, Ranks({0, 1, 2}));
}

TEST(GroupOrderInversion, IsToldFromLogsToo) {
  JobSketch job(4, {CallSource::nccl_log});
  const GroupIndex a = job.AddGroup("", {0, 1, 2, 3}), b = job.AddGroup("", {0, 1, 2, 3});
  for (int s = 0; s < 10; ++s) {
    job.IssueAll({.group = a});
    job.IssueAll({.group = b});
  }
  job.IssueOn({0, 1, 2}, {.group = a});
  job.IssueOn({3}, {.group = b});
  EXPECT_EQ(JudgedCase(job).Only("group-order-inversion").ranks, Ranks({3}));
}

TEST(GroupOrderInversion, DifferentOrdersThatEndWellAreFine) {
  // Operations of two groups on two streams do not depend on each other.
  JobSketch job(4);
  const GroupIndex a = job.AddGroup("a", {0, 1, 2, 3}), b = job.AddGroup("b", {0, 1, 2, 3});
  for (int s = 0; s < 12; ++s) {
    for (int r = 0; r < 4; ++r) {
      job.Issue(r, {.group = r == 3 ? b : a});
      job.Issue(r, {.group = r == 3 ? a : b});
    }
  }
  job.FinishAll();
  ExpectNoOrderFault(job);
}

TEST(GroupOrderInversion, IsLeftToTheExtraCallThatCausedIt) {
  Mesh mesh(8);
  for (int s = 0; s < 6; ++s) mesh.Step();
  mesh.Step(4, -1, 2);
  for (int r = 0; r < 8; ++r) mesh.job.LastCall(r).state = CallState::started;
  mesh.job.Wait(600 * kSecondNs);
  EXPECT_FALSE(JudgedCase(mesh.job).Fires("group-order-inversion"));
}

// All ranks validate `batches` times and train on; one of them validates once more.
JobSketch Validating(int32_t world, int32_t odd, int batches, bool sites) {
  JobSketch job(world);
  const SketchedCall validate{.kind = OpKind::all_gather, .elements = 3072, .site = "validate"};
  for (int i = 0; i < 4; ++i) job.IssueAll(kStep[i % 3]);
  for (int i = 0; i < batches; ++i) job.IssueAll(validate);
  job.Issue(odd, validate);
  for (int i = 0; i < 9; ++i) job.IssueAll(kStep[i % 3]);
  for (int32_t r = 0; r < world; ++r) {
    job.LastCall(r).state = CallState::started;
    if (!sites)
      for (Call& call : job.StreamOf(r).calls) call.stack = StackId{};
  }
  job.Wait(600 * kSecondNs);
  return job;
}

TEST(CollectiveExtra, OneIterationMoreOfACallThatAllIssueIsNoCallToRemove) {
  JobSketch job = Validating(4, 1, 6, true);
  const Finding finding = JudgedCase(job).Only("collective-extra");
  EXPECT_NE(finding.headline.find("issued all_gather of 3072 float32 one time more than its peers, at #11"),
            std::string::npos)
      << finding.headline;
  ASSERT_EQ(finding.fix.size(), 2u);
  EXPECT_NE(finding.fix[0].find("All ranks issue this call in validate"), std::string::npos) << finding.fix[0];
  EXPECT_NE(finding.fix[1].find("same number of batches"), std::string::npos) << finding.fix[1];
  JobSketch blind = Validating(4, 1, 6, false);
  const Finding unsure = JudgedCase(blind).Only("collective-extra");
  EXPECT_NE(unsure.headline.find("issued an extra all_gather"), std::string::npos) << unsure.headline;
  EXPECT_NE(unsure.fix[0].find("Its peers issue such calls, too"), std::string::npos) << unsure.fix[0];
}

TEST(CollectiveExtra, ACallThatOnlyOneRankIssuesIsLookedAtWhereItIsMade) {
  JobSketch job(4);
  for (int i = 0; i < 6; ++i) job.IssueAll(kStep[i % 3]);
  job.Issue(2, {.kind = OpKind::all_gather, .elements = 7, .site = "log_metric"});
  for (int i = 0; i < 9; ++i) job.IssueAll(kStep[i % 3]);
  for (int32_t r = 0; r < 4; ++r) job.LastCall(r).state = CallState::started;
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("collective-extra");
  EXPECT_NE(finding.headline.find("and continues one collective behind its peers"), std::string::npos)
      << finding.headline;
  ASSERT_EQ(finding.fix.size(), 2u);
  EXPECT_EQ(finding.fix[0].find("Look at log_metric"), 0u) << finding.fix[0];
  EXPECT_NE(finding.fix[0].find("why is this rank the only one that issues it"), std::string::npos) << finding.fix[0];
}

// Rank 0 evaluates alone: its calls look like those of the training step, and pair up with them for a while.
TEST(CollectiveExtra, CallsThatPairUpByTheirLooksAreFoundByTheirSites) {
  JobSketch job(4);
  const SketchedCall forward{.kind = OpKind::all_gather, .elements = 513, .site = "train"};
  for (int i = 0; i < 5; ++i) {
    job.IssueAll(forward);
    job.IssueAll();
  }
  job.IssueOn(job.AllBut({0}), forward);
  SketchedCall alone = forward;
  alone.site = "evaluate";
  job.Issue(0, alone);
  SketchedCall stuck = forward;
  stuck.state = CallState::enqueued;
  job.IssueOn(job.AllBut({0}), kEnqueued);
  job.Issue(0, stuck);
  job.Wait(600 * kSecondNs);
  const Finding finding = JudgedCase(job).Only("collective-extra");
  EXPECT_NE(finding.headline.find("issued an extra all_gather of 513 float32 in evaluate ("), std::string::npos)
      << finding.headline;
  EXPECT_NE(finding.headline.find("as #11 on "), std::string::npos) << finding.headline;
  EXPECT_NE(finding.headline.find("it waits in all_gather of 513 float32 at #12"), std::string::npos)
      << finding.headline;
  EXPECT_EQ(finding.fix.at(0).find("Look at evaluate ("), 0u) << finding.fix.at(0);
}

}  // namespace
}  // namespace tacet
