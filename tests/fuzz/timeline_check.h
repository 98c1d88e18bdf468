// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "model/fragment.h"

namespace tacet {

// Whatever the bytes are, the accounting adds up, every index points into its table, and the order promised is kept.
inline void CheckTimelines(const Fragment& fragment) {
  const Accounting& bytes = fragment.bytes;
  if (bytes.understood + bytes.ignored + bytes.not_understood != bytes.total) std::abort();
  for (const Timeline& timeline : fragment.timelines) {
    if (timeline.speaker >= fragment.speakers.size()) std::abort();
    for (const GpuEvent& event : timeline.gpu) {
      if (event.stream >= timeline.streams.size()) std::abort();
      if (event.launch != kNoIndex && event.launch >= timeline.launches.size()) std::abort();
      if (event.collective != kNoIndex && event.collective >= timeline.collectives.size()) std::abort();
      if (event.end_ns < event.start_ns) std::abort();
    }
    for (const TraceCollective& operation : timeline.collectives) {
      if (operation.gpu_event != kNoIndex && operation.gpu_event >= timeline.gpu.size()) std::abort();
      if (operation.group != GroupIndex::none && static_cast<uint32_t>(operation.group) >= fragment.groups.size())
        std::abort();
    }
    if (!std::is_sorted(timeline.gpu.begin(), timeline.gpu.end(),
                        [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; }))
      std::abort();
  }
}

}  // namespace tacet
