// SPDX-License-Identifier: Apache-2.0
#include "launch/collect/node_call.h"

#include <algorithm>
#include <set>

#include "base/text_scan.h"
#include "launch/command_run.h"
#include "launch/run_folder.h"

namespace tacet {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789_.+") == std::string_view::npos;
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = Trim(TakeUntil(text, '\n'));
    if (!text.empty()) text.remove_prefix(1);
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// "gpu[1-4]" or the nodes of a job, running or not.
Result<std::vector<std::string>> SlurmNodes(const std::string& what) {
  std::string list = what;
  if (IsNumber(what)) {
    CommandOutcome queue = RunCommand({"squeue", "-h", "-j", what, "-o", "%N"});
    list = std::string(Trim(std::string_view(queue.out).substr(0, queue.out.find('\n'))));
    if (list.empty()) {
      const CommandOutcome past = RunCommand({"sacct", "-n", "-X", "-P", "-j", what, "-o", "NodeList"});
      list = std::string(Trim(std::string_view(past.out).substr(0, past.out.find('\n'))));
    }
    if (list.empty())
      return Error{"Slurm knows no nodes of job " + what + (queue.problem.empty() ? "" : ": squeue " + queue.problem),
                   "name the nodes instead: --slurm 'gpu[1-4]'"};
  }
  const CommandOutcome names = RunCommand({"scontrol", "show", "hostnames", list});
  std::vector<std::string> nodes = LinesOf(names.out);
  if (nodes.empty()) return Error{"cannot list the nodes of '" + list + "': scontrol " + names.problem, ""};
  return nodes;
}

std::vector<std::string> SrunFor(const CollectOptions& options, const std::string& node) {
  std::vector<std::string> command = {"srun", "-w", node, "-N1", "-n1", "--quiet"};
  if (IsNumber(options.slurm)) {
    command.push_back("--jobid=" + options.slurm);
    command.emplace_back("--overlap");
  } else {
    command.push_back("--immediate=" + std::to_string(std::max<int64_t>(options.node_ms / 2000, 5)));
  }
  command.insert(command.end(), {"sh", "-c", RemoteScript(options)});
  return command;
}

// sshd hands its command to the user's login shell, which may be csh or fish. In fish a backslash means something
// inside single quotes too, so that it stands outside of them.
std::string QuoteForAnyShell(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'' || c == '\\')
      quoted.append("'\\").append(1, c).append("'");
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string RemoteScript(const CollectOptions& options, bool pod) {
  std::string words = " collect --stream";
  const NodeWish& node = options.node;
  words += " --max-file-mb " + std::to_string(std::max<uint64_t>(node.most_file_bytes >> 20, 1));
  words += " --max-mb " + std::to_string(std::max<uint64_t>(node.most_bytes >> 20, 1));
  words += " --command-timeout " + std::to_string(std::max<int64_t>(node.command_ms / 1000, 1));
  if (options.capture) words += " --with-stacks";
  if (IsNumber(options.slurm)) words += " --slurm-job-here " + QuoteForShell(options.slurm);
  if (pod && options.capture) words += " --pid 1";
  if (!node.host_state) words += " --no-host";
  std::string paths;
  for (const std::string& path : node.paths) paths += " " + QuoteForShell(path);
  const std::string own = options.remote_tacet.empty() ? OwnProgram() : options.remote_tacet;
  std::string script = "echo " + QuoteForShell(kPartMark.substr(0, kPartMark.size() - 1)) + "; for t in " +
                       QuoteForShell(own) + " tacet; do if command -v \"$t\" >/dev/null 2>&1; then exec \"$t\"" +
                       words + " --" + paths + "; fi; done; ";
  if (paths.empty()) return script + "echo 'tacet is not installed there' >&2; exit 127";
  return script + "exec tar -cf - --" + paths;
}

Result<std::vector<NodeCall>> ListNodeCalls(const CollectOptions& options) {
  std::vector<NodeCall> calls;
  if (!options.slurm.empty()) {
    auto nodes = SlurmNodes(options.slurm);
    if (!nodes) return nodes.error();
    for (const std::string& node : *nodes) calls.push_back({node, SrunFor(options, node)});
  }
  for (const std::string& host : options.hosts) {
    if (host.starts_with("-")) return Error{"'" + host + "' is not a host name", ""};
    std::vector<std::string> command = options.ssh;
    command.insert(command.end(), {host, "exec sh -c " + QuoteForAnyShell(RemoteScript(options))});
    calls.push_back({host, std::move(command)});
  }
  for (const std::string& pod : options.pods) {
    if (pod.starts_with("-")) return Error{"'" + pod + "' is not a pod name", ""};
    std::vector<std::string> command = {"kubectl", "exec"};
    if (!options.name_space.empty()) command.insert(command.end(), {"-n", options.name_space});
    command.insert(command.end(), {pod, "--", "sh", "-c", RemoteScript(options, true)});
    calls.push_back({pod, std::move(command)});
  }
  if (calls.empty()) calls.push_back({HostName(), {}});
  std::sort(calls.begin(), calls.end(), [](const NodeCall& a, const NodeCall& b) { return a.node < b.node; });
  std::set<std::string> seen;
  std::erase_if(calls, [&](const NodeCall& call) { return !seen.insert(call.node).second; });
  return calls;
}

}  // namespace tacet
