// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "render/prediction/prediction_render.h"
#include "render/text_layout.h"

namespace tacet {

// The parts of RenderPredictionText that are not about NCCL.
void AddPlainModel(const Prediction& prediction, const PredictionTextOptions& options, TextPage& page);
void AddStep(const Prediction& prediction, const PredictionTextOptions& options, TextPage& page);
void AddFormulas(const Prediction& prediction, TextPage& page);

// "0.15", "128.07": GB/s with the same decimals all along a column, whose head has the unit.
std::string RateFigure(double gbps);
// One below the other.
void AlignFigures(std::vector<TextRow>& rows, size_t column);

}  // namespace tacet
