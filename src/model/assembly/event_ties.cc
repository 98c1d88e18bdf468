// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/event_ties.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "model/assembly/file_rank.h"
#include "model/assembly/identity.h"
#include "model/events/event_witness.h"
#include "model/events/event_words.h"
#include "model/job_times.h"

namespace tacet {
namespace {

// Clocks of a kernel and of a job drift apart by minutes (dmesg -T counts from boot), zones by hours.
constexpr int64_t kDriftNs = int64_t{15} * 60 * 1'000'000'000;
constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
constexpr int64_t kZonesNs = int64_t{26} * 3600 * 1'000'000'000;

bool IsKernels(const Event& event) { return WitnessOf(event) == Witness::kernel; }

bool IsWordCharacter(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "gpu01" in "logs/gpu01/dmesg.txt" and in "dmesg-gpu01.log", not in "dmesg-gpu012.log".
bool NamesHost(std::string_view path, std::string_view host) {
  for (size_t at = path.find(host); at != std::string_view::npos; at = path.find(host, at + 1)) {
    const size_t end = at + host.size();
    if ((at == 0 || !IsWordCharacter(path[at - 1])) && (end == path.size() || !IsWordCharacter(path[end]))) return true;
  }
  return false;
}

int64_t ParseHex(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

class EventTies {
 public:
  explicit EventTies(Incident& incident) : incident_(incident) { ReadBusIds(); }

  void Tie() {
    SetAsideOtherTimes();
    for (uint32_t i = 0; i < incident_.processes.size(); ++i) by_pid_.Add(incident_, i);
    for (Event& event : incident_.events) {
      if (event.rank.known()) continue;
      const std::string_view host = HostOf(event);
      const uint32_t process = event.pid >= 0 ? by_pid_.Find(incident_, event.pid, host) : kNobody;
      if (process != kNobody) {
        event.speaker = process;
        event.rank = incident_.processes[process].rank;
      }
      if (!event.rank.known() && IsKernels(event)) event.rank = RankOnBus(BusIdOf(KernelDeviceOf(event)), host);
      if (!event.rank.known()) TieToHost(event);
    }
    TellKillsOfOthers();
  }

 private:
  // A GPU that several ranks share names none of them.
  void ReadBusIds() {
    for (const Event& event : incident_.events) {
      if (event.kind != EventKind::init_started && event.kind != EventKind::init_completed) continue;
      if (!event.rank.known() || event.speaker == kNobody) continue;
      if (const int64_t bus = ParseHex(event.As<CommunicatorSetup>().bus_id); bus >= 0)
        on_bus_[bus][incident_.processes[event.speaker].host].insert(event.rank);
    }
  }

  Rank RankOnBus(int64_t bus, std::string_view host) const {
    const auto known = on_bus_.find(bus);
    if (bus < 0 || known == on_bus_.end()) return {};
    std::set<Rank> ranks;
    for (const auto& [one, there] : known->second)
      if (host.empty() || one.empty() || HostsAgree(one, host)) ranks.insert(there.begin(), there.end());
    return ranks.size() == 1 ? *ranks.begin() : Rank{};
  }

  // A scheduler speaks of nodes and pods. The only rank of one is meant where it tells no pid; the kernel, which always
  // does, may speak of any process.
  void TieToHost(Event& event) {
    const bool node = event.kind == EventKind::node_failed;
    if (!node && (event.pid >= 0 || (event.kind != EventKind::oom_kill && event.kind != EventKind::process_exited)))
      return;
    const std::string_view host = node                       ? std::string_view(event.As<NodeFailure>().node)
                                  : event.speaker != kNobody ? std::string_view(incident_.processes[event.speaker].host)
                                                             : std::string_view();
    if (host.empty()) return;
    const auto [known, added] = ranks_on_.try_emplace(std::string(host));
    // Hosts that only a hostile file can name by the thousand are not looked up one by one.
    if (added && ranks_on_.size() <= kMostHosts)
      for (const Process& process : incident_.processes)
        if (process.rank.known() && !process.host.empty() && HostsAgree(process.host, host))
          known->second.insert(process.rank);
    const std::set<Rank>& there = known->second;
    if (there.size() > ranks_left_) return;
    ranks_left_ -= node ? there.size() : 0;
    if (node)
      event.ranks.assign(there.begin(), there.end());
    else if (there.size() == 1)
      event.rank = *there.begin();
  }

  // The host that wrote the line.
  std::string_view HostOf(const Event& event) {
    if (event.speaker != kNobody) return incident_.processes[event.speaker].host;
    if (!IsKernels(event)) return {};
    const auto [known, added] = host_of_file_.try_emplace(event.source.file);
    if (added) known->second = HostOfKernelLog(incident_, event.source.file);
    return known->second;
  }

  // A kill that no rank's pid fits explains nothing, and whoever sees it in the kernel log will ask about it.
  void TellKillsOfOthers() {
    constexpr size_t kMost = 8;
    const auto& processes = incident_.processes;
    const bool known =
        std::any_of(processes.begin(), processes.end(), [](const Process& one) { return one.rank.known(); }) &&
        std::none_of(processes.begin(), processes.end(),
                     [](const Process& one) { return one.rank.known() && one.pid < 0; });
    size_t told = 0;
    for (const Event& event : incident_.events) {
      if (!known || event.kind != EventKind::oom_kill || !IsKernels(event) || event.rank.known() || event.pid < 0)
        continue;
      if (told++ == kMost) return;
      incident_.diagnostics.push_back({DiagnosticSeverity::note, "kill-of-another",
                                       "the kernel killed process " + std::to_string(event.pid) +
                                           " for lack of memory; no rank of this job has this pid (data loader workers "
                                           "have pids of their own, and inside a container pids differ)",
                                       event.source, ""});
    }
  }

  // A kernel log reaches back to the start of the machine, and goes on when the job has ended. Where all of it seems to
  // lie outside the job, the clocks may be of different zones; more than a day is of no zone. Of dates without a year
  // the zone is never known.
  void SetAsideOtherTimes() {
    const JobTimes job(incident_);
    if (job.first_ns == kNoTime) return;
    std::set<FileId> goes_on;
    for (const Event& event : incident_.events)
      if (job.has_year && IsKernels(event) && event.wall_ns != kNoTime && event.wall_ns >= job.first_ns - kDriftNs)
        goes_on.insert(event.source.file);
    std::erase_if(incident_.events, [&](const Event& event) {
      const int64_t at = IsKernels(event) ? job.TimeOf(event) : kNoTime;
      if (at == kNoTime) return false;
      const bool old = at < job.first_ns - kZonesNs || (at < job.first_ns - kDriftNs && event.wall_ns != kNoTime &&
                                                        goes_on.contains(event.source.file));
      const bool late = job.last_ns != kNoTime && at > job.last_ns + kZonesNs;
      if (old)
        incident_.diagnostics.push_back({DiagnosticSeverity::note, "before-the-job",
                                         "the kernel logged this line " + Distance(job.first_ns - at) +
                                             "before the job began: it belongs to an earlier run",
                                         event.source, ""});
      else if (late)
        incident_.diagnostics.push_back({DiagnosticSeverity::note, "after-the-job",
                                         "the kernel logged this line " + Distance(at - job.last_ns) +
                                             "after the job's last one: it does not explain how the job ended",
                                         event.source, ""});
      return old || late;
    });
  }

  // "22 days "; nothing where it is less than one, since zones may differ.
  static std::string Distance(int64_t ns) {
    const int64_t days = ns / kDayNs;
    return days < 1 ? "" : days == 1 ? "1 day " : std::to_string(days) + " days ";
  }

  Incident& incident_;
  std::map<int64_t, std::map<std::string, std::set<Rank>>> on_bus_;
  std::map<FileId, std::string> host_of_file_;
  PidIndex by_pid_;
  static constexpr size_t kMostHosts = 4096;
  std::map<std::string, std::set<Rank>> ranks_on_;  // by host, as asked for
  size_t ranks_left_ = size_t{1} << 20;             // that events of nodes may list, all together
};

}  // namespace

int64_t BusIdOf(std::string_view pci_address) {
  const size_t first = pci_address.find(':');
  const size_t second = first == std::string_view::npos ? first : pci_address.find(':', first + 1);
  if (first == std::string_view::npos) return -1;
  const bool short_form = second == std::string_view::npos;  // "4b:00.0", of domain 0
  const std::string_view slot = pci_address.substr((short_form ? first : second) + 1);
  const size_t dot = slot.find('.');
  if (short_form && dot == std::string_view::npos) return -1;
  const int64_t domain = short_form ? 0 : ParseHex(pci_address.substr(0, first));
  const int64_t bus =
      ParseHex(short_form ? pci_address.substr(0, first) : pci_address.substr(first + 1, second - first - 1));
  const int64_t device = ParseHex(slot.substr(0, dot));
  const int64_t function = dot == std::string_view::npos ? 0 : ParseHex(slot.substr(dot + 1));
  if (domain < 0 || domain > 0xffffffff || bus < 0 || bus > 0xff || device < 0 || device > 0x1f || function < 0 ||
      function > 7)
    return -1;
  return domain << 20 | bus << 12 | device << 4 | function;
}

std::string HostOfKernelLog(const Incident& incident, FileId file) {
  const std::string_view path = incident.PathOf(file);
  std::set<std::string> hosts, named, beside;
  for (const Process& process : incident.processes)
    if (process.rank.known() && !process.host.empty()) hosts.insert(process.host);
  for (const std::string& host : hosts)
    if (NamesHost(path, host.substr(0, host.find('.')))) named.insert(host);
  if (named.size() == 1) return *named.begin();
  for (const Process& process : incident.processes)
    for (const FileId other : process.files)
      if (other != file && FolderOf(incident.PathOf(other)) == FolderOf(path) && !process.host.empty())
        beside.insert(process.host);
  return beside.size() == 1 ? *beside.begin() : "";
}

void TieEventsToProcesses(Incident& incident) { EventTies(incident).Tie(); }

}  // namespace tacet
