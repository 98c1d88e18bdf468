// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/options.h"
#include "evidence/load.h"

namespace tacet {

// --threads and --max-file-mb, as every command that reads files takes them.
Result<LoadOptions> ReadLoadOptions(const Options& options);

// --output, --html, --color and --verbose, as every command that writes a report takes them.
struct OutputOptions {
  std::string path;  // empty: standard output
  std::string page;  // empty: no page beside it
  bool colour = false, verbose = false;
};
Result<OutputOptions> ReadOutputOptions(const Options& options);

}  // namespace tacet
