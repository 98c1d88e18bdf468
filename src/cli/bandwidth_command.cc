// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "analysis/network/topology_checks.h"
#include "cli/bandwidth_run.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "evidence/load.h"
#include "model/assembly/assembly.h"
#include "render/bandwidth/bandwidth_render.h"
#include "render/report/redact_answer.h"

namespace tacet {

extern const Command kBandwidthCommand;
namespace {

void TakeRemarks(const std::vector<Incident>& jobs, BandwidthAnswer& answer) {
  for (const Incident& job : jobs)
    for (const Diagnostic& one : job.diagnostics) {
      const bool placed = static_cast<uint32_t>(one.source.file) < job.files.size();
      answer.remarks.push_back({one.severity == DiagnosticSeverity::note ? "note" : "warning", one.code, one.message,
                                placed ? std::string(job.PathOf(one.source.file)) : "", one.hint});
    }
}

bool WriteTuner(const std::string& path, const BandwidthView& view) {
  size_t cells = 0;
  for (const BetterWay& way : view.better) cells += way.cells.size();
  if (cells == 0) {
    std::fputs(
        "tacet: no tuner file was written: no forced algorithm or protocol is faster than NCCL's choice by more than "
        "the "
        "noise\n       measure with and without NCCL_ALGO and NCCL_PROTO, and name all files\n",
        stderr);
    return true;
  }
  return WriteOutput(path, TunerFile(view.better));
}

int Answer(const Options& options, const std::vector<std::string>& paths) {
  const std::string format = options.Value("--format").value_or("text");
  if (format != "text" && format != "json" && format != "html")
    return Complain({"--format takes text, json or html, not '" + format + "'", ""});
  const std::string fail_on = options.Value("--fail-on").value_or("warning");
  if (fail_on != "warning" && fail_on != "never")
    return Complain({"--fail-on takes warning or never, not '" + fail_on + "'", ""});
  auto output = ReadOutputOptions(options);
  if (!output) return Complain(output.error());
  auto load = ReadLoadOptions(options);
  if (!load) return Complain(load.error());
  ProgressLine progress("reading");
  load->progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  auto loaded = LoadEvidence(paths, *load);
  if (!loaded) return Complain(loaded.error());
  const std::vector<std::string> missing = std::move(loaded->missing);
  const bool nothing_read = loaded->unreadable > 0 && loaded->unreadable == loaded->fragments.size();
  std::vector<Incident> jobs = Assemble(std::move(loaded->fragments));
  const bool redact = !options.Has("--no-redact");
  if (redact)
    for (Incident& job : jobs) RedactBenchmarks(job.benchmark_runs);
  std::vector<TopologyView> topologies;
  std::vector<TopologyChecks> checks;
  topologies.reserve(jobs.size());  // checks point into them
  checks.reserve(jobs.size());
  std::vector<BandwidthSource> sources;
  BandwidthAnswer answer;
  for (const Incident& job : jobs) {
    topologies.push_back(ReadTopology(job));
    checks.push_back(CheckTopology(job, topologies.back()));
    sources.push_back({&job, &topologies.back(), &checks.back()});
    answer.jobs.push_back(&job);
  }
  answer.view = MeasureBandwidth(sources);
  answer.faults = FindBandwidthFaults(answer.view);
  TakeRemarks(jobs, answer);
  answer.redacted = redact;
  if (redact) RedactAnswer(answer);
  if (const auto tuner = options.Value("--tuner"); tuner && !WriteTuner(*tuner, answer.view)) return kUsage;
  // A page that cannot be written costs the page, not the report.
  const bool page_written = output->page.empty() || WriteOutput(output->page, RenderBandwidthHtml(answer), "--html");
  const BandwidthTextOptions text{
      .width = static_cast<size_t>(TerminalWidth()), .colour = output->colour, .verbose = output->verbose};
  const std::string bytes = format == "json"   ? RenderBandwidthJson(answer)
                            : format == "html" ? RenderBandwidthHtml(answer)
                                               : RenderBandwidthText(answer, text);
  const bool is_only_an_error = answer.view.empty() && format == "text";
  if ((!is_only_an_error && !WriteOutput(output->path, bytes)) || !page_written) return kUsage;
  for (const std::string& path : missing)
    Complain({"'" + path + "': no such file or folder", "the other paths were read: see the report"});
  if (answer.view.empty() && nothing_read)
    return missing.empty() ? Complain({"nothing could be read " + InPaths(paths), std::string(kNothingRead)}) : kUsage;
  for (const Incident& job : jobs)
    for (const BenchmarkRun& run : job.benchmark_runs)
      if (answer.view.empty() && !run.failure.empty())
        return Complain({"the benchmark failed before it measured anything: " + run.failure,
                         "'tacet diagnose' on the same files looks for the reason"});
  if (answer.view.empty())
    return Complain({"no benchmark was found", "'tacet formats' lists what is read; 'tacet bandwidth --run' measures"});
  if (fail_on == "warning" && !answer.faults.empty()) return kFindings;
  return missing.empty() ? kHealthy : kUsage;
}

int RunBandwidth(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kBandwidthCommand.help);
  if (!options) return Complain(options.error());
  if (!options->Has("--run")) {
    if (options->rest().empty())
      return Complain({"bandwidth needs at least one path",
                       "tacet bandwidth FOLDER, with benchmark output and ideally NCCL's log of the same run"});
    return Answer(*options, options->rest());
  }
  auto folder = MeasureNow(*options);
  if (!folder) return Complain(folder.error());
  if (options->Has("--dry-run")) return kHealthy;
  std::vector<std::string> paths = {*folder};
  paths.insert(paths.end(), options->rest().begin(), options->rest().end());
  return Answer(*options, paths);
}

}  // namespace

const Command kBandwidthCommand = {"bandwidth", "Compare what benchmarks reach with what this machine should reach",
                                   R"(tacet bandwidth [options] PATH...
tacet bandwidth --run TOOL [options] [-- ARGUMENTS...]

Reads the output of nccl-tests and rccl-tests, nvbandwidth, p2pBandwidthLatencyTest, iperf3, perftest, the OSU
micro-benchmarks and plain tables of size, time and bandwidth. Given NCCL's log or topology, also shows what NCCL's
own model predicts for this machine's graph. Shows bandwidth, latency, spread and percentiles, fits latency and
bandwidth for each range of sizes that uses one protocol, names slow cells, rows and columns of pair matrices, and
shows where bandwidth is lost between the line rate and what was measured. Runs with different numbers of ranks, hosts,
data types or settings are never pooled.

  -f, --format F       text (default), json or html
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
      --html FILE      also write an HTML page with charts to FILE
      --tuner FILE     write the rows of NCCL's tuner plugin for the sizes at which a forced NCCL_ALGO or NCCL_PROTO
                       was faster than NCCL's own choice
      --fail-on S      exit with 1 at this severity or above: warning (default) or never
  -v, --verbose        every size
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512)
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Measure, save and read in one go:

      --run TOOL       nccl-tests, perftest or iperf3
      --launcher L     local (default), mpirun, srun or ssh
      --hostfile FILE  one host per line; "host slots=8" and "host:8" are understood
      --hosts L        the same on the command line: gpu1,gpu2
      --op L           operations of nccl-tests (default all_reduce); programs of perftest (default ib_write_bw)
      --sizes A:B      first and last size (default 8:1G); each size is twice the one before
      --ranks L        rank counts, one run each (default: all slots of all hosts)
      --ways L         NCCL_ALGO and NCCL_PROTO to force in turn, beside NCCL's own choice: Ring:LL,Ring:Simple,Tree
      --pairs          rounds of disjoint pairs of hosts: two rounds isolate a bad host
      --rounds N       number of rounds (default 2; all: every pair)
      --bin DIR        where the programs are, if not in PATH
      --save DIR       keep the output there (default: tacet-bandwidth-TIME)
      --time-limit S   limit for each program in seconds (default 600)
      --dry-run        show the commands and run none
  Arguments after -- go to every program.

Exit code:
  0  nothing found
  1  findings
  2  wrong usage, nothing to read or nothing to run
  3  internal error

Examples:
  tacet bandwidth all_reduce.txt
  tacet bandwidth all_reduce.txt nccl_logs/ --html bandwidth.html
  tacet bandwidth default/ ring_ll128/ tree/ --tuner tuner.csv
  tacet bandwidth nvbandwidth.json p2p.txt
  tacet bandwidth --run nccl-tests --launcher srun --hostfile hosts --op all_reduce,all_gather --sizes 1M:8G
  tacet bandwidth --run iperf3 --launcher ssh --hosts gpu1,gpu2,gpu3,gpu4 --pairs
)",
                                   RunBandwidth};

}  // namespace tacet
