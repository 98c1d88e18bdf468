// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_own_lines.h"
#include "evidence/torch_log/torch_log_wait_words.h"

namespace tacet {
namespace {

constexpr size_t kKept = 16, kLongest = 200, kMostTails = 512, kMostShapes = 256;

bool IsPlaceLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void Mix(uint64_t& hash, char c) { hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ull; }

// What stands before a number that is the rank of whoever prints it.
bool NamesARank(std::string_view before) {
  while (!before.empty() && std::string_view(" =:#").find(before.back()) != std::string_view::npos)
    before.remove_suffix(1);
  if (before.empty() || before.back() == '[' || before.back() == '(') return true;
  size_t at = before.size();
  while (at > 0 && IsPlaceLetter(before[at - 1])) --at;
  const std::string word = LowerCase(before.substr(at));
  for (const std::string_view known : {"rank", "worker", "process", "proc", "gpu", "device", "r", "w", "p", "node"})
    if (word == known) return true;
  return false;
}

struct Figure {
  size_t end = 0;
  bool measured = false;  // a time, a date, or a number with a fraction
};

// A number with what belongs to it: "0.0493", "1e-05", "20:24:53.297", "2026-11-18", "13".
Figure TakeFigure(std::string_view text, size_t at) {
  Figure figure{at};
  int colons = 0, dashes = 0;
  while (figure.end < text.size()) {
    const char c = text[figure.end];
    const bool inside = figure.end + 1 < text.size() && IsDigit(text[figure.end + 1]);
    if (IsDigit(c)) {
      ++figure.end;
    } else if ((c == '.' || c == ',' || c == ':' || c == '-') && inside) {
      figure.measured |= c == '.';
      colons += c == ':';
      dashes += c == '-';
      ++figure.end;
    } else if ((c == 'e' || c == 'E') && figure.end + 2 < text.size() &&
               (text[figure.end + 1] == '-' || text[figure.end + 1] == '+') && IsDigit(text[figure.end + 2])) {
      figure.measured = true;
      figure.end += 2;
    } else {
      break;
    }
  }
  figure.measured |= colons >= 1 || dashes >= 2;
  return figure;
}

// "INFO:root:rank 1: epoch 0", "WARNING - __main__ - rank 1: epoch 0", "INFO rank 1: epoch 0"
std::string_view BehindLogger(std::string_view text) {
  for (const std::string_view level : {"INFO", "WARNING", "DEBUG", "ERROR"}) {
    std::string_view rest = text;
    if (!TakeLiteral(rest, level)) continue;
    for (const std::string_view sign : {" - ", ":"})
      if (std::string_view name = rest; TakeLiteral(name, sign))
        if (const size_t end = name.find(sign); end < 40) return Trim(name.substr(end + sign.size()));
    return Trim(rest);
  }
  return text;
}

std::string PathIn(std::string_view text) {
  for (size_t at = text.find('/'); at != std::string_view::npos; at = text.find('/', at + 1)) {
    if (at > 0 && std::string_view(" '\"=(").find(text[at - 1]) == std::string_view::npos) continue;
    std::string_view path = text.substr(at);
    path = path.substr(0, path.find_first_of(" '\"),;"));
    while (path.ends_with('.') || path.ends_with(':')) path.remove_suffix(1);
    if (path.size() > 4 && path.find('/', 1) != std::string_view::npos) return std::string(path);
  }
  return "";
}

}  // namespace

LinePlace PlaceOf(std::string_view text, int32_t rank) {
  LinePlace out{14695981039346656037ull, 14695981039346656037ull};
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool in_word = at > 0 && IsPlaceLetter(text[at - 1]);
    if (IsDigit(c) && (!in_word || NamesARank(text.substr(0, at)))) {
      const Figure figure = TakeFigure(text, at);
      const std::string_view digits = text.substr(at, figure.end - at);
      const bool is_rank = rank >= 0 && digits == std::to_string(rank) && NamesARank(text.substr(0, at));
      for (const char one : figure.measured || is_rank ? std::string_view("#") : digits) Mix(out.place, one);
      Mix(out.shape, '#');
      at = figure.end;
      continue;
    }
    if (!in_word && (text.substr(at, 3) == "nan" || text.substr(at, 3) == "inf") &&
        (at + 3 >= text.size() || !IsPlaceLetter(text[at + 3]))) {
      Mix(out.place, '#');
      Mix(out.shape, '#');
      at += 3;
      continue;
    }
    // Signs of numbers and blanks of columns say nothing.
    if (c != ' ' && c != '-' && c != '+') {
      Mix(out.place, c);
      Mix(out.shape, c);
    }
    ++at;
  }
  return out;
}

int32_t RankOfOwnMark(std::string_view text) {
  text = Trim(text).substr(0, 60);
  // The time of a line, and what separates it.
  while (!text.empty() && (IsDigit(text[0]) || text[0] == '[')) {
    const size_t digit = text[0] == '[' ? 1 : 0;
    if (digit >= text.size() || !IsDigit(text[digit])) break;
    const Figure figure = TakeFigure(text, digit);
    if (!figure.measured) break;
    text = Trim(text.substr(figure.end));
    while (!text.empty() && std::string_view("]|-,").find(text[0]) != std::string_view::npos)
      text = Trim(text.substr(1));
  }
  text = BehindLogger(text);
  const auto number = [](std::string_view rest, std::string_view closing) {
    int32_t rank = -1;
    if (rest.empty() || !IsDigit(rest[0]) || !TakeNumber(rest, &rank) || rank > 99'999) return -1;
    SkipBlanks(rest);
    if (rest.empty() || closing.find(rest[0]) == std::string_view::npos) return -1;
    rest = rest.substr(1);  // "[3]:" stands in the launcher's list of failures
    return rest.find_first_not_of(" :") != std::string_view::npos ? rank : -1;
  };
  if (std::string_view rest = text; TakeLiteral(rest, "[")) {
    for (const std::string_view word : {"rank", "Rank", "RANK", "worker", "gpu", "GPU", "r", "R", "w", "p"})
      if (TakeLiteral(rest, word)) break;
    while (TakeLiteral(rest, " ") || TakeLiteral(rest, ":") || TakeLiteral(rest, "=")) {
    }
    return number(rest, "]");
  }
  for (const std::string_view word : {"rank", "Rank", "RANK", "worker", "Worker", "process", "proc"}) {
    std::string_view rest = text;
    if (!TakeLiteral(rest, word)) continue;
    while (TakeLiteral(rest, " ") || TakeLiteral(rest, "=") || TakeLiteral(rest, "#")) {
    }
    if (rest.empty() || !IsDigit(rest[0])) continue;
    int32_t rank = -1;
    if (TakeNumber(rest, &rank) && rank <= 99'999 && (rest.empty() || !IsPlaceLetter(rest[0]))) return rank;
  }
  return number(text, "|");
}

bool IsLibraryLine(std::string_view text) {
  text = Trim(text);
  if (text.empty() || IsNoise(text) || text.starts_with('#')) return true;
  for (const std::string_view begin : {"frame #",
                                       "Exception raised from ",
                                       "terminate called",
                                       "what():",
                                       "Last error:",
                                       "nccl",
                                       "NCCL version",
                                       "Fatal Python error",
                                       "<no Python frame>",
                                       "Thread 0x",
                                       "Current thread 0x",
                                       "Timeout (",
                                       "File \"",
                                       "During handling of",
                                       "The above exception",
                                       "Search for `cuda",
                                       "CUDA kernel errors might",
                                       "For debugging consider",
                                       "Compile with `TORCH",
                                       "Stack trace of the failed",
                                       "***",
                                       "---",
                                       "==="})
    if (text.starts_with(begin)) return true;
  return ContainsAny(text, {"Warning: ", "ProcessGroup", "torch/distributed/", "NCCL INFO", "NCCL WARN"});
}

void PlaceReader::Read(std::string_view text, int32_t rank, bool local, const SourceRef& source) {
  if (const size_t drawn = text.rfind('\r'); drawn != std::string_view::npos && drawn + 1 < text.size())
    text = text.substr(drawn + 1);
  if (Trim(text).empty()) return;
  if (rank < 0) rank = RankOfOwnMark(text);
  if (!tails_.contains(rank) && tails_.size() >= kMostTails) return;
  Tail& tail = tails_[rank];
  if (text.starts_with("Traceback (most recent call ")) {
    tail.in_trace = tail.failed = true;
    return;
  }
  if (tail.in_trace) {
    tail.in_trace = text.starts_with(' ');
    return;  // a frame, or the exception itself
  }
  // Python's warning, and below it, indented, the line of code that it is about.
  const bool below_warning = std::exchange(tail.below_warning, ContainsAny(text, {"Warning: "}));
  if (below_warning && text.starts_with(" ")) return;
  if (IsLibraryLine(text)) return;
  text = Trim(text).substr(0, 600);
  const LinePlace at = PlaceOf(text, rank);
  // Behind an error only what it always prints shows that it went on.
  if (tail.failed && !tail.shapes.contains(at.shape)) return;
  if (tail.shapes.size() < kMostShapes) tail.shapes.insert(at.shape);
  const LineWait wait = WaitToldIn(text);
  // "/a/done does not exist yet, waited 12 s": the same wait, whatever it counts.
  const bool goes_on = !tail.lines.empty() && wait != LineWait::none && tail.lines.back().wait == wait &&
                       tail.lines.back().shape == at.shape;
  if (!tail.lines.empty() && (goes_on || tail.lines.back().place == at.place)) {
    OwnLine& last = tail.lines.back();
    ++last.times;
    last.place = at.place;
    last.source = source;
    if (goes_on) last.text = text.substr(0, kLongest);
    return;
  }
  OwnLine line{rank,   local, at.place, at.shape,      1, std::string(text.substr(0, kLongest)),
               source, {},    {},       LineWait::none};
  line.wait = wait;
  if (line.wait != LineWait::none)
    line.awaited = PathIn(text);
  else if (ContainsAny(text, {"wrote ", "Wrote ", "written to ", "saved to ", "Saved to ", "created ", "Created "}))
    line.written = PathIn(text);
  if (tail.lines.size() == kKept) tail.lines.erase(tail.lines.begin());
  tail.lines.push_back(std::move(line));
}

void PlaceReader::Finish(LogOutline& out) {
  for (auto& [rank, tail] : tails_) std::move(tail.lines.begin(), tail.lines.end(), std::back_inserter(out.own_lines));
  std::stable_sort(out.own_lines.begin(), out.own_lines.end(),
                   [](const OwnLine& a, const OwnLine& b) { return a.source.line < b.source.line; });
}

}  // namespace tacet
