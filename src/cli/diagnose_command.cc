// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "evidence/cited_lines.h"
#include "evidence/load.h"
#include "render/render_names.h"
#include "render/report/html_render.h"
#include "render/report/json_render.h"
#include "render/report/junit_render.h"
#include "render/report/sarif_render.h"
#include "render/report/text_render.h"
#include "report/make_report.h"

namespace tacet {

extern const Command kDiagnoseCommand;
namespace {

std::string Render(const Report& report, OutputFormat format, bool colour, bool verbose) {
  switch (format) {
    case OutputFormat::text:
      return RenderText(report, {.colour = colour, .width = TerminalWidth(), .verbose = verbose});
    case OutputFormat::json: return RenderJson(report);
    case OutputFormat::html: return RenderHtml(report);
    case OutputFormat::junit: return RenderJunit(report);
    case OutputFormat::sarif: return RenderSarif(report);
  }
  return "";
}

// Findings of this severity or worse make the exit code 1.
Result<int> ParseFailOn(const std::string& text) {
  if (text == "critical") return 0;
  if (text == "warning") return 1;
  if (text == "note") return 2;
  if (text == "never") return -1;
  return Error{"--fail-on takes critical, warning, note or never, not '" + text + "'", ""};
}

int ExitCodeFor(const Report& report, int fail_on) {
  if (fail_on >= 0 && IsFailure(report.verdict.status)) return kFindings;
  for (const ReportFinding& finding : report.findings)
    if (static_cast<int>(finding.severity) <= fail_on) return kFindings;
  return kHealthy;
}

int RunDiagnose(const std::vector<std::string>& arguments) {
  const auto started = std::chrono::steady_clock::now();
  auto options = Options::Parse(arguments, kDiagnoseCommand.help);
  if (!options) return Complain(options.error());
  if (options->rest().empty())
    return Complain(
        {"diagnose needs at least one path", "tacet diagnose FOLDER, or 'tacet diagnose -' for standard input"});
  const std::string format_name = options->Value("--format").value_or("text");
  const auto format = ParseOutputFormat(format_name);
  if (!format) return Complain({"--format takes text, json, html, junit or sarif, not '" + format_name + "'", ""});
  auto fail_on = ParseFailOn(options->Value("--fail-on").value_or("warning"));
  if (!fail_on) return Complain(fail_on.error());
  auto output = ReadOutputOptions(*options);
  if (!output) return Complain(output.error());
  auto read = ReadLoadOptions(*options);
  if (!read) return Complain(read.error());
  LoadOptions load = *read;
  ProgressLine progress("reading");
  load.progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  auto loaded = LoadEvidence(options->rest(), load);
  if (!loaded) return Complain(loaded.error());
  const bool nothing_readable = loaded->unreadable > 0 && loaded->unreadable == loaded->fragments.size();

  const std::vector<std::string> missing = std::move(loaded->missing);

  CitedLines lines(options->rest());
  Report report = MakeReport(
      std::move(loaded->fragments), {},
      {.redact = !options->Has("--no-redact"),
       .why = options->Has("--why"),
       .read_line = [&](const auto& file, uint32_t line, uint64_t offset) { return lines.Read(file, line, offset); }});
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  // A page that cannot be written costs the page, not the report.
  const bool page_written = output->page.empty() || WriteOutput(output->page, RenderHtml(report), "--html");
  if (!WriteOutput(output->path, Render(report, *format, output->colour, output->verbose)) || !page_written)
    return kUsage;
  if (nothing_readable)
    return Complain(
        {"nothing could be read", report.inputs.empty() ? "there are no files in it" : "the report says why"});
  const int code = ExitCodeFor(report, *fail_on);
  // A gate must not take "nothing understood" for "nothing wrong".
  const bool understood = std::any_of(report.inputs.begin(), report.inputs.end(),
                                      [](const ReportInput& input) { return input.understood > 0; });
  if (!understood && code == kHealthy) return kUsage;
  for (const std::string& path : missing)
    Complain({"'" + path + "': no such file or folder", "the other paths were read: see the report"});
  return missing.empty() || code != kHealthy ? code : kUsage;
}

}  // namespace

const Command kDiagnoseCommand = {"diagnose",
                                  "Find the rank behind a hang, a crash or wrong numbers; say why, and what to do",
                                  R"(tacet diagnose [options] PATH...

Reads every file under the given paths (logs, Flight Recorder dumps, stacks, kernel logs, output of NCCL RAS,
NCCL Inspector files; plain, gzip or zstd; PATH '-' is standard input) and names the rank at fault, the operation,
the cause, the evidence and the fix, as far as the evidence goes. Give it the folders as they are; unknown files
are listed and ignored.

  -f, --format F       text (default), json, html, junit or sarif
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
      --html FILE      also write an HTML page to FILE
      --fail-on S      exit with 1 at this severity or above: critical, warning (default), note, never
  -v, --verbose        all ranks, all evidence, nothing summarized
      --why            how the verdict came about: what speaks for it and against it, and why no
                       other cause was chosen
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512)
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Exit code:
  0  nothing at or above --fail-on
  1  findings, or an error, a hang, a crash or wrong numbers that Tacet cannot explain
  2  wrong usage, a path that does not exist, or nothing readable or understood
  3  internal error

Examples:
  tacet diagnose /shared/job-4711
  tacet diagnose --html report.html logs/ dumps/
  kubectl logs job/train | tacet diagnose -
)",
                                  RunDiagnose};

}  // namespace tacet
