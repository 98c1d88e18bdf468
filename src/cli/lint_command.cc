// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/redact.h"
#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "launch/lint_sources.h"
#include "render/lint_render.h"

namespace tacet {

extern const Command kLintCommand;

namespace {

Result<std::vector<int64_t>> ReadLintPids(const Options& options) {
  std::vector<int64_t> pids;
  for (const std::string& value : options.Values("--pid"))
    for (std::string_view rest = value; !rest.empty();) {
      int64_t pid = 0;
      if (!TakeNumber(rest, &pid) || pid <= 0 || (!rest.empty() && !TakeLiteral(rest, ",")))
        return Error{"--pid takes process ids such as 4711,4712, not '" + value + "'", ""};
      pids.push_back(pid);
    }
  return pids;
}

// NAME=VALUE as a shell writes it: a name in capitals, which no path of a job has in front of its first '='.
bool IsAssignment(std::string_view argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0 || IsDigit(argument.front())) return false;
  const std::string_view name = argument.substr(0, equals);
  const auto all = [&](auto fits) { return std::all_of(name.begin(), name.end(), fits); };
  if (all([](char c) { return (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_'; })) return true;
  // "OMPI_MCA_btl=self" is a variable, too, unless a file has that name.
  std::error_code ignored;
  return all([](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_'; }) &&
         !std::filesystem::exists(std::filesystem::path(argument), ignored);
}

// What the arguments name, or else the environment that a job would inherit from here.
Result<LintedPaths> ReadLintSources(const Options& options) {
  LintedPaths sources;
  auto pids = ReadLintPids(options);
  if (!pids) return pids.error();
  std::vector<std::string> paths;
  GivenEnvironment named;
  named.holder = "the command line";
  for (const std::string& argument : options.rest()) {
    const size_t equals = argument.find('=');
    if (IsAssignment(argument))
      named.variables.push_back({argument.substr(0, equals), argument.substr(equals + 1)});
    else
      paths.push_back(argument);
  }
  if (!paths.empty()) {
    auto load = ReadLoadOptions(options);
    if (!load) return load.error();
    auto read = ReadLintPaths(paths, *load);
    if (!read) return read.error();
    sources = std::move(*read);
  }
  if (!named.variables.empty()) {
    sources.understood = true;
    sources.environments.push_back(std::move(named));
  }
  if (!pids->empty()) {
    auto processes = ReadProcessEnvironments(*pids);
    if (!processes) return processes.error();
    sources.understood = true;
    for (GivenEnvironment& one : *processes) sources.environments.push_back(std::move(one));
    for (GivenEnvironment& conf : ReadNcclConfs(sources.environments.back()))
      sources.environments.push_back(std::move(conf));
  }
  if (options.rest().empty() && pids->empty()) {
    sources.understood = true;
    sources.environments.push_back(ReadOwnEnvironment());
    for (GivenEnvironment& conf : ReadNcclConfs(sources.environments[0]))
      sources.environments.push_back(std::move(conf));
  }
  return sources;
}

int RunLint(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kLintCommand.help);
  if (!options) return Complain(options.error());
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json") return Complain({"--format takes text or json, not '" + format + "'", ""});
  LintOptions lint;
  if (const auto version = options->Value("--nccl")) {
    lint.nccl = ParseReleaseNumber(*version);
    if (lint.nccl == 0) return Complain({"--nccl takes a release, as in 2.28.9, not '" + *version + "'", ""});
  }
  auto sources = ReadLintSources(*options);
  if (!sources) return Complain(sources.error());
  lint.hosts = CountHosts(sources->environments);
  LintReport report;
  report.result = LintEnvironments(sources->environments, lint);
  report.environments = std::move(sources->environments);
  report.not_understood = std::move(sources->not_understood);
  const std::string output = options->Value("--output").value_or("");
  const std::string text =
      format == "json"
          ? RenderLintJson(report)
          : RenderLintText(report, {.colour = output.empty() && StandardOutputTakesColour(), .width = TerminalWidth()});
  const bool is_only_an_error = !sources->understood && format == "text";
  if (!is_only_an_error && !WriteOutput(output, options->Has("--no-redact") ? text : RedactSecrets(text).text))
    return kUsage;
  for (const std::string& path : sources->missing)
    Complain({"'" + path + "': no such file or folder", "the other paths were read"});
  if (!sources->understood && sources->nothing_read)
    return Complain({"nothing could be read " + InPaths(options->rest()), std::string(kNothingRead)});
  if (!sources->understood)
    return Complain({options->rest() == std::vector<std::string>{"-"} ? "nothing in standard input sets a variable"
                                                                      : "nothing in these files sets a variable",
                     "lint reads NCCL logs, the output of env, scripts, nccl.conf and run folders"});
  const bool strict = options->Has("--strict");
  const bool found =
      std::any_of(report.result.findings.begin(), report.result.findings.end(),
                  [&](const LintFinding& finding) { return strict || finding.level == LintLevel::warning; });
  return found ? kFindings : sources->missing.empty() ? kHealthy : kUsage;
}

}  // namespace

const Command kLintCommand = {"lint", "Find environment variables that are wrong, risky or without effect",
                              R"(tacet lint [options] [PATH | NAME=VALUE]...

Checks the variables of NCCL, PyTorch, UCX, libfabric and CUDA: names that are unknown, misspelled or never read by
any release (NCCL_TIMEOUT), values that are read as something else (NCCL_IB_DISABLE=true is 0), variables that your
NCCL release has removed, renamed or does not have yet, values that only repeat an old default, settings that slow the
job down, that are risky, overridden, without effect or different between ranks, and a log file that all ranks share.
Each finding shows the default, the effect, the releases that read the variable, where it is set and what to do.

Without a PATH it reads the environment of this shell with ~/.nccl.conf and /etc/nccl.conf; otherwise files and
folders: NCCL logs, the output of env, job scripts, Dockerfiles, YAML, Python, nccl.conf, run folders.
PATH '-' is standard input; NAME=VALUE is checked as it stands.

      --nccl VERSION    the release that will read them (default: the one in the logs, else the newest)
  -p, --pid PID         the environment of running processes and their children (several: 4711,4712)
      --strict          exit with 1 for notes too
  -f, --format F        text (default) or json
      --json            the same as --format json
  -o, --output FILE     write to FILE instead of standard output
  -j, --threads N       files to read in parallel (default: one per core)
      --max-file-mb N   unpack at most this much of a file (default 512)
      --no-redact       keep passwords, tokens and keys found in the files; by default they are removed

Exit code:
  0  nothing to report
  1  warnings (with --strict also notes)
  2  wrong usage, or nothing was understood
  3  internal error

Examples:
  tacet lint
  tacet lint job.sh Dockerfile --nccl 2.27.3
  tacet lint NCCL_IB_DISABLE=true NCCL_TIMEOUT=60
  srun -n1 env | tacet lint -
  tacet lint --pid $(pgrep -d, -f torchrun)
  tacet lint logs/ --format json
)",
                              RunLint};

}  // namespace tacet
