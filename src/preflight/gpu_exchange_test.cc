// SPDX-License-Identifier: Apache-2.0
#include "preflight/gpu_exchange.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(GpuExchange, ReadsTheAverageOfNcclTests) {
  EXPECT_DOUBLE_EQ(ParseAverageBusBandwidth("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 341.271 \n#\n"),
                   341.271e9);
  EXPECT_EQ(ParseAverageBusBandwidth("# Avg bus bandwidth    : \n"), 0);
  EXPECT_EQ(ParseAverageBusBandwidth(""), 0);
}

TEST(GpuExchange, ReadsItsOwnLineAmongOthers) {
  GpuExchange exchange;
  ASSERT_TRUE(ParseExchangeLine("NCCL version 2.27.3\ntacet-gpu-exchange 23.5 1.5e+11\n", &exchange));
  EXPECT_DOUBLE_EQ(exchange.small_us, 23.5);
  EXPECT_DOUBLE_EQ(exchange.bus_bytes_per_s, 1.5e11);
  EXPECT_FALSE(ParseExchangeLine("tacet-gpu-exchange 23.5", &exchange));
}

TEST(GpuExchange, OneGpuHasNobodyToTalkTo) {
  EXPECT_FALSE(RunGpuExchange({"python3", 1, 0, 1}).error.empty());
  EXPECT_FALSE(RunGpuExchange({"", 100000, 0, 100000}).error.empty());
}

}  // namespace
}  // namespace tacet
