// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tacet {

// Where a JSON object or array ends, found 64 bytes at a time: a profiler trace is gigabytes of text of which most is
// skipped, so skipping must be cheap.
struct JsonSpan {
  static constexpr size_t npos = std::string_view::npos;
  size_t end = npos;        // just behind the closing bracket; npos when the text ends before
  bool suspicious = false;  // a line break stands inside a string: a quote was not escaped, or the text is damaged
};

// `text[at]` is '{' or '['.
JsonSpan FindSpan(std::string_view text, size_t at);

// The same, byte by byte, for text whose strings hold quotes that were not escaped: a quote closes a string only when a
// comma, a colon or a closing bracket follows. Slower, used where FindSpan is in doubt.
size_t FindSpanTolerant(std::string_view text, size_t at);

// Behind the closing quote of the string whose first character is text[at], by the same rule; npos when the text ends
// before.
size_t FindStringEnd(std::string_view text, size_t at);

}  // namespace tacet
