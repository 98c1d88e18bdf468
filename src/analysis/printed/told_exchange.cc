// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/told_exchange.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text_scan.h"
#include "model/events/printed_words.h"

namespace tacet {
namespace {

using Lines = PrintedLines::Lines;

constexpr size_t kFewestRounds = 3;  // with the last one

std::optional<int64_t> NumberAt(const PrintedWords& words, size_t at) {
  std::string_view value = ValueIn(words[at]);
  int64_t number = 0;
  if (!TakeNumber(value, &number) || !value.empty() || number < 0) return std::nullopt;
  return number;
}

// "to rank 1", "from rank 0", "peer=rank 3": the other rank that a line names; unknown: none, or several.
Rank PeerIn(const PrintedWords& words, Rank own) {
  Rank peer;
  for (size_t at = 0; at < words.size(); ++at) {
    const auto number = NumberAt(words, at);
    if (!number || *number > INT32_MAX || LowerCase(NameOf(words, at)) != "rank") continue;
    const Rank named{static_cast<int32_t>(*number)};
    if (named == own) continue;
    if (peer.known() && peer != named) return Rank{};
    peer = named;
  }
  return peer;
}

// The lines of one kind that a rank prints, of each round one, the last one last; without those that name others.
std::vector<PrintedWords> RoundsOf(const Lines& lines, Rank own, Rank peer) {
  std::vector<PrintedWords> rounds;
  const size_t count = WordsIn(lines.back()->text).size();
  for (const OwnLine* line : lines) {
    if (line->shape != lines.back()->shape) continue;
    PrintedWords words = WordsIn(line->text);
    if (words.size() == count && PeerIn(words, own) == peer) rounds.push_back(std::move(words));
  }
  return rounds;
}

// The number at one place of the last `count` rounds.
std::vector<int64_t> NumbersAt(const std::vector<PrintedWords>& rounds, size_t count, size_t at) {
  std::vector<int64_t> numbers;
  for (size_t i = rounds.size() - count; i < rounds.size(); ++i) {
    const auto number = NumberAt(rounds[i], at);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

bool IsUnlikeBefore(const std::vector<int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end() - 1, [&](int64_t one) { return one == numbers.front(); }) &&
         numbers.back() != numbers.front();
}

// What both counted alike in all rounds before, and differently in the last.
ToldExchange Compare(const std::vector<PrintedWords>& one, const std::vector<PrintedWords>& other) {
  const size_t count = std::min(one.size(), other.size());
  ToldExchange found;
  if (count < kFewestRounds) return found;
  bool several = false;
  for (size_t i = 0; i < one.back().size(); ++i) {
    const auto a = NumbersAt(one, count, i);
    for (size_t j = 0; !a.empty() && j < other.back().size(); ++j) {
      const auto b = NumbersAt(other, count, j);
      if (b.empty() || a.back() == b.back() || !std::equal(a.begin(), a.end() - 1, b.begin())) continue;
      several |= found.number >= 0;
      found.number = a.back();
      found.expected = b.back();
      const bool a_odd = IsUnlikeBefore(a), b_odd = IsUnlikeBefore(b);
      found.odd = a_odd == b_odd ? Rank{} : a_odd ? Rank{0} : Rank{1};  // which of the two, for now
      found.usual = a.front();
    }
  }
  return several ? ToldExchange{} : found;
}

}  // namespace

ToldExchange FindToldExchange(const PrintedLines& printed) {
  for (const auto& [rank, lines] : printed.last) {
    if (lines.empty()) continue;
    const Rank peer = PeerIn(WordsIn(lines.back()->text), rank);
    if (!peer.known() || peer.value <= rank.value) continue;
    const Lines& theirs = printed.LastOf(peer);
    if (theirs.empty() || PeerIn(WordsIn(theirs.back()->text), peer) != rank) continue;
    ToldExchange found = Compare(RoundsOf(lines, rank, peer), RoundsOf(theirs, peer, rank));
    if (found.number < 0) continue;
    found.one = lines.back();
    found.other = theirs.back();
    found.of_one = rank;
    found.of_other = peer;
    if (found.odd.known()) found.odd = found.odd.value == 0 ? rank : peer;
    return found;
  }
  return {};
}

}  // namespace tacet
