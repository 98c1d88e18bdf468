// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "live/agent/box_state.h"

namespace tacet {

// How many of a box's newest records are fetched for a verdict.
inline constexpr uint64_t kUsualRecords = 1024;

// For a look at a running job: what was issued since the look before and as much again, so that two of them overlap.
uint64_t PatrolRecords(uint64_t issued_since);

// Within a budget for all boxes of a job together: large jobs get fewer a box, never fewer than the last few.
uint64_t RecordsToFetch(uint64_t wanted, size_t boxes);

uint64_t IssuedBy(const BoxState& box);

}  // namespace tacet
