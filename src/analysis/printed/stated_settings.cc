// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/stated_settings.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/text_scan.h"
#include "model/events/printed_words.h"

namespace tacet {
namespace {

constexpr size_t kFewestRanks = 3;

using Words = PrintedWords;

// One line of each rank, of the same words but for some.
struct Row {
  std::vector<const OwnLine*> lines;  // in the order of ranks
  std::vector<Words> words;
};

// "node2:" of rank 2 is "node#:".
std::string WithoutRank(const std::string& word, Rank rank) {
  const std::string digits = std::to_string(rank.value);
  for (size_t at = word.find(digits); at != std::string::npos; at = word.find(digits, at + 1)) {
    const size_t end = at + digits.size();
    const bool apart = (at == 0 || (!IsDigit(word[at - 1]) && word[at - 1] != '.')) &&
                       (end == word.size() || (!IsDigit(word[end]) && word[end] != '.'));
    if (apart) return word.substr(0, at) + "#" + word.substr(end);
  }
  return word;
}

// The first rank of a job often has a task of its own, and says so.
bool IsRole(Rank rank, std::string_view own, std::string_view other) {
  const auto plain = [](std::string_view value) { return IsNumber(value) && value != "0" && value != "1"; };
  return rank == Rank{0} && !(plain(own) && IsNumber(other)) && !(plain(other) && IsNumber(own));
}

struct Column {
  enum class Kind { same, odd, varies } kind = Kind::same;
  size_t odd = 0;  // index of the rank
};

Column ColumnOf(const Row& row, const std::vector<Rank>& ranks, size_t at) {
  const auto same = [&](const auto& of) {
    for (size_t i = 1; i < ranks.size(); ++i)
      if (of(i) != of(0)) return false;
    return true;
  };
  const auto word = [&](size_t i) -> const std::string& { return row.words[i][at]; };
  if (same(word) || same([&](size_t i) { return WithoutRank(word(i), ranks[i]); })) return {};
  // Two values, and one of them on one rank alone.
  size_t other = 1;
  while (word(other) == word(0)) ++other;
  size_t of_first = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (word(i) != word(0) && word(i) != word(other)) return {Column::Kind::varies, 0};
    of_first += word(i) == word(0);
  }
  if (of_first == 1) return {Column::Kind::odd, 0};
  if (of_first + 1 == ranks.size()) return {Column::Kind::odd, other};
  return {Column::Kind::varies, 0};
}

// Enough of the words must be the same for the lines to be one statement.
bool IsOneStatement(const Row& row, const std::vector<Rank>& ranks) {
  size_t same = 0;
  bool letters = false;
  const size_t count = row.words.front().size();
  for (const Words& words : row.words)
    if (words.size() != count) return false;
  for (size_t at = 0; at < count; ++at) {
    if (ColumnOf(row, ranks, at).kind != Column::Kind::same) continue;
    ++same;
    letters |= std::any_of(row.words[0][at].begin(), row.words[0][at].end(),
                           [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  }
  return letters && same >= 2 && same * 2 >= count;
}

std::optional<StatedDifference> DifferenceIn(const Row& row, const std::vector<Rank>& ranks) {
  std::optional<StatedDifference> found;
  for (size_t at = 0; at < row.words.front().size(); ++at) {
    const Column column = ColumnOf(row, ranks, at);
    if (column.kind != Column::Kind::odd) continue;
    const size_t other = column.odd == 0 ? 1 : 0;
    const std::string &own_word = row.words[column.odd][at], &other_word = row.words[other][at];
    if (IsTime(own_word) || IsMeasured(row.words[other], at) || IsMeasured(row.words[column.odd], at)) continue;
    const std::string name = NameOf(row.words[other], at);
    const std::string_view own = ValueIn(own_word), usual = ValueIn(other_word);
    if (own.empty() || usual.empty() || IsOfTheProcess(name) || IsPlace(name, usual) ||
        IsOfData(row.words[other], at, name) || IsRole(ranks[column.odd], own, usual))
      continue;
    if (row.lines[column.odd]->text.size() >= 199 && at + 1 == row.words.front().size()) continue;  // cut
    if (found && found->rank != ranks[column.odd]) return StatedDifference{};                       // several are apart
    if (found) {
      found->must_agree |= MustAgree(name);
      continue;
    }
    found.emplace();
    found->kind = StatedDifference::Kind::setting;
    found->rank = ranks[column.odd];
    found->own = row.lines[column.odd];
    found->other = row.lines[other];
    found->own_value = own;
    found->other_value = usual;
    found->must_agree = MustAgree(name);
  }
  return found;
}

using LinesByRank = std::map<Rank, PrintedLines::Lines>;

// The first lines of one rank, split once.
struct SplitLines {
  const PrintedLines::Lines* lines = nullptr;
  std::vector<Words> words;
};

SplitLines Split(const PrintedLines::Lines& lines) {
  SplitLines out{&lines, {}};
  for (const OwnLine* line : lines) out.words.push_back(WordsIn(line->text));
  return out;
}

// Adds the line of this rank that says the same as that of the first rank. False where there is none.
bool AddCounterpart(Row& row, Rank first, Rank rank, const SplitLines& among) {
  for (size_t i = 0; i < among.words.size(); ++i) {
    if (among.words[i].size() != row.words.front().size()) continue;
    const Row pair{{row.lines.front(), (*among.lines)[i]}, {row.words.front(), among.words[i]}};
    if (!IsOneStatement(pair, {first, rank})) continue;
    row.lines.push_back((*among.lines)[i]);
    row.words.push_back(among.words[i]);
    return true;
  }
  return false;
}

StatedDifference FindSetting(const LinesByRank& first, const std::vector<Rank>& ranks) {
  std::vector<SplitLines> split;
  for (const Rank rank : ranks) split.push_back(Split(first.at(rank)));
  StatedDifference found;
  for (size_t line = 0; line < split.front().words.size(); ++line) {
    Row row{{(*split.front().lines)[line]}, {split.front().words[line]}};
    size_t at = 1;
    while (at < ranks.size() && AddCounterpart(row, ranks.front(), ranks[at], split[at])) ++at;
    if (at != ranks.size() || !IsOneStatement(row, ranks)) continue;
    const auto difference = DifferenceIn(row, ranks);
    if (!difference) continue;
    if (!*difference || (found && found.rank != difference->rank)) return {};
    if (!found) found = *difference;
    found.must_agree |= difference->must_agree;
  }
  return found;
}

// The rounds before the last one, in which nobody was apart in this word.
bool AgreedBefore(const LinesByRank& tails, const std::vector<Rank>& ranks, size_t back, size_t at, size_t count) {
  Row row;
  for (const Rank rank : ranks) {
    const auto& lines = tails.at(rank);
    if (lines.size() <= back) return false;
    row.lines.push_back(lines[lines.size() - 1 - back]);
    row.words.push_back(WordsIn(row.lines.back()->text));
    if (row.words.back().size() != count) return false;
  }
  return IsOneStatement(row, ranks) && ColumnOf(row, ranks, at).kind == Column::Kind::same;
}

StatedDifference FindValue(const LinesByRank& tails, const std::vector<Rank>& ranks) {
  constexpr size_t kRounds = 2;
  Row row;
  for (const Rank rank : ranks) {
    if (tails.at(rank).empty()) return {};
    row.lines.push_back(tails.at(rank).back());
    row.words.push_back(WordsIn(row.lines.back()->text));
  }
  if (!IsOneStatement(row, ranks)) return {};
  auto difference = DifferenceIn(row, ranks);
  if (!difference || !*difference || Contains(difference->own_value, ".")) return {};
  size_t odd = 0;
  for (size_t at = 0; at < row.words.front().size(); ++at) {
    if (ColumnOf(row, ranks, at).kind != Column::Kind::odd) continue;
    ++odd;
    for (size_t back = 1; back <= kRounds; ++back)
      if (!AgreedBefore(tails, ranks, back, at, row.words.front().size())) return {};
  }
  if (odd != 1) return {};
  difference->kind = StatedDifference::Kind::value;
  return *difference;
}

}  // namespace

StatedDifference FindStatedDifference(const PrintedLines& printed) {
  std::vector<Rank> ranks = printed.ranks;
  const LinesByRank &first = printed.first, &tails = printed.last;
  // Nothing else tells of ranks: those that print, if they are numbered from 0 on.
  if (ranks.empty() && !first.empty() && first.rbegin()->first.value + 1 == static_cast<int32_t>(first.size()))
    for (const auto& [rank, lines] : first) ranks.push_back(rank);
  if (ranks.size() < kFewestRanks) return {};
  StatedDifference found;
  if (first.size() == ranks.size()) found = FindSetting(first, ranks);
  if (!found && tails.size() == ranks.size()) found = FindValue(tails, ranks);
  for (const Rank rank : ranks)
    if (found && rank != found.rank) found.others.push_back(rank);
  return found;
}

}  // namespace tacet
