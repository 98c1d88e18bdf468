// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_report.h"

namespace tacet {

// Two tables after RFC 4180, an empty line between them: the communication table, then the budgets. The first column
// says which table a line belongs to.
std::string RenderProfileCsv(const std::vector<ProfileReport>& profiles);

}  // namespace tacet
