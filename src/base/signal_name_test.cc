// SPDX-License-Identifier: Apache-2.0
#include "base/signal_name.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tacet {
namespace {

TEST(SignalName, IsThatOfThisSystemAndReadBackByBothNames) {
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(SIGXCPU), "SIGXCPU");
  EXPECT_EQ(SignalName(63), "");
  for (const SignalNames& one : AllSignals()) {
    EXPECT_EQ(SignalNumber(one.name), one.number);
    EXPECT_EQ(SignalNumber(one.shell), one.shell.empty() ? 0 : one.number);
  }
  EXPECT_EQ(SignalNumber("SIGSEGV(11)."), 11);
  EXPECT_EQ(SignalNumber("SIGNONE"), 0);
  EXPECT_EQ(SignalNumber(""), 0);
}

}  // namespace
}  // namespace tacet
