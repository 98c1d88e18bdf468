// SPDX-License-Identifier: Apache-2.0
#include "evidence/run_record/run_record_parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "evidence/format.h"

namespace tacet {
extern const Format kRunRecordFormat;
namespace {

std::string ReadSample(const std::string& name) {
  std::ifstream file(std::string(TACET_SOURCE_DIR) + "/src/evidence/run_record/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Fragment Read(std::string_view bytes) {
  Fragment out;
  kRunRecordFormat.read({"watch.json", bytes}, out);
  return out;
}

TEST(RunRecord, TellsWhoWasStoppedAndSinceWhen) {
  const std::string text = ReadSample("watch.json");
  const Fragment out = Read(text);
  ASSERT_EQ(out.speakers.size(), 4u);
  EXPECT_EQ(out.speakers[2].host, "node7");
  EXPECT_EQ(out.speakers[2].world_size, 4);
  ASSERT_EQ(out.sights.size(), 1u);
  EXPECT_EQ(out.sights[0].rank, Rank{2});
  EXPECT_EQ(out.sights[0].state, TaskState::stopped);
  EXPECT_EQ(out.sights[0].source.line, 4u);
  EXPECT_EQ(out.sights[0].since_wall_ns, 1794771301000000000);
  EXPECT_EQ(out.pulses.size(), 4u);
  EXPECT_EQ(out.bytes.understood, text.size());
}

TEST(RunRecord, MakesAStandstillTheEventOfAWatchdog) {
  const Fragment out = Read(ReadSample("watch.json"));
  ASSERT_EQ(out.events.size(), 1u);
  EXPECT_EQ(out.events[0].kind, EventKind::watchdog_timeout);
  EXPECT_EQ(out.events[0].As<WatchdogTimeout>().timeout_ms, 30000);
}

TEST(RunRecord, ALookThatDecidedNothingIsNoEvent) {
  EXPECT_TRUE(Read(R"({"schema":"tacet.watch.v1","processes":[{"rank":0,"pid":1,"state":"running"}]})").events.empty());
}

TEST(RunRecord, LeavesThePulseToABox) {
  const Fragment out = Read(
      R"({"schema":"tacet.watch.v1","looked_wall_ns":9,"processes":[{"rank":0,"pid":1,"state":"stopped","running_until_wall_ns":5,"box":true}]})");
  EXPECT_TRUE(out.pulses.empty());
  EXPECT_EQ(out.sights.size(), 1u);
}

TEST(RunRecord, BelievesNoImpossibleRank) {
  const Fragment out =
      Read(R"({"schema":"tacet.watch.v1","world_size":2147483648,"processes":[{"rank":99999999999,"pid":1}]})");
  ASSERT_EQ(out.speakers.size(), 1u);
  EXPECT_EQ(out.speakers[0].rank_certainty, Certainty::none);
  EXPECT_EQ(out.speakers[0].world_size, -1);
}

TEST(RunRecord, KnowsOurOwnAnswersAndReadsNothingFromThem) {
  const std::string answer = R"({"schema":"tacet.report.v1","verdict":{"status":"hang"}})";
  EXPECT_EQ(kRunRecordFormat.recognise(answer, "verdict.json"), Recognition::yes);
  const Fragment out = Read(answer);
  EXPECT_TRUE(out.events.empty());
  EXPECT_EQ(out.bytes.ignored, answer.size());
  EXPECT_EQ(kRunRecordFormat.recognise(R"({"schema":"other.v1"})", "x.json"), Recognition::no);
}

}  // namespace
}  // namespace tacet
