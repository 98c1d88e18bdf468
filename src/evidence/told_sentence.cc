// SPDX-License-Identifier: Apache-2.0
#include "evidence/told_sentence.h"

#include <cstddef>

#include "base/text_scan.h"
#include "evidence/told_chinese.h"

namespace tacet {

bool IsSentence(std::string_view line) {
  line = Trim(line);
  if (IsChineseSentence(line)) return true;
  if (line.size() < 15 || line.size() > 2000) return false;
  // "@name this happens ..." answers somebody.
  if (!IsLetter(line[0]) && !IsDigit(line[0]) && line[0] != '*' && line[0] != '@') return false;
  size_t letters = 0, blanks = 0, marks = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    letters += IsLetter(c) || (static_cast<unsigned char>(c) & 0x80u) != 0;
    blanks += c == ' ';
    const bool of_unit = c == '/' && i + 1 < line.size() && line[i + 1] == 's';  // GB/s
    marks += !of_unit && std::string_view("[]{|=<#\\/_").find(c) != std::string_view::npos;
  }
  return blanks >= 3 && marks <= line.size() / 40 && letters * 100 >= line.size() * 60;
}

}  // namespace tacet
