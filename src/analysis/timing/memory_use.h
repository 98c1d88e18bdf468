// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "model/timeline.h"

namespace tacet {

// What the caching allocator did on one rank. Needs profile_memory=True.
struct MemoryUse {
  int64_t peak_allocated_bytes = 0, peak_allocated_ns = 0;  // tensors, and when
  int64_t peak_reserved_bytes = 0;
  int64_t device_bytes = -1;           // -1 where unknown
  int64_t lowest_allocated_bytes = 0;  // what stays between steps: parameters, gradients, optimizer state, buffers
  int64_t peak_step = -1;              // training step of the peak, -1 where none is marked
  double fragmentation = 0;  // 1 - allocated / reserved at the peak of allocation: reserved and of no use even then
  bool out_of_memory = false;
  bool pressure = false;  // reserved more than 92 % of the device, or an allocation failed
};

std::optional<MemoryUse> MeasureMemory(const Timeline& timeline);

}  // namespace tacet
