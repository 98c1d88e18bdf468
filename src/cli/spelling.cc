// SPDX-License-Identifier: Apache-2.0
#include "cli/spelling.h"

#include <algorithm>
#include <cstddef>

namespace tacet {
namespace {

// Letters to add, remove, change, or swap with their neighbour, to make one of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

constexpr size_t kLongestWord = 64;  // of what a person types; the distance costs the product of both lengths

}  // namespace

std::string NearestWord(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() < 2 || word.size() > kLongestWord) return "";
  const std::string_view* best = nullptr;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;  // one letter in three may be wrong
  for (const std::string_view& one : known) {
    size_t distance = Distance(word, one);
    // Cut short on purpose: "diag". Longer beginnings are nearer.
    if (word.size() >= 3 && one.starts_with(word)) distance = 1;
    // Cut short and misspelled: "rank-stuk" for "rank-stuck-on-host".
    constexpr size_t kLongBeginning = 6;
    if (word.size() >= kLongBeginning && one.size() > word.size() + 1)
      distance = std::min({distance, Distance(word, one.substr(0, word.size())) + 1,
                           Distance(word, one.substr(0, word.size() + 1)) + 1});
    if (distance < least) {
      least = distance;
      best = &one;
    }
  }
  return best == nullptr ? "" : std::string(*best);
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& known) {
  // A beginning that several have in common names them all.
  constexpr size_t kLeastBeginning = 3, kMostNamed = 6;
  std::string all;
  size_t count = 0;
  for (const std::string_view one : known)
    if (word.size() >= kLeastBeginning && one.size() > word.size() && one.starts_with(word)) {
      all.append(count++ == 0 ? "" : ", ").append("'").append(one).append("'");
    }
  if (count > 1 && count <= kMostNamed) return "did you mean one of " + all + "? ";
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? "" : "did you mean '" + nearest + "'? ";
}

}  // namespace tacet
