// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

namespace tacet {

// SARIF 2.1.0 for code-scanning pages and editors: a rule a cause, a result a finding, remarks on the input as
// notifications.
std::string RenderSarif(const Report& report);

}  // namespace tacet
