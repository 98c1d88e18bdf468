// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_comparison.h"
#include "report/profile/profile_report.h"

namespace tacet {

// Each one HTML file that needs no network and no other file, in the manner of RenderHtml.
std::string RenderProfileHtml(const std::vector<ProfileReport>& profiles);
std::string RenderComparisonHtml(const ProfileComparison& comparison);

}  // namespace tacet
