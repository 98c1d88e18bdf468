// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace tacet {

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
}

JsonWriter& JsonWriter::Open(char c) {
  Separate();
  out_ += c;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::Shut(char c) {
  out_ += c;
  has_items_.pop_back();
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendQuoted(out_, key);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  AppendQuoted(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::Ints(const std::vector<int>& values) {
  BeginArray();
  for (const int value : values) Int(value);
  return EndArray();
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out_.append(buffer, end);
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}

void JsonWriter::AppendQuoted(std::string& out, std::string_view value) {
  out += '"';
  for (size_t i = 0; i < value.size();) {
    const auto c = static_cast<unsigned char>(value[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
      ++i;
    } else if (c == '\n') {
      out += "\\n";
      ++i;
    } else if (c == '\t') {
      out += "\\t";
      ++i;
    } else if (c < 0x20 || c == 0x7f) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
      ++i;
    } else if (c < 0x80) {
      out += static_cast<char>(c);
      ++i;
    } else if (const size_t length = Utf8SequenceLength(value, i); length > 0) {
      // As text, not as an escape of JSON: whoever shows the string shows it, too.
      if (const uint32_t invisible = InvisibleCharacter(value, i, length); invisible != 0) {
        out += '\\';
        AppendVisibly(out, invisible);
      } else {
        out.append(value.substr(i, length));
      }
      i += length;
    } else {
      out += "\\ufffd";
      ++i;
    }
  }
  out += '"';
}

}  // namespace tacet
