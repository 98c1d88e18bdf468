// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/completion_scripts.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/options.h"

namespace tacet {

extern const Command kCompletionCommand;

static int RunCompletion(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kCompletionCommand.help);
  if (!options) return Complain(options.error());
  std::string out;
  if (options->Has("--list")) {
    for (const std::string_view name : CommandNames()) out += std::string(name) + "\n";
    return WriteOutput("", out) ? kHealthy : kUsage;
  }
  const std::string shell = options->rest().size() == 1 ? options->rest()[0] : "";
  if (shell == "bash")
    out = BashCompletion();
  else if (shell == "zsh")
    out = ZshCompletion();
  else if (shell == "fish")
    out = FishCompletion();
  else
    return Complain({shell.empty() ? "completion needs the name of one shell" : "no completion for '" + shell + "'",
                     "bash, zsh or fish"});
  return WriteOutput("", out) ? kHealthy : kUsage;
}

const Command kCompletionCommand = {"completion", "Print a completion script for your shell",
                                    R"(tacet completion bash | zsh | fish

Prints a script that completes commands, options, their values and causes.

  -l, --list   the names of all commands instead, one per line

Exit code:
  0  printed
  2  wrong usage
  3  internal error

Examples:
  source <(tacet completion bash)
  tacet completion zsh > ~/.zfunc/_tacet
  tacet completion fish > ~/.config/fish/completions/tacet.fish
)",
                                    RunCompletion};

}  // namespace tacet
