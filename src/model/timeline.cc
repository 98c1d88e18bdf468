// SPDX-License-Identifier: Apache-2.0
#include "model/timeline.h"

#include <map>

namespace tacet {

int32_t Timeline::MainDevice() const {
  std::vector<int64_t> busy(streams.size(), 0);
  for (const GpuEvent& event : gpu) busy[event.stream] += event.end_ns - event.start_ns;
  std::map<int32_t, int64_t> by_device;
  for (size_t i = 0; i < streams.size(); ++i) by_device[streams[i].device] += busy[i];
  int32_t best = -1;
  int64_t most = -1;
  for (const auto& [device, ns] : by_device) {
    if (ns <= most) continue;
    most = ns;
    best = device;
  }
  return best;
}

const DeviceProperties* Timeline::PropertiesOf(int32_t device) const {
  for (const DeviceProperties& properties : devices)
    if (properties.id == device) return &properties;
  return devices.empty() ? nullptr : &devices.front();
}

}  // namespace tacet
