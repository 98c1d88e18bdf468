// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/identity.h"

#include <algorithm>
#include <map>

namespace tacet {
namespace {

bool LooksLikeAddress(std::string_view host) {
  return !host.empty() && host.find_first_not_of("0123456789.:abcdefABCDEF") == std::string_view::npos &&
         (host.find('.') != std::string_view::npos || host.find(':') != std::string_view::npos);
}

// NCCL cuts a host name at the first dot; other writers do not. An address stays whole.
std::string_view ShortHost(std::string_view host) {
  return LooksLikeAddress(host) ? host : host.substr(0, host.find('.'));
}

struct SpeakerRef {
  size_t fragment;  // position in the member list
  uint32_t index;
  const Speaker* speaker;
};

void Absorb(const Speaker& speaker, Process& process) {
  if (process.host.empty() ||
      (LooksLikeAddress(process.host) && !LooksLikeAddress(speaker.host) && !speaker.host.empty()))
    if (!speaker.host.empty()) process.host = speaker.host;
  if (process.pid < 0) process.pid = speaker.pid;
  if (process.device < 0) process.device = speaker.device;
  if (process.gpu_uuid.empty()) process.gpu_uuid = speaker.gpu_uuid;
  process.fails |= speaker.fails;
  if (process.rank_clue == RankClue::not_told) process.rank_clue = speaker.rank_clue;
  process.rank_certainty = std::max(process.rank_certainty, speaker.rank_certainty);
}

uint32_t AddProcess(const Speaker& speaker, Incident& incident) {
  const auto index = static_cast<uint32_t>(incident.processes.size());
  incident.processes.push_back({speaker.rank, Certainty::none, "", -1, -1, {}, false, RankClue::not_told, ""});
  if (speaker.rank.known()) incident.process_of.emplace(speaker.rank, index);
  Absorb(speaker, incident.processes.back());
  return index;
}

}  // namespace

// Two addresses of the same kind, and neither of them one that every host has.
static bool AreDifferentAddresses(std::string_view a, std::string_view b) {
  if (!LooksLikeAddress(a) || !LooksLikeAddress(b) || a == b) return false;
  for (const std::string_view one : {a, b})
    if (one.starts_with("127.") || one == "0.0.0.0" || one.find(':') != std::string_view::npos) return false;
  return true;
}

bool HostsAgree(std::string_view a, std::string_view b) {
  if (AreDifferentAddresses(a, b)) return false;
  if (a.empty() || b.empty() || LooksLikeAddress(a) || LooksLikeAddress(b)) return true;
  return ShortHost(a) == ShortHost(b);
}

void PidIndex::Add(const Incident& incident, uint32_t process) {
  const Process& one = incident.processes[process];
  if (one.pid < 0) return;
  const auto add = [&](std::vector<uint32_t>& list) {
    if (list.empty() || list.back() != process) list.push_back(process);
  };
  add(all_[one.pid]);
  if (one.host.empty() || LooksLikeAddress(one.host))
    add(hostless_[one.pid]);
  else
    add(by_host_[{one.pid, std::string(ShortHost(one.host))}]);
}

uint32_t PidIndex::Find(const Incident& incident, int64_t pid, std::string_view host) const {
  // More processes of one pid than these are of many hosts, and the host that is asked for is not known.
  constexpr size_t kMost = 4096;
  std::vector<uint32_t> candidates;
  const auto take = [&](const auto& lists, const auto& key) {
    if (const auto found = lists.find(key); found != lists.end() && found->second.size() <= kMost)
      candidates.insert(candidates.end(), found->second.begin(), found->second.end());
  };
  if (pid < 0) return kNobody;
  if (host.empty() || LooksLikeAddress(host)) {
    take(all_, pid);
  } else {
    take(hostless_, pid);
    take(by_host_, std::pair(pid, std::string(ShortHost(host))));
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  // One process may be known twice, under its host's name and under its pod's: then the one with a rank is meant.
  uint32_t ranked = kNobody, nameless = kNobody;
  int ranked_count = 0, nameless_count = 0;
  for (const uint32_t i : candidates) {
    const Process& process = incident.processes[i];
    if (process.pid != pid || !HostsAgree(process.host, host)) continue;
    (process.rank.known() ? ranked : nameless) = i;
    ++(process.rank.known() ? ranked_count : nameless_count);
  }
  if (ranked_count > 0) return ranked_count == 1 ? ranked : kNobody;
  return nameless_count == 1 ? nameless : kNobody;
}

uint32_t FindByPid(const Incident& incident, int64_t pid, std::string_view host) {
  PidIndex index;
  for (uint32_t i = 0; i < incident.processes.size(); ++i) index.Add(incident, i);
  return index.Find(incident, pid, host);
}

SpeakerMap JoinSpeakers(const std::vector<Fragment>& fragments, const std::vector<size_t>& members,
                        Incident& incident) {
  std::vector<SpeakerRef> refs;
  SpeakerMap map(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    const auto& speakers = fragments[members[m]].speakers;
    map[m].assign(speakers.size(), kNobody);
    for (uint32_t i = 0; i < speakers.size(); ++i) refs.push_back({m, i, &speakers[i]});
    for (const Speaker& speaker : speakers) incident.world_size = std::max(incident.world_size, speaker.world_size);
  }
  std::map<std::pair<std::string, int64_t>, uint32_t> by_pid;  // (short host, pid)
  const auto remember = [&](const Speaker& speaker, uint32_t process) {
    if (speaker.pid >= 0) by_pid.emplace(std::pair(std::string(ShortHost(speaker.host)), speaker.pid), process);
  };
  PidIndex by_pid_alone;
  const auto assign = [&](const SpeakerRef& ref, uint32_t process) {
    map[ref.fragment][ref.index] = process;
    Absorb(*ref.speaker, incident.processes[process]);
    by_pid_alone.Add(incident, process);
    remember(*ref.speaker, process);
  };
  // First whoever states its rank, then whoever shares (host, pid) with one of them, then file names, then pids alone.
  for (const SpeakerRef& ref : refs) {
    if (ref.speaker->rank_certainty != Certainty::stated || !ref.speaker->rank.known()) continue;
    const auto known = incident.process_of.find(ref.speaker->rank);
    assign(ref, known != incident.process_of.end() ? known->second : AddProcess(*ref.speaker, incident));
  }
  for (const SpeakerRef& ref : refs) {
    if (map[ref.fragment][ref.index] != kNobody || ref.speaker->pid < 0) continue;
    const auto known = by_pid.find({std::string(ShortHost(ref.speaker->host)), ref.speaker->pid});
    if (known != by_pid.end() && !ref.speaker->host.empty()) assign(ref, known->second);
  }
  for (const SpeakerRef& ref : refs) {
    if (map[ref.fragment][ref.index] != kNobody || !ref.speaker->rank.known()) continue;
    const auto known = incident.process_of.find(ref.speaker->rank);
    assign(ref, known != incident.process_of.end() ? known->second : AddProcess(*ref.speaker, incident));
  }
  for (const SpeakerRef& ref : refs) {
    if (map[ref.fragment][ref.index] != kNobody) continue;
    const uint32_t known = by_pid_alone.Find(incident, ref.speaker->pid, ref.speaker->host);
    assign(ref, known != kNobody ? known : AddProcess(*ref.speaker, incident));
  }
  return map;
}

}  // namespace tacet
