// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "evidence/cited_lines.h"
#include "evidence/load.h"
#include "render/report/json_render.h"
#include "render/topology/topology_render.h"
#include "report/make_topology_report.h"

namespace tacet {

extern const Command kTopologyCommand;
namespace {

bool HasFault(const Report& report) {
  for (const ReportFinding& finding : report.findings)
    if (finding.severity != Severity::note) return true;
  return false;
}

int RunTopology(const std::vector<std::string>& arguments) {
  const auto started = std::chrono::steady_clock::now();
  auto options = Options::Parse(arguments, kTopologyCommand.help);
  if (!options) return Complain(options.error());
  if (options->rest().empty())
    return Complain(
        {"topology needs at least one path", "tacet topology FOLDER, with NCCL logs of one rank or of all"});
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json" && format != "dot" && format != "html")
    return Complain({"--format takes text, json, dot or html, not '" + format + "'", ""});
  const std::string fail_on = options->Value("--fail-on").value_or("warning");
  if (fail_on != "warning" && fail_on != "never")
    return Complain({"--fail-on takes warning or never, not '" + fail_on + "'", ""});
  auto output = ReadOutputOptions(*options);
  if (!output) return Complain(output.error());
  auto load = ReadLoadOptions(*options);
  if (!load) return Complain(load.error());
  ProgressLine progress("reading");
  load->progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  auto loaded = LoadEvidence(options->rest(), *load);
  if (!loaded) return Complain(loaded.error());
  const bool nothing_readable = loaded->unreadable > 0 && loaded->unreadable == loaded->fragments.size();
  const std::vector<std::string> missing = std::move(loaded->missing);

  CitedLines lines(options->rest());
  Report report = MakeTopologyReport(
      std::move(loaded->fragments),
      [&](const auto& file, uint32_t line, uint64_t offset) { return lines.Read(file, line, offset); },
      !options->Has("--no-redact"));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  // A page that cannot be written costs the page, not the report.
  const bool page_written = output->page.empty() || WriteOutput(output->page, RenderTopologyHtml(report), "--html");
  const TextOptions text{.colour = output->colour, .width = TerminalWidth(), .verbose = output->verbose};
  const std::string bytes = format == "json"   ? RenderJson(report)
                            : format == "dot"  ? RenderTopologyDot(report)
                            : format == "html" ? RenderTopologyHtml(report)
                                               : RenderTopologyText(report, text);
  if (!WriteOutput(output->path, bytes) || !page_written) return kUsage;
  if (nothing_readable) return Complain({"nothing could be read", "the report says why, file by file"});
  for (const std::string& path : missing)
    Complain({"'" + path + "': no such file or folder", "the other paths were read: see the report"});
  if (fail_on == "warning" && HasFault(report)) return kFindings;
  // A gate must not take "nothing understood" for "nothing wrong".
  const bool understood = std::any_of(report.inputs.begin(), report.inputs.end(),
                                      [](const ReportInput& input) { return input.understood > 0; });
  const bool shows = report.topology && (!report.topology->nodes.empty() || !report.topology->comms.empty());
  return missing.empty() && understood && shows ? kHealthy : kUsage;
}

}  // namespace

const Command kTopologyCommand = {"topology",
                                  "Show which rings, trees and transports NCCL uses, and what is wrong with them",
                                  R"(tacet topology [options] PATH...

Reads logs of NCCL 2.4 to 2.32 and of RCCL, from all ranks or some of them, topology and graph files and the
output of `nvidia-smi topo -m`, rebuilds rings and trees, and checks them: rings that are broken or re-enter a node,
a node that limits the bandwidth of the whole job, idle or missing network devices, crossed rails, slow transports.

  -f, --format F       text (default), json, dot (for Graphviz) or html
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
      --html FILE      also write an HTML page to FILE
      --fail-on S      exit with 1 at this severity or above: warning (default) or never
  -v, --verbose        all rings, trees and GPUs, nothing summarized
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512)
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Exit code:
  0  nothing found
  1  findings
  2  wrong usage, a path that does not exist, or nothing readable or understood
  3  internal error

Examples:
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING NCCL_DEBUG_FILE=nccl_%h_%p.log torchrun train.py
  tacet topology nccl_logs/
  tacet topology --html topology.html nccl_logs/
  tacet topology -f dot nccl_logs/ | dot -Tsvg > topology.svg
)",
                                  RunTopology};

}  // namespace tacet
