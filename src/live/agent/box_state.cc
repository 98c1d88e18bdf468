// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_state.h"

namespace tacet {
namespace {

constexpr std::string_view kSightNames[] = {"unknown", "running", "stopped", "uninterruptible", "zombie", "gone"};

}  // namespace

std::string_view Name(ProcessSight sight) { return kSightNames[static_cast<size_t>(sight)]; }

ProcessSight ParseProcessSight(std::string_view name) {
  for (size_t i = 0; i < std::size(kSightNames); ++i)
    if (kSightNames[i] == name) return static_cast<ProcessSight>(i);
  return ProcessSight::unknown;
}

}  // namespace tacet
