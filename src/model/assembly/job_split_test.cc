// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/job_split.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tacet {
namespace {

Fragment File(std::string path, int32_t rank, std::string format = "flight_recorder", uint64_t comm = 0) {
  Fragment fragment;
  fragment.path = std::move(path);
  fragment.format = std::move(format);
  if (rank >= 0) fragment.speakers.push_back({.rank = {rank}, .rank_certainty = Certainty::assumed});
  if (comm != 0) {
    Group group;
    group.comm_id = comm;
    fragment.groups.push_back(std::move(group));
  }
  return fragment;
}

template <typename... Files>
std::vector<JobPart> Split(Files... files) {
  std::vector<Fragment> fragments;
  (fragments.push_back(std::move(files)), ...);
  return SplitJobs(fragments);
}

// Every file goes to exactly one job: a fragment is moved into it.
void ExpectEachFileOnce(const std::vector<JobPart>& parts, size_t files) {
  std::multiset<size_t> seen;
  for (const JobPart& part : parts) seen.insert(part.members.begin(), part.members.end());
  EXPECT_EQ(seen.size(), files);
  EXPECT_EQ(std::set<size_t>(seen.begin(), seen.end()).size(), files);
}

TEST(JobSplit, OneFolderIsOneJob) {
  std::vector<Fragment> files;
  for (int r = 0; r < 4; ++r) {
    files.push_back(File("nccl_trace_rank_" + std::to_string(r), r));
    files.push_back(File("stdout_" + std::to_string(r), r, "torch_log"));
  }
  const auto parts = SplitJobs(files);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].members.size(), 8u);
  EXPECT_TRUE(parts[0].label.empty());
}

TEST(JobSplit, TwoRunsInTwoFoldersAreTwoJobs) {
  std::vector<Fragment> files;
  for (const char* run : {"monday", "tuesday"})
    for (int r = 0; r < 4; ++r) files.push_back(File(std::string(run) + "/nccl_trace_rank_" + std::to_string(r), r));
  const auto parts = SplitJobs(files);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].label, "monday");
  EXPECT_EQ(parts[1].label, "tuesday");
  ExpectEachFileOnce(parts, 8);
}

// NCCL's log of one process that tells no rank.
Fragment LoneLog(std::string path, std::string host, std::string version) {
  Fragment log = File(std::move(path), -1, "nccl_log");
  log.speakers.push_back({.host = std::move(host), .pid = 4121});
  Event& event = log.events.emplace_back();
  event.kind = EventKind::nccl_version;
  event.Make<Version>().number = std::move(version);
  return log;
}

std::vector<Fragment> JobOfTwo(int ranks) {
  std::vector<Fragment> files;
  for (int r = 0; r < ranks; ++r) {
    files.push_back(File("job/stdout_" + std::to_string(r), r, "torch_log"));
    files.back().speakers.back().world_size = 2;
    files.back().speakers.back().host = "gn00";
  }
  files.push_back(LoneLog("job/rank0.log", "gn00", "2.28.9"));
  return files;
}

TEST(JobSplit, ALogOfAnotherHostAndReleaseBesideAWholeJobIsOfAnotherOne) {
  std::vector<Fragment> files = JobOfTwo(2);
  files.push_back(LoneLog("other/nccl.log", "gpu17", "2.20.5"));
  const auto parts = SplitJobs(files);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].label, "job");
  EXPECT_EQ(parts[1].label, "other");
  ExpectEachFileOnce(parts, 4);
}

TEST(JobSplit, ALogThatMayBeOfAMissingRankOrOfTheSameHostStays) {
  for (const auto& [ranks, folder, host, version] :
       {std::tuple(1, "other/", "gpu17", "2.20.5"), std::tuple(2, "other/", "gn00", "2.20.5"),
        std::tuple(2, "other/", "gpu17", "2.28.9"), std::tuple(2, "job/node2/", "gpu17", "2.20.5")}) {
    std::vector<Fragment> files = JobOfTwo(ranks);
    files.push_back(LoneLog(std::string(folder) + "nccl.log", host, version));
    EXPECT_EQ(SplitJobs(files).size(), 1u) << ranks << folder << host << version;
  }
}

TEST(JobSplit, LooksAtOneRunAreOneJob) {
  const auto looks = [](bool run) {
    Fragment manifest = File("a/manifest.json", -1, "run_record");
    manifest.tops_a_run = run;
    return Split(std::move(manifest), File("a/hang-1/stack_rank_0.txt", 0, "stacks"),
                 File("a/last-look/stack_rank_0.txt", 0, "stacks"), File("b/stack_rank_0.txt", 0, "stacks"));
  };
  EXPECT_EQ(looks(true).size(), 2u) << "a, and b beside it";
  EXPECT_EQ(looks(false).size(), 3u);
}

TEST(JobSplit, FoldersOfSeveralNodesAreOneJob) {
  std::vector<Fragment> files;
  for (int r = 0; r < 16; ++r)
    files.push_back(File("node" + std::to_string(r / 8) + "/nccl_trace_rank_" + std::to_string(r), r));
  EXPECT_EQ(SplitJobs(files).size(), 1u);
}

TEST(JobSplit, AFolderForEachRankIsOneJob) {
  std::vector<Fragment> files;
  for (int r = 0; r < 8; ++r) files.push_back(File("attempt_0/" + std::to_string(r) + "/stdout.log", r, "torch_log"));
  EXPECT_EQ(SplitJobs(files).size(), 1u);
}

TEST(JobSplit, DifferentKindsOfFilesOfARankMayLieInDifferentFolders) {
  const auto parts = Split(File("dumps/rank_0", 0), File("logs/rank_0", 0, "nccl_log"), File("dumps/rank_1", 1),
                           File("logs/rank_1", 1, "nccl_log"));
  EXPECT_EQ(parts.size(), 1u);
}

TEST(JobSplit, ASharedCommunicatorJoinsFoldersThatClaimTheSameRank) {
  const auto parts = Split(File("a/rank_0", 0, "nccl_log", 0xabc), File("b/rank_0", 0, "nccl_log", 0xabc));
  EXPECT_EQ(parts.size(), 1u);
}

TEST(JobSplit, AFileWithoutARankAtTheTopGoesToOneJobOnly) {
  const auto parts = Split(File("a/rank_0", 0), File("b/rank_0", 0), File("dmesg.txt", -1, "kernel_log"));
  ASSERT_EQ(parts.size(), 2u);
  ExpectEachFileOnce(parts, 3);
}

TEST(JobSplit, AFileWithoutARankGoesToTheJobOfItsFolder) {
  const auto parts = Split(File("a/rank_0", 0), File("b/rank_0", 0), File("b/dmesg.txt", -1, "kernel_log"),
                           File("b/extra/dmesg.txt", -1, "kernel_log"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].members, std::vector<size_t>({1, 2, 3}));
}

TEST(JobSplit, AFileWithoutARankBelowTwoJobsGoesToTheNearer) {
  const auto parts =
      Split(File("runs/rank_0", 0), File("runs/old/rank_0", 0), File("runs/old/host/dmesg.txt", -1, "kernel_log"));
  ASSERT_EQ(parts.size(), 2u);
  ExpectEachFileOnce(parts, 3);
  for (const JobPart& part : parts) {
    EXPECT_EQ(part.members, part.label == "runs" ? std::vector<size_t>({0}) : std::vector<size_t>({1, 2}));
  }
}

// Output that no rank is named in, as a trainer prints it.
Fragment Output(std::string path, int64_t first_step, int64_t last_step, int32_t rank = -1) {
  Fragment fragment = File(std::move(path), rank, "torch_log");
  fragment.training.push_back(
      {.lines = (last_step - first_step) / 10 + 1, .first_step = first_step, .last_step = last_step});
  return fragment;
}

TEST(JobSplit, OutputsThatStopAtDifferentStepsAreDifferentJobs) {
  const auto parts = Split(Output("a/train.log", 0, 1000), Output("b/train.log", 0, 600, 1),
                           Output("c/train.log", 0, 300, 2), File("c/dmesg.txt", -1, "kernel_log"));
  ASSERT_EQ(parts.size(), 3u);
  ExpectEachFileOnce(parts, 4);
  EXPECT_EQ(parts[0].label, "a");
  EXPECT_EQ(parts[2].members, std::vector<size_t>({2, 3}));
}

TEST(JobSplit, OutputsOfTheNodesOfOneJobStopTogether) {
  EXPECT_EQ(Split(Output("node0/train.log", 0, 600), Output("node1/train.log", 0, 590)).size(), 1u);
  // The job was resumed: the second output goes on where the first ends.
  EXPECT_EQ(Split(Output("first/train.log", 0, 600), Output("second/train.log", 610, 1200)).size(), 1u);
  // A copy of the first lines below the output itself.
  EXPECT_EQ(Split(Output("a/train.log", 0, 600), Output("a/head/train.log", 0, 100)).size(), 1u);
}

TEST(JobSplit, OutputsOfSlurmJobsInOneFolderAreDifferentJobs) {
  const auto parts = Split(Output("slurm-101.out", 0, 600, 0), File("slurm-101.err", 2, "torch_log"),
                           Output("slurm-102.out", 0, 600, 1), File("slurm-103.out", -1, "torch_log"));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].label, "slurm-101");
  EXPECT_EQ(parts[0].members, std::vector<size_t>({0, 1}));
  EXPECT_EQ(Split(File("slurm-101.out", 0, "torch_log"), File("nccl_trace_rank_0", 0)).size(), 1u);
}

TEST(JobSplit, FilesWithoutAnyRankAreOneJob) {
  const auto parts = Split(File("a/x", -1), File("b/y", -1));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].members.size(), 2u);
}

TEST(JobSplit, NothingIsOneEmptyJob) {
  const auto parts = Split();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].members.empty());
}

TEST(JobSplit, ASubfolderJoinsTheRunAboveIt) {
  const auto parts = Split(File("one/rank_0", 0), File("one/logs/rank_0", 0, "nccl_log"), File("two/rank_0", 0),
                           File("two/logs/rank_0", 0, "nccl_log"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].members, std::vector<size_t>({0, 1}));
  EXPECT_EQ(parts[1].members, std::vector<size_t>({2, 3}));
}

// A black box with one call and a last beat, in seconds.
Fragment Box(std::string path, int32_t rank, uint64_t comm, int64_t begin_s, int64_t end_s) {
  Fragment box = File(std::move(path), rank, "black_box", comm);
  box.streams.emplace_back().calls.emplace_back().enter_wall_ns = begin_s * 1'000'000'000;
  box.pulses.emplace_back().last_beat_wall_ns = end_s * 1'000'000'000;
  return box;
}

TEST(JobSplit, TwoJobsThatWriteIntoOneFolderAtTheSameTimeAreTwo) {
  const auto parts = Split(Box("local/a-1.box", 0, 7, 100, 200), Box("local/a-2.box", 0, 8, 110, 205),
                           Box("local/a-3.box", 1, 7, 100, 200), Box("local/a-4.box", 1, 8, 110, 205));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].members, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(parts[1].members, (std::vector<size_t>{1, 3}));
  ExpectEachFileOnce(parts, 4);
}

TEST(JobSplit, AttemptsThatFollowEachOtherInOneFolderAreOneJob) {
  EXPECT_EQ(Split(Box("local/a-1.box", 0, 7, 100, 200), Box("local/a-2.box", 0, 8, 210, 305)).size(), 1u);
}

TEST(JobSplit, GroupsThatShareNoRankAreOneJob) {
  EXPECT_EQ(Split(Box("local/a-1.box", 0, 7, 100, 200), Box("local/a-2.box", 1, 8, 100, 200)).size(), 1u);
}

TEST(JobSplit, TheLaunchersOutputAndItsLogTreeAreOneJob) {
  Fragment launcher = File("launcher.log", 0, "torch_log");
  launcher.speakers.push_back({.rank = {1}, .rank_certainty = Certainty::stated});
  const auto parts = Split(std::move(launcher), File("logs/none_k6oju2ur/attempt_0/0/stderr.log", 0, "torch_log"),
                           File("logs/none_k6oju2ur/attempt_0/1/stderr.log", 1, "torch_log"));
  ASSERT_EQ(parts.size(), 1u);
  ExpectEachFileOnce(parts, 3);
}

TEST(JobSplit, ARestartInOneLogTreeIsOneJob) {
  const auto parts = Split(File("logs/run7/attempt_0/0/stderr.log", 0, "torch_log"),
                           File("logs/run7/attempt_1/0/stderr.log", 0, "torch_log"));
  EXPECT_EQ(parts.size(), 1u);
}

TEST(JobSplit, TreesOfTheNodesOfOneRunAreOneJob) {
  const auto parts =
      Split(File("node0/run7/attempt_0/0/stderr.log", 0, "torch_log"), File("node0/torchrun.out", 0, "torch_log"),
            File("node1/run7/attempt_0/0/stderr.log", 4, "torch_log"));
  EXPECT_EQ(parts.size(), 1u);
}

TEST(JobSplit, TwoRunsWithTreesStayTwoJobs) {
  const auto parts =
      Split(File("a/launcher.log", 0, "torch_log"), File("a/none_x/attempt_0/0/stderr.log", 0, "torch_log"),
            File("b/launcher.log", 0, "torch_log"), File("b/none_y/attempt_0/0/stderr.log", 0, "torch_log"));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].members, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(parts[1].members, (std::vector<size_t>{2, 3}));
}

TEST(JobSplit, LogsNamedByRankBesideTheTreeOfAnotherRunAreAnotherJob) {
  const auto parts =
      Split(File("old/rank0.log", 0, "torch_log"), File("new/none_y/attempt_0/0/stderr.log", 0, "torch_log"));
  EXPECT_EQ(parts.size(), 2u);
}

}  // namespace
}  // namespace tacet
