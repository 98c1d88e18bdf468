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

bool HasWholePart(std::string_view name, std::string_view part) {
  for (size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const size_t end = at + part.size();
    if (at > 0 && name[at - 1] == '-' && (end == name.size() || name[end] == '-')) return true;
  }
  return false;
}

constexpr size_t kLongestWord = 64;  // of what a person types; the distance costs the product of both lengths

// All that are as near as any, in their order.
std::vector<std::string_view> NearestWords(std::string_view word, const std::vector<std::string_view>& known) {
  std::vector<std::string_view> best;
  if (word.size() < 2 || word.size() > kLongestWord) return best;
  size_t least = std::max<size_t>(1, word.size() / 3);  // one letter in three may be wrong
  for (const std::string_view& one : known) {
    size_t distance = Distance(word, one);
    // Cut short on purpose: "diag". Longer beginnings are nearer.
    if (word.size() >= 3 && one.starts_with(word)) distance = std::min<size_t>(distance, 1);
    // A part of the name, of whole words: "out-of-memory" for "rank-out-of-memory".
    constexpr size_t kLongPart = 4;
    if (word.size() >= kLongPart && HasWholePart(one, word)) distance = std::min<size_t>(distance, 1);
    // Cut short and misspelled: "rank-stuk" for "rank-stuck-on-host".
    constexpr size_t kLongBeginning = 6;
    if (word.size() >= kLongBeginning && one.size() > word.size() + 1)
      distance = std::min({distance, Distance(word, one.substr(0, word.size())) + 1,
                           Distance(word, one.substr(0, word.size() + 1)) + 1});
    if (distance > least) continue;
    if (distance < least) best.clear();
    least = distance;
    best.push_back(one);
  }
  return best;
}

}  // namespace

std::string NearestWord(std::string_view word, const std::vector<std::string_view>& known) {
  const std::vector<std::string_view> best = NearestWords(word, known);
  return best.empty() ? "" : std::string(best.front());
}

// A beginning that several have in common, misspelled or not, names them all.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr size_t kMostNamed = 8;
  const std::vector<std::string_view> best = NearestWords(word, known);
  if (best.empty()) return "";
  if (best.size() == 1 || best.size() > kMostNamed) return "did you mean '" + std::string(best.front()) + "'? ";
  std::string all;
  for (const std::string_view one : best) all.append(all.empty() ? "" : ", ").append("'").append(one).append("'");
  return "did you mean one of " + all + "? ";
}

}  // namespace tacet
