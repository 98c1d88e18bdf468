// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/bandwidth/sweep.h"

namespace tacet {

// Sizes that took longer than the rest of the sweep leads one to expect.
std::vector<SweepOutlier> FindSweepOutliers(const Sweep& sweep);

// In a series of times or rates: from `first` on everything is slower (lasting), or single values are (passing).
struct LevelShift {
  size_t first = 0;
  double before = 0, after = 0;  // medians
};
std::optional<LevelShift> FindLevelShift(std::span<const double> values);
// Indices of single values that are more than `share` above their neighbours' level.
std::vector<size_t> FindSpikes(std::span<const double> values, double share);

}  // namespace tacet
