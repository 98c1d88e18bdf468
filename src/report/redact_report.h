// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/profile/profile_report.h"
#include "report/report.h"

namespace tacet {

// Takes secrets out of every text of a report, and says in its assumptions which kinds there were. Reports are sent to
// colleagues and vendors; what is not in the report cannot be in any of its renderings.
void RedactReport(Report& report);

// The same for a profile; what was taken out is told in its remarks.
void RedactProfile(ProfileReport& profile);

}  // namespace tacet
