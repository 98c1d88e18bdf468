// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/load.h"
#include "model/incident.h"

namespace tacet {

// All jobs under some paths.
Result<std::vector<Incident>> LoadAllJobs(const std::vector<std::string>& paths, LoadOptions load);
// A trace, timed records or a pipeline timeline is there.
bool HasTimes(const Incident& job);
// The jobs under some paths that have times; an error when none has.
Result<std::vector<Incident>> LoadJobs(const std::vector<std::string>& paths, LoadOptions load);

// "7e9", "7B", "1.5 T", "4096", "64k": a number above zero with a decimal suffix.
Result<double> ParseQuantity(std::string_view text);

}  // namespace tacet
