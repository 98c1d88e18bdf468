// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// Takes the rates out of one line of a job or of whoever tells of it:
//   AllReduce: [[0, 1, 2, 3]] Bytes: 2.00000 GB Time: 0.01404 s Bandwidth: 213.68 GB/s
//   Training Model Floating Point Utilization: 0.84%
// Says whether there were any.
bool ReadFigures(std::string_view text, const SourceRef& source, LogOutline& out);

// Once all lines are read: a single figure is no comparison.
void FinishFigures(LogOutline& out);

// The figures alone are worth a look at the text.
bool TellsRates(const LogOutline& outline);

}  // namespace tacet
