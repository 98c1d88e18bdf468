// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/told_stacks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/process/stack_reading.h"
#include "model/events/event_words.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

bool HangsByWord(const Case& facts) {
  return facts.analyses.end.kind == JobEnding::hung && !facts.analyses.outcome.ended_in_order &&
         facts.analyses.sources.empty() && facts.analyses.told.empty() &&
         FindToldWords(facts.incident, EventKind::told_hang) != nullptr;
}

// One for each process, as far as threads tell them apart: a thread that is shown twice is of one process.
std::vector<StackReading> StacksOfProcesses(const Case& facts) {
  std::vector<StackReading> readings = facts.analyses.stacks;
  std::set<std::pair<uint32_t, std::string_view>> threads;
  for (StackReading& one : ReadNamelessDumps(facts.incident))
    if (one.thread != nullptr && !one.thread->thread_id.empty() &&
        threads.emplace(one.thread->speaker, one.thread->thread_id).second)
      readings.push_back(std::move(one));
  return readings;
}

std::string HostPlaceWords(const StackReading& one) {
  return one.call + (one.where.empty() || one.where == one.call ? "" : ", called from " + one.where);
}

// The collective that a process is in, and who called it.
struct CollectivePlace {
  std::string_view name;
  std::string caller;  // "step (stage3.py:2120)"
};

CollectivePlace CollectiveOf(const Case& facts, const ThreadStack& thread) {
  const StringTable& strings = facts.incident.strings;
  CollectivePlace place;
  for (const Frame& frame : facts.incident.stacks.Get(thread.stack)) {
    const std::string_view function = strings.Get(frame.function), file = strings.Get(frame.file);
    const bool communicates = ClassifyFrame(function, file) == FrameKind::communication;
    if (place.name.empty()) {
      if (communicates && IsCollectiveCall(function)) place.name = function;
      continue;
    }
    if (communicates || function.starts_with("wrap") || function.ends_with("wrapper")) continue;
    place.caller = std::string(function) + " (" + std::string(file.substr(file.rfind('/') + 1)) + ":" +
                   std::to_string(frame.line) + ")";
    return place;
  }
  return place;
}

std::string WhoIs(const StackReading& one) { return one.rank.known() ? RankWords({one.rank}) : "a process"; }

}  // namespace

std::optional<Finding> ToldStacksFinding(const Case& facts) {
  if (!HangsByWord(facts)) return std::nullopt;
  const std::vector<StackReading> stacks = StacksOfProcesses(facts);
  std::map<std::string_view, std::pair<CollectivePlace, const StackReading*>> places;
  std::map<std::string_view, std::vector<Rank>> ranks;
  for (const StackReading& one : stacks) {
    // Whoever is elsewhere is what the others wait for.
    const CollectivePlace place = CollectiveOf(facts, *one.thread);
    if (place.name.empty()) return std::nullopt;
    places.emplace(place.name, std::pair{place, &one});
    if (one.rank.known()) ranks[place.name].push_back(one.rank);
  }
  if (places.size() < 2) return std::nullopt;
  Finding finding;
  finding.cause = "collective-mismatch-operation";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  std::string list;
  for (const auto& [name, found] : places) {
    const auto& [place, one] = found;
    const auto& those = ranks[name];
    list += (list.empty() ? "" : "; ") + (those.empty() ? std::string("one or more in ") : RankWords(those) + " in ") +
            std::string(name) + (place.caller.empty() ? "" : ", called from " + place.caller);
    finding.evidence.push_back(CiteStack(facts.incident, *one->thread, "a process in " + std::string(name)));
    finding.affected_ranks.insert(finding.affected_ranks.end(), those.begin(), those.end());
  }
  std::sort(finding.affected_ranks.begin(), finding.affected_ranks.end());
  finding.headline = "the job hangs, and the stacks show processes in different collectives: " + list +
                     ". If these are of one group, the processes do not issue the same calls";
  finding.fix = {
      "Find out why the processes come to different calls: a branch on local data (experts that get no tokens, a "
      "batch without labels, a skipped step), or a different number of batches. With ZeRO-3 and a mixture of experts: "
      "set_z3_leaf_modules(model, [the class of the MoE block]).",
      "Compare the calls of all ranks: flight records show the first difference; TORCH_DISTRIBUTED_DEBUG=DETAIL in a "
      "short run names it.",
      "If the collectives are of different groups: look for the process that is in neither of them."};
  return finding;
}

std::optional<Finding> AwaitedStackFinding(const Case& facts) {
  if (!HangsByWord(facts)) return std::nullopt;
  const Event* told = FindToldWords(facts.incident, EventKind::told_hang);
  const std::vector<StackReading> stacks = StacksOfProcesses(facts);
  if (!told->As<ToldPlace>().others_wait || stacks.size() != 1) return std::nullopt;
  const StackReading& one = stacks.front();
  if (one.place != StackReading::Place::host || one.call.empty()) return std::nullopt;
  const bool data = one.errand.kind == StackErrand::Kind::next_batch || one.errand.kind == StackErrand::Kind::queue;
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  if (one.rank.known()) finding.ranks = {one.rank};
  finding.headline = WhoIs(one) + " is stuck on the host in " + HostPlaceWords(one) +
                     (data ? ", where it waits for its data loader" : "") +
                     "; the others wait for it, as the text around the log says";
  finding.evidence.push_back(CiteStack(facts.incident, *one.thread, WhoIs(one) + " is not in a collective"));
  finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
  if (data)
    finding.fix = {
        "Take the stacks of the loader's workers, the children of the process (py-spy dump --pid PID): what they wait "
        "for is the reason.",
        "Test with num_workers=0. If that runs: pin_memory=False, or multiprocessing_context='spawn', since workers "
        "that are forked from a process with threads can deadlock.",
        "Check that /dev/shm has space (df -h /dev/shm), and that the storage answers (ls, iostat -x 5)."};
  else
    finding.fix = {
        "Look at " + HostPlaceWords(one) + ": what does it wait for (storage, a lock, another process)?",
        "Take the stack twice, a minute apart, with native frames (py-spy dump --native --pid PID): a process "
        "at the same place both times is stuck."};
  return finding;
}

}  // namespace tacet
