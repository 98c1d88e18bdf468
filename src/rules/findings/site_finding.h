// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "rules/rule.h"

namespace tacet {

// What the programs around the job report (model/events/site_messages.h): one finding for each message. Where a rule
// has a finding of the same cause already, the lines are added to it as evidence.
void AddSiteFindings(const Case& facts, std::vector<Finding>& findings);

}  // namespace tacet
