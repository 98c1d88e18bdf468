// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdio>

namespace tacet {

static uint32_t CodePoint(std::string_view sequence) {
  static constexpr unsigned char kLead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t value = static_cast<unsigned char>(sequence[0]) & kLead[sequence.size()];
  for (const char c : sequence.substr(1)) value = value << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return value;
}

uint32_t InvisibleCharacter(std::string_view text, size_t at, size_t length) {
  if (length < 2 || length > 4) return 0;
  static constexpr struct {
    uint32_t first, last;
  } kInvisible[] = {
      {0xad, 0xad},        // soft hyphen
      {0x34f, 0x34f},      // combining grapheme joiner
      {0x61c, 0x61c},      // Arabic letter mark
      {0x115f, 0x1160},    // Hangul fillers
      {0x17b4, 0x17b5},    // Khmer vowels without a shape
      {0x180b, 0x180f},    // Mongolian separators
      {0x200b, 0x200f},    // blanks without width, left-to-right and right-to-left marks
      {0x2028, 0x202e},    // line and paragraph separators, embeddings and overrides
      {0x2060, 0x206f},    // invisible operators, isolates
      {0x3164, 0x3164},    // Hangul filler
      {0xfeff, 0xfeff},    // byte order mark inside a text
      {0xffa0, 0xffa0},    // Hangul filler
      {0xfff9, 0xfffb},    // interlinear annotation
      {0xe0000, 0xe0fff},  // tags, more variation selectors
  };
  const uint32_t character = CodePoint(text.substr(at, length));
  for (const auto& [first, last] : kInvisible)
    if (character >= first && character <= last) return character;
  return 0;
}

void AppendVisibly(std::string& out, uint32_t character) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, character > 0xffff ? "\\u{%x}" : "\\u%04x", character);
  out += buffer;
}

std::string EscapeForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x20 || c == 0x7f ? 0 : Utf8SequenceLength(text, i);
    const uint32_t invisible = InvisibleCharacter(text, i, length);
    if (invisible != 0) {
      AppendVisibly(out, invisible);
      i += length;
    } else if (c == '\t') {
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
