// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "rules/rule.h"

namespace tacet {

// The flight recorder is on where one of these is set; versions know one name or both.
inline constexpr std::string_view kRecorderSetting =
    "TORCH_FR_BUFFER_SIZE=2000, before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE=2000";

// Asked where a job that stood still was ended from outside.
inline constexpr std::string_view kWhyItStalled = "Why did the job stall before it was ended?";

// What would show which rank makes the others wait, without what was read of all ranks already.
std::string HangCapture(const Case& facts);
// Flight records are PyTorch's own: Horovod, which reports by tensors, keeps none.
bool MayHaveFlightRecords(const Incident& incident);
bool HasAllStacks(const Case& facts);
bool HasAllRecords(const Case& facts);  // of the flight recorder
// The way to take a stack of a process that stands still: py-spy knows Python alone.
std::string StackCommand(const Incident& incident);

}  // namespace tacet
