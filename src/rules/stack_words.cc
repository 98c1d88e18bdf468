// SPDX-License-Identifier: Apache-2.0
#include "rules/stack_words.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/stack_reading.h"
#include "model/subject.h"
#include "rules/words.h"

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

std::string WhoWords(const std::vector<Subject>& subjects) {
  std::vector<Rank> ranks;
  for (const Subject& subject : subjects)
    if (subject.rank.known()) ranks.push_back(subject.rank);
  return ranks.size() == subjects.size() ? RankWords(ranks) : SubjectWords(subjects);
}

// ", waiting for the next batch of its data loader": what the innermost frames show beyond the call.
std::string ErrandWords(const StackReading& one) {
  using Kind = StackErrand::Kind;
  switch (one.errand.kind) {
    case Kind::none: return "";
    case Kind::next_batch: return ", waiting for the next batch of its data loader";
    case Kind::queue:
      return ", waiting for another process to fill a queue, as a thread of a data loader waits for its workers: this "
             "is not a wait for other ranks";
    case Kind::driver_lock:
      return ", blocked on a lock in the driver while it launches work" +
             (one.call.starts_with(one.errand.call) ? "" : " (" + one.errand.call + ")") +
             ", as happens when another thread of the process holds it; this is not a wait for the network";
    case Kind::service_threads: return "";
    case Kind::kernel_launch:
      return ", waiting in the driver to launch a kernel (" + one.errand.call +
             "), as happens when the launch queue is full because the GPU does not finish earlier kernels";
    case Kind::mpi_call: return ", waiting for other ranks in " + one.errand.call;
    case Kind::communicator_setup:
      return ", waiting for other ranks to join an NCCL communicator" +
             (one.thread->group_ranks > 0 && one.thread->group_rank >= 0
                  ? " (of which it is rank " + std::to_string(one.thread->group_rank) + " of " +
                        std::to_string(one.thread->group_ranks) + ")"
                  : "");
  }
  return "";
}

}  // namespace

std::string StackWords(const Case& facts) {
  std::vector<StackReading> readings = facts.analyses.stacks;
  const auto is_stack = [](const InputFile& file) { return IsReadAs(file, "stacks"); };
  if (readings.empty()) readings = ReadNamelessStacks(facts.incident);
  if (readings.empty() || !std::all_of(facts.incident.files.begin(), facts.incident.files.end(), is_stack)) return "";
  // Those who are at one place together, most of them first: who is elsewhere is what a reader looks for.
  std::map<std::string, std::vector<Subject>> by_place;
  std::string words;
  for (const StackReading& one : readings) {
    if (one.errand.kind == StackErrand::Kind::service_threads && words.empty())
      words = "of " + SubjectWords(SubjectOfStack(facts.incident, *one.thread)) + " only service threads are shown (" +
              one.errand.call + "), which wait in every job; the thread that runs the program is missing";
    if (one.where.empty() && one.call.empty()) continue;
    std::string place = one.where.empty() ? one.call : one.where;
    if (!one.call.empty() && place != one.call && !one.call.starts_with("??")) place += ", inside " + one.call;
    const std::string errand = ErrandWords(one);
    if (one.place != StackReading::Place::unknown && errand.empty()) place += " (" + std::string(Name(one.place)) + ")";
    place += errand;
    by_place[place].push_back(SubjectOfStack(facts.incident, *one.thread));
  }
  std::vector<std::pair<std::string, std::vector<Subject>>> places(by_place.begin(), by_place.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < std::min(places.size(), kMost); ++i)
    words += (words.empty() ? "" : "; ") + WhoWords(places[i].second) +
             (places[i].second.size() == 1 ? " is in " : " are in ") + places[i].first;
  if (words.empty()) return "";
  return words + (places.size() > kMost ? "; and so on" : "");
}

}  // namespace tacet
