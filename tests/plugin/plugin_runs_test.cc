// SPDX-License-Identifier: Apache-2.0
// Whole jobs of the stand-in: what the boxes say afterwards.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugin/box_reading.h"

namespace tacet::fake {
namespace {

uint64_t AllDrops(const ReadBox& read) {
  uint64_t sum = 0;
  for (const uint64_t n : read.box.header.drops) sum += n;
  return sum;
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const InFlight* FlightOf(const ReadBox& read, uint32_t seq) {
  for (const InFlight& flight : read.fragment.in_flight)
    if (flight.seq == seq) return &flight;
  return nullptr;
}

class EveryApi : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(, EveryApi, testing::Range(1, 8));

TEST_P(EveryApi, HealthyRunTellsEveryOperationInOrder) {
  const int api = GetParam();
  const BoxFolder folder;
  const std::string said = RunHost("--ranks 3 --steps 24 --network --mix mixed --api " + std::to_string(api), folder,
                                   {{"TACET_BOX_KB", "512"}});
  ASSERT_TRUE(Contains(said, "healthy, worst exit 0")) << said;
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) {
    const ReadBox& read = boxes[rank];
    ASSERT_EQ(read.box.trouble, BoxTrouble::none) << read.box.reason;
    EXPECT_EQ(read.box.header.api_version, static_cast<uint32_t>(api));
    EXPECT_EQ(read.rank(), static_cast<int>(rank));
    EXPECT_EQ(read.box.header.world_size, 3);
    EXPECT_EQ(AllDrops(read), 0u);
    EXPECT_EQ(read.box.torn, 0u);
    EXPECT_EQ(read.box.header.end_state, box::EndState::exited);
    ASSERT_EQ(read.fragment.groups.size(), 1u);
    EXPECT_EQ(read.fragment.groups[0].comm_id & 0xffffff, 0xc0ffeeu);
    EXPECT_EQ(read.fragment.groups[0].description, "default_pg");
    EXPECT_EQ(read.fragment.groups[0].size, api >= 4 ? 3 : -1);
    const auto& calls = read.stream().calls;
    ASSERT_EQ(calls.size(), 24u);
    EXPECT_EQ(read.stream().knows_finish, api >= 3);
    const OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast,
                            OpKind::reduce};
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].seq, i + 1);
      EXPECT_EQ(calls[i].kind, kinds[i % 5]);
      const bool rooted = kinds[i % 5] == OpKind::broadcast || kinds[i % 5] == OpKind::reduce;
      EXPECT_EQ(calls[i].peer.value, rooted ? 0 : -1);
      EXPECT_EQ(calls[i].state, api >= 3 ? CallState::completed : CallState::enqueued) << i;
      EXPECT_NE(calls[i].enter_wall_ns, kNoTime);
      if (api >= 3) {
        EXPECT_GE(calls[i].finish_wall_ns, calls[i].start_wall_ns);
        EXPECT_GT(calls[i].start_wall_ns, 0);
      }
      EXPECT_EQ(calls[i].duration_ms >= 0, api >= 4);
    }
    EXPECT_EQ(read.fragment.measurements.size(), api >= 3 ? 24u : 0u);
  }
}

TEST_P(EveryApi, CountsWhatTheNetworkMoved) {
  const int api = GetParam();
  const BoxFolder folder;
  RunHost("--ranks 3 --steps 10 --network --channels 2 --api " + std::to_string(api), folder,
          {{"TACET_BOX_KB", "512"}});
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 3u);
  for (const ReadBox& read : boxes) {
    const int next = (read.rank() + 1) % 3, previous = (read.rank() + 2) % 3;
    ASSERT_EQ(read.box.peers.size(), 2u);
    for (const BlackBoxPeer& entry : read.box.peers) {
      const int peer = static_cast<int>(entry.peer.key & 0xffffffff) - 1;
      EXPECT_TRUE(peer == next || peer == previous);
      EXPECT_EQ(entry.peer.sends, peer == next ? 20u : 0u);  // 10 operations on 2 channels
      EXPECT_EQ(entry.peer.recvs, peer == previous ? 20u : 0u);
      EXPECT_EQ(entry.peer.steps, 40u);  // 2 steps each
      EXPECT_EQ(peer == next ? entry.peer.bytes_sent : entry.peer.bytes_received, 40u * 4096u);
      EXPECT_GT(entry.peer.wait_ticks[peer == next ? 0 : 3], 0u);
    }
    EXPECT_TRUE(read.box.proxies.empty());
  }
}

TEST_P(EveryApi, HangShowsTheOperationInFlightAfterKill) {
  const int api = GetParam();
  const BoxFolder folder;
  const std::string said = RunHost(
      "--ranks 3 --network --fault stuck --fault-rank 1 --fault-step 6 --seconds 0.5 --api " + std::to_string(api),
      folder, {{"TACET_BOX_KB", "512"}, {"TACET_HEARTBEAT_MS", "50"}});
  ASSERT_TRUE(Contains(said, "killed")) << said;
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 3u);
  for (const ReadBox& read : boxes) {
    EXPECT_EQ(read.box.header.end_state, box::EndState::running);
    const uint64_t issued = read.box.comms.at(0).comm.collectives;
    if (read.rank() == 1) {
      EXPECT_EQ(issued, 5u);
      EXPECT_EQ(FlightOf(read, 6), nullptr);
      continue;
    }
    EXPECT_GE(issued, 6u);
    const InFlight* flight = FlightOf(read, 6);
    ASSERT_NE(flight, nullptr);
    EXPECT_EQ(flight->host, HostStage::away);
    if (api >= 3) {
      EXPECT_EQ(flight->channels_started, 2);
    }
    EXPECT_EQ(flight->channels_finished, 0);
    ASSERT_EQ(flight->flows.size(), 4u);
    // Rank 2 receives from the stuck rank 1, rank 0 sends to it: those flows stand still at their first step.
    for (const Flow& flow : flight->flows) {
      EXPECT_EQ(flow.steps_total, 2);
      if (flow.peer.value == 1) {
        EXPECT_EQ(flow.steps_done, 0);
      }
      if (flow.peer.value == 1 && !flow.send) {
        EXPECT_EQ(flow.waiting, FlowWait::data);
      }
      if (flow.peer.value == 1 && flow.send) {
        EXPECT_EQ(flow.waiting, api >= 4 ? FlowWait::peer_credit : FlowWait::own_gpu);
      }
      EXPECT_NE(flow.waiting_since_wall_ns, kNoTime);
    }
  }
}

std::vector<ReadBox> BoxesOfFault(const std::string& fault, const BoxFolder& folder, const std::string& more = "",
                                  const char* seconds = "0.6") {
  RunHost("--ranks 3 --network --fault-rank 1 --fault-step 6 --fault " + fault + " --seconds " + seconds + " " + more,
          folder, {{"TACET_BOX_KB", "512"}, {"TACET_HEARTBEAT_MS", "50"}});
  return ReadBoxes(folder.path());
}

TEST(Fault, KernelThatNeverStartsIsOnlyOnTheGuiltyRankWithoutStart) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("gpu", folder);
  ASSERT_EQ(boxes.size(), 3u);
  for (const ReadBox& read : boxes) {
    const InFlight* flight = FlightOf(read, 6);
    ASSERT_NE(flight, nullptr);
    EXPECT_EQ(flight->host, HostStage::away);
    EXPECT_EQ(flight->channels, 2);
    EXPECT_EQ(flight->channels_started, read.rank() == 1 ? 0 : 2);
    if (read.rank() != 1) continue;
    for (const Flow& flow : flight->flows) {
      if (flow.send) {
        EXPECT_EQ(flow.waiting, FlowWait::own_gpu);
      }
    }
  }
}

TEST(Fault, HostStuckInTheLaunchSaysSo) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("launch", folder);
  ASSERT_EQ(boxes.size(), 3u);
  const InFlight* flight = FlightOf(boxes[1], 6);
  ASSERT_NE(flight, nullptr);
  EXPECT_EQ(flight->host, HostStage::in_launch);
  EXPECT_EQ(flight->channels, -1);
  ASSERT_NE(FlightOf(boxes[0], 6), nullptr);
  EXPECT_EQ(FlightOf(boxes[0], 6)->host, HostStage::away);
}

TEST(Fault, LostDataShowsAsNetworkWaitOfTheSender) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("data", folder);
  ASSERT_EQ(boxes.size(), 3u);
  const InFlight* guilty = FlightOf(boxes[1], 6);
  ASSERT_NE(guilty, nullptr);
  int waiting = 0;
  for (const Flow& flow : guilty->flows)
    if (flow.send && flow.waiting == FlowWait::network) ++waiting;
  EXPECT_EQ(waiting, 2);  // both channels
}

TEST(Fault, MissingCreditShowsAtTheSenderBeforeIt) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("credit", folder);
  ASSERT_EQ(boxes.size(), 3u);
  const InFlight* victim = FlightOf(boxes[0], 6);
  ASSERT_NE(victim, nullptr);
  for (const Flow& flow : victim->flows) {
    if (flow.send) {
      EXPECT_EQ(flow.waiting, FlowWait::peer_credit);
    }
  }
}

TEST(Fault, DeadRankHasNoOrderlyEndAndNoLaterOperation) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("dead", folder);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[1].box.header.end_state, box::EndState::running);
  EXPECT_EQ(boxes[1].stream().calls.back().seq, 5u);
  EXPECT_TRUE(boxes[1].fragment.events.empty());
  EXPECT_GE(boxes[0].fragment.pulses.at(0).last_beat_wall_ns,
            boxes[1].fragment.pulses.at(0).last_beat_wall_ns + 200'000'000);
}

TEST(Fault, FrozenRankStopsBeating) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("frozen", folder);
  ASSERT_EQ(boxes.size(), 3u);
  const int64_t silent = boxes[1].fragment.pulses.at(0).last_beat_wall_ns;
  EXPECT_GE(boxes[0].fragment.pulses.at(0).last_beat_wall_ns, silent + 200'000'000);
  EXPECT_GE(boxes[2].fragment.pulses.at(0).last_beat_wall_ns, silent + 200'000'000);
  EXPECT_EQ(boxes[0].fragment.pulses.at(0).interval_ns, 50'000'000);
}

TEST(Fault, StuckRankBeatsOn) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("stuck", folder);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_NEAR(static_cast<double>(boxes[0].fragment.pulses.at(0).last_beat_wall_ns),
              static_cast<double>(boxes[1].fragment.pulses.at(0).last_beat_wall_ns), 300e6);
}

TEST(Fault, SkippedCollectiveLeavesOneFewerIssued) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("skip", folder, "--steps 12");
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(boxes[1].box.comms.at(0).comm.collectives, 11u);
  EXPECT_EQ(boxes[0].box.comms.at(0).comm.collectives, 12u);
}

TEST(Fault, AbortWithWorkInFlightIsNoOrderlyEnd) {
  const BoxFolder folder;
  const auto boxes = BoxesOfFault("abort", folder);
  ASSERT_EQ(boxes.size(), 3u);
  // exit() ran and the communicator is finalized, so the rank ended by itself; its peers still wait.
  EXPECT_TRUE(boxes[1].fragment.pulses.at(0).ended);
  EXPECT_NE(FlightOf(boxes[0], 6), nullptr);
}

TEST(Run, SendsAndReceivesAreNumberedApartFromCollectives) {
  const BoxFolder folder;
  const std::string said = RunHost("--ranks 3 --steps 8 --network --mix p2p", folder, {{"TACET_BOX_KB", "512"}});
  ASSERT_TRUE(Contains(said, "healthy, worst exit 0")) << said;
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    EXPECT_EQ(read.box.comms.at(0).comm.collectives, 0u);
    EXPECT_EQ(read.box.comms.at(0).comm.transfers, 16u);
    ASSERT_EQ(read.stream().calls.size(), 16u);
    const Call& send = read.stream().calls[0];
    const Call& recv = read.stream().calls[1];
    EXPECT_EQ(send.kind, OpKind::send);
    EXPECT_EQ(send.peer.value, (read.rank() + 1) % 3);  // P2pApi names no peer; P2p does
    EXPECT_EQ(recv.kind, OpKind::recv);
    EXPECT_EQ(recv.peer.value, (read.rank() + 2) % 3);
    EXPECT_TRUE(send.has(kPointToPoint));
    EXPECT_EQ(recv.seq, 2u);
    EXPECT_EQ(recv.state, CallState::completed);
  }
}

TEST(Run, GraphReplaysAreOperationsAndTheCaptureIsNone) {
  const BoxFolder folder;
  const std::string said = RunHost("--ranks 2 --steps 9 --network --mix graph", folder, {{"TACET_BOX_KB", "512"}});
  ASSERT_TRUE(Contains(said, "healthy, worst exit 0")) << said;
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    ASSERT_EQ(read.stream().calls.size(), 9u);
    int captured = 0;
    std::vector<uint64_t> replayed, called;
    for (const BlackBoxOp& op : read.box.ops) {
      if ((op.op.flags & box::kOpCaptured) != 0)
        ++captured;
      else
        ((op.op.flags & box::kOpGraphReplay) != 0 ? replayed : called).push_back(op.op.seq);
    }
    EXPECT_EQ(captured, 1);
    EXPECT_EQ(replayed, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(called, (std::vector<uint64_t>{1, 2, 3}));  // whatever graphs run in between
    ASSERT_EQ(read.fragment.groups.size(), 2u);
    EXPECT_EQ(read.fragment.groups[1].replays_of, read.fragment.groups[0].comm_id);
  }
}

TEST(Run, BoxOutlivesDlcloseBetweenCommunicators) {
  const BoxFolder folder;
  const std::string said = RunHost("--ranks 2 --steps 6 --network --reopen", folder, {{"TACET_BOX_KB", "512"}});
  ASSERT_TRUE(Contains(said, "healthy, worst exit 0")) << said;
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 2u);  // one a process, not one a load
  for (const ReadBox& read : boxes) {
    EXPECT_EQ(read.fragment.groups.size(), 2u);
    EXPECT_EQ(read.stream().calls.size(), 9u);
  }
}

TEST(Run, ChannelsNeedNotStartAtZero) {
  const BoxFolder folder;
  RunHost("--ranks 2 --steps 6 --first-channel 30 --channels 3", folder, {{"TACET_BOX_KB", "512"}});
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    ASSERT_EQ(read.stream().calls.size(), 6u);
    for (const Call& call : read.stream().calls) {
      EXPECT_EQ(call.state, CallState::completed);
      EXPECT_GT(call.duration_ms, 0);
    }
  }
}

TEST(Run, KernelEventsFromAThreadOfTheirOwnComplete) {
  const BoxFolder folder;
  RunHost("--ranks 2 --steps 40 --kernel-thread --network --api 7", folder, {{"TACET_BOX_KB", "512"}});
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    ASSERT_EQ(read.stream().calls.size(), 40u);
    for (const Call& call : read.stream().calls) {
      EXPECT_EQ(call.state, CallState::completed);
    }
    EXPECT_EQ(AllDrops(read), 0u);
  }
}

}  // namespace
}  // namespace tacet::fake
