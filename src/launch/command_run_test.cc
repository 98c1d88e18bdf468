// SPDX-License-Identifier: Apache-2.0
#include "launch/command_run.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(CommandRun, WhoHoldsTheOutputOpenAfterTheEndIsNotWaitedFor) {
  const CommandOutcome outcome = RunCommand({"sh", "-c", "sleep 30 & echo done; exit 3"}, {.time_ms = 20'000});
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_EQ(outcome.problem, "ended with exit code 3");
}

TEST(CommandRun, WhoStillWritesAfterTheEndIsHeard) {
  const CommandOutcome outcome = RunCommand({"sh", "-c", "(for i in 1 2 3 4; do sleep 0.3; echo $i; done) & exit 0"});
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.out, "1\n2\n3\n4\n");
}

TEST(CommandRun, WhoIsTooSlowIsEndedAndWhatItSaidIsKept) {
  const CommandOutcome outcome = RunCommand({"sh", "-c", "echo first; sleep 30; echo second"}, {.time_ms = 1500});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.out, "first\n");
  EXPECT_EQ(outcome.problem, "took longer than 1 s and was ended");
}

}  // namespace
}  // namespace tacet
