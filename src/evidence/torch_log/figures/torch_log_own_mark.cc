// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_own_mark.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_places.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kLongestMark = 16, kMostMarkKeys = 16, kMostMarkLines = 4000, kMostMarks = 4096;

bool IsLetterOfMark(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// What counts something else than processes, or processes that are no ranks.
bool CountsOtherThings(std::string_view word) {
  const std::string low = LowerCase(word);
  for (const std::string_view one :
       {"step",    "iter",   "epoch",   "batch",  "round", "it",   "ep",     "fold",   "trial",
        "layer",   "block",  "phase",   "task",   "stage", "env",  "actor",  "loader", "shard",
        "sample",  "query",  "request", "prompt", "user",  "item", "expert", "head",   "thread",
        "attempt", "run",    "seed",    "update", "part",  "file", "chunk",  "game",   "agent",
        "client",  "server", "node",    "host",   "job",   "gen",  "frame",  "line",   "warning"})
    if (low.starts_with(one)) return true;
  return false;
}

// Processes that are ranks only where something else shows it: launchers call ranks so, and data loaders their workers.
bool MayCountOthers(std::string_view word) { return LowerCase(word).starts_with("worker"); }

struct OwnMarkAt {
  std::string key;
  int32_t number = -1;
  std::string_view rest;
  bool unsure = false;  // the word alone does not show that it counts ranks
};

// "(chat 2) ...", "[r2] ...", "<2> ...", "replica-2: ...", "gpu2 | ..."
OwnMarkAt MarkAt(std::string_view text) {
  OwnMarkAt mark;
  constexpr std::string_view kOpen = "([<{", kClose = ")]>}";
  const size_t bracket = text.empty() ? std::string_view::npos : kOpen.find(text[0]);
  std::string_view rest = text.substr(bracket == std::string_view::npos ? 0 : 1);
  size_t word = 0;
  while (word < rest.size() && word <= kLongestMark && IsLetterOfMark(rest[word])) ++word;
  if (word > kLongestMark || (word == 0 && bracket == std::string_view::npos)) return mark;
  if (word > 0 && CountsOtherThings(rest.substr(0, word))) return mark;
  size_t digit = word;
  if (word > 0 && digit < rest.size() && std::string_view(" -_#=:").find(rest[digit]) != std::string_view::npos)
    ++digit;
  std::string_view number = rest.substr(std::min(digit, rest.size()));
  int32_t value = -1;
  if (number.empty() || !IsDigit(number[0]) || !TakeNumber(number, &value)) return mark;
  std::string close;
  if (bracket != std::string_view::npos) {
    close = kClose[bracket];
    if (!TakeLiteral(number, close)) return mark;
    TakeLiteral(number, ":");
  } else {
    for (const std::string_view one : {": ", " | ", " > ", "> ", " - ", " -> "})
      if (close.empty() && TakeLiteral(number, one)) close = one;
    if (close.empty()) return mark;
  }
  mark.rest = Trim(number);
  if (mark.rest.empty()) return mark;
  mark.key = std::string(text.substr(0, static_cast<size_t>(rest.data() - text.data()) + digit)) + "#" + close;
  mark.number = value;
  mark.unsure = MayCountOthers(rest.substr(0, word));
  return mark;
}

// Of one way to mark lines.
struct MarkUsage {
  std::map<int32_t, std::map<uint64_t, size_t>> shapes;  // of the lines behind each number, with their count
  size_t lines = 0, falls = 0;                           // falls: a number below that of the line before
  int32_t before = -1;
  bool unsure = false;
};

// A frame, the code under it, a launcher's table: no program marks these.
bool IsOfAnError(std::string_view text) {
  for (const std::string_view begin : {"  ", "Traceback (most", "====", "----"})
    if (text.starts_with(begin)) return true;
  return false;
}

// "  rank      : 1 (local_rank: 1)" of torchrun's list of those that failed; -1: another line.
int32_t FailedRankIn(std::string_view text) {
  text = Trim(text);
  int32_t rank = -1;
  if (!TakeLiteral(text, "rank ")) return -1;
  text = Trim(text);
  if (!TakeLiteral(text, ": ") || !TakeNumber(text, &rank) || !text.starts_with(" (local_rank: ")) return -1;
  return rank;
}

// Each number from 0 on, and a line of one kind that returns behind each of them.
bool AreRanks(const MarkUsage& usage) {
  constexpr size_t kFewestRanks = 2, kFewestLines = 6, kFewestFalls = 2, kFewestReturns = 2;
  if (usage.shapes.size() < kFewestRanks || usage.lines < kFewestLines || usage.falls < kFewestFalls) return false;
  if (usage.shapes.rbegin()->first + 1 != static_cast<int32_t>(usage.shapes.size())) return false;
  const auto& first = usage.shapes.begin()->second;
  return std::any_of(first.begin(), first.end(), [&](const auto& shape) {
    return std::all_of(usage.shapes.begin(), usage.shapes.end(), [&](const auto& one) {
      const auto same = one.second.find(shape.first);
      return same != one.second.end() && same->second >= kFewestReturns;
    });
  });
}

}  // namespace

OwnMark OwnMark::Find(std::string_view bytes, const LabelStyle& style) {
  std::map<std::string, MarkUsage> usages;
  std::set<int32_t> failed;  // by the launcher's numbers
  size_t lines = 0;
  LineReader reader(bytes);
  std::string_view line;
  while (lines < kMostMarkLines && reader.Next(&line)) {
    const LinePrefix prefix = SplitPrefix(line.substr(0, 2000), style);
    if (prefix.rank >= 0 || prefix.severity != 0 || IsLibraryLine(prefix.text)) continue;
    if (const int32_t rank = FailedRankIn(prefix.text); rank >= 0) failed.insert(rank);
    if (IsOfAnError(prefix.text)) continue;
    ++lines;
    const OwnMarkAt mark = MarkAt(Trim(prefix.text));
    if (mark.number < 0 || (usages.size() >= kMostMarkKeys && !usages.contains(mark.key))) continue;
    MarkUsage& usage = usages[mark.key];
    if (usage.shapes.size() >= kMostMarks && !usage.shapes.contains(mark.number)) continue;
    ++usage.lines;
    usage.falls += mark.number < usage.before;
    usage.before = mark.number;
    usage.unsure = mark.unsure;
    ++usage.shapes[mark.number][PlaceOf(mark.rest, -1).shape];
  }
  OwnMark found;
  size_t most = 0;
  for (const auto& [key, usage] : usages) {
    // Nearly all that the program prints, and not a list among other lines.
    if (usage.lines * 2 < lines || usage.lines <= most || !AreRanks(usage)) continue;
    // Several ranks failed, by the launcher's own list, and each of them is one of those that print.
    if (usage.unsure && (failed.size() < 2 || *failed.rbegin() > usage.shapes.rbegin()->first)) continue;
    most = usage.lines;
    found.key_ = key;
  }
  return found;
}

int32_t OwnMark::Take(std::string_view& text) const {
  if (key_.empty()) return -1;
  const OwnMarkAt mark = MarkAt(text);
  if (mark.number < 0 || mark.key != key_) return -1;
  text = mark.rest;
  return mark.number;
}

}  // namespace tacet
