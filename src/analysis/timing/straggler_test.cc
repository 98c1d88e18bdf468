// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/timing/recorded_timelines.h"
#include "analysis/timing/timeline_fixture.h"

namespace tacet {

extern const Format kFlightRecorderFormat, kInspectorFormat;

namespace {

constexpr int64_t kMs = 1'000'000;

std::vector<Group> World(int32_t size) {
  Group group;
  group.name = "0";
  for (int32_t r = 0; r < size; ++r) group.members.push_back({r});
  return {group};
}

// What a rank does in a step before it comes to the all-reduce.
struct Before {
  int64_t host = 0, loader = 0, compute = 20 * kMs;
};

// Some host time, some compute, one all-reduce that ends for all `transfer` after the last has come.
std::vector<Timeline> MakeJob(int32_t ranks, int steps, const std::function<Before(int32_t rank, int step)>& plan,
                              int64_t transfer = 30 * kMs) {
  std::vector<Timeline> out;
  for (int32_t r = 0; r < ranks; ++r) out.push_back(MakeTimeline(r));
  std::mt19937 random(1);
  int64_t t = 0;
  for (int s = 0; s < steps; ++s) {
    std::vector<int64_t> start(static_cast<size_t>(ranks));
    std::vector<Before> plans;
    for (int32_t r = 0; r < ranks; ++r) {
      Before before = plan(r, s);
      before.host += static_cast<int64_t>(random() % (2 * kMs));
      plans.push_back(before);
      start[static_cast<size_t>(r)] = t + kMs + before.host + before.loader + before.compute;
    }
    const int64_t end = *std::max_element(start.begin(), start.end()) + transfer;
    for (int32_t r = 0; r < ranks; ++r) {
      Timeline& timeline = out[static_cast<size_t>(r)];
      const Before& before = plans[static_cast<size_t>(r)];
      const int64_t issue = t + before.host + before.loader;
      if (before.loader > 0) timeline.ranges.push_back({t, t + before.loader, {}, 0, HostWork::data_loading});
      AddGpu(timeline, GpuWork::compute, issue + kMs, issue + kMs + before.compute, issue);
      AddCollective(timeline, OpKind::all_reduce, issue + 1000, start[static_cast<size_t>(r)],
                    end + static_cast<int64_t>(random() % 1000));
      timeline.steps.push_back({s, t, end + 10 * kMs});
      timeline.begin_ns = 0;
    }
    t = end + 10 * kMs;
  }
  return out;
}

TEST(Straggler, NamesNobodyInAHealthyJob) {
  const auto job = MakeJob(4, 6, [](int32_t, int) { return Before{}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, NamesNobodyFromASingleStep) {
  const auto job = MakeJob(4, 1, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, NamesTheRankWithMoreGpuWork) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::gpu_work);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::persistent);
  EXPECT_NEAR(report.cost_share, 40.0 / 102, 0.03);
}

TEST(Straggler, NamesTheRankWithASlowHost) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.host = (r == 1 ? 25 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 1);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::host);
}

TEST(Straggler, TellsDataLoadingFromOtherHostTime) {
  const auto job = MakeJob(4, 6, [](int32_t r, int) { return Before{.loader = (r == 1 ? 25 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::data_loading);
}

TEST(Straggler, CallsARankThatIsLateNowAndThenIntermittent) {
  const auto job =
      MakeJob(4, 10, [](int32_t r, int s) { return Before{.host = (r == 3 && s % 4 == 1 ? 80 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 3);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
  EXPECT_EQ(report.stragglers[0].late_steps, 3u);
}

TEST(Straggler, TwoStallsOfAWholeStepAreEnoughInALongTrace) {
  const auto job =
      MakeJob(4, 16, [](int32_t r, int s) { return Before{.host = (r == 2 && s % 7 == 3 && s < 12 ? 400 : 0) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
}

TEST(Straggler, OneStallInALongTraceIsAHiccup) {
  const auto job = MakeJob(4, 16, [](int32_t r, int s) { return Before{.host = (r == 2 && s == 3 ? 400 : 0) * kMs}; });
  EXPECT_TRUE(FindStragglersInTraces(job, World(4)).stragglers.empty());
}

TEST(Straggler, NamesBothOfTwo) {
  const auto job = MakeJob(8, 6, [](int32_t r, int) { return Before{.compute = (r == 2 || r == 5 ? 50 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(8));
  ASSERT_EQ(report.stragglers.size(), 2u);
  EXPECT_EQ(report.stragglers[0].rank.value + report.stragglers[1].rank.value, 7);
}

TEST(Straggler, CallsChangingHeavyRanksUnevenInput) {
  const auto job = MakeJob(4, 8, [](int32_t r, int s) { return Before{.compute = (r == s % 4 ? 50 : 20) * kMs}; });
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_FALSE(report.stragglers.empty());
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.origin, StragglerOrigin::uneven_input);
}

TEST(Straggler, IsNotMisledBySkewedClocks) {
  auto job = MakeJob(4, 12, [](int32_t r, int) { return Before{.host = (r == 1 ? 25 : 0) * kMs}; });
  for (auto& event : job[0].gpu)
    event.start_ns += 500 * kMs, event.end_ns += 500 * kMs;  // rank 0's clock is half a second ahead
  for (auto& launch : job[0].launches) launch.start_ns += 500 * kMs;
  for (auto& step : job[0].steps) step.start_ns += 500 * kMs, step.end_ns += 500 * kMs;
  for (auto& operation : job[0].collectives) operation.enter_ns += 500 * kMs;
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 1);
}

TEST(Straggler, FindsStepsByWhatRepeatsWhereNoneAreMarked) {
  auto job = MakeJob(4, 8, [](int32_t r, int) { return Before{.compute = (r == 2 ? 60 : 20) * kMs}; });
  for (Timeline& timeline : job) timeline.steps.clear();
  const StragglerReport report = FindStragglersInTraces(job, World(4));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, 2);
  EXPECT_EQ(report.stragglers[0].origin, StragglerOrigin::gpu_work);
  auto even = MakeJob(4, 8, [](int32_t, int) { return Before{}; });
  for (Timeline& timeline : even) timeline.steps.clear();
  EXPECT_TRUE(FindStragglersInTraces(even, World(4)).stragglers.empty());
}

// Jobs of many shapes: world size, step count, share of communication, jitter, who is slow and by how much are drawn
// anew for every seed, so that no threshold is right by accident of one recording.
struct DrawnJob {
  explicit DrawnJob(unsigned seed) : random(seed) {
    const int32_t sizes[] = {2, 3, 4, 6, 8, 16, 32};
    ranks = sizes[random() % 7];
    steps = static_cast<int>(Between(3, 12));
    compute = Between(5, 80) * kMs;
    transfer = Between(5, 80) * kMs;
    jitter = (compute + transfer) / 40;
    guilty = static_cast<int32_t>(random() % static_cast<unsigned>(ranks));
    extra = (compute + transfer + 10 * kMs) * Between(20, 120) / 100;
  }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  }
  // `place` adds the extra time where the fault is.
  std::vector<Timeline> Make(const std::function<void(Before&, int step)>& place) {
    return MakeJob(
        ranks, steps,
        [&](int32_t r, int s) {
          Before before{.host = Between(0, jitter), .compute = compute + Between(0, jitter)};
          if (r == guilty) place(before, s);
          return before;
        },
        transfer);
  }
  std::mt19937 random;
  int32_t ranks = 0, guilty = 0;
  int steps = 0;
  int64_t compute = 0, transfer = 0, jitter = 0, extra = 0;
};

class DrawnStragglers : public testing::TestWithParam<unsigned> {
 protected:
  void Expect(DrawnJob& job, const std::vector<Timeline>& timelines, StragglerOrigin origin) {
    const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
    const std::string shape = std::to_string(job.ranks) + " ranks, " + std::to_string(job.steps) + " steps";
    ASSERT_EQ(report.stragglers.size(), 1u) << shape;
    EXPECT_EQ(report.stragglers[0].rank.value, job.guilty) << shape;
    EXPECT_EQ(report.stragglers[0].origin, origin) << shape;
    EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::persistent) << shape;
  }
};

TEST_P(DrawnStragglers, NobodyIsNamedInAnEvenJob) {
  DrawnJob job(GetParam());
  EXPECT_TRUE(FindStragglersInTraces(job.Make([](Before&, int) {}), World(job.ranks)).stragglers.empty());
}

TEST_P(DrawnStragglers, MoreGpuWork) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.compute += job.extra; }), StragglerOrigin::gpu_work);
}

TEST_P(DrawnStragglers, ASlowHost) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.host += job.extra; }), StragglerOrigin::host);
}

TEST_P(DrawnStragglers, ALateLoader) {
  DrawnJob job(GetParam());
  Expect(job, job.Make([&](Before& before, int) { before.loader += job.extra; }), StragglerOrigin::data_loading);
}

TEST_P(DrawnStragglers, AStallNowAndThen) {
  DrawnJob job(GetParam());
  job.steps = std::max(job.steps, 6);
  const auto timelines = job.Make([&](Before& before, int step) {
    if (step % 4 == 1) before.host += 2 * job.extra + 40 * kMs;
  });
  const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank.value, job.guilty);
  EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::intermittent);
}

TEST_P(DrawnStragglers, WithoutTheTraceOfTheGuiltyNobodyIsNamed) {
  DrawnJob job(GetParam());
  auto timelines = job.Make([&](Before& before, int) { before.compute += job.extra; });
  timelines.erase(timelines.begin() + job.guilty);
  EXPECT_TRUE(FindStragglersInTraces(timelines, World(job.ranks)).stragglers.empty());
}

TEST_P(DrawnStragglers, WithoutTheTraceOfAnotherTheGuiltyIsNamedOrNobody) {
  DrawnJob job(GetParam());
  auto timelines = job.Make([&](Before& before, int) { before.compute += job.extra; });
  timelines.erase(timelines.begin() + (job.guilty + 1) % job.ranks);
  const StragglerReport report = FindStragglersInTraces(timelines, World(job.ranks));
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.rank.value, job.guilty);
  if (job.ranks > 2) {
    EXPECT_EQ(report.stragglers.size(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnStragglers, testing::Range(0u, 24u));

// Recorded jobs, from the traces alone, from the flight records alone, from the Inspector alone.

Incident ReadRecords(const std::filesystem::path& folder, const std::string& part, const Format& format) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file() && entry.path().string().find(part) != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Fragment> fragments;
  for (const auto& path : files) {
    auto mapped = MappedFile::Open(path.string());
    if (!mapped) continue;
    Fragment& fragment = fragments.emplace_back();
    fragment.path = std::filesystem::relative(path, folder).string();
    fragment.format = format.name;
    format.read({fragment.path, mapped->bytes(), false}, fragment);
  }
  auto jobs = Assemble(std::move(fragments));
  return jobs.empty() ? Incident() : std::move(jobs.front());
}

struct Recorded {
  const char* name;
  int32_t rank;  // -1: nobody
  StragglerPattern pattern = StragglerPattern::persistent;
  StragglerOrigin origin = StragglerOrigin::unknown;
};

class RecordedStragglers : public testing::TestWithParam<Recorded> {
 protected:
  std::filesystem::path folder() const { return SharedFolder() / "corpus" / GetParam().name; }
  void Check(const StragglerReport& report) const {
    if (GetParam().rank < 0) {
      EXPECT_TRUE(report.stragglers.empty())
          << "rank " << (report.stragglers.empty() ? -1 : report.stragglers[0].rank.value);
      return;
    }
    ASSERT_EQ(report.stragglers.size(), 1u);
    EXPECT_EQ(report.stragglers[0].rank.value, GetParam().rank);
    EXPECT_EQ(report.stragglers[0].pattern, GetParam().pattern);
  }
};

TEST_P(RecordedStragglers, FromTracesAlone) {
  const Incident job = ReadTraces(folder(), "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "no traces here";
  const StragglerReport report = FindStragglersInTraces(job.timelines, job.groups);
  Check(report);
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.origin, GetParam().origin);
}

TEST_P(RecordedStragglers, FromFlightRecordsAlone) {
  if (GetParam().origin == StragglerOrigin::stage) GTEST_SKIP() << "sends alone do not tell";
  const Incident job = ReadRecords(folder(), "nccl_trace_rank", kFlightRecorderFormat);
  if (job.streams.empty()) GTEST_SKIP() << "no flight records here";
  Check(FindStragglersInTimedCalls(job));
}

TEST_P(RecordedStragglers, FromInspectorAlone) {
  const Incident job = ReadRecords(folder(), "inspector", kInspectorFormat);
  if (job.measurements.empty()) GTEST_SKIP() << "no Inspector files here";
  const StragglerReport report = FindStragglersInMeasurements(job);
  Check(report);
  for (const Straggler& one : report.stragglers) EXPECT_EQ(one.origin, GetParam().origin);
}

TEST_P(RecordedStragglers, LongerRecordsAddStallsAndNothingElse) {
  Incident job = ReadRecords(folder(), "nccl_trace_rank", kFlightRecorderFormat);
  if (job.streams.empty()) GTEST_SKIP() << "no flight records here";
  StragglerReport report;
  const bool stalls = GetParam().pattern == StragglerPattern::intermittent;
  EXPECT_EQ(AddStallsOfLongerRecords(job, report), stalls);
  ASSERT_EQ(report.stragglers.size(), stalls ? 1u : 0u);
  if (!stalls) return;
  EXPECT_EQ(report.stragglers[0].rank.value, GetParam().rank);
  EXPECT_GE(report.stragglers[0].late_steps, 3u);
  EXPECT_GT(report.cost_share, 0);
}

TEST_P(RecordedStragglers, FromTracesWithoutStepMarks) {
  Incident job = ReadTraces(folder(), "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "no traces here";
  for (Timeline& timeline : job.timelines) timeline.steps.clear();
  // Few steps, and those guessed: the right one or nobody.
  for (const Straggler& one : FindStragglersInTraces(job.timelines, job.groups).stragglers)
    EXPECT_EQ(one.rank.value, GetParam().rank);
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, RecordedStragglers,
    testing::Values(Recorded{"straggler", 1, StragglerPattern::persistent, StragglerOrigin::gpu_work},
                    Recorded{"straggler_cpu", 3, StragglerPattern::persistent, StragglerOrigin::host},
                    Recorded{"straggler_flaky", 0, StragglerPattern::intermittent, StragglerOrigin::host},
                    Recorded{"gpt_pp_heavy", 2, StragglerPattern::persistent, StragglerOrigin::stage},
                    Recorded{"clean_ddp", -1}, Recorded{"clean_fsdp", -1}, Recorded{"mesh_clean", -1},
                    Recorded{"gpt_ddp_b1", -1}, Recorded{"gpt_ddp_b25", -1}, Recorded{"gpt_ddp_b250", -1},
                    Recorded{"gpt_fsdp", -1}, Recorded{"gpt_pp", -1}, Recorded{"sizes", -1}),
    [](const auto& info) { return std::string(info.param.name); });

// Four ranks, an all-reduce of 60 ms a step of 100 ms; rank 3 begins it 20 ms after the others.
std::vector<CollectiveRound> MeasuredRounds(int64_t own_time_of_the_late_ns) {
  constexpr int64_t kMs = 1'000'000;
  std::vector<CollectiveRound> rounds;
  for (int64_t step = 0; step < 20; ++step) {
    CollectiveRound round;
    round.group = GroupIndex{0};
    round.kind = OpKind::all_reduce;
    round.seq = step;
    round.step = step;
    round.group_size = 4;
    for (int32_t rank = 0; rank < 4; ++rank) {
      const int64_t late = rank == 3 ? 20 * kMs : 0, start = step * 100 * kMs + late;
      RoundMember member{{rank}, start, start, start + 60 * kMs - late, 60 * kMs - late};
      member.idle_ns = rank == 3 ? own_time_of_the_late_ns : 40 * kMs;
      round.members.push_back(member);
    }
    rounds.push_back(round);
  }
  return rounds;
}

TEST(MeasuredStraggler, WhoTakesLongerOnItsOwnIsNamed) {
  const StragglerReport report = FindStragglers(MeasuredRounds(60'000'000));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank, Rank{3});
  EXPECT_EQ(report.stragglers[0].late_ns, 20'000'000);
}

// A broadcast before it let rank 3 go last: its own work took as long as everybody's.
TEST(MeasuredStraggler, WhoWasReleasedLateIsNot) {
  EXPECT_TRUE(FindStragglers(MeasuredRounds(40'000'000)).stragglers.empty());
}

// What black boxes measure of a job whose hosts run ahead of their GPUs: operations follow each other, and where a rank
// comes late its peers wait in the kernel. `late_ns` is what rank 1's host sleeps before each step.
Incident MeasuredJob(int steps, int64_t late_ns, int metric_every, bool rare_world_group = false) {
  constexpr int64_t kMs = 1'000'000;
  Incident incident;
  int64_t now = 1'700'000'000'000'000'000, seq = 0, metrics = 0;
  const auto run = [&](uint64_t comm, int64_t number, OpKind kind, int64_t bytes, int64_t late) {
    for (int32_t r = 0; r < 4; ++r) {
      Measurement m;
      m.rank = m.rank.known() ? m.rank : Rank{r};
      m.comm = comm;
      m.comm_size = comm == 9 ? 5 : 4;
      m.group_rank = {r};
      m.op = kind;
      m.seq = number;
      m.bytes = bytes;
      const int64_t own_late = r == 1 ? late : 0;
      m.enter_wall_ns = now - 20 * kMs + (own_late > 0 ? own_late + 20 * kMs : 0);
      m.start_wall_ns = now + own_late;
      m.duration_ns = 5 * kMs + late - own_late;
      m.finish_wall_ns = m.start_wall_ns + m.duration_ns;
      incident.measurements.push_back(m);
    }
    now += late + 5 * kMs;
  };
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 4; ++i) run(7, ++seq, OpKind::all_gather, 1 << (20 + i), i == 0 ? late_ns : 0);
    for (int i = 0; i < 4; ++i) run(7, ++seq, OpKind::reduce_scatter, 1 << (20 + i), 0);
    if (metric_every > 0 && step % metric_every == 0)
      rare_world_group ? run(9, ++metrics, OpKind::all_reduce, 64, 0) : run(7, ++seq, OpKind::all_reduce, 64, 0);
    now += 5 * kMs;
  }
  return incident;
}

TEST(MeasuredStragglers, AreFoundThoughAMetricComesEveryFewStepsAndHostsRunAhead) {
  for (const bool rare_world_group : {false, true}) {
    const StragglerReport report = FindStragglersInMeasurements(MeasuredJob(40, 30'000'000, 5, rare_world_group));
    ASSERT_EQ(report.stragglers.size(), 1u) << rare_world_group;
    EXPECT_EQ(report.stragglers[0].rank, Rank{1});
    EXPECT_EQ(report.stragglers[0].pattern, StragglerPattern::persistent);
    EXPECT_NEAR(static_cast<double>(report.step_ns), 76e6, 6e6);
  }
}

TEST(MeasuredStragglers, AreNoneInTheSameJobWithoutDelay) {
  for (const bool rare_world_group : {false, true})
    EXPECT_TRUE(FindStragglersInMeasurements(MeasuredJob(40, 0, 5, rare_world_group)).stragglers.empty());
}

}  // namespace
}  // namespace tacet
