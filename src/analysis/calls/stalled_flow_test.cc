// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/stalled_flow.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

// Four ranks in a ring; group ranks are turned round, so that a mix-up of the two shows.
struct Ring {
  Ring() {
    Group group;
    group.members = {{3}, {2}, {1}, {0}};
    incident.groups.push_back(group);
    for (int32_t place = 0; place < 4; ++place) {
      InFlight flight;
      flight.rank = incident.groups[0].members[static_cast<size_t>(place)];
      flight.group = GroupIndex{0};
      flight.seq = 6;
      flight.kind = OpKind::all_reduce;
      flight.flows.push_back({.peer = {(place + 1) % 4}, .send = true, .steps_done = 2, .steps_total = 3});
      flight.flows.push_back({.peer = {(place + 3) % 4}, .send = false, .steps_done = 2, .steps_total = 3});
      incident.in_flight.push_back(flight);
    }
  }
  Flow& Send(size_t place) { return incident.in_flight[place].flows[0]; }
  Flow& Recv(size_t place) { return incident.in_flight[place].flows[1]; }
  std::optional<StalledFlow> Find() const { return FindStalledFlow(incident, GroupIndex{0}, 6); }
  Incident incident;
};

TEST(StalledFlow, NobodyThatWaitsForItsOwnGpuIsNamed) {
  Ring ring;
  for (size_t place = 0; place < 4; ++place) ring.Send(place).waiting = FlowWait::own_gpu;
  EXPECT_FALSE(ring.Find());
  EXPECT_FALSE(FindStalledFlow(ring.incident, GroupIndex::none, 6));
}

TEST(StalledFlow, WhatTheNetworkKeepsIsTheSenders) {
  Ring ring;
  ring.Send(1).waiting = FlowWait::network;
  ring.Send(1).steps_done = 0;
  ring.Recv(2).waiting = FlowWait::data;
  ring.Recv(2).steps_done = 0;
  ring.Recv(3).waiting = FlowWait::data;  // further along: a victim
  ring.Recv(3).steps_done = 1;
  const auto flow = ring.Find();
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->from, Rank{2});
  EXPECT_EQ(flow->to, Rank{1});
  EXPECT_EQ(flow->suspect, Rank{2});
  EXPECT_EQ(flow->waiting, FlowWait::network);
}

TEST(StalledFlow, AReceiverThatGivesNoCreditIsTheSuspect) {
  Ring ring;
  ring.Send(0).waiting = FlowWait::peer_credit;
  ring.Send(0).steps_done = 0;
  const auto flow = ring.Find();
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->from, Rank{3});
  EXPECT_EQ(flow->suspect, Rank{2});
}

TEST(StalledFlow, AReceiverThatDoesNotTakeWhatWasSentIsTheSuspect) {
  Ring ring;
  ring.Recv(2).waiting = FlowWait::data;
  ring.Recv(2).steps_done = 0;
  for (InFlight& flight : ring.incident.in_flight) flight.channels_started = 1;
  ASSERT_TRUE(ring.Find());
  EXPECT_EQ(ring.Find()->suspect, Rank{2});  // its sender has still to send
  ring.Send(1).steps_done = 3;
  EXPECT_EQ(ring.Find()->suspect, Rank{1});
  ring.incident.in_flight[1].flows.erase(ring.incident.in_flight[1].flows.begin());
  EXPECT_EQ(ring.Find()->suspect, Rank{1});
  // A sender that has not begun has sent nothing, whatever its box lacks.
  ring.incident.in_flight[1].channels_started = 0;
  EXPECT_EQ(ring.Find()->suspect, Rank{2});
}

TEST(StalledFlow, TheEndThatStalledFlowsShareIsTheSuspect) {
  Ring ring;
  for (const size_t place : {0u, 1u}) ring.Send(place).waiting = FlowWait::network, ring.Send(place).steps_done = 0;
  const auto flow = ring.Find();  // 3 -> 2 and 2 -> 1
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->suspect, Rank{2});
}

TEST(StalledFlow, WithoutASharedEndNobodyIsTheSuspect) {
  Ring ring;
  for (size_t place = 0; place < 4; ++place)
    ring.Send(place).waiting = FlowWait::network, ring.Send(place).steps_done = 0;
  const auto flow = ring.Find();
  ASSERT_TRUE(flow);
  EXPECT_FALSE(flow->suspect.known());
}

TEST(StalledFlow, HostilePeersAreNoIndices) {
  Ring ring;
  for (InFlight& flight : ring.incident.in_flight)
    for (Flow& flow : flight.flows) flow.peer = {1 << 30}, flow.waiting = FlowWait::network;
  EXPECT_FALSE(ring.Find());
}

}  // namespace
}  // namespace tacet
