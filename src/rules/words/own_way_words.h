// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/printed/own_way.h"
#include "rules/finding.h"

namespace tacet {

// Behind "..., which it has not issued; ": what the rank's own lines show of where it is.
std::string WayWords(const OwnWay& way);

// Its lines, and the first step.
void CiteWay(const OwnWay& way, const std::string& who, Finding& finding);

}  // namespace tacet
