// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/profile_paths.h"
#include "cli/shared_options.h"
#include "render/profile/perfetto_export.h"
#include "render/profile/profile_csv.h"
#include "render/profile/profile_html.h"
#include "render/profile/profile_json.h"
#include "render/profile/profile_text.h"
#include "report/redact_report.h"

namespace tacet {

extern const Command kProfileCommand;
namespace {

struct NumberOption {
  std::string_view name;
  double* value;
};

Result<ProfileOptions> ReadModel(const Options& options) {
  ProfileOptions out;
  TransformerShape& model = out.model;
  const NumberOption numbers[] = {{"--params", &model.parameters},     {"--layers", &model.layers},
                                  {"--heads", &model.heads},           {"--head-dim", &model.head_dim},
                                  {"--hidden", &model.hidden},         {"--vocabulary", &model.vocabulary},
                                  {"--sequence", &model.sequence},     {"--tokens", &out.tokens_per_step},
                                  {"--peak-tflops", &out.peak_tflops}, {"--peak-gbs", &out.peak_gbs}};
  for (const NumberOption& one : numbers) {
    const auto text = options.Value(one.name);
    if (!text) continue;
    auto value = ParseQuantity(*text);
    if (!value)
      return Error{std::string(one.name) + " takes a number above zero, not '" + *text + "'", value.error().hint};
    *one.value = *value;
  }
  if (model.head_dim <= 0 && model.heads > 0) model.head_dim = model.hidden / model.heads;
  out.full_recompute = options.Has("--recompute");
  if ((model.parameters > 0 || model.layers > 0) && out.tokens_per_step <= 0)
    return Error{"a model size needs --tokens", "tokens of one step of the whole job: batch x sequence"};
  return out;
}

bool WritePerfetto(const std::string& path, const std::vector<Incident>& jobs, bool redact) {
  std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "wb");
  bool ok = file != nullptr;
  if (ok) {
    ok = ExportPerfetto(
        jobs, [&](std::string_view bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(); },
        redact);
    ok = (path.empty() ? std::fflush(file) == 0 : std::fclose(file) == 0) && ok;
  }
  if (!ok) Complain({"cannot write the trace: " + std::string(std::strerror(errno)), "choose another file with -o"});
  return ok;
}

std::string Render(const std::vector<ProfileReport>& profiles, const std::string& format,
                   const ProfileTextOptions& text) {
  if (format == "json") return RenderProfileJson(profiles);
  if (format == "csv") return RenderProfileCsv(profiles);
  if (format == "html") return RenderProfileHtml(profiles);
  std::string out;
  for (const ProfileReport& profile : profiles) out += (out.empty() ? "" : "\n") + RenderProfileText(profile, text);
  return out;
}

int RunProfile(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kProfileCommand.help);
  if (!options) return Complain(options.error());
  if (options->Has("--explain")) return WriteOutput("", RenderDefinitions(TerminalWidth())) ? kHealthy : kUsage;
  if (options->rest().empty())
    return Complain({"profile needs at least one path", "tacet profile FOLDER with the traces of all ranks"});
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json" && format != "html" && format != "csv" && format != "perfetto")
    return Complain({"--format takes text, json, html, csv or perfetto, not '" + format + "'", ""});
  auto output = ReadOutputOptions(*options);
  if (!output) return Complain(output.error());
  auto model = ReadModel(*options);
  if (!model) return Complain(model.error());
  auto load = ReadLoadOptions(*options);
  if (!load) return Complain(load.error());
  model->threads = load->threads;
  auto jobs = LoadJobs(options->rest(), *load);
  if (!jobs) return Complain(jobs.error());

  std::vector<ProfileReport> profiles;
  if (format != "perfetto" || !output->page.empty())
    for (const Incident& job : *jobs) profiles.push_back(BuildProfile(job, *model));
  // Records of calls without their times.
  const bool timeless =
      !profiles.empty() && std::all_of(profiles.begin(), profiles.end(), [](const ProfileReport& one) {
        return one.source.empty() && !one.remarks.empty();
      });
  if (timeless)
    return Complain({"nothing to profile: " + profiles[0].remarks[0], "'tacet formats' lists what is read"});
  const bool redact = !options->Has("--no-redact");
  if (redact)
    for (ProfileReport& profile : profiles) RedactProfile(profile);
  // A page that cannot be written costs the page, not the report.
  const bool page_written = output->page.empty() || WriteOutput(output->page, RenderProfileHtml(profiles), "--html");
  if (format == "perfetto") return WritePerfetto(output->path, *jobs, redact) && page_written ? kHealthy : kUsage;
  const ProfileTextOptions text{.colour = output->colour, .width = TerminalWidth(), .verbose = output->verbose};
  return WriteOutput(output->path, Render(profiles, format, text)) && page_written ? kHealthy : kUsage;
}

}  // namespace

const Command kProfileCommand = {
    "profile", "Show where the step time goes, which rank makes the others wait, and what would save most",
    R"(tacet profile [options] PATH...

Reads torch.profiler traces of all ranks (plain, gzip or zstd), or NCCL Inspector files, Flight Recorder
dumps with timing, or a pipeline timeline, and shows where the step time goes: a budget per rank,
waiting and transfer of every operation, stragglers and their cost, buckets, shards, bubbles, and the
three changes that would save most.

  -f, --format F       text (default), json, html (a page with charts), csv (communication table and budgets) or
                       perfetto (one aligned trace)
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
      --html FILE      also write an HTML page to FILE
      --explain        the definition of every number, and nothing else
      --params N       number of model parameters; of a mixture of experts the active ones (7e9 or 7B)
      --tokens N       tokens of one step of the whole job; with --params gives MFU and HFU
      --layers N --heads N --head-dim N --hidden N --vocabulary N --sequence N
                       the transformer's shape: counts the FLOPs of attention too, and replaces --params
      --recompute      all activations are recomputed
      --peak-tflops N  peak of one device (default: looked up by its name)
      --peak-gbs N     peak of one device's link in GB/s (default: looked up by its name)
  -v, --verbose        all ranks and lines
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512); traces are streamed
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Exit code:
  0  done
  2  wrong usage or nothing to profile
  3  internal error

Examples:
  tacet profile traces/
  tacet profile --html profile.html traces/
  tacet profile --params 7B --tokens 4M traces/
  tacet profile --format perfetto -o job.json traces/
  tacet profile --explain
)",
    RunProfile};

}  // namespace tacet
