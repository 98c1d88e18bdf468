// SPDX-License-Identifier: Apache-2.0
#include "model/rank_ranges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tacet {

std::string RankRanges(const std::vector<Rank>& ranks) {
  constexpr size_t kLongest = 24, kFewestSpaced = 5;
  std::vector<int32_t> sorted;
  for (const Rank rank : ranks)
    if (rank.known()) sorted.push_back(rank.value);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.empty()) return "";
  const int32_t step = sorted.size() > 1 ? sorted[1] - sorted[0] : 1;
  bool even = step > 1 && sorted.size() >= kFewestSpaced;
  for (size_t i = 2; even && i < sorted.size(); ++i) even = sorted[i] - sorted[i - 1] == step;
  if (even)
    return std::to_string(sorted[0]) + "," + std::to_string(sorted[1]) + ",...," + std::to_string(sorted.back());
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    std::string part = std::to_string(sorted[i]);
    if (last > i) part.append("-").append(std::to_string(sorted[last]));
    if (text.size() + part.size() > kLongest) return text + ",... (" + std::to_string(sorted.size()) + " ranks)";
    text.append(text.empty() ? "" : ",").append(part);
    i = last + 1;
  }
  return text;
}

}  // namespace tacet
