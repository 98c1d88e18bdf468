// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/parse_double.h"

namespace tacet {

void JsonReader::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++at_;
  }
}

JsonReader::Token JsonReader::Fail() {
  failed_ = true;
  return Token::error;
}

JsonReader::Token JsonReader::ReadString(bool as_key) {
  const size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) {
    at_ = text_.size();
    truncated_ = true;
    return Token::end;
  }
  raw_ = text_.substr(begin, at_ - begin);
  ++at_;
  if (!as_key) return Token::string;
  SkipSpace();
  if (at_ >= text_.size()) {
    truncated_ = true;
    return Token::end;
  }
  if (text_[at_] != ':') return Fail();
  ++at_;
  after_key_ = true;
  return Token::key;
}

JsonReader::Token JsonReader::ReadScalar() {
  const size_t begin = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ':' || c == '"')
      break;
    ++at_;
  }
  raw_ = text_.substr(begin, at_ - begin);
  if (raw_.empty()) return Fail();
  if (at_ >= text_.size() && !stack_.empty()) {
    truncated_ = true;  // "12" may be the beginning of "1234"
    return Token::end;
  }
  if (raw_ == "true" || raw_ == "false") return Token::boolean;
  if (raw_ == "null" || raw_ == "None") return Token::null;
  const char first = raw_[0];
  if (first == '-' || first == '+' || (first >= '0' && first <= '9') || raw_ == "NaN" || raw_ == "nan" ||
      raw_ == "Infinity" || raw_ == "inf")
    return Token::number;
  return Fail();
}

JsonReader::Token JsonReader::Close(char open, Token token) {
  if (stack_.empty() || stack_.back() != open) return Fail();
  stack_.pop_back();
  ++at_;
  return token;
}

JsonReader::Token JsonReader::Next() {
  if (failed_) return Token::error;
  SkipSpace();
  while (at_ < text_.size() && text_[at_] == ',' && !after_key_) {
    ++at_;
    SkipSpace();
  }
  token_offset_ = at_;
  if (at_ >= text_.size()) {
    if (!stack_.empty() || after_key_) truncated_ = true;
    return Token::end;
  }
  const char c = text_[at_];
  const bool want_key = !stack_.empty() && stack_.back() == '{' && !after_key_;
  if (c == '}') return after_key_ ? Fail() : Close('{', Token::object_end);
  if (c == ']') return Close('[', Token::array_end);
  if (want_key) return c == '"' ? ReadString(true) : Fail();
  after_key_ = false;
  if (c == '"') return ReadString(false);
  if (c == '{' || c == '[') {
    if (stack_.size() >= kMaxDepth) return Fail();
    stack_.push_back(c);
    ++at_;
    return c == '{' ? Token::object_begin : Token::array_begin;
  }
  return ReadScalar();
}

std::string_view JsonReader::SkipValue() {
  const size_t base = stack_.size();
  Token token = Next();
  const size_t begin = token_offset_;
  while (stack_.size() > base && token != Token::end && token != Token::error) token = Next();
  return text_.substr(begin, at_ - begin);
}

// A number as real writers spell it: "-2.5e3", "+7", "NaN", "-Infinity", "1e999" (infinite). Nothing where it is none.
static std::optional<double> ToDouble(std::string_view digits) {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = ParseDouble(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc()) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // from_chars does not say whether it was too large or too small; strtod does, and this is rare.
  return std::strtod(std::string(digits).c_str(), nullptr);
}

static std::optional<int64_t> ToInt(std::string_view digits) {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  const auto real = ToDouble(digits);
  if (!real) return std::nullopt;
  if (std::isnan(*real)) return 0;
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (*real >= kTwoTo63) return std::numeric_limits<int64_t>::max();
  if (*real < -kTwoTo63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(*real);
}

int64_t JsonReader::Int() const { return ToInt(raw_).value_or(0); }

double JsonReader::Double() const { return ToDouble(raw_).value_or(0); }

static void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

static bool TakeHex4(std::string_view raw, size_t at, uint32_t* code) {
  if (at + 4 > raw.size()) return false;
  const auto [end, error] = std::from_chars(raw.data() + at, raw.data() + at + 4, *code, 16);
  return error == std::errc() && end == raw.data() + at + 4;
}

std::string JsonReader::Unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 >= raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    uint32_t code = 0;
    switch (c) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'u':
        if (!TakeHex4(raw, i + 1, &code)) {
          out += "\\u";
          break;
        }
        i += 4;
        if (code >= 0xd800 && code < 0xdc00) {
          uint32_t low = 0;
          if (i + 2 < raw.size() && raw[i + 1] == '\\' && raw[i + 2] == 'u' && TakeHex4(raw, i + 3, &low) &&
              low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
          } else {
            code = 0xfffd;
          }
        } else if (code >= 0xdc00 && code < 0xe000) {
          code = 0xfffd;
        }
        AppendUtf8(out, code);
        break;
      case '"':
      case '\\':
      case '/': out += c; break;
      default:  // an invalid escape such as "\p" in a Windows path: keep both characters
        out += '\\';
        out += c;
    }
  }
  return out;
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

int64_t JsonValue::Int(int64_t otherwise) const {
  if (kind == Kind::boolean) return boolean;
  if (kind != Kind::number && kind != Kind::string) return otherwise;
  return ToInt(text).value_or(otherwise);
}

double JsonValue::Double(double otherwise) const {
  if (kind != Kind::number && kind != Kind::string) return otherwise;
  return ToDouble(text).value_or(otherwise);
}

// Builds one value from the token just read. Recursion is bounded by the reader's own depth limit.
// `left` values may still be built.
static bool BuildValue(JsonReader& reader, JsonReader::Token token, size_t* left, JsonValue* out) {
  using Token = JsonReader::Token;
  if (*left == 0) return false;
  --*left;
  out->offset = reader.offset();
  switch (token) {
    case Token::object_begin:
      out->kind = JsonValue::Kind::object;
      while (true) {
        token = reader.Next();
        if (token == Token::object_end) return true;
        if (token != Token::key) return false;
        std::string name = reader.String();
        JsonValue value;
        const bool whole = BuildValue(reader, reader.Next(), left, &value);
        if (whole || value.is_object() || value.is_array()) out->members.push_back({std::move(name), std::move(value)});
        if (!whole) return false;
      }
    case Token::array_begin:
      out->kind = JsonValue::Kind::array;
      while (true) {
        token = reader.Next();
        if (token == Token::array_end) return true;
        JsonValue value;
        if (!BuildValue(reader, token, left, &value)) {
          if (value.is_object() || value.is_array()) out->items.push_back(std::move(value));
          return false;
        }
        out->items.push_back(std::move(value));
      }
    case Token::string:
      out->kind = JsonValue::Kind::string;
      out->text = reader.String();
      return true;
    case Token::number:
      out->kind = JsonValue::Kind::number;
      out->text = reader.raw();
      return true;
    case Token::boolean:
      out->kind = JsonValue::Kind::boolean;
      out->boolean = reader.Bool();
      return true;
    case Token::null: return true;
    default: return false;
  }
}

bool ParseJson(std::string_view text, JsonValue* out, bool* truncated) {
  JsonReader reader(text);
  const JsonReader::Token first = reader.Next();
  if (first == JsonReader::Token::end || first == JsonReader::Token::error) return false;
  // A value takes a hundred bytes, and two characters of text are enough for one: the lists of the largest jobs have
  // room, a document made of commas has not.
  size_t left = kFreeJsonValues + text.size() / 64;
  const bool whole = BuildValue(reader, first, &left, out);
  if (truncated) *truncated = !whole;
  return whole || reader.truncated() || !out->members.empty() || !out->items.empty();
}

}  // namespace tacet
