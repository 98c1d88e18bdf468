// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/redact.h"
#include "launch/command_run.h"
#include "launch/output_log.h"
#include "launch/run_comparison.h"
#include "launch/run_folder.h"
#include "launch/run_verdict.h"
#include "launch/secret_words.h"
#include "render/render_names.h"
#include "render/render_words.h"

namespace tacet {
namespace {

constexpr size_t kMostRings = 8, kMostStacks = 4, kMostEvidence = 12;

std::string CleanWords(std::string_view text) { return RedactSecrets(CleanText(text)).text; }

// Headlines have no full stop; on a page of sentences they need one.
std::string Sentence(std::string_view text) {
  std::string clean = CleanWords(text);
  if (!clean.empty() && clean.back() != '.' && clean.back() != '?' && clean.back() != '!') clean += '.';
  return clean;
}

std::vector<std::string> CleanAll(const std::vector<std::string>& texts) {
  std::vector<std::string> clean;
  for (const std::string& text : texts) clean.push_back(CleanWords(text));
  return clean;
}

std::string DurationText(int64_t ns) {
  if (ns <= 0) return "unknown";
  const int64_t seconds = ns / 1'000'000'000;
  char text[64];
  if (seconds < 120)
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) / 1e9);
  else
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(seconds / 60),
                  static_cast<long long>(seconds % 60));
  return text;
}

std::string TimeText(int64_t wall_ns) {
  return wall_ns > 0 ? Rfc3339(wall_ns).substr(0, 19) + " UTC" : std::string("unknown");
}

std::string EndText(const RunManifest& manifest) {
  if (manifest.ended_wall_ns <= 0) return "is still running";
  if (manifest.signal != 0) return "was ended by signal " + std::to_string(manifest.signal);
  return "ended with exit code " + std::to_string(manifest.exit_code);
}

const ReportFinding* MainFinding(const Report& report) {
  return report.findings.empty() ? nullptr : &report.findings.front();
}

DocumentSection SummarySection(const RunRecord& run) {
  DocumentSection section{"Summary", {}};
  const ReportVerdict& verdict = run.report.verdict;
  section.Say(Sentence(verdict.headline));
  std::vector<std::vector<std::string>> rows = {{"", ""}, {"Status", std::string(Name(verdict.status))}};
  const ReportFinding* finding = MainFinding(run.report);
  if (!verdict.cause.empty())
    rows.push_back(
        {"Cause", verdict.cause + (finding != nullptr && !finding->title.empty() ? ": " + finding->title : "")});
  if (!verdict.ranks.empty()) rows.push_back({"At fault", DescribeRanks(verdict.ranks, 100)});
  if (finding != nullptr && !finding->affected_ranks.empty())
    rows.push_back({"Held up", DescribeRanks(finding->affected_ranks, 100)});
  if (finding != nullptr && !DescribePlace(*finding).empty())
    rows.push_back({"Operation", CleanWords(DescribePlace(*finding))});
  rows.push_back({"Confidence", std::string(Name(verdict.confidence))});
  if (!run.report.jobs.empty()) {
    const ReportJob& job = run.report.jobs.front();
    if (job.world_size > 0) rows.push_back({"Ranks", std::to_string(job.world_size)});
    std::string hosts;
    for (const std::string& host : job.hosts) hosts += (hosts.empty() ? "" : ", ") + host;
    if (!hosts.empty()) rows.push_back({"Hosts", CleanWords(hosts)});
  }
  if (run.manifest) {
    rows.push_back({"Command", ShowCommand(HideSecretsInCommand(run.manifest->command))});
    rows.push_back({"Ran for", DurationText(run.manifest->ended_wall_ns - run.manifest->began_wall_ns)});
  }
  section.Table(std::move(rows));
  return section;
}

DocumentSection TimelineSection(const RunRecord& run) {
  DocumentSection section{"Timeline", {}};
  std::vector<std::pair<int64_t, std::string>> events;
  if (run.manifest) {
    const RunManifest& manifest = *run.manifest;
    events.emplace_back(manifest.began_wall_ns, "The job was started on " + manifest.host + ".");
    for (const SeenHang& hang : manifest.hangs) {
      const auto still_ns = static_cast<int64_t>(hang.still_s * 1e9);
      events.emplace_back(hang.wall_ns - still_ns, "The last sign of progress in any rank.");
      events.emplace_back(hang.wall_ns, "No progress for " + DurationText(still_ns) + ": captured in " + hang.folder +
                                            (hang.headline.empty() ? "." : ", and diagnosed: " + hang.headline));
    }
    if (manifest.ended_wall_ns > 0) events.emplace_back(manifest.ended_wall_ns, "The job " + EndText(manifest) + ".");
  }
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<std::string>> rows = {{"Time", "Event"}};
  for (const auto& [wall_ns, text] : events) rows.push_back({TimeText(wall_ns), CleanWords(text)});
  if (rows.size() > 1) section.Table(std::move(rows));
  std::vector<std::vector<std::string>> ranks = {{"Rank", "Host", "Role", "Last operation", "Doing", "Last seen"}};
  for (const ReportRank& rank : run.report.ranks) {
    if (ranks.size() > 32) break;
    ranks.push_back({std::to_string(rank.rank), CleanWords(rank.host), rank.role, CleanWords(rank.last_operation),
                     CleanWords(rank.doing), CleanWords(rank.last_sign)});
  }
  if (ranks.size() > 1) section.Table(std::move(ranks));
  return section;
}

std::string VersionsOf(const Report& report) {
  std::string text;
  for (const ReportJob& job : report.jobs)
    for (const auto& [name, version] : job.versions) text += (text.empty() ? "" : ", ") + name + " " + version;
  return text.empty() ? "unknown" : CleanWords(text);
}

DocumentSection AgainstBaselineSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Baseline against incident", {}};
  if (baseline == nullptr) {
    section.Say("No baseline was given. 'tacet postmortem RUN --baseline GOOD_RUN' compares it with a good run.");
    return section;
  }
  const auto row = [&](const std::string& what, const std::string& good, const std::string& bad) {
    return std::vector<std::string>{what, good, bad, good == bad ? "" : "differs"};
  };
  const auto world = [](const Report& report) {
    return report.jobs.empty() || report.jobs.front().world_size < 0 ? std::string("unknown")
                                                                     : std::to_string(report.jobs.front().world_size);
  };
  std::vector<std::vector<std::string>> rows = {{"", "Baseline", "Incident", ""}};
  rows.push_back(row("Run", CleanWords(baseline->path), CleanWords(run.path)));
  rows.back().back().clear();
  rows.push_back(
      row("Status", std::string(Name(baseline->report.verdict.status)), std::string(Name(run.report.verdict.status))));
  rows.push_back(row("Ranks", world(baseline->report), world(run.report)));
  rows.push_back(row("Versions", VersionsOf(baseline->report), VersionsOf(run.report)));
  if (run.manifest && baseline->manifest) {
    rows.push_back(row("End", EndText(*baseline->manifest), EndText(*run.manifest)));
    rows.push_back(row("Duration", DurationText(baseline->manifest->ended_wall_ns - baseline->manifest->began_wall_ns),
                       DurationText(run.manifest->ended_wall_ns - run.manifest->began_wall_ns)));
    rows.push_back(row("Command", ShowCommand(HideSecretsInCommand(baseline->manifest->command)),
                       ShowCommand(HideSecretsInCommand(run.manifest->command))));
  }
  section.Table(std::move(rows));
  return section;
}

// A path below the run's folder differs in every run, and means the same.
std::string WithoutFolder(std::string value, const std::string& folder) {
  for (size_t at = value.find(folder); !folder.empty() && at != std::string::npos; at = value.find(folder, at + 3))
    value.replace(at, folder.size(), "RUN");
  return value;
}

std::string RunFolderOf(const RunManifest& manifest) {
  for (const RunSetting& setting : manifest.settings)
    if (setting.name == "TACET_RUN_DIR") return setting.value;
  return "";
}

DocumentSection VariablesSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Variables in force", {}};
  if (!run.manifest) {
    section.Say("Unknown: the job was not started with 'tacet run'.");
    return section;
  }
  std::map<std::string, std::string> good;
  const bool compares = baseline != nullptr && baseline->manifest;
  if (compares)
    for (const auto& [name, value] : VariablesOf(*baseline->manifest))
      good[name] = WithoutFolder(value, RunFolderOf(*baseline->manifest));
  std::vector<std::vector<std::string>> rows = {{"Variable", "Value", "Set by"}};
  if (compares) rows.front().push_back("Baseline");
  for (const auto& [name, raw] : VariablesOf(*run.manifest)) {
    const std::string value = WithoutFolder(raw, RunFolderOf(*run.manifest));
    const bool ours = std::any_of(run.manifest->settings.begin(), run.manifest->settings.end(),
                                  [&](const RunSetting& setting) { return setting.name == name && !setting.kept; });
    std::vector<std::string> row = {name, CleanWords(HideSecret(name, value)), ours ? "tacet run" : "the user"};
    if (compares) {
      const auto found = good.find(name);
      row.push_back(found == good.end()      ? "not set"
                    : found->second == value ? "the same"
                                             : CleanWords(HideSecret(name, found->second)));
      if (found != good.end()) good.erase(found);
    }
    rows.push_back(std::move(row));
  }
  for (const auto& [name, value] : good) rows.push_back({name, "not set", "", CleanWords(HideSecret(name, value))});
  section.Table(std::move(rows));
  return section;
}

DocumentSection RingsSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Rings", {}};
  const std::vector<std::string> rings = FindRings(run.path, kMostRings);
  if (rings.empty()) {
    section.Say("No NCCL log names a ring: the job does not use NCCL, or stopped before.");
    return section;
  }
  section.List(CleanAll(rings));
  if (baseline != nullptr)
    section.Say(FindRings(baseline->path, kMostRings) == rings ? "The baseline has the same rings."
                                                               : "The baseline has different rings.");
  return section;
}

DocumentSection DivergingSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"First line that is not in the baseline", {}};
  if (baseline == nullptr) return section;
  const auto found = FindDivergingLine(run.path, baseline->path);
  if (!found) {
    section.Say("None: every line of this run's logs is in the baseline as well.");
    return section;
  }
  section.Say(CleanWords(found->file) + ", line " + std::to_string(found->line) + ":");
  section.Code(CleanWords(found->text));
  return section;
}

DocumentSection StacksSection(const RunRecord& run) {
  DocumentSection section{"Stacks side by side", {}};
  std::vector<int> ranks = run.report.verdict.ranks;
  if (ranks.size() > kMostStacks / 2) ranks.resize(kMostStacks / 2);
  if (const ReportFinding* finding = MainFinding(run.report))
    for (const int rank : finding->affected_ranks)
      if (ranks.size() < kMostStacks && ranks.size() < run.report.verdict.ranks.size() + 2) ranks.push_back(rank);
  // Where nothing but stacks tells who waits, nobody is listed as held up.
  for (const ReportRank& other : run.report.ranks)
    if (ranks.size() < 2 && std::find(ranks.begin(), ranks.end(), other.rank) == ranks.end())
      ranks.push_back(other.rank);
  const auto stacks = FindStacks(run.path, ranks);
  if (stacks.empty()) {
    section.Say("No stacks were captured.");
    return section;
  }
  DocumentBlock block;
  block.kind = DocumentBlock::Kind::side_by_side;
  for (const auto& [rank, text] : stacks) {
    const bool guilty = std::find(run.report.verdict.ranks.begin(), run.report.verdict.ranks.end(), rank) !=
                        run.report.verdict.ranks.end();
    block.columns.emplace_back("Rank " + std::to_string(rank) + (guilty ? " (at fault)" : ""), CleanWords(text));
  }
  section.blocks.push_back(std::move(block));
  return section;
}

DocumentSection RootCauseSection(const RunRecord& run) {
  DocumentSection section{"Root cause and chain of evidence", {}};
  const ReportFinding* finding = MainFinding(run.report);
  if (finding == nullptr) {
    section.Say("No cause was found in these files.");
    return section;
  }
  section.Say(Sentence(finding->headline));
  if (!finding->explanation.empty()) section.Say(CleanWords(finding->explanation));
  std::vector<std::string> chain;
  for (const CitedEvidence& evidence : finding->evidence) {
    if (chain.size() == kMostEvidence) break;
    std::string text = SaysOf(evidence);
    if (!DescribeSource(evidence).empty()) text += " (" + DescribeSource(evidence) + ")";
    if (!QuoteOf(evidence).empty()) text += ": " + QuoteOf(evidence);
    chain.push_back(CleanWords(text));
  }
  section.List(std::move(chain), true);
  std::vector<std::string> others;
  for (size_t i = 1; i < run.report.findings.size() && i < 8; ++i)
    others.push_back(CleanWords(run.report.findings[i].cause + ": " + run.report.findings[i].headline));
  if (!others.empty()) section.Say("Also found:");
  section.List(std::move(others));
  return section;
}

DocumentSection ValidationSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Validation", {}};
  const std::string path = QuoteForShell(run.path);
  section.Say("Before: 'tacet diagnose' of this run reports " + std::string(Name(run.report.verdict.status)) +
              (run.report.verdict.cause.empty() ? "." : " (" + run.report.verdict.cause + ")."));
  if (baseline != nullptr)
    section.Say("Baseline: 'tacet diagnose' of " + CleanWords(baseline->path) + " says " +
                std::string(Name(baseline->report.verdict.status)) +
                (baseline->report.verdict.cause.empty() ? "." : " (" + baseline->report.verdict.cause + ")."));
  section.Say("After the fix, the same command must exit with 0, and both of these must report no fault:");
  section.Code("tacet diagnose NEW_RUN\ntacet postmortem " + path + " --baseline NEW_RUN");
  return section;
}

// What makes the job do it again, on a machine that is set up alike.
DocumentSection ReproducerSection(const RunRecord& run) {
  DocumentSection section{"Reproducer", {}};
  if (!run.manifest || run.manifest->command.empty()) {
    section.Say("The command is unknown: the job was not started with 'tacet run'.");
    return section;
  }
  std::string text = run.manifest->folder.empty() ? "" : "cd " + QuoteForShell(run.manifest->folder) + " &&\n";
  const auto matters = [](const std::string& name) {
    return name.starts_with("NCCL_") || name.starts_with("TORCH_") || name.starts_with("CUDA_") ||
           name.starts_with("UCX_") || name.starts_with("FI_") || name.starts_with("GLOO_");
  };
  for (const auto& [name, value] : run.manifest->inherited)
    if (matters(name)) text += name + "=" + QuoteForShell(HideSecret(name, value)) + " \\\n";
  for (const RunSetting& setting : run.manifest->settings)
    if (setting.kept && matters(setting.name))
      text += setting.name + "=" + QuoteForShell(HideSecret(setting.name, setting.users_value)) + " \\\n";
  section.Code(CleanWords(text + "tacet run -- " + ShowCommand(HideSecretsInCommand(run.manifest->command))));
  return section;
}

}  // namespace

Result<RunRecord> ReadRunRecord(const std::string& path) {
  RunRecord run;
  run.path = path;
  auto report = DiagnoseFolder(path);
  if (!report) return report.error();
  run.report = std::move(*report);
  RunManifest manifest;
  if (ParseManifest(ReadSmallFile(path + "/manifest.json", 16 << 20), &manifest)) run.manifest = std::move(manifest);
  return run;
}

Document WritePostmortem(const RunRecord& run, const RunRecord* baseline) {
  Document document;
  const std::string name = run.manifest && !run.manifest->name.empty() ? run.manifest->name : run.path;
  document.title = "Postmortem: " + CleanWords(name) + ", " + std::string(Name(run.report.verdict.status));
  document.sections = {SummarySection(run),
                       TimelineSection(run),
                       RootCauseSection(run),
                       StacksSection(run),
                       DivergingSection(run, baseline),
                       AgainstBaselineSection(run, baseline),
                       VariablesSection(run, baseline),
                       RingsSection(run, baseline)};
  DocumentSection fix{"Fix", {}}, prevention{"Prevention", {}}, open{"What is unknown", {}};
  if (const ReportFinding* finding = MainFinding(run.report)) {
    fix.List(CleanAll(finding->fix), true);
    prevention.List(CleanAll(finding->prevent));
  }
  std::vector<std::string> questions;
  for (const CannotTell& question : run.report.cannot_tell)
    questions.push_back(CleanWords(question.question + " Missing: " + question.missing));
  open.List(std::move(questions));
  document.sections.insert(document.sections.begin() + 3, std::move(fix));
  document.sections.push_back(ValidationSection(run, baseline));
  document.sections.push_back(std::move(prevention));
  document.sections.push_back(ReproducerSection(run));
  document.sections.push_back(std::move(open));
  return document;
}

}  // namespace tacet
