// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdio>

namespace tacet {

std::string EscapeForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x20 || c == 0x7f ? 0 : Utf8SequenceLength(text, i);
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
