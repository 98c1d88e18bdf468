// SPDX-License-Identifier: Apache-2.0
#include "analysis/output_front.h"

#include <algorithm>
#include <map>
#include <set>

namespace tacet {
namespace {

using Lines = std::vector<const OwnLine*>;

// Lines without a mark are those of the one rank that a file is of.
Rank SpeakerOf(const Incident& incident, const OwnLine& line) {
  if (line.rank >= 0) return Rank{line.rank};
  Rank only;
  for (const Process& process : incident.processes) {
    if (!process.rank.known() ||
        std::find(process.files.begin(), process.files.end(), line.source.file) == process.files.end())
      continue;
    if (only.known() && only != process.rank) return Rank{};
    only = process.rank;
  }
  return only;
}

// torchrun's labels count on each node: they are ranks where there is one node.
bool AreLocalRanks(const std::vector<Rank>& all, const std::set<int32_t>& local) {
  return local.size() == all.size() && !all.empty() && all.back().value == *local.rbegin();
}

// One outline may hold what another one holds, too: a console, and the files of each rank. The fuller one counts.
std::map<Rank, Lines> ReadLines(const Incident& incident, std::vector<OwnLine> LogOutline::*kept, bool* cut) {
  const std::vector<Rank> all = incident.AllRanks();
  std::set<int32_t> local;
  for (const LogOutline& outline : incident.outlines)
    for (const OwnLine& line : outline.own_lines)
      if (line.local) local.insert(line.rank);
  const bool one_node = AreLocalRanks(all, local);
  std::map<Rank, Lines> tails;
  for (const LogOutline& outline : incident.outlines) {
    std::map<Rank, Lines> own;
    // Where several ranks mark their lines, one without a mark is nobody's: a launcher's, most often.
    std::set<int32_t> marked;
    for (const OwnLine& line : outline.own_lines) marked.insert(line.rank);
    marked.erase(-1);
    for (const OwnLine& line : outline.*kept) {
      if (line.rank < 0 && marked.size() > 1) continue;
      if (line.local && !one_node) continue;
      const Rank rank = SpeakerOf(incident, line);
      if (rank.known() && (all.empty() || std::binary_search(all.begin(), all.end(), rank))) own[rank].push_back(&line);
    }
    if (own.size() == 1 && outline.cut_end && cut) *cut = true;
    for (auto& [rank, lines] : own)
      if (Lines& known = tails[rank]; known.size() < lines.size()) known = std::move(lines);
  }
  return tails;
}

std::map<Rank, Lines> ReadTails(const Incident& incident, bool* cut) {
  return ReadLines(incident, &LogOutline::own_lines, cut);
}

std::set<uint64_t> Places(const Lines& lines) {
  std::set<uint64_t> places;
  for (const OwnLine* line : lines) places.insert(line->place);
  return places;
}

bool HasShape(const Lines& lines, uint64_t shape) {
  return std::any_of(lines.begin(), lines.end(), [&](const OwnLine* line) { return line->shape == shape; });
}

struct Tails {
  std::map<Rank, Lines> lines;
  std::map<Rank, std::set<uint64_t>> places;
};

// The last line that this rank prints like all others; null where there is none.
const OwnLine* LastShared(const Tails& tails, Rank rank) {
  const Lines& own = tails.lines.at(rank);
  const auto found = std::find_if(own.rbegin(), own.rend(), [&](const OwnLine* line) {
    return std::all_of(tails.places.begin(), tails.places.end(),
                       [&](const auto& one) { return one.second.contains(line->place); });
  });
  return found == own.rend() ? nullptr : *found;
}

// At some time all ranks printed a line of this shape and of one place: those that count up to another number on each
// rank ("batch 10/26", "batch 10/30") cannot be compared.
bool IsShared(const Tails& tails, Rank rank, uint64_t shape) {
  const Lines& own = tails.lines.at(rank);
  return std::any_of(own.begin(), own.end(), [&](const OwnLine* line) {
    return line->shape == shape && std::all_of(tails.places.begin(), tails.places.end(),
                                               [&](const auto& one) { return one.second.contains(line->place); });
  });
}

// Lines of a shape that all ranks print, behind the last line that all printed.
Lines Beyond(const Tails& tails, Rank rank) {
  const OwnLine* shared = LastShared(tails, rank);
  const Lines& own = tails.lines.at(rank);
  Lines beyond;
  for (auto line = std::find(own.begin(), own.end(), shared); line != own.end(); ++line)
    if (*line != shared &&
        std::all_of(tails.lines.begin(), tails.lines.end(),
                    [&](const auto& one) { return HasShape(one.second, (*line)->shape); }) &&
        IsShared(tails, rank, (*line)->shape))
      beyond.push_back(*line);
  return beyond;
}

// What all ranks but this one printed, and nobody of them more than that.
const OwnLine* MissedBy(const Tails& tails, Rank rank, const std::map<Rank, Lines>& beyond) {
  if (!beyond.at(rank).empty()) return nullptr;
  const OwnLine* missed = nullptr;
  for (const auto& [other, lines] : beyond) {
    if (other == rank) continue;
    if (lines.empty()) return nullptr;
    if (!missed) missed = lines.front();
    if (!tails.places.at(other).contains(missed->place)) return nullptr;
  }
  return missed;
}

bool IsAlone(const std::map<Rank, Lines>& beyond, Rank rank) {
  return !beyond.at(rank).empty() && std::all_of(beyond.begin(), beyond.end(), [&](const auto& one) {
    return one.first == rank || one.second.empty();
  });
}

OutputFront FrontOf(const Tails& tails) {
  std::map<Rank, Lines> beyond;
  for (const auto& [rank, lines] : tails.lines) beyond[rank] = Beyond(tails, rank);
  std::vector<OutputFront> found;
  for (const auto& [rank, lines] : tails.lines) {
    OutputFront front;
    front.rank = rank;
    front.own = lines.back();
    if (const OwnLine* missed = MissedBy(tails, rank, beyond)) {
      front.kind = OutputFront::Kind::lags;
      front.other = missed;
    } else if (IsAlone(beyond, rank)) {
      front.kind = OutputFront::Kind::leads;
      front.own = beyond.at(rank).front();
      front.other = LastShared(tails, rank);
    } else if (const OwnLine* shared = LastShared(tails, rank);
               shared != front.own && std::all_of(tails.lines.begin(), tails.lines.end(), [&](const auto& other) {
                 return other.first == rank || LastShared(tails, other.first) == other.second.back();
               })) {
      front.kind = OutputFront::Kind::elsewhere;
      front.other = shared;
    }
    if (front) found.push_back(std::move(front));
  }
  return found.size() == 1 ? found.front() : OutputFront{};
}

OutputFront ApartOf(const Tails& tails) {
  std::map<uint64_t, std::vector<Rank>> at;
  for (const auto& [rank, lines] : tails.lines) at[lines.back()->place].push_back(rank);
  if (at.size() != 2) return {};
  const auto& one = std::min(at.begin()->second, std::next(at.begin())->second,
                             [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto& most = &one == &at.begin()->second ? std::next(at.begin())->second : at.begin()->second;
  if (one.size() != 1) return {};
  OutputFront front;
  front.kind = OutputFront::Kind::apart;
  front.rank = one.front();
  front.own = tails.lines.at(front.rank).back();
  front.other = tails.lines.at(most.front()).back();
  return front;
}

}  // namespace

std::map<Rank, Lines> LastLinesOfRanks(const Incident& incident) { return ReadTails(incident, nullptr); }

std::map<Rank, Lines> FirstLinesOfRanks(const Incident& incident) {
  return ReadLines(incident, &LogOutline::first_lines, nullptr);
}

std::map<Rank, Lines> BarriersOfRanks(const Incident& incident) {
  return ReadLines(incident, &LogOutline::barriers, nullptr);
}

std::vector<const OwnLine*> OwnLinesOf(const Incident& incident, Rank rank) {
  const auto tails = ReadTails(incident, nullptr);
  const auto found = tails.find(rank);
  return found == tails.end() ? Lines{} : found->second;
}

OutputFront FindOutputFront(const Incident& incident) {
  constexpr size_t kFewestRanks = 3, kFewestLines = 2;
  const std::vector<Rank> all = incident.AllRanks();
  bool cut = false;
  Tails tails{ReadTails(incident, &cut), {}};
  if (cut || all.size() < kFewestRanks || tails.lines.size() != all.size()) return {};
  bool comparable = true;
  for (const auto& [rank, lines] : tails.lines) {
    if (lines.size() < kFewestLines) return {};
    tails.places[rank] = Places(lines);
  }
  for (const Rank rank : all) comparable = comparable && LastShared(tails, rank);
  OutputFront front = comparable ? FrontOf(tails) : OutputFront{};
  if (!front) front = ApartOf(tails);
  for (const Rank other : all)
    if (front && other != front.rank) front.others.push_back(other);
  return front;
}

}  // namespace tacet
