// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "launch/postmortem/postmortem.h"

namespace tacet {

extern const Command kPostmortemCommand;
namespace {

int RunPostmortem(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kPostmortemCommand.help);
  if (!options) return Complain(options.error());
  if (options->rest().size() != 1)
    return Complain({"postmortem needs one run", "tacet postmortem tacet-runs/20261115-193201-train"});
  const std::string output = options->Value("--output").value_or("");
  const std::string format = options->Value("--format").value_or(output.ends_with(".html") ? "html" : "markdown");
  if (format != "markdown" && format != "html")
    return Complain({"--format takes markdown or html, not '" + format + "'", ""});
  auto run = ReadRunRecord(options->rest().front());
  if (!run) return Complain(run.error());
  RunRecord baseline;
  if (const auto path = options->Value("--baseline")) {
    auto read = ReadRunRecord(*path);
    if (!read) return Complain(read.error());
    baseline = std::move(*read);
  }
  const Document document = WritePostmortem(*run, options->Has("--baseline") ? &baseline : nullptr);
  const std::string page = format == "html" ? RenderDocumentHtml(document) : RenderMarkdown(document);
  return WriteOutput(output, page) ? kHealthy : kUsage;
}

}  // namespace

const Command kPostmortemCommand = {"postmortem",
                                    "Write one page about a run: what happened, why, the evidence, the fix",
                                    R"(tacet postmortem [options] RUN

Writes one page about RUN, a folder written by 'tacet run' or any other folder that 'tacet diagnose' can read: summary,
ranks, root cause with its evidence, fix, stacks side by side, variables in force, rings, how to check the fix,
prevention, and the command that starts the run again. With --baseline also the first line that the good run does not
have, and what differs from it. It can be mailed as it is: secrets are removed, and the HTML page needs no other file.

  -b, --baseline RUN  a good run, before the incident or after the fix
  -f, --format F      markdown (default) or html
  -o, --output FILE   write to FILE instead of standard output; the file extension selects the format

Exit code:
  0  the page is written
  2  wrong usage or nothing readable
  3  internal error

Examples:
  tacet postmortem tacet-runs/20261115-193201-train -o postmortem.html
  tacet postmortem BAD_RUN --baseline GOOD_RUN > postmortem.md
)",
                                    RunPostmortem};

}  // namespace tacet
