// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launch/capture.h"
#include "launch/collect/collect_nodes.h"
#include "launch/job_processes.h"
#include "launch/run_folder.h"
#include "launch/run_verdict.h"
#include "render/report/text_render.h"

namespace tacet {

extern const Command kCaptureCommand;
namespace {

Result<std::vector<int64_t>> ReadPids(const std::vector<std::string>& values) {
  std::vector<int64_t> pids;
  for (const std::string& value : values) {
    std::string_view rest = value;
    while (!rest.empty()) {
      int64_t pid = 0;
      if (!TakeNumber(rest, &pid) || pid <= 0 || (!rest.empty() && !TakeLiteral(rest, ",")))
        return Error{"--pid takes process ids such as 4711,4712, not '" + value + "'", ""};
      pids.push_back(pid);
    }
  }
  return pids;
}

// `--pid $(pgrep -f torchrun)` with two matches.
Error UnexpectedPids(const Options& options) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::string& first = options.rest().front();
  if (!options.Has("--pid") || !std::all_of(options.rest().begin(), options.rest().end(), is_number))
    return {"unexpected argument '" + first + "'", "'tacet help capture' lists what it takes"};
  std::string all = options.Values("--pid").back();
  for (const std::string& pid : options.rest()) all.append(",").append(pid);
  return {"unexpected argument '" + first + "'", "separate process ids by commas: --pid " + all};
}

// A process of a run has that run's hook for its stacks.
std::string StacksFolderOf(const std::vector<int64_t>& pids) {
  for (const int64_t pid : pids) {
    const std::string variables = ReadSmallFile("/proc/" + std::to_string(pid) + "/environ");
    for (std::string_view rest = variables; !rest.empty();) {
      std::string_view entry = TakeUntil(rest, '\0');
      if (!rest.empty()) rest.remove_prefix(1);
      if (TakeLiteral(entry, "TACET_RUN_DIR=")) return std::string(entry) + "/stacks";
    }
  }
  return "";
}

int CaptureHere(const std::vector<int64_t>& pids, const std::string& folder, bool native) {
  LookerOptions options;
  options.search.pids = pids;
  options.stacks_folder = StacksFolderOf(pids);
  RankLooker looker(options);
  if (looker.Look(WallNs(), false).empty())
    return Complain({pids.size() == 1 ? "there is no process " + std::to_string(pids[0])
                                      : std::string("there is no process with these ids"),
                     "find it with 'ps -ef'; the launcher's pid is enough"});
  CapturePlan plan;
  plan.folder = folder;
  plan.native = native;
  const std::vector<CaptureNote> missing = Capture(looker, plan);
  for (const CaptureNote& note : missing)
    std::fprintf(stderr, "tacet: not captured: %s: %s\n", note.what.c_str(), note.why.c_str());
  const size_t seen = looker.ranks().size();
  std::fprintf(stderr, "tacet: captured %zu process%s in %s\n", seen, seen == 1 ? "" : "es", folder.c_str());
  auto report = DiagnoseFolder(folder);
  if (!report) return Complain(report.error());
  KeepVerdict(folder, *report);
  const bool shown = WriteOutput(
      "", RenderText(*report, {.colour = StandardOutputTakesColour(), .width = TerminalWidth(), .verbose = false}));
  if (!shown) return kUsage;
  return report->findings.empty() && missing.empty() ? kHealthy : kFindings;
}

int RunCapture(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kCaptureCommand.help);
  if (!options) return Complain(options.error());
  const int ways = options->Has("--pid") + options->Has("--slurm") + options->Has("--pod");
  if (ways != 1)
    return Complain(
        {ways == 0 ? "capture needs --pid, --slurm or --pod" : "capture takes only one of --pid, --slurm and --pod",
         "tacet capture --pid 4711"});
  if (!options->rest().empty()) return Complain(UnexpectedPids(*options));
  if (options->Has("--pid")) {
    auto pids = ReadPids(options->Values("--pid"));
    if (!pids) return Complain(pids.error());
    const std::string folder =
        options->Value("--output").value_or("tacet-capture-" + std::to_string(WallNs() / 1'000'000'000));
    return CaptureHere(*pids, folder, !options->Has("--no-native"));
  }
  CollectOptions collect;
  collect.capture = true;
  collect.slurm = options->Value("--slurm").value_or("");
  collect.pods = options->Values("--pod");
  collect.name_space = options->Value("--namespace").value_or("");
  collect.output =
      options->Value("--output").value_or("tacet-capture-" + std::to_string(WallNs() / 1'000'000'000) + ".tar.zst");
  auto collected = CollectNodes(collect);
  if (!collected) return Complain(collected.error());
  std::fputs(DescribeCollected(*collected).c_str(), stderr);
  std::printf("%s\n", collect.output.c_str());
  return collected->missing.empty() ? kHealthy : kFindings;
}

}  // namespace

const Command kCaptureCommand = {"capture",
                                 "Capture a job that is already running: stacks, records, state of every rank",
                                 R"(tacet capture --pid PID[,PID...] | --slurm JOB | --pod NAME [options]

Captures the state of a running job and leaves it running: Python stacks (through the hook of tacet run, else
py-spy), native stacks (gdb), /proc of every rank, nvidia-smi, NCCL RAS, the kernel log and network counters;
Python stacks and /proc twice, to see what moves. With --pid it then diagnoses what it captured.

  -p, --pid PID       these processes and their children; the launcher's pid is enough
      --slurm JOB     on every node of the job, through srun --overlap; gives a bundle
      --pod NAME      in this pod, through kubectl exec; may be repeated; gives a bundle
      --namespace NS  namespace of the pods
  -o, --output PATH   folder (--pid) or bundle (default: tacet-capture-<time>)
      --no-native     no C and C++ stacks (gdb stops a process for as long as it reads)

Exit code:
  0  no findings and nothing missing
  1  findings or something missing
  2  wrong usage
  3  internal error

Examples:
  tacet capture --pid $(pgrep -d, -f torchrun)
  tacet capture --slurm 4711 -o job-4711.tar.zst; tacet diagnose job-4711.tar.zst
)",
                                 RunCapture};

}  // namespace tacet
