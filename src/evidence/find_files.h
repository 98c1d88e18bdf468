// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tacet {

struct FoundFile {
  std::string path;     // to open
  std::string shown;    // relative to the argument it was found under
  std::string problem;  // why it must not be opened; empty for most
  std::string hint;     // what to do about the problem
};

// The regular files under the arguments, sorted. Folders are walked without following links to folders; a link to a
// file outside the folder that was named is listed with a problem, never followed; hidden folders are skipped. What
// does not exist or cannot be listed is listed with a problem too, and costs nothing else.
std::vector<FoundFile> FindFiles(const std::vector<std::string>& arguments);

}  // namespace tacet
