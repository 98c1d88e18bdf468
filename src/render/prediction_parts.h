// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "render/prediction_render.h"
#include "render/text_layout.h"

namespace tacet {

// The parts of RenderPredictionText that are not about NCCL.
void AddPlainModel(const Prediction& prediction, const PredictionTextOptions& options, TextPage& page);
void AddStep(const Prediction& prediction, const PredictionTextOptions& options, TextPage& page);
void AddFormulas(const Prediction& prediction, TextPage& page);

}  // namespace tacet
