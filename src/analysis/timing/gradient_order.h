// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/timeline.h"

namespace tacet {

// The gradients of one backward pass of a step, each parameter once, in the order in which they became ready. A step
// that accumulates over several microbatches has as many passes: the last one is returned, whose gradients are
// communicated.
std::vector<GradientReady> GradientsOfStep(const Timeline& timeline, const TrainingStep& step);

}  // namespace tacet
