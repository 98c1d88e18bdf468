// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.h"

namespace tacet {

// The report as one HTML file that needs no network and no other file. It carries the JSON report, which its script
// lays out, and the text report, which shows where scripts are not allowed (a CI server's sandbox, a mail client).
std::string RenderHtml(const Report& report);

}  // namespace tacet
