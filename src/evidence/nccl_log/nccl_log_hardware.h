// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "model/fragment.h"

namespace tacet {

// The tree of devices that NCCL prints at set-up, from the rows below "=== System", and the paths between them.
Hardware ParseHardware(std::span<const std::string_view> system_rows, std::span<const std::string_view> path_rows);

// For each set-up that printed one; equal trees of one process are kept once.
void AddHardwareOfSetups(Fragment& out);

}  // namespace tacet
