// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "preflight/preflight.h"

namespace tacet {

// What `tacet preflight` and `tacet run --preflight` share.
Result<PreflightOptions> ReadPreflightOptions(const Options& options);
// Runs it, writes the report in `format` ("text" or "json") to `path` or standard output, or to standard error where
// `to_error`. The exit code.
int ShowPreflight(const PreflightOptions& options, const std::string& format, const std::string& path, bool to_error);

}  // namespace tacet
