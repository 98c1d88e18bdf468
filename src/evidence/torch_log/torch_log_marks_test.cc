// SPDX-License-Identifier: Apache-2.0
// Who a line is about where the rank does not stand at its front.
#include "evidence/torch_log/torch_log_prefix.h"
#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

std::string Bar(int blocks) {
  std::string bar = " 47%|";
  for (int i = 0; i < blocks; ++i) bar += "\xe2\x96\x88";
  return bar + "    | 470/1000 [12:03<13:41,  1.55s/it]";
}

TEST(RankMarks, AreFoundBehindABarOfAnyLength) {
  for (const int blocks : {0, 10, 14, 40, 120}) {
    const std::string line = Bar(blocks) + "[rank7]:[E ProcessGroupNCCL.cpp:1182] text";
    const LinePrefix prefix = SplitPrefix(line, {});
    EXPECT_EQ(prefix.rank, 7) << blocks;
    EXPECT_EQ(prefix.severity, 'E') << blocks;
    EXPECT_EQ(prefix.text, "text") << blocks;
  }
}

TEST(RankMarks, ABarAloneStaysALine) {
  const std::string line = Bar(40) + "  ";
  const LinePrefix prefix = SplitPrefix(line, {});
  EXPECT_TRUE(prefix.bar.empty());
  EXPECT_EQ(prefix.text, line);
  EXPECT_EQ(SplitPrefix("memory 91%| full, see /var/log [1] and so on", {}).text,
            "memory 91%| full, see /var/log [1] and so on");
}

TEST(RankMarks, TheBarBeforeAnErrorIsProgress) {
  const Fragment fragment = ReadText(Bar(40) + "Traceback (most recent call last):\n" +
                                         "  File \"/a/train.py\", line 3, in main\n" + "ValueError: no\n",
                                     "out.txt");
  EXPECT_EQ(OneEvent(fragment, EventKind::progress).As<Progress>().step, 470);
  EXPECT_EQ(OneEvent(fragment, EventKind::exception).As<Raised>().type, "ValueError");
}

TEST(RankMarks, AMessageThatBeginsWithARankIsThatRanks) {
  const auto rank_of = [](std::string_view line) {
    return OneEvent(ReadText(std::string(line) + "\n", "out.txt"), EventKind::exception).rank.value;
  };
  EXPECT_EQ(rank_of("AssertionError: Rank 11: found NaN in local grad norm"), 11);
  EXPECT_EQ(rank_of("RuntimeError: Rank 12, node n-041, device 4, iteration 80: Unexpected result nan"), 12);
  EXPECT_EQ(rank_of("RuntimeError: [Rank:6] FATAL ERROR :: graph"), 6);
  EXPECT_EQ(rank_of("ValueError: Rank 3 tensors have no shape"), -1) << "the rank of a tensor";
  EXPECT_EQ(rank_of("ValueError: rank 2, expected 4"), -1);
}

TEST(RankMarks, AWorkersLabelTellsItsRankWhereNothingElseIsNumbered) {
  const auto rank_of = [](std::string_view label) {
    const Fragment fragment = ReadText(std::string(label) + " ValueError: no shard\n", "out.txt");
    return RankOf(fragment, OneEvent(fragment, EventKind::exception)).value;
  };
  EXPECT_EQ(rank_of("(VllmWorker rank=1 pid=2445)"), 1);
  EXPECT_EQ(rank_of("(Worker_TP3 pid=812)"), 3);
  EXPECT_EQ(rank_of("(Worker_DP1_TP3 pid=812)"), -1);
  EXPECT_EQ(rank_of("(EngineCore pid=812)"), -1);
}

TEST(RankMarks, AnAbortedCommunicatorNamesItsRank) {
  const Fragment fragment = ReadText(
      "RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: [Rank 3] Watchdog "
      "caught "
      "collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600200 "
      "milliseconds before timing out.\n",
      "out.txt");
  EXPECT_EQ(RankOf(fragment, OneEvent(fragment, EventKind::watchdog_timeout)).value, 3);
}

TEST(RankMarks, AnErrorToldTwiceIsOneRanksIfOnlyOneGivesItsName) {
  const std::string_view nameless = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n\n";
  const auto named = [](int rank) {
    return "[E ProcessGroupNCCL.cpp:916] [Rank " + std::to_string(rank) +
           "] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered\n";
  };
  const auto first_owner = [](const Fragment& fragment) {
    return EventsOf(fragment, EventKind::cuda_error).front()->rank.value;
  };
  EXPECT_EQ(first_owner(ReadText(std::string(nameless) + named(1), "out.txt")), 1);
  EXPECT_EQ(first_owner(ReadText(std::string(nameless) + named(1) + named(4), "out.txt")), -1);
}

TEST(Debugger, ItsAnswersAreNoErrorsOfTheProgram) {
  EXPECT_EQ(OneEvent(ReadText("*** RuntimeError: bad archive\n", "out.txt"), EventKind::exception).As<Raised>().type,
            "RuntimeError");
  const Fragment session = ReadText("(Pdb) p lsos\n*** NameError: name 'lsos' is not defined\n(Pdb) c\n", "out.txt");
  EXPECT_TRUE(EventsOf(session, EventKind::exception).empty());
}

TEST(Traceback, TwoProcessesThatPrintAtOnceRaiseOneType) {
  const Event event = OneEvent(ReadText("ValueErrorValueError: : bad shape\n", "out.txt"), EventKind::exception);
  EXPECT_EQ(event.As<Raised>().type, "ValueError");
  EXPECT_EQ(event.text, "bad shape");
}

TEST(Summary, IsReadWithoutItsIndentation) {
  const Event end =
      OneEvent(ReadText("host      : gn-4\nrank      : 5 (local_rank: 1)\nexitcode  : -11 (pid: 66)\n", "o"),
               EventKind::process_exited);
  EXPECT_EQ(end.rank.value, 5);
  EXPECT_EQ(end.As<ProcessEnd>().code, -11);
  const Fragment settings = ReadText("backend   : nccl\nrank      : 3\nworld     : 8\n", "train.log");
  EXPECT_TRUE(EventsOf(settings, EventKind::process_exited).empty());
}

constexpr std::string_view kStall =
    "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for "
    "remainder of ranks for more than 60 seconds.";

TEST(HorovodStall, BothWordsForTheMissingRanksAreRead) {
  for (const char* word : {"Missing ranks:", "Stalled ranks:"}) {
    const Event report = OneEvent(ReadText("[1,0]<stderr>:" + std::string(kStall) + "\n[1,0]<stderr>:" + word +
                                               "\n[1,0]<stderr>:6: [horovod_allreduce.0, horovod_allreduce.1 ...]\n",
                                           "out.txt"),
                                  EventKind::desync_report);
    EXPECT_EQ(report.ranks, std::vector<Rank>{Rank{6}}) << word;
    EXPECT_EQ(report.op, OpKind::all_reduce);
    EXPECT_EQ(report.As<DesyncReport>().tensor, "horovod_allreduce.0");
    EXPECT_EQ(report.source.line, 3u);  // the line that names somebody
  }
}

TEST(HorovodStall, WhoIsReadyWaits) {
  const Event report = OneEvent(
      ReadText(std::string(kStall) + " Stalled ops: allreduce.stem.weight [ready ranks: 0, 3, 1, 5]\n", "out.txt"),
      EventKind::desync_report);
  EXPECT_EQ(report.ranks, (std::vector<Rank>{Rank{2}, Rank{4}}));
  EXPECT_EQ(report.As<DesyncReport>().waiting, (std::vector<Rank>{Rank{0}, Rank{1}, Rank{3}, Rank{5}}));
}

TEST(HorovodStall, IsOverWhereTheJobGoesOn) {
  std::string text = std::string(kStall) + "\nMissing ranks:\n1: [allreduce.fc2.weight]\n";
  EXPECT_EQ(EventsOf(ReadText(text, "out.txt"), EventKind::desync_report).size(), 1u);
  for (int step = 10; step < 22; ++step) text += "step " + std::to_string(step) + " loss 2.0\n";
  EXPECT_TRUE(EventsOf(ReadText(text, "out.txt"), EventKind::desync_report).empty());
}

TEST(DesyncReport, WhoStartedTheOperationWaitsInIt) {
  const Event report =
      OneEvent(ReadText("[E ProcessGroupNCCL.cpp:587] \n"
                        "\t - [1] Timeout at collective: ALLREDUCE, #210\n"
                        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                        "\t   - [2] finished collective #209, but didn't join collective #210 (count from 1)\n"
                        "\t - Snapshot of ranks' latest states:\n"
                        "\t   #209 finished ranks:\n\t     [2] finished ALLREDUCE\n"
                        "\t   #210 started ranks:\n\t     [0,1,3] started ALLREDUCE\n",
                        "out.txt"),
               EventKind::desync_report);
  EXPECT_EQ(report.ranks, std::vector<Rank>{Rank{2}});
  EXPECT_EQ(report.As<DesyncReport>().waiting, (std::vector<Rank>{Rank{0}, Rank{1}, Rank{3}}));
  EXPECT_EQ(report.source.line, 4u);
}

TEST(Launcher, DeepSpeedNamesTheCommandThatItStartedLast) {
  const auto local_rank = [](int rank) {
    const std::string text =
        "[2023-05-22 18:03:44,204] [ERROR] [launch.py:434:sigkill_handler] ['python', '-u', 'x.py', '--local_rank=" +
        std::to_string(rank) + "', '--deepspeed'] exits with return code = -9\n";
    return OneEvent(ReadText(text, "out.txt"), EventKind::process_exited).As<ProcessEnd>().local_rank;
  };
  EXPECT_EQ(local_rank(0), 0);   // there is no other
  EXPECT_EQ(local_rank(3), -1);  // any of four
}

TEST(Launcher, MindSporesSchedulerNamesWhoTimedOut) {
  const std::string head =
      "[ERROR] ME(88112:2814,MainProcess):2025-02-03-16:21:07.911.000 [_api.py:431] Time out nodes";
  EXPECT_EQ(OneEvent(ReadText(head + " are ['5']\n", "out.txt"), EventKind::process_exited).rank, Rank{5});
  EXPECT_TRUE(EventsOf(ReadText(head + " are []\n", "out.txt"), EventKind::process_exited).empty());
}

}  // namespace
}  // namespace tacet
