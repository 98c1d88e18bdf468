// SPDX-License-Identifier: Apache-2.0
#include "live/state_json.h"

#include <gtest/gtest.h>

#include "live/agent/box_keeping.h"
#include "live/agent/normal_durations.h"

namespace tacet {
namespace {

AgentState SampleState() {
  AgentState state;
  state.host.host = "node7";
  state.host.wall_ns = 1'700'000'000'000'000'000;
  BoxState& box = state.host.boxes.emplace_back();
  box.name = "job/node7-1.box";
  box.job = "job \"x\"\n";
  box.host = "node7";
  box.rank = 5;
  box.world_size = 8;
  box.pid = 4711;
  box.sight = ProcessSight::stopped;
  box.ids = {"4711", "2", "trainer-5", "ml", "", 1};
  box.heartbeat_age_ns = 9'000'000'000;
  box.comms.push_back(
      {.id = 0xdeadbeefcafef00d, .name = "tp", .rank = 1, .size = 4, .issued = 12, .finished = 11, .idle_ns = 5});
  for (const int64_t age : {30, 20}) {
    OperationState& op = box.operations.emplace_back();
    op.comm = 0xdeadbeefcafef00d;
    op.kind = OpKind::all_gather;
    op.seq = 12;
    op.age_ns = age;
    op.progress = 0xffffffffffffffff;
    op.host = HostStage::in_launch;
    op.flows.push_back(
        {.peer = 3, .send = true, .steps_done = 2, .steps_total = 9, .waiting = FlowWait::network, .waiting_ns = 7});
  }
  box.drops[3] = 2;
  state.host.boxes.emplace_back().trouble = "bad-layout";
  state.suspicions.push_back(
      {.job = "job", .comm = 7, .kind = OpKind::recv, .seq = 3, .still_ns = 9, .lost_ranks = {4}});
  return state;
}

TEST(StateJson, ReadsBackWhatItWrote) {
  const AgentState read = ReadState(WriteState(SampleState(), StateForm::full)).value();
  ASSERT_EQ(read.host.boxes.size(), 2u);
  const BoxState& box = read.host.boxes[0];
  EXPECT_EQ(box.job, "job \"x\"\n");
  EXPECT_EQ(box.sight, ProcessSight::stopped);
  EXPECT_EQ(box.ids.slurm_step, "2");
  EXPECT_EQ(box.ids.kubernetes_namespace, "ml");
  EXPECT_EQ(box.ids.torchelastic_run, "");
  EXPECT_EQ(box.ids.restarts, 1);
  EXPECT_EQ(box.comms[0].id, 0xdeadbeefcafef00d);
  ASSERT_EQ(box.operations.size(), 2u);
  EXPECT_EQ(box.operations[0].progress, 0xffffffffffffffff);
  EXPECT_EQ(box.operations[0].host, HostStage::in_launch);
  EXPECT_EQ(box.operations[0].flows[0].waiting, FlowWait::network);
  EXPECT_EQ(box.drops[3], 2u);
  EXPECT_EQ(read.host.boxes[1].trouble, "bad-layout");
  ASSERT_EQ(read.suspicions.size(), 1u);
  EXPECT_EQ(read.suspicions[0].lost_ranks, std::vector<int32_t>{4});
}

TEST(StateJson, TheBriefFormHasTheOldestOperationOfEachCommunicator) {
  const AgentState read = ReadState(WriteState(SampleState(), StateForm::brief)).value();
  ASSERT_EQ(read.host.boxes[0].operations.size(), 1u);
  EXPECT_EQ(read.host.boxes[0].operations[0].age_ns, 30);
  EXPECT_TRUE(read.host.boxes[0].operations[0].flows.empty());
}

TEST(StateJson, NoPrefixOfAnAnswerIsTakenForAWholeOne) {
  const std::string text = WriteState(SampleState(), StateForm::full);
  for (size_t size = 0; size + 2 < text.size(); ++size) EXPECT_FALSE(ReadState(text.substr(0, size)).ok()) << size;
}

TEST(StateJson, NamesTheVersionOfAnotherAgent) {
  EXPECT_EQ(ReadState("{\"schema\":\"tacet.state.v9\"}").error().message,
            "it uses tacet.state.v9, this server tacet.state.v1");
}

TEST(StateJson, RefusesOtherDocuments) {
  EXPECT_FALSE(ReadState("[]").ok());
  EXPECT_FALSE(ReadState("{\"schema\":\"other\"}").ok());
  EXPECT_TRUE(
      ReadState("{\"schema\":\"tacet.state.v1\",\"boxes\":[{\"rank\":\"x\",\"communicators\":7,\"operations\":[1]}]}")
          .ok());
}

TEST(NormalDurations, TheFirstStepAndOnePauseAreNotNormal) {
  DurationHistory history;
  history.Add(30'000'000'000);
  for (int i = 0; i < 50; ++i) history.Add(10'000'000);
  history.Add(20'000'000'000);
  EXPECT_GE(history.NormalNs(), 10'000'000);
  EXPECT_LT(history.NormalNs(), 15'000'000);
}

TEST(NormalDurations, AFewAreNotEnough) {
  DurationHistory history;
  for (int i = 0; i < 7; ++i) history.Add(1000);
  EXPECT_EQ(history.NormalNs(), -1);
}

TEST(NormalDurations, FollowsAChangeInTime) {
  DurationHistory history;
  for (int i = 0; i < 5000; ++i) history.Add(1'000'000);
  for (int i = 0; i < 200; ++i) history.Add(100'000'000);
  EXPECT_GE(history.NormalNs(), 100'000'000) << "slow ones are more than one in a hundred now";
}

BoxState EndedBox(const std::string& name, bool orderly, int64_t hours) {
  BoxState box;
  box.name = name;
  box.sight = ProcessSight::gone;
  box.ended = orderly;
  box.heartbeat_age_ns = hours * 3600 * 1'000'000'000;
  return box;
}

TEST(BoxKeeping, RemovesOnlyWhatIsOverAndNoEvidence) {
  HostState state;
  state.boxes = {
      EndedBox("orderly", true, 1),      EndedBox("killed today", false, 2), EndedBox("killed yesterday", false, 25),
      EndedBox("evidence", false, 500),  EndedBox("suspected", false, 500),  EndedBox("lives", false, 500),
      EndedBox("elsewhere", false, 500), EndedBox("unreadable", false, 500), EndedBox("pod", false, 500)};
  state.boxes[4].suspected = true;
  state.boxes[5].sight = ProcessSight::stopped;
  state.boxes[6].sight = ProcessSight::unknown;
  state.boxes[7].trouble = "other-version";
  state.boxes[8].sight = ProcessSight::unknown;  // in a pid namespace of its own, but on this host
  state.boxes[8].same_boot = true;
  state.boxes[8].heartbeat_interval_ns = 500'000'000;
  EXPECT_EQ(BoxKeeping().FindExpired(state, {"evidence"}),
            (std::vector<std::string>{"orderly", "killed yesterday", "pod"}));
}

}  // namespace
}  // namespace tacet
