// SPDX-License-Identifier: Apache-2.0
// Ends and waits that launchers and stores tell of: horovodrun, Open MPI's daemons, torchrun's rendezvous, c10d.
#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(TorchLogToldEnds, HorovodsLauncherTellsWhichProcessEndedFirst) {
  const std::string raised =
      "  File \"/opt/lib/python3.6/site-packages/horovod/runner/gloo_run.py\", line 318, in launch_gloo_elastic\n"
      "    .format(name=name, code=exit_code))\n"
      "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to "
      "be terminated. The first process to do so was:\n";
  const Fragment elastic = ReadText(raised + "Process name: worker-2[0]\nExit code: 137\n", "a.log");
  const Event end = OneEvent(elastic, EventKind::process_exited);
  EXPECT_EQ(end.As<ProcessEnd>().code, -9);
  EXPECT_FALSE(end.rank.known());
  ASSERT_NE(end.speaker, kNobody);
  EXPECT_EQ(elastic.speakers[end.speaker].host, "worker-2");
  EXPECT_TRUE(EventsOf(elastic, EventKind::exception).empty()) << "the launcher raised it, and no rank";
  const Fragment fixed = ReadText(raised + "Process name: 3\nExit code: 1\n", "a.log");
  EXPECT_EQ(OneEvent(fixed, EventKind::process_exited).rank, Rank{3});
}

TEST(TorchLogToldEnds, AStatusAbove128IsASignal) {
  const Fragment log = ReadText("Process 2 exit with status code 139.\n", "a.log");
  const Event end = OneEvent(log, EventKind::process_exited);
  EXPECT_EQ(end.As<ProcessEnd>().code, -11);
  EXPECT_EQ(end.rank, Rank{2});
  EXPECT_TRUE(EventsOf(ReadText("Process 2 exit with status code 0.\n", "a.log"), EventKind::process_exited).empty());
}

TEST(TorchLogToldEnds, HorovodsTimeStandsBeforeTheLabel) {
  const Fragment log = ReadText("Thu Jan 23 09:12:31 2020[4]<stderr>:Segmentation fault (core dumped)\n", "a.log");
  const Event end = OneEvent(log, EventKind::process_exited);
  EXPECT_EQ(RankOf(log, end), Rank{4});
}

TEST(TorchLogToldEnds, ADaemonOfTheLauncherIsNoRank) {
  const Fragment lost = ReadText(
      "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[40117,0],0] on node b2201\n"
      "  Remote daemon: [[40117,0],9] on node b2218\n",
      "a.log");
  const Event event = OneEvent(lost, EventKind::connection_lost);
  EXPECT_EQ(event.As<LostPeer>().kind, PeerKind::daemon);
  EXPECT_EQ(event.As<LostPeer>().address, "b2218");
  const auto ends = [](std::string_view name) {
    return EventsOf(ReadText("  Process name: " + std::string(name) + "\n  Exit code:    3\n", "a.log"),
                    EventKind::process_exited)
        .size();
  };
  EXPECT_EQ(ends("[[56171,1],6]"), 1u);
  EXPECT_EQ(ends("[[56171,0],6]"), 0u);
}

constexpr std::string_view kLost =
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. "
    "See inner exception for details.\n";

TEST(TorchLogToldEnds, AnAgentThatRanLosesTheStoreAndOneThatStartsCannotReachIt) {
  const std::string runs = "    num_nodes_waiting = rdzv_handler.num_nodes_waiting()\n    self._state_holder.sync()\n";
  const Fragment lost = ReadText(runs + std::string(kLost), "a.log");
  EXPECT_EQ(OneEvent(lost, EventKind::store_lost).As<LostPeer>().kind, PeerKind::rendezvous);
  EXPECT_TRUE(EventsOf(lost, EventKind::store_unreachable).empty());
  const Fragment start = ReadText("    store = spec.rdzv_handler.next_rendezvous()\n" + std::string(kLost), "a.log");
  EXPECT_TRUE(EventsOf(start, EventKind::store_lost).empty());
  EXPECT_EQ(EventsOf(start, EventKind::store_unreachable).size(), 1u);
}

TEST(TorchLogToldEnds, TheAddressOfAStoreMayStandWithoutParentheses) {
  const Fragment log = ReadText(
      "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to 192.0.2.1:1234\n",
      "a.log");
  const Event event = OneEvent(log, EventKind::store_unreachable);
  EXPECT_EQ(event.As<StoreUnreachable>().address, "192.0.2.1:1234");
  EXPECT_EQ(event.As<StoreUnreachable>().timeout_ms, 60'000);
}

std::string SocketWait(std::string_view words) {
  return "[rank1]:[W519 08:12:44.410772102 socket.cpp:464] [c10d] waitForInput: " + std::string(words) + "\n";
}

TEST(TorchLogToldEnds, AWaitInTheStoreThatReachesItsLimitNamesTheBarBesideIt) {
  const std::string socket = "SocketImpl(fd=79, addr=[localhost]:38812, remote=[localhost]:29500)";
  const std::string bar = "Tokenizing (num_proc=64):  90%|####5 | 318204/352610 [29:57<13:44, 41.73 examples/s]";
  const std::string text = bar + SocketWait("poll for socket " + socket + " returned 0, likely a timeout") +
                           SocketWait("socket " + socket + " timed out after 1800000ms");
  const Event event = OneEvent(ReadText(text, "a.log"), EventKind::store_wait_timeout);
  EXPECT_EQ(event.As<StoreWait>().timeout_ms, 1'800'000);
  EXPECT_EQ(event.As<StoreWait>().bar, "Tokenizing (num_proc=64):  90%");
  // The exception behind it tells the same in better words.
  const std::string raised =
      text + "[rank1]: torch.distributed.DistStoreError: wait timeout after 1800000ms, keys: /k\n";
  const Event told = OneEvent(ReadText(raised, "a.log"), EventKind::store_wait_timeout);
  EXPECT_EQ(told.As<StoreWait>().keys, "/k");
  // Who trains on has survived it.
  const std::string steps = "[rank1]: step 1 loss 2\n[rank1]: step 2 loss 2\n[rank1]: step 3 loss 2\n";
  EXPECT_TRUE(EventsOf(ReadText(text + steps, "a.log"), EventKind::store_wait_timeout).empty());
}

}  // namespace
}  // namespace tacet
