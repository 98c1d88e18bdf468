// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

namespace tacet {

// The report as one line of JSON, schema "tacet.report.v1". Scripts depend on its keys: fields are added, never
// changed.
std::string RenderJson(const Report& report);

}  // namespace tacet
