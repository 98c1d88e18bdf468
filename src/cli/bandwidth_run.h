// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/options.h"

namespace tacet {

// Runs what the options of `tacet bandwidth --run` ask for, shows progress, and returns the folder with the output.
Result<std::string> MeasureNow(const Options& options);

}  // namespace tacet
