// SPDX-License-Identifier: Apache-2.0
#include "live/server/judge_process.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace tacet {
namespace {

std::string Bytes(const std::string& name) {
  std::ifstream in(TACET_SOURCE_DIR "/src/evidence/black_box/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(JudgeProcess, ATaskAndAVerdictSurviveTheWay) {
  JudgeTask task;
  task.boxes.push_back({"node/a.box", std::string("\0\n{\xff", 4), ProcessSight::stopped, 17});
  task.boxes.push_back({"node/\"b\n.box", "", ProcessSight::gone, -1});
  task.suspicions.push_back({.job = "888", .uid = 7, .comm = 5, .still_ns = 9});
  task.ras = "NCCL\n";
  task.runs_on = true;
  std::string wire = WriteJudgeHead(task) + task.ras;
  for (const FetchedBox& box : task.boxes) wire += box.bytes;
  auto read = ReadJudgeTask(wire);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->boxes.size(), 2u);
  EXPECT_EQ(read->boxes[0].bytes, task.boxes[0].bytes);
  EXPECT_EQ(read->boxes[0].sight, ProcessSight::stopped);
  EXPECT_EQ(read->boxes[1].path, task.boxes[1].path);
  EXPECT_EQ(read->suspicions[0].uid, 7);
  EXPECT_EQ(read->ras, task.ras);
  EXPECT_TRUE(read->runs_on);
  for (size_t size = 0; size < wire.size(); ++size) EXPECT_FALSE(ReadJudgeTask(wire.substr(0, size)).ok()) << size;
  auto verdict = ReadJudged(WriteJudged({"hang", "rank-dead", "a \"b\"", {3, 4}, true, "{}", "text"}));
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->headline, "a \"b\"");
  EXPECT_EQ(verdict->ranks, (std::vector<int>{3, 4}));
  EXPECT_EQ(verdict->json + verdict->text, "{}text");
}

TEST(JudgeProcess, ReadsBoxesAndNothingElse) {
  JudgeTask task;
  task.boxes.push_back({"node/a.box", Bytes("hang_waiting_rank0.box"), ProcessSight::running, 0});
  task.boxes.push_back({"node/b.box", "node7:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2147483647\n", {}, 0});
  const JudgedReport report = JudgeHere(std::move(task));
  EXPECT_NE(report.json.find("a.box"), std::string::npos);
  EXPECT_EQ(report.json.find("b.box"), std::string::npos);
}

TEST(JudgeProcess, WhateverBecomesOfTheProcessTheCallerGoesOn) {
  const std::atomic<bool> go_on{false}, stop{true};
  JudgeTask task;
  task.boxes.push_back({"node/a.box", Bytes("hang_waiting_rank0.box"), ProcessSight::running, 0});
  EXPECT_FALSE(JudgeApart(task, {.program = {"/bin/false"}}, go_on).ok());
  EXPECT_FALSE(JudgeApart(task, {.program = {"/no/such/program"}}, go_on).ok());
  EXPECT_FALSE(JudgeApart(task, {.program = {"/bin/cat", "/dev/zero"}, .limit_ms = 60000}, go_on).ok());
  EXPECT_FALSE(JudgeApart(task, {.program = {"/bin/sh", "-c", "kill -9 $$"}}, go_on).ok());
  EXPECT_FALSE(JudgeApart(task, {.program = {"/bin/sh", "-c", "exec sleep 1000"}, .limit_ms = 200}, go_on).ok());
  EXPECT_FALSE(JudgeApart(task, {.program = {"/bin/sh", "-c", "exec sleep 1000"}}, stop).ok());
}

}  // namespace
}  // namespace tacet
