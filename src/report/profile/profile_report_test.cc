// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/assembly/assembly.h"
#include "report/profile/profile_comparison.h"
#include "report/profile/profile_series.h"
#include "report/profile/profile_verdict.h"
#include "report/profile/recorded_profile.h"

namespace tacet {
namespace {

TEST(ProfileReport, TellsAPipelineWithItsBubble) {
  const ProfileReport profile = ProfileCase("gpt_pp");
  EXPECT_EQ(profile.source, "profiler traces");
  EXPECT_EQ(profile.world_size, 4);
  EXPECT_EQ(profile.steps, 2u);
  ASSERT_TRUE(profile.pipeline.found);
  EXPECT_EQ(profile.pipeline.stages, 4);
  EXPECT_EQ(profile.pipeline.microbatches, 8);
  EXPECT_NEAR(profile.pipeline.ideal_bubble, 3.0 / 11, 1e-9);
  EXPECT_GT(profile.pipeline.bubble, profile.pipeline.ideal_bubble);
  EXPECT_EQ(profile.verdict, ProfileVerdict::pipeline_bubble);
  EXPECT_TRUE(profile.stragglers.stragglers.empty());
  EXPECT_FALSE(profile.ddp.found);
  EXPECT_FALSE(profile.fsdp.found);
}

TEST(ProfileReport, AdvisesFirstToRelieveTheHeavyStage) {
  const ProfileReport profile = ProfileCase("gpt_pp_heavy");
  EXPECT_EQ(profile.pipeline.heaviest, 2);
  ASSERT_FALSE(profile.stragglers.stragglers.empty());
  EXPECT_EQ(profile.stragglers.stragglers[0].rank, Rank{2});
  ASSERT_FALSE(profile.advice.empty());
  EXPECT_NE(profile.advice[0].what.find("stage 2"), std::string::npos) << profile.advice[0].what;
  EXPECT_NEAR(profile.advice[0].gain, profile.pipeline.balance_gain, 1e-12);
}

TEST(ProfileReport, BudgetsSumToTheStepExactly) {
  for (const char* name : {"gpt_pp", "gpt_ddp_b25", "gpt_fsdp", "straggler"}) {
    const std::vector<Incident> jobs = LoadCase(name);
    ASSERT_EQ(jobs.size(), 1u);
    const ProfileReport profile = BuildProfile(jobs[0], {});
    ASSERT_EQ(profile.budgets.size(), 4u) << name;
    for (size_t i = 0; i < 4; ++i) {
      const ProfileRank& rank = profile.budgets[i];
      const Timeline& timeline = jobs[0].timelines[i];
      int64_t total = 0;
      for (const TrainingStep& step : timeline.steps) total += step.end_ns - step.start_ns;
      const TimeBudget& mean = rank.mean;
      const int64_t sum = mean.compute_only_ns + mean.hidden_ns + mean.exposed_ns + mean.copies_ns + mean.host_wait_ns +
                          mean.launch_ns + mean.data_wait_ns;
      EXPECT_EQ(sum, total / static_cast<int64_t>(timeline.steps.size())) << name;
      EXPECT_EQ(sum, rank.step_ns);
      EXPECT_GE(mean.copies_ns, 0);
    }
  }
}

TEST(ProfileReport, RecoversBucketsAndRanksTheirSizes) {
  struct Run {
    const char* name;
    size_t buckets;
    double advised;  // 0: none
  };
  for (const Run& run : {Run{"gpt_ddp_b1", 18, 25}, Run{"gpt_ddp_b25", 4, 0}, Run{"gpt_ddp_b250", 1, 25}}) {
    const ProfileReport profile = ProfileCase(run.name);
    ASSERT_TRUE(profile.ddp.found) << run.name;
    EXPECT_EQ(profile.ddp.buckets.size(), run.buckets);
    const int64_t sum = std::accumulate(profile.ddp.buckets.begin(), profile.ddp.buckets.end(), int64_t{0},
                                        [](int64_t total, const DdpBucket& bucket) { return total + bucket.bytes; });
    EXPECT_EQ(sum, profile.ddp.gradient_bytes);
    bool advised = false;
    for (const Advice& advice : profile.advice)
      advised |= advice.what.find("bucket_cap_mb=25") != std::string::npos && advice.gain == profile.ddp.gain;
    EXPECT_EQ(advised, run.advised > 0) << run.name;
    EXPECT_EQ(profile.verdict, ProfileVerdict::communication_bound);
    EXPECT_TRUE(profile.stragglers.stragglers.empty());
  }
}

TEST(ProfileReport, ComparesShardedVolumesWithTheory) {
  const ProfileReport profile = ProfileCase("gpt_fsdp");
  ASSERT_TRUE(profile.fsdp.found);
  EXPECT_NEAR(profile.fsdp.gather_ratio, 1, 0.02);
  EXPECT_NEAR(profile.fsdp.scatter_ratio, 1, 0.02);
  EXPECT_EQ(profile.fsdp_group, "default_pg");
}

TEST(ProfileReport, NamesTheStragglerAndItsCost) {
  const ProfileReport profile = ProfileCase("straggler");
  ASSERT_EQ(profile.stragglers.stragglers.size(), 1u);
  EXPECT_NE(profile.headline.find("rank 1 makes the others wait"), std::string::npos) << profile.headline;
  bool advised = false;
  for (const Advice& advice : profile.advice) advised |= advice.what.find("Bring rank 1") != std::string::npos;
  EXPECT_TRUE(advised);
}

TEST(ProfileReport, BusBandwidthFollowsFromBytesTransferAndFactor) {
  const ProfileReport profile = ProfileCase("gpt_fsdp");
  ASSERT_FALSE(profile.table.empty());
  for (const ProfileTableRow& line : profile.table) {
    const double expected =
        static_cast<double>(line.row.bytes) / static_cast<double>(line.row.transfer_ns) * 3 / 4;  // four ranks
    EXPECT_NEAR(line.row.bus_gbs, expected, expected * 1e-9);
  }
  ProfileOptions options;
  options.peak_gbs = 25;
  for (const ProfileTableRow& line : ProfileCase("gpt_fsdp", options).table)
    EXPECT_NEAR(line.share_of_peak, line.row.bus_gbs / 25, 1e-12);
}

TEST(ProfileReport, TransfersOverTcpAreNotComparedWithNvlink) {
  const ProfileReport profile = ProfileCase("gpt_fsdp");
  ASSERT_FALSE(profile.table.empty());
  for (const ProfileTableRow& line : profile.table) {
    EXPECT_TRUE(line.over_sockets);
    EXPECT_EQ(line.peak_gbs, 0);
    EXPECT_EQ(line.share_of_peak, 0);
  }
  EXPECT_EQ(profile.communication_efficiency, 0);
  ASSERT_FALSE(profile.advice.empty());
  // All ranks share a GPU of one host: NVLink or InfiniBand cannot help as it stands.
  EXPECT_EQ(profile.advice[0].what, "Give each rank its own GPU and unset NCCL_HOSTID");
  EXPECT_EQ(profile.advice[0].why.find("NCCL uses TCP sockets; large operations reach"), 0u) << profile.advice[0].why;
}

TEST(ProfileReport, SaysThatAllRanksShareOneGpu) {
  const ProfileReport profile = ProfileCase("gpt_ddp_b25");
  EXPECT_EQ(profile.shared_gpus, (std::vector<std::vector<Rank>>{{{0}, {1}, {2}, {3}}}));
  EXPECT_EQ(profile.setup,
            "All 4 ranks share one GPU and take turns on it: their times are not those of ranks with a GPU each. "
            "NCCL_HOSTID makes NCCL treat host vm as 4 hosts and use the network between them");
  for (const Advice& advice : profile.advice) {
    EXPECT_EQ(advice.what.find("NVLink"), std::string::npos) << advice.what;
    EXPECT_EQ(advice.what.find("no other process on the GPU"), std::string::npos) << advice.what;
  }
}

TEST(ProfileReport, BlackBoxesTellASharedGpuByItsUuid) {
  Incident incident;
  for (int rank = 0; rank < 4; ++rank) {
    Process& process = incident.processes.emplace_back();
    process.rank = Rank{rank};
    process.gpu_uuid = rank < 2 ? "GPU-a" : rank == 2 ? "GPU-b" : "";
    incident.process_of[Rank{rank}] = static_cast<uint32_t>(rank);
  }
  incident.world_size = 4;
  const ProfileReport profile = BuildProfile(incident, {});
  EXPECT_EQ(profile.shared_gpus, (std::vector<std::vector<Rank>>{{{0}, {1}}}));
  EXPECT_TRUE(profile.setup.starts_with("2 of 4 ranks share one GPU and take turns on it")) << profile.setup;
}

TEST(ProfileReport, EqualBusIdsOfHostsWithOneNameAreNoSharedGpu) {
  std::vector<Incident> jobs = LoadCase("gpt_ddp_b25");
  ASSERT_EQ(jobs.size(), 1u);
  // Without NCCL_HOSTID NCCL would not have started: these would be four machines that call themselves alike.
  std::erase_if(jobs[0].events, [](const Event& event) { return event.kind == EventKind::environment; });
  const ProfileReport profile = BuildProfile(jobs[0], {});
  EXPECT_TRUE(profile.shared_gpus.empty());
  EXPECT_EQ(profile.setup, "");
  ASSERT_FALSE(profile.advice.empty());
  EXPECT_EQ(profile.advice[0].what.find("Use a faster transport than TCP"), 0u) << profile.advice[0].what;
  // A GPU of its own for each rank: a quarter of what one GPU did for four.
  const ProfileReport shared = ProfileCase("gpt_ddp_b25");
  ASSERT_TRUE(profile.utilisation && shared.utilisation);
  EXPECT_NEAR(shared.utilisation->hfu / profile.utilisation->hfu, 4, 1e-9);
}

TEST(ProfileReport, OnlyTheIdleTimeOfAnOverloadedStageCanBeSaved) {
  const ProfileReport profile = ProfileCase("gpt_pp_heavy");
  const auto launches = std::find_if(profile.advice.begin(), profile.advice.end(), [](const Advice& advice) {
    return advice.what.starts_with("Give each rank its own GPU");
  });
  ASSERT_NE(launches, profile.advice.end());
  const TimeBudget& slow = profile.budgets[2].mean;
  EXPECT_NEAR(launches->gain, static_cast<double>(slow.launch_ns) / static_cast<double>(profile.mean.total_ns()), 1e-9);
  EXPECT_NE(launches->why.find("(on rank 2, for which the others wait)"), std::string::npos) << launches->why;
}

TEST(ProfileReport, WhatAStragglerLosesIsCountedOnce) {
  const ProfileReport profile = ProfileCase("lab_slowhost_experts_r1_w5");
  ASSERT_EQ(profile.stragglers.stragglers.size(), 1u);
  EXPECT_EQ(profile.stragglers.stragglers[0].rank, Rank{1});
  // Rank 1's GPU idles for 45 % of the step, that of the others for less than 1 %.
  for (const Advice& advice : profile.advice)
    EXPECT_FALSE(advice.what.starts_with("Launch work earlier")) << advice.gain;
}

TEST(ProfileReport, MeasuresUtilisationFromGivenModelSize) {
  ProfileOptions options;
  options.model.parameters = 1e9;
  options.tokens_per_step = 8192;
  options.peak_tflops = 500;
  options.full_recompute = true;
  const ProfileReport profile = ProfileCase("gpt_ddp_b25", options);
  ASSERT_TRUE(profile.utilisation);
  const double seconds = static_cast<double>(profile.step_ns) / 1e9;
  EXPECT_NEAR(profile.utilisation->mfu, 6e9 * 8192 / seconds / 500e12, 1e-9);  // one GPU does the work of 4 ranks
  EXPECT_NEAR(profile.utilisation->hfu / profile.utilisation->mfu, 8.0 / 6, 1e-9);
}

TEST(ProfileReport, MeasuresUtilisationFromATransformersShape) {
  ProfileOptions options;
  options.model = {.layers = 4, .heads = 16, .head_dim = 64, .hidden = 1024, .vocabulary = 8192, .sequence = 512};
  options.tokens_per_step = 4 * 4 * 512;
  const ProfileReport profile = ProfileCase("gpt_ddp_b25", options);
  ASSERT_TRUE(profile.utilisation);
  EXPECT_EQ(profile.utilisation->source, "transformer shape");
  const double parameters = 12.0 * 4 * 1024 * 1024 + 8192.0 * 1024;
  const double flops =
      (6 * parameters + 12.0 * 4 * 16 * 64 * 512) * 4 * 4 * 512;  // of one device, on which are 4 ranks
  EXPECT_NEAR(profile.utilisation->flops, flops, flops * 1e-9);
  // The same job's matrix shapes tell the same within what the shape leaves out.
  const ProfileReport measured = ProfileCase("gpt_ddp_b25");
  ASSERT_TRUE(measured.utilisation);
  EXPECT_NEAR(measured.utilisation->flops / flops, 1, 0.15);
}

TEST(ProfileReport, TellsHowOftenAStallComesByTheLongerRecords) {
  const ProfileReport profile = ProfileCase("straggler_flaky");
  ASSERT_EQ(profile.stragglers.stragglers.size(), 1u);
  const Straggler& one = profile.stragglers.stragglers[0];
  EXPECT_EQ(one.rank, Rank{0});
  EXPECT_EQ(one.pattern, StragglerPattern::intermittent);
  EXPECT_EQ(one.trust, Trust::certain);
  EXPECT_EQ(one.origin, StragglerOrigin::host);  // which only the traces tell
  EXPECT_GT(one.steps, 30u);
}

TEST(ProfileReport, SaysWhyFlightRecordsTellNoTimes) {
  std::vector<Incident> jobs = LoadCase("gpt_pp");
  ASSERT_EQ(jobs.size(), 1u);
  jobs[0].timelines.clear();
  std::erase_if(jobs[0].streams, [](const CallStream& stream) { return stream.rank != Rank{1}; });
  const ProfileReport batches = BuildProfile(jobs[0], {});
  ASSERT_FALSE(batches.remarks.empty());
  EXPECT_NE(batches.remarks[0].find("no partner"), std::string::npos) << batches.remarks[0];
  for (CallStream& stream : jobs[0].streams)
    for (Call& call : stream.calls) call.duration_ms = -1;
  const ProfileReport untimed = BuildProfile(jobs[0], {});
  EXPECT_NE(untimed.remarks.at(0).find("TORCH_NCCL_ENABLE_TIMING"), std::string::npos);
}

TEST(ProfileReport, ReadsTimedFlightRecordsWithoutTraces) {
  std::vector<Incident> jobs = LoadCase("gpt_ddp_b25");
  ASSERT_EQ(jobs.size(), 1u);
  jobs[0].timelines.clear();
  const ProfileReport profile = BuildProfile(jobs[0], {});
  EXPECT_EQ(profile.source, "timed flight records");
  EXPECT_FALSE(profile.table.empty());
  EXPECT_TRUE(profile.budgets.empty());
  EXPECT_TRUE(profile.stragglers.stragglers.empty());
}

TEST(ProfileReport, InventsNoStepsWhereTheHostRanAhead) {
  const ProfileReport profile = ProfileCase("fallback_env");
  EXPECT_EQ(profile.source, "timed flight records");
  EXPECT_FALSE(profile.table.empty());
  EXPECT_EQ(profile.step_ns, 0);
  EXPECT_EQ(profile.steps, 0u);
  EXPECT_FALSE(profile.remarks.empty());
}

TEST(ProfileReport, TellsHowMuchOfTheStepCommunicationRunsWithoutTraces) {
  std::vector<Incident> jobs = LoadCase("straggler");
  ASSERT_EQ(jobs.size(), 1u);
  jobs[0].timelines.clear();
  const ProfileReport profile = BuildProfile(jobs[0], {});
  EXPECT_EQ(profile.source, "NCCL Inspector");
  EXPECT_GT(profile.communication_share, 0.5);
  EXPECT_LE(profile.communication_share, 1);
  EXPECT_NEAR(static_cast<double>(profile.step_ns), 195e6, 20e6);
  EXPECT_EQ(profile.verdict, ProfileVerdict::undetermined);
  ASSERT_EQ(profile.stragglers.stragglers.size(), 1u);
  EXPECT_EQ(profile.stragglers.stragglers[0].rank, Rank{1});
  EXPECT_EQ(profile.table[0].members, "ranks 0-3");
}

TEST(ProfileReport, ReadsASingleTrace) {
  std::vector<Incident> jobs = LoadCase("gpt_ddp_b25");
  ASSERT_EQ(jobs.size(), 1u);
  jobs[0].timelines.resize(1);
  const ProfileReport profile = BuildProfile(jobs[0], {});
  ASSERT_FALSE(profile.table.empty());
  EXPECT_DOUBLE_EQ(profile.wait_share, 0);
  EXPECT_EQ(profile.ddp.buckets.size(), 4u);
  EXPECT_TRUE(profile.stragglers.stragglers.empty());
  ASSERT_FALSE(profile.remarks.empty());
  EXPECT_NE(profile.remarks.back().find("counts as transfer"), std::string::npos);
}

TEST(ProfileReport, TheShareOfWaitingIsThatOfTheRanksThatAreRecorded) {
  std::vector<Incident> jobs = LoadCase("straggler");
  ASSERT_EQ(jobs.size(), 1u);
  ASSERT_GT(jobs[0].timelines.size(), 2u);
  jobs[0].timelines.pop_back();
  jobs[0].measurements.clear();
  const ProfileReport profile = BuildProfile(jobs[0], {});
  const auto recorded = static_cast<double>(jobs[0].timelines.size());
  double wait = 0, transfer = 0;
  for (const ProfileTableRow& line : profile.table) {
    if (line.row.compared == 0) continue;
    wait += static_cast<double>(line.row.wait_ns);
    transfer += recorded * static_cast<double>(line.row.transfer_ns);
  }
  ASSERT_GT(transfer, 0);
  EXPECT_NEAR(profile.wait_share, wait / (wait + transfer), 0.01);
}

// Two traces of groups that have no trace in common.
Incident TracesOfTwoGroups(int32_t size_of_second) {
  Incident job = std::move(LoadCase("gpt_fsdp").at(0));
  job.timelines.resize(2);
  for (TraceCollective& one : job.timelines[1].collectives) {
    const auto index = static_cast<size_t>(one.group);
    if (index >= job.groups.size()) continue;
    Group other = job.groups[index];
    other.members.clear();
    other.size = size_of_second;
    other.name += "-other";
    const auto same = std::find_if(job.groups.begin(), job.groups.end(),
                                   [&](const Group& group) { return group.name == other.name; });
    one.group = static_cast<GroupIndex>(same - job.groups.begin());
    one.group_size = size_of_second;
    if (same == job.groups.end()) job.groups.push_back(other);
  }
  return job;
}

TEST(ProfileReport, WaitingThatNobodyMeasuredIsUnknownAndNotZero) {
  const ProfileReport profile = BuildProfile(TracesOfTwoGroups(4), {});
  ASSERT_FALSE(profile.table.empty());
  EXPECT_FALSE(profile.wait_known);
  EXPECT_DOUBLE_EQ(profile.communication_efficiency, 0);
  EXPECT_TRUE(profile.mixed.empty()) << profile.mixed;
  for (const Advice& advice : profile.advice) {
    EXPECT_EQ(advice.what.find("transfers are slow"), std::string::npos) << advice.what;
    EXPECT_EQ(advice.why.find("% of communication is waiting"), std::string::npos) << advice.why;
  }
  for (const ProfileTableRow& line : profile.table) EXPECT_EQ(line.row.compared, 0u);
  ProfileOptions options;
  options.peak_gbs = 25;
  const ProfileReport whole = ProfileCase("gpt_fsdp", options);
  EXPECT_TRUE(whole.wait_known);
  EXPECT_GT(whole.communication_efficiency, 0);
}

TEST(ProfileReport, TracesOfDifferentJobsAreNotMixed) {
  const ProfileReport profile = BuildProfile(TracesOfTwoGroups(8), {});
  EXPECT_EQ(profile.verdict, ProfileVerdict::undetermined);
  EXPECT_TRUE(profile.headline.starts_with("These traces are not of one job: the default group has 8 ranks in "))
      << profile.headline;
  EXPECT_TRUE(profile.advice.empty());
  EXPECT_TRUE(ProfileCase("gpt_fsdp").mixed.empty());
  EXPECT_TRUE(ProfileCase("lab_traced_mesh_slow_r1_w4").mixed.empty());
}

TEST(ProfileReport, WaitAndTransferHaveTheSameBase) {
  const ProfileReport profile = ProfileCase("gpt_ddp_b25");
  for (const ProfileTableRow& line : profile.table) {
    const auto members = static_cast<double>(line.row.group_size);
    EXPECT_NEAR(static_cast<double>(line.row.mean_wait_ns), static_cast<double>(line.row.wait_ns) / members,
                static_cast<double>(line.row.calls));
    EXPECT_EQ(line.row.whole, line.row.calls);
  }
}

TEST(ProfileReport, TheStepIsTheOneThatIsCompared) {
  for (const char* name : {"stuck_data", "gpt_ddp_b25", "straggler"}) {
    const ProfileReport profile = ProfileCase(name);
    ASSERT_FALSE(profile.series.empty()) << name;
    ASSERT_EQ(profile.series[0].name, "step time") << name;
    const std::vector<double>& values = profile.series[0].values;
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    EXPECT_NEAR(static_cast<double>(profile.step_ns), mean, 1e-3 * mean) << name;
    EXPECT_EQ(profile.steps, values.size()) << name;
  }
}

TEST(ProfileReport, CommunicationEfficiencyIsTheShareOfPeakWeightedByTime) {
  ProfileOptions options;
  options.peak_gbs = 25;
  const ProfileReport profile = ProfileCase("gpt_fsdp", options);
  double needed = 0, taken = 0;
  for (const ProfileTableRow& line : profile.table) {
    const double ideal_ns = static_cast<double>(line.row.bytes) * 3 / 4 / line.peak_gbs;  // four ranks
    needed += ideal_ns;
    taken += static_cast<double>(line.row.transfer_ns);
  }
  EXPECT_NEAR(profile.communication_efficiency, needed / taken, 1e-9);
}

TEST(ProfileReport, SplitsThePeakOfMemory) {
  for (const auto& [name, parameters] : {std::pair{"gpt_ddp_b25", 134e6}, std::pair{"gpt_fsdp", 185e6 / 4}}) {
    const ProfileReport profile = ProfileCase(name);
    for (const ProfileRank& rank : profile.budgets) {
      ASSERT_TRUE(rank.memory && rank.memory->split) << name;
      const MemorySplit& split = *rank.memory->split;
      EXPECT_NEAR(static_cast<double>(split.parameter_bytes), parameters, 1e6) << name;
      EXPECT_EQ(split.parameter_bytes + split.staying_bytes + split.passing_bytes, rank.memory->peak_allocated_bytes);
    }
  }
}

TEST(ProfileReport, SaysSoWhenNothingHasTimes) {
  const ProfileReport profile = BuildProfile(Incident(), {});
  EXPECT_EQ(profile.verdict, ProfileVerdict::undetermined);
  EXPECT_FALSE(profile.remarks.empty());
  EXPECT_TRUE(profile.advice.empty());
}

TEST(ProfileVerdicts, FollowTheBudget) {
  const auto judge = [](int64_t compute, int64_t exposed, int64_t host, bool pipeline) {
    ProfileReport profile;
    profile.mean.compute_only_ns = compute;
    profile.mean.exposed_ns = exposed;
    profile.mean.host_wait_ns = host;
    profile.pipeline.found = pipeline;
    JudgeProfile(profile);
    return profile.verdict;
  };
  EXPECT_EQ(judge(80, 15, 5, false), ProfileVerdict::compute_bound);
  EXPECT_EQ(judge(50, 40, 10, false), ProfileVerdict::communication_bound);
  EXPECT_EQ(judge(50, 40, 10, true), ProfileVerdict::pipeline_bubble);
  EXPECT_EQ(judge(50, 10, 40, true), ProfileVerdict::host_bound);
  EXPECT_EQ(judge(60, 20, 20, false), ProfileVerdict::balanced);
  EXPECT_EQ(judge(74, 14, 12, false), ProfileVerdict::balanced);
}

TEST(ProfileVerdicts, CopiesAreNotTheHostsTime) {
  ProfileReport profile;
  profile.mean.compute_only_ns = 735;
  profile.mean.exposed_ns = 98;
  profile.mean.copies_ns = 130;
  profile.mean.host_wait_ns = 1;
  profile.mean.launch_ns = 36;
  JudgeProfile(profile);
  EXPECT_EQ(profile.verdict, ProfileVerdict::balanced);
  EXPECT_TRUE(profile.headline.ends_with("no kernel runs for 16.7 % (only copies for 13.0 %)")) << profile.headline;
  profile.mean.compute_only_ns = 500;
  profile.mean.copies_ns = 365;
  JudgeProfile(profile);
  EXPECT_EQ(profile.verdict, ProfileVerdict::copy_bound);
  std::swap(profile.mean.copies_ns, profile.mean.launch_ns);
  JudgeProfile(profile);
  EXPECT_EQ(profile.verdict, ProfileVerdict::host_bound);
}

TEST(ProfileVerdicts, NobodyIsBoundByADeviceThatIsNotThere) {
  ProfileReport profile;
  profile.source = "profiler traces";
  profile.mean.host_wait_ns = 1'000'000;
  JudgeProfile(profile);
  EXPECT_EQ(profile.verdict, ProfileVerdict::undetermined);
  EXPECT_NE(profile.headline.find("No GPU work"), std::string::npos);
  EXPECT_TRUE(profile.advice.empty());
}

TEST(ProfileReport, NamesTheTraceThatWasLeftOut) {
  std::vector<Fragment> fragments;
  for (const char* path : {"a.json", "b.json"}) {
    Fragment& fragment = fragments.emplace_back();
    fragment.path = path;
    fragment.speakers = {{{3}, Certainty::stated}};
    Timeline& timeline = fragment.timelines.emplace_back();
    timeline.streams = {{0, 7}};
    timeline.gpu.push_back({1000, 2000});
    timeline.begin_ns = 1000;
    timeline.end_ns = 2000;
  }
  fragments[1].timelines[0].gpu.push_back({3000, 4000});
  const std::vector<Incident> jobs = Assemble(std::move(fragments));
  ASSERT_EQ(jobs.size(), 1u);
  ASSERT_EQ(jobs[0].timelines.size(), 1u);
  bool named = false;
  for (const std::string& remark : BuildProfile(jobs[0], {}).remarks)
    named |= remark.starts_with("a.json: another trace of rank 3");
  EXPECT_TRUE(named);
}

TEST(ProfileDefinitions, HaveUniqueNamesAndSentences) {
  std::set<std::string_view> names;
  for (const Definition& one : ProfileDefinitions()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.definition.ends_with('.')) << one.name;
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(ProfileSeries, NamesSizeClasses) {
  EXPECT_EQ(DescribeSizeClass(512), "512 B");
  EXPECT_EQ(DescribeSizeClass(int64_t{1} << 25), "32 MiB");
  EXPECT_EQ(DescribeTableLine(OpKind::all_reduce, "dp", 1 << 20), "all_reduce on dp, up to 1 MiB");
}

ProfileReport WithSteps(std::vector<double> values) {
  ProfileReport profile;
  profile.series.push_back({"step time", std::move(values)});
  return profile;
}

bool HasRemark(const ProfileReport& profile, std::string_view words) {
  return std::any_of(profile.remarks.begin(), profile.remarks.end(),
                     [&](const std::string& remark) { return remark.find(words) != std::string::npos; });
}

TEST(ProfileReport, TellsWhichRecordLateStepsWereCountedIn) {
  const ProfileReport flaky = ProfileCase("straggler_flaky");
  ASSERT_FALSE(flaky.stragglers.stragglers.empty());
  EXPECT_GT(flaky.stragglers.stragglers[0].steps, flaky.steps);
  EXPECT_TRUE(HasRemark(flaky, "were counted in flight records with timing; all else is from profiler traces"));
  EXPECT_FALSE(HasRemark(ProfileCase("straggler"), "were counted in")) << "all from one record";
}

TEST(ProfileComparison, LostOverlapIsNotFaster) {
  const ProfileComparison comparison = CompareProfiles(ProfileCase("gpt_ddp_b1"), ProfileCase("gpt_ddp_b250"), {});
  const auto line = std::find_if(comparison.lines.begin(), comparison.lines.end(),
                                 [](const ComparisonLine& one) { return one.name == kHiddenCommunication; });
  ASSERT_NE(line, comparison.lines.end());
  EXPECT_EQ(line->kind, ChangeKind::less_overlap);
  EXPECT_GE(line->low, -1.0);
  const auto computing = std::find_if(comparison.lines.begin(), comparison.lines.end(), [](const ComparisonLine& one) {
    return one.name == kComputeWithoutCommunication;
  });
  ASSERT_NE(computing, comparison.lines.end());
  EXPECT_EQ(computing->kind, ChangeKind::less_overlap) << "it computes no longer than before";
}

// Steps of so many milliseconds of computing alone, hidden and exposed communication.
ProfileReport Budgeted(double computing, double hidden, double exposed) {
  ProfileReport profile;
  const auto around = [](double ms) {
    std::vector<double> values;
    for (const double noise : {0.99, 1.0, 1.01, 1.005, 0.995, 1.002}) values.push_back(1e6 * ms * noise);
    return values;
  };
  profile.series = {{"step time", around(computing + hidden + exposed)},
                    {std::string(kComputeWithoutCommunication), around(computing)},
                    {std::string(kHiddenCommunication), around(hidden)},
                    {std::string(kExposedCommunication), around(exposed)}};
  return profile;
}

bool TellsOverlap(const ProfileReport& a, const ProfileReport& b, std::string_view words) {
  const ProfileComparison comparison = CompareProfiles(a, b, {});
  return std::any_of(comparison.remarks.begin(), comparison.remarks.end(),
                     [&](const std::string& remark) { return remark.find(words) != std::string::npos; });
}

TEST(ProfileComparison, LostOverlapIsToldAsTheReason) {
  // 30 ms of communication in both; computing takes 100 ms in both.
  EXPECT_TRUE(TellsOverlap(Budgeted(75, 25, 5), Budgeted(98, 2, 28),
                           "the step is slower because less communication overlaps with compute: communication takes "
                           "as long as before (30.0 ms and 30.0 ms per step), but 28.0 ms of it are exposed instead "
                           "of 5.00 ms"));
  EXPECT_TRUE(TellsOverlap(Budgeted(98, 2, 28), Budgeted(75, 25, 5), "faster because more communication overlaps"));
}

ChangeKind KindOfComputing(const ProfileReport& a, const ProfileReport& b) {
  for (const ComparisonLine& line : CompareProfiles(a, b, {}).lines)
    if (line.name == kComputeWithoutCommunication) return line.kind;
  return ChangeKind::untested;
}

TEST(ProfileComparison, ComputingThatOverlapsLessIsNotSlower) {
  EXPECT_EQ(KindOfComputing(Budgeted(75, 25, 5), Budgeted(98, 2, 28)), ChangeKind::less_overlap);
  EXPECT_EQ(KindOfComputing(Budgeted(98, 2, 28), Budgeted(75, 25, 5)), ChangeKind::more_overlap);
  EXPECT_EQ(KindOfComputing(Budgeted(75, 25, 5), Budgeted(140, 2, 28)), ChangeKind::slower) << "and it takes longer";
  EXPECT_EQ(KindOfComputing(Budgeted(75, 25, 5), Budgeted(140, 25, 5)), ChangeKind::slower);
  EXPECT_EQ(KindOfComputing(Budgeted(75, 25, 5), Budgeted(50, 25, 5)), ChangeKind::faster);
}

TEST(ProfileComparison, MoreCommunicationOrComputingIsNoLostOverlap) {
  EXPECT_FALSE(TellsOverlap(Budgeted(75, 25, 5), Budgeted(75, 25, 40), "overlaps")) << "the network is slower";
  EXPECT_FALSE(TellsOverlap(Budgeted(75, 25, 5), Budgeted(140, 23, 7), "overlaps")) << "computing is slower";
  EXPECT_FALSE(TellsOverlap(Budgeted(75, 25, 5), Budgeted(75, 25, 5), "overlaps"));
}

TEST(ProfileComparison, FindsNothingInARunAgainstItself) {
  const ProfileReport profile = ProfileCase("gpt_ddp_b25");
  const ProfileComparison comparison = CompareProfiles(profile, profile, {});
  EXPECT_GT(comparison.tested, 8u);
  EXPECT_FALSE(comparison.differs());
  EXPECT_FALSE(comparison.Regressed(true));
}

TEST(ProfileComparison, DifferentNumbersOfRanksAreToldBesideTheStepTime) {
  const ProfileReport a = ProfileCase("gpt_ddp_b25");
  ProfileReport b = a;
  EXPECT_EQ(CompareProfiles(a, b, {}).proviso, "");
  b.world_size = 2;
  EXPECT_EQ(CompareProfiles(a, b, {}).proviso, "; but the numbers of ranks differ (4 and 2)");
}

TEST(ProfileComparison, WhoMakesTheOthersWaitInWhichRunIsTold) {
  ProfileReport a = ProfileCase("gpt_ddp_b25"), b = a;
  a.stragglers = b.stragglers = {};
  EXPECT_TRUE(CompareProfiles(a, b, {}).stragglers.empty());
  a.stragglers.steps = b.stragglers.steps = 10;
  a.stragglers.stragglers = {{.rank = {1}, .cost = 0.12}, {.rank = {2}, .cost = 0.2}};
  b.stragglers.stragglers = {{.rank = {1}, .cost = 0.3}, {.rank = {3}, .cost = 0.41}};
  a.series = {{"step time", {100}}, {"all_reduce: wait", {1}}},
  b.series = a.series;  // one value each: nothing is tested
  EXPECT_EQ(CompareProfiles(a, b, {}).stragglers,
            (std::vector<std::string>{
                "rank 1 makes the others wait in both runs: it costs about 12 % of the step in A, 30 % in B",
                "rank 3 makes the others wait in B and not in A: it costs about 41 % of B's step",
                "rank 2 makes the others wait in A and not in B: it costs about 20 % of A's step"}));
}

TEST(ProfileComparison, NoStragglerCostsMoreThanTheWholeSlowdown) {
  ProfileReport a, b;
  a.series = {{"step time", {75, 76, 74, 75}}, {"all_reduce: wait", {1, 2, 1, 2}}};
  b.series = {{"step time", {100, 101, 99, 100}}, {"all_reduce: wait", {26, 27, 26, 27}}};
  a.stragglers.steps = b.stragglers.steps = 10;
  const auto told = [&](double cost) {
    b.stragglers.stragglers = {{.rank = {3}, .cost = cost}};
    return CompareProfiles(a, b, {}).stragglers.at(0);
  };
  const std::string who = "rank 3 makes the others wait in B and not in A: ";
  EXPECT_EQ(told(0.2), who + "it costs about 20 % of B's step; A's step is 25 % shorter in all");
  EXPECT_EQ(
      told(0.42),
      who + "it explains the whole difference (A's step is 25 % shorter; its cost is estimated at 42 % of B's step)");
  std::swap(a.series, b.series);
  EXPECT_EQ(told(0.2), who + "it costs about 20 % of B's step, although A is the slower run");
}

TEST(ProfileComparison, SeesThatSmallBucketsTransferMoreSlowly) {
  const ProfileReport b25 = ProfileCase("gpt_ddp_b25"), b1 = ProfileCase("gpt_ddp_b1");
  const ProfileComparison comparison = CompareProfiles(b25, b1, {});
  EXPECT_TRUE(comparison.differs());
  EXPECT_TRUE(comparison.Regressed(true));
  bool one_sided = false, slower = false;
  for (const ComparisonLine& line : comparison.lines) {
    one_sided |= line.kind == ChangeKind::only_b;
    slower |= line.kind == ChangeKind::slower && line.name == "all_reduce on default_pg, all sizes: transfer per MiB";
  }
  EXPECT_TRUE(one_sided);
  EXPECT_TRUE(slower);
  EXPECT_FALSE(CompareProfiles(b1, b25, {}).Regressed(true));
}

TEST(ProfileReport, TimesBatchesOfSendsInFlightRecordsAlone) {
  std::vector<Incident> jobs = LoadCase("gpt_pp");
  jobs[0].timelines.clear();
  jobs[0].measurements.clear();
  const ProfileReport profile = BuildProfile(jobs[0], {});
  EXPECT_EQ(profile.source, "timed flight records");
  ASSERT_FALSE(profile.table.empty());
  for (const ProfileTableRow& line : profile.table) EXPECT_GT(line.row.calls, 0u);
  EXPECT_TRUE(profile.stragglers.stragglers.empty()) << "the bubble of a healthy pipeline is nobody's fault";
}

TEST(ProfileComparison, ASlowerStepIsARegression) {
  const ProfileComparison comparison = CompareProfiles(ProfileCase("gpt_pp"), ProfileCase("gpt_pp_heavy"), {});
  ASSERT_TRUE(comparison.StepTime());
  EXPECT_EQ(comparison.StepTime()->kind, ChangeKind::slower);
  EXPECT_TRUE(comparison.Regressed(false));
}

TEST(ProfileComparison, CallsNoiseNoise) {
  const auto noise = CompareProfiles(WithSteps({100, 104, 98, 101, 97}), WithSteps({102, 99, 103, 98, 101}), {});
  EXPECT_EQ(noise.StepTime()->kind, ChangeKind::none);
  EXPECT_FALSE(noise.Regressed(false));
  // Few and far apart: a bootstrap alone would give an interval from 3 to 31 % beside "no significant difference".
  const auto few = CompareProfiles(WithSteps({100, 112, 103}), WithSteps({121, 109, 138}), {});
  ASSERT_NE(few.StepTime(), nullptr);
  EXPECT_EQ(few.StepTime()->kind, ChangeKind::none);
  EXPECT_LT(few.StepTime()->low, 0);
  EXPECT_GT(few.StepTime()->high, 0.3);
  const auto tiny = CompareProfiles(WithSteps({100, 100.01, 99.99}), WithSteps({100.5, 100.51, 100.49}), {});
  EXPECT_LT(tiny.StepTime()->adjusted_p, 0.05);
  EXPECT_EQ(tiny.StepTime()->kind, ChangeKind::none);  // half a per cent matters to nobody
  const auto single = CompareProfiles(WithSteps({100}), WithSteps({200}), {});
  EXPECT_EQ(single.StepTime()->kind, ChangeKind::untested);
  EXPECT_FALSE(single.Regressed(true));
}

TEST(ProfileComparison, TestsTheStepByItself) {
  ProfileReport a = WithSteps({100, 101, 102, 103}), b = WithSteps({102.5, 103.8, 104.8, 105.2});
  for (int i = 0; i < 20; ++i) {
    a.series.push_back({"line " + std::to_string(i), {100, 101, 102, 103}});
    b.series.push_back({"line " + std::to_string(i), {100.2, 101.1, 101.9, 103.1}});
  }
  const ProfileComparison comparison = CompareProfiles(a, b, {});
  EXPECT_EQ(comparison.StepTime()->kind, ChangeKind::slower);
  EXPECT_DOUBLE_EQ(comparison.StepTime()->adjusted_p, comparison.StepTime()->p);
  EXPECT_EQ(comparison.slower, 1u);
}

TEST(ProfileComparison, ComparesStepsOfRecordsWithoutTraces) {
  std::vector<Incident> even = LoadCase("clean_ddp"), late = LoadCase("straggler_flaky");
  even[0].timelines.clear();
  late[0].timelines.clear();
  even[0].measurements.clear();
  const ProfileComparison comparison = CompareProfiles(BuildProfile(even[0], {}), BuildProfile(late[0], {}), {});
  ASSERT_TRUE(comparison.StepTime());
  EXPECT_GT(comparison.StepTime()->count_a, 20u);
  EXPECT_GT(comparison.StepTime()->count_b, 20u);
  EXPECT_NE(comparison.StepTime()->kind, ChangeKind::untested);
}

TEST(ProfileComparison, RunsWithNothingButTheStepInCommonAreNotCompared) {
  ProfileReport a = WithSteps({100, 101, 102, 103}), b = WithSteps({202, 203, 204, 205});
  a.series.push_back({"all_reduce on default_pg: wait", {1, 2}});
  b.series.push_back({"all_gather on fsdp: wait", {1, 2}});
  const ProfileComparison apart = CompareProfiles(a, b, {});
  EXPECT_EQ(apart.headline, "not comparable: no operation occurs in both runs");
  EXPECT_TRUE(apart.nothing_in_common());
  EXPECT_EQ(apart.StepTime(), nullptr);
  EXPECT_FALSE(apart.Regressed(false));
  EXPECT_FALSE(apart.Regressed(true));
  // Half of the operations changed: still the same job.
  a.series.push_back({"compute without communication", {1, 2}});
  b.series.push_back({"compute without communication", {1, 2}});
  EXPECT_TRUE(CompareProfiles(a, b, {}).Regressed(false));
}

TEST(ProfileComparison, NamesTheRunWithFewSteps) {
  const auto words = [](const ProfileComparison& one) { return one.remarks.empty() ? "" : one.remarks[0]; };
  EXPECT_TRUE(words(CompareProfiles(WithSteps({100, 101, 102, 103, 104, 105}), WithSteps({100, 101}), {}))
                  .starts_with("run B has only 2 steps:"));
  EXPECT_TRUE(words(CompareProfiles(WithSteps({100}), WithSteps({100, 101}), {}))
                  .starts_with("the runs have only 1 and 2 steps:"));
}

TEST(ProfileComparison, DoesNotCompareTimesOfDifferentAmounts) {
  ProfileReport a, b;
  a.series.push_back({"all_reduce: transfer", {100, 101, 99, 100}, 1e6});
  b.series.push_back({"all_reduce: transfer", {200, 201, 199, 200}, 2e6});
  EXPECT_EQ(CompareProfiles(a, b, {}).lines[0].kind, ChangeKind::other_amount);
  b.series[0].bytes = 1e6;
  EXPECT_EQ(CompareProfiles(a, b, {}).lines[0].kind, ChangeKind::slower);
}

TEST(ProfileComparison, TellsATransferOfTheSameAmountOnce) {
  ProfileReport a, b;
  const std::vector<double> steps = {100, 101, 99, 100, 102, 98};
  a.series = {{"all_reduce: transfer", steps, 1e6}, {"all_reduce: transfer per MiB", steps}};
  b.series = a.series;
  EXPECT_EQ(CompareProfiles(a, b, {}).lines.size(), 1u);
  b.series[0].bytes = 2e6;  // then only the time per MiB can be compared
  EXPECT_EQ(CompareProfiles(a, b, {}).lines.size(), 2u);
  b.series[0].bytes = 1e6;
  b.series[0].values = {100, 101};  // too few steps: the calls are more
  EXPECT_EQ(CompareProfiles(a, b, {}).lines.size(), 2u);
}

TEST(ProfileComparison, AdjustsForTheNumberOfLines) {
  ProfileReport a, b;
  // Twenty lines; one has a raw p just below 0.05 by chance.
  for (int i = 0; i < 20; ++i) {
    a.series.push_back({"line " + std::to_string(i), {100, 101, 102, 103}});
    b.series.push_back({"line " + std::to_string(i), i == 7 ? std::vector<double>{102.5, 103.8, 104.8, 105.2}
                                                            : std::vector<double>{100.2, 101.1, 101.9, 103.1}});
  }
  const ProfileComparison comparison = CompareProfiles(a, b, {});
  EXPECT_LT(comparison.lines[7].p, 0.05);
  EXPECT_GT(comparison.lines[7].adjusted_p, 0.2);
  EXPECT_FALSE(comparison.differs());
}

}  // namespace
}  // namespace tacet
