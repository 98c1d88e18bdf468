// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evidence/torch_log/torch_log_prefix.h"

namespace tacet {

// How the program itself marks its lines with a rank, in words of its own: "(chat 2) step 4 ...", "<w1> step 4 ...",
// "replica-1 | step 4 ...", "[2] step 4 ...". No line alone shows that; the whole text does: the numbers count from 0
// without a gap, they alternate, and lines alike stand behind each of them.
class OwnMark {
 public:
  static OwnMark Find(std::string_view bytes, const LabelStyle& style);
  // Takes the mark off a line without labels and times; -1: it has none.
  int32_t Take(std::string_view& text) const;

 private:
  std::string key_;  // "(chat #)"; empty: the text has no such marks
};

}  // namespace tacet
