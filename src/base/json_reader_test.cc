// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tacet {
namespace {

using Token = JsonReader::Token;

// Tokens as one word: "{ a: 1 [ s ] }" for {"a": 1, ...}.
std::string Spell(std::string_view text) {
  JsonReader reader(text);
  std::string out;
  for (int i = 0; i < 1000; ++i) {
    const Token token = reader.Next();
    switch (token) {
      case Token::object_begin: out += "{ "; break;
      case Token::object_end: out += "} "; break;
      case Token::array_begin: out += "[ "; break;
      case Token::array_end: out += "] "; break;
      case Token::key: out += reader.String() + ": "; break;
      case Token::string: out += "'" + reader.String() + "' "; break;
      case Token::number: out += std::string(reader.raw()) + " "; break;
      case Token::boolean: out += reader.Bool() ? "true " : "false "; break;
      case Token::null: out += "null "; break;
      case Token::end: return out + (reader.truncated() ? "cut" : "end");
      case Token::error: return out + "error";
    }
  }
  return out + "endless";
}

int64_t IntOf(std::string_view text) {
  JsonReader reader(text);
  EXPECT_EQ(reader.Next(), Token::number) << text;
  return reader.Int();
}

double DoubleOf(std::string_view text) {
  JsonReader reader(text);
  EXPECT_EQ(reader.Next(), Token::number) << text;
  return reader.Double();
}

constexpr std::string_view kDocument =
    R"({"a": [1, -2.5e3, "x\"y\\", true, null], "b": {"c": {}, "d": []}, "ключ": "\ud83d\ude00", "e": false})";

TEST(JsonReader, HandsOutEveryToken) {
  EXPECT_EQ(Spell(kDocument), "{ a: [ 1 -2.5e3 'x\"y\\' true null ] b: { c: { } d: [ ] } ключ: '😀' e: false } end");
}

TEST(JsonReader, ReadsNanAndInfinities) {
  EXPECT_EQ(Spell("[NaN, Infinity, -Infinity, nan, inf, -inf]"), "[ NaN Infinity -Infinity nan inf -inf ] end");
  EXPECT_TRUE(std::isnan(DoubleOf("NaN")));
  EXPECT_EQ(DoubleOf("Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(DoubleOf("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(IntOf("NaN"), 0);
  EXPECT_EQ(IntOf("Infinity"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(IntOf("-Infinity"), std::numeric_limits<int64_t>::min());
}

TEST(JsonReader, ClampsNumbersBeyondTheirType) {
  EXPECT_EQ(IntOf("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(IntOf("9223372036854775808"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(IntOf("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(IntOf("-99999999999999999999"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(IntOf("1e999"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(IntOf("-1e999"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(DoubleOf("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(DoubleOf("-1e999"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(DoubleOf("1e-999"), 0);
  EXPECT_EQ(IntOf("9210000000000000000.0"), 9210000000000000000) << "large, and still a 64-bit number";
  EXPECT_EQ(IntOf("12.9"), 12);
  EXPECT_EQ(IntOf("-12.9"), -12);
  EXPECT_EQ(IntOf("1e3"), 1000);
  EXPECT_EQ(IntOf("+7"), 7);
}

TEST(JsonReader, ToleratesTrailingAndDoubledCommas) {
  EXPECT_EQ(Spell("[1,]"), "[ 1 ] end");
  EXPECT_EQ(Spell("{\"a\":1,}"), "{ a: 1 } end");
  EXPECT_EQ(Spell("[,1,,2]"), "[ 1 2 ] end");
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const char* text : {"{a:1}", "{1:2}", "[1:2]", "{\"a\" 1}", "{\"a\":,\"b\":1}", "{\"a\":}", "{\"a\":]", "[}",
                           "]", "}", "[1}", "nonsense", "{\"a\":1]", ":", "[tru]", "<html>"})
    EXPECT_TRUE(Spell(text).ends_with("error")) << text << " gave " << Spell(text);
}

TEST(JsonReader, StaysInErrorOnceItFailed) {
  JsonReader reader("[}, 1, 2]");
  EXPECT_EQ(reader.Next(), Token::array_begin);
  EXPECT_EQ(reader.Next(), Token::error);
  EXPECT_EQ(reader.Next(), Token::error);
}

TEST(JsonReader, TellsACutDocumentAtEveryPrefix) {
  for (size_t cut = 1; cut < kDocument.size(); ++cut) {
    const std::string spelt = Spell(kDocument.substr(0, cut));
    EXPECT_TRUE(spelt.ends_with("cut")) << cut << ": " << spelt;
  }
  EXPECT_EQ(Spell(""), "end");
}

TEST(JsonReader, HandsOutNoHalfNumberOrWordAtTheCut) {
  EXPECT_EQ(Spell("[12, 34"), "[ 12 cut");
  EXPECT_EQ(Spell("{\"a\": tr"), "{ a: cut");
  EXPECT_EQ(Spell("{\"a\": \"half"), "{ a: cut");
  EXPECT_EQ(Spell("{\"half"), "{ cut");
  EXPECT_EQ(Spell("{\"a\\"), "{ cut") << "the cut is inside an escape";
}

TEST(JsonReader, KeepsInvalidEscapesAsWritten) {
  EXPECT_EQ(JsonReader::Unescape("C:\\path\\x"), "C:\\path\\x");
  EXPECT_EQ(JsonReader::Unescape("\\u12"), "\\u12");
  EXPECT_EQ(JsonReader::Unescape("\\uzzzz"), "\\uzzzz");
  EXPECT_EQ(JsonReader::Unescape("\\u-123"), "\\u-123");
  EXPECT_EQ(JsonReader::Unescape("end\\"), "end\\");
  EXPECT_EQ(JsonReader::Unescape("\\n\\t\\r\\b\\f\\/\\\"\\\\"), "\n\t\r\b\f/\"\\");
}

TEST(JsonReader, JoinsSurrogatesAndReplacesLoneOnes) {
  EXPECT_EQ(JsonReader::Unescape("\\u00e9\\u20ac"), "é€");
  EXPECT_EQ(JsonReader::Unescape("\\ud83d\\ude00"), "😀");
  EXPECT_EQ(JsonReader::Unescape("\\ud83d"), "\xef\xbf\xbd");
  EXPECT_EQ(JsonReader::Unescape("\\ud83dx"), "\xef\xbf\xbdx");
  EXPECT_EQ(JsonReader::Unescape("\\ud83d\\u0041"),
            "\xef\xbf\xbd"
            "A");
  EXPECT_EQ(JsonReader::Unescape("\\ude00"), "\xef\xbf\xbd") << "a low one alone is no character either";
  EXPECT_EQ(JsonReader::Unescape("\\ud83d\\ud83d\\ude00"), "\xef\xbf\xbd😀");
}

TEST(JsonReader, TakesRawControlCharactersInStrings) {
  EXPECT_EQ(Spell("[\"a\nb\tc\"]"), "[ 'a\nb\tc' ] end");
  EXPECT_EQ(Spell(std::string_view("[\"a\0b\"]", 7)), std::string("[ 'a\0b' ] end", 13));
}

TEST(JsonReader, StopsADepthBomb) {
  const std::string arrays(100'000, '[');
  EXPECT_TRUE(Spell(arrays).ends_with("error"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(Spell(objects).ends_with("error"));
  JsonReader reader(arrays);
  reader.SkipValue();
  EXPECT_EQ(reader.Next(), Token::error);
  JsonValue value;
  bool truncated = false;
  EXPECT_TRUE(ParseJson(arrays, &value, &truncated));
  EXPECT_TRUE(truncated);
}

TEST(JsonReader, AllowsTwoHundredLevels) {
  const std::string text = std::string(200, '[') + std::string(200, ']');
  EXPECT_TRUE(Spell(text).ends_with("] end"));
}

TEST(JsonReader, HandsOutDuplicateKeys) { EXPECT_EQ(Spell("{\"a\":1,\"a\":2}"), "{ a: 1 a: 2 } end"); }

TEST(JsonReader, SkipsAValueHoweverDeepAndReturnsItsText) {
  JsonReader reader(R"({"a": {"x": [1, {"y": "]}"}]}, "b": 7})");
  EXPECT_EQ(reader.Next(), Token::object_begin);
  EXPECT_EQ(reader.Next(), Token::key);
  EXPECT_EQ(reader.SkipValue(), R"({"x": [1, {"y": "]}"}]})");
  EXPECT_EQ(reader.depth(), 1u);
  EXPECT_EQ(reader.Next(), Token::key);
  EXPECT_EQ(reader.String(), "b");
  EXPECT_EQ(reader.SkipValue(), "7");
  EXPECT_EQ(reader.Next(), Token::object_end);
  EXPECT_EQ(reader.Next(), Token::end);
  EXPECT_FALSE(reader.truncated());
}

TEST(JsonReader, SkippingACutValueSaysSo) {
  JsonReader reader(R"({"a": {"x": [1, 2)");
  reader.Next();
  reader.Next();
  reader.SkipValue();
  EXPECT_TRUE(reader.truncated());
}

TEST(JsonReader, TellsWhereEachTokenStands) {
  JsonReader reader("  {\"key\" :  12 }");
  reader.Next();
  EXPECT_EQ(reader.offset(), 2u);
  reader.Next();
  EXPECT_EQ(reader.offset(), 3u);
  reader.Next();
  EXPECT_EQ(reader.offset(), 12u);
  EXPECT_EQ(reader.end_offset(), 14u);
}

TEST(JsonReader, ReadsSeveralDocumentsInARow) { EXPECT_EQ(Spell("{}\n{}\n[1] 2"), "{ } { } [ 1 ] 2 end"); }

TEST(ParseJson, BuildsATree) {
  JsonValue value;
  bool truncated = true;
  ASSERT_TRUE(ParseJson(kDocument, &value, &truncated));
  EXPECT_FALSE(truncated);
  ASSERT_TRUE(value.is_object());
  ASSERT_NE(value.Find("a"), nullptr);
  EXPECT_EQ(value.Find("a")->items.size(), 5u);
  EXPECT_EQ(value.Find("a")->items[1].Double(), -2500);
  EXPECT_EQ(value.Find("a")->items[1].Int(), -2500);
  EXPECT_EQ(value.Find("a")->items[2].Text(), "x\"y\\");
  EXPECT_EQ(value.Find("missing"), nullptr);
  EXPECT_EQ(value.Find("a")->Int(-7), -7) << "an array is no number";
}

TEST(ParseJson, ReadsNumbersAsTheReaderDoes) {
  JsonValue value;
  ASSERT_TRUE(ParseJson(R"([1e3, "12", "x", 12.7, 99999999999999999999, 1e999, +5, true])", &value, nullptr));
  const auto& items = value.items;
  EXPECT_EQ(items[0].Int(), 1000);
  EXPECT_EQ(items[1].Int(), 12);
  EXPECT_EQ(items[2].Int(-3), -3);
  EXPECT_EQ(items[3].Int(), 12);
  EXPECT_EQ(items[4].Int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(items[5].Double(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(items[6].Int(), 5);
  EXPECT_EQ(items[7].Int(), 1);
}

TEST(ParseJson, GivesWhatWasCompleteOfACutDocument) {
  JsonValue value;
  bool truncated = false;
  ASSERT_TRUE(ParseJson(R"({"a": 1, "b": {"c": 2, "d": "ha)", &value, &truncated));
  EXPECT_TRUE(truncated);
  EXPECT_EQ(value.Find("a")->Int(), 1);
  ASSERT_NE(value.Find("b"), nullptr);
  EXPECT_EQ(value.Find("b")->Find("c")->Int(), 2);
  EXPECT_EQ(value.Find("b")->Find("d"), nullptr) << "half a value is none";
}

TEST(ParseJson, RefusesEmptyAndForeignText) {
  JsonValue value;
  EXPECT_FALSE(ParseJson("", &value, nullptr));
  EXPECT_FALSE(ParseJson("   \n", &value, nullptr));
  EXPECT_FALSE(ParseJson("NCCL INFO", &value, nullptr));
  EXPECT_TRUE(ParseJson("[]", &value, nullptr));
}

TEST(ParseJson, FindsTheFirstOfDuplicateKeys) {
  JsonValue value;
  ASSERT_TRUE(ParseJson("{\"a\":1,\"a\":2}", &value, nullptr));
  EXPECT_EQ(value.Find("a")->Int(), 1);
  EXPECT_EQ(value.members.size(), 2u);
}

TEST(ParseJson, BuildsNoMoreValuesThanTheTextIsLongEnoughFor) {
  std::string text = "[";
  for (size_t i = 0; i < 2 * kFreeJsonValues; ++i) text += "1,";
  text += "1]";
  JsonValue value;
  bool truncated = false;
  EXPECT_TRUE(ParseJson(text, &value, &truncated));
  EXPECT_TRUE(truncated);
  EXPECT_GT(value.items.size(), kFreeJsonValues / 2);
  EXPECT_LE(value.items.size(), kFreeJsonValues + text.size() / 64);
}

}  // namespace
}  // namespace tacet
