// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/store_wait_finding.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

// Three ranks that print; those in `waiters` give up a wait in the store.
Incident WaitingInStore(const std::vector<int32_t>& waiters, const StoreWait& wait) {
  Incident incident;
  incident.processes.resize(3);
  incident.world_size = 3;
  for (int32_t r = 0; r < 3; ++r) {
    incident.processes[static_cast<size_t>(r)].rank = Rank{r};
    incident.process_of[Rank{r}] = static_cast<uint32_t>(r);
    Event& begun = incident.events.emplace_back();
    begun.kind = EventKind::process_started;
    begun.rank = Rank{r};
    begun.speaker = static_cast<uint32_t>(r);
    begun.Make<ProcessStart>().world_size = 3;
  }
  for (const int32_t r : waiters) {
    Event& event = incident.events.emplace_back();
    event.kind = EventKind::store_wait_timeout;
    event.rank = Rank{r};
    event.speaker = static_cast<uint32_t>(r);
    event.text = "wait timeout";
    event.Make<StoreWait>() = wait;
  }
  return incident;
}

StoreWait OwnKey() {
  StoreWait wait;
  wait.timeout_ms = 15'000;
  wait.own_key = "tokenizer";
  return wait;
}

StoreWait GroupKey() {
  StoreWait wait;
  wait.timeout_ms = 15'000;
  wait.of_group = true;
  return wait;
}

TEST(StoreWait, TheOnlyRankThatDoesNotWaitHasToWriteTheKey) {
  const Finding finding = JudgedCase(WaitingInStore({1, 2}, OwnKey())).Only("rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, std::vector<Rank>{Rank{0}});
  EXPECT_NE(finding.headline.find("for the key 'tokenizer'"), std::string::npos) << finding.headline;
}

TEST(StoreWait, OneThatPrintsLineAfterLineWorksTooLong) {
  Incident incident = WaitingInStore({1, 2}, OwnKey());
  LogOutline& outline = incident.outlines.emplace_back();
  for (uint32_t i = 1; i < 5; ++i) {
    OwnLine line;
    line.rank = 0;
    line.shape = 7;
    line.text = "merges " + std::to_string(i);
    line.source.line = i;
    outline.own_lines.push_back(line);
  }
  EXPECT_EQ(JudgedCase(std::move(incident)).Verdict().cause, "timeout-too-short");
}

TEST(StoreWait, WhereTwoDoNotWaitOrTheOneFailedNobodyIsNamed) {
  EXPECT_FALSE(JudgedCase(WaitingInStore({1}, OwnKey())).Fires("rank-stuck-on-host"));
  Incident failed = WaitingInStore({1, 2}, OwnKey());
  Event& error = failed.events.emplace_back();
  error.kind = EventKind::exception;
  error.rank = Rank{0};
  error.speaker = 0;
  error.text = "no such file";
  error.Make<Raised>().type = "OSError";
  EXPECT_FALSE(JudgedCase(std::move(failed)).Fires("rank-stuck-on-host"));
}

TEST(StoreWait, ARankThatAloneCreatesAGroupIsNamed) {
  const Finding finding = JudgedCase(WaitingInStore({0}, GroupKey())).Only("init-mismatch");
  EXPECT_EQ(finding.ranks, std::vector<Rank>{Rank{0}});
  EXPECT_FALSE(JudgedCase(WaitingInStore({0, 1}, GroupKey())).Fires("init-mismatch")) << "rank 2 may be missing";
}

}  // namespace
}  // namespace tacet
