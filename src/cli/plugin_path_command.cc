// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "launch/run_folder.h"

namespace tacet {

static int RunPluginPath(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return Complain({"plugin-path takes no arguments", ""});
  const std::string path = FindPlugin();
  if (path.empty())
    return Complain(
        {"libnccl-profiler-tacet.so was not found", "looked in the program's folder and in lib and lib64 next to it"});
  return WriteOutput("", path + "\n") ? kHealthy : kUsage;
}

extern const Command kPluginPathCommand;
const Command kPluginPathCommand = {"plugin-path",
                                    "Print the path of the NCCL profiler plugin that came with this tool",
                                    R"(tacet plugin-path

Prints the full path of libnccl-profiler-tacet.so, so that a job can load it wherever the tarball, wheel or
package installed it.

Exit code:
  0  found
  2  not found

Example:
  NCCL_PROFILER_PLUGIN=$(tacet plugin-path) torchrun train.py
)",
                                    RunPluginPath};

}  // namespace tacet
