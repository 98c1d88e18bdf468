// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

enum ExitCode { kHealthy = 0, kFindings = 1, kUsage = 2, kOurBug = 3 };

// One subcommand. `run` gets the arguments behind its name.
struct Command {
  std::string_view name;
  std::string_view summary;  // one line for `tacet --help`
  std::string_view help;     // the whole text of `tacet NAME --help`, with examples
  int (*run)(const std::vector<std::string>& arguments);
};

std::span<const Command* const> AllCommands();

}  // namespace tacet
