// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/nccl_warning_ranks.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

std::optional<WarningRanks> RanksOf(std::string_view message) {
  return ParseWarningRanks(ClassifyWarning(message), message);
}

TEST(WarningRanks, AreThoseThatTheMessageNames) {
  const auto versions = RanksOf("Mismatched NCCL version detected : rank 3 version 22809 rank 17 version 22707");
  ASSERT_TRUE(versions);
  EXPECT_EQ(versions->first, 3);
  EXPECT_EQ(versions->second, 17);
  ASSERT_TRUE(RanksOf("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60"));
}

TEST(WarningRanks, OfACutOrAnotherMessageThereAreNone) {
  EXPECT_FALSE(RanksOf("Mismatched NCCL version detected : rank 3 version 22809"));
  EXPECT_FALSE(RanksOf("Mismatched NCCL version detected : rank 3 version 22809 rank 99999999999 version 2"));
  EXPECT_FALSE(RanksOf("Bootstrap : no socket interface found"));
}

TEST(NcclVersionWords, ReadsBothWaysOfCounting) {
  EXPECT_EQ(NcclVersionWords(22005), "2.20.5");
  EXPECT_EQ(NcclVersionWords(21803), "2.18.3");
  EXPECT_EQ(NcclVersionWords(2708), "2.7.8");
  EXPECT_EQ(NcclVersionWords(-1), "");
  EXPECT_EQ(NcclVersionWords(7), "");
}

}  // namespace
}  // namespace tacet
