// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_counting.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {

bool CountingLines::Read(std::string_view text) {
  constexpr size_t kLongestName = 24, kMostNames = 64, kFewCounts = 3;
  size_t letters = 0;
  while (letters < text.size() && letters < kLongestName && !IsDigit(text[letters])) ++letters;
  std::string_view rest = text.substr(letters);
  int64_t number = 0;
  if (letters == 0 || letters == kLongestName || !TakeNumber(rest, &number) || rest.empty()) return false;
  const bool figures = rest.find('.') != std::string_view::npos && std::any_of(rest.begin(), rest.end(), IsDigit);
  if (std::string_view(" :|,/])").find(rest[0]) == std::string_view::npos || !figures) return false;
  const std::string_view name = text.substr(0, letters);
  auto known = seen_.find(name);
  if (known == seen_.end()) {
    if (seen_.size() >= kMostNames) return false;
    known = seen_.emplace(std::string(name), Count{}).first;
  }
  Count& count = known->second;
  count.run = number > count.last ? count.run + 1 : 1;
  count.last = number;
  return count.run >= kFewCounts;
}

}  // namespace tacet
