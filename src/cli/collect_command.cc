// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>

#include "base/clock.h"
#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launch/collect/collect_nodes.h"

namespace tacet {

extern const Command kCollectCommand;
namespace {

// "n1,n2" and repeated options alike.
std::vector<std::string> SplitNames(const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (const std::string& value : values)
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view name = TakeUntil(rest, ',');
      if (!rest.empty()) rest.remove_prefix(1);
      if (!name.empty()) names.emplace_back(name);
    }
  return names;
}

std::string DefaultBundle() {
  const std::time_t seconds = static_cast<std::time_t>(WallNs() / 1'000'000'000);
  std::tm broken{};
  ::gmtime_r(&seconds, &broken);
  char text[64];
  std::strftime(text, sizeof text, "tacet-bundle-%Y%m%d-%H%M%S.tar.zst", &broken);
  return text;
}

Result<CollectOptions> ReadCollectOptions(const Options& options) {
  CollectOptions collect;
  collect.node.paths = options.rest();
  auto file_mb = options.Number("--max-file-mb", 64, 1, 4096);
  if (!file_mb) return file_mb.error();
  auto all_mb = options.Number("--max-mb", 2048, 1, 1 << 20);
  if (!all_mb) return all_mb.error();
  auto command_s = options.Number("--command-timeout", 30, 1, 3600);
  if (!command_s) return command_s.error();
  auto node_s = options.Number("--node-timeout", 300, 1, 86400);
  if (!node_s) return node_s.error();
  collect.node.most_file_bytes = static_cast<uint64_t>(*file_mb) << 20;
  collect.node.most_bytes = static_cast<uint64_t>(*all_mb) << 20;
  collect.node.command_ms = *command_s * 1000;
  collect.node_ms = *node_s * 1000;
  collect.node.host_state = !options.Has("--no-host");
  collect.node.capture = collect.capture = options.Has("--with-stacks");
  collect.node.slurm_job = options.Value("--slurm-job-here").value_or("");
  collect.slurm = options.Value("--slurm").value_or("");
  collect.hosts = SplitNames(options.Values("--ssh"));
  collect.pods = SplitNames(options.Values("--pod"));
  collect.name_space = options.Value("--namespace").value_or("");
  collect.remote_tacet = options.Value("--tacet").value_or("");
  if (const auto command = options.Value("--ssh-command")) {
    collect.ssh.clear();
    std::string_view rest = *command;
    for (std::string_view word = TakeWord(rest); !word.empty(); word = TakeWord(rest)) collect.ssh.emplace_back(word);
    if (collect.ssh.empty()) return Error{"--ssh-command is empty", ""};
  }
  for (const std::string& value : options.Values("--pid"))
    for (const std::string& name : SplitNames({value})) {
      std::string_view text = name;
      int64_t pid = 0;
      if (!TakeNumber(text, &pid) || !text.empty() || pid <= 0) return Error{"'" + name + "' is not a process id", ""};
      collect.node.pids.push_back(pid);
    }
  if (!collect.node.host_state && !collect.capture && collect.node.paths.empty() && collect.node.pids.empty())
    return Error{"nothing to collect: --no-host is given and no path", "name files or folders, or omit --no-host"};
  collect.output = options.Value("--output").value_or(DefaultBundle());
  for (const std::string_view other : {".zip", ".7z", ".rar", ".xz", ".bz2"})
    if (collect.output.ends_with(other))
      return Error{"bundles of type '" + std::string(other) + "' cannot be written", "use .tar.zst, .tar.gz or .tar"};
  return collect;
}

int RunCollect(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kCollectCommand.help);
  if (!options) return Complain(options.error());
  auto collect = ReadCollectOptions(*options);
  if (!collect) return Complain(collect.error());
  if (options->Has("--stream")) return StreamNode(collect->node) ? kHealthy : kUsage;
  ProgressLine progress("nodes");
  collect->progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  auto collected = CollectNodes(*collect);
  if (!collected) return Complain(collected.error());
  std::fputs(DescribeCollected(*collected).c_str(), stderr);
  if (!WriteOutput("", collect->output + "\n")) return kUsage;
  if (collected->silent.size() == collected->nodes.size()) return kUsage;
  return collected->missing.empty() ? kHealthy : kFindings;
}

}  // namespace

const Command kCollectCommand = {"collect", "Gather the evidence of this node, or of all nodes, into one bundle",
                                 R"(tacet collect [options] [PATH...]

Puts the named files and folders, and the state of each host (kernel log, nvidia-smi, NCCL RAS, network
counters), into one bundle that 'tacet diagnose' reads. Secrets are removed: passwords, tokens, keys,
credentials in URLs; manifest.json in the bundle has the hash of each file, what was redacted in it, and what could
not be collected and why. A node that is down, slow or full affects only its own part.

      --slurm JOB     all nodes of this job, through srun; or node names as Slurm writes them: 'gpu[1-4]'
      --ssh HOSTS     these hosts, separated by commas
      --ssh-command C used instead of 'ssh -o BatchMode=yes -o ConnectTimeout=10'
      --pod PODS      these pods, through kubectl exec
      --namespace NS  the namespace of these pods
  -p, --pid PID       command line and environment variables of these processes and their children
      --with-stacks   also stacks and /proc of the job's processes (--slurm JOB, --pid), as 'tacet capture' takes them
      --no-host       only the named paths
  -o, --output FILE   bundle: .tar.zst (default: tacet-bundle-<time>.tar.zst), .tar.gz or .tar
      --max-file-mb N larger files keep their beginning and their end (default 64)
      --max-mb N      limit for all files of a node together (default 2048)
      --command-timeout S  time limit for each program that is run, in seconds (default 30)
      --node-timeout S     time limit for each node, in seconds (default 300)
      --stream        write this node's part to standard output (tacet runs this on the other nodes)
      --slurm-job-here JOB  with --stream: the processes of this job on this node
      --tacet PATH    the program on the other nodes (default: the same path, else the one in PATH; on a node
                      without tacet, tar packs the named paths only)

Nodes write no files, except with --with-stacks. The same files give the same bundle, byte for byte.

Exit code:
  0  complete
  1  something is missing (listed on standard error and in the manifest)
  2  wrong usage or nothing collected
  3  internal error

Examples:
  tacet collect --slurm 4711 /shared/runs/4711 -o job-4711.tar.zst
  tacet collect --ssh node1,node2,node3 /var/log/train
  tacet diagnose job-4711.tar.zst
)",
                                 RunCollect};

}  // namespace tacet
