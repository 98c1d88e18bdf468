// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/version.h"

namespace tacet {

extern const Command kDiagnoseCommand, kProfileCommand, kTopologyCommand, kCompareCommand, kPredictCommand,
    kExplainCommand, kFormatsCommand, kAgentCommand, kServeCommand, kRunCommand, kCaptureCommand, kCollectCommand,
    kPostmortemCommand, kPluginPathCommand;

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kCommands[] = {
      &kDiagnoseCommand, &kProfileCommand, &kTopologyCommand,  &kCompareCommand, &kPredictCommand,
      &kExplainCommand,  &kFormatsCommand, &kAgentCommand,     &kServeCommand,   &kRunCommand,
      &kCaptureCommand,  &kCollectCommand, &kPostmortemCommand, &kPluginPathCommand};
  return kCommands;
}

namespace {

std::string Overview() {
  std::string out =
      "tacet names the rank that fell silent: who hangs, slows or corrupts a distributed job, and why.\n\nusage: tacet "
      "COMMAND [options]\n\n";
  for (const Command* command : AllCommands())
    out += "  " + std::string(command->name) + std::string(14 - command->name.size(), ' ') +
           std::string(command->summary) + "\n";
  return out + "\n'tacet COMMAND --help' tells more. Start with: tacet diagnose FOLDER\n";
}

// docs/commands.md is written from here, so that it cannot differ from what the tool says.
std::string CommandsAsMarkdown() {
  std::string out = "# Commands\n\nWritten by `tacet help --markdown`; edit the commands' help instead.\n";
  for (const Command* command : AllCommands())
    out += "\n## " + std::string(command->name) + "\n\n" + std::string(command->summary) + ".\n\n```text\n" +
           std::string(command->help) + "```\n";
  return out;
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(Overview().c_str(), stderr);
    return kUsage;
  }
  const std::string& name = arguments[0];
  if (name == "help" && arguments.size() == 2 && arguments[1] == "--markdown")
    return WriteOutput("", CommandsAsMarkdown()) ? kHealthy : kUsage;
  if (name == "--help" || name == "-h" || name == "help") return WriteOutput("", Overview()) ? kHealthy : kUsage;
  if (name == "--version" || name == "-V" || name == "version")
    return WriteOutput("", VersionLine() + "\n") ? kHealthy : kUsage;
  for (const Command* command : AllCommands()) {
    if (command->name != name) continue;
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    for (const std::string& argument : rest) {
      if (argument == "--") break;
      if (argument == "--help" || argument == "-h") return WriteOutput("", command->help) ? kHealthy : kUsage;
    }
    return command->run(rest);
  }
  return Complain({"unknown command '" + name + "'", "'tacet --help' lists the commands"});
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
