// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "base/advice.h"
#include "base/line_reader.h"
#include "base/pair_set.h"
#include "base/text_scan.h"
#include "evidence/meaning/bare_message.h"
#include "evidence/meaning/unread_error.h"
#include "evidence/told/prose_events.h"
#include "evidence/told/shown_adapters.h"
#include "evidence/told/told_chinese.h"
#include "evidence/told/told_error.h"
#include "evidence/told/told_facts.h"
#include "evidence/told/told_guard.h"
#include "evidence/told/told_lines.h"
#include "evidence/told/told_phrase.h"
#include "evidence/told/told_place.h"
#include "evidence/told/told_remedy.h"
#include "evidence/told/told_states.h"
#include "evidence/told/told_subject.h"
#include "evidence/told/told_title.h"
#include "evidence/told/told_tried.h"
#include "evidence/told/told_uneven.h"
#include "evidence/torch_log/figures/torch_log_outline.h"

namespace tacet {
namespace {

// Nobody writes sentences around more than this.
constexpr size_t kMostTold = size_t{256} << 10;

// "it stucks here and how to solve this?": what is asked is another sentence, and so is what does not happen: "it hangs
// on two nodes but not on one".
std::string WithQuestionsApart(std::string_view low) {
  std::string out(low);
  const PairSet pairs(low);
  for (const std::string_view asks : {" and how ", " and why ", " and what ", " and is there ", " but not ",
                                      " and not ", " but never ", " and never ", " but no "})
    if (pairs.MayHold(asks))
      for (size_t at = FindText(out, asks); at != std::string::npos; at = out.find(asks, at + 1))
        out.replace(at, 4, ".   ");
  // "I don't know why the steps take longer" states that they do.
  for (const std::string_view states :
       {"n't know why", "not know why", "n't understand why", "not understand why", "not sure why", "no idea why",
        "as you can see", "as we can see", "as can be seen", "you can see that"})
    if (pairs.MayHold(states))
      for (size_t at = FindText(out, states); at != std::string::npos; at = out.find(states, at + 1))
        out.replace(at, states.size(), std::string(states.size(), ' '));
  return out;
}

bool AnyPart(std::string_view line, bool (*states)(std::string_view part)) {
  return AnyPartStates(WithQuestionsApart(line), states);
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

// ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-       lspci -vvv
bool ShowsAccessControl(std::string_view line) {
  const auto flags = After(line, "ACSCtl:");
  return flags && ContainsAny(*flags, {"SrcValid+", "ReqRedir+"});
}

// ... the result show "Out of bounds values : 248 FAILED": in the middle of a line nobody but a person writes it.
bool QuotesFailedCheck(std::string_view line) {
  const size_t at = line.find("Out of bounds values : ");
  return at != std::string_view::npos && at > 4 && !Trim(line).starts_with('#');
}

bool HasEvent(const Fragment& fragment, EventKind kind) {
  return std::any_of(fragment.events.begin(), fragment.events.end(),
                     [&](const Event& event) { return event.kind == kind; });
}

// Sentence by sentence.
bool AnySentenceStates(std::string_view low, bool (*states)(std::string_view sentence)) {
  while (!low.empty()) {
    size_t end = 0;
    while ((end = low.find_first_of(".;!?", end)) != std::string_view::npos && end + 1 < low.size() &&
           low[end + 1] != ' ')
      ++end;
    const std::string_view sentence = low.substr(0, end == std::string_view::npos ? end : end + 1);
    if (states(sentence)) return true;
    low.remove_prefix(sentence.size());
  }
  return false;
}

void AddRemedy(std::string_view line, const SourceRef& source, Fragment& fragment) {
  auto remedy = ReadRemedy(line);
  if (!remedy) return;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::told_remedy && event.As<ToldRemedy>().of == remedy->of) return;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::told_remedy;
  event.speaker = kNobody;
  event.source = source;
  event.text = std::string(Trim(line).substr(0, 400));
  event.detail = std::move(*remedy);
}

// Rust prints the message of a panic below its place:
//   thread 'router' panicked at src/router/worker.rs:212:14:
//   called `Result::unwrap()` on an `Err` value: Os { code: 111, kind: ConnectionRefused, ... }
bool AnnouncesPanic(std::string_view line) {
  return Trim(line).ends_with(':') && Contains(line.substr(0, 120), "' panicked at ");
}

void TakePanic(std::string_view line, Event& event) { event.text += "\n" + std::string(Trim(line).substr(0, 400)); }

// "..., so the GPUs do not get the same size in an iteration."
void AddUneven(std::string_view line, const SourceRef& source, Fragment& fragment) {
  if (line.size() > 2000 || HasEvent(fragment, EventKind::told_uneven)) return;
  if (!AnySentenceStates(LowSentence(line), StatesUnevenInput)) return;
  Event& event = fragment.events.emplace_back();
  event.kind = EventKind::told_uneven;
  event.speaker = kNobody;
  event.source = source;
  event.text = std::string(Trim(line).substr(0, 400));
}

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

bool SaysItHangs(std::string_view line) { return SaysItHangs(line, ProseOf(line)); }

bool SaysItHangs(std::string_view line, std::string_view prose) {
  if (ChineseSaysItHangs(line)) return true;
  // Programs print short lines, too: only what a person marked up counts.
  if (!IsSentence(line) && (prose == Trim(line) || !IsProse(prose))) return false;
  if (BlamesATool(line)) return false;
  const std::string low = LowSentence(prose);
  // "simply stops with this error" tells an end.
  if (HasAnyWord(low, {"simply stops", "just stops", "both stop", "all stop"}) &&
      ContainsAny(low, {" with:", " error:"}))
    return false;
  return AnyPart(low, StatesAHang) || StatesThatAllWaitButOne(low) || StatesThatOneIsIdle(low);
}

bool SaysItStops(std::string_view line) {
  if (!IsSentence(line) && !IsSentence(ProseOf(line))) return false;
  const std::string low = LowSentence(line);
  return AnyPart(low, StatesAStop) && !HasAnyWord(low, {"early", "stopping", "script"});
}

bool SaysItIsSlow(std::string_view line) {
  if (ChineseSaysItIsSlow(line)) return true;
  if (!IsSentence(line) || IsAdvice(line)) return false;
  const std::string low = LowSentence(line);
  // "the first iteration compiles, so it is slower": nothing is wrong with that.
  if (HasAnyWord(low, {"first iteration", "first iterations", "first step", "first steps", "first batch"}) &&
      ContainsAny(low, {"compil", "warm"}))
    return false;
  return AnyPart(low, StatesSlowness) || MissesAnExpectation(low);
}

bool SaysItIsWrong(std::string_view line) {
  if (!IsProse(ProseOf(line)) && !Contains(line, "Out of bounds values : ")) return false;
  if (Trim(line).starts_with('#') || IsAdvice(line)) return false;
  return StatesWrongResults(LowSentence(line));
}

bool SaysItIsNotFinite(std::string_view line) {
  if (ChineseSaysItIsNotFinite(line)) return true;
  if (!IsSentence(line) || IsAdvice(line)) return false;
  return AnyPart(LowSentence(line), StatesNotFinite);
}

namespace {

// Where the job stands, by the sentence that says that it hangs or by another one; and what kind of place it is.
void FillPlace(std::string_view line, ToldPlace& place) {
  if (place.where.empty()) place.where = PlaceOfStop(line);
  place.others_wait |= AnySentenceStates(LowSentence(line), StatesThatOthersWait);
  place.data_loader |= StopsInLoader(line);
}

// "Training freezes every 16 iterations for a moment": it goes on, and pauses again.
void FillPeriod(std::string_view line, ToldPlace& place) {
  auto rest = After(line, "every ");
  int64_t every = 0;
  if (!rest || !TakeNumber(*rest, &every) || every < 2 || every > 1'000'000) return;
  const std::string unit = LowerCase(TakeWord(*rest));
  for (const std::string_view name : {"iterations", "steps", "batches"})
    if (unit.starts_with(name)) place.every = every, place.steps = name;
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

// Of a text that no reader of job logs took: the last line of the program before the job stood still.
void AddLastLine(std::string_view bytes, Fragment& fragment) {
  if (!fragment.outlines.empty() || !HasEvent(fragment, EventKind::told_hang)) return;
  LogOutline outline = FindOutline(bytes), bare;
  if (outline.last.empty()) return;
  // What somebody wrote around the log is no line of it.
  AroundTheLog around(bytes);
  LineReader reader(bytes);
  for (std::string_view line; reader.number() < outline.last_source.line && reader.Next(&line);)
    if (around.Holds(line, reader.number()) && reader.number() == outline.last_source.line) return;
  bare.last = std::move(outline.last);
  bare.last_source = outline.last_source;
  bare.cut_end = outline.cut_end;
  fragment.outlines.push_back(std::move(bare));
}

}  // namespace

void AddToldWords(std::string_view bytes, Fragment& fragment) {
  // The tool's own answers and records tell what it said itself.
  if (fragment.format == "run_record") return;
  if (bytes.size() > kMostTold || bytes.find('\0') != std::string_view::npos) return;
  DropRepeatedInProse(bytes, fragment);
  std::set<uint32_t> read;
  // A step in a sentence ("at step 197 it stops") is no line of progress.
  for (const Event& event : fragment.events)
    if (event.kind != EventKind::progress) read.insert(event.source.line);
  std::set<EventKind> told;
  uint32_t last_step = 0;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::progress) last_step = std::max(last_step, event.source.line);
  bool error = false, error_behind_steps = false, below_frame = false;
  size_t panic = SIZE_MAX;  // the event whose message is the next line
  const bool runs = ShowsRunningProcess(bytes, fragment);
  ToldPlace place, pace;
  const AroundTheLog around_at_top(bytes);
  AroundTheLog around = around_at_top;
  IgnoredException ignored;
  const std::string_view title = TitleOf(bytes);
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    const SourceRef source{FileId{}, reader.number(), reader.offset()};
    const bool titled = line.data() == title.data() && !title.empty();
    const bool outside = around.Holds(line, source.line) || titled;
    place.acs_on |= ShowsAccessControl(line);
    if (panic != SIZE_MAX) TakePanic(line, fragment.events[std::exchange(panic, SIZE_MAX)]);
    const bool of_frame = std::exchange(below_frame, IsFrame(line));  // the line of code of a frame
    if (ignored.Holds(line) || read.contains(source.line)) continue;
    const bool may_hold = around.MayHold();
    const std::string prose = may_hold || titled ? ProseOf(line) : "";
    const bool hangs = (may_hold && SaysItHangs(line, prose)) || (titled && TitleSaysItHangs(line));
    if (may_hold || titled) AddRemedy(line, source, fragment);
    AddToldPhrase(titled ? TitleWords(line) : std::string(line), titled, outside, source, fragment);
    const bool stops = !hangs && outside && SaysItStops(line);
    place.stopped |= stops && runs && !told.contains(EventKind::told_hang);
    const std::string slow_setting = (may_hold || titled) && IsProse(prose) ? ReadSlowSetting(line) : "";
    const auto kind = hangs || (stops && runs)                                   ? EventKind::told_hang
                      : !slow_setting.empty() || (outside && SaysItIsSlow(line)) ? EventKind::told_slow
                      : outside && SaysItIsNotFinite(line)                       ? EventKind::told_not_finite
                      : (outside || (may_hold && QuotesFailedCheck(line))) && SaysItIsWrong(line)
                          ? EventKind::told_wrong
                      : stops                           ? EventKind::told_stop
                      : !of_frame && ReportsError(line) ? EventKind::unread_error
                                                        : EventKind::progress;
    if (kind == EventKind::told_hang || (outside && kind == EventKind::progress)) FillPlace(line, place);
    if (outside) AddToldFacts(line, source, fragment);
    pace.others_wait |= outside && StatesThatSomeAreIdle(LowSentence(line));
    pace.data_loader |= outside && AnyPartStates(LowSentence(line), StatesIdleBetweenSteps);
    // The head of a table names what was expected and what is there.
    if (((may_hold || titled) && IsProse(prose)) || (outside && Trim(line).starts_with('|')))
      AddToldSituation(line, source, fragment);
    if ((may_hold || titled) && IsProse(prose)) AddToldTried(line, source, fragment);
    if (outside && IsProse(prose)) AddUneven(line, source, fragment);
    if (outside && IsSentence(line)) AddToldLimit(line, source, fragment);
    // Of each kind the first is enough; behind a line that only tells an end the error itself may still come, and
    // behind one that the job survived another.
    const bool first = told.insert(kind).second, unread = kind == EventKind::unread_error;
    const bool own = unread && !error && !ReportsAnEnd(line);
    const bool behind_steps = unread && !error_behind_steps && source.line > last_step;
    error |= own;
    error_behind_steps |= behind_steps;
    if (kind == EventKind::progress || !(first || own || behind_steps || !slow_setting.empty())) continue;
    AddTold(kind, line, source, fragment);
    if (kind == EventKind::told_slow) {
      auto& slow = fragment.events.back().Make<ToldPlace>();
      FillPeriod(line, slow);
      slow.where = SlowCondition(LowSentence(line));
      if (slow.where.empty()) slow.where = ChineseSlowCondition(line);
      slow.setting = slow_setting;
    }
    if (unread && AnnouncesPanic(line)) panic = fragment.events.size() - 1;
  }
  AddToldError(bytes, around_at_top, fragment);
  AddBareMessages(bytes, fragment);
  AddToldGuard(bytes, fragment);
  AddShownAdapters(bytes, fragment);
  AddAwaitedAddress(bytes, fragment);
  AddLastLine(bytes, fragment);
  PlaceToldXids(bytes, fragment);
  if (place.where.empty()) place.where = PlaceOfDgl(bytes);
  for (Event& event : fragment.events)
    if (event.kind == EventKind::told_slow) {
      auto& slow = event.Make<ToldPlace>();
      slow.others_wait = pace.others_wait;
      slow.data_loader = pace.data_loader;
    }
  for (Event& event : fragment.events)
    if (event.kind == EventKind::told_hang) {
      event.detail = place;
      event.library = LibraryOfText(bytes);
    }
}

}  // namespace tacet
