// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/local_ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

Fragment File(std::string path, int32_t rank, Certainty certainty) {
  Fragment fragment;
  fragment.path = std::move(path);
  fragment.speakers.push_back({.rank = {rank}, .rank_certainty = certainty});
  return fragment;
}

TEST(LocalRanks, ANameIsShiftedLikeItsNeighbours) {
  std::vector<Fragment> files;
  files.push_back(File("node2/rank0.log", 16, Certainty::stated));
  files.push_back(File("node2/rank1.log", 17, Certainty::stated));
  files.push_back(File("node2/rank3.log", 3, Certainty::assumed));
  files.push_back(File("node0/rank3.log", 3, Certainty::assumed));
  ShiftLocalRanks(files);
  EXPECT_EQ(files[2].speakers[0].rank, Rank{19});
  EXPECT_EQ(files[3].speakers[0].rank, Rank{3});
  EXPECT_EQ(files[2].diagnostics.size(), 1u);
}

TEST(LocalRanks, NamesThatAreRightOrDisagreeAreLeftAlone) {
  std::vector<Fragment> files;
  files.push_back(File("a/rank0.log", 0, Certainty::stated));
  files.push_back(File("a/rank1.log", 1, Certainty::stated));
  files.push_back(File("a/rank2.log", 2, Certainty::assumed));
  files.push_back(File("b/rank0.log", 8, Certainty::stated));
  files.push_back(File("b/rank1.log", 5, Certainty::stated));
  files.push_back(File("b/rank2.log", 2, Certainty::assumed));
  files.push_back(File("c/rank0.log", 8, Certainty::stated));  // one file alone proves nothing
  files.push_back(File("c/rank2.log", 2, Certainty::assumed));
  ShiftLocalRanks(files);
  for (const size_t i : {2u, 5u, 7u}) EXPECT_EQ(files[i].speakers[0].rank, Rank{2}) << files[i].path;
}

TEST(LocalRanks, FoldersOfOneAttemptUnderTorchrunAreNeighbours) {
  std::vector<Fragment> files;
  files.push_back(File("node1/run7/attempt_0/0/stderr.log", 4, Certainty::stated));
  files.push_back(File("node1/run7/attempt_0/1/stderr.log", 5, Certainty::stated));
  files.push_back(File("node1/run7/attempt_0/2/stderr.log", 2, Certainty::assumed));
  files.push_back(File("node0/run7/attempt_0/2/stderr.log", 2, Certainty::assumed));
  // Two files of one process are one witness.
  files.push_back(File("node2/run7/attempt_0/0/stderr.log", 8, Certainty::stated));
  files.push_back(File("node2/run7/attempt_0/0/stdout.log", 8, Certainty::stated));
  files.push_back(File("node2/run7/attempt_0/2/stderr.log", 2, Certainty::assumed));
  ShiftLocalRanks(files);
  EXPECT_EQ(files[2].speakers[0].rank, Rank{6});
  EXPECT_EQ(files[3].speakers[0].rank, Rank{2});
  EXPECT_EQ(files[6].speakers[0].rank, Rank{2});
}

TEST(LonelyNumbers, AFileOfItsOwnKindHasNoRankByItsNumber) {
  std::vector<Fragment> files(1);
  files[0].path = "pasted_1788.log";
  files[0].speakers.emplace_back();
  files[0].speakers[0].rank = Rank{1788};
  files[0].speakers[0].rank_certainty = Certainty::assumed;
  ForgetLonelyNumbers(files);
  EXPECT_FALSE(files[0].speakers[0].rank.known());
}

TEST(LonelyNumbers, FilesOfOneKindAreNumberedByRank) {
  std::vector<Fragment> files(2);
  for (int32_t i = 0; i < 2; ++i) {
    files[static_cast<size_t>(i)].path = "a/train_" + std::to_string(i) + ".log";
    files[static_cast<size_t>(i)].speakers.emplace_back();
    files[static_cast<size_t>(i)].speakers[0].rank = Rank{i};
    files[static_cast<size_t>(i)].speakers[0].rank_certainty = Certainty::assumed;
  }
  ForgetLonelyNumbers(files);
  EXPECT_EQ(files[1].speakers[0].rank, Rank{1});
}

// The files of these names, none of which states its rank.
std::vector<Fragment> NumberedPaths(const std::vector<std::string>& paths) {
  std::vector<Fragment> files;
  for (const std::string& path : paths) files.push_back(File(path, RankFromPath(path)->value, Certainty::assumed));
  return files;
}

TEST(LonelyNumbers, ANumberAloneIsNoRank) {
  for (const char* path : {"034.log", "7.txt", "err4.txt", "out_3.log", "task_12.log", "5/stderr.log"}) {
    auto files = NumberedPaths({path});
    ForgetLonelyNumbers(files);
    EXPECT_FALSE(files[0].speakers[0].rank.known()) << path;
  }
}

TEST(LonelyNumbers, ANumberThatAMessageTellsIsNotTheNamesAlone) {
  auto files = NumberedPaths({"3.txt"});
  files[0].speakers[0].rank_clue = RankClue::message;
  ForgetLonelyNumbers(files);
  EXPECT_EQ(files[0].speakers[0].rank, Rank{3});
}

TEST(LonelyNumbers, WordsAndTreesThatTellARankNeedNoNeighbours) {
  for (const char* path : {"rank_3.log", "rank3/stderr.log", "none_8a/attempt_0/3/stderr.log", "worker3.out",
                           "nccl_dump_3", "trace_3.json"}) {
    auto files = NumberedPaths({path});
    ForgetLonelyNumbers(files);
    EXPECT_EQ(files[0].speakers[0].rank, Rank{3}) << path;
  }
}

TEST(LonelyNumbers, NumbersThatCountFromZeroAreRanksEvenIfAFewAreMissing) {
  auto files = NumberedPaths({"0.log", "1.log", "3.log"});
  ForgetLonelyNumbers(files);
  EXPECT_EQ(files[2].speakers[0].rank, Rank{3});
  files = NumberedPaths({"0/stderr.log", "1/stderr.log", "2/stderr.log"});
  ForgetLonelyNumbers(files);
  EXPECT_EQ(files[2].speakers[0].rank, Rank{2});
}

TEST(LonelyNumbers, NumbersOfTicketsAreNotRanks) {
  auto files = NumberedPaths({"1042.log", "1043.log"});
  ForgetLonelyNumbers(files);
  EXPECT_FALSE(files[0].speakers[0].rank.known());
  files = NumberedPaths({"0.log", "7.log"});
  ForgetLonelyNumbers(files);
  EXPECT_FALSE(files[1].speakers[0].rank.known());
}

// NCCL_DEBUG_FILE=nccl.%h.%p.log
TEST(LonelyNumbers, NumbersThatAreProcessIdsAreNotRanks) {
  for (const bool pids : {true, false}) {
    auto files = NumberedPaths({"nccl.vm.2.log", "nccl.vm.1.log", "nccl.vm.0.log"});
    if (pids) files[0].speakers[0].pid = 2;
    ForgetLonelyNumbers(files);
    EXPECT_EQ(files[0].speakers[0].rank.known(), !pids);
  }
}

TEST(LonelyNumbers, AFileThatHoldsSeveralRanksSpeaksAgainstAllOfItsKind) {
  auto files = NumberedPaths({"0.log", "1.log", "2.log"});
  files[0].speakers = {{.rank = Rank{4}, .rank_certainty = Certainty::stated},
                       {.rank = Rank{5}, .rank_certainty = Certainty::stated}};
  ForgetLonelyNumbers(files);
  EXPECT_FALSE(files[2].speakers[0].rank.known());
}

TEST(LonelyNumbers, FilesThatStateTheirRanksWithoutOrderSpeakAgainstTheNumbers) {
  auto files = NumberedPaths({"0.log", "1.log", "2.log"});
  files[0] = File("0.log", 6, Certainty::stated);
  files[1] = File("1.log", 2, Certainty::stated);
  ForgetLonelyNumbers(files);
  EXPECT_FALSE(files[2].speakers[0].rank.known());
  // A second node's files: all lie off by the same number.
  files = NumberedPaths({"0.log", "1.log", "2.log"});
  files[0] = File("0.log", 8, Certainty::stated);
  files[1] = File("1.log", 9, Certainty::stated);
  ForgetLonelyNumbers(files);
  EXPECT_TRUE(files[2].speakers[0].rank.known());
}

// A file of torchrun's in which so many exceptions stand without a name, and then one failed local rank.
Fragment WithOneFailure(int exceptions) {
  Fragment file;
  file.path = "out.txt";
  for (int i = 0; i < exceptions; ++i) {
    Event& raised = file.events.emplace_back();
    raised.kind = EventKind::exception;
    raised.speaker = kNobody;
    raised.source.line = static_cast<uint32_t>(i + 1);
  }
  Event& end = file.events.emplace_back();
  end.kind = EventKind::process_exited;
  end.speaker = kNobody;
  end.Make<ProcessEnd>().code = 1;
  end.Make<ProcessEnd>().local_rank = 2;
  end.source.line = 9;
  return file;
}

TEST(LocalRanks, TheOnlyExceptionIsTheOnlyFailedRanks) {
  std::vector<Fragment> files(1);
  files[0] = WithOneFailure(1);
  NameLocalRanks(files);
  EXPECT_EQ(files[0].events[0].rank, Rank{2});
  EXPECT_TRUE(files[0].events[0].Means(Meaning::owner_inferred));
  files[0] = WithOneFailure(2);
  NameLocalRanks(files);
  EXPECT_FALSE(files[0].events[0].rank.known());
  EXPECT_FALSE(files[0].events[1].rank.known());
}

// failed (exitcode: -9) local_rank: 3 (pid: 813)
Fragment Launcher(int32_t local_rank, int64_t code = -9) {
  Fragment fragment;
  fragment.path = "train.log";
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::process_exited;
  event.speaker = kNobody;
  event.Make<ProcessEnd>().code = code;
  event.pid = 813;
  event.Make<ProcessEnd>().local_rank = local_rank;
  event.source.line = 9;
  return fragment;
}

TEST(LocalRanks, OnOneNodeTheLocalRankIsTheRank) {
  std::vector<Fragment> files;
  files.push_back(Launcher(3));
  NameLocalRanks(files);
  EXPECT_EQ(files[0].events[0].rank, Rank{3});
  ASSERT_EQ(files[0].speakers.size(), 1u);
  EXPECT_EQ(files[0].speakers[0].pid, 813);
}

TEST(LocalRanks, WhereAnythingTellsOfASecondNodeItIsNot) {
  std::vector<Fragment> told, two, high, hosts;
  told.push_back(Launcher(3));
  told[0].events.emplace_back().kind = EventKind::node_count;
  told[0].events.back().Make<NodeCount>().nodes = 2;
  two.push_back(Launcher(3));
  two.push_back(Launcher(0));
  high.push_back(Launcher(3));
  high[0].speakers.push_back({.rank = {11}, .rank_certainty = Certainty::stated});
  hosts.push_back(Launcher(3));
  hosts[0].speakers.push_back({.host = "a"});
  hosts[0].speakers.push_back({.host = "b"});
  for (std::vector<Fragment>* files : {&told, &two, &high, &hosts}) {
    NameLocalRanks(*files);
    EXPECT_FALSE((*files)[0].events[0].rank.known());
  }
}

TEST(LocalRanks, WhoExitsByItselfAfterAConnectionWasLostIsNotNamed) {
  std::vector<Fragment> files;
  files.push_back(Launcher(4, 17));
  Event lost;
  lost.kind = EventKind::connection_lost;
  lost.speaker = kNobody;
  lost.source.line = 5;
  files[0].events.push_back(lost);
  NameLocalRanks(files);
  EXPECT_FALSE(files[0].events[0].rank.known());
}

}  // namespace
}  // namespace tacet
