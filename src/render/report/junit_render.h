// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

namespace tacet {

// JUnit XML for CI systems. One test case a finding above note (a failure), one an input file with remarks (an error
// when it could not be read, else skipped); a healthy report is one case that passes.
std::string RenderJunit(const Report& report);

}  // namespace tacet
