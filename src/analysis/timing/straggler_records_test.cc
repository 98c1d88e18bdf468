// SPDX-License-Identifier: Apache-2.0
// Stragglers in recorded jobs, and in records that have no timeline.
#include <gtest/gtest.h>

#include "analysis/timing/recorded_timelines.h"
#include "analysis/timing/straggler.h"

namespace tacet {

extern const Format kFlightRecorderFormat, kInspectorFormat;

namespace {

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
  std::filesystem::path folder() const {
    return std::filesystem::path(TACET_SOURCE_DIR) / "tests" / "corpus" / GetParam().name;
  }
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

// All records of a folder together decide once; none may overrule a better one.
TEST_P(RecordedStragglers, FromEverythingTogether) {
  Incident job = ReadTraces(folder(), "trace_rank");
  if (job.timelines.empty()) GTEST_SKIP() << "no traces here";
  const Incident calls = ReadRecords(folder(), "nccl_trace_rank", kFlightRecorderFormat);
  const StragglerReport report = [&] {
    // The groups of both are numbered in their own way, so each is measured on its own.
    std::vector<CollectiveRound> rounds = MatchCollectives(job.timelines, job.groups);
    std::vector<Pace> paces = {MeasurePaceInTraces(rounds, job.timelines),
                               MeasurePace(MatchTimedCalls(calls), PaceSource::flight_records)};
    return DecideStragglers(paces);
  }();
  if (GetParam().origin == StragglerOrigin::stage || std::string(GetParam().name) == "gpt_pp")
    GTEST_SKIP() << "stages are compared in another way";
  Check(report);
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

StragglerReport Decide(const std::vector<CollectiveRound>& rounds) {
  const Pace pace = MeasurePace(rounds, PaceSource::inspector);
  return DecideStragglers({&pace, 1});
}

TEST(MeasuredStraggler, WhoTakesLongerOnItsOwnIsNamed) {
  const StragglerReport report = Decide(MeasuredRounds(60'000'000));
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank, Rank{3});
  EXPECT_EQ(report.stragglers[0].late_ns, 20'000'000);
}

// A broadcast before it let rank 3 go last: its own work took as long as everybody's.
TEST(MeasuredStraggler, WhoWasReleasedLateIsNot) { EXPECT_TRUE(Decide(MeasuredRounds(40'000'000)).stragglers.empty()); }

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

// Steps of `work_ns` and 15 ms more, of which rank 1 makes the others wait 10 ms; one of them lasts a second longer,
// because the job pauses or because rank 1 does.
struct Stretch {
  int steps = 0;
  int64_t work_ns = 0;
  bool job_pauses = false, rank_stalls = false;  // at its end
};
Incident JobOf(std::initializer_list<Stretch> stretches) {
  constexpr int64_t kMs = 1'000'000, kLate = 10 * kMs, kPause = 1000 * kMs;
  Incident incident;
  int64_t now = 1'700'000'000'000'000'000, seq = 0;
  for (const Stretch& stretch : stretches)
    for (int step = 0; step < stretch.steps; ++step) {
      const bool last = step + 1 == stretch.steps;
      const int64_t late = kLate + (last && stretch.rank_stalls ? kPause : 0);
      now += stretch.work_ns + (last && stretch.job_pauses ? kPause : 0);
      for (const auto& [kind, waits] :
           {std::pair(OpKind::all_gather, true), std::pair(OpKind::reduce_scatter, false)}) {
        const int64_t latest = waits ? late : 0;
        ++seq;
        for (int32_t r = 0; r < 4; ++r) {
          const int64_t own = r == 1 ? latest : 0;
          Measurement m;
          m.rank = Rank{r};
          m.comm = 7;
          m.comm_size = 4;
          m.group_rank = {r};
          m.op = kind;
          m.seq = seq;
          m.bytes = 1 << 20;
          m.enter_wall_ns = m.start_wall_ns = now + own;
          m.duration_ns = latest - own + 2 * kMs;
          m.finish_wall_ns = m.start_wall_ns + m.duration_ns;
          incident.measurements.push_back(m);
        }
        now += latest + 2 * kMs;
      }
      now += kMs;
    }
  return incident;
}

size_t StepsBehindPause(const Incident& job) {
  const std::vector<CollectiveRound> rounds = MatchMeasurements(job.measurements, job.groups);
  return RoundsAfterPause(rounds, MeasurePace(rounds, PaceSource::inspector)).size() / 2;
}

TEST(MeasuredStragglers, CostWhatTheyDoBehindThePauseOfTheJob) {
  const Incident job = JobOf({{30, 75'000'000, true}, {40, 20'000'000}});
  EXPECT_NEAR(static_cast<double>(StepsBehindPause(job)), 37, 1);
  const StragglerReport report = FindStragglersInMeasurements(job);
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank, Rank{1});
  EXPECT_NEAR(report.stragglers[0].cost, 10.0 / 35, 0.03);
  const StragglerReport profiled = FindStragglersInMeasurements(JobOf({{30, 75'000'000, true}, {10, 20'000'000}}));
  ASSERT_EQ(profiled.stragglers.size(), 1u);
  EXPECT_NEAR(profiled.stragglers[0].cost, 10.0 / 90, 0.03) << "too few steps behind it";
}

TEST(MeasuredStragglers, ThatStallMakeNoPauseOfTheJob) {
  EXPECT_EQ(StepsBehindPause(JobOf({{30, 20'000'000, false, true}, {40, 20'000'000}})), 0u);
  EXPECT_EQ(StepsBehindPause(JobOf({{70, 20'000'000}})), 0u);
}

TEST(MeasuredStragglers, OfAJobThatSavesNowAndThenAreJudgedByAllSteps) {
  const Stretch saves{40, 20'000'000, true};
  EXPECT_EQ(StepsBehindPause(JobOf({saves, saves, saves, {30, 20'000'000}})), 0u);
}

}  // namespace
}  // namespace tacet
