// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_place.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(ToldPlace, WhereAJobStandsIsToldBehindAPreposition) {
  EXPECT_EQ(PlaceOfStop("it hangs at the first weight sync (16 GPUs)"), "at the first weight sync");
  EXPECT_EQ(PlaceOfStop("stuck right at the start, more info:"), "right at the start");
  EXPECT_EQ(PlaceOfStop("Both stop at \"Started server with target: grpc://10.0.0.1:81.\" (resp. .22). Port?"),
            "at \"Started server with target: grpc://10.0.0.1:81.\"");
  EXPECT_EQ(PlaceOfStop("In loader.py it stays in `iter = super().__iter__()`, further down"),
            "in `iter = super().__iter__()`");
  EXPECT_EQ(PlaceOfStop("hangs without NCCL_P2P_DISABLE=1"), "without NCCL_P2P_DISABLE=1");
}

TEST(ToldPlace, WhatIsDeniedOrSaidOfTheWriterIsNoPlace) {
  for (const char* line :
       {"It does not hang on one node", "It hangs. Nothing is printed.", "hangs when I use two nodes",
        "hangs with main", "it never hangs at the barrier", "the job just hangs"})
    EXPECT_EQ(PlaceOfStop(line), "") << line;
}

TEST(ToldPlace, ALoaderIsNamedWhereTheJobStands) {
  EXPECT_TRUE(StopsInLoader("it hangs in the DataLoader with num_workers=8"));
  EXPECT_FALSE(StopsInLoader("the DataLoader has 8 workers"));
  EXPECT_FALSE(StopsInLoader("it hangs in all_reduce"));
}

}  // namespace
}  // namespace tacet
