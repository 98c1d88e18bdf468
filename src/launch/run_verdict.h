// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/report.h"

namespace tacet {

// Reads everything below the folder and judges it, as `tacet diagnose FOLDER` does.
Result<Report> DiagnoseFolder(const std::string& folder);

// verdict.json and report.html in the folder. False where one could not be written.
bool KeepVerdict(const std::string& folder, const Report& report);

// What a webhook gets: schema, run, host, status, cause, ranks, headline and where to read on; a line for chat
// programs.
std::string DescribeForWebhook(const Report& report, const std::string& run, const std::string& host);

// Posts JSON to "http://host:port/path" or https. An Error says why it was not taken; nothing is tried again.
Result<int> PostWebhook(const std::string& url, const std::string& json);
// Whether the address can be used at all, told before the job starts.
Result<int> CheckWebhook(const std::string& url);

}  // namespace tacet
