// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// Writes JSON into a string. Control characters and invalid UTF-8 are escaped, so evidence can never break the output.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Shut('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Shut(']'); }
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Ints(const std::vector<int>& values);  // an array
  JsonWriter& Double(double value);                  // null for NaN and infinities
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Raw(std::string_view json);
  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

  static void AppendQuoted(std::string& out, std::string_view value);

 private:
  JsonWriter& Open(char c);
  JsonWriter& Shut(char c);
  void Separate();

  std::string out_;
  std::vector<bool> has_items_;
  bool after_key_ = false;
};

}  // namespace tacet
