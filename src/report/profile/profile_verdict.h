// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile/profile_report.h"

namespace tacet {

// A share of the step: "12 %", "4.2 %".
std::string StepPercent(double share);

// Fills verdict, headline and advice from the numbers, which must be there already.
void JudgeProfile(ProfileReport& profile);

}  // namespace tacet
