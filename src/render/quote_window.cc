// SPDX-License-Identifier: Apache-2.0
#include "render/quote_window.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <vector>

namespace tacet {
namespace {

struct QuotedWord {
  size_t at = 0, end = 0;
  std::string_view text;  // without the sign of a number or the dashes of an option
};

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
         c == '.' || c == '-';
}

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

std::vector<QuotedWord> WordsOf(std::string_view text) {
  std::vector<QuotedWord> words;
  for (size_t at = 0; at < text.size();) {
    if (!IsWordByte(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && IsWordByte(text[end])) ++end;
    size_t last = end;
    while (last > at + 1 && (text[last - 1] == '.' || text[last - 1] == '-')) --last;
    size_t first = at;
    while (first + 1 < last && text[first] == '-') ++first;
    words.push_back({at, last, text.substr(first, last - first)});
    at = end;
  }
  return words;
}

// Long numbers and names are rare, and so tell more than words and ranks.
int WeightOf(std::string_view word) {
  const auto digits = static_cast<size_t>(std::count_if(word.begin(), word.end(), IsDigitByte));
  const bool name = word.size() >= 9 && word.find_first_of("_/") != std::string_view::npos;
  if (name || digits >= 3) return 4;
  if (digits == word.size()) return 1;
  if (digits > 0 && word.size() >= 3 && word.size() < 5) return 2;  // "ib9", "eth0"
  return word.size() >= 5 ? 1 : 0;
}

constexpr int kSaysWhatWentWrong = 3;

// "NaN" in the sentence is "nan" in the line.
bool IsNotFinite(std::string_view word) {
  for (const std::string_view one : {"nan", "NaN", "NAN", "inf", "Inf", "INF"})
    if (word == one) return true;
  return false;
}

// What each word of the sentence is worth in the line. A number behind one of these words is what the line is cited
// for: "signal 9", "exit code 3", "Xid 31".
std::unordered_map<std::string_view, int> WeightsOf(std::string_view about) {
  std::unordered_map<std::string_view, int> weights;
  // "... by key '0', but store->get('0') got error: Connection reset by peer": what went wrong, whatever it is cited
  // for.
  for (const std::string_view one : {"reset", "refused", "closed", "unreachable", "denied", "aborted"})
    weights[one] = kSaysWhatWentWrong;
  std::string_view before;
  bool awaited = false;  // "waiting for rank 5"
  for (const QuotedWord& word : WordsOf(about)) {
    int weight = WeightOf(word.text);
    const bool named = before == "signal" || before == "code" || before == "Xid" || before == "step";
    const bool numbered = word.at > 0 && about[word.at - 1] == '#';  // "all_reduce #17": SeqNum=17 in the line
    if ((named || numbered) && IsDigitByte(word.text[0])) weight = std::max(weight, 3);
    if (before == "for" && (word.text == "rank" || word.text == "ranks"))
      awaited = true;
    else if (awaited && IsDigitByte(word.text[0]))
      weight = std::max(weight, 2);
    else
      awaited = false;
    if (IsNotFinite(word.text))
      for (const std::string_view one : {"nan", "NaN", "NAN", "inf", "Inf", "INF"}) weights[one] = 4;
    if (int& known = weights[word.text]; weight > known) known = weight;
    before = word.text;
  }
  return weights;
}

}  // namespace

std::string QuoteWindow(std::string_view line, std::string_view about, size_t room) {
  constexpr int kWorthIt = 2;  // so much more than the beginning of the line has
  if (line.size() <= room || room == 0) return std::string(line);
  const std::unordered_map<std::string_view, int> weights = WeightsOf(about);
  const std::vector<QuotedWord> words = WordsOf(line);
  const auto score = [&](size_t begin) {
    std::set<std::string_view> seen;
    int sum = 0;
    for (const QuotedWord& word : words) {
      if (word.at < begin || word.end > begin + room) continue;
      const auto weight = weights.find(word.text);
      if (weight != weights.end() && seen.insert(word.text).second) sum += weight->second;
    }
    return sum;
  };
  int best = score(0) + kWorthIt - 1;
  std::vector<size_t> starts;
  for (const QuotedWord& word : words) {
    // The end of the line needs no more room than it has.
    const bool begins = word.at > 0 && std::string_view(" [('\"").find(line[word.at - 1]) != std::string_view::npos;
    // "[PG 0 Rank 5] Received": not inside the brackets.
    const auto before = line.substr(0, word.at);
    const bool inside = before.rfind('[') != std::string_view::npos && before.rfind('[') + 1 < word.at &&
                        (before.rfind(']') == std::string_view::npos || before.rfind(']') < before.rfind('['));
    if (!begins || inside || (word.at > line.size() - room && !starts.empty())) continue;
    const int here = score(word.at);
    if (here > best) best = here, starts.clear();
    if (here == best && here >= score(0) + kWorthIt) starts.push_back(word.at);
  }
  if (starts.empty()) return std::string(line);
  size_t start = starts[starts.size() / 2];
  if (line[start - 1] == '[' || line[start - 1] == '(') --start;  // "[Rank 5]" keeps both of its brackets
  return (start > 0 ? "..." : "") + std::string(line.substr(start));
}

}  // namespace tacet
