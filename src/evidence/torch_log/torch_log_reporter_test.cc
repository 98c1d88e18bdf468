// SPDX-License-Identifier: Apache-2.0
// Who reports: "[Rank 4]" in a message, "[RANK:0]" of a logger, "(RANK 2)" of an exception that is passed on; and lines
// that are an error's whatever they say.
#include <algorithm>

#include "evidence/torch_log/torch_log_prefix.h"
#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

std::string Timeout(int rank) {
  return "[E ProcessGroupNCCL.cpp:475] [Rank " + std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, NumelIn=100, "
         "NumelOut=800, Timeout(ms)=1800000) ran for 1800044 milliseconds before timing out.\n";
}

TEST(TorchLogReporter, TheRankInAMessageIsBelievedBeforeTheNumberOfAFile) {
  for (const char* path : {"007.txt", "paste_7.log", "train.log"}) {
    const Fragment log = ReadText(Timeout(4), path);
    const Event event = OneEvent(log, EventKind::watchdog_timeout);
    EXPECT_EQ(RankOf(log, event), Rank{4}) << path;
    EXPECT_EQ(event.As<WatchdogTimeout>().elements, 100);
    EXPECT_EQ(event.As<WatchdogTimeout>().elements_out, 800);
  }
}

TEST(TorchLogReporter, ANameThatSaysRankIsBelievedBeforeAMessage) {
  const Fragment log = ReadText(Timeout(1), "rank_5.log");  // 1 counts within a group
  EXPECT_EQ(RankOf(log, OneEvent(log, EventKind::watchdog_timeout)), Rank{5});
}

TEST(TorchLogReporter, SeveralRanksOfOneFileAreToldApart) {
  const Fragment log = ReadText(Timeout(0) + Timeout(7), "002.txt");
  const auto events = EventsOf(log, EventKind::watchdog_timeout);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(RankOf(log, *events[0]), Rank{0});
  EXPECT_EQ(RankOf(log, *events[1]), Rank{7});
}

TEST(TorchLogReporter, TheLastWordOfAProcessNamesItsRank) {
  const Fragment log = ReadText(
      "terminate called after throwing an instance of 'c10::DistBackendError'\n"
      "  what():  [Rank 4] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error "
      "encountered\n",
      "9.txt");
  const auto errors = EventsOf(log, EventKind::cuda_error);
  ASSERT_FALSE(errors.empty());
  EXPECT_EQ(RankOf(log, *errors[0]), Rank{4});
}

bool Fails(const Fragment& log, int32_t rank) {
  return std::any_of(log.speakers.begin(), log.speakers.end(),
                     [&](const Speaker& speaker) { return speaker.rank == Rank{rank} && speaker.fails; });
}

TEST(TorchLogReporter, ALineOfAnErrorIsOneAlsoWhereItIsCut) {
  const std::string head = "[rank4]:[E427 21:06:40.340571148 ";
  EXPECT_TRUE(Fails(ReadText(Timeout(1) + head + "ProcessGroupNCCL.cpp", "a.log"), 4));
  EXPECT_TRUE(Fails(ReadText(Timeout(1) + head + "ProcessGroupNCCL.cpp:616] [Rank 4] Watch", "a.log"), 4));
  EXPECT_FALSE(Fails(ReadText(Timeout(1) + "[rank4]:[W427 21:06:40.340571148 ProcessGroupNCCL.cpp:1] x", "a.log"), 4));
}

TEST(TorchLogReporter, WhoTrainsOnAfterAnErrorLineDoesNotFail) {
  const std::string log =
      "[rank0]:[E427 21:06:40.340571148 socket.cpp:1019] [c10d] The client socket has timed out\n"
      "[rank0]: step 10 loss 1.0\n[rank0]: step 11 loss 1.0\n[rank0]: step 12 loss 1.0\n";
  EXPECT_FALSE(Fails(ReadText(log, "a.log"), 0));
}

TEST(TorchLogReporter, ALoggerNamesTheRankAmongOtherMarks) {
  EXPECT_EQ(RankInHead("[INFO] [axolotl.train:483] [PID:41207] [RANK:3] text"), 3);
  EXPECT_EQ(RankInHead("[RANK:0] text"), 0);
  EXPECT_EQ(RankInHead("see [RANK:0] in the log"), -1);
  EXPECT_EQ(RankInHead("[INFO] the line with [RANK:0] in it"), -1);
  EXPECT_EQ(RankInHead("[RANK:x] text"), -1);
}

TEST(TorchLogReporter, AnExceptionThatIsPassedOnIsOfTheRankThatRaisedIt) {
  const std::string frames =
      "[rank3]:   File \"/srv/train/load.py\", line 54, in load\n[rank3]:     plan = planner.create_local_plan()\n";
  const std::string head = "[rank3]: Traceback (most recent call last):";
  EXPECT_EQ(OneEvent(ReadText(head + " (RANK 2)\n" + frames, "a.log"), EventKind::exception).rank, Rank{2});
  const std::string whole = head + " (RANK 2)\n" + frames + "[rank3]: RuntimeError: Missing key in state_dict: x.\n";
  EXPECT_EQ(OneEvent(ReadText(whole, "a.log"), EventKind::exception).rank, Rank{2});
  EXPECT_FALSE(OneEvent(ReadText(head + "\n" + frames, "a.log"), EventKind::exception).rank.known());
}

TEST(TorchLogReporter, ATracebackThatIsCutInALibraryIsAnErrorAllTheSame) {
  const std::string head = "[rank1]: Traceback (most recent call last):\n";
  const std::string library = "[rank1]:   File \"/opt/lib/python3.11/site-packages/trl/cli.py\", line 61, in main\n";
  EXPECT_EQ(EventsOf(ReadText(head + library, "a.log"), EventKind::exception).size(), 1u);
  // horovodrun and torchrun only tell of the processes that they watch.
  const std::string launcher =
      "Traceback (most recent call last):\n"
      "  File \"/opt/lib/python3.6/site-packages/horovod/run/run.py\", line 900, in run_commandline\n";
  EXPECT_TRUE(EventsOf(ReadText(launcher, "a.log"), EventKind::exception).empty());
}

}  // namespace
}  // namespace tacet
