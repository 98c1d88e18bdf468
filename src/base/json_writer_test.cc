// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/json_reader.h"

namespace tacet {
namespace {

std::string Quote(std::string_view value) {
  std::string out;
  JsonWriter::AppendQuoted(out, value);
  return out;
}

TEST(JsonWriter, SeparatesMembersAndItems) {
  JsonWriter json;
  json.BeginObject().Key("a").BeginArray().Int(1).Int(-2).Double(0.5).EndArray();
  json.Key("b").BeginObject().EndObject().Key("c").Bool(true).Key("d").Null().Key("e").Raw("[7]").EndObject();
  EXPECT_EQ(json.text(), R"({"a":[1,-2,0.5],"b":{},"c":true,"d":null,"e":[7]})");
}

TEST(JsonWriter, EscapesControlCharacters) {
  EXPECT_EQ(Quote("a\"b\\c\nd\te"), R"("a\"b\\c\nd\te")");
  EXPECT_EQ(Quote(std::string_view("\0\x01\x1b\x7f\r", 5)), R"("\u0000\u0001\u001b\u007f\u000d")");
  for (int c = 0; c < 0x20; ++c) {
    const char one = static_cast<char>(c);
    for (const char written : Quote({&one, 1})) EXPECT_GE(static_cast<unsigned char>(written), 0x20) << c;
  }
}

TEST(JsonWriter, ReplacesInvalidUtf8) {
  EXPECT_EQ(Quote("\xff"), R"("\ufffd")");
  EXPECT_EQ(Quote("a\xc3"), R"("a\ufffd")") << "a sequence cut by the end";
  EXPECT_EQ(Quote("\xc0\xaf"), R"("\ufffd\ufffd")") << "an overlong slash";
  EXPECT_EQ(Quote("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")") << "a surrogate";
  EXPECT_EQ(Quote("\xc2\x9b"
                  "31m"),
            R"("\ufffd\ufffd31m")")
      << "CSI as one character: terminals obey it";
  EXPECT_EQ(Quote("é€😀"), "\"é€😀\"");
}

TEST(JsonWriter, WritesNumbersThatReadBackTheSame) {
  for (const double value : {0.1, 1e300, -5e-324, 123456789.25, 3.0}) {
    JsonWriter json;
    json.Double(value);
    JsonReader reader(json.text());
    ASSERT_EQ(reader.Next(), JsonReader::Token::number) << json.text();
    EXPECT_EQ(reader.Double(), value);
  }
  JsonWriter json;
  json.BeginArray().Int(std::numeric_limits<int64_t>::min()).Int(std::numeric_limits<int64_t>::max()).EndArray();
  EXPECT_EQ(json.text(), "[-9223372036854775808,9223372036854775807]");
}

TEST(JsonWriter, WritesNullForWhatJsonCannotSay) {
  JsonWriter json;
  json.BeginArray().Double(std::nan("")).Double(std::numeric_limits<double>::infinity()).Double(1).EndArray();
  EXPECT_EQ(json.text(), "[null,null,1]");
}

TEST(JsonWriter, AnythingQuotedReadsBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string quoted = Quote(all);
  JsonReader reader(quoted);
  ASSERT_EQ(reader.Next(), JsonReader::Token::string);
  EXPECT_EQ(reader.end_offset(), quoted.size());
  EXPECT_EQ(reader.String().substr(0, 128), all.substr(0, 128));
}

TEST(JsonWriter, ShowsInvisibleCharactersAsText) {
  std::string out;
  JsonWriter::AppendQuoted(out, "flip\xe2\x80\xae.gpj \xf3\xa0\x81\x81 caf\xc3\xa9");
  EXPECT_EQ(out, "\"flip\\\\u202e.gpj \\\\u{e0041} caf\xc3\xa9\"");
}

}  // namespace
}  // namespace tacet
