// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_line.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tacet {
namespace {

struct Walked {
  NcclLogLine line;
  NcclWriter writer;
};

Walked WalkOne(std::string_view text) {
  NcclLogWalker walker(text);
  const NcclLogLine* line = walker.Next();
  if (!line) return {};
  return {*line, line->kind == NcclLineKind::message ? walker.writers()[line->writer] : NcclWriter{}};
}

NcclLineKind KindOf(std::string_view text) { return WalkOne(text).line.kind; }

TEST(NcclLogWalker, TakesAPlainPrefixApart) {
  const Walked walked = WalkOne("vm:580:581 [2] NCCL INFO cudaDriverVersion 13000\n");
  EXPECT_EQ(walked.line.kind, NcclLineKind::message);
  EXPECT_EQ(walked.line.level, NcclLevel::info);
  EXPECT_EQ(walked.writer.host, "vm");
  EXPECT_EQ(walked.writer.pid, 580);
  EXPECT_EQ(walked.line.tid, 581);
  EXPECT_EQ(walked.line.device, 2);
  EXPECT_EQ(walked.line.wall_ns, kNoStamp);
  EXPECT_EQ(walked.line.message, "cudaDriverVersion 13000");
  EXPECT_EQ(walked.line.bytes, 49u);
}

TEST(NcclLogWalker, ReadsWarningsOfOldAndNewReleases) {
  Walked walked = WalkOne("[2026-11-15 00:28:58] vm:1:2 [0] misc/socket.cc:72 NCCL WARN Connection closed\n");
  EXPECT_EQ(walked.line.level, NcclLevel::warn);
  EXPECT_EQ(walked.line.source, "misc/socket.cc:72");
  EXPECT_EQ(walked.line.message, "Connection closed");
  EXPECT_NE(walked.line.wall_ns, kNoStamp);
  walked = WalkOne("vm:1:2 [0] transport/net_ib/p2p.cc:702 (ncclIbTest) NCCL WARN Got completion\n");
  EXPECT_EQ(walked.line.source, "transport/net_ib/p2p.cc:702 (ncclIbTest)");
  EXPECT_EQ(walked.writer.pid, 1);
}

TEST(NcclLogWalker, ReadsTraceAndCall) {
  Walked walked = WalkOne("vm:1:2 [0] 1234.567890 ncclSaveKernel:99 NCCL TRACE something\n");
  EXPECT_EQ(walked.line.level, NcclLevel::trace);
  EXPECT_EQ(walked.writer.host, "vm");
  walked = WalkOne("vm:1:2 NCCL CALL ncclGroupStart()\n");
  EXPECT_EQ(walked.line.level, NcclLevel::call);
  EXPECT_EQ(walked.line.device, -1);
  EXPECT_EQ(walked.line.message, "ncclGroupStart()");
}

TEST(NcclLogWalker, StripsEveryLauncherPrefix) {
  for (const std::string_view prefix :
       {"3: ", "  3: ", "[1,3]<stdout>:", "[1,3]<stderr>: ", "[default3]:", "[rank3]:", "[rank3]: ", "(pid=1234) ",
        "(Worker pid=1234, ip=10.0.0.9) ", "[pod/trainer-3/main] ", "trainer-3 ",
        "worker-0: ", "2026-11-15T00:13:56.123456789Z ", "\x1b[32m", "\x1b[1;32m ", "50%|####    | 5/10 [00:01<00:01]",
        "loss 3.2 ", "[2026-11-15 00:15:37] "}) {
    const std::string text = std::string(prefix) + "node-01_a.b:7:8 [1] NCCL INFO Using network IB";
    const Walked walked = WalkOne(text);
    EXPECT_EQ(walked.line.kind, NcclLineKind::message) << prefix;
    EXPECT_EQ(walked.writer.host, "node-01_a.b") << prefix;
    EXPECT_EQ(walked.writer.pid, 7) << prefix;
    EXPECT_EQ(walked.line.message, "Using network IB") << prefix;
  }
}

TEST(NcclLogWalker, DropsATrailingColourCodeAndCarriageReturn) {
  EXPECT_EQ(WalkOne("vm:7:8 [1] NCCL INFO Using network IB\x1b[0m\r\n").line.message, "Using network IB");
  EXPECT_EQ(WalkOne("vm:7:8 [1] NCCL INFO a farm\n").line.message, "a farm");
}

TEST(NcclLogWalker, ReadsLinesWithoutAnyPrefix) {
  Walked walked = WalkOne("NCCL INFO Ring 00 : 0 -> 1 -> 0");
  EXPECT_EQ(walked.line.kind, NcclLineKind::message);
  EXPECT_EQ(walked.writer.pid, -1);
  EXPECT_EQ(walked.writer.host, "");
  walked = WalkOne("[rank3]: NCCL INFO Ring 00 : 0 -> 1 -> 0");
  EXPECT_EQ(walked.line.kind, NcclLineKind::message);
  EXPECT_EQ(walked.writer.label.value, 3);
  EXPECT_EQ(KindOf("the log says NCCL INFO Ring 00"), NcclLineKind::foreign);
}

TEST(NcclLogWalker, KeepsTheLastLineWithoutNewline) {
  NcclLogWalker walker("vm:7:8 [1] NCCL INFO one\nvm:7:8 [1] NCCL INFO two");
  ASSERT_NE(walker.Next(), nullptr);
  const NcclLogLine* last = walker.Next();
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->message, "two");
  EXPECT_EQ(last->number, 2u);
  EXPECT_EQ(last->offset, 25u);
  EXPECT_EQ(walker.Next(), nullptr);
}

TEST(NcclLogWalker, TellsInterleavedProcessesAndThreadsApart) {
  NcclLogWalker walker(
      "vm:7:7 [0] NCCL INFO a\nvm:7:9 [0] NCCL INFO b\nvm:8:8 [0] NCCL INFO c\nvm:7:7 [0] NCCL INFO d\nother:7:7 [0] "
      "NCCL INFO e\n");
  const std::vector<std::pair<uint32_t, int64_t>> expected = {{0, 7}, {0, 9}, {1, 8}, {0, 7}, {2, 7}};
  for (const auto& [writer, tid] : expected) {
    const NcclLogLine* line = walker.Next();
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->writer, writer);
    EXPECT_EQ(line->tid, tid);
  }
  EXPECT_EQ(walker.writers().size(), 3u);
}

TEST(NcclLogWalker, GivesEachLineItsOwnTimeWhenOnlyThatDiffers) {
  NcclLogWalker walker(
      "[2026-11-15 00:15:37.1] vm:7:7 [0] NCCL INFO a\n[2026-11-15 00:15:38.2] vm:7:7 [0] NCCL INFO b\n"
      "[2026-11-16 01:00:00.3] vm:7:7 [0] NCCL INFO c\n[2026-11-16 01:00:00.3] vm:7:7 [0] NCCL INFO d\n");
  std::vector<int64_t> times;
  while (const NcclLogLine* line = walker.Next()) times.push_back(line->wall_ns);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[1] - times[0], 1'100'000'000);
  EXPECT_EQ(times[2] - times[1], (24 * 3600 + 44 * 60 + 22) * 1'000'000'000LL + 100'000'000);
  EXPECT_EQ(times[3], times[2]);
}

TEST(NcclLogWalker, ReadsALineTheSameWhateverCameBefore) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TACET_SOURCE_DIR) + "/src/evidence/nccl_log/samples")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    NcclLogWalker walker(text);
    while (const NcclLogLine* line = walker.Next()) {
      if (line->kind == NcclLineKind::continuation) continue;
      const Walked alone = WalkOne(std::string_view(text).substr(line->offset, line->bytes));
      const std::string place = entry.path().string() + ":" + std::to_string(line->number);
      ASSERT_EQ(line->kind, alone.line.kind) << place;
      EXPECT_EQ(line->message, alone.line.message) << place;
      EXPECT_EQ(line->level, alone.line.level) << place;
      EXPECT_EQ(line->wall_ns, alone.line.wall_ns) << place;
      EXPECT_EQ(line->tid, alone.line.tid) << place;
      EXPECT_EQ(line->device, alone.line.device) << place;
      EXPECT_EQ(line->source, alone.line.source) << place;
      if (line->kind != NcclLineKind::message) continue;
      EXPECT_EQ(walker.writers()[line->writer].host, alone.writer.host) << place;
      EXPECT_EQ(walker.writers()[line->writer].pid, alone.writer.pid) << place;
    }
  }
}

TEST(NcclLogWalker, NoticesThatALabelDoesNotNumberAProcess) {
  NcclLogWalker walker("3: vm:7:7 [0] NCCL INFO a\n4: vm:7:7 [0] NCCL INFO b\n");
  while (walker.Next()) {
  }
  ASSERT_EQ(walker.writers().size(), 1u);
  EXPECT_TRUE(walker.writers()[0].label_changed);
}

TEST(NcclLogWalker, SortsOutWhatNcclDidNotWrite) {
  EXPECT_EQ(KindOf("\n"), NcclLineKind::blank);
  EXPECT_EQ(KindOf("3: \n"), NcclLineKind::blank);
  EXPECT_EQ(KindOf("NCCL version 2.27.7+cuda12.9\n"), NcclLineKind::version);
  EXPECT_EQ(KindOf("[1,0]<stdout>:NCCL version 2.27.7+cuda12.9\n"), NcclLineKind::version);
  for (const std::string_view line :
       {"[W1115 00:13:58.213686697 Utils.hpp:137] Warning: x", "[rank0]: Traceback (most recent call last):",
        "[rank0]:[E1115 00:28:58.364444881 ProcessGroupNCCL.cpp:612] [Rank 0] Collective",
        "frame #1: c10d::ProcessGroupNCCL",
        "W1115 00:13:58.213000 580 torch/distributed/run.py:852] setting OMP_NUM_THREADS",
        "  File \"/srv/train.py\", line 3, in <module>", "ncclRemoteError: A call failed",
        "[2026-11-15 00:13:58] NCCL Inspector Plugin - Version: unknown",
        "[2026-11-15 00:13:58]   NCCL_INSPECTOR_ENABLE = 1",
        "/usr/lib/python3/dist-packages/torch/x.py:2: UserWarning: y"})
    EXPECT_EQ(KindOf(line), NcclLineKind::framework) << line;
  for (const std::string_view line :
       {"epoch 3 loss 2.5", "# nThread 1 nGpus 8 minBytes 8", "vm:1 [0] NCCL INFO x", "vm:1:2 [x] NCCL INFO x",
        "{\"log\":\"vm:1:2 [0] NCCL INFO x\"}", "using NCCL_DEBUG=INFO"})
    EXPECT_EQ(KindOf(line), NcclLineKind::foreign) << line;
  // A name that somebody took out, or that was never there; NCCL before 2.3; a device and nothing else.
  for (const std::string_view line :
       {":1:2 [0] NCCL INFO x", "::1:2 [0] NCCL INFO x", "<host>:1:2 [0] NCCL INFO x",
        "vm:1:2 [0] INFO NET : Using interface eth0", "vm:1:2 [0] include/socket.h:360 WARN Call to connect failed",
        "[3] include/shm.h:28 NCCL WARN x", "init.cc:1247 NCCL WARN Mismatched collective detected"})
    EXPECT_EQ(KindOf(line), NcclLineKind::message) << line;
  EXPECT_EQ(KindOf("2026-01-01 [0] INFO text of somebody else"), NcclLineKind::foreign);
}

TEST(NcclLogWalker, ReadsTheRestOfMessagesOfSeveralLines) {
  NcclLogWalker walker(
      "vm:7:7 [0] NCCL INFO Enabled NCCL Func/Proto/Algo Matrix:\n     Function |       LL     LL128    Simple   |\n"
      "    Broadcast |        1         0         0   |\n\nvm:7:7 [0] NCCL INFO x\n    Broadcast |        1         "
      "0\n");
  using Kind = NcclLineKind;
  for (const Kind kind :
       {Kind::message, Kind::continuation, Kind::continuation, Kind::blank, Kind::message, Kind::foreign}) {
    const NcclLogLine* line = walker.Next();
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->kind, kind) << line->number;
  }
}

TEST(NcclLogWalker, DoesNotRememberProcessesWithoutEnd) {
  std::string text;
  for (int pid = 0; pid < (1 << 17) + 100; ++pid) text += "h:" + std::to_string(pid) + ":1 [0] NCCL INFO x\n";
  NcclLogWalker walker(text);
  size_t foreign = 0;
  while (const NcclLogLine* line = walker.Next()) foreign += line->kind == NcclLineKind::foreign ? 1 : 0;
  EXPECT_EQ(walker.writers().size(), size_t{1} << 17);
  EXPECT_EQ(foreign, 100u);
}

}  // namespace
}  // namespace tacet
