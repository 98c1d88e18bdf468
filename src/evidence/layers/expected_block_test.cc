// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/expected_block.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "evidence/layers/pasted_text.h"

namespace tacet {
namespace {

TEST(ExpectedBlock, WhatIsOnlyWishedForIsNoEvidence) {
  EXPECT_EQ(FindExpectedBlocks({"### Expected behavior", "```", "NCCL INFO Using network IB", "", "```", "and fast"}),
            (std::vector<bool>{false, false, true, false, false, false}));
  EXPECT_TRUE(HasExpectedBlock({"**Expected output:**", "```", "Error: no such rank", "```"}));
}

TEST(ExpectedBlock, TheNextHeadingEndsIt) {
  EXPECT_FALSE(HasExpectedBlock({"## Expected behavior", "It trains.", "## Logs", "```", "RuntimeError: x", "```"}));
  EXPECT_FALSE(HasExpectedBlock({"### Actual behavior", "```", "RuntimeError: x", "```"}));
  EXPECT_FALSE(HasExpectedBlock({"### Expected vs actual", "```", "RuntimeError: x", "```"}));
  EXPECT_FALSE(HasExpectedBlock({"the expected output is", "```", "RuntimeError: x", "```"}));
}

TEST(ExpectedBlock, LinesKeepTheirNumbers) {
  const std::string_view text = "# Expected behavior\n```\nstep 1\n```\n# Logs\n";
  ASSERT_EQ(FindPaste(text), Paste::expected);
  const std::string rest = UndoPaste(text, Paste::expected);
  EXPECT_EQ(rest, "# Expected behavior\n```\n\n```\n# Logs\n");
  EXPECT_EQ(FindPaste(rest), Paste::none);
}

}  // namespace
}  // namespace tacet
