// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/side_stacks.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "analysis/timeouts/watchdog_waits.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string FrameWords(std::string_view function, std::string_view file, uint32_t line) {
  std::string words(function);
  words += " (";
  words += FileName(file);
  words += ':';
  words += std::to_string(line);
  words += ')';
  return words;
}

// A thread that Python started, seen from its outermost frame.
bool IsStartedThread(const Incident& incident, const std::vector<Frame>& frames) {
  return !frames.empty() && incident.strings.Get(frames.back().function).starts_with("_bootstrap") &&
         FileName(incident.strings.Get(frames.back().file)) == "threading.py";
}

FrameKind KindOf(const Incident& incident, const Frame& frame) {
  return ClassifyFrame(incident.strings.Get(frame.function), incident.strings.Get(frame.file));
}

const Frame* InnermostUser(const Incident& incident, const std::vector<Frame>& frames) {
  const auto found = std::find_if(frames.begin(), frames.end(),
                                  [&](const Frame& frame) { return KindOf(incident, frame) == FrameKind::user; });
  return found == frames.end() ? nullptr : &*found;
}

bool Holds(const Incident& incident, const std::vector<Frame>& frames, const CodePlace& place) {
  return std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) {
    return incident.strings.Get(frame.function) == place.function && incident.strings.Get(frame.file) == place.file;
  });
}

const StackReading* ReadingOf(const Case& facts, Rank rank) {
  const auto& stacks = facts.analyses.stacks;
  const auto found =
      std::find_if(stacks.begin(), stacks.end(), [&](const StackReading& one) { return one.rank == rank; });
  return found == stacks.end() ? nullptr : &*found;
}

// The threads of the dump that a reading is of.
std::vector<const ThreadStack*> ThreadsBeside(const Incident& incident, const StackReading& reading) {
  std::vector<const ThreadStack*> beside;
  for (const ThreadStack& thread : incident.threads)
    if (&thread != reading.thread && thread.rank == reading.rank && thread.dump == reading.thread->dump &&
        thread.source.file == reading.thread->source.file)
      beside.push_back(&thread);
  return beside;
}

// Where one side is: the caller of the operation that timed out, or else the frame that its stack shows.
std::string SidePlace(const Case& facts, const CallerSide& side) {
  if (side.timeout)
    if (std::string caller = CallerPlaceWords(*side.timeout); !caller.empty()) return caller;
  for (const Rank rank : side.ranks)
    if (const StackReading* reading = ReadingOf(facts, rank); reading && !reading->where.empty()) return reading->where;
  return "";
}

// "consolidate_state_dict (zero_redundancy_optimizer.py:564)": what the user's frame calls, of a rank in communication.
std::string SideCall(const Case& facts, const CallerSide& side) {
  const Incident& incident = facts.incident;
  for (const Rank rank : side.ranks) {
    const StackReading* reading = ReadingOf(facts, rank);
    if (!reading || reading->place != StackReading::Place::communication || reading->call.empty()) continue;
    const auto& frames = incident.stacks.Get(reading->thread->stack);
    const Frame* user = InnermostUser(incident, frames);
    if (!user || user == frames.data()) return "";
    const std::string_view function = incident.strings.Get(user[-1].function);
    // A decorator stands between the user and torch.distributed's own functions.
    if (function != "wrapper" && !function.starts_with('_') && !function.starts_with("??"))
      return FrameWords(function, incident.strings.Get(user[-1].file), user[-1].line);
    return reading->call.starts_with("??") ? "" : reading->call;
  }
  return "";
}

struct SecondThread {
  std::string place;    // of the thread
  bool proven = false;  // its call is one of those that differ
};

// The thread's own call timed out, or both the thread and the main thread are in communication.
std::optional<SecondThread> FindSecondThread(const Case& facts, const CallerSide& side) {
  const Incident& incident = facts.incident;
  if (side.call) return std::nullopt;
  const CodePlace* caller = side.timeout ? &side.timeout->As<WatchdogTimeout>().place : nullptr;
  std::optional<SecondThread> found;
  for (const Rank rank : side.ranks) {
    const StackReading* main = ReadingOf(facts, rank);
    if (!main || !main->thread) continue;
    const auto& main_frames = incident.stacks.Get(main->thread->stack);
    if (IsStartedThread(incident, main_frames)) continue;  // a launcher that trains in a thread
    const bool main_busy = main->place == StackReading::Place::communication || main->in_library;
    for (const ThreadStack* thread : ThreadsBeside(incident, *main)) {
      const auto& frames = incident.stacks.Get(thread->stack);
      const Frame* user = InnermostUser(incident, frames);
      if (!user || !IsStartedThread(incident, frames)) continue;
      const std::string place =
          FrameWords(incident.strings.Get(user->function), incident.strings.Get(user->file), user->line);
      if (caller && !caller->function.empty() && Holds(incident, frames, *caller) &&
          !Holds(incident, main_frames, *caller))
        return SecondThread{FrameWords(caller->function, caller->file, caller->line), true};
      const bool communicates = std::any_of(frames.data(), static_cast<const Frame*>(user), [&](const Frame& frame) {
        return KindOf(incident, frame) == FrameKind::communication;
      });
      if (!found && main_busy && communicates) found = SecondThread{place, false};
    }
  }
  return found;
}

// Recorded calls have stacks of their own: one side's begins in a thread, the other's does not.
std::optional<SecondThread> FindCallingThread(const Case& facts, const CallerSide& odd, const CallerSide& usual) {
  if (!odd.call || !usual.call) return std::nullopt;
  const auto& odd_frames = facts.incident.stacks.Get(odd.call->stack);
  const auto& usual_frames = facts.incident.stacks.Get(usual.call->stack);
  if (odd_frames.empty() || usual_frames.empty()) return std::nullopt;
  const bool by_odd = IsStartedThread(facts.incident, odd_frames);
  if (by_odd == IsStartedThread(facts.incident, usual_frames)) return std::nullopt;
  const std::string place = CallSiteWords(facts.incident, by_odd ? *odd.call : *usual.call);
  // A stack that is cut before its outermost frame is taken for one of the main thread's.
  const Frame& outermost = (by_odd ? usual_frames : odd_frames).back();
  if (place.empty() || facts.incident.strings.Get(outermost.function) != "<module>") return std::nullopt;
  return SecondThread{place, true};
}

}  // namespace

std::string CallerPlaceWords(const Event& timeout) {
  const CodePlace& place = timeout.As<WatchdogTimeout>().place;
  return place.function.empty() ? "" : FrameWords(place.function, place.file, place.line);
}

std::string SideStackWords(const Case& facts, const CallerSide& odd, const CallerSide& usual) {
  const std::string odd_place = SidePlace(facts, odd), usual_place = SidePlace(facts, usual);
  if (odd_place.empty() || usual_place.empty()) return "";
  const auto words = [&](const CallerSide& side, const std::string& place) {
    const bool of_call = side.timeout && !CallerPlaceWords(*side.timeout).empty();
    const std::string call = of_call ? "" : SideCall(facts, side);  // since the call it may have moved on
    return RankWords(side.ranks) +
           (of_call && side.ranks.size() == 1 ? " made its call in "
            : of_call                         ? " made their call in "
            : side.ranks.size() == 1          ? " is in "
                                              : " are in ") +
           place + (call.empty() || call == place ? "" : ", inside " + call);
  };
  return words(odd, odd_place) + "; " + words(usual, usual_place);
}

ThreadStep SecondThreadStep(const Case& facts, const CallerSide& odd, const CallerSide& usual) {
  std::optional<SecondThread> thread = FindCallingThread(facts, odd, usual);
  if (!thread) thread = FindSecondThread(facts, odd);
  if (!thread || !thread->proven)
    if (const auto other = FindSecondThread(facts, usual); other && (!thread || other->proven)) thread = other;
  if (!thread) return {};
  const std::string cure =
      "create a group for the thread (dist.new_group) and pass it to its calls, or issue them from the main thread.";
  return {"A second thread issues collectives next to the main thread: " + thread->place + ". " +
              (thread->proven ? "The order of the two threads' calls differs between ranks: "
                              : "If both use the same group, the order of their calls differs between ranks: ") +
              cure,
          thread->place, thread->proven};
}

bool AreDifferentCalls(const Event& timeout, const Event& other) {
  const std::string place = CallerPlaceWords(timeout), other_place = CallerPlaceWords(other);
  if (!place.empty() && !other_place.empty()) return place != other_place;
  return LooksLikeAnotherCall(ElementsOf(timeout), ElementsOf(other));
}

bool LooksLikeAnotherCall(int64_t elements, int64_t other) {
  constexpr int64_t kFarApart = 16;
  // A flag or a metric beside a bucket of gradients: no batch is so uneven.
  constexpr int64_t kFew = 16, kMillion = 1'000'000;
  const int64_t smaller = std::min(elements, other), larger = std::max(elements, other);
  if (smaller > 0 && smaller <= kFew && larger >= kMillion) return true;
  // One number, as of a loss or a barrier, and many of them.
  constexpr int64_t kMany = 10'000;
  if (smaller == 1 && larger >= kMany) return true;
  if (smaller <= 0 || larger / kFarApart < smaller) return false;
  return std::gcd(smaller, larger) < smaller / kFarApart;
}

}  // namespace tacet
