// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/silence.h"

#include <algorithm>
#include <map>

namespace tacet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::string_view HostOf(const Incident& incident, const Pulse& pulse) {
  return pulse.speaker < incident.processes.size() ? std::string_view(incident.processes[pulse.speaker].host) : "";
}

bool Ends(const Sight& sight) { return sight.state == TaskState::zombie || sight.state == TaskState::gone; }

// The first thing anybody saw after its last beat: a stopped process that is killed at the clean-up was stopped.
const Sight* DecidingSight(const Incident& incident, const Pulse& pulse) {
  const Sight *first = nullptr, *end = nullptr;
  for (const Sight& sight : incident.sights) {
    if (sight.rank != pulse.rank || sight.since_wall_ns == kNoTime || sight.state == TaskState::running) continue;
    if (pulse.last_beat_wall_ns != kNoTime && sight.since_wall_ns + kSecond < pulse.last_beat_wall_ns) continue;
    if (!first || sight.since_wall_ns < first->since_wall_ns) first = &sight;
    if (Ends(sight) && (!end || sight.since_wall_ns < end->since_wall_ns)) end = &sight;
  }
  const bool torn_down = first && end && first->state == TaskState::uninterruptible &&
                         end->since_wall_ns - first->since_wall_ns < incident.patience.tear_down_ns;
  return torn_down ? end : first;
}

// The latest beat of each host, and of all.
struct LatestBeats {
  std::map<std::string_view, std::vector<int64_t>> by_host;  // the two latest, so that a rank's own can be left out
  std::vector<int64_t> all;

  static void Add(std::vector<int64_t>& beats, int64_t beat) {
    beats.push_back(beat);
    std::sort(beats.rbegin(), beats.rend());
    if (beats.size() > 2) beats.pop_back();
  }
  static int64_t Other(const std::vector<int64_t>& beats, int64_t own) {
    if (beats.size() < 2) return kNoTime;
    return beats[0] != own ? beats[0] : beats[1];
  }
};

// Copied while it lived: the copy was written just after the last beat it holds.
bool IsSnapshot(const Incident& incident, const Pulse& pulse, int64_t patience) {
  const int64_t written = incident.files[static_cast<uint32_t>(pulse.source.file)].modified_wall_ns;
  return written != kNoTime && written >= pulse.last_beat_wall_ns && written - pulse.last_beat_wall_ns < patience;
}

bool IsOutlived(const Incident& incident, const Pulse& pulse, const LatestBeats& beats) {
  const int64_t own = pulse.last_beat_wall_ns;
  int64_t patience = std::max(incident.patience.missed_beats * pulse.interval_ns, incident.patience.silence_ns);
  int64_t other = kNoTime;
  if (const auto near = beats.by_host.find(HostOf(incident, pulse)); near != beats.by_host.end())
    other = LatestBeats::Other(near->second, own);
  if (other == kNoTime) {
    other = LatestBeats::Other(beats.all, own);
    patience = std::max(patience, incident.patience.other_host_ns);
  }
  if (pulse.ended) return other != kNoTime && other >= own;  // it says so itself, to the moment
  return other != kNoTime && other - own > patience && !IsSnapshot(incident, pulse, patience);
}

}  // namespace

std::vector<Silence> FindSilences(const Incident& incident) {
  LatestBeats beats;
  for (const Pulse& pulse : incident.pulses) {
    if (pulse.interval_ns <= 0 || pulse.last_beat_wall_ns == kNoTime) continue;
    LatestBeats::Add(beats.by_host[HostOf(incident, pulse)], pulse.last_beat_wall_ns);
    LatestBeats::Add(beats.all, pulse.last_beat_wall_ns);
  }
  std::vector<Silence> silences;
  size_t unseen = 0;
  for (const Pulse& pulse : incident.pulses) {
    if (pulse.interval_ns <= 0 || pulse.interval_ns > 3600 * kSecond || pulse.last_beat_wall_ns == kNoTime) continue;
    Silence silence{.rank = pulse.rank, .pulse = &pulse, .exited = pulse.ended};
    if (!pulse.ended) silence.sight = DecidingSight(incident, pulse);
    if (silence.sight) silence.state = silence.sight->state;
    if (!silence.sight && !IsOutlived(incident, pulse, beats)) continue;
    unseen += !silence.sight && !silence.exited;
    silences.push_back(silence);
  }
  for (const Sight& sight : incident.sights) {
    const bool known = std::any_of(silences.begin(), silences.end(),
                                   [&](const Silence& silence) { return silence.rank == sight.rank; });
    if (sight.speaker != kNobody || sight.state == TaskState::running || sight.state == TaskState::unknown || known)
      continue;
    silences.push_back({.rank = sight.rank, .sight = &sight, .state = sight.state});
  }
  // One that outlived most others is the exception: the job was ended, and it took its time.
  if (unseen * 2 > incident.pulses.size())
    std::erase_if(silences, [](const Silence& silence) { return !silence.sight && !silence.exited; });
  std::stable_sort(silences.begin(), silences.end(),
                   [](const Silence& a, const Silence& b) { return a.rank < b.rank; });
  return silences;
}

}  // namespace tacet
