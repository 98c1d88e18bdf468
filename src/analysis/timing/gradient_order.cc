// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/gradient_order.h"

#include <algorithm>
#include <span>

namespace tacet {
namespace {

// Did another thread than the backward pass's launch work in between? Then a forward pass lies there.
bool ForwardBetween(const Timeline& timeline, const GradientReady& before, const GradientReady& after) {
  auto at = std::lower_bound(timeline.launches.begin(), timeline.launches.end(), before.ns,
                             [](const Launch& launch, int64_t ns) { return launch.start_ns < ns; });
  for (; at != timeline.launches.end() && at->start_ns < after.ns; ++at)
    if (at->thread != after.thread) return true;
  return false;
}

// Do the sizes repeat with this period, and is each repetition a pass of its own? A model of equal layers repeats
// within one pass as well, but between passes lies a forward pass.
bool IsPass(const Timeline& timeline, std::span<const GradientReady> gradients, size_t period) {
  for (size_t i = period; i < gradients.size(); ++i)
    if (gradients[i].elements != gradients[i - period].elements) return false;
  for (size_t i = period; i < gradients.size(); i += period)
    if (!ForwardBetween(timeline, gradients[i - 1], gradients[i])) return false;
  return true;
}

}  // namespace

std::vector<GradientReady> GradientsOfStep(const Timeline& timeline, const TrainingStep& step) {
  const auto by_time = [](const GradientReady& gradient, int64_t ns) { return gradient.ns < ns; };
  const auto begin = std::lower_bound(timeline.gradients.begin(), timeline.gradients.end(), step.start_ns, by_time);
  const auto end = std::lower_bound(begin, timeline.gradients.end(), step.end_ns, by_time);
  const std::span<const GradientReady> all(begin, end);
  for (size_t period = 2; period <= all.size() / 2; ++period)
    if (all.size() % period == 0 && IsPass(timeline, all, period)) return {end - static_cast<ptrdiff_t>(period), end};
  return {begin, end};
}

}  // namespace tacet
