// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace tacet {

const Command* FindCommand(std::string_view name);
std::vector<std::string_view> CommandNames();

std::string Overview();                       // `tacet --help`
std::string EnvironmentText();                // `tacet help environment`
std::string CommandsAsMarkdown();             // docs/commands.md
std::string ManPage();                        // tacet(1)
std::string ManPage(const Command& command);  // tacet-diagnose(1)

}  // namespace tacet
