// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/redact.h"
#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/profile_paths.h"
#include "cli/shared_options.h"
#include "render/profile/comparison_render.h"
#include "render/profile/profile_html.h"
#include "render/report/redact_answer.h"
#include "report/profile/benchmark_comparison.h"
#include "report/redact_report.h"

namespace tacet {

extern const Command kCompareCommand;
namespace {

// What a path holds: a job that was profiled, or outputs of benchmarks.
struct Side {
  ProfileReport profile;
  BenchmarkSide benchmarks;
  bool timed = false;
};

Result<Side> ReadSide(const std::string& path, const LoadOptions& load, bool redact) {
  auto jobs = LoadAllJobs({path}, load);
  if (!jobs)
    return Error{Contains(jobs.error().message, path) ? jobs.error().message : path + ": " + jobs.error().message,
                 jobs.error().hint};
  Side side;
  side.benchmarks.name = path;
  for (Incident& job : *jobs)
    std::move(job.benchmark_runs.begin(), job.benchmark_runs.end(), std::back_inserter(side.benchmarks.runs));
  std::erase_if(*jobs, [](const Incident& job) { return !HasTimes(job); });
  if (redact) {
    side.benchmarks.name = RedactSecrets(side.benchmarks.name).text;
    RedactBenchmarks(side.benchmarks.runs);
  }
  side.timed = !jobs->empty();
  if (!side.timed && side.benchmarks.runs.empty())
    return Error{
        path + ": neither a profile nor the output of a benchmark was found",
        "give folders with torch.profiler traces, or outputs of nccl-tests; 'tacet formats' lists what is read"};
  if (!side.timed) return side;
  // Of several jobs the one with most ranks.
  const auto largest = std::max_element(jobs->begin(), jobs->end(), [](const Incident& a, const Incident& b) {
    return a.timelines.size() + a.measurements.size() < b.timelines.size() + b.measurements.size();
  });
  ProfileOptions options;
  options.threads = load.threads;
  side.profile = BuildProfile(*largest, options);
  side.profile.job = path;
  if (side.profile.source.empty() && !side.profile.remarks.empty())
    return Error{path + ": nothing to compare: " + side.profile.remarks.front(), "'tacet formats' lists what is read"};
  if (redact) RedactProfile(side.profile);
  return side;
}

Result<ProfileComparison> Compare(const Side& a, const Side& b, const ComparisonOptions& options) {
  if (a.timed && b.timed) return CompareProfiles(a.profile, b.profile, options);
  if (!a.benchmarks.runs.empty() && !b.benchmarks.runs.empty())
    return CompareBenchmarks(a.benchmarks, b.benchmarks, options);
  return Error{"one side is a profile of a job, the other the output of a benchmark", "compare two of the same kind"};
}

Result<ComparisonOptions> ReadThresholds(const Options& options) {
  ComparisonOptions out;
  for (const auto& [name, value] : {std::pair<std::string_view, double*>{"--alpha", &out.alpha},
                                    std::pair<std::string_view, double*>{"--min-change", &out.min_change}}) {
    const auto text = options.Value(name);
    if (!text) continue;
    auto number = ParseQuantity(*text);
    if (!number || *number >= 1)
      return Error{std::string(name) + " takes a share between 0 and 1, not '" + *text + "'", "for example 0.05"};
    *value = *number;
  }
  return out;
}

std::string Render(const ProfileComparison& comparison, const std::string& format, bool any_line,
                   const OutputOptions& output) {
  if (format == "json") return RenderComparisonJson(comparison);
  if (format == "html") return RenderComparisonHtml(comparison);
  if (format == "junit") return RenderComparisonJunit(comparison, any_line);
  return RenderComparisonText(comparison, TerminalWidth(), output.colour, output.verbose);
}

int RunCompare(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kCompareCommand.help);
  if (!options) return Complain(options.error());
  if (options->rest().size() != 2)
    return Complain({"compare needs two paths",
                     "tacet compare BEFORE AFTER, each the traces of a run or the outputs of a benchmark"});
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json" && format != "html" && format != "junit")
    return Complain({"--format takes text, json, html or junit, not '" + format + "'", ""});
  const std::string gate = options->Value("--gate").value_or("step");
  if (gate != "step" && gate != "any" && gate != "never")
    return Complain({"--gate takes step, any or never, not '" + gate + "'", ""});
  auto output = ReadOutputOptions(*options);
  if (!output) return Complain(output.error());
  auto thresholds = ReadThresholds(*options);
  if (!thresholds) return Complain(thresholds.error());
  auto load = ReadLoadOptions(*options);
  if (!load) return Complain(load.error());

  auto a = ReadSide(options->rest()[0], *load, !options->Has("--no-redact"));
  if (!a) return Complain(a.error());
  auto b = ReadSide(options->rest()[1], *load, !options->Has("--no-redact"));
  if (!b) return Complain(b.error());
  auto compared = Compare(*a, *b, *thresholds);
  if (!compared) return Complain(compared.error());
  const ProfileComparison& comparison = *compared;
  // A page that cannot be written costs the page, not the report.
  const bool page_written =
      output->page.empty() || WriteOutput(output->page, RenderComparisonHtml(comparison), "--html");
  if (!WriteOutput(output->path, Render(comparison, format, gate == "any", *output)) || !page_written) return kUsage;
  if (comparison.faults.empty() && comparison.nothing_in_common())
    return Complain({"the two runs have no operation, size or group in common", "compare two runs of the same job"});
  return gate != "never" && comparison.Regressed(gate == "any") ? kFindings : kHealthy;
}

}  // namespace

const Command kCompareCommand = {"compare",
                                 "Say whether run B is slower than run A, where, and whether that is more than noise",
                                 R"(tacet compare [options] A B

Profiles two runs (see 'tacet profile --help' for what is read) and compares the step time, the parts of
its budget and every line of the communication table: Welch's t-test and a bootstrap interval. The step
time is tested by itself; the p-values of all other measures are corrected for their number
(Benjamini-Hochberg). Steps are the samples; record ten or more of each run.

For nccl-tests output (text or -J) it compares every size, in and out of place, and the size classes
of each operation. Several tables of one side, in one file or in a folder, are repeated runs: they are
the samples, and every size is tested. With one run per side, only size classes are judged, by the ratio
of B to A at each size in them. Wrong results in B fail the comparison, however fast it is.

  -f, --format F       text (default), json, html (a page with bars) or junit
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
      --html FILE      also write an HTML page to FILE
      --alpha P        share of false alarms allowed among the differences reported (default 0.05)
      --min-change S   changes below this share are not reported (default 0.01)
      --gate G         what makes the exit code 1: step (default: a slower step; for benchmarks any measure), any
                       (any slower measure), never
  -v, --verbose        also the measures without a difference
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512); traces are streamed
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Exit code:
  0  no significant slowdown
  1  a significant slowdown (see --gate), or wrong results in B
  2  wrong usage or nothing to compare
  3  internal error

Examples:
  tacet compare traces-main/ traces-branch/
  tacet compare --html comparison.html before/ after/
  tacet compare --format junit -o slowdown.xml before/ after/
  tacet compare --gate any --min-change 0.05 before/ after/
  tacet compare nccl-tests-before/ nccl-tests-after/
)",
                                 RunCompare};

}  // namespace tacet
