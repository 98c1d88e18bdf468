// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacet {
namespace {

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  LineReader reader(text);
  uint64_t bytes = 0;
  for (std::string_view line; reader.Next(&line);) {
    lines.emplace_back(line);
    EXPECT_EQ(reader.number(), lines.size());
    EXPECT_EQ(reader.offset(), bytes);
    bytes += reader.line_bytes();
    EXPECT_EQ(reader.next_offset(), bytes);
  }
  EXPECT_EQ(bytes, text.size()) << "every byte belongs to a line";
  return lines;
}

using List = std::vector<std::string>;

TEST(LineReader, SplitsAtNewlines) {
  EXPECT_EQ(Lines("a\nb\n\nc\n"), (List{"a", "b", "", "c"}));
  EXPECT_EQ(Lines(""), List{});
  EXPECT_EQ(Lines("\n"), List{""});
}

TEST(LineReader, KeepsTheLastLineWithoutNewline) { EXPECT_EQ(Lines("a\nb"), (List{"a", "b"})); }

TEST(LineReader, DropsOneCarriageReturn) {
  EXPECT_EQ(Lines("a\r\nb\r\n\r\nc\r"), (List{"a", "b", "", "c"}));
  EXPECT_EQ(Lines("a\rb\r\r\n"), (List{"a\rb\r"})) << "only the last one, and only at the end";
}

TEST(LineReader, KeepsZeroBytes) { EXPECT_EQ(Lines(std::string_view("a\0b\n", 4)), List{std::string("a\0b", 3)}); }

TEST(LineReader, CutsALineThatIsTooLongAndReadsOn) {
  const std::string text = "before\n" + std::string(3'000'000, 'x') + "\nafter\n";
  LineReader reader(text);
  std::string_view line;
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_FALSE(reader.cut());
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_TRUE(reader.cut());
  EXPECT_EQ(line.size(), LineReader::kMaxLine);
  EXPECT_EQ(reader.line_bytes(), 3'000'001u) << "the part that was cut off counts too";
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_FALSE(reader.cut());
  EXPECT_EQ(line, "after");
  EXPECT_EQ(reader.number(), 3u);
  EXPECT_FALSE(reader.Next(&line));
}

TEST(LineReader, TakesALineOfExactlyTheLimitWhole) {
  const std::string text(LineReader::kMaxLine, 'x');
  LineReader reader(text);
  std::string_view line;
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_FALSE(reader.cut());
  EXPECT_EQ(line.size(), text.size());
}

TEST(LineReader, CutsTenMillionBytesWithoutNewlineOnce) {
  const std::string text(10'000'000, 'x');
  EXPECT_EQ(Lines(text).size(), 1u);
}

}  // namespace
}  // namespace tacet
