// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/own_way.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

namespace tacet {
namespace {

using Lines = PrintedLines::Lines;
using LinesOfRanks = std::map<Rank, Lines>;

bool OthersPrint(const LinesOfRanks& tails, Rank rank, uint64_t shape) {
  return std::any_of(tails.begin(), tails.end(), [&](const auto& one) {
    return one.first != rank &&
           std::any_of(one.second.begin(), one.second.end(), [&](const OwnLine* line) { return line->shape == shape; });
  });
}

// Nothing of the program follows it.
const OwnLine* LastBarrier(const PrintedLines& printed, const Lines& own, Rank rank) {
  const auto found = printed.barriers.find(rank);
  if (found == printed.barriers.end() || found->second.empty()) return nullptr;
  const OwnLine* last = found->second.back();
  // Of output in two files only times would tell which came last.
  const bool is_last = std::all_of(own.begin(), own.end(), [&](const OwnLine* line) {
    return line->source.file == last->source.file && line->source.line < last->source.line;
  });
  return is_last ? last : nullptr;
}

int64_t LinesAtWork(const LinesOfRanks& tails, const Lines& own, Rank rank) {
  int64_t count = 0;
  for (auto line = own.rbegin(); line != own.rend() && (*line)->shape == own.back()->shape; ++line)
    count += (*line)->times;
  return OthersPrint(tails, rank, own.back()->shape) ? 0 : count;
}

// "scoring 100 sentences", "BLEU 22.95", ..., "scoring 20000 sentences": the line that came each time before.
const OwnLine* FollowerOf(const LinesOfRanks& tails, const Lines& own, Rank rank) {
  constexpr size_t kOften = 2;
  if (OthersPrint(tails, rank, own.back()->shape)) return nullptr;
  const OwnLine* next = nullptr;
  size_t times = 0;
  for (size_t i = 0; i + 1 < own.size(); ++i) {
    if (own[i]->shape != own.back()->shape) continue;
    if (own[i + 1]->shape == own.back()->shape || (next && next->shape != own[i + 1]->shape)) return nullptr;
    next = own[i + 1];
    ++times;
  }
  return times >= kOften && !OthersPrint(tails, rank, next->shape) ? next : nullptr;
}

// The last line of all others, where it says that they communicate and this rank has none of its kind.
const OwnLine* WhereOthersWait(const LinesOfRanks& tails, const Lines& own, Rank rank) {
  const OwnLine* where = nullptr;
  size_t others = 0;
  for (const auto& [other, lines] : tails) {
    if (other == rank) continue;
    if (lines.empty() || !lines.back()->communicates || (where && lines.back()->shape != where->shape)) return nullptr;
    where = lines.back();
    ++others;
  }
  if (others < 2 || !where) return nullptr;
  return std::none_of(own.begin(), own.end(), [&](const OwnLine* line) { return line->shape == where->shape; })
             ? where
             : nullptr;
}

// "00:21:51 reading shard 0005": what a line says behind the time or the rank that it begins with.
std::string_view WordsOfLine(const OwnLine& line) {
  const std::string_view text = line.text;
  return text.substr(std::min(text.find_first_not_of("0123456789:.,-/ []()|T"), text.size()));
}

// All others, two or more, have come exactly as far.
bool IsLastOfAll(const LinesOfRanks& tails, const OwnLine& own, Rank rank) {
  const std::string_view words = WordsOfLine(own);
  return tails.size() >= 3 && words.size() >= 4 && std::all_of(tails.begin(), tails.end(), [&](const auto& one) {
           return one.first == rank || (!one.second.empty() && one.second.back()->shape == own.shape &&
                                        WordsOfLine(*one.second.back()) == words);
         });
}

}  // namespace

OwnWay FindOwnWay(const PrintedLines& printed, const RankLife& life) {
  constexpr int64_t kManyLines = 3;
  const Rank rank = life.rank;
  const LinesOfRanks& tails = printed.last;
  const Lines& own = printed.LastOf(rank);
  if (own.empty() || tails.size() < 2) return {};
  OwnWay way;
  way.own = own.back();
  for (const Event* loss : {life.store_lost, life.lost_peer})
    if (const OwnLine* line = loss && !life.timeout ? LineBehind(printed, rank, *loss) : nullptr) {
      way.kind = OwnWay::Kind::went_on;
      way.own = line;
      return way;
    }
  if (const OwnLine* barrier = LastBarrier(printed, own, rank)) {
    way.kind = OwnWay::Kind::in_barrier;
    way.own = barrier;
    return way;
  }
  // Others must be known by their lines, too.
  if (tails.size() < printed.ranks.size()) return {};
  if (way.lines = LinesAtWork(tails, own, rank); way.lines >= kManyLines) {
    way.kind = OwnWay::Kind::at_work;
  } else if (way.next = FollowerOf(tails, own, rank); way.next) {
    way.kind = OwnWay::Kind::between;
  } else if (way.own->communicates && !OthersPrint(tails, rank, way.own->shape)) {
    way.kind = OwnWay::Kind::communicates;
  } else if (way.other = WhereOthersWait(tails, own, rank); way.other && !OthersPrint(tails, rank, way.own->shape)) {
    way.kind = OwnWay::Kind::other_branch;
  } else if (IsLastOfAll(tails, *way.own, rank)) {
    way.kind = OwnWay::Kind::same_line;
  }
  return way;
}

}  // namespace tacet
