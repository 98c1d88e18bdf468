// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/output_front.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace tacet {
namespace {

using Lines = PrintedLines::Lines;

// On how many ranks one is found.
using Counts = std::unordered_map<uint64_t, size_t>;

Counts CountRanks(const std::map<Rank, Lines>& lines, uint64_t OwnLine::*what) {
  Counts counts;
  for (const auto& [rank, own] : lines) {
    std::set<uint64_t> found;
    for (const OwnLine* line : own) found.insert(line->*what);
    for (const uint64_t one : found) ++counts[one];
  }
  return counts;
}

bool HasPlace(const Lines& lines, uint64_t place) {
  return std::any_of(lines.begin(), lines.end(), [&](const OwnLine* line) { return line->place == place; });
}

// How far one rank came.
struct Reach {
  const OwnLine* shared = nullptr;  // the last line that it prints like all others; null where there is none
  Lines beyond;                     // lines of a shape that all ranks print, behind that line
  bool at_shared = false;           // nothing follows the shared line
};

class LineComparison {
 public:
  explicit LineComparison(const std::map<Rank, Lines>& lines)
      : lines_(lines), places_(CountRanks(lines, &OwnLine::place)), shapes_(CountRanks(lines, &OwnLine::shape)) {
    for (const auto& [rank, own] : lines) {
      const Reach& reach = reach_[rank] = ReachOf(own);
      further_ += !reach.beyond.empty();
      past_shared_ += !reach.at_shared;
      comparable_ = comparable_ && reach.shared;
    }
  }

  // There is a line that all printed.
  bool comparable() const { return comparable_; }

  OutputFront Find() const {
    std::vector<OutputFront> found;
    for (const auto& [rank, own] : lines_) {
      const Reach& reach = reach_.at(rank);
      OutputFront front;
      front.rank = rank;
      front.own = own.back();
      if (const OwnLine* missed = MissedBy(rank)) {
        front.kind = OutputFront::Kind::lags;
        front.other = missed;
      } else if (further_ == 1 && !reach.beyond.empty()) {
        front.kind = OutputFront::Kind::leads;
        front.own = reach.beyond.front();
        front.other = reach.shared;
      } else if (past_shared_ == 1 && !reach.at_shared) {
        front.kind = OutputFront::Kind::elsewhere;
        front.other = reach.shared;
      }
      if (front) found.push_back(std::move(front));
    }
    return found.size() == 1 ? found.front() : OutputFront{};
  }

 private:
  bool AllPrint(const Counts& counts, uint64_t what) const { return counts.at(what) == lines_.size(); }

  Reach ReachOf(const Lines& own) const {
    Reach reach;
    const auto shared =
        std::find_if(own.rbegin(), own.rend(), [&](const OwnLine* line) { return AllPrint(places_, line->place); });
    if (shared == own.rend()) return reach;
    reach.shared = *shared;
    reach.at_shared = shared == own.rbegin();
    for (auto line = shared.base(); line != own.end(); ++line)
      if (AllPrint(shapes_, (*line)->shape) && IsShared(own, (*line)->shape)) reach.beyond.push_back(*line);
    return reach;
  }

  // At some time all ranks printed a line of this shape and of one place: those that count up to another number on each
  // rank ("batch 10/26", "batch 10/30") cannot be compared.
  bool IsShared(const Lines& own, uint64_t shape) const {
    return std::any_of(own.begin(), own.end(),
                       [&](const OwnLine* line) { return line->shape == shape && AllPrint(places_, line->place); });
  }

  // What all ranks but this one printed, and nobody of them more than that.
  const OwnLine* MissedBy(Rank rank) const {
    if (!reach_.at(rank).beyond.empty() || further_ + 1 != lines_.size()) return nullptr;
    const OwnLine* missed = nullptr;
    for (const auto& [other, reach] : reach_) {
      if (other == rank) continue;
      if (!missed) missed = reach.beyond.front();
      if (!HasPlace(lines_.at(other), missed->place)) return nullptr;
    }
    return missed;
  }

  const std::map<Rank, Lines>& lines_;
  Counts places_, shapes_;
  std::map<Rank, Reach> reach_;
  size_t further_ = 0;      // ranks with lines beyond the shared one
  size_t past_shared_ = 0;  // ranks that printed anything behind it
  bool comparable_ = true;
};

OutputFront ApartOf(const std::map<Rank, Lines>& last) {
  std::map<uint64_t, std::vector<Rank>> at;
  for (const auto& [rank, lines] : last) at[lines.back()->place].push_back(rank);
  if (at.size() != 2) return {};
  const auto& one = std::min(at.begin()->second, std::next(at.begin())->second,
                             [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto& most = &one == &at.begin()->second ? std::next(at.begin())->second : at.begin()->second;
  if (one.size() != 1) return {};
  OutputFront front;
  front.kind = OutputFront::Kind::apart;
  front.rank = one.front();
  front.own = last.at(front.rank).back();
  front.other = last.at(most.front()).back();
  return front;
}

}  // namespace

OutputFront FindOutputFront(const PrintedLines& printed) {
  constexpr size_t kFewestRanks = 3, kFewestLines = 2;
  if (printed.cut_end || printed.ranks.size() < kFewestRanks || printed.last.size() != printed.ranks.size()) return {};
  for (const auto& [rank, lines] : printed.last)
    if (lines.size() < kFewestLines) return {};
  const LineComparison comparison(printed.last);
  OutputFront front = comparison.comparable() ? comparison.Find() : OutputFront{};
  if (!front) front = ApartOf(printed.last);
  for (const Rank other : printed.ranks)
    if (front && other != front.rank) front.others.push_back(other);
  return front;
}

}  // namespace tacet
