// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdio>

namespace tacet {

// U+202A..U+202E and U+2066..U+2069 turn the order in which a line reads, so that evidence could show what it does not say.
static bool TurnsReadingOrder(std::string_view sequence) {
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  const auto last = static_cast<unsigned char>(sequence[2]);
  return (sequence[1] == '\x80' && last >= 0xaa && last <= 0xae) || (sequence[1] == '\x81' && last >= 0xa6 && last <= 0xa9);
}

std::string EscapeForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    size_t length = c < 0x20 || c == 0x7f ? 0 : Utf8SequenceLength(text, i);
    if (TurnsReadingOrder(text.substr(i, length))) length = 0;
    if (c == '\t') {
      out += ' ';
      ++i;
    } else if (length == 0) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", c);
      out += buffer;
      ++i;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

}  // namespace tacet
