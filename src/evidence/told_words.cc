// SPDX-License-Identifier: Apache-2.0
#include "evidence/told_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/told_chinese.h"
#include "evidence/told_error.h"
#include "evidence/told_facts.h"
#include "evidence/told_lines.h"
#include "evidence/told_place.h"
#include "evidence/unread_error.h"

namespace tacet {
namespace {

// Nobody writes sentences around more than this.
constexpr size_t kMostTold = size_t{256} << 10;

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

using Words = std::initializer_list<std::string_view>;

bool HasAnyWord(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return HasWord(text, word); });
}

// Supposed, asked or over.
bool IsSupposed(std::string_view part) {
  return Contains(part, "?") || HasAnyWord(part, {"no longer", "fixed", "solved", "avoid", "avoids", "if", "would",
                                                  "could", "may", "might", "can", "should", "fix", "why", "how"});
}

// ... or denied.
bool IsDoubted(std::string_view part) {
  return IsSupposed(part) || Contains(part, "n't") || HasAnyWord(part, {"not", "never"}) ||
         // "works without hanging" denies it, "hangs without this setting" does not.
         HasAnyWord(part, {"without hanging", "without a hang", "without hangs", "without any", "without stalls",
                           "without deadlock", "without deadlocks", "without getting stuck"});
}

// `word`, and behind it nothing but the end of the part or one of the words: "then nothing" and "then nothing happens",
// not "then nothing failed".
bool HasWordBefore(std::string_view part, std::string_view word, Words behind) {
  for (size_t at = part.find(word); at != std::string_view::npos; at = part.find(word, at + 1)) {
    if (at > 0 && IsLetter(part[at - 1])) continue;
    const std::string_view rest = part.substr(at + word.size());
    const std::string_view next = Trim(rest);
    if (!rest.empty() && IsLetter(rest[0])) continue;
    if (next.empty() || !IsLetter(next[0])) return true;
    for (const std::string_view one : behind)
      if (next.starts_with(one) && (next.size() == one.size() || !IsLetter(next[one.size()]))) return true;
  }
  return false;
}

// "the training won't move on", "it does not proceed": what is denied here is that the job goes on, and not that its
// loss falls or that something is moved.
bool DeniesProgress(std::string_view part) {
  if (IsSupposed(part) || HasAnyWord(part, {"loss", "accuracy", "metric", "metrics", "norm"})) return false;
  if (HasAnyWord(part, {"not moving", "not progressing", "not responding", "not proceeding"})) return true;
  for (const std::string_view no : {"won't ", "wont ", "doesn't ", "does not ", "will not ", "never "})
    if (const auto verb = After(part, no)) {
      if (HasAnyWord(verb->substr(0, 20), {"proceed", "progress", "respond", "advance", "make progress"})) return true;
      if (verb->starts_with("move") &&
          HasWordBefore(*verb, "move",
                        {"on", "forward", "further", "past", "beyond", "any", "anymore", "from", "since"}))
        return true;
    }
  return false;
}

// A part of a sentence, up to its full stop or comma, that says it as a fact.
bool StatesAHang(std::string_view part) {
  if (DeniesProgress(part)) return true;
  const bool says =
      (HasWord(part, "for") && HasWord(part, "ever")) ||
      HasAnyWord(part, {"hangs",
                        "hanging",
                        "hung",
                        "hang at",
                        "hang in",
                        "hang after",
                        "hang during",
                        "stuck",
                        "stucks",
                        "stucked",
                        "hanged",
                        "freezes",
                        "freezed",
                        "freeze",
                        "is frozen",
                        "froze",
                        "deadlocks",
                        "deadlock",
                        "stalls",
                        "stalled",
                        "forever",
                        "no progress",
                        "stops moving",
                        "stops responding",
                        "just sits",
                        "sits there",
                        "nothing after that",
                        "nothing happens",
                        "nothing is printed",
                        "nothing more happens",
                        "nothing more is printed",
                        "nothing else happens",
                        "nothing else is printed",
                        "no further output",
                        "no more output",
                        "no new output",
                        "no output any more",
                        "no output anymore"}) ||
      HasAnyWord(part, {"simply stops", "just stops", "both stop", "all stop"}) ||
      HasWordBefore(part, "then nothing", {"for", "more", "else", "at all", "any more", "anymore", "until"}) ||
      (HasAnyWord(part, {"no output", "nothing more", "nothing else", "nothing new", "nothing further", "no step",
                         "no new step", "no new line"}) &&
       HasAnyWord(part, {"hours", "minutes", "hour", "minute", "min", "mins", "days", "h"}));
  return says && !IsDoubted(part);
}

bool StatesAStop(std::string_view part) {
  return HasAnyWord(part, {"it stops", "it always stops", "it still stops", "stops at", "stops there", "stops here",
                           "stops after", "stops in", "stops during", "stops when it", "stops when the", "stopped at",
                           "stopped there"}) &&
         !IsDoubted(part);
}

// "slow" of the job, not of a thing: "is slow on two nodes", not "the slow tokenizer".
bool StatesSlowness(std::string_view part) {
  const bool says =
      HasWordBefore(part, "slow", {"here",     "with",          "when",       "on",   "as",    "than",    "compared",
                                   "and",      "but",           "in",         "for",  "after", "since",   "at",
                                   "although", "though",        "because",    "now",  "too",   "again",   "from",
                                   "over",     "across",        "while",      "even", "only",  "between", "training",
                                   "speed",    "communication", "performance"}) ||
      HasAnyWord(part,
                 {"slower",          "slows down",      "slowed down",      "slowdown",           "far longer",
                  "much longer",     "takes longer",    "take longer",      "times longer",       "times as long",
                  "twice as long",   "speed goes down", "speed drops",      "throughput drops",   "throughput is low",
                  "low throughput",  "low bandwidth",   "bandwidth is low", "performance is bad", "bad performance",
                  "poor performance"}) ||
      (HasAnyWord(part, {"busbw", "algbw", "bandwidth", "throughput", "performance", "speed"}) &&
       HasAnyWord(part, {"terrible", "awful", "horrible", "abysmal", "very low", "too low", "very bad"}));
  return says && !IsDoubted(part) &&
         !HasAnyWord(part, {"was slow", "was slower", "were slow", "were slower", "used to be", "will", "as expected"});
}

// "the loss becomes NaN after 300 steps"
bool StatesNotFinite(std::string_view part) {
  return HasAnyWord(part, {"loss", "losses", "gradient", "gradients", "grad", "grads"}) &&
         HasAnyWord(part, {"nan", "nans", "inf"}) &&
         HasAnyWord(part, {"becomes", "become", "became", "is", "are", "was", "goes", "go", "went", "turns", "turned",
                           "gets", "get", "got", "to", "will be", "always"}) &&
         !IsDoubted(part) && !HasAnyWord(part, {"check", "checks", "detect", "skip", "skipped", "ignore"});
}

// A measure, a number, and what it should be: "busbw is at 12, I would expect 180".
bool MissesAnExpectation(std::string_view sentence) {
  const bool measures = HasAnyWord(sentence, {"busbw", "algbw", "bandwidth", "throughput", "speed", "tflops", "mfu"}) ||
                        ContainsAny(sentence, {"gb/s", "gbit/s", "gbps", "gib/s", "mb/s", "it/s", "s/it"});
  const bool misses =
      HasAnyWord(sentence, {"would expect", "i expect",     "i expected",   "we expect",      "we expected",
                            "in theory",    "should be",    "should reach", "supposed to be", "lower than expected",
                            "below what",   "reaches only", "only reaches", "reach only",     "only reach",
                            "gets only",    "get only",     "only get",     "only gets",      "drops to only"});
  const bool fits =
      Contains(sentence, "?") || HasAnyWord(sentence, {"as expected", "as i expected", "fixed", "solved"});
  // "samples per second fall to 10", "it/s drops from 12 to 3"
  const bool falls = HasAnyWord(sentence, {"falls to", "fall to", "fell to", "drops to", "drop to", "dropped to",
                                           "falls from", "drops from", "dropped from"});
  return measures && (misses || falls) && !fits && sentence.find_first_of("0123456789") != std::string_view::npos;
}

// "it stucks here and how to solve this?": what is asked is another sentence.
std::string WithQuestionsApart(std::string_view low) {
  std::string out(low);
  for (const std::string_view asks : {" and how ", " and why ", " and what ", " and is there "})
    for (size_t at = out.find(asks); at != std::string::npos; at = out.find(asks, at + 1)) out.replace(at, 4, ".   ");
  return out;
}

// Whether a part of the line states it, and the sentence it stands in is no question.
bool AnyPart(std::string_view line, bool (*states)(std::string_view part)) {
  const std::string low = WithQuestionsApart(line);
  for (std::string_view rest = low; !rest.empty();) {
    const size_t end = rest.find_first_of(".,;:!()?");
    if (states(rest.substr(0, end))) {
      // A full stop inside of a number or a name ends no sentence.
      size_t close = 0;
      while ((close = rest.find_first_of(".!?", close)) != std::string_view::npos && rest[close] == '.' &&
             close + 1 < rest.size() && rest[close + 1] != ' ')
        ++close;
      if (close == std::string_view::npos || rest[close] != '?') return true;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return false;
}

// "2026-11-16 18:52:17,062 train ERROR: ..." without its time.
std::string_view WithoutTime(std::string_view line) {
  size_t end = 0, digits = 0;
  for (; end < line.size() && (IsDigit(line[end]) || std::string_view("-:/., T[").find(line[end]) < 8); ++end)
    digits += IsDigit(line[end]);
  if (digits < 6 || end >= line.size()) return line;
  if (line.substr(end).starts_with("Z ")) end += 2;  // the zone of an ISO time
  return line.substr(end);
}

// Rust prints the message of a panic below its place:
//   thread 'router' panicked at src/router/worker.rs:212:14:
//   called `Result::unwrap()` on an `Err` value: Os { code: 111, kind: ConnectionRefused, ... }
bool AnnouncesPanic(std::string_view line) {
  return Trim(line).ends_with(':') && Contains(line.substr(0, 120), "' panicked at ");
}

void TakePanic(std::string_view line, Event& event) { event.text += "\n" + std::string(Trim(line).substr(0, 400)); }

void AddTold(EventKind kind, std::string_view line, const SourceRef& source, Fragment& fragment) {
  Event& event = fragment.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source = source;
  event.text = std::string(WithoutTime(Trim(line)).substr(0, 400));
  event.Set(Meaning::reported, kind == EventKind::unread_error && EndsItsProgram(line));
  if (kind == EventKind::told_hang) event.Make<ToldPlace>();
  event.Set(Meaning::consequence, kind == EventKind::unread_error && ReportsAnEnd(line));
}

}  // namespace

bool SaysItHangs(std::string_view line) {
  if (ChineseSaysItHangs(line)) return true;
  const std::string prose = ProseOf(line);
  // Programs print short lines, too: only what a person marked up counts.
  if (!IsSentence(line) && (prose == Trim(line) || !IsProse(prose))) return false;
  const std::string low = Lowered(prose);
  // "simply stops with this error" tells an end.
  if (HasAnyWord(low, {"simply stops", "just stops", "both stop", "all stop"}) &&
      ContainsAny(low, {" with:", " error:"}))
    return false;
  return AnyPart(low, StatesAHang);
}

bool SaysItStops(std::string_view line) {
  if (!IsSentence(line) && !IsSentence(ProseOf(line))) return false;
  const std::string low = Lowered(line);
  return AnyPart(low, StatesAStop) && !HasAnyWord(low, {"early", "stopping", "script"});
}

bool SaysItIsSlow(std::string_view line) {
  if (ChineseSaysItIsSlow(line)) return true;
  if (!IsSentence(line) || IsAdvice(line)) return false;
  const std::string low = Lowered(line);
  return AnyPart(low, StatesSlowness) || MissesAnExpectation(low);
}

bool SaysItIsNotFinite(std::string_view line) {
  if (!IsSentence(line) || IsAdvice(line)) return false;
  return AnyPart(Lowered(line), StatesNotFinite);
}

namespace {

// Where the job stands, by the sentence that says that it hangs or by another one; and what kind of place it is.
void FillPlace(std::string_view line, ToldPlace& place) {
  if (place.where.empty()) place.where = PlaceOfStop(line);
  place.data_loader |= StopsInLoader(line);
  place.helped_by_no_p2p |= Contains(line, "NCCL_P2P_DISABLE=1") &&
                            HasAnyWord(Lowered(line), {"without", "unless", "only with", "helps", "helped", "fixes",
                                                       "fixed", "works", "worked", "workaround", "solves", "solved"}) &&
                            !HasAnyWord(Lowered(line), {"not", "no", "nor", "still", "neither", "even"}) &&
                            !Contains(line, "n't") && !Contains(line, "?");
}

// Whoever takes a stack of a process finds it running: what is said to stop hangs.
bool ShowsRunningProcess(std::string_view bytes, const Fragment& fragment) {
  return !fragment.threads.empty() &&
         ContainsAny(bytes, {"(gdb)", "py-spy", "(LWP ", "Python v", "(idle)", "(active)"}) &&
         std::none_of(fragment.events.begin(), fragment.events.end(), EndsOrFails);
}

Library LibraryOfText(std::string_view bytes) {
  if (ContainsAny(bytes, {"torch", "NCCL", "nccl"})) return Library::not_told;
  return ContainsAny(bytes, {"tensorflow", "TF_CONFIG", "Started server with target: grpc://"}) ? Library::tensorflow
                                                                                                : Library::not_told;
}

}  // namespace

namespace {

// Exception ignored in: <function _ConnectionBase.__del__ at 0x7f2b0c0a1bc0>
// Traceback (most recent call last):
//   File "...", line 137, in __del__
// OSError: [Errno 9] Bad file descriptor
// Python prints it where nobody can catch the error, mostly while it shuts down, and goes on: no error of the job.
class IgnoredException {
 public:
  bool Holds(std::string_view line) {
    const std::string_view text = WithoutMark(line);
    if (text.starts_with("Exception ignored in")) return inside_ = true;
    if (!inside_) return false;
    if (Trim(text).empty() || text.starts_with(' ') || text.starts_with("Traceback ")) return true;
    inside_ = false;  // the error itself
    return Contains(text.substr(0, 80), "Error") || Contains(text.substr(0, 80), "Exception");
  }

 private:
  // "[rank1]: "
  static std::string_view WithoutMark(std::string_view line) {
    const size_t close = line.substr(0, 40).find("]: ");
    return line.starts_with('[') && close != std::string_view::npos ? line.substr(close + 3) : line;
  }
  bool inside_ = false;
};

}  // namespace

void AddToldWords(std::string_view bytes, Fragment& fragment) {
  // The tool's own answers and records tell what it said itself.
  if (fragment.format == "run_record") return;
  if (bytes.size() > kMostTold || bytes.find('\0') != std::string_view::npos) return;
  std::set<uint32_t> read;
  // A step in a sentence ("at step 197 it stops") is no line of progress.
  for (const Event& event : fragment.events)
    if (event.kind != EventKind::progress) read.insert(event.source.line);
  std::set<EventKind> told;
  uint32_t last_step = 0;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::progress) last_step = std::max(last_step, event.source.line);
  bool error = false, error_behind_steps = false;
  size_t panic = SIZE_MAX;  // the event whose message is the next line
  const bool runs = ShowsRunningProcess(bytes, fragment);
  ToldPlace place;
  AroundTheLog around(bytes);
  IgnoredException ignored;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    const SourceRef source{FileId{}, reader.number(), reader.offset()};
    const bool outside = around.Holds(line, source.line);
    if (panic != SIZE_MAX) TakePanic(line, fragment.events[std::exchange(panic, SIZE_MAX)]);
    if (ignored.Holds(line) || read.contains(source.line)) continue;
    const bool hangs = around.MayHold() && SaysItHangs(line);
    const bool stops = !hangs && outside && SaysItStops(line);
    place.stopped |= stops && runs && !told.contains(EventKind::told_hang);
    const auto kind = hangs || (stops && runs)             ? EventKind::told_hang
                      : outside && SaysItIsSlow(line)      ? EventKind::told_slow
                      : outside && SaysItIsNotFinite(line) ? EventKind::told_not_finite
                      : stops                              ? EventKind::told_stop
                      : ReportsError(line)                 ? EventKind::unread_error
                                                           : EventKind::progress;
    if (kind == EventKind::told_hang || (outside && kind == EventKind::progress)) FillPlace(line, place);
    if (outside) AddToldFacts(line, source, fragment);
    // Of each kind the first is enough; behind a line that only tells an end the error itself may still come, and
    // behind one that the job survived another.
    const bool first = told.insert(kind).second, unread = kind == EventKind::unread_error;
    const bool own = unread && !error && !ReportsAnEnd(line);
    const bool behind_steps = unread && !error_behind_steps && source.line > last_step;
    error |= own;
    error_behind_steps |= behind_steps;
    if (kind == EventKind::progress || !(first || own || behind_steps)) continue;
    AddTold(kind, line, source, fragment);
    if (unread && AnnouncesPanic(line)) panic = fragment.events.size() - 1;
  }
  AddToldError(bytes, fragment);
  PlaceToldXids(bytes, fragment);
  if (place.where.empty()) place.where = PlaceOfDgl(bytes);
  for (Event& event : fragment.events)
    if (event.kind == EventKind::told_hang) {
      event.detail = place;
      event.library = LibraryOfText(bytes);
    }
}

}  // namespace tacet
