// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/help_wrap.h"
#include "cli/options.h"
#include "cli/spelling.h"

namespace tacet {

extern const Command kHelpCommand;

static int RunHelp(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kHelpCommand.help);
  if (!options) return Complain(options.error());
  const bool man = options->Has("--man");
  if (options->rest().size() > 1) return Complain({"help takes one command at a time", "tacet help diagnose"});
  std::string out;
  if (options->Has("--markdown")) {
    out = CommandsAsMarkdown();
  } else if (options->rest().empty()) {
    out = man ? ManPage() : FitHelp(Overview(), HelpWidth());
  } else if ((options->rest()[0] == "environment" || options->rest()[0] == "variables") && !man) {
    out = FitHelp(EnvironmentText(), HelpWidth());
  } else if (options->rest()[0] == "version" && !man) {
    out = "tacet version\n\nPrints the version, as 'tacet --version' does.\n";
  } else {
    const std::string& name = options->rest()[0];
    const Command* command = FindCommand(name);
    if (command == nullptr)
      return Complain(
          {"unknown command '" + name + "'", DidYouMean(name, CommandNames()) + "'tacet --help' lists the commands"});
    out = man ? ManPage(*command) : FitHelp(command->help, HelpWidth());
  }
  return WriteOutput("", out) ? kHealthy : kUsage;
}

const Command kHelpCommand = {"help", "Explain a command, or list the variables that are read",
                              R"(tacet help [options] [COMMAND | environment]

Prints the help of a command; without one, lists the commands. 'tacet help environment' lists the variables
that the tool and the plugin read.

      --man        as a man page: of the command, or of tacet itself
      --markdown   the help of all commands as one document

Examples:
  tacet help diagnose
  tacet help environment
  tacet help --man diagnose | man -l -
)",
                              RunHelp};

}  // namespace tacet
