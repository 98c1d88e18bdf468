// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/said_end.h"

#include <gtest/gtest.h>

#include <utility>

namespace tacet {
namespace {

Incident OutputOf(size_t files) {
  Incident incident;
  for (size_t i = 0; i < files; ++i) {
    InputFile file{"train.log", "torch_log", Rank{}, {}, kNoTime, false};
    file.bytes.understood = 100;
    incident.files.push_back(std::move(file));
  }
  return incident;
}

Event& At(Incident& incident, EventKind kind, uint32_t line, uint32_t file = 0) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = {FileId{file}, line, 0};
  return event;
}

void Finish(Incident& incident, uint32_t line, bool of_job, uint32_t file = 0) {
  auto& finish = At(incident, EventKind::process_finished, line, file).Make<ProcessFinish>();
  finish.said = true;
  finish.of_job = of_job;
}

void ErrorLine(Incident& incident, uint32_t line) {
  LogOutline outline;
  outline.errors = 1;
  outline.last_error = {FileId{0}, line, 0};
  incident.outlines.push_back(std::move(outline));
}

void TwoRanks(Incident& incident) {
  for (int i = 0; i < 2; ++i) incident.processes.emplace_back().rank = Rank{i};
}

TEST(SaidEnd, TheOneOutputEndsWithTheWord) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, false);
  const SaidEnd said = FindSaidEnd(incident);
  ASSERT_TRUE(said);
  EXPECT_EQ(said.last->source.line, 9U);
  EXPECT_FALSE(said.of_job);
  EXPECT_EQ(said.errors, 0);
}

TEST(SaidEnd, ErrorsThatStepsFollowWereSurvived) {
  Incident incident = OutputOf(1);
  TwoRanks(incident);
  At(incident, EventKind::unread_error, 5);
  ErrorLine(incident, 6);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, false);
  const SaidEnd said = FindSaidEnd(incident);
  ASSERT_TRUE(said);
  EXPECT_EQ(said.errors, 1);
}

TEST(SaidEnd, AStepThatSlurmEndsBehindTheWordIsHarmless) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, true);
  auto& end = At(incident, EventKind::scheduler_kill, 10).Make<OutsideEnd>();
  end.why = SchedulerKill::cancelled;
  end.by = "step";
  EXPECT_TRUE(FindSaidEnd(incident));
  incident.events.back().source.line = 8;
  EXPECT_TRUE(FindSaidEnd(incident)) << "the program went on to its end";
  incident.events.back().source.line = 10;
  incident.events.back().Make<OutsideEnd>().why = SchedulerKill::time_limit;
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, AnErrorBehindTheLastStepIsNotSurvived) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  ErrorLine(incident, 8);
  Finish(incident, 9, false);
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, TheWholeJobMayEndWellBehindAnError) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  ErrorLine(incident, 8);
  Finish(incident, 9, true);
  EXPECT_TRUE(FindSaidEnd(incident).of_job);
  ErrorLine(incident, 11);
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, StepsBehindTheWordMakeItOneOfAPhase) {
  Incident incident = OutputOf(1);
  Finish(incident, 6, false);
  At(incident, EventKind::progress, 7);
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, OfOutputsOfRanksTheWordIsNotEnough) {
  Incident incident = OutputOf(2);
  TwoRanks(incident);
  for (uint32_t file = 0; file < 2; ++file) {
    At(incident, EventKind::progress, 7, file);
    Finish(incident, 9, false, file);
  }
  EXPECT_FALSE(FindSaidEnd(incident));
  Incident whole = OutputOf(2);
  TwoRanks(whole);
  for (uint32_t file = 0; file < 2; ++file) Finish(whole, 9, true, file);
  EXPECT_TRUE(FindSaidEnd(whole).of_job);
}

TEST(SaidEnd, OneRankAmongOthersDoesNotSpeakForTheJob) {
  Incident incident = OutputOf(1);
  TwoRanks(incident);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, false);
  incident.events.back().rank = Rank{1};
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, AllRanksInOneOutputSpeakForTheJob) {
  const auto said = [](int ranks) {
    Incident incident = OutputOf(1);
    TwoRanks(incident);
    incident.world_size = 2;
    At(incident, EventKind::progress, 7);
    for (int rank = 0; rank < ranks; ++rank) {
      Finish(incident, 9 + static_cast<uint32_t>(rank), false);
      incident.events.back().rank = Rank{rank};
    }
    return static_cast<bool>(FindSaidEnd(incident));
  };
  EXPECT_TRUE(said(2));
  EXPECT_FALSE(said(1));
}

TEST(SaidEnd, WhoeverTellsOfTroubleIsBelieved) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, false);
  At(incident, EventKind::told_slow, 12);
  EXPECT_FALSE(FindSaidEnd(incident));
}

TEST(SaidEnd, ConnectionsMayCloseBehindIt) {
  Incident incident = OutputOf(1);
  At(incident, EventKind::progress, 7);
  Finish(incident, 9, true);
  At(incident, EventKind::store_lost, 10);
  EXPECT_TRUE(FindSaidEnd(incident));
}

}  // namespace
}  // namespace tacet
