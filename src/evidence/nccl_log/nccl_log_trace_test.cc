// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_trace.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

TEST(NcclTrace, LinesOfOldAndNewReleasesAreRead) {
  NcclKernelLine line;
  ASSERT_TRUE(ParseKernelLine("## [170260.347287] [07:01] 00001f KL HWID 42300700 ncclDevFunc_x nw 4 nRanks 8", &line));
  EXPECT_EQ(line.rank, 7);
  EXPECT_EQ(line.channel, "01");
  EXPECT_EQ(line.op_count, 0x1fu);
  EXPECT_TRUE(line.starts);
  ASSERT_TRUE(ParseKernelLine("## [951297.535389] [170:00-00:00] 000020-000000 KE busId bf000 nRanks 256", &line));
  EXPECT_EQ(line.rank, 170);
  EXPECT_EQ(line.op_count, 0x20u);
  EXPECT_TRUE(line.ends);
  ASSERT_TRUE(ParseKernelLine("## [ 6628.064978] [00:00] 000035 CE AllReduceTreeLLSum_f32 nw 4", &line));
  EXPECT_FALSE(line.starts || line.ends);
  for (const char* other : {"## [1.0] [x:00] 000001 KL", "## nothing", "## [1.0] [00:00] zz KL", "## [1.0] [00:00"})
    EXPECT_FALSE(ParseKernelLine(other, &line)) << other;
}

TEST(NcclTrace, AnEndWithAnotherNumberEndsTheOldestKernelOfItsChannel) {
  NcclKernels kernels;
  NcclKernelLine line;
  for (const char* text : {"## [1.0] [00:00] 000005 KL HWID 1 f", "## [1.1] [00:00] 000006 CL f",
                           "## [1.2] [00:00] 000006 KE", "## [1.3] [00:00] 000007 KL HWID 1 f"}) {
    ASSERT_TRUE(ParseKernelLine(text, &line)) << text;
    kernels.Take(line);
  }
  uint64_t open = 0;
  ASSERT_TRUE(kernels.Open(&open));
  EXPECT_EQ(open, 7u);
  ParseKernelLine("## [1.4] [00:00] 000007 KE", &line);
  kernels.Take(line);
  EXPECT_FALSE(kernels.Open(&open));
}

TEST(NcclTrace, TheLastStartWithoutItsEndMarksItsCallAndTellsTheRank) {
  std::string text;
  for (const char* op : {"1a", "1b"})
    text += "n1:70:70 [2] NCCL INFO AllReduce: opCount " + std::string(op) +
            " sendbuff 0x1 recvbuff 0x1 count 64 datatype 7 op 0 root 0 comm 0xa1 [nranks=4] stream 0x2\n"
            "n1:70:88 [0] NCCL INFO ## [12.5] [02:00] 0000" +
            op + " KL HWID 42300700 ncclDevFunc_x\n" +
            (op == std::string("1a") ? "n1:70:88 [0] NCCL INFO ## [12.6] [02:00] 00001a KE\n" : "");
  Fragment fragment;
  ReadNcclLog({"log.txt", text, false}, fragment);
  ASSERT_EQ(fragment.streams.size(), 1u);
  ASSERT_EQ(fragment.streams[0].calls.size(), 2u);
  EXPECT_EQ(fragment.streams[0].calls[0].state, CallState::enqueued);
  EXPECT_EQ(fragment.streams[0].calls[1].state, CallState::started);
  EXPECT_FALSE(fragment.streams[0].knows_finish);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{2});
}

}  // namespace
}  // namespace tacet
