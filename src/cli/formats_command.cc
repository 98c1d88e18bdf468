// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "evidence/registry.h"
#include "render/text_layout.h"

namespace tacet {

static int RunFormats(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return Complain({"formats takes no arguments", ""});
  TextPage page(static_cast<size_t>(TerminalWidth()), false);
  for (const Format* format : AllFormats()) {
    std::string name(format->name);
    name.resize(std::max<size_t>(18, name.size() + 1), ' ');
    page.Paragraph(name, format->description);
  }
  return WriteOutput("", page.Take()) ? kHealthy : kUsage;
}

extern const Command kFormatsCommand;
const Command kFormatsCommand = {"formats", "List the kinds of files that are read, and how to capture them",
                                 "tacet formats\n\nLists the kinds of files that tacet reads, and how to capture each. "
                                 "Files are recognized by\ncontent, not by name.\n",
                                 RunFormats};

}  // namespace tacet
