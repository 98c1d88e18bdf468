// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/launch_join.h"

#include <algorithm>
#include <utility>

namespace tacet {

bool IsLaunchCall(std::string_view name) {
  for (const std::string_view start :
       {"cudaLaunch", "cuLaunch", "cudaMemcpy", "cudaMemset", "cuMemcpy", "cuMemset", "cudaGraphLaunch",
        "cuGraphLaunch", "hipLaunch", "hipExtLaunch", "hipExtModuleLaunch", "hipModuleLaunch", "hipMemcpy", "hipMemset",
        "hipGraphLaunch"})
    if (name.starts_with(start)) return true;
  return false;
}

bool IsDeviceWait(std::string_view name) { return name.find("Synchronize") != std::string_view::npos; }

void JoinLaunches(std::vector<PendingLaunch> calls, Timeline& timeline) {
  const auto by_correlation = [](const PendingLaunch& a, const PendingLaunch& b) {
    return a.correlation < b.correlation;
  };
  if (!std::is_sorted(calls.begin(), calls.end(), by_correlation))
    std::stable_sort(calls.begin(), calls.end(), by_correlation);
  for (GpuEvent& event : timeline.gpu) {
    const uint32_t correlation = std::exchange(event.launch, kNoIndex);
    if (correlation == kNoIndex) continue;
    const auto found = std::lower_bound(calls.begin(), calls.end(), PendingLaunch{correlation}, by_correlation);
    if (found == calls.end() || found->correlation != correlation) continue;
    found->place = 0;
    event.launch = static_cast<uint32_t>(found - calls.begin());
  }
  // Calls that no GPU event asked for are dropped, the others put in order of time.
  std::vector<uint32_t> order;
  order.reserve(static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [](const PendingLaunch& call) { return call.place != kNoIndex; })));
  for (uint32_t i = 0; i < calls.size(); ++i)
    if (calls[i].place != kNoIndex) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return calls[a].start_ns < calls[b].start_ns; });
  timeline.launches.reserve(order.size());
  for (const uint32_t i : order) {
    calls[i].place = static_cast<uint32_t>(timeline.launches.size());
    timeline.launches.push_back({calls[i].start_ns, calls[i].duration_ns, calls[i].thread});
  }
  for (GpuEvent& event : timeline.gpu)
    if (event.launch != kNoIndex) event.launch = calls[event.launch].place;
}

}  // namespace tacet
