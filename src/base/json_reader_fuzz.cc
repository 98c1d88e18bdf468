// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/json_reader.h"
#include "base/json_writer.h"

using tacet::JsonReader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  JsonReader reader(text);
  size_t last = 0;
  for (size_t tokens = 0;; ++tokens) {
    const JsonReader::Token token = reader.Next();
    if (token == JsonReader::Token::end || token == JsonReader::Token::error) break;
    if (reader.end_offset() > size || reader.end_offset() <= last || tokens > size) std::abort();  // it must advance
    last = reader.end_offset();
    reader.Int();
    reader.Double();
    // What was read can always be written again.
    std::string quoted;
    tacet::JsonWriter::AppendQuoted(quoted, reader.String());
    JsonReader again(quoted);
    if (again.Next() != JsonReader::Token::string || again.end_offset() != quoted.size()) std::abort();
  }
  JsonReader skipper(text);
  if (skipper.SkipValue().size() > size) std::abort();
  tacet::JsonValue value;
  tacet::ParseJson(text, &value, nullptr);
  return 0;
}
