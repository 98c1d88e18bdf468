// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// Length of the well-formed multi-byte sequence that starts at `at`; 0 when it is malformed (overlong and surrogate
// forms count as malformed) or a C1 control character, which terminals obey.
inline size_t Utf8SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned c = byte(at);
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) return tail(at + 1) && !(c == 0xc2 && byte(at + 1) < 0xa0) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    const unsigned d = byte(at + 1);
    if (!tail(at + 1) || !tail(at + 2) || (c == 0xe0 && d < 0xa0) || (c == 0xed && d >= 0xa0)) return 0;
    return 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    const unsigned d = byte(at + 1);
    if (!tail(at + 1) || !tail(at + 2) || !tail(at + 3) || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d >= 0x90))
      return 0;
    return 4;
  }
  return 0;
}

// The character at `at` if it cannot be seen but changes what a reader sees: marks that turn the reading order, blanks
// without width, tags, fillers. 0 for all others. `length` is that of its well-formed sequence.
uint32_t InvisibleCharacter(std::string_view text, size_t at, size_t length);

// What stands for one in every output: "\u202e", as visible text.
void AppendVisibly(std::string& out, uint32_t character);

// Evidence made safe for a terminal: control characters and malformed bytes become visible escapes such as \x1b.
std::string EscapeForTerminal(std::string_view text);

}  // namespace tacet
