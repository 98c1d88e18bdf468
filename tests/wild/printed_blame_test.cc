// SPDX-License-Identifier: Apache-2.0
// Jobs over gloo, of which nothing is kept but what they print: whom the others waited for, and that nobody is named
// where the same lines come from a job that does well.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "evidence/load.h"
#include "report/make_report.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTimeUp =
    "[./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 7000ms for recv operation to complete";
constexpr const char* kPeerGone = "[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:24774";
constexpr const char* kOtherSize =
    "[enforce fail at ./gloo/transport/tcp/address.cc:45] sizeof(impl_) == bytes.size(). 136 vs 204";

using Files = std::map<std::string, std::string>;

ReportVerdict VerdictOf(const Files& files) {
  std::string name = (fs::temp_directory_path() / "tacet_blame_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  for (const auto& [file, text] : files) std::ofstream(fs::path(name) / file) << text;
  auto loaded = LoadEvidence({name}, {});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  const ReportVerdict verdict = MakeReport(std::move(loaded->fragments)).verdict;
  fs::remove_all(name);
  return verdict;
}

std::string Traceback(const std::string& error, int line = 24, const std::string& call = "") {
  return "Traceback (most recent call last):\n  File \"/srv/lm.py\", line 56, in <module>\n    main()\n"
         "  File \"/srv/lm.py\", line " +
         std::to_string(line) + ", in main\n    work()\n" +
         (call.empty()
              ? "  File \"/usr/lib/python3/dist-packages/torch/_tensor.py\", line 488, in backward\n"
                "    torch.autograd.backward(\n"
              : "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 1159, in " +
                    call + "\n    work.wait()\n") +
         "RuntimeError: " + error + "\n";
}

std::string Mark(const std::string& style, int rank) {
  return style == "worker" ? "worker " + std::to_string(rank) + ": " : "[rank " + std::to_string(rank) + "] ";
}

// What all ranks print before anything happens.
std::string Steps(const std::string& style, int ranks) {
  std::string text;
  for (int step = 0; step < 16; step += 4)
    for (int rank = 0; rank < ranks; ++rank)
      text += Mark(style, (rank + step / 4) % ranks) + "iter " + std::to_string(step) + " loss 0.4022\n";
  return text;
}

std::string OwnSteps(int rank) {
  std::string text;
  for (int step = 0; step < 16; step += 4)
    text += "[rank " + std::to_string(rank) + "] iter " + std::to_string(step) + " loss 0.4022\n";
  return text;
}

// torchrun's list of those that failed.
std::string Summary(const std::vector<int>& failed) {
  std::string text = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: " +
                     std::to_string(failed.front()) + " (pid: " + std::to_string(900 + failed.front()) +
                     ") of binary: /usr/bin/python3\n"
                     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                     "============================================================\nlm.py FAILED\n"
                     "------------------------------------------------------------\nFailures:\n";
  for (size_t i = failed.size(); i-- > 0;) {
    if (i == 0)
      text += "------------------------------------------------------------\nRoot Cause (first observed failure):\n";
    text += "[" + std::to_string(i) + "]:\n  time      : 2026-11-19_13:02:50\n  host      : localhost\n  rank      : " +
            std::to_string(failed[i]) + " (local_rank: " + std::to_string(failed[i]) +
            ")\n  exitcode  : 1 (pid: " + std::to_string(900 + failed[i]) + ")\n  error_file: <N/A>\n";
  }
  return text + "============================================================\n";
}

TEST(PrintedBlame, WhoIsNotOnTheLaunchersListLeftFirst) {
  for (const std::string style : {"rank", "worker"}) {
    const std::string text = Steps(style, 3) + Mark(style, 2) + "epoch done\n" + Traceback(kPeerGone) +
                             Traceback(kPeerGone) + Summary({0, 1});
    const ReportVerdict verdict = VerdictOf({{"console.log", text}});
    EXPECT_EQ(verdict.cause, "rank-dead") << style;
    EXPECT_EQ(verdict.ranks, std::vector<int>{2}) << style << verdict.headline;
  }
}

TEST(PrintedBlame, WhereAllLostAPeerNobodyIsNamed) {
  const std::string text =
      Steps("rank", 3) + Traceback(kPeerGone) + Traceback(kPeerGone) + Traceback(kPeerGone) + Summary({0, 1, 2});
  EXPECT_TRUE(VerdictOf({{"console.log", text}}).ranks.empty());
}

TEST(PrintedBlame, WhoSaysThatItIsDoneLeftTheOthersThatLostIt) {
  const Files files = {{"rank0.log", OwnSteps(0) + Traceback(kPeerGone)},
                       {"rank1.log", OwnSteps(1) + "[rank 1] done\n"},
                       {"rank2.log", OwnSteps(2) + Traceback(kPeerGone)}};
  const ReportVerdict verdict = VerdictOf(files);
  EXPECT_EQ(verdict.cause, "rank-dead");
  EXPECT_EQ(verdict.ranks, std::vector<int>{1}) << verdict.headline;
}

TEST(PrintedBlame, WhereAllSayThatTheyAreDoneNobodyLeft) {
  const Files files = {{"rank0.log", OwnSteps(0) + "[rank 0] done\n"},
                       {"rank1.log", OwnSteps(1) + "[rank 1] done\n"},
                       {"rank2.log", OwnSteps(2) + "[rank 2] done\n"}};
  const ReportVerdict verdict = VerdictOf(files);
  EXPECT_TRUE(verdict.ranks.empty()) << verdict.headline;
}

TEST(PrintedBlame, WhoPrintsOnWhileTheOthersWaitIsWaitedFor) {
  const std::string begin = Steps("rank", 3) + "[rank 0] evaluating on 200 batches\n[rank 0] eval batch 0/200\n";
  const std::string text = begin + Traceback(kTimeUp) + Traceback(kTimeUp) + "[rank 0] eval batch 50/200\n" +
                           "[rank 0] eval batch 100/200\n" +
                           "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 900 closing signal "
                           "SIGTERM\n" +
                           Summary({1, 2});
  const ReportVerdict verdict = VerdictOf({{"console.log", text}});
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_EQ(verdict.cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.ranks, std::vector<int>{0}) << verdict.headline;
}

TEST(PrintedBlame, WhoLosesTheOthersAfterTheirTimeWasUpCameLate) {
  const Files files = {{"rank0.log", OwnSteps(0) + Traceback(kTimeUp)},
                       {"rank1.log", OwnSteps(1) + Traceback(kTimeUp)},
                       {"rank2.log", OwnSteps(2) + Traceback(kPeerGone)}};
  const ReportVerdict verdict = VerdictOf(files);
  EXPECT_EQ(verdict.status, Status::hang);
  EXPECT_EQ(verdict.cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.ranks, std::vector<int>{2}) << verdict.headline;
}

// In a circle of sends whose time is not quite up loses those whose time is.
TEST(PrintedBlame, InACircleOfReceivesNobodyIsNamed) {
  const Files files = {{"rank0.log", OwnSteps(0) + Traceback(kTimeUp, 24, "recv")},
                       {"rank1.log", OwnSteps(1) + Traceback(kTimeUp, 24, "recv")},
                       {"rank2.log", OwnSteps(2) + Traceback(kPeerGone, 24, "recv")}};
  EXPECT_TRUE(VerdictOf(files).ranks.empty());
}

TEST(PrintedBlame, WhoWaitsInAnotherOperationThanAllOthersIsNamed) {
  const auto verdict_of = [](const std::string& call) {
    return VerdictOf({{"rank0.log", OwnSteps(0) + Traceback(kTimeUp, 24, "all_reduce")},
                      {"rank1.log", OwnSteps(1) + Traceback(kTimeUp, 31, "broadcast")},
                      {"rank2.log", OwnSteps(2) + Traceback(kPeerGone, 24, call)}});
  };
  EXPECT_EQ(verdict_of("all_reduce").cause, "collective-mismatch-operation");
  EXPECT_EQ(verdict_of("all_reduce").ranks, std::vector<int>{1});
  EXPECT_TRUE(verdict_of("barrier").ranks.empty()) << "each in its own";
}

std::string Settings(int rank, int world) {
  const std::string label = std::to_string(rank) + ": ";
  return label + "args: rank=" + std::to_string(rank) + " world_size=" + std::to_string(world) +
         " dist_url=tcp://127.0.0.1:23184\n";
}

std::string LabelledSetup(int rank) {
  const std::string label = std::to_string(rank) + ": ";
  return label + "Traceback (most recent call last):\n" + label + "  File \"/srv/hosts.py\", line 9, in <module>\n" +
         label + "    main()\n" + label + "  File \"/srv/hosts.py\", line 5, in main\n" + label +
         "    dist.init_process_group(\"gloo\", rank=R, world_size=world)\n" + label +
         "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 761, in "
         "init_process_group\n" +
         label + "    pg = ProcessGroupGloo(prefix_store, group_rank, group_size, timeout=timeout)\n" + label +
         "RuntimeError: " + kOtherSize + "\n";
}

TEST(PrintedBlame, AWorldOfAnotherSizeExplainsWhyTheGroupIsNotSetUp) {
  const std::string errors = LabelledSetup(0) + LabelledSetup(1) + LabelledSetup(2);
  const ReportVerdict verdict = VerdictOf({{"slurm.out", Settings(2, 4) + Settings(1, 3) + Settings(0, 3) + errors}});
  EXPECT_EQ(verdict.cause, "environment-differs");
  EXPECT_EQ(verdict.ranks, std::vector<int>{2}) << verdict.headline;
  const ReportVerdict same = VerdictOf({{"slurm.out", Settings(2, 3) + Settings(1, 3) + Settings(0, 3) + errors}});
  EXPECT_NE(same.cause, "environment-differs") << same.headline;
}

std::string Starts(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks)
    text += "2026-11-19 12:58:27,90" + std::to_string(rank) + " 2481" + std::to_string(rank) + " INFO starting rank " +
            std::to_string(rank) + " of 4\n";
  return text;
}

TEST(PrintedBlame, OfFourThatStartTheOneWithoutALineIsMissing) {
  const ReportVerdict verdict = VerdictOf({{"train.log", Starts({3, 0, 1})}});
  EXPECT_EQ(verdict.status, Status::undetermined);
  EXPECT_EQ(verdict.cause, "init-rank-missing");
  EXPECT_EQ(verdict.ranks, std::vector<int>{2}) << verdict.headline;
}

TEST(PrintedBlame, WhoStartsIsNotMissing) {
  EXPECT_TRUE(VerdictOf({{"train.log", Starts({3, 0, 1, 2})}}).ranks.empty());
  EXPECT_TRUE(VerdictOf({{"train.log", Starts({3})}}).ranks.empty()) << "the lines of most ranks were not collected";
  std::string on = Starts({3, 0, 1});
  for (int step = 0; step < 40; step += 10)
    on += "2026-11-19 12:58:29,000 24813 INFO step " + std::to_string(step) + " loss 0.41\n";
  EXPECT_TRUE(VerdictOf({{"train.log", on}}).ranks.empty()) << "the job goes on, so that all are there";
}

std::string Dump(const std::string& thread, const std::string& function, int line, const std::string& library) {
  return "Timeout (0:00:20)!\nThread 0x00007f" + thread + " (most recent call first):\n" + library +
         "  File \"/srv/tokens.py\", line " + std::to_string(line) + " in " + function +
         "\n  File \"/srv/tokens.py\", line 90 in main\n  File \"/srv/tokens.py\", line 99 in <module>\n";
}

constexpr const char* kInBarrier =
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 3152 in barrier\n";
constexpr const char* kInSend =
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 1159 in send\n";

TEST(PrintedBlame, TheStackThatDiffersIsThatOfTheRankThatSaysItWaits) {
  const std::string begin = "rank 0: joined\nrank 1: joined\nrank 2: joined\n";
  const std::string stacks = Dump("fdfc73eb2c0", "acquire_cache", 70, "") +
                             Dump("676035a2c00", "cached_tokens", 80, kInBarrier) +
                             Dump("d2a24572c00", "cached_tokens", 80, kInBarrier);
  const std::string waits = "rank 2: another process holds tokens.cache.lock, waiting\n";
  const ReportVerdict verdict =
      VerdictOf({{"console.log", begin + waits + stacks +
                                     "Traceback (most recent call last):\n  File "
                                     "\"/srv/tokens.py\", line 99, in <module>\n    main()\nKeyboardInterrupt\n"}});
  EXPECT_EQ(verdict.cause, "rank-stuck-on-host");
  EXPECT_EQ(verdict.ranks, std::vector<int>{2}) << verdict.headline;
  // A timer wrote them in the middle of a job that goes on.
  const ReportVerdict on =
      VerdictOf({{"console.log", begin + waits + stacks + "rank 0: epoch 1\nrank 1: epoch 1\n" +
                                     "rank 2: epoch 1\nrank 0: epoch 2\nrank 1: epoch 2\nrank 2: epoch 2\n"}});
  EXPECT_TRUE(on.ranks.empty()) << on.headline;
}

std::string Turns(const std::string& words, const std::string& peer, const std::string& last) {
  std::string text;
  for (int turn = 0; turn < 4; ++turn)
    text += "turn " + std::to_string(turn) + ": " + words + " 5 chunks " + peer + "\nturn " + std::to_string(turn) +
            ": done\n";
  return text + "turn 4: " + words + " " + last + " chunks " + peer + "\n";
}

TEST(PrintedBlame, WhoSendsMoreThanTheOtherExpectsIsNamed) {
  const auto files = [](const std::string& sent) {
    return Files{
        {"worker.0.out", Turns("sending", "to rank 1", sent) + Dump("222554c2c00", "send_chunks", 31, kInSend)},
        {"worker.1.out", Turns("expecting", "from rank 0", "5") + Dump("29edcb32c00", "chunked", 54, kInBarrier)}};
  };
  const ReportVerdict verdict = VerdictOf(files("7"));
  EXPECT_EQ(verdict.cause, "p2p-unmatched");
  EXPECT_EQ(verdict.ranks, std::vector<int>{0}) << verdict.headline;
  EXPECT_NE(VerdictOf(files("5")).cause, "p2p-unmatched");
}

}  // namespace
}  // namespace tacet
