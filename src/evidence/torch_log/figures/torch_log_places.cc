// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_places.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_own_lines.h"
#include "evidence/torch_log/waits/torch_log_wait_words.h"

namespace tacet {
namespace {

constexpr size_t kLongest = 200, kLongestRead = 600, kMostShapes = 256;
constexpr size_t kMostTails = 16'384, kMostMadeUp = 512;
// Lines kept of each rank. Of thousands of ranks the last ones are enough.
constexpr size_t kManyTails = 1024;
size_t KeptOf(size_t tails) { return tails > kManyTails ? 4 : 16; }
size_t FirstKeptOf(size_t tails) { return tails > kManyTails ? 2 : 8; }

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
  if (text.starts_with("* ") || text.starts_with("- ")) text = Trim(text.substr(2));  // of a list
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
                                       "torch.distributed.",
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
                                       "Root Cause (first observed",
                                       "Failures:",
                                       "<NO_OTHER_FAILURES>",
                                       "exitcode  :",
                                       "error_file:",
                                       "traceback :",
                                       "---",
                                       "==="})
    if (text.starts_with(begin)) return true;
  return ContainsAny(text, {"Warning: ", "ProcessGroup", "torch/distributed/", "NCCL INFO", "NCCL WARN"});
}

FrontNumber FindFrontNumber(std::string_view text) {
  constexpr size_t kLongestFront = 32;
  text = Trim(text);
  size_t at = 0;
  bool letters = false;
  while (at < text.size() && at < kLongestFront && !IsDigit(text[at])) {
    const char c = text[at++];
    letters |= IsPlaceLetter(c);
    if (!IsPlaceLetter(c) && std::string_view(" ,[(<*#=:-").find(c) == std::string_view::npos) return {};
  }
  if (!letters || at == text.size() || !IsDigit(text[at])) return {};
  FrontNumber out{std::string(text.substr(0, at)), -1};
  std::string_view rest = text.substr(at);
  if (!TakeNumber(rest, &out.number) || out.number > 4096 || rest.empty()) return {};
  const bool closed = std::string_view("]:|>),").find(rest[0]) != std::string_view::npos || rest.starts_with(" |") ||
                      rest.starts_with(" of ");
  return closed ? out : FrontNumber{};
}

namespace {

// The text says that its process communicates with other ranks, or waits for them.
bool TellsOfCommunication(std::string_view text) {
  const std::string small = LowerCase(text);
  return ContainsAny(small, {"barrier",
                             "all_reduce",
                             "allreduce",
                             "all-reduce",
                             "all_gather",
                             "allgather",
                             "all-gather",
                             "reduce_scatter",
                             "broadcast",
                             "all_to_all",
                             "gathering",
                             "scattering",
                             "synchronizing",
                             "synchronising",
                             "syncing",
                             "aligning the ranks",
                             "averaging",
                             "collecting the ",
                             "collecting from",
                             "exchanging",
                             "waiting for all",
                             "waiting for the other",
                             "waiting for rank",
                             "waiting for other",
                             "waiting for peer",
                             "waiting for everyone",
                             "wait for all ranks",
                             "wait for the other"});
}

// "torch sees 0 GPU(s), device = cpu", "visible devices: 0", "CUDA available: False"
bool TellsOfNoGpu(std::string_view text) {
  const std::string small = LowerCase(text);
  for (const std::string_view words : {"sees 0 gpu", "found 0 gpu", "0 gpus visible", "0 visible gpu", "0 cuda devices",
                                       "no gpu", "no cuda", "without a gpu"})
    if (Contains(small, words)) return true;
  for (const std::string_view name : {"is_available", "available", "device_count", "num_gpus", "n_gpu", "gpu_count",
                                      "gpus", "visible devices", "device count"}) {
    const size_t at = small.find(name);
    if (at == std::string::npos || !ContainsAny(small, {"gpu", "cuda", "device"})) continue;
    std::string_view rest = std::string_view(small).substr(at + name.size());
    while (!rest.empty() && std::string_view("()=: ").find(rest[0]) != std::string_view::npos) rest.remove_prefix(1);
    if (rest.starts_with("false")) return true;
    if (rest.starts_with('0') && (rest.size() == 1 || (!IsDigit(rest[1]) && rest[1] != '.' && rest[1] != ',')))
      return name != "gpus" && name != "available";
  }
  return false;
}

OwnLine LineOf(std::string_view text, int32_t rank, bool local, const LinePlace& at, const SourceRef& source) {
  OwnLine line;
  line.rank = rank;
  line.local = local;
  line.place = at.place;
  line.shape = at.shape;
  line.text = text;
  line.source = source;
  return line;
}

// What the line says, once it is known that it stays.
void ReadSense(OwnLine& line) {
  const std::string_view text = line.text;
  line.wait = WaitToldIn(text);
  if (line.wait != LineWait::none)
    line.awaited = PathIn(text);
  else if (ContainsAny(text, {"wrote ", "Wrote ", "written to ", "saved to ", "Saved to ", "created ", "Created "}))
    line.written = PathIn(text);
  line.communicates = TellsOfCommunication(text);
  line.no_gpu = TellsOfNoGpu(text);
  if (line.text.size() > kLongest) line.text = line.text.substr(0, kLongest);
}

}  // namespace

void PlaceReader::Read(std::string_view text, int32_t rank, bool local, const SourceRef& source) {
  if (const size_t drawn = text.rfind('\r'); drawn != std::string_view::npos && drawn + 1 < text.size())
    text = text.substr(drawn + 1);
  if (Trim(text).empty()) return;
  if (rank < 0) rank = RankOfOwnMark(text);
  if (rank < 0) {
    constexpr size_t kMostFronts = 64;
    if (FrontNumber front = FindFrontNumber(text); front.number >= 0) {
      const auto known = maybe_marked_.find(front.words);
      if (known != maybe_marked_.end() || maybe_marked_.size() < kMostFronts) {
        auto& tails = maybe_marked_[front.words];
        if (tails.contains(front.number) || tails.size() < kMostMadeUp)
          ReadInto(tails[front.number], tails.size(), text, front.number, false, source);
      }
    }
  }
  if (!tails_.contains(rank) && tails_.size() >= kMostTails) return;
  // UserWarning: barrier(): using the device under current context.
  if (Contains(text, "Warning: barrier(): using the device") && barriers_.size() < kMostTails)
    barriers_.push_back(LineOf(Trim(text), rank, local, {}, source));
  // UserWarning: Running all_reduce on global rank 2 which does not belong to the given group.
  if (const size_t at = text.find(" on global rank "); at != std::string_view::npos && outsiders_.size() < kMostTails &&
                                                       Contains(text, "which does not belong to the given group")) {
    std::string_view rest = text.substr(at + std::string_view(" on global rank ").size());
    if (int32_t outsider = -1; TakeNumber(rest, &outsider))
      outsiders_.push_back(LineOf(Trim(text), outsider, false, {}, source));
  }
  Tail& tail = tails_[rank];
  ReadInto(tail, tails_.size(), text, rank, local, source);
}

void PlaceReader::ReadInto(Tail& tail, size_t tails, std::string_view text, int32_t rank, bool local,
                           const SourceRef& source) {
  if (text.starts_with("Traceback (most recent call ")) {
    tail.in_trace = tail.failed = true;
    return;
  }
  if (tail.in_trace) {
    tail.in_trace = text.starts_with(' ');
    return;  // a frame, or the exception itself
  }
  // The line of code that Python prints under a warning or a frame.
  const bool of_warning = tail.in_warning && text.starts_with("  ");
  tail.in_warning = Contains(text, "Warning: ") || Trim(text).starts_with("File \"");
  if (of_warning || (IsLibraryLine(text) && EndOfQuestion(text) == std::string::npos)) return;
  text = Trim(text).substr(0, kLongestRead);
  const LinePlace at = PlaceOf(text, rank);
  // Behind an error only what it always prints shows that it went on.
  if (tail.failed && !tail.shapes.contains(at.shape)) return;
  if (tail.shapes.size() < kMostShapes || tail.shapes.contains(at.shape)) ++tail.shapes[at.shape];
  if (tail.count++ == 0) tail.begins = source.line;
  tail.ends = source.line;
  if (tail.first.size() < FirstKeptOf(tails)) tail.first.push_back(LineOf(text, rank, local, at, source));
  const LineWait wait = WaitToldIn(text);
  // "/a/done does not exist yet, waited 12 s": the same wait, whatever it counts.
  const bool goes_on = !tail.lines.empty() && wait != LineWait::none && tail.lines.back().wait == wait &&
                       tail.lines.back().shape == at.shape;
  if (!tail.lines.empty() && (goes_on || tail.lines.back().place == at.place)) {
    OwnLine& last = tail.lines.back();
    ++last.times;
    last.place = at.place;
    last.source = source;
    if (goes_on) last.text = text;
    return;
  }
  while (tail.lines.size() >= KeptOf(tails)) tail.lines.erase(tail.lines.begin());
  tail.lines.push_back(LineOf(text, rank, local, at, source));
  tail.lines.back().wait = wait;
}

void PlaceReader::Emit(Tail& tail, LogOutline& out) {
  for (OwnLine& line : tail.first)
    if (const auto times = tail.shapes.find(line.shape); times != tail.shapes.end() && times->second == 1) {
      ReadSense(line);
      out.first_lines.push_back(std::move(line));
    }
  for (OwnLine& line : tail.lines) {
    ReadSense(line);
    out.own_lines.push_back(std::move(line));
  }
}

// All numbers from 0 on, each more than once, and none of them is over before the last one begins.
static bool AreRanks(const auto& tails) {
  if (tails.size() < 2 || tails.begin()->first != 0 || tails.rbegin()->first + 1 != static_cast<int32_t>(tails.size()))
    return false;
  uint32_t last_begin = 0, first_end = UINT32_MAX;
  for (const auto& [number, tail] : tails) {
    if (tail.count < 2) return false;
    last_begin = std::max(last_begin, tail.begins);
    first_end = std::min(first_end, tail.ends);
  }
  return last_begin < first_end;
}

void PlaceReader::Finish(LogOutline& out) {
  const bool marked =
      std::any_of(tails_.begin(), tails_.end(), [](const auto& one) { return one.first >= 0 && one.second.count > 0; });
  for (auto& [rank, tail] : tails_) Emit(tail, out);
  std::map<int32_t, Tail>* made_up = nullptr;
  bool several = false;
  for (auto& [words, tails] : maybe_marked_) {
    if (marked || !AreRanks(tails)) continue;
    several |= made_up != nullptr;
    made_up = &tails;
  }
  if (made_up && !several)
    for (auto& [rank, tail] : *made_up) Emit(tail, out);
  for (auto* lines : {&barriers_, &outsiders_})
    for (OwnLine& line : *lines) ReadSense(line);
  out.barriers = std::move(barriers_);
  out.outsiders = std::move(outsiders_);
  for (auto* lines : {&out.own_lines, &out.first_lines})
    std::stable_sort(lines->begin(), lines->end(),
                     [](const OwnLine& a, const OwnLine& b) { return a.source.line < b.source.line; });
}

}  // namespace tacet
