// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/handled_errors.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tacet {
namespace {

Event Error(int32_t rank, std::string type, uint32_t line) {
  Event event;
  event.kind = EventKind::exception;
  event.rank = Rank{rank};
  auto& raised = event.Make<Raised>();
  raised.type = std::move(type);
  raised.place = {"load", "train.py", line};
  return event;
}

Incident WhereRankZeroSurvived() {
  Incident incident;
  Raised raised;
  raised.type = "FileNotFoundError";
  raised.place = {"load", "train.py", 40};
  incident.survived.push_back({raised, "FileNotFoundError: a"});
  return incident;
}

TEST(HandledErrors, WhatOneRankSurvivedTheOthersDoAsWell) {
  Incident incident = WhereRankZeroSurvived();
  incident.events = {Error(1, "FileNotFoundError", 40), Error(2, "FileNotFoundError", 40)};
  ForgiveHandledErrors(incident);
  EXPECT_TRUE(incident.events.empty());
  EXPECT_EQ(incident.diagnostics.size(), 2u);
}

TEST(HandledErrors, AnotherPlaceOrAnotherTypeIsAnotherError) {
  Incident incident = WhereRankZeroSurvived();
  incident.events = {Error(1, "FileNotFoundError", 41), Error(2, "KeyError", 40)};
  ForgiveHandledErrors(incident);
  EXPECT_EQ(incident.events.size(), 2u);
}

TEST(HandledErrors, WhereAProcessEndedBadlyNothingIsForgiven) {
  Incident incident = WhereRankZeroSurvived();
  Event end;
  end.kind = EventKind::process_exited;
  end.rank = Rank{1};
  end.Make<ProcessEnd>().code = 1;
  incident.events = {Error(1, "FileNotFoundError", 40), end};
  ForgiveHandledErrors(incident);
  EXPECT_EQ(incident.events.size(), 2u);
}

// A process whose main thread stands in `functions`, innermost first, in a stack at line 50.
Incident WithAStackOf(std::vector<std::string> functions) {
  Incident incident;
  incident.processes.resize(1);
  std::vector<Frame> frames;
  for (const std::string& function : functions)
    frames.push_back({incident.strings.Intern(function), incident.strings.Intern("train.py"), 7});
  ThreadStack thread;
  thread.is_main = true;
  thread.source.line = 50;
  thread.stack = incident.stacks.Intern(std::move(frames));
  incident.threads.push_back(std::move(thread));
  Event error = Error(0, "ValueError", 40);
  error.speaker = 0;
  error.source.line = 20;
  incident.events.push_back(error);
  return incident;
}

TEST(HandledErrors, AStackOfTheMainThreadBehindAnErrorShowsThatItWasCaught) {
  Incident incident = WithAStackOf({"train_step", "<module>"});
  ForgiveHandledErrors(incident);
  EXPECT_TRUE(incident.events.empty());
  ASSERT_EQ(incident.survived.size(), 1u);
  EXPECT_EQ(incident.survived[0].speaker, 0u);
}

TEST(HandledErrors, AStackBeforeTheErrorOrOfTheEndOfAProcessDoesNot) {
  Incident earlier = WithAStackOf({"train_step", "<module>"});
  earlier.threads[0].source.line = 10;
  Incident ends = WithAStackOf({"_shutdown", "<module>"});
  Incident bare = WithAStackOf({"run", "_bootstrap"});
  Incident timed = WithAStackOf({"train_step", "<module>"});
  timed.threads[0].timer_s = 30;
  for (Incident* incident : {&earlier, &ends, &bare, &timed}) {
    ForgiveHandledErrors(*incident);
    EXPECT_EQ(incident->events.size(), 1u);
    EXPECT_TRUE(incident->survived.empty());
  }
}

}  // namespace
}  // namespace tacet
