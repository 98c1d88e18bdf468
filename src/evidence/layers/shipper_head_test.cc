// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/shipper_head.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/layers/csv_log.h"
#include "evidence/layers/text_layers.h"

namespace tacet {
namespace {

std::string Inner(std::string_view text) {
  const auto layer = TakeOffLayer(text, size_t{1} << 20);
  return layer ? layer->text : "none";
}

TEST(ShipperHead, TakesTheHeadOfASyslogOff) {
  const std::string log =
      "<14>1 2026-11-15T00:20:00Z node7 train 77 - - step 1\n"
      "<14>1 2026-11-15T00:20:01Z node7 train 77 - [m a=\"b\"] step 2\n"
      "<3>1 2026-11-15T00:20:02Z node7 kernel - - - NVRM: Xid\n";
  EXPECT_EQ(FindShipperHead(log), ShipperHead::rfc5424);
  EXPECT_EQ(Inner(log), "step 1\nstep 2\n2026-11-15T00:20:02Z node7 kernel: NVRM: Xid\n");
}

TEST(ShipperHead, TakesRecordsOutOfFluentdsLines) {
  EXPECT_EQ(Inner("2026-11-15T00:20:00+00:00\tkube.a\t{\"log\":\"step \\\"1\\\"\",\"stream\":\"stdout\"}\n"),
            "step \"1\"\n");
}

TEST(ShipperHead, TellsPodsOfLokiApart) {
  EXPECT_EQ(Inner("2026-11-15T00:20:00+01:00 {pod=\"a-0\"} x\n2026-11-15T00:20:00+01:00 {pod=\"a-1\"} y\n"),
            "[pod/a-0/x] x\n[pod/a-1/x] y\n");
  EXPECT_EQ(Inner("2026-11-15T00:20:00+01:00 {app=\"t\", pod=\"a-0\"} x\n"), "x\n");
}

TEST(ShipperHead, ANameInFrontReturns) {
  EXPECT_EQ(Inner("2026-11-15T00:20:00.1Z job/a/1 x\n2026-11-15T00:20:00.2Z job/a/1 y\n"), "x\ny\n");
  EXPECT_EQ(Inner("2026-11-15T00:20:00.1Z step-1 done\n2026-11-15T00:20:00.2Z step-2 done\n"), "none");
  EXPECT_EQ(Inner("node-1  | a\nnode-2  | b\nnode-1  | c\nnode-2  | d\n"),
            "[pod/node-1/x] a\n[pod/node-2/x] b\n[pod/node-1/x] c\n[pod/node-2/x] d\n");
  EXPECT_EQ(Inner("loss | 2.5\nloss | 2.4\nloss | 2.3\n"), "none") << "a table of the job itself";
}

TEST(ShipperHead, AHostInFrontIsNoProgram) {
  EXPECT_EQ(Inner("worker-0: a\nworker-1: b\nworker-0: c\nworker-1: d\n"),
            "[pod/worker-0/x] a\n[pod/worker-1/x] b\n[pod/worker-0/x] c\n[pod/worker-1/x] d\n");
  EXPECT_EQ(Inner("10.0.0.12: a\n10.0.0.12:   b\n"), "a\n  b\n");
  for (const std::string_view text :
       {"srun: a\nsrun: b\n", "3: a\n3: b\n", "step1: a\nstep2: b\n", "rank0: a\nrank0: b\n"})
    EXPECT_EQ(Inner(text), "none") << text;
}

TEST(ShipperHead, ATaskOfHydraIsHandedOnAsMpirunsTag) {
  EXPECT_EQ(Inner("[0] a\n[1] b\n[0]   c\n[1] d\n"),
            "[1,0]<stdout>:a\n[1,1]<stdout>:b\n[1,0]<stdout>:  c\n[1,1]<stdout>:d\n");
  EXPECT_EQ(Inner("[1] a book\n[2] another\n"), "none");
}

TEST(ShipperHead, TakesKeysAndTimesOff) {
  EXPECT_EQ(Inner("time=\"2026-11-15T00:20:00Z\" level=info msg=\"step \\\"1\\\"\" pod=a\n"), "step \"1\"\n");
  EXPECT_EQ(Inner("Nov 15 00:20:00 [rank0]: a\nNov 15 00:20:01 [rank0]: b: c\n"), "[rank0]: a\n[rank0]: b: c\n");
  EXPECT_EQ(Inner("Nov 15 00:20:00 node7 kernel: a\nNov 15 00:20:01 node7 kernel: b\n"), "none");
}

TEST(ShipperHead, TakesRawTextOutOfSplunks) {
  EXPECT_EQ(Inner("11/15/2026 00:20:00.000 -0800 host=n7 source=/a sourcetype=t _raw=\"step \\\"1\\\"\"\n"),
            "step \"1\"\n");
}

TEST(CsvLog, TakesTheColumnOfLines) {
  const std::string table = "Date,Host,Message\n\"t\",\"n\",\"a, \"\"b\"\"\"\nt,n,c\n";
  EXPECT_TRUE(IsCsvLog(table));
  EXPECT_EQ(Inner(table), "\na, \"b\"\nc\n") << "each at the number of its row";
  EXPECT_FALSE(IsCsvLog("Date,Loss\n1,2\n"));
  EXPECT_FALSE(IsCsvLog("message\nhello, world\n"));
  EXPECT_FALSE(IsCsvLog("a message, a host\nno row\n"));
  for (size_t size = 0; size < table.size(); ++size) TakeCsvLines(table.substr(0, size), 1000);
}

TEST(TextLayers, OrdinaryTextHasNone) {
  for (const std::string_view text :
       {"", "\n", "step 1\nstep 2\n", "vm:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n",
        "[2026-11-15 00:20:00] loss 3\n", "2026-11-15T00:20:00.123Z step 1\n",
        "| epoch | loss |\n|---|---|\n| 1 | 2 |\n", "a\n    b\n    c\n", "{\"loss\": 2.5}\n"})
    EXPECT_FALSE(HasLayer(text)) << text;
}

TEST(ShipperHead, AJobsNameBeforeBarsReturns) {
  EXPECT_EQ(Inner("5b7e-11aa || Process 2 exit\n5b7e-11aa ||   File x\n5b7e-11aa ||\n"),
            "Process 2 exit\n  File x\n\n");
  EXPECT_EQ(Inner("make || exit 1\ncd build || exit 1\n"), "none") << "a shell's or";
}

}  // namespace
}  // namespace tacet
