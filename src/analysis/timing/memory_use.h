// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/timeline.h"

namespace tacet {

// What holds the memory at the peak. Traces tell sizes and lifetimes, not purposes, so this is drawn from those:
// parameters are as large as the gradients that became ready, what stays between steps beyond them is the optimizer's
// state (with communication buckets and the like), what comes and goes is activations, gradients and workspace. The
// parts sum to the peak.
struct MemorySplit {
  int64_t parameter_bytes = 0;  // of this rank's shard where they are sharded
  int64_t staying_bytes = 0;    // optimizer state, communication buckets, everything else that outlives a step
  int64_t passing_bytes = 0;    // activations, gradients, workspace
  int64_t gradient_bytes = 0;   // of the passing ones, gradients once all are there: as large as the parameters
};

// Where in a step a moment lies, by the gradients that were ready then.
enum class StepPhase : uint8_t { unknown, forward, backward, optimizer };
std::string_view Name(StepPhase phase);  // "forward pass"

// What the caching allocator did on one rank. Needs profile_memory=True.
struct MemoryUse {
  int64_t peak_allocated_bytes = 0, peak_allocated_ns = 0;  // tensors, and when
  int64_t peak_reserved_bytes = 0;
  int64_t device_bytes = -1;           // -1 where unknown
  int64_t lowest_allocated_bytes = 0;  // what stays between steps: parameters, optimizer state, buffers
  int64_t peak_step = -1;              // training step of the peak, -1 where none is marked
  StepPhase peak_phase = StepPhase::unknown;
  double fragmentation = 0;  // 1 - allocated / reserved at the peak of allocation: reserved and of no use even then
  bool out_of_memory = false;
  bool pressure = false;             // reserved more than 92 % of the device, or an allocation failed
  std::optional<MemorySplit> split;  // needs the gradients of a step in the trace
};

// `shards`: over how many ranks the parameters are split; 1 where every rank holds all of them.
std::optional<MemoryUse> MeasureMemory(const Timeline& timeline, int32_t shards = 1);

}  // namespace tacet
