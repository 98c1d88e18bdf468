// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/earlier_attempts.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tacet {
namespace {

Fragment Output(std::string path, uint64_t understood, std::string raised = "") {
  Fragment fragment;
  fragment.path = std::move(path);
  fragment.format = "torch_log";
  fragment.bytes.total = 100;
  fragment.bytes.understood = understood;
  if (raised.empty()) return fragment;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::exception;
  event.Make<Raised>().type = std::move(raised);
  return fragment;
}

TEST(EarlierAttempts, TheNewestAttemptIsTheJob) {
  std::vector<Fragment> fragments;
  fragments.push_back(Output("run/attempt_0/2/stderr.log", 50, "MemoryError"));
  fragments.push_back(Output("run/attempt_0/1/stderr.log", 0));
  fragments.push_back(Output("run/attempt_1/2/stderr.log", 50));
  SetEarlierAttemptsAside(fragments);
  EXPECT_TRUE(fragments[0].events.empty());
  EXPECT_EQ(fragments[0].bytes.understood, 0u);
  EXPECT_EQ(fragments[0].path, "run/attempt_0/2/stderr.log");
  ASSERT_EQ(fragments[2].earlier_runs.size(), 1u);
  EXPECT_EQ(fragments[2].earlier_runs[0].restarts, 1);
  EXPECT_EQ(fragments[2].earlier_runs[0].end, "rank 2 had raised MemoryError in attempt 0");
  ASSERT_EQ(fragments[0].diagnostics.size(), 1u);
}

TEST(EarlierAttempts, AnAttemptThatWroteNothingDoesNotHideTheOneThatFailed) {
  std::vector<Fragment> fragments;
  fragments.push_back(Output("run/attempt_0/2/stderr.log", 50, "MemoryError"));
  fragments.push_back(Output("run/attempt_1/2/stderr.log", 0));
  SetEarlierAttemptsAside(fragments);
  EXPECT_EQ(fragments[0].events.size(), 1u);
  EXPECT_TRUE(fragments[1].earlier_runs.empty());
}

TEST(EarlierAttempts, RunsAreNotMixed) {
  std::vector<Fragment> fragments;
  fragments.push_back(Output("node0/attempt_0/0/stderr.log", 50, "MemoryError"));
  fragments.push_back(Output("node1/attempt_1/0/stderr.log", 50));
  SetEarlierAttemptsAside(fragments);
  EXPECT_EQ(fragments[0].events.size(), 1u);
}

}  // namespace
}  // namespace tacet
