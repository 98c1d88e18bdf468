// SPDX-License-Identifier: Apache-2.0
// Builds small timelines by hand for tests.
#pragma once

#include <string>

#include "model/timeline.h"

namespace tacet {

inline Timeline MakeTimeline(int32_t rank) {
  Timeline timeline;
  timeline.rank = {rank};
  timeline.streams = {{0, 7}, {0, 20}};
  timeline.threads = {1};
  return timeline;
}

// Appends a GPU event; launch_ns < 0 leaves it without a launch. Callers append in order of start.
inline GpuEvent& AddGpu(Timeline& timeline, GpuWork work, int64_t start_ns, int64_t end_ns, int64_t launch_ns = -1,
                        const std::string& name = "kernel") {
  GpuEvent event;
  event.start_ns = start_ns;
  event.end_ns = end_ns;
  event.work = work;
  event.stream = work == GpuWork::communication ? 1 : 0;
  event.name = timeline.names.Intern(name);
  if (launch_ns >= 0) {
    event.launch = static_cast<uint32_t>(timeline.launches.size());
    timeline.launches.push_back({launch_ns, 5, 0});
  }
  timeline.gpu.push_back(event);
  return timeline.gpu.back();
}

// A collective with its kernel, of group 0.
inline void AddCollective(Timeline& timeline, OpKind kind, int64_t enter_ns, int64_t start_ns, int64_t end_ns,
                          int64_t elements = 1024) {
  TraceCollective operation;
  operation.group = static_cast<GroupIndex>(0);
  operation.kind = kind;
  operation.type = DataType::float32;
  operation.in_elements = operation.out_elements = elements;
  operation.enter_ns = enter_ns;
  operation.gpu_event = static_cast<uint32_t>(timeline.gpu.size());
  GpuEvent& event =
      AddGpu(timeline, GpuWork::communication, start_ns, end_ns, enter_ns, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  event.collective = static_cast<uint32_t>(timeline.collectives.size());
  timeline.collectives.push_back(operation);
}

}  // namespace tacet
