// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_report.h"

namespace tacet {

// What the profile's page draws, as JSON: a row of numbers a rank instead of an object, steps joined into a few hundred
// columns, long tables cut, so that a thousand ranks or a hundred thousand steps stay a small file. Read by
// web/profile.js alone; scripts use RenderProfileJson.
std::string RenderProfilePageJson(const std::vector<ProfileReport>& profiles);

inline constexpr size_t kMostStepColumns = 240;
inline constexpr size_t kMostPageLines = 400;  // of the communication table

}  // namespace tacet
