// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/redact.h"
#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/preflight_options.h"
#include "launch/run_folder.h"

namespace tacet {

extern const Command kPreflightCommand;

namespace {

// "40000-40100" or "40000"; nothing given: any.
bool ReadPorts(const std::string& text, MemberOptions& member) {
  std::string_view rest = text;
  if (!TakeNumber(rest, &member.first_port)) return false;
  member.last_port = member.first_port;
  if (TakeLiteral(rest, "-") && !TakeNumber(rest, &member.last_port)) return false;
  return rest.empty() && member.first_port > 0 && member.last_port >= member.first_port && member.last_port < 65536;
}

int RunPreflightCommand(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kPreflightCommand.help);
  if (!options) return Complain(options.error());
  if (!options->rest().empty())
    return Complain({"preflight does not take '" + options->rest()[0] + "'", "see 'tacet preflight --help'"});
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json") return Complain({"--format takes text or json, not '" + format + "'", ""});
  auto preflight = ReadPreflightOptions(*options);
  if (!preflight) return Complain(preflight.error());
  return ShowPreflight(*preflight, format, options->Value("--output").value_or(""), false);
}

}  // namespace

Result<PreflightOptions> ReadPreflightOptions(const Options& options) {
  PreflightOptions preflight;
  const auto rank = options.Number("--rank", -1, 0, 1 << 20), size = options.Number("--size", -1, 1, 1 << 20);
  const auto wait = options.Number("--wait", 20, 1, 600);
  if (!rank) return rank.error();
  if (!size) return size.error();
  if (!wait) return wait.error();
  auto place = FindJobPlace(OwnVariables(), options.Value("--meet").value_or(""), static_cast<int>(rank.value()),
                            static_cast<int>(size.value()));
  if (!place) return place.error();
  preflight.member.place = *place;
  preflight.wait_ms = preflight.member.meet_ms = wait.value() * 1000;
  preflight.measure = !options.Has("--quick");
  preflight.redact = !options.Has("--no-redact");
  preflight.member.facts.version = TACET_VERSION;
  preflight.member.facts.python = options.Value("--python").value_or("python3");
  if (preflight.member.facts.python == "none") preflight.member.facts.python.clear();
  if (const auto ports = options.Value("--ports"); ports && !ReadPorts(*ports, preflight.member))
    return Error{"--ports takes a port or a range, as in 40000-40100, not '" + *ports + "'", ""};
  return preflight;
}

int ShowPreflight(const PreflightOptions& options, const std::string& format, const std::string& path, bool to_error) {
  const PreflightOutcome outcome = RunPreflight(options);
  if (!outcome.report) {
    if (!outcome.problem.empty())
      std::fprintf(stderr, "tacet: NO-GO on %s: %s\n       %s\n", HostName().c_str(), outcome.problem.c_str(),
                   outcome.hint.c_str());
    return outcome.exit_code;
  }
  const bool colour = path.empty() && !to_error && StandardOutputTakesColour();
  std::string text = format == "json" ? RenderPreflightJson(*outcome.report)
                                      : RenderPreflightText(*outcome.report, colour, TerminalWidth());
  if (options.redact) text = RedactSecrets(text).text;
  if (to_error)
    std::fputs(text.c_str(), stderr);
  else if (!WriteOutput(path, text))
    return kUsage;
  return outcome.exit_code;
}

const Command kPreflightCommand = {"preflight", "Check the hosts of a job before it starts: go or no-go",
                                   R"(tacet preflight [options]

Checks the hosts of a job before it starts. Run it as the job will be run: once per rank or once per host,
under srun, mpirun or torchrun, or alone for this host only. Rank 0 asks all others and reports within a minute.

It checks whether ranks, hosts, GPUs, drivers and versions of NCCL, PyTorch and CUDA agree. It checks locked
memory, /dev/shm, ports, host names, MTU, clocks, RDMA ports and environment variables (as tacet lint does). It
measures connections between all hosts, the bandwidth of disjoint pairs, a barrier, and a small and a large
all-reduce over sockets. Hosts are compared with each other and with the rates of their own links; the one that
differs is named. It needs no root privileges and changes nothing.

Rank and size come from RANK and WORLD_SIZE, SLURM_*, OMPI_* or PMI_*; the address of rank 0 from MASTER_ADDR
and MASTER_PORT or the list of nodes.

      --meet HOST[:PORT]  where rank 0 is (default port: MASTER_PORT if set, else 29517)
      --rank N            rank of this process, if no launcher sets it
      --size N            number of processes
      --ports A-B         ports that the firewall allows, for the measurements (default: any)
      --wait S            seconds within which all ranks must join (default 20)
      --python PROGRAM    Python whose PyTorch is checked (default python3; none: skip it)
      --quick             no measurements between hosts
  -f, --format FORMAT     text (default) or json
      --json              the same as --format json
  -o, --output FILE       write to FILE instead of standard output
      --no-redact         keep passwords, tokens and keys in the report; by default they are removed

Only rank 0 writes the report; a rank that cannot reach it says so on standard error.

Exit code, on all ranks:
  0  go
  1  no-go
  2  unknown, or wrong usage
  3  internal error

Examples:
  tacet preflight
  srun --ntasks-per-node=1 tacet preflight && srun train.sh
  mpirun -np 4 --map-by node tacet preflight --meet node1
  srun --ntasks-per-node=1 tacet run --preflight -- torchrun --nnodes 4 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint node1:29500 train.py
)",
                                   RunPreflightCommand};

}  // namespace tacet
