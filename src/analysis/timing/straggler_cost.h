// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/timing/straggler.h"

namespace tacet {

// Waits say how late a rank is; what the step would gain without that is less where the others have other things to
// wait for. So no straggler costs more than a replay of the first of these records that can be replayed gains, nor,
// where it is always late, less. Who is late by little that costs next to nothing is not worth a word and is dropped.
void BoundCosts(std::span<const std::vector<CollectiveRound>* const> records, StragglerReport& report);

// The same without dropping anybody.
void LimitCosts(std::span<const std::vector<CollectiveRound>* const> records, StragglerReport& report);

// Tells lateness as shares of this step.
void StateShares(int64_t step_ns, StragglerReport& report);

}  // namespace tacet
