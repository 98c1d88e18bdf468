// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "render/bandwidth/bandwidth_render.h"
#include "render/text_layout.h"

namespace tacet {

// The parts of RenderBandwidthText that are not about sizes.
void AddWaterfall(const ModelCheck& check, TextPage& page);
void AddStream(const StreamView& stream, TextPage& page);
void AddMatrix(const PairMatrixView& view, const BandwidthTextOptions& options, TextPage& page);
void AddBetterWays(const BandwidthView& view, TextPage& page);

std::string PercentWords(double share);              // "12 %", "0.4 %"
std::string FixedWords(double value, int decimals);  // "0.9987"

}  // namespace tacet
