// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lint/environment_lint.h"
#include "rules/rule.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kMostCited = 6;

// What other causes name already, or what a log cannot show for sure, is left to `tacet lint`.
bool IsWorthANote(const LintFinding& finding) {
  switch (finding.kind) {
    case LintKind::slow:
    case LintKind::differs:
    case LintKind::debugging:
    case LintKind::no_effect:
    case LintKind::overridden:
    case LintKind::renamed: return false;
    default: return finding.level == LintLevel::warning;
  }
}

using Citations = std::map<std::pair<std::string, std::string>, const Event*>;  // name and value -> the first line

GivenEnvironment CollectLogged(const Incident& incident, Citations& citations) {
  GivenEnvironment logged;
  logged.source = EnvironmentSource::log;
  for (const Event& event : incident.events) {
    if (event.kind == EventKind::nccl_version && logged.nccl == 0)
      logged.nccl = ParseReleaseNumber(event.As<Version>().number);
    if (event.kind != EventKind::environment || event.Means(Meaning::in_prose)) continue;
    const auto& [name, value] = event.As<EnvironmentSetting>();
    if (citations.try_emplace({name, value}, &event).second)
      logged.variables.push_back({name, value, event.source.line});
  }
  return logged;
}

RuleAnswer JudgeMistakes(const Case& facts) {
  RuleAnswer answer;
  Citations citations;
  const GivenEnvironment logged = CollectLogged(facts.incident, citations);
  if (logged.variables.empty()) return answer;
  LintOptions options;
  options.hosts = NodesOf(facts.incident) == 1 || HostsSeen(facts.incident).size() == 1 ? 1 : 0;
  Finding finding;
  std::string names;
  for (const LintFinding& one : LintEnvironments({&logged, 1}, options).findings) {
    if (!IsWorthANote(one)) continue;
    const auto cited = citations.find({one.name, one.value});
    if (cited == citations.end() || finding.evidence.size() >= kMostCited) continue;
    finding.evidence.push_back(CiteEvent(*cited->second, one.headline + "; " + one.advice));
    names += (names.empty() ? "" : ", ") + one.name + "=" + one.value;
    finding.fix.push_back(one.name + ": " + one.advice + ".");
  }
  if (finding.evidence.empty()) return answer;
  finding.cause = "environment-mistake";
  finding.status = Status::healthy;
  finding.severity = Severity::note;
  finding.confidence = Confidence::certain;
  finding.headline = "settings worth checking: " + names;
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace

extern const Rule kEnvironmentMistakeRule;
const Rule kEnvironmentMistakeRule = {
    "environment-mistake",
    "A setting is risky, outdated, or does not do what it seems to do",
    "NCCL logs (NCCL_DEBUG=INFO prints ENV lines since 2.18)",
    "NCCL does not validate its variables: a word where it expects a number is read as 0, an unknown name is ignored "
    "without a message, and a default of an older release that is still set overrides a better one. Such a setting is "
    "reported as a note; it is never the verdict.",
    "Settings that force a slow path, and settings that differ between ranks, are separate causes.",
    {"'tacet lint' also checks scripts, nccl.conf and running processes, and shows the default, effect and history of "
     "each variable."},
    {"Run 'tacet lint --strict' on job scripts before they are merged."},
    JudgeMistakes};

}  // namespace tacet
