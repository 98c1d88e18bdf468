// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/timeline.h"

namespace tacet {

// A host call that may have put work on a device, until the device's events say which of them did.
struct PendingLaunch {
  uint32_t correlation = 0;
  uint32_t duration_ns = 0;
  int64_t start_ns = 0;
  uint32_t thread = 0;
  uint32_t place = kNoIndex;  // in Timeline::launches once a GPU event asked for it
};

// Host calls by the names CUDA, its driver and HIP give them: cudaLaunchKernel, cuLaunchKernelEx, hipMemcpyAsync,
// cudaGraphLaunch_v10000; and cudaStreamSynchronize, in which the host waits for the device.
bool IsLaunchCall(std::string_view name);
bool IsDeviceWait(std::string_view name);

// Fills timeline.launches, sorted by start, with the calls that events ask for. Until then GpuEvent::launch holds the
// correlation, afterwards the index; kNoIndex stays. The order of the events is kept.
void JoinLaunches(std::vector<PendingLaunch> calls, Timeline& timeline);

}  // namespace tacet
