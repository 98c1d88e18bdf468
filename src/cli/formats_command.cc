// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "evidence/registry.h"

namespace tacet {

static int RunFormats(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return Complain({"formats takes no arguments", ""});
  std::string out;
  for (const Format* format : AllFormats())
    out += std::string(format->name) + std::string(format->name.size() < 18 ? 18 - format->name.size() : 1, ' ') +
           std::string(format->description) + "\n";
  return WriteOutput("", out) ? kHealthy : kUsage;
}

extern const Command kFormatsCommand;
const Command kFormatsCommand = {
    "formats", "What kinds of files are read, and how to capture them",
    "tacet formats\n\nLists the evidence formats. Files are recognised by content, not by name.\n", RunFormats};

}  // namespace tacet
