// SPDX-License-Identifier: Apache-2.0
#include "json_span.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tacet {
namespace {

// One byte at a time, strict JSON strings: the independent version.
size_t WalkSpan(std::string_view text, size_t at) {
  int depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) {
      ++at;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth <= 0) return at + 1;
  }
  return JsonSpan::npos;
}

TEST(JsonSpan, AgreesWithAByteWalkOnRandomText) {
  std::mt19937 random(3);
  const std::string_view letters = "{}[]\"\\,:a \t";
  for (int round = 0; round < 20000; ++round) {
    std::string text = random() % 2 ? "{" : "[";
    const size_t length = random() % 300;
    while (text.size() < length) {
      // Mostly plain letters, so that spans grow over several blocks.
      text += random() % 3 ? static_cast<char>('a' + random() % 26) : letters[random() % letters.size()];
    }
    ASSERT_EQ(FindSpan(text, 0).end, WalkSpan(text, 0)) << text;
  }
}

TEST(JsonSpan, SuspectsALineBreakInsideAString) {
  EXPECT_FALSE(FindSpan("{\"a\":\n\"b\"}", 0).suspicious);
  EXPECT_TRUE(FindSpan("{\"a\": \"5\" disk\",\n \"b\": 1}", 0).suspicious);
}

TEST(JsonSpan, TolerantWalkTakesQuotesInsideStrings) {
  const std::string_view text = "{\"name\": \"f(\"a\", \"b\")\", \"x\": {\"y\": 1}} tail";
  EXPECT_EQ(FindSpanTolerant(text, 0), text.size() - 5);
  EXPECT_EQ(FindSpanTolerant("{\"a\": \"x\\\"}\"", 0), JsonSpan::npos);
}

TEST(JsonSpan, StringEndNeedsADelimiterBehindTheQuote) {
  EXPECT_EQ(FindStringEnd("5\" disk\", 1", 0), 8u);
  EXPECT_EQ(FindStringEnd("a\\\", b\"}", 0), 7u);
  EXPECT_EQ(FindStringEnd("no end", 0), JsonSpan::npos);
}

}  // namespace
}  // namespace tacet
