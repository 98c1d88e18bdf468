// SPDX-License-Identifier: Apache-2.0
#include "base/test_result.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(TestResult, OfATestThatDidWhatItShould) {
  EXPECT_TRUE(IsPassedTest("unit/test_memory.py::test_limit[r1] PASSED (OutOfMemoryError: CUDA out of memory)"));
  EXPECT_TRUE(IsPassedTest("[1] unit/test_ring.py::test_restart XFAIL (RuntimeError: known)"));
  EXPECT_FALSE(IsPassedTest("unit/test_memory.py::test_limit[r1] FAILED (OutOfMemoryError: CUDA out of memory)"));
  EXPECT_FALSE(IsPassedTest("RuntimeError: check PASSED to the wrong device"));
  EXPECT_FALSE(IsPassedTest(""));
}

}  // namespace
}  // namespace tacet
