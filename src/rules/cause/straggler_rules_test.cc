// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "analysis/timing/timeline_fixture.h"
#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

constexpr int64_t kMs = kMillisecondNs;

// What a rank does in a step before it comes to the all-reduce.
struct Before {
  int64_t host = 0, loader = 0, compute = 20 * kMs;
};

// Steps of 60 ms or more that end with an all-reduce of 30 ms, drawn as profiler traces.
void Trace(JobSketch& job, int steps, const std::function<Before(int32_t rank, int step)>& plan, Incident& incident) {
  std::mt19937 random(7);
  std::vector<Timeline> lines;
  for (int32_t r = 0; r < job.world(); ++r) lines.push_back(MakeTimeline(r));
  int64_t t = 0;
  for (int s = 0; s < steps; ++s) {
    std::vector<Before> plans;
    int64_t last = 0;
    for (int32_t r = 0; r < job.world(); ++r) {
      Before before = plan(r, s);
      before.host += static_cast<int64_t>(random() % kMs);
      last = std::max(last, t + kMs + before.host + before.loader + before.compute);
      plans.push_back(before);
    }
    const int64_t end = last + 30 * kMs;
    for (int32_t r = 0; r < job.world(); ++r) {
      Timeline& line = lines[static_cast<size_t>(r)];
      const Before& before = plans[static_cast<size_t>(r)];
      const int64_t issue = t + before.host + before.loader;
      if (before.loader > 0) line.ranges.push_back({t, t + before.loader, {}, 0, HostWork::data_loading});
      AddGpu(line, GpuWork::compute, issue + kMs, issue + kMs + before.compute, issue);
      AddCollective(line, OpKind::all_reduce, issue + 1000, issue + kMs + before.compute, end);
      line.steps.push_back({s, t, end + 5 * kMs});
    }
    t = end + 5 * kMs;
  }
  incident.timelines = std::move(lines);
}

JudgedCase Traced(int32_t world, int steps, const std::function<Before(int32_t, int)>& plan) {
  JobSketch job(world, {});
  job.GiveOutputs();
  Incident incident = job.Finish();
  Trace(job, steps, plan, incident);
  return JudgedCase(std::move(incident));
}

constexpr std::string_view kCauses[] = {"straggler-compute", "straggler-host", "straggler-intermittent",
                                        "straggler-stage", "straggler-data"};

void ExpectOnly(const JudgedCase& judged, std::string_view cause, const std::vector<Rank>& ranks) {
  for (const std::string_view other : kCauses) EXPECT_EQ(judged.Fires(other), other == cause) << other;
  if (cause.empty()) return;
  const Finding finding = judged.Only(cause);
  EXPECT_EQ(finding.ranks, ranks);
  EXPECT_EQ(finding.status, Status::slow);
  EXPECT_EQ(finding.severity, Severity::warning);
  EXPECT_EQ(judged.Verdict().cause, cause);
  EXPECT_EQ(judged.Verdict().status, Status::slow);
}

struct LateRank {
  int32_t world, rank;
};
class Late : public testing::TestWithParam<LateRank> {};
INSTANTIATE_TEST_SUITE_P(Places, Late,
                         testing::Values(LateRank{4, 0}, LateRank{4, 3}, LateRank{8, 5}, LateRank{64, 33}),
                         [](const auto& info) {
                           return PlaceName({info.param.world, info.param.rank, 0});
                         });

TEST_P(Late, MoreGpuWorkIsAComputeStraggler) {
  const auto [world, rank] = GetParam();
  ExpectOnly(Traced(world, 12, [=](int32_t r, int) { return Before{.compute = (r == rank ? 60 : 20) * kMs}; }),
             "straggler-compute", Ranks({rank}));
}

TEST_P(Late, AnIdleGpuBeforeTheCollectiveIsAHostStraggler) {
  const auto [world, rank] = GetParam();
  ExpectOnly(Traced(world, 12, [=](int32_t r, int) { return Before{.host = (r == rank ? 30 : 0) * kMs}; }),
             "straggler-host", Ranks({rank}));
}

TEST_P(Late, AWaitForTheLoaderIsADataStraggler) {
  const auto [world, rank] = GetParam();
  ExpectOnly(Traced(world, 12, [=](int32_t r, int) { return Before{.loader = (r == rank ? 30 : 0) * kMs}; }),
             "straggler-data", Ranks({rank}));
}

TEST_P(Late, ARankThatIsLateNowAndThenIsIntermittent) {
  const auto [world, rank] = GetParam();
  ExpectOnly(
      Traced(world, 24, [=](int32_t r, int s) { return Before{.host = (r == rank && s % 5 == 2 ? 90 : 0) * kMs}; }),
      "straggler-intermittent", Ranks({rank}));
}

// What it is late by, all others wait for the worst anyway.
TEST(Stragglers, WhoIsMuchLessLateIsNotNamedBesideTheWorst) {
  const auto plan = [](int64_t second) {
    return [=](int32_t r, int) { return Before{.compute = (r == 1 ? 80 : r == 3 ? second : 20) * kMs}; };
  };
  ExpectOnly(Traced(8, 12, plan(32)), "straggler-compute", Ranks({1}));
  ExpectOnly(Traced(8, 12, plan(70)), "straggler-compute", Ranks({1, 3}));
}

TEST(Stragglers, AnEvenJobHasNone) {
  const JudgedCase judged = Traced(8, 12, [](int32_t, int) { return Before{}; });
  ExpectOnly(judged, "", {});
  EXPECT_EQ(judged.Verdict().status, Status::healthy) << judged.Verdict().headline;
}

TEST(Stragglers, AWarmUpStepIsNoStraggler) {
  ExpectOnly(Traced(8, 20, [](int32_t r, int s) { return Before{.host = (r == 2 && s == 0 ? 40 : 0) * kMs}; }), "", {});
}

TEST(Stragglers, AFewPercentAreNothing) {
  ExpectOnly(Traced(8, 12, [](int32_t r, int) { return Before{.compute = (r == 2 ? 21 : 20) * kMs}; }), "", {});
}

TEST(Stragglers, ChangingHeavyRanksAreUnevenInput) {
  const JudgedCase judged =
      Traced(4, 16, [](int32_t r, int s) { return Before{.compute = (r == s % 4 ? 60 : 20) * kMs}; });
  EXPECT_TRUE(judged.Fires("straggler-data"));
  EXPECT_FALSE(judged.Fires("straggler-compute"));
}

TEST(Stragglers, AJobThatFailedHasOtherWorries) {
  JobSketch job(4, {});
  job.Say(1, EventKind::process_exited).Make<ProcessEnd>().code = -11;
  Incident incident = job.Finish();
  Trace(
      job, 12, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; }, incident);
  const JudgedCase judged(std::move(incident));
  EXPECT_FALSE(judged.Fires("straggler-compute"));
  EXPECT_EQ(judged.Verdict().cause, "rank-dead");
}

TEST(Stragglers, AnOverloadedPipelineStageIsNamedAsAWhole) {
  // Two pipelines of three stages; the middle stage computes twice as long, and the others wait in their receives.
  StragglerReport report;
  JobSketch job(6, {});
  Incident incident = job.Finish();
  auto analyses = std::make_unique<Analyses>(Analyse(incident));
  for (const int r : {1, 4})
    analyses->stragglers.stragglers.push_back({.rank = Rank{r},
                                               .origin = StragglerOrigin::stage,
                                               .trust = Trust::certain,
                                               .share = 0.3,
                                               .late_ns = 30 * kMs,
                                               .late_steps = 10,
                                               .steps = 10});
  const StandstillView standstill = FindStandstills(incident, *analyses);
  const Case facts{incident, *analyses, standstill};
  const RuleAnswer answer = FindRule("straggler-stage")->judge(facts);
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].ranks, Ranks({1, 4}));
  EXPECT_TRUE(FindRule("straggler-compute")->judge(facts).findings.empty());
}

// Timed flight records tell who is late, not why.
JobSketch TimedRecords(int32_t world, int32_t late, int steps) {
  JobSketch job(world);
  for (int s = 0; s < steps; ++s) {
    for (int32_t r = 0; r < world; ++r)
      if (r != late) job.Issue(r, {.duration_ms = 50});
    if (late >= 0) {
      job.Wait(40 * kMs);
      job.Issue(late, {.duration_ms = 10});
    }
    job.Wait(60 * kMs);
  }
  job.GiveOutputs();
  job.FinishAll();
  return job;
}

TEST(Stragglers, TimedRecordsNameTheRankWithTheShortestCollectives) {
  JobSketch job = TimedRecords(8, 3, 40);
  const JudgedCase judged(job);
  std::vector<Rank> named;
  for (const std::string_view cause : kCauses)
    for (const Finding& finding : judged.Ask(cause).findings)
      named.insert(named.end(), finding.ranks.begin(), finding.ranks.end());
  EXPECT_EQ(named, Ranks({3}));
}

TEST(Stragglers, TimedRecordsOfAnEvenJobNameNobody) {
  JobSketch job = TimedRecords(8, -1, 40);
  ExpectOnly(JudgedCase(job), "", {});
}

TEST(Stragglers, RecordsWithoutTimesTellNothing) {
  JobSketch job(8);
  job.timed = false;
  job.Rounds(60);
  const JudgedCase judged(job);
  ExpectOnly(judged, "", {});
}

}  // namespace
}  // namespace tacet
