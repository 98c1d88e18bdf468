// SPDX-License-Identifier: Apache-2.0
#include "lint/environment_lint.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lint/lint_sheet.h"
#include "lint/value_meaning.h"
#include "lint/value_reading.h"

namespace tacet {
namespace {

constexpr size_t kMostPlaces = 8;  // a finding of a thousand ranks names a few of them

}  // namespace

std::string_view Name(EnvironmentSource source) {
  switch (source) {
    case EnvironmentSource::process: return "process";
    case EnvironmentSource::dump: return "environment";
    case EnvironmentSource::manifest: return "manifest";
    case EnvironmentSource::log: return "log";
    case EnvironmentSource::script: return "script";
    case EnvironmentSource::user_conf: return "nccl.conf of the user";
    case EnvironmentSource::host_conf: return "nccl.conf of the host";
  }
  return "";
}

std::string_view Name(LintKind kind) {
  switch (kind) {
    case LintKind::unknown: return "unknown";
    case LintKind::misspelt: return "misspelt";
    case LintKind::never_read: return "never-read";
    case LintKind::misread: return "misread";
    case LintKind::stray_characters: return "stray-characters";
    case LintKind::removed: return "removed";
    case LintKind::renamed: return "renamed";
    case LintKind::too_new: return "too-new";
    case LintKind::old_default: return "old-default";
    case LintKind::slow: return "slow";
    case LintKind::risky: return "risky";
    case LintKind::debugging: return "debugging";
    case LintKind::no_effect: return "no-effect";
    case LintKind::overridden: return "overridden";
    case LintKind::differs: return "differs";
    case LintKind::shared_file: return "shared-file";
  }
  return "";
}

std::string_view Name(LintLevel level) { return level == LintLevel::warning ? "warning" : "note"; }

LintFinding DescribeVariable(LintKind kind, LintLevel level, std::string_view name, std::string_view value) {
  LintFinding finding;
  finding.kind = kind;
  finding.level = level;
  finding.name = name;
  finding.value = value;
  if (const Variable* variable = FindKnownVariable(name)) {
    finding.standard = variable->standard;
    finding.earlier = EarlierDefaults(name);
    finding.effect = variable->effect;
    if (variable->since != 0) finding.since = ReleaseWords(variable->since);
    if (variable->until != 0) finding.until = ReleaseWords(variable->until);
  }
  return finding;
}

void LintSheet::Add(LintKind kind, LintLevel level, const GivenEnvironment& environment, const GivenVariable& variable,
                    std::string headline, std::string advice) {
  auto [at, is_new] = findings_.try_emplace({kind, variable.name, variable.value, headline});
  if (is_new) {
    at->second = DescribeVariable(kind, level, variable.name, variable.value);
    if (std::string meaning = MeaningOfValue(environment, variable); !meaning.empty())
      at->second.effect = std::move(meaning);
    at->second.headline = std::move(headline);
    at->second.advice = std::move(advice);
  }
  AddPlace(at->second, environment, variable);
}

void LintSheet::AddPlace(LintFinding& finding, const GivenEnvironment& environment, const GivenVariable& variable) {
  ++finding.place_count;
  if (finding.places.size() < kMostPlaces)
    finding.places.push_back({environment.file, environment.holder, variable.line});
}

bool LintSheet::Has(const std::string& name, const std::string& value) const {
  for (const auto& [key, finding] : findings_)
    if (finding.name == name && finding.value == value) return true;
  return false;
}

std::string_view LintSheet::Nearest(const std::string& name) {
  const auto found = nearest_.find(name);
  if (found != nearest_.end()) return found->second;
  if (nearest_.size() >= kMostSearches) return "";
  return nearest_.emplace(name, NearestVariable(name)).first->second;
}

std::vector<LintFinding> LintSheet::Take() {
  std::vector<LintFinding> list;
  for (auto& [key, finding] : findings_) list.push_back(std::move(finding));
  findings_.clear();
  std::stable_sort(list.begin(), list.end(), [](const LintFinding& a, const LintFinding& b) {
    return std::tie(a.level, a.name, a.kind, a.value) < std::tie(b.level, b.name, b.kind, b.value);
  });
  return list;
}

const GivenVariable* FindGiven(const GivenEnvironment& environment, std::string_view name) {
  const GivenVariable* last = nullptr;  // of several assignments the last one counts
  for (const GivenVariable& variable : environment.variables)
    if (variable.name == name) last = &variable;
  return last;
}

LintResult LintEnvironments(std::span<const GivenEnvironment> environments, const LintOptions& options) {
  LintResult result;
  result.nccl = options.nccl;
  LintSheet sheet;
  const std::set<const GivenEnvironment*> lone = FindLoneProcesses(environments);
  for (const GivenEnvironment& environment : environments) {
    const ReleaseNumber nccl = options.nccl != 0 ? options.nccl : environment.nccl;
    if (nccl != 0) {
      result.nccl = result.nccl == 0 ? nccl : std::min(result.nccl, nccl);
      result.last_nccl = std::max(result.last_nccl, nccl);
    }
    for (const GivenVariable& given : environment.variables) {
      const Variable* known = FindKnownVariable(given.name);
      result.variables += known != nullptr || !ProductOf(given.name).empty();
      VariableView view{environment, given, known, given.value, nccl, options.hosts == 1, lone.contains(&environment)};
      if (known != nullptr && known->kind == ValueKind::integer && !given.value.empty())
        view.value = std::to_string(ReadNcclNumber(given.value).value);
      CheckVariable(view, sheet);
    }
    CheckCombinations(environment, nccl, sheet);
  }
  CheckOverridden(environments, sheet);
  CheckDifferences(environments, sheet);
  CheckSplitHosts(environments, sheet);
  CheckPartlySet(environments, sheet);
  CheckSharedFiles(environments, sheet);
  result.findings = sheet.Take();
  return result;
}

}  // namespace tacet
