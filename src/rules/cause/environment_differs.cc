// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "lint/variable_table.h"
#include "model/events/event_words.h"
#include "rules/findings/init_finding.h"
#include "rules/findings/odd_holders.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Those that must be equal on all ranks, or ranks choose different algorithms or networks for one collective and hang,
// truncate messages or cannot connect. All are read while a communicator is set up.
std::vector<std::string_view> MustAgree() {
  std::vector<std::string_view> names;
  for (const Variable& variable : AllVariables())
    if (variable.agreement == Agreement::must) names.push_back(variable.name);
  return names;
}

bool JobFailed(const Case& facts) {
  const Outcome& outcome = facts.analyses.outcome;
  return outcome.hangs() || outcome.first_failure ||
         std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
           return event.kind == EventKind::nccl_error ||
                  IsFatalWarning(event, {"network-type-mismatch", "message-truncated", "inconsistent-channels",
                                         "no-transport", "connect-failed"});
         });
}

std::string HolderWords(const Case& facts, const Event& event) {
  ToldEvents one;
  TakeTold(facts, event, one);
  return TellerWords(one);
}

// value -> who states it, one event for each process. Empty unless at least two values are there.
Holders Compare(const Case& facts, EventKind kind, std::string_view name) {
  Holders holders;
  std::set<std::pair<uint32_t, std::string>> seen;
  for (const Event& event : facts.incident.events) {
    if (event.kind != kind || event.speaker == kNobody) continue;
    const auto& setting = event.As<EnvironmentSetting>();
    if (kind == EventKind::environment && setting.name != name) continue;
    std::string value(kind == EventKind::environment ? std::string_view(setting.value) : WordOf(event));
    if (kind == EventKind::nccl_version) value = value.substr(0, value.find('+'));
    if (seen.emplace(event.speaker, value).second) holders[value].push_back(&event);
  }
  return holders.size() > 1 ? holders : Holders{};
}

// Processes that finished their set-up and print their settings, but not this one: they do not have it.
const Event* FindWithout(const Case& facts, std::string_view name) {
  std::set<uint32_t> tells, has, done;
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::init_completed) done.insert(event.speaker);
    if (event.kind != EventKind::environment || event.Means(Meaning::in_prose)) continue;
    tells.insert(event.speaker);
    if (event.As<EnvironmentSetting>().name == name) has.insert(event.speaker);
  }
  if (has.empty()) return nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::environment && !has.contains(event.speaker) && done.contains(event.speaker))
      return &event;
  return nullptr;
}

Finding DifferenceFinding(const Case& facts, const Holders& holders, std::string_view what, bool networks = false) {
  const bool failed = JobFailed(facts), hangs = facts.analyses.outcome.hangs();
  Finding finding;
  finding.cause = "environment-differs";
  finding.status = hangs ? Status::hang : failed ? Status::crash : Status::degraded;
  finding.severity = failed ? Severity::critical : Severity::warning;
  finding.confidence = failed ? Confidence::likely : Confidence::certain;
  finding.ranks = OddHolders(holders);
  for (const auto& [value, events] : holders) {
    const std::string holder = HolderWords(facts, *events.front());
    // A setting is quoted as NAME=VALUE behind these words.
    const bool setting = events.front()->kind == EventKind::environment;
    std::string says = setting ? "the setting of " : "";
    says += holder;
    if (!setting) says.append(networks ? " uses " : " has ").append(what).append(" ").append(value);
    finding.evidence.push_back(CiteEvent(*events.front(), std::move(says)));
  }
  return finding;
}

std::string ValuesWords(const Case& facts, const Holders& holders) {
  std::string text;
  for (const auto& [value, events] : holders)
    text += (text.empty() ? "" : ", ") + (value.empty() ? "(empty)" : value) + " on " +
            HolderWords(facts, *events.front()) + (events.size() > 1 ? " and others" : "");
  return text;
}

// What came of it, beside the settings: the first line in which NCCL meets what it does not expect.
void CiteFailure(const Case& facts, Finding& finding) {
  for (const Event& event : facts.incident.events)
    if (IsFatalWarning(event, {"message-truncated", "inconsistent-channels", "no-transport", "connect-failed"})) {
      finding.evidence.insert(
          finding.evidence.begin() + static_cast<ptrdiff_t>(std::min<size_t>(finding.evidence.size(), 2)),
          CiteEvent(event, "the failure that follows"));
      return;
    }
}

// The versions of the libraries are not in question.
std::vector<std::string> SettingSteps() {
  return {
      "Print env | grep NCCL on all ranks, and compare; mpirun (-x), docker (-e) and ssh pass on only the variables "
      "they are given, and so does srun with --export=NAMES.",
      "/etc/nccl.conf and ~/.nccl.conf are read too, and may differ between hosts."};
}

bool JudgeSettings(const Case& facts, RuleAnswer& answer) {
  std::vector<Finding> differences;
  for (const std::string_view name : MustAgree()) {
    const Holders holders = Compare(facts, EventKind::environment, name);
    if (holders.empty()) continue;
    differences.push_back(DifferenceFinding(facts, holders, name));
    differences.back().headline = std::string(name) + " differs between ranks (" + ValuesWords(facts, holders) + ")";
  }
  if (differences.empty()) return false;
  constexpr size_t kMostNamed = 3;
  Finding finding = std::move(differences.front());
  for (size_t i = 1; i < differences.size(); ++i) {
    if (i < kMostNamed) finding.headline += "; " + differences[i].headline;
    finding.evidence.insert(finding.evidence.end(), differences[i].evidence.begin(), differences[i].evidence.end());
  }
  if (differences.size() > kMostNamed)
    finding.headline += " and " + std::to_string(differences.size() - kMostNamed) + " more differ";
  finding.headline += ": ranks may choose different algorithms or protocols for one collective";
  CiteFailure(facts, finding);
  finding.fix = SettingSteps();
  answer.findings.push_back(std::move(finding));
  return true;
}

// Set on some, absent on others. It explains a failure; by itself it is what a launcher's rank 0 often has.
bool JudgeAbsentSettings(const Case& facts, RuleAnswer& answer) {
  const bool failed = JobFailed(facts);
  for (const std::string_view name : MustAgree()) {
    const Event* without = FindWithout(facts, name);
    if (!without) continue;
    const ToldEvents with = CollectTold(facts, [&](const Event& e) { return e.As<EnvironmentSetting>().name == name; });
    // Some settings are printed by rank 0 for all. What another rank prints, each prints for itself.
    const bool each = !with.ranks.empty() && with.ranks.front() != Rank{0};
    if (!failed && !each) continue;
    Finding finding = ToldFinding(facts, "environment-differs", with, "the process that sets it");
    finding.fix = SettingSteps();
    finding.confidence = Confidence::possible;
    if (!failed) {
      finding.status = Status::degraded;
      finding.severity = Severity::warning;
    }
    if (with.ranks.size() * 2 >= facts.analyses.life.ranks.size()) finding.ranks.clear();
    finding.headline = std::string(name) + "=" + with.events.front()->As<EnvironmentSetting>().value + " is set on " +
                       TellerWords(with) +
                       (with.ranks.size() == 1 && facts.analyses.life.ranks.size() > 2
                            ? " only"
                            : " but not on " + HolderWords(facts, *without)) +
                       ": NCCL settings must be the same on all ranks";
    finding.evidence.push_back(CiteEvent(*without, HolderWords(facts, *without) + " lists its settings, and " +
                                                       std::string(name) + " is not among them"));
    answer.findings.push_back(std::move(finding));
    return true;
  }
  return false;
}

bool JudgeNetworks(const Case& facts, RuleAnswer& answer) {
  const ToldEvents refused =
      CollectTold(facts, [](const Event& e) { return e.As<Warning>().id == "network-type-mismatch"; });
  const Holders holders = Compare(facts, EventKind::network, "");
  // Sockets and another network in one communicator: setup that is not over cannot succeed. Plugins for InfiniBand have
  // names of their own.
  const InitView init = ReadInit(facts);
  const bool in_setup =
      holders.contains("Socket") && !init.started.empty() && init.completed.empty() && !init.issued_any;
  if (!refused && (holders.empty() || !(JobFailed(facts) || in_setup))) return false;
  Finding finding = DifferenceFinding(facts, holders, "the network", true);
  if (!refused && !JobFailed(facts)) {
    finding.severity = Severity::critical;
    finding.status = Status::undetermined;
    finding.confidence = Confidence::likely;
  }
  if (refused) {
    finding.severity = Severity::critical;
    finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
    finding.confidence = Confidence::certain;
    finding.affected_ranks = refused.ranks;
    for (const Rank rank : finding.ranks) std::erase(finding.affected_ranks, rank);
    finding.evidence.insert(finding.evidence.begin(),
                            CiteEvent(*refused.events.front(), "one end uses sockets (3), the other InfiniBand (4)"));
  }
  finding.headline = holders.empty()
                         ? "two ranks use different networks, sockets and InfiniBand: " + TellerWords(refused) +
                               " refused the connection" + RankUnknownWords(refused)
                         : "ranks use different networks and cannot connect: " + ValuesWords(facts, holders);
  finding.fix = {
      "Compare the lines 'Using network' and 'NET/IB : Using' of all ranks; find out why some ranks have no adapter "
      "(device files in the container, a missing plugin, a different LD_LIBRARY_PATH).",
      "Give all ranks the same NCCL_NET, NCCL_IB_DISABLE and NCCL_IB_HCA: mpirun and ssh pass on only the variables "
      "they are given (-x NAME)."};
  if (holders.empty())
    answer.open.push_back(
        {"Which rank uses which network?", "NCCL logs of all ranks with NCCL_DEBUG=INFO ('Using network')"});
  answer.findings.push_back(std::move(finding));
  return true;
}

void JudgeVersions(const Case& facts, RuleAnswer& answer) {
  if (const Holders versions = Compare(facts, EventKind::nccl_version, ""); !versions.empty()) {
    Finding finding = DifferenceFinding(facts, versions, "NCCL");
    finding.confidence = Confidence::likely;
    finding.headline = "ranks run different versions of NCCL: " + ValuesWords(facts, versions);
    answer.findings.push_back(std::move(finding));
    return;
  }
  const Holders drivers = Compare(facts, EventKind::driver_version, "");
  if (drivers.empty()) return;
  // Different drivers are allowed, and worth a look only where something fails.
  Finding finding = DifferenceFinding(facts, drivers, "the CUDA driver");
  finding.severity = Severity::note;
  finding.status = Status::degraded;
  finding.confidence = Confidence::possible;
  finding.headline = "hosts have different CUDA drivers: " + ValuesWords(facts, drivers);
  finding.affected_ranks = std::move(finding.ranks);
  finding.ranks.clear();
  answer.findings.push_back(std::move(finding));
}

}  // namespace

static RuleAnswer JudgeEnvironmentDiffers(const Case& facts) {
  RuleAnswer answer;
  if (JudgeNetworks(facts, answer) || JudgeSettings(facts, answer) || JudgeAbsentSettings(facts, answer)) return answer;
  JudgeVersions(facts, answer);
  return answer;
}

extern const Rule kEnvironmentDiffersRule;
const Rule kEnvironmentDiffersRule = {
    "environment-differs",
    "Ranks run with different settings, versions or networks",
    "NCCL logs of several ranks (ENV lines, version, 'Using network')",
    "All ranks of a communicator must choose the same algorithm, protocol, channels and network, and each chooses for "
    "itself from its own environment. Where variables, NCCL versions or networks differ, ranks cannot connect, "
    "truncate "
    "each other's messages, or hang.",
    "Two ranks in different collectives, or with different sizes, give similar errors: compare the calls first. A "
    "variable that is the same on all ranks and slows them down is a separate cause (environment-cripples).",
    {"Print env | grep NCCL on all ranks, and compare; mpirun (-x), docker (-e) and ssh pass on only the variables "
     "they are given, and so does srun with --export=NAMES.",
     "/etc/nccl.conf and ~/.nccl.conf are read too, and may differ between hosts.",
     "Use one image on all hosts: python -c 'import torch; print(torch.cuda.nccl.version())' must print the same on "
     "all hosts."},
    {"Keep NCCL variables in one reviewed file for all jobs and hosts."},
    JudgeEnvironmentDiffers};

}  // namespace tacet
