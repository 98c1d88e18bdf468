// SPDX-License-Identifier: Apache-2.0
#include "rules/words/stack_words.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/process/stack_reading.h"
#include "model/subject.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

Subject SubjectOfStack(const Incident& incident, const ThreadStack& thread) {
  if (thread.rank.known()) return SubjectOf(incident, thread.rank);
  Subject subject;
  if (thread.speaker >= incident.processes.size()) return subject;
  subject.pid = incident.processes[thread.speaker].pid;
  subject.host = incident.processes[thread.speaker].host;
  return subject;
}

std::string OwnersOfStacks(const std::vector<Subject>& subjects) {
  std::vector<Rank> ranks;
  for (const Subject& subject : subjects)
    if (subject.rank.known()) ranks.push_back(subject.rank);
  return ranks.size() == subjects.size() ? RankWords(ranks) : SubjectWords(subjects);
}

// "wait (threading.py:302)" -> "wait, threading.py:302", for a place inside brackets.
std::string InBrackets(std::string frame) {
  const size_t open = frame.find(" (");
  if (open == std::string::npos || !frame.ends_with(')')) return frame;
  frame.pop_back();
  return frame.replace(open, 2, ", ");
}

// What the innermost frames show beyond the call, behind "waits": " for the next batch of its data loader".
std::string ErrandWords(const StackReading& one) {
  using Kind = StackErrand::Kind;
  switch (one.errand.kind) {
    case Kind::none: return "";
    case Kind::next_batch: return " for the next batch of its data loader";
    case Kind::queue:
      return std::string(" for another process to fill a queue, as a thread of a data loader waits for its workers") +
             (one.thread && one.thread->is_main ? ": this is not a wait for other ranks" : "");
    case Kind::driver_lock:
      return " for a lock in the driver while it launches work" +
             (one.call.starts_with(one.errand.call) ? "" : " (" + one.errand.call + ")") +
             ", as happens when another thread of the process holds it; this is not a wait for the network";
    case Kind::service_threads: return "";
    case Kind::kernel_launch:
      return " in the driver to launch a kernel (" + one.errand.call +
             "), which happens when the launch queue is full because the GPU does not finish earlier kernels";
    case Kind::mpi_call: return " for other ranks in " + one.errand.call;
    case Kind::communicator_setup:
      return " for other ranks to join an NCCL communicator" +
             (one.thread->group_ranks > 0 && one.thread->group_rank >= 0
                  ? ", of which it is rank " + std::to_string(one.thread->group_rank) + " of " +
                        std::to_string(one.thread->group_ranks)
                  : "");
  }
  return "";
}

// A wait of Python's own library: which function of the program or of a library waits is what tells something.
bool IsPlainWait(const Incident& incident, const StackReading& one) {
  const std::string_view file = incident.strings.Get(one.decisive.file);
  if (!file.ends_with(".py")) return false;
  switch (ClassifyFrame(incident.strings.Get(one.decisive.function), file)) {
    case FrameKind::lock:
    case FrameKind::interpreter: return true;
    default: return false;
  }
}

// What is said behind the owner, once for one and once for several: the meaning first, then the frame.
struct StackPlace {
  std::string one, several;
  auto operator<=>(const StackPlace&) const = default;
};

StackPlace WordsOf(const Incident& incident, const StackReading& one) {
  std::string place = one.where.empty() ? one.call : one.where;
  const bool inside =
      !IsPlainWait(incident, one) && !one.call.empty() && place != one.call && !one.call.starts_with("??");
  if (const std::string errand = ErrandWords(one); !errand.empty()) {
    // A launch names its own call; the frame below it is the driver's.
    const bool named = one.errand.kind == StackErrand::Kind::kernel_launch;
    const std::string frame = named || place.empty() ? "" : " (" + InBrackets(place) + ")";
    // A thread beside the main one says nothing of what the process waits for.
    const bool beside = one.errand.kind == StackErrand::Kind::queue && !(one.thread && one.thread->is_main);
    return {" waits" + errand + frame + (beside ? "; its main thread is not shown" : ""),
            " wait" + errand + frame + (beside ? "; their main threads are not shown" : "")};
  }
  // Without a frame of the user's own, `where` is the innermost one, which the call led to.
  const bool from_user = one.innermost_user.function != Frame().function;
  if (inside) place = one.call + (from_user ? ", called from " : ", innermost frame ") + one.where;
  // That a collective is communication goes without saying.
  const bool said = inside && one.place == StackReading::Place::communication;
  if (one.place != StackReading::Place::unknown && !said) place += ", " + std::string(Name(one.place));
  return {" is in " + place, " are in " + place};
}

}  // namespace

std::string StackWords(const Case& facts) {
  std::vector<StackReading> readings = facts.analyses.stacks;
  const auto is_stack = [](const InputFile& file) { return IsReadAs(file, "stacks"); };
  if (readings.empty()) readings = ReadNamelessStacks(facts.incident);
  if (readings.empty() || !std::all_of(facts.incident.files.begin(), facts.incident.files.end(), is_stack)) return "";
  // Those who are at one place together, most of them first: who is elsewhere is what a reader looks for.
  std::map<StackPlace, std::vector<Subject>> by_place;
  std::string words;
  for (const StackReading& one : readings) {
    if (one.errand.kind == StackErrand::Kind::service_threads && words.empty())
      words = "only service threads of " + SubjectWords(SubjectOfStack(facts.incident, *one.thread)) + " are shown (" +
              one.errand.call + "), which wait in every job; the thread that runs the program is missing";
    if (!one.where.empty() || !one.call.empty())
      by_place[WordsOf(facts.incident, one)].push_back(SubjectOfStack(facts.incident, *one.thread));
  }
  std::vector<std::pair<StackPlace, std::vector<Subject>>> places(by_place.begin(), by_place.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < std::min(places.size(), kMost); ++i)
    words += (words.empty() ? "" : "; ") + OwnersOfStacks(places[i].second) +
             (places[i].second.size() == 1 ? places[i].first.one : places[i].first.several);
  if (words.empty()) return "";
  return words + (places.size() > kMost ? "; and so on" : "");
}

}  // namespace tacet
