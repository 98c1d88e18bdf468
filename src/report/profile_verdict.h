// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/profile_report.h"

namespace tacet {

// Fills verdict, headline and advice from the numbers, which must be there already.
void JudgeProfile(ProfileReport& profile);

}  // namespace tacet
