// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/preflight_options.h"
#include "launch/job_run.h"
#include "render/report/text_render.h"

namespace tacet {

extern const Command kRunCommand;
namespace {

// "100" or "100-102".
bool IsStepWindow(const std::string& text) {
  const size_t dash = text.find('-');
  const auto number = [](const std::string& part) {
    return !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
  };
  return dash == std::string::npos ? number(text) : number(text.substr(0, dash)) && number(text.substr(dash + 1));
}

Result<JobRunOptions> ReadRunOptions(const Options& options) {
  JobRunOptions run;
  run.command = options.rest();
  if (options.Has("--light") && options.Has("--full")) return Error{"--light and --full cannot be combined", ""};
  run.level = options.Has("--light") ? RunLevel::light : options.Has("--full") ? RunLevel::full : RunLevel::normal;
  run.folder.folder = options.Value("--dir").value_or("");
  run.folder.name = options.Value("--name").value_or("");
  run.folder.host = HostName();
  run.on_hang = options.Value("--on-hang").value_or("wait");
  run.webhook = options.Value("--webhook").value_or("");
  run.profile_steps = options.Value("--profile-steps").value_or("");
  if (!run.profile_steps.empty() && !IsStepWindow(run.profile_steps))
    return Error{"--profile-steps takes a step or a range such as 100-102, not '" + run.profile_steps + "'", ""};
  run.per_rank_output = options.Has("--per-rank");
  run.packets = options.Has("--packets");
  run.watch = !options.Has("--no-watch");
  run.quiet = options.Has("--quiet");
  run.native_stacks = !options.Has("--no-native");
  auto hang_after = options.Number("--hang-after", 45, 2, 86400);
  if (!hang_after) return hang_after.error();
  // A third of the wait until the first look, the rest for looks that must agree.
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t whole_ns = *hang_after * kSecondNs;
  run.patience.run_quiet_ns = std::min(run.patience.run_quiet_ns, whole_ns / 3);
  run.patience.run_still_ns = whole_ns - run.patience.run_quiet_ns;
  run.patience.run_look_ns = std::clamp(run.patience.run_still_ns / 6, kSecondNs / 2, run.patience.run_look_ns);
  if (options.Has("--hang-after")) run.patience.watch_first_ns = std::min(run.patience.watch_first_ns, 3 * whole_ns);
  return run;
}

int RunRun(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kRunCommand.help);
  if (!options) return Complain(options.error());
  if (options->rest().empty())
    return Complain({"run needs a command after '--'", "tacet run -- torchrun --nproc-per-node 8 train.py"});
  auto run = ReadRunOptions(*options);
  if (!run) return Complain(run.error());
  run->version = TACET_VERSION;
  if (options->Has("--preflight")) {
    auto preflight = ReadPreflightOptions(*options);
    if (!preflight) return Complain(preflight.error());
    if (const int code = ShowPreflight(*preflight, "text", "", true); code != kHealthy) return code;
  }
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colour = ::isatty(2) == 1 && (no_colour == nullptr || *no_colour == 0);
  run->show = [colour](const Report& report) {
    return RenderText(report, {.colour = colour, .width = TerminalWidth(), .verbose = false});
  };
  int exit_code = kUsage;
  auto end = RunJob(*run, &exit_code);
  if (!end) {
    Complain(end.error());
    return exit_code;
  }
  EndLike(*end);
}

}  // namespace

const Command kRunCommand = {"run", "Run a job so that its next hang or crash explains itself",
                             R"(tacet run [options] -- COMMAND [ARGUMENT...]

Starts the job (torchrun, mpirun, srun, deepspeed, accelerate, python; once per node), switches on what a
diagnosis needs, keeps its output with timestamps, and watches it. When it hangs: captures stacks, flight
records, RAS, nvidia-smi, the kernel log, counters and /proc of all ranks on this node, and names the rank at
fault on standard error and in the run folder. When it crashes, it does the same with what is left. A job that
succeeds gets no verdict. Output passes through unchanged; variables that are already set keep their values.

      --light           only what costs next to nothing: NCCL's setup log, the flight recorder
      --full            everything: a line per call, shapes checked, C++ stacks; slow
  -d, --dir FOLDER      the run folder (default: tacet-runs/<time>-<name>); where srun or mpirun starts several
                        runs, each has FOLDER/<host>
  -n, --name NAME       name of the run (default: that of the script)
      --hang-after S    report a hang after this long without progress while a rank waits (default 45 s)
      --on-hang WHAT    wait (default), kill (SIGTERM, after 30 s SIGKILL), or a command for sh, which finds
                        TACET_RUN_DIR, TACET_JOB_PID, TACET_CAUSE and TACET_HEADLINE in its environment
      --webhook URL     also POST the verdict to this address as JSON (http or https)
      --profile-steps A-B  torch.profiler during these optimizer steps, one trace per rank
      --per-rank        torchrun: every line marked with its rank, a file per rank
      --packets         keep the latest packet headers (needs tcpdump and the right to capture)
      --no-watch        record and diagnose, but do not watch
      --no-native       no C and C++ stacks (gdb stops a process for as long as it reads)
      --preflight       run tacet preflight between the nodes first; after a no-go the job is not started,
                        and the exit code is that of preflight
      --meet HOST[:PORT]  for preflight: address of the first node, if no launcher sets it
      --rank N          for preflight: which node this is
      --size N          for preflight: how many nodes there are
  -q, --quiet           print only verdicts

Exits as the job does: with its exit code, or by the signal that ended it; with 127 or 126 if it cannot be
started. Signals are passed on. When tacet run itself is killed, the job gets SIGTERM.

Examples:
  tacet run -- torchrun --nproc-per-node 8 train.py
  srun --ntasks-per-node=1 tacet run -- torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node1:29500 train.py
  tacet run --on-hang kill --webhook https://chat.example/hook -- python train.py
)",
                             RunRun};

}  // namespace tacet
