// SPDX-License-Identifier: Apache-2.0
#include "evidence/told_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

// Nobody writes sentences around more than this.
constexpr size_t kMostTold = size_t{256} << 10;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A word by itself: not "TORCH_NCCL_ASYNC_ERROR_HANDLING".
bool HasBareWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char behind = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (!IsLetter(before) && before != '_' && !IsLetter(behind) && behind != '_') return true;
  }
  return false;
}

// "[W1210 11:04:01.455238000 TCPStore.cpp:347]", "[W socket.cpp:601]": PyTorch's own warnings.
bool IsWarningOfPyTorch(std::string_view line) {
  const auto rest = After(line, "[W");
  return rest && !rest->empty() && (IsDigit((*rest)[0]) || (*rest)[0] == ' ');
}

// " exited with code 3", not " exited with code 0"
bool HasFailedCode(std::string_view line) {
  for (const std::string_view words : {"exited with code ", "exit code ", "exit status ", "exitcode: "}) {
    const auto rest = After(line, words);
    int64_t code = 0;
    std::string_view number = rest.value_or("");
    if (rest && TakeNumber(number, &code) && code != 0) return true;
  }
  return false;
}

// Words and hardly anything else: no brackets, times or assignments, and at least four words.
bool IsSentence(std::string_view line) {
  line = Trim(line);
  if (line.size() < 15 || line.size() > 2000) return false;
  if (!IsLetter(line[0]) && !IsDigit(line[0]) && line[0] != '*') return false;
  size_t letters = 0, blanks = 0, marks = 0;
  for (const char c : line) {
    letters += IsLetter(c) || (static_cast<unsigned char>(c) & 0x80u) != 0;
    blanks += c == ' ';
    marks += c == '[' || c == ']' || c == '{' || c == '|' || c == '=' || c == '<' || c == '#' || c == '\\' ||
             c == '/' || c == '_';
  }
  return blanks >= 3 && marks <= line.size() / 40 && letters * 100 >= line.size() * 60;
}

std::string Lowered(std::string_view text) {
  std::string out(text.substr(0, 2000));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !IsLetter(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !IsLetter(text[end]))) return true;
  }
  return false;
}

// A part of a sentence, up to its full stop or comma, that says it as a fact.
bool StatesAHang(std::string_view part) {
  constexpr std::array kHangs = {"hangs",     "hanging",     "hung",         "is stuck",    "gets stuck",
                                 "got stuck", "stuck at",    "stuck",        "freezes",     "is frozen",
                                 "deadlocks", "deadlock",    "stalls",       "stalled",     "hang at",
                                 "forever",   "no progress", "stops moving", "then nothing"};
  constexpr std::array kDoubts = {"not",   "no longer", "never",  "without", "fixed", "solved",
                                  "avoid", "avoids",    "if",     "would",   "could", "may",
                                  "might", "can",       "should", "fix",     "why",   "how"};
  const bool for_good = HasWord(part, "for") && HasWord(part, "ever");
  const bool says =
      for_good || std::any_of(kHangs.begin(), kHangs.end(), [&](std::string_view word) { return HasWord(part, word); });
  const bool doubts =
      Contains(part, "n't") || Contains(part, "?") ||
      std::any_of(kDoubts.begin(), kDoubts.end(), [&](std::string_view word) { return HasWord(part, word); });
  return says && !doubts;
}

// Its program does not go on behind such a line.
bool EndsItsProgram(std::string_view line) {
  return ContainsAny(line, {"BAD TERMINATION", "Assertion fail", "Assertion `", "assertion fail", "FATAL"});
}

// How a process ended, and the launcher's own words about it: what follows from an error.
bool ReportsAnEnd(std::string_view line) {
  return HasFailedCode(line) || ContainsAny(line, {"exitcode:", "ChildFailedError", "elastic/", "BAD TERMINATION",
                                                   "CrashLoopBackOff", "FAILED", "srun: error: "});
}

// "2026-11-16 18:52:17,062 train ERROR: ..." without its time.
std::string_view WithoutTime(std::string_view line) {
  size_t end = 0, digits = 0;
  for (; end < line.size() && (IsDigit(line[end]) || std::string_view("-:/., T[").find(line[end]) < 8); ++end)
    digits += IsDigit(line[end]);
  return digits >= 6 && end < line.size() ? line.substr(end) : line;
}

void AddTold(EventKind kind, std::string_view line, const SourceRef& source, Fragment& fragment) {
  Event& event = fragment.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = source;
  event.text = std::string(WithoutTime(Trim(line)).substr(0, 400));
  event.Set(Meaning::reported, kind == EventKind::unread_error && EndsItsProgram(line));
  event.Set(Meaning::consequence, kind == EventKind::unread_error && ReportsAnEnd(line));
}

}  // namespace

bool ReportsError(std::string_view line) {
  line = line.substr(0, 2000);
  if (ContainsAny(
          line, {"INFO", "DEBUG", "WARN", "Warn", "warn", "TRACE", "level=info", "level=debug", "severity=Corrected"}))
    return false;
  if (IsWarningOfPyTorch(line) || ContainsAny(line, {"avoid", "If you", "if you"})) return false;
  if (ContainsAny(line, {"BAD TERMINATION", "CrashLoopBackOff", "OOMKilled", "Assertion fail", "Assertion `", "ASSERT ",
                         "assertion fail", "FATAL", "Fatal error", "fatal error"}))
    return true;
  if (HasFailedCode(line)) return true;
  if (IsSentence(line)) return false;
  const bool shaped = HasBareWord(line, "ERROR") || HasBareWord(line, "FAILED") ||
                      ContainsAny(line, {"Error: ", "error: ", " Error ", "Failed to ", "failed to ",
                                         "failed: ", "failed with ", "timed out after "});
  return shaped && !ContainsAny(line, {"error: 0", "errors: 0", "Error: 0", "error: None", "failed=0"});
}

bool SaysItHangs(std::string_view line) {
  if (!IsSentence(line)) return false;
  const std::string low = Lowered(line);
  std::string_view rest = low;
  while (!rest.empty()) {
    const size_t end = rest.find_first_of(".,;:!()");
    // A question keeps its mark.
    if (StatesAHang(rest.substr(0, end))) return !Contains(low, "?");
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return false;
}

void AddToldWords(std::string_view bytes, Fragment& fragment) {
  if (bytes.size() > kMostTold || bytes.find('\0') != std::string_view::npos) return;
  std::set<uint32_t> read;
  for (const Event& event : fragment.events) read.insert(event.source.line);
  const bool fenced = Contains(bytes, "```");
  bool inside = false, hang = false, error = false, end = false;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line) && !(hang && error)) {
    const SourceRef source{FileId{}, reader.number(), reader.offset()};
    if (Trim(line).starts_with("```")) inside = !inside;
    if (!hang && !(fenced && inside) && !read.contains(source.line) && SaysItHangs(line)) {
      hang = true;
      AddTold(EventKind::told_hang, line, source, fragment);
    } else if (!error && !read.contains(source.line) && ReportsError(line)) {
      // Of the lines that only tell an end one is enough; the error itself may still come.
      const bool tells_end = ReportsAnEnd(line);
      if (!tells_end || !end) AddTold(EventKind::unread_error, line, source, fragment);
      error |= !tells_end;
      end |= tells_end;
    }
  }
}

}  // namespace tacet
