// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/output_front.h"

#include <gtest/gtest.h>

#include <functional>

#include "analysis/testing/job_sketch.h"

namespace tacet {
namespace {

// "step 4": the word is the shape, all of it the place.
OwnLine Line(int32_t rank, const std::string& text) {
  const std::hash<std::string> hash;
  return {rank, false, hash(text), hash(text.substr(0, text.find(' '))), 1, text, {}, {}, {}};
}

Incident Printed(int32_t world, const std::vector<std::pair<int32_t, std::string>>& lines) {
  JobSketch job(world);
  job.GiveOutputs();
  Incident incident = job.Finish();
  LogOutline& outline = incident.outlines.emplace_back();
  for (const auto& [rank, text] : lines) outline.own_lines.push_back(Line(rank, text));
  return incident;
}

std::vector<std::pair<int32_t, std::string>> OnAll(int32_t world, const std::vector<std::string>& texts) {
  std::vector<std::pair<int32_t, std::string>> lines;
  for (const std::string& text : texts)
    for (int32_t rank = 0; rank < world; ++rank) lines.emplace_back(rank, text);
  return lines;
}

OutputFront::Kind KindOf(const Incident& incident) { return FindOutputFront(ReadPrintedLines(incident)).kind; }

TEST(OutputFront, ARankWithoutTheLineThatAllOthersPrintLags) {
  auto lines = OnAll(4, {"step 1", "step 2"});
  for (const int32_t rank : {0, 1, 3}) lines.emplace_back(rank, "step 3");
  const Incident incident = Printed(4, lines);
  const OutputFront front = FindOutputFront(ReadPrintedLines(incident));
  EXPECT_EQ(front.kind, OutputFront::Kind::lags);
  EXPECT_EQ(front.rank, Rank{2});
  ASSERT_NE(front.other, nullptr);
  EXPECT_EQ(front.other->text, "step 3");
}

TEST(OutputFront, ALineThatTheRankNeverPrintsShowsNoLag) {
  auto lines = OnAll(4, {"step 1", "step 2"});
  for (const int32_t rank : {0, 1, 3}) lines.emplace_back(rank, "summary of rows");
  EXPECT_EQ(KindOf(Printed(4, lines)), OutputFront::Kind::apart);
}

TEST(OutputFront, TheOnlyRankWithTheNextLineLeads) {
  auto lines = OnAll(3, {"step 1", "step 2"});
  lines.emplace_back(1, "step 3");
  const Incident incident = Printed(3, lines);
  const OutputFront front = FindOutputFront(ReadPrintedLines(incident));
  EXPECT_EQ(front.kind, OutputFront::Kind::leads);
  EXPECT_EQ(front.rank, Rank{1});
}

TEST(OutputFront, TheOnlyRankWithALineOfItsOwnIsElsewhere) {
  auto lines = OnAll(3, {"step 1", "step 2"});
  lines.emplace_back(0, "writes the table");
  const Incident incident = Printed(3, lines);
  const OutputFront front = FindOutputFront(ReadPrintedLines(incident));
  EXPECT_EQ(front.kind, OutputFront::Kind::elsewhere);
  EXPECT_EQ(front.rank, Rank{0});
}

TEST(OutputFront, RanksThatCountDifferentlyAreApartByTheirLastLines) {
  std::vector<std::pair<int32_t, std::string>> lines;
  for (int32_t step = 1; step < 4; ++step)
    for (int32_t rank = 0; rank < 3; ++rank)
      lines.emplace_back(rank, "step " + std::to_string(rank == 1 ? 2 * step : 4 * step + 1));
  for (const int32_t rank : {0, 2}) lines.emplace_back(rank, "trained");
  const Incident incident = Printed(3, lines);
  const OutputFront front = FindOutputFront(ReadPrintedLines(incident));
  EXPECT_EQ(front.kind, OutputFront::Kind::apart);
  EXPECT_EQ(front.rank, Rank{1});
}

TEST(OutputFront, RanksAtOneLineAreEven) {
  EXPECT_EQ(KindOf(Printed(3, OnAll(3, {"step 1", "step 2"}))), OutputFront::Kind::none);
}

TEST(OutputFront, TwoRanksThatLagAreNotOne) {
  auto lines = OnAll(4, {"step 1", "step 2"});
  for (const int32_t rank : {0, 1}) lines.emplace_back(rank, "step 3");
  EXPECT_EQ(KindOf(Printed(4, lines)), OutputFront::Kind::none);
}

TEST(OutputFront, ARankWithoutOutputForbidsIt) {
  std::vector<std::pair<int32_t, std::string>> lines;
  for (const std::string text : {"step 1", "step 2"})
    for (const int32_t rank : {0, 1, 2}) lines.emplace_back(rank, text);
  for (const int32_t rank : {0, 1}) lines.emplace_back(rank, "step 3");
  EXPECT_EQ(KindOf(Printed(4, lines)), OutputFront::Kind::none);
}

TEST(OutputFront, AFileThatEndsWithinALineTellsNothingOfItsRank) {
  JobSketch job(3);
  job.GiveOutputs();
  Incident incident = job.Finish();
  for (int32_t rank = 0; rank < 3; ++rank) {
    LogOutline& outline = incident.outlines.emplace_back();
    for (const std::string text : {"step 1", "step 2", "step 3"})
      if (rank != 2 || text != "step 3") outline.own_lines.push_back(Line(rank, text));
  }
  EXPECT_TRUE(FindOutputFront(ReadPrintedLines(incident)));
  incident.outlines.back().cut_end = true;
  EXPECT_FALSE(FindOutputFront(ReadPrintedLines(incident)));
}

}  // namespace
}  // namespace tacet
