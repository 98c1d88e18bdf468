// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/runaway_loss.h"

#include <set>

namespace tacet {
namespace {

// A peak that comes down again is none, nor a loss that was rounded to nearly nothing and rose a little. What began as
// high as it ends has learned nothing, which other rules tell.
bool RanAway(const FigureSeries& series) {
  constexpr int64_t kFewestLines = 5;
  constexpr double kTimesLeast = 100, kTimesFirst = 10, kOfMost = 0.3, kLeastOfInterest = 1e-6;
  const TrainingValue& value = series.value;
  return series.kind == FigureSeries::Kind::loss && !series.held_out && value.run == 0 && value.far >= kFewestLines &&
         value.least > kLeastOfInterest && value.last >= kTimesLeast * value.least &&
         value.last >= kTimesFirst * value.first && value.last >= kOfMost * value.most;
}

}  // namespace

std::optional<RunawayLoss> FindRunawayLoss(const Incident& incident) {
  RunawayLoss found;
  std::set<int32_t> ranks;
  for (const LogOutline& outline : incident.outlines)
    for (const FigureSeries& series : outline.series) {
      if (!RanAway(series)) continue;
      if (!found.series) found.series = &series;
      if (series.rank >= 0) ranks.insert(series.rank);
    }
  if (!found.series) return std::nullopt;
  found.ranks = ranks.size();
  return found;
}

}  // namespace tacet
