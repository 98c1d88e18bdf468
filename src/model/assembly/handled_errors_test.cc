// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/handled_errors.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tacet
