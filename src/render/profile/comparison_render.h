// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile/profile_comparison.h"

namespace tacet {

std::string RenderComparisonText(const ProfileComparison& comparison, int width, bool colour, bool verbose);
std::string RenderComparisonJson(const ProfileComparison& comparison);  // schema "tacet.compare.v1"
// One test case a line: slower ones fail.
std::string RenderComparisonJunit(const ProfileComparison& comparison, bool any_line);

}  // namespace tacet
