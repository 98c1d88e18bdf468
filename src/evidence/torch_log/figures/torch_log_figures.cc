// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_figures.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_figure_names.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kMostFigures = 20'000;  // of one text
constexpr size_t kFigureLine = 1000;

char LowLetter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsNamePart(char c) { return IsDigit(c) || (LowLetter(c) >= 'a' && LowLetter(c) <= 'z') || c == '_'; }

struct NamedFigure {
  double value = 0;
  std::string_view behind;
};

// The number behind a name that stands by itself: "Data 270.112 (270.112)", "load_data_time: 19.5", "mfu=34.2%". `low`
// is the line in small letters, and is looked at from `from` on.
std::optional<NamedFigure> FigureBehind(std::string_view low, std::string_view name, size_t from = 0) {
  for (size_t at = low.find(name, from); at != std::string_view::npos; at = low.find(name, at + 1)) {
    if (at > 0 && IsNamePart(low[at - 1])) continue;
    std::string_view rest = low.substr(at + name.size());
    size_t marks = 0;
    while (marks < rest.size() && marks < 8 && std::string_view(" \t:='\"").find(rest[marks]) != std::string_view::npos)
      ++marks;
    rest.remove_prefix(marks);
    NamedFigure found;
    if (marks == 0 || rest.empty() || !IsDigit(rest[0]) || !TakeDouble(rest, &found.value)) continue;
    // "Time: 10:04:11", "time 2024-01-02"
    if (!rest.empty() && (rest[0] == ':' || rest[0] == '-' || rest[0] == '/')) continue;
    found.behind = rest;
    return found;
  }
  return std::nullopt;
}

// A rate in GB/s; 0: there is none.
double RateIn(std::string_view low) {
  struct RateUnit {
    std::string_view word;
    double gbs;
  };
  // Bits and bytes differ in the case of one letter, which `low` has lost: the caller hands over the line as it is.
  static constexpr std::array<RateUnit, 8> kUnits{{{"GB/s", 1},
                                                   {"GBps", 1},
                                                   {"GiB/s", 1.073741824},
                                                   {"Gb/s", 0.125},
                                                   {"Gbps", 0.125},
                                                   {"Gbit/s", 0.125},
                                                   {"MB/s", 1e-3},
                                                   {"TB/s", 1e3}}};
  for (const RateUnit& unit : kUnits) {
    const size_t at = low.find(unit.word);
    if (at == std::string_view::npos) continue;
    size_t end = at;
    while (end > 0 && low[end - 1] == ' ') --end;
    size_t begin = end;
    while (begin > 0 && (IsDigit(low[begin - 1]) || low[begin - 1] == '.')) --begin;
    double value = 0;
    if (IsWholeNumber(low.substr(begin, end - begin), &value)) return value * unit.gbs;
  }
  return 0;
}

// "[[0, 1, 2, 3]]" has four members; so have "4 GPUs".
int64_t MembersIn(std::string_view low) {
  if (const auto list = After(low, "[")) {
    std::string_view rest = *list;
    while (TakeLiteral(rest, "[")) {
    }
    int64_t members = 0, number = 0;
    while (TakeNumber(rest, &number)) {
      ++members;
      TakeLiteral(rest, ",");
      SkipBlanks(rest);
    }
    if (members > 1 && rest.starts_with("]")) return members;
  }
  for (const std::string_view name : {" gpus", " ranks", " processes"})
    if (const size_t at = low.find(name); at != std::string_view::npos) {
      size_t begin = at;
      while (begin > 0 && IsDigit(low[begin - 1])) --begin;
      std::string_view digits = low.substr(begin, at - begin);
      int64_t members = 0;
      if (TakeNumber(digits, &members)) return members;
    }
  return 0;
}

bool ReadGroupRate(std::string_view text, std::string_view low, const SourceRef& source, LogOutline& out) {
  static constexpr std::array<std::string_view, 10> kOperations{
      "allreduce",     "all_reduce",     "all-reduce", "allgather",  "all_gather",
      "reducescatter", "reduce_scatter", "alltoall",   "all_to_all", "broadcast"};
  const auto name =
      std::find_if(kOperations.begin(), kOperations.end(), [&](std::string_view one) { return Contains(low, one); });
  if (name == kOperations.end() || out.rates.size() >= kMostFigures) return false;
  GroupRate rate{.members = MembersIn(low), .gbs = RateIn(text), .source = source};
  if (rate.members < 2 || rate.gbs <= 0) return false;
  std::copy_if(name->begin(), name->end(), std::back_inserter(rate.operation), [](char c) { return c >= 'a'; });
  out.rates.push_back(std::move(rate));
  return true;
}

// "1", "node2", "node 2", "gpu-a1,"
std::string TakeMember(std::string_view& text) {
  std::string_view word = TakeWord(text);
  if (word == "node" || word == "nodes" || word == "host" || word == "hosts" || word == "machine" || word == "machines")
    word = TakeWord(text);
  while (!word.empty() && !IsNamePart(word.back())) word.remove_suffix(1);
  while (!word.empty() && !IsNamePart(word.front())) word.remove_prefix(1);
  const bool numbered = std::any_of(word.begin(), word.end(), IsDigit);
  return numbered && word.size() < 64 ? std::string(word) : std::string();
}

// "between 1 and 2 I get 25 GB/s, between 1 and 3 39 GB/s"
bool ReadPairs(std::string_view text, const SourceRef& source, LogOutline& out) {
  bool any = false;
  auto rest = After(text, "between ");
  while (rest) {
    std::string_view part = rest->substr(0, rest->find("between "));
    PairRate pair{.source = source};
    pair.one = TakeMember(part);
    if (TakeWord(part) == "and") {
      pair.other = TakeMember(part);
      pair.gbs = RateIn(part);
      if (!pair.one.empty() && !pair.other.empty() && pair.gbs > 0 && out.pairs.size() < kMostFigures) {
        out.pairs.push_back(std::move(pair));
        any = true;
      }
    }
    rest = After(*rest, "between ");
  }
  return any;
}

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "gn": the letters of a name, by which the hosts of one cluster are alike.
std::string StemOf(std::string_view name) {
  std::string stem;
  std::copy_if(name.begin(), name.end(), std::back_inserter(stem), [](char c) { return IsAlpha(c) || c == '-'; });
  return stem;
}

std::string_view TakeName(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && (IsNamePart(text[end]) || text[end] == '.') && !text.substr(end).starts_with("->") &&
         !text.substr(end).starts_with("--"))
    ++end;
  const std::string_view name = text.substr(0, end);
  text.remove_prefix(end);
  return name;
}

// gn644,gn699     49.36                        a list that somebody made of a benchmark between two hosts each
// gn632 <-> gn641: 88.4 GB/s  # other rack
bool ReadPairRow(std::string_view text, const SourceRef& source, LogOutline& out) {
  text = Trim(text.substr(0, text.find('#')));
  PairRate pair{.source = source};
  pair.one = TakeName(text);
  SkipBlanks(text);
  const bool joined = TakeLiteral(text, "<-->") || TakeLiteral(text, "<->") || TakeLiteral(text, "-->") ||
                      TakeLiteral(text, "->") || TakeLiteral(text, ",") || TakeLiteral(text, "|");
  SkipBlanks(text);
  pair.other = TakeName(text);
  if (!joined || pair.one == pair.other || pair.one.size() < 3 || pair.one.size() > 63 || pair.other.size() > 63)
    return false;
  const std::string stem = StemOf(pair.one);
  const auto numbered = [](const std::string& name) {
    return IsAlpha(name[0]) && std::any_of(name.begin(), name.end(), IsDigit);
  };
  if (stem.size() < 2 || pair.other.empty() || stem != StemOf(pair.other) || !numbered(pair.one)) return false;
  while (!text.empty() &&
         (text[0] == ' ' || text[0] == '\t' || text[0] == ':' || text[0] == '=' || text[0] == ',' || text[0] == '|'))
    text.remove_prefix(1);
  pair.gbs = RateIn(text);
  if (pair.gbs <= 0) {
    pair.unit_told = false;
    // A figure with a fraction and nothing behind it.
    if (!TakeDouble(text, &pair.gbs) || !(pair.gbs > 0) || !Trim(text).empty()) return false;
  }
  if (out.pairs.size() < kMostFigures) out.pairs.push_back(std::move(pair));
  return true;
}

// "iter 5: loss 1.0036, time 17.95ms, mfu 0.31%": a model with next to nothing to compute, by design.
bool IsBesideAShortStep(std::string_view low) {
  constexpr double kShortStep = 0.1;  // seconds
  std::vector<NamedNumber> numbers;
  FindNamedNumbers(low, numbers);
  return std::any_of(numbers.begin(), numbers.end(), [](const NamedNumber& number) {
    const FigureName name = MeaningOf(number.name);
    const double seconds =
        name.kind == FigureKind::whole && !number.unit.empty() ? SecondsOf(number, name, 1, true) : -1;
    return seconds >= 0 && seconds < kShortStep;
  });
}

bool ReadUtilization(std::string_view low, const SourceRef& source, LogOutline& out) {
  if (!Contains(low, "mfu") && !Contains(low, "utilization")) return false;
  for (const std::string_view name :
       {"mfu", "mfu(%)", "model flops utilization", "floating point utilization", "flops utilization"}) {
    const auto found = FigureBehind(low, name);
    if (!found || out.utilizations.size() >= kMostFigures) continue;
    if (IsBesideAShortStep(low)) return true;
    const bool percent = Trim(found->behind).starts_with("%") || name == "mfu(%)" || found->value > 1;
    out.utilizations.push_back({percent ? found->value : found->value * 100, source});
    return true;
  }
  return false;
}

}  // namespace

bool ReadFigures(std::string_view text, const SourceRef& source, LogOutline& out) {
  text = text.substr(0, kFigureLine);
  if (std::none_of(text.begin(), text.end(), IsDigit)) return false;
  const std::string small = LowerCase(text);
  const std::string_view low = small;
  if (ReadUtilization(low, source, out) || ReadPairRow(text, source, out)) return true;
  const bool rated = Contains(text, "B/s") || Contains(text, "b/s") || Contains(text, "bps") || Contains(text, "Bps") ||
                     Contains(text, "bit/s");
  return rated && (ReadGroupRate(text, low, source, out) || ReadPairs(text, source, out));
}

void FinishFigures(LogOutline& out) {
  // Two names and a bare number may be anything; a list of them is one of measurements.
  constexpr size_t kFewestBare = 3;
  const auto bare =
      std::count_if(out.pairs.begin(), out.pairs.end(), [](const PairRate& one) { return !one.unit_told; });
  if (bare > 0 && static_cast<size_t>(bare) < kFewestBare)
    std::erase_if(out.pairs, [](const PairRate& one) { return !one.unit_told; });
  if (out.pairs.size() < 2) out.pairs.clear();
  if (out.rates.size() < 2) out.rates.clear();
}

bool TellsRates(const LogOutline& outline) {
  return !outline.pairs.empty() || !outline.rates.empty() || outline.steps.size() >= 3 ||
         outline.utilizations.size() >= 2;
}

}  // namespace tacet
