// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/postmortem.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "evidence/load.h"
#include "launch/collect/secret_words.h"
#include "launch/command_run.h"
#include "launch/output_log.h"
#include "launch/postmortem/past_tense.h"
#include "launch/postmortem/postmortem_parts.h"
#include "launch/postmortem/run_comparison.h"
#include "launch/run_folder.h"
#include "launch/run_verdict.h"
#include "render/render_names.h"
#include "render/render_words.h"

namespace tacet {
namespace {

constexpr std::array<std::string_view, 3> kNeedsTheProcess = {"--pid PID", "gdb -p PID", "/proc/PID"};
constexpr size_t kMostStacks = 4, kMostEvidence = 12, kMostRanks = 32, kMostOthers = 7;

std::string TimeText(int64_t wall_ns) {
  return wall_ns > 0 ? Rfc3339(wall_ns).substr(0, 19) + " UTC" : std::string("unknown");
}

// The finding that carries the verdict. A note beside a healthy run explains nothing.
const ReportFinding* MainFinding(const Report& report) {
  if (report.findings.empty()) return nullptr;
  const ReportFinding& first = report.findings.front();
  return report.verdict.cause.empty() && first.severity == Severity::note ? nullptr : &first;
}

bool IsHealthy(const RunRecord& run) { return run.report.verdict.status == Status::healthy; }

// The files name a fault, or they leave open whether there was one.
bool MayHaveFault(const RunRecord& run) {
  return MainFinding(run.report) != nullptr || !(IsHealthy(run) || StatusWord(run.report) == "no fault found");
}

// A hang is over when it is written about; other headlines tell of what happened.
std::string PastSentence(const RunRecord& run, const std::string& headline) {
  return Sentence(run.report.verdict.status == Status::hang ? InPastTense(headline) : headline);
}

// A job whose end nobody recorded is taken as over: this is written when it is.
bool IsOver(const RunRecord& run) { return !run.manifest || run.manifest->ended_wall_ns > 0; }

// What needs the process itself can only be done the next time.
std::vector<std::string> StepsOf(const RunRecord& run, const ReportFinding& finding) {
  std::vector<std::string> steps = CleanAll(finding.fix);
  constexpr std::string_view kKill = "Kill and restart";
  for (std::string& step : steps) {
    if (!IsOver(run)) break;
    if (step.starts_with(kKill)) step.replace(0, kKill.size(), "Restart");
    const bool live = std::any_of(kNeedsTheProcess.begin(), kNeedsTheProcess.end(),
                                  [&](std::string_view words) { return step.find(words) != std::string::npos; });
    const bool later = step.starts_with("When ") || step.starts_with("Next time") || step.starts_with("If ");
    if (!live || later) continue;
    if (step.size() > 1 && step[0] >= 'A' && step[0] <= 'Z' && step[1] >= 'a' && step[1] <= 'z')
      step[0] = static_cast<char>(step[0] - 'A' + 'a');
    step.insert(0, "Next time, before the job is ended, ");
  }
  return steps;
}

// "What is rank 0 doing on the host?" is asked of a job that runs.
std::string QuestionOf(const RunRecord& run, const std::string& question) {
  if (!IsOver(run) || run.report.verdict.status != Status::hang) return question;
  std::string text = InPastTense(question);
  constexpr std::string_view kMay = " may also be waiting ";
  if (const size_t at = text.find(kMay); at != std::string::npos)
    text.replace(at, kMay.size(), " may also have been waiting ");
  return text;
}

DocumentSection SummarySection(const RunRecord& run) {
  DocumentSection section{"Summary", {}};
  const ReportVerdict& verdict = run.report.verdict;
  section.Say(PastSentence(run, verdict.headline));
  if (IsHealthy(run) && MainFinding(run.report) == nullptr)
    section.Say("There is no cause to name and nothing to fix.");
  for (const ReportDiagnostic& one : run.report.diagnostics)
    if (one.code == "exception-survived")
      section.Say(CleanWords(one.message + (one.count > 1 ? " (" + Count(one.count, "time") + ")" : "") + ": " +
                             one.file + ", line " + std::to_string(one.line) + "."));
  std::vector<std::vector<std::string>> rows = {{"", ""}, {"Status", StatusWord(run.report)}};
  const ReportFinding* finding = MainFinding(run.report);
  if (!verdict.cause.empty())
    rows.push_back(
        {"Cause", verdict.cause + (finding != nullptr && !finding->title.empty() ? ": " + finding->title : "")});
  const auto is_blamed = [](const ReportRank& rank) { return rank.role == "guilty" || rank.role == "suspect"; };
  const bool blamed = std::any_of(run.report.ranks.begin(), run.report.ranks.end(), is_blamed);
  if (!verdict.ranks.empty()) rows.push_back({blamed ? "At fault" : "Where", DescribeRanks(verdict.ranks, 100)});
  if (finding != nullptr && !finding->affected_ranks.empty())
    rows.push_back({AffectedWait(finding->status, finding->operation.has_value()) ? "Waiting" : "Affected",
                    DescribeRanks(finding->affected_ranks, 100)});
  if (finding != nullptr && !DescribePlace(*finding).empty())
    rows.push_back({"Operation", CleanWords(DescribePlace(*finding))});
  if (verdict.status != Status::undetermined || !verdict.cause.empty())
    rows.push_back({"Confidence", std::string(Name(verdict.confidence))});
  if (!run.report.jobs.empty()) {
    const ReportJob& job = run.report.jobs.front();
    if (job.world_size > 0)
      rows.push_back({"Ranks", (job.world_told ? "" : "at least ") + std::to_string(job.world_size)});
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
      events.emplace_back(hang.wall_ns - still_ns, "Last sign of progress on any rank.");
      events.emplace_back(hang.wall_ns, "No progress for " + DurationText(still_ns) + ": captured in " + hang.folder +
                                            (hang.headline.empty() ? "." : ", and diagnosed: " + hang.headline + "."));
    }
    if (manifest.ended_wall_ns > 0) events.emplace_back(manifest.ended_wall_ns, "The job " + EndText(manifest) + ".");
  }
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<std::string>> rows = {{"Time", "Event"}};
  for (const auto& [wall_ns, text] : events) rows.push_back({TimeText(wall_ns), CleanWords(text)});
  if (rows.size() > 1) section.Table(std::move(rows));
  return section;
}

DocumentSection RanksSection(const RunRecord& run) {
  DocumentSection section{"Ranks", {}};
  std::vector<std::vector<std::string>> ranks = {{"Rank", "Host", "Role", "Operation", "State", "Last seen"}};
  for (const ReportRank& rank : run.report.ranks) {
    if (ranks.size() > kMostRanks) break;
    ranks.push_back({std::to_string(rank.rank), CleanWords(rank.host),
                     rank.role == "guilty"   ? "at fault"
                     : rank.role == "silent" ? "not seen"
                                             : rank.role,
                     CleanWords(rank.last_operation), CleanWords(rank.doing), CleanWords(rank.last_sign)});
  }
  for (size_t column = ranks.front().size(); column-- > 1;)  // a column in which only the head has text says nothing
    if (std::all_of(ranks.begin() + 1, ranks.end(), [&](const auto& row) { return row[column].empty(); }))
      for (auto& row : ranks) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  const size_t left_out = run.report.ranks.size() - (ranks.size() - 1);
  if (ranks.size() > 1) section.Table(std::move(ranks));
  if (left_out > 0) section.Say(Count(left_out, "more rank") + (left_out == 1 ? " is" : " are") + " not shown.");
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

// Equal stacks stand once, with all their ranks; those of the ranks at fault come first.
DocumentSection StacksSection(const RunRecord& run) {
  DocumentSection section{"Stacks side by side", {}};
  std::vector<int> ranks;
  for (const ReportRank& rank : run.report.ranks) ranks.push_back(rank.rank);
  struct SharedStack {
    bool at_fault = false;
    std::string text;
    std::vector<int> ranks;
  };
  std::vector<SharedStack> shared;
  const std::vector<int>& guilty = run.report.verdict.ranks;
  for (auto& [rank, words] : FindStacks(run.path, ranks)) {
    std::string& text = words;  // clang 16 captures no structured binding
    const bool at_fault = std::find(guilty.begin(), guilty.end(), rank) != guilty.end();
    const auto same = std::find_if(shared.begin(), shared.end(), [&](const SharedStack& one) {
      return one.at_fault == at_fault && one.text == text;
    });
    if (same == shared.end())
      shared.push_back({at_fault, std::move(text), {rank}});
    else
      same->ranks.push_back(rank);
  }
  if (shared.empty()) {
    section.SayAbsent("Stacks: no file with the stack of a rank was found.");
    return section;
  }
  std::stable_sort(shared.begin(), shared.end(),
                   [](const SharedStack& a, const SharedStack& b) { return a.at_fault > b.at_fault; });
  const size_t left_out = shared.size() - std::min(shared.size(), kMostStacks);
  shared.resize(shared.size() - left_out);
  DocumentBlock block;
  block.kind = DocumentBlock::Kind::side_by_side;
  for (const SharedStack& one : shared) {
    std::string title = DescribeRanks(one.ranks, 60) + (one.at_fault ? " (at fault)" : "");
    title[0] = title[0] == 'r' ? 'R' : title[0];
    block.columns.emplace_back(std::move(title), CleanWords(one.text));
  }
  section.blocks.push_back(std::move(block));
  if (left_out > 0)
    section.Say(Count(left_out, "more stack") + (left_out == 1 ? " is" : " are") + " in the files and not shown.");
  return section;
}

DocumentSection RootCauseSection(const RunRecord& run) {
  DocumentSection section{"Root cause and chain of evidence", {}};
  const ReportFinding* finding = MainFinding(run.report);
  if (finding == nullptr) {
    section.Say("No cause was found in these files.");
    return section;
  }
  section.Say(PastSentence(run, finding->headline));
  if (finding->meaning.empty() && !finding->explanation.empty())
    section.Say("About this cause: " + CleanWords(finding->explanation));
  std::vector<std::string> chain;
  for (const CitedEvidence& evidence : finding->evidence) {
    if (chain.size() == kMostEvidence) break;
    std::string text = SaysOf(evidence);
    if (!DescribeSource(evidence).empty()) text += " (" + DescribeSource(evidence) + ")";
    if (!QuoteOf(evidence).empty()) text += ": " + QuoteOf(evidence);
    chain.push_back(CleanWords(text));
  }
  section.List(std::move(chain), true);
  return section;
}

// What is true of every run with this cause must not read as facts of this one.
DocumentSection GeneralSection(const RunRecord& run) {
  DocumentSection section{"The cause in general", {}};
  const ReportFinding* finding = MainFinding(run.report);
  if (finding == nullptr || finding->meaning.empty()) return section;
  section.Say(CleanWords(finding->meaning));
  section.Say("How it differs from its look-alikes: " + CleanWords(finding->look_alikes));
  return section;
}

DocumentSection OthersSection(const RunRecord& run) {
  DocumentSection section{"Also found", {}};
  std::vector<std::string> others;
  for (const ReportFinding& finding : run.report.findings)
    if (&finding != MainFinding(run.report) && others.size() < kMostOthers && !finding.cause.empty())
      others.push_back(CleanWords(finding.cause + ": " + finding.headline +
                                  (finding.explained_by.empty() || finding.severity == Severity::note
                                       ? ""
                                       : " (a consequence of " + finding.explained_by + ")")));
  section.List(std::move(others));
  return section;
}

DocumentSection ValidationSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Validation", {}};
  section.Say("Before: 'tacet diagnose' of this run reports " + StatusWord(run.report) +
              (run.report.verdict.cause.empty() ? "." : " (" + run.report.verdict.cause + ")."));
  if (baseline != nullptr)
    section.Say("Baseline: 'tacet diagnose' of " + CleanWords(baseline->path) + " reports " +
                StatusWord(baseline->report) +
                (baseline->report.verdict.cause.empty() ? "." : " (" + baseline->report.verdict.cause + ")."));
  section.Say("After the fix, this should exit with 0:");
  section.Code("tacet diagnose NEW_RUN");
  section.Say("To compare the two runs:");
  section.Code("tacet postmortem " + QuoteForShell(run.path) + " --baseline NEW_RUN");
  return section;
}

// What makes the job do it again, on a machine that is set up alike.
DocumentSection ReproducerSection(const RunRecord& run) {
  DocumentSection section{"Reproducer", {}};
  if (!run.manifest || run.manifest->command.empty()) {
    section.SayAbsent("Command: unknown, since the job was not started with 'tacet run'.");
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
  if (!report && report.error().message.ends_with(kNoSuchPath))
    return Error{report.error().message, "name a folder of 'tacet run', or any folder that 'tacet diagnose' reads"};
  if (!report) return report.error();
  run.report = std::move(*report);
  const bool understood = std::any_of(run.report.inputs.begin(), run.report.inputs.end(),
                                      [](const ReportInput& input) { return input.understood > 0; });
  if (!understood)
    return Error{"'" + path + "' holds nothing of a job that can be read", "'tacet formats' lists what is read"};
  run.facts = ReadRunFacts(path);
  RunManifest manifest;
  if (ParseManifest(ReadSmallFile(path + "/manifest.json", 16 << 20), &manifest)) run.manifest = std::move(manifest);
  return run;
}

Document WritePostmortem(const RunRecord& run, const RunRecord* baseline) {
  Document document;
  std::string name = run.manifest && !run.manifest->name.empty() ? run.manifest->name : run.path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  document.title = "Postmortem: " + CleanWords(name) + ", " + StatusWord(run.report);
  const bool fault = MayHaveFault(run);
  std::vector<std::string> absent;
  const auto add = [&](DocumentSection section) {
    if (section.absent)
      absent.push_back(section.blocks.front().items.front());
    else
      document.sections.push_back(std::move(section));
  };
  add(SummarySection(run));
  add(TimelineSection(run));
  add(RanksSection(run));
  if (fault) {
    add(RootCauseSection(run));
    add(GeneralSection(run));
    DocumentSection fix{"Fix", {}};
    if (const ReportFinding* finding = MainFinding(run.report)) fix.List(StepsOf(run, *finding), true);
    add(std::move(fix));
  }
  add(OthersSection(run));
  if (fault) add(StacksSection(run));
  add(DivergingSection(run, baseline));
  if (fault || baseline != nullptr) add(BaselineSection(run, baseline));
  add(VariablesSection(run, baseline));
  add(RingsSection(run, baseline));
  if (fault) {
    if (MainFinding(run.report) != nullptr) add(ValidationSection(run, baseline));
    DocumentSection prevention{"Prevention", {}};
    if (const ReportFinding* finding = MainFinding(run.report)) prevention.List(CleanAll(finding->prevent));
    add(std::move(prevention));
  }
  add(ReproducerSection(run));
  DocumentSection open{"What is unknown", {}};
  std::vector<std::string> questions;
  for (const CannotTell& question : run.report.cannot_tell)
    questions.push_back(CleanWords(QuestionOf(run, question.question) + " Missing: " + question.missing));
  open.List(std::move(questions));
  add(std::move(open));
  DocumentSection lacking{"Not available", {}};
  lacking.List(std::move(absent));
  add(std::move(lacking));
  return document;
}

}  // namespace tacet
