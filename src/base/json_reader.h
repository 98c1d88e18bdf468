// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// A tolerant pull parser over JSON text in memory. It survives what real writers produce: NaN and Infinity, trailing
// commas, invalid escapes, raw control characters in strings, duplicate keys (all are handed out), and a cut file
// (Token::end with truncated() true). Nesting is bounded. It never allocates per value.
class JsonReader {
 public:
  enum class Token { object_begin, object_end, array_begin, array_end, key, string, number, boolean, null, end, error };

  static constexpr size_t kMaxDepth = 256;

  explicit JsonReader(std::string_view text) : text_(text) {}

  Token Next();
  // Skips the value that comes next (after a key, or inside an array), however deep. Returns its raw text.
  std::string_view SkipValue();

  // About the token last handed out.
  std::string_view raw() const { return raw_; }  // string and key without quotes, escapes unresolved; number as written
  std::string String() const { return Unescape(raw_); }
  bool Bool() const { return !raw_.empty() && raw_[0] == 't'; }
  int64_t Int() const;    // integers beyond 64 bits and fractions are clamped or cut
  double Double() const;  // NaN and infinities as such
  size_t offset() const { return token_offset_; }  // of the token
  size_t end_offset() const { return at_; }         // just behind it
  size_t depth() const { return stack_.size(); }
  bool truncated() const { return truncated_; }

  static std::string Unescape(std::string_view raw);

 private:
  void SkipSpace();
  Token Fail();
  Token ReadString(bool as_key);
  Token ReadScalar();
  Token Close(char open, Token token);

  std::string_view text_;
  size_t at_ = 0;
  size_t token_offset_ = 0;
  std::string_view raw_;
  std::vector<char> stack_;  // '{' or '['
  bool after_key_ = false;
  bool truncated_ = false;
  bool failed_ = false;
};

struct JsonMember;

// A whole small document as a tree. Meant for files of kilobytes (RAS answers, error.json), not for traces.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object } kind = Kind::null;
  std::string text;  // string value, or the number as written
  bool boolean = false;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;
  size_t offset = 0;

  const JsonValue* Find(std::string_view key) const;
  int64_t Int(int64_t otherwise = 0) const;
  double Double(double otherwise = 0) const;
  std::string_view Text() const { return text; }
  bool is_object() const { return kind == Kind::object; }
  bool is_array() const { return kind == Kind::array; }
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// False when the text is not JSON at all; a cut document gives what was complete and sets *truncated, and so does one with
// more values than kFreeJsonValues and one for each 64 bytes.
inline constexpr size_t kFreeJsonValues = size_t{1} << 18;
bool ParseJson(std::string_view text, JsonValue* out, bool* truncated);

}  // namespace tacet
