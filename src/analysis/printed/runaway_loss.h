// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "model/incident.h"

namespace tacet {

// A loss that grows by orders of magnitude, stays there and is still finite.
struct RunawayLoss {
  const FigureSeries* series = nullptr;
  size_t ranks = 0;  // whose loss does the same; 0: the lines tell no rank
};
std::optional<RunawayLoss> FindRunawayLoss(const Incident& incident);

}  // namespace tacet
