// SPDX-License-Identifier: Apache-2.0
#include "trace_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacet {
namespace {

struct Pieces : TraceSink {
  std::vector<std::string> members, events;
  Reading OnMember(std::string_view key, std::string_view value) override {
    members.push_back(std::string(key) + "=" + std::string(value));
    return Reading::understood;
  }
  Reading OnEvent(std::string_view event) override {
    events.emplace_back(event);
    return Reading::understood;
  }
};

Pieces Split(std::string_view text, size_t chunk, bool* complete = nullptr, uint64_t* bad = nullptr) {
  Pieces pieces;
  TraceStream stream(pieces);
  for (size_t at = 0; at < text.size(); at += chunk) stream.Feed(text.substr(at, chunk));
  stream.Finish();
  EXPECT_EQ(stream.total_bytes(), text.size());
  EXPECT_LE(stream.understood_bytes() + stream.not_understood_bytes(), stream.total_bytes());
  if (complete) *complete = stream.complete();
  if (bad) *bad = stream.not_understood_bytes();
  return pieces;
}

constexpr std::string_view kTrace =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}],\n \"traceEvents\": [\n {\"ph\": \"X\", \"args\": "
    "{\"a\": [1]}},\n"
    " {\"ph\": \"i\"}\n ],\n \"traceName\": \"x]}.json\"}\n";

TEST(TraceStream, GivesTheSamePiecesForAnyChunking) {
  for (size_t chunk = 1; chunk <= kTrace.size(); ++chunk) {
    bool complete = false;
    uint64_t bad = 1;
    const Pieces pieces = Split(kTrace, chunk, &complete, &bad);
    ASSERT_EQ(pieces.members, (std::vector<std::string>{"schemaVersion=1", "deviceProperties=[{\"id\": 0}]",
                                                        "traceName=\"x]}.json\""}));
    ASSERT_EQ(pieces.events, (std::vector<std::string>{"{\"ph\": \"X\", \"args\": {\"a\": [1]}}", "{\"ph\": \"i\"}"}));
    ASSERT_TRUE(complete);
    ASSERT_EQ(bad, 0u);
  }
}

TEST(TraceStream, ReadsTheBareArray) {
  bool complete = false;
  EXPECT_EQ(Split("[{\"ph\":\"X\"},{\"ph\":\"i\"}]", 3, &complete).events.size(), 2u);
  EXPECT_TRUE(complete);
}

TEST(TraceStream, KeepsWhatStandsBeforeACut) {
  for (size_t cut = 0; cut < kTrace.size() - 2; ++cut) {
    bool complete = true;
    const Pieces pieces = Split(kTrace.substr(0, cut), 16, &complete);
    EXPECT_FALSE(complete) << cut;
    EXPECT_LE(pieces.events.size(), 2u);
  }
  EXPECT_EQ(Split(kTrace.substr(0, kTrace.find("{\"ph\": \"i\"")), 16).events.size(), 1u);
}

TEST(TraceStream, StepsOverTrailingAndMissingCommasAndRubbish) {
  uint64_t bad = 0;
  const Pieces pieces =
      Split("{\"traceEvents\": [{\"ph\":\"X\"} {\"ph\":\"i\"}, rubbish {\"ph\":\"X\"},,],}", 5, nullptr, &bad);
  EXPECT_EQ(pieces.events.size(), 3u);
  EXPECT_EQ(bad, 8u);
}

TEST(TraceStream, FindsTheNextEventBehindAnUnescapedQuote) {
  const std::string text =
      "{\"traceEvents\": [\n{\"ph\": \"X\", \"name\": \"5\" disk\",\n \"ts\": 1},\n{\"ph\": \"X\", \"name\": "
      "\"b\"},\n{\"ph\": \"i\"}]}";
  for (size_t chunk = 1; chunk < text.size(); ++chunk) ASSERT_EQ(Split(text, chunk).events.size(), 3u) << chunk;
}

TEST(TraceStream, GivesUpOnAPieceWithoutEnd) {
  std::string text = "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"";
  text.append(size_t{20} << 20, 'a');
  text += ", {\"ph\": \"i\"}]}";
  uint64_t bad = 0;
  const Pieces pieces = Split(text, 1 << 18, nullptr, &bad);
  EXPECT_EQ(pieces.events.size(), 1u);
  EXPECT_GT(bad, uint64_t{20} << 20);
}

// Looking for each end anew would take hours: the test ends, or it does not.
TEST(TraceStream, MillionsOfEventsWithoutEndCostNoMoreThanReadingThem) {
  std::string text = "{\"traceEvents\": [";
  while (text.size() < (size_t{20} << 20)) text += "{\"ph\":[";
  uint64_t bad = 0;
  EXPECT_TRUE(Split(text, 1 << 18, nullptr, &bad).events.empty());
  EXPECT_GT(bad, size_t{16} << 20);
}

TEST(TraceStream, EventsWhoseQuotesAreOffCostNoMoreThanReadingThem) {
  // By the quick rule the first bracket closes at the very end, by the slow one after a few bytes.
  std::string text = "{\"traceEvents\": [";
  while (text.size() < (size_t{24} << 20)) text += "{\"a\":\"\n\"{\"},";
  const Pieces pieces = Split(text, size_t{4} << 20);
  EXPECT_GT(pieces.events.size(), 1000u);
}

TEST(TraceStream, DeepNestingIsOnlyCounted) {
  std::string text = "{\"traceEvents\": [{\"ph\": \"X\", \"args\": ";
  text.append(1 << 20, '[');
  text.append(1 << 20, ']');
  text += "}, {\"ph\": \"i\"}], \"deviceProperties\": ";
  text.append(1 << 20, '{');
  bool complete = true;
  EXPECT_EQ(Split(text, 1 << 18, &complete).events.size(), 2u);
  EXPECT_FALSE(complete);
}

TEST(TraceStream, ReadsALongTraceWithoutASingleLineBreak) {
  std::string text = "{\"traceEvents\": [";
  for (int i = 0; i < 200'000; ++i) text += "{\"ph\":\"X\",\"ts\":" + std::to_string(i) + "},";
  text += "]}";
  bool complete = false;
  EXPECT_EQ(Split(text, 256 * 1024, &complete).events.size(), 200'000u);
  EXPECT_TRUE(complete);
}

}  // namespace
}  // namespace tacet
