// SPDX-License-Identifier: Apache-2.0
#include "rules/words/silence_words.h"

#include <algorithm>

#include "rules/words/words.h"

namespace tacet {
namespace {

std::string StateWords(TaskState state) {
  switch (state) {
    case TaskState::stopped: return "stopped (state T)";
    case TaskState::uninterruptible: return "stuck in the kernel (state D)";
    case TaskState::zombie: return "a zombie (state Z: dead, but not yet reaped by its parent)";
    case TaskState::gone: return "gone";
    case TaskState::running: return "running";
    default: return "in an unknown state";
  }
}

// Nobody sees his own end: what stands in a rank's own name was seen by the agent that read its box, or by `tacet run`.
std::string WitnessWords(const Incident& incident, const Sight& sight) {
  const Rank witness = sight.speaker < incident.processes.size() ? incident.processes[sight.speaker].rank : Rank{};
  return !witness.known() || witness == sight.rank ? "Tacet on its host" : RankWords({witness});
}

}  // namespace

const Silence* FirstSilence(const Case& facts, StandstillKind kind) {
  for (const Standstill& still : facts.standstill.ranks)
    if (still.kind == kind && still.silence) return still.silence;
  return nullptr;
}

std::string SilenceWords(const Case& facts, const Silence& silence, bool one_of_several) {
  const std::string of = one_of_several ? " of " + RankWords({silence.rank}) : "";
  if (silence.exited) return of.empty() ? "it exited by itself" : "the process" + of + " exited by itself";
  if (!silence.sight)
    return (of.empty() ? "its heartbeat" : "the heartbeat" + of) + " stopped while its peers continued";
  if (!silence.pulse)
    return "a list of processes shows " +
           (of.empty() ? "process " + std::to_string(silence.sight->pid) : "the process" + of) + " as " +
           StateWords(silence.state);
  return WitnessWords(facts.incident, *silence.sight) + " saw the process" + of + " " + StateWords(silence.state);
}

void CiteSilences(const Case& facts, StandstillKind kind, std::vector<EvidenceItem>& evidence) {
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != kind || !still.silence) continue;
    const Silence& silence = *still.silence;
    const std::string who = RankWords({still.rank});
    if (!silence.pulse) {
      evidence.push_back({silence.sight->source, "", "the process of " + who + " in a list of processes"});
      continue;
    }
    if (const Sight* sight = silence.sight) {
      const int64_t long_after =
          silence.pulse->last_beat_wall_ns == kNoTime ? 0 : sight->since_wall_ns - silence.pulse->last_beat_wall_ns;
      evidence.push_back(
          {sight->source,
           "pid " + std::to_string(sight->pid) + " " + StateWords(sight->state) + ", first seen " +
               DurationWords(std::max<int64_t>(long_after, 0)) + " after its last heartbeat",
           WitnessWords(facts.incident, *sight) + " looked at the process of " + who + " on the same host"});
    }
    evidence.push_back({silence.pulse->source, "",
                        silence.exited ? "the box of " + who + " says that its process exited by itself"
                                       : "the last heartbeat of " + who + "; those of other ranks continued"});
  }
}

}  // namespace tacet
