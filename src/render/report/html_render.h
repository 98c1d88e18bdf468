// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"

namespace tacet {

// The report as one HTML file that needs no network and no other file. It carries the JSON report, which its script
// lays out, and the text report, which shows where scripts are not allowed (a CI server's sandbox, a mail client).
std::string RenderHtml(const Report& report);

// The same page for a job that runs: it asks "api/v1/verdict" of the server it came from again and again. `live` is
// that answer's member of the same name, as JSON.
std::string RenderLiveHtml(const Report& report, std::string_view live);
// The same of a report that was rendered before, as text and as JSON.
std::string RenderLiveHtml(std::string_view status, std::string_view text, std::string_view json,
                           std::string_view live);

}  // namespace tacet
