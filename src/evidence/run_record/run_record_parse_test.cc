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

TEST(RunRecord, AManifestTellsHowTheRunEnded) {
  const Fragment killed = Read(
      R"({"schema":"tacet.manifest.v1","kind":"run","ended":"2026-11-17T17:03:51.6Z","exit_code":137,"signal":9})");
  ASSERT_EQ(killed.events.size(), 1u);
  EXPECT_EQ(killed.events[0].kind, EventKind::process_killed);
  EXPECT_EQ(killed.events[0].As<ProcessEnd>().sentence, "the job was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(killed.events[0].wall_ns, 1794935031000000000);
  EXPECT_EQ(killed.bytes.understood, killed.bytes.total);
  const Fragment failed =
      Read(R"({"schema":"tacet.manifest.v1","kind":"run","ended":"2026-11-17T17:03:51Z","exit_code":3,"signal":0})");
  ASSERT_EQ(failed.events.size(), 1u);
  EXPECT_EQ(failed.events[0].As<ProcessEnd>().sentence, "the job ended with exit code 3");
  EXPECT_EQ(failed.events[0].wall_ns, kNoTime);
  const Fragment well =
      Read(R"({"schema":"tacet.manifest.v1","kind":"run","ended":"2026-11-17T17:03:51Z","exit_code":0,"signal":0})");
  ASSERT_EQ(well.events.size(), 1u);
  EXPECT_EQ(well.events[0].kind, EventKind::process_finished);
}

TEST(RunRecord, ARunThatGoesOnFailedNowhere) {
  EXPECT_TRUE(
      Read(R"({"schema":"tacet.manifest.v1","kind":"run","ended":null,"exit_code":null,"signal":0})").events.empty());
  EXPECT_TRUE(Read(R"({"schema":"tacet.manifest.v1","kind":"collect","exit_code":1})").events.empty());
}

TEST(RunRecord, ARunThatWasStoppedOnRequestWasEndedFromOutside) {
  const std::string head = R"({"schema":"tacet.manifest.v1","kind":"run","ended":"2026-11-17T17:03:51Z",)";
  const Fragment interrupted = Read(head + R"("exit_code":1,"signal":0,"stopped_on_request":true,"stop_signal":2,)" +
                                    R"("stop_requested":"2026-11-17T17:03:41.5Z","hangs":[]})");
  ASSERT_EQ(interrupted.events.size(), 1u);
  EXPECT_EQ(interrupted.events[0].kind, EventKind::scheduler_kill);
  EXPECT_EQ(interrupted.events[0].As<OutsideEnd>().why, SchedulerKill::signal);
  EXPECT_EQ(interrupted.events[0].As<OutsideEnd>().by, "SIGINT");
  EXPECT_EQ(interrupted.events[0].wall_ns, 1794935021000000000);
  // Manifests that do not tell the signal: it is the one that ended the job.
  const Fragment older = Read(head + R"("exit_code":143,"signal":15,"stopped_on_request":true})");
  ASSERT_EQ(older.events.size(), 1u);
  EXPECT_EQ(older.events[0].As<OutsideEnd>().by, "SIGTERM");
  // Where a hang had been seen, or the job ended well, the request explains nothing.
  EXPECT_TRUE(Read(head + R"("exit_code":137,"signal":9,"stopped_on_request":true,"hangs":[{"folder":"hang-1"}]})")
                  .events.empty());
  EXPECT_TRUE(Read(head + R"("exit_code":0,"signal":0,"stopped_on_request":true,"stop_signal":15})").events.empty());
}

TEST(RunRecord, KnowsOurOwnAnswersAndReadsNothingFromThem) {
  const std::string answer = R"({"schema":"tacet.report.v1","verdict":{"status":"hang"}})";
  EXPECT_EQ(kRunRecordFormat.recognise(answer, "verdict.json"), Recognition::yes);
  const Fragment out = Read(answer);
  EXPECT_TRUE(out.events.empty());
  EXPECT_EQ(out.bytes.ignored, answer.size());
  EXPECT_EQ(kRunRecordFormat.recognise(R"({"schema":"other.v1"})", "x.json"), Recognition::no);
  for (const char* own : {"<!DOCTYPE html>\n<title>Tacet profile</title>",
                          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tacet\" tests=\"1\">",
                          R"({"version":"2.1.0","runs":[{"tool":{"driver":{"name":"tacet","version":"0.1.0"}}}]})"})
    EXPECT_EQ(kRunRecordFormat.recognise(own, "x"), Recognition::yes) << own;
  EXPECT_EQ(kRunRecordFormat.recognise("<testsuites name=\"pytest\">", "x.xml"), Recognition::no);
}

}  // namespace
}  // namespace tacet
