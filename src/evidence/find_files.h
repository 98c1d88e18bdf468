// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacet {

struct FoundFile {
  std::string path;     // to open
  std::string shown;    // relative to the argument it was found under
  std::string problem;  // why it must not be opened; empty for most
};

// The regular files under the arguments, sorted. Folders are walked without following links to folders; a link to a file
// outside the folder that was named is listed with a problem, never followed; hidden folders are skipped.
Result<std::vector<FoundFile>> FindFiles(const std::vector<std::string>& arguments);

}  // namespace tacet
