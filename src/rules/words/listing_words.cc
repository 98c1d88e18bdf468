// SPDX-License-Identifier: Apache-2.0
#include "rules/words/listing_words.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "model/events/gpu_state.h"
#include "rules/findings/failed_check.h"
#include "rules/words/gpu_load_words.h"

namespace tacet {
namespace {

bool IsListed(const Event& event) {
  switch (event.kind) {
    case EventKind::port_state:
    case EventKind::port_errors:
    case EventKind::gpu_check:
    case EventKind::gpu_load:
    case EventKind::space_use:
    case EventKind::node_state: return true;
    default: return false;
  }
}

std::string Listed(size_t count, std::string_view what) {
  return count == 1   ? "the " + std::string(what) + " listed"
         : count == 2 ? "both " + std::string(what) + "s listed"
                      : "all " + std::to_string(count) + " " + std::string(what) + "s listed";
}

// "none of the 36 NVLink links listed is active": so it is on cards that nothing connects, and where a fabric is down.
std::string NvlinkWords(const Incident& incident) {
  size_t active = 0, links = 0;
  for (const Event& event : incident.events) {
    const auto& port = event.As<PortState>();
    if (event.kind != EventKind::port_state) continue;
    if (!port.nvlink) return "";
    ++links;
    active += port.health == PortHealth::active;
  }
  if (links == 0 || (active > 0 && active < links)) return "";
  if (active > 0) return Listed(links, "NVLink link") + (links == 1 ? " is active" : " are active");
  return "none of the NVLink links listed is active; that is normal where no bridge or NVSwitch connects the GPUs, and "
         "otherwise the fabric manager or the fabric is at fault";
}

// "4 links are active, at 4X 25.78125 Gbps"
std::string ActiveWords(const Incident& incident) {
  if (std::string words = NvlinkWords(incident); !words.empty()) return words;
  size_t links = 0, ports = 0;
  std::set<std::string> speeds;
  for (const Event& event : incident.events) {
    const auto& port = event.As<PortState>();
    if (event.kind != EventKind::port_state) continue;
    if (port.health != PortHealth::active) return "";
    ++ports;
    links += !port.link.empty();
    if (!port.link.empty()) speeds.insert(port.link);
  }
  if (ports == 0) return "";
  if (links < ports) return Listed(ports, "port") + (ports == 1 ? " is active" : " are active");
  // Ports of a switch to which nothing is connected are listed beside them, and are no links.
  std::string words = links == 1 ? "1 link is active" : std::to_string(links) + " links are active";
  if (speeds.size() == 1) return words + ", at " + *speeds.begin();
  return words + ", at different speeds (" + *speeds.begin() + " to " + *speeds.rbegin() + ")";
}

// "GPU 3", "GPUs 3 and 5"
std::string GpuNumbers(const std::vector<int64_t>& numbers) {
  std::string list;
  for (size_t i = 0; i < numbers.size(); ++i)
    list += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return (numbers.size() == 1 ? "GPU " : "GPUs ") + list;
}

// "GPU 5 is busy, GPUs 3 and 4 are idle; of the idle ones GPU 4 holds the memory of a process": where some do nothing
// while others do all they can, the two ends of a range tell little.
std::string UnlikeLoadWords(const Incident& incident) {
  constexpr float kBusyPercent = 90, kIdlePercent = 5;
  constexpr int32_t kUsedMib = 300;  // a process with a CUDA context has at least this much on the card
  constexpr size_t kMostNamed = 16;
  std::vector<int64_t> busy, idle, used;
  size_t gpus = 0;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::gpu_load) continue;
    const auto& load = event.As<GpuLoad>();
    if (load.index < 0 || load.percent < 0) return "";
    ++gpus;
    if (load.percent >= kBusyPercent) busy.push_back(load.index);
    if (load.percent <= kIdlePercent) idle.push_back(load.index);
    if (load.percent <= kIdlePercent && load.memory_mib >= kUsedMib) used.push_back(load.index);
  }
  if (busy.empty() || idle.empty() || gpus > kMostNamed) return "";
  std::string words = GpuNumbers(busy) + (busy.size() == 1 ? " is" : " are") + " busy, " + GpuNumbers(idle) +
                      (idle.size() == 1 ? " is" : " are") + " idle";
  if (used.size() == idle.size())
    return words + (used.size() == 1 ? ", with" : ", all with") + " memory that a process uses";
  if (used.empty()) return words + ", without a process";
  return words + "; of the idle ones, " + GpuNumbers(used) + (used.size() == 1 ? " holds" : " hold") +
         " memory that a process uses";
}

std::string LoadWords(const Incident& incident) {
  if (std::string words = UnlikeLoadWords(incident); !words.empty()) return words;
  size_t gpus = 0;
  float least = 1e9F, most = -1;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::gpu_load || event.As<GpuLoad>().percent < 0) continue;
    ++gpus;
    least = std::min(least, event.As<GpuLoad>().percent);
    most = std::max(most, event.As<GpuLoad>().percent);
  }
  if (gpus == 0) return "";
  const std::string low = std::to_string(static_cast<int>(least)), high = std::to_string(static_cast<int>(most));
  return Listed(gpus, "GPU") + (gpus == 1 ? " shows " : " show ") + (low == high ? high : low + " % to " + high) +
         " % utilization";
}

// "no GPU listed is slowed down by heat or by its hardware; a power limit holds the clock, which is usual under load"
std::string ClockWords(const Incident& incident) {
  size_t listed = 0, capped = 0;
  std::string slowed;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::gpu_load) continue;
    const GpuState state = ReadGpuState(event.text);
    if (!state.reasons_told) continue;
    ++listed;
    capped += state.power_capped;
    if (slowed.empty() && !state.slowed_by.empty()) slowed = state.slowed_by;
  }
  if (listed == 0) return "";
  if (!slowed.empty()) return slowed + " holds down the clock of a GPU that is listed";
  return std::string("no thermal or hardware slowdown is active") +
         (capped > 0 ? "; the power limit holds the clock down, which is normal under load" : "");
}

bool HasSlowedGpu(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::gpu_load && !ReadGpuState(event.text).slowed_by.empty();
  });
}

// What is worth saying of GPUs although nobody says that the job hangs: one that is idle while all others are busy
// included.
GpuLoadView OddLoads(const Incident& incident) {
  GpuLoadView odd = ReadGpuLoads(incident, false);
  if (!odd.words.empty()) return odd;
  GpuLoadView waiting = ReadGpuLoads(incident, true);
  return waiting.idle.empty() ? odd : waiting;
}

}  // namespace

std::string ListedLoadWords(const Incident& incident) { return LoadWords(incident); }

bool HoldsListingsOnly(const Incident& incident) {
  return !incident.events.empty() && incident.streams.empty() && incident.threads.empty() &&
         incident.outlines.empty() && incident.benchmark_runs.empty() &&
         std::all_of(incident.events.begin(), incident.events.end(), IsListed);
}

bool ListsNoFault(const Incident& incident, const Diagnosis& diagnosis) {
  const bool inactive = std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::port_state && event.As<PortState>().health != PortHealth::active;
  });
  return HoldsListingsOnly(incident) && !inactive && !HasSlowedGpu(incident) && diagnosis.findings.empty() &&
         OddLoads(incident).words.empty() && !ListingWords(incident, diagnosis).empty();
}

std::string ListingWords(const Incident& incident, const Diagnosis& diagnosis) {
  if (!HoldsListingsOnly(incident)) return "";
  if (!diagnosis.findings.empty()) return diagnosis.findings[0].headline;
  const GpuLoadView odd = OddLoads(incident);
  std::string words = odd.words;
  if (words.empty()) words = LoadWords(incident);
  const auto add = [&](const std::string& more) {
    if (!more.empty()) words += (words.empty() ? "" : "; ") + more;
  };
  add(ClockWords(incident));
  add(ActiveWords(incident));
  add(CheckWords(incident));
  const auto has = [&](EventKind kind) {
    return std::any_of(incident.events.begin(), incident.events.end(),
                       [&](const Event& event) { return event.kind == kind; });
  };
  if (has(EventKind::space_use)) add("no file system listed is full");
  if (has(EventKind::node_state)) add("all nodes listed accept jobs");
  if (words.empty()) return "";
  return odd.words.empty() ? words : words + "; whether the job makes progress is not shown";
}

}  // namespace tacet
