// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "base/redact.h"
#include "launch/collect/secret_words.h"
#include "launch/command_run.h"
#include "launch/postmortem/postmortem_parts.h"
#include "launch/postmortem/run_comparison.h"
#include "render/prediction/prediction_render.h"
#include "render/profile/profile_words.h"
#include "render/render_names.h"
#include "render/render_words.h"

namespace tacet {
namespace {

constexpr size_t kMostRings = 8;

std::string VersionsOf(const Report& report) {
  std::string text;
  for (const ReportJob& job : report.jobs)
    for (const auto& [name, version] : job.versions) {
      if (!text.empty()) text += ", ";
      text.append(name).append(" ").append(version);
    }
  return text.empty() ? "unknown" : CleanWords(text);
}

// A log names the build beside the number ("2.28.9+cuda13.0"), a flight record the number alone.
bool IsSameVersion(std::string_view a, std::string_view b) {
  const auto numbers = [](std::string_view text) {
    std::string out;
    for (bool build = false; const char c : text) {
      build = c == '+' || (build && c != ',');
      if (!build) out += c;
    }
    return out;
  };
  const bool both = (a.find('+') == std::string_view::npos) == (b.find('+') == std::string_view::npos);
  return both ? a == b : numbers(a) == numbers(b);
}

// A slow run differs in its times, if in anything.
void AddTimes(const RunFacts& run, const RunFacts& good, std::vector<std::vector<std::string>>& rows) {
  const auto change = [](double bad, double baseline) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.0f %%", 100 * (bad / baseline - 1));
    return std::string(text);
  };
  const auto step = [](const RunFacts& facts) {
    return facts.step_ns > 0 ? DescribeTime(static_cast<double>(facts.step_ns)) : std::string("unknown");
  };
  if (run.step_ns > 0 || good.step_ns > 0)
    rows.push_back({"Step time", step(good), step(run),
                    run.step_ns > 0 && good.step_ns > 0
                        ? change(static_cast<double>(run.step_ns), static_cast<double>(good.step_ns))
                        : ""});
  if (run.exposed_share >= 0 && good.exposed_share >= 0)
    rows.push_back({"Exposed communication", DescribeShare(good.exposed_share) + " of the step",
                    DescribeShare(run.exposed_share) + " of the step", ""});
  for (const RunTransfer& one : run.transfers)
    for (const RunTransfer& other : good.transfers)
      if (one.name == other.name)
        rows.push_back({"Bus bandwidth, " + CleanWords(one.name), SpeedWords(other.bus_gbs), SpeedWords(one.bus_gbs),
                        change(one.bus_gbs, other.bus_gbs)});
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

// What NCCL's logs name, where the job was not started with `tacet run`.
DocumentSection LoggedVariables(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Variables in force", {}};
  const auto& settings = run.facts.settings;
  const bool compares = baseline != nullptr && !baseline->facts.settings.empty();
  if (settings.empty() && !compares) {
    section.SayAbsent("Variables: the job was not started with 'tacet run', and no NCCL log lists any.");
    return section;
  }
  const auto words = [](const std::string& name, const auto& all) {
    const auto found = all.find(name);
    // Without a log that prints variables nothing is known of any.
    if (found == all.end()) return std::string(all.empty() ? "unknown" : "not set");
    std::string out = found->second.size() > 1 ? "differs by rank: " : "";
    for (const std::string& value : found->second) {
      if (&value != &*found->second.begin()) out += ", ";
      out += CleanWords(HideSecret(name, value));
    }
    return out;
  };
  std::set<std::string> names;
  for (const auto& [name, values] : settings) names.insert(name);
  if (compares)
    for (const auto& [name, values] : baseline->facts.settings) names.insert(name);
  std::vector<std::vector<std::string>> rows = {{"Variable", "Value"}};
  if (compares) rows.front().push_back("Baseline");
  for (const std::string& name : names) {
    std::vector<std::string> row = {name, words(name, settings)};
    if (compares) {
      const std::string good = words(name, baseline->facts.settings);
      row.push_back(good == row[1] ? "the same" : good);
    }
    rows.push_back(std::move(row));
  }
  section.Say("As NCCL's logs name them; variables that NCCL does not print are unknown.");
  section.Table(std::move(rows));
  return section;
}

// By group where NCCL's setup tells it; else as the lines stand in the logs.
std::vector<std::string> RingLines(const RunRecord& run) {
  return run.facts.rings.empty() ? FindRings(run.path, kMostRings) : run.facts.rings;
}

}  // namespace

std::string CleanWords(std::string_view text) { return RedactSecrets(CleanText(text)).text; }

std::string Sentence(std::string_view text) {
  std::string clean = CleanWords(text);
  if (!clean.empty() && clean.back() != '.' && clean.back() != '?' && clean.back() != '!') clean += '.';
  return clean;
}

std::string StatusWord(const Report& report) {
  std::string word = HeadingWord(report);
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return word;
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

std::string EndText(const RunManifest& manifest) {
  if (manifest.ended_wall_ns <= 0) return "is still running";
  if (manifest.signal != 0) return "was ended by signal " + std::to_string(manifest.signal);
  return "ended with exit code " + std::to_string(manifest.exit_code);
}

DocumentSection BaselineSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Compared with a baseline", {}};
  if (baseline == nullptr) {
    section.SayAbsent(
        "No baseline was given. 'tacet postmortem RUN --baseline GOOD_RUN' compares this run with a good one.");
    return section;
  }
  const auto row = [&](const std::string& what, const std::string& good, const std::string& bad) {
    return std::vector<std::string>{what, good, bad, good == bad ? "" : "differs"};
  };
  const auto world = [](const Report& report) {
    if (report.jobs.empty() || report.jobs.front().world_size < 0) return std::string("unknown");
    return (report.jobs.front().world_told ? "" : "at least ") + std::to_string(report.jobs.front().world_size);
  };
  std::vector<std::vector<std::string>> rows = {{"", "Baseline", "This run", ""}};
  rows.push_back(row("Run", CleanWords(baseline->path), CleanWords(run.path)));
  rows.back().back().clear();
  rows.push_back(row("Status", StatusWord(baseline->report), StatusWord(run.report)));
  rows.push_back(row("Ranks", world(baseline->report), world(run.report)));
  rows.push_back(row("Versions", VersionsOf(baseline->report), VersionsOf(run.report)));
  if (IsSameVersion(rows.back()[1], rows.back()[2])) rows.back().back().clear();
  if (rows.back()[1] == "unknown" && rows.back()[2] == "unknown") rows.pop_back();
  if (run.manifest && baseline->manifest) {
    rows.push_back(row("End", EndText(*baseline->manifest), EndText(*run.manifest)));
    rows.push_back(row("Duration", DurationText(baseline->manifest->ended_wall_ns - baseline->manifest->began_wall_ns),
                       DurationText(run.manifest->ended_wall_ns - run.manifest->began_wall_ns)));
    rows.push_back(row("Command", ShowCommand(HideSecretsInCommand(baseline->manifest->command)),
                       ShowCommand(HideSecretsInCommand(run.manifest->command))));
  }
  AddTimes(run.facts, baseline->facts, rows);
  section.Table(std::move(rows));
  return section;
}

DocumentSection VariablesSection(const RunRecord& run, const RunRecord* baseline) {
  if (!run.manifest) return LoggedVariables(run, baseline);
  DocumentSection section{"Variables in force", {}};
  std::map<std::string, std::string> good;
  const bool compares = baseline != nullptr && baseline->manifest;
  if (compares)
    for (const auto& [name, value] : VariablesOf(*baseline->manifest))
      good[name] = WithoutFolder(value, RunFolderOf(*baseline->manifest));
  std::vector<std::vector<std::string>> rows = {{"Variable", "Value", "Set by"}};
  if (compares) rows.front().push_back("Baseline");
  for (const auto& [key, raw] : VariablesOf(*run.manifest)) {
    const std::string& name = key;  // clang 16 captures no structured binding
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

namespace {

// The same rings: a run that names its groups and one that does not may still have the same orders.
bool HaveSameRings(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto orders = [](const std::vector<std::string>& lines) {
    std::vector<std::string> out;
    for (const std::string& line : lines) {
      const size_t at = line.find(", channel");
      out.push_back(at == std::string::npos ? line : line.substr(at));
    }
    std::sort(out.begin(), out.end());
    return out;
  };
  return orders(a) == orders(b);
}

}  // namespace

DocumentSection RingsSection(const RunRecord& run, const RunRecord* baseline) {
  DocumentSection section{"Rings", {}};
  const std::vector<std::string> rings = RingLines(run);
  if (rings.empty()) {
    section.SayAbsent("Rings: no NCCL log has ring lines.");
    return section;
  }
  std::vector<std::string> shown(rings.begin(),
                                 rings.begin() + static_cast<std::ptrdiff_t>(std::min(rings.size(), kMostRings)));
  section.List(CleanAll(shown));
  if (rings.size() > shown.size()) section.Say(std::to_string(rings.size() - shown.size()) + " more are not shown.");
  if (baseline == nullptr) return section;
  const std::vector<std::string> good = RingLines(*baseline);
  section.Say(good.empty()                 ? "The rings of the baseline are unknown: no log of it has ring lines."
              : HaveSameRings(good, rings) ? "The baseline has the same rings."
                                           : "The baseline has different rings.");
  return section;
}

}  // namespace tacet
