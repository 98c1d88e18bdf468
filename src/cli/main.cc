// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "cli/help_wrap.h"
#include "cli/spelling.h"
#include "cli/version.h"

namespace tacet {

extern const Command kDiagnoseCommand, kProfileCommand, kTopologyCommand, kCompareCommand, kPredictCommand,
    kExplainCommand, kFormatsCommand, kAgentCommand, kServeCommand, kRunCommand, kCaptureCommand, kCollectCommand,
    kPostmortemCommand, kBandwidthCommand, kLintCommand, kPreflightCommand, kLabCommand, kPluginPathCommand,
    kCompletionCommand, kHelpCommand;

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kCommands[] = {
      &kDiagnoseCommand,   &kProfileCommand, &kTopologyCommand,   &kCompareCommand,    &kPredictCommand,
      &kBandwidthCommand,  &kLintCommand,    &kPreflightCommand,  &kExplainCommand,    &kFormatsCommand,
      &kAgentCommand,      &kServeCommand,   &kRunCommand,        &kCaptureCommand,    &kCollectCommand,
      &kPostmortemCommand, &kLabCommand,     &kPluginPathCommand, &kCompletionCommand, &kHelpCommand};
  return kCommands;
}

namespace {

int Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(FitHelp(Overview(), HelpWidth()).c_str(), stderr);
    return kUsage;
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h") return WriteOutput("", FitHelp(Overview(), HelpWidth())) ? kHealthy : kUsage;
  if (name == "--version" || name == "-V" || name == "version")
    return WriteOutput("", VersionLine() + "\n") ? kHealthy : kUsage;
  const Command* command = FindCommand(name);
  if (command == nullptr && name.starts_with('-'))
    return Complain({"unknown option '" + name + "'", "'tacet --help' lists the commands"});
  if (command == nullptr)
    return Complain(
        {"unknown command '" + name + "'", DidYouMean(name, CommandNames()) + "'tacet --help' lists the commands"});
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (const std::string& argument : rest) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h")
      return WriteOutput("", FitHelp(command->help, HelpWidth())) ? kHealthy : kUsage;
  }
  return command->run(rest);
}

}  // namespace
}  // namespace tacet

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return tacet::Run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    std::fputs("tacet: out of memory\n       name fewer files, or lower --max-file-mb\n", stderr);
    return tacet::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tacet: internal error: %s\n       please report this with the command line\n", error.what());
    return tacet::kOurBug;
  }
}
