// SPDX-License-Identifier: Apache-2.0
#include "preflight/preflight_judge.h"

#include <algorithm>

#include "launch/lint_sources.h"

namespace tacet {
namespace {

// Keys that must be equal on all hosts. Kernels and firmware differ while a cluster is being updated, and work
// together.
struct EqualKey {
  const char *key, *id, *what;
  CheckLevel level;
  const char* advice;
};
constexpr EqualKey kEqualKeys[] = {
    {"nccl", "nccl", "NCCL", CheckLevel::fail, "use one image or environment on all hosts"},
    {"torch", "pytorch", "PyTorch", CheckLevel::fail, "use one image or environment on all hosts"},
    {"cuda", "cuda", "PyTorch's CUDA", CheckLevel::fail, "use one image or environment on all hosts"},
    {"driver", "driver", "NVIDIA driver", CheckLevel::fail, "install one driver everywhere, or exclude the host"},
    {"gpus", "gpus", "GPUs", CheckLevel::fail,
     "look for a GPU that fell off the bus (dmesg: Xid 79), or exclude the host"},
    {"gpu_modes", "gpu-modes", "GPU modes", CheckLevel::warn, "set ECC and MIG the same (nvidia-smi -e, -mig)"},
    {"rdma_ports", "rdma-ports", "RDMA ports", CheckLevel::fail,
     "check the ports (ibstat): one is down, slower or missing"},
    {"tacet", "tacet", "tacet", CheckLevel::fail, "install one version of tacet everywhere"},
    {"rdma_firmware", "firmware", "adapter firmware", CheckLevel::warn, "update the firmware of that host"},
    {"kernel", "kernel", "kernel", CheckLevel::warn, "update that host when it is free"},
    {"cpu", "cpu", "processor", CheckLevel::warn, "expect the pace of the slowest host"},
    {"cores", "cores", "cores", CheckLevel::warn,
     "check the CPU affinity that the launcher sets (srun --cpus-per-task, --bind-to)"},
    {"port_range", "port-range", "range of local ports", CheckLevel::warn,
     "set net.ipv4.ip_local_port_range to the same values"}};

PreflightCheck LintCheck(const PreflightEvidence& evidence, std::vector<LintFinding>& findings) {
  LintOptions options;
  options.hosts = static_cast<int>(evidence.hosts.size());
  for (const PreflightHost& host : evidence.hosts)
    if (options.nccl == 0) options.nccl = ParseReleaseNumber(host.facts.Value("nccl"));
  findings = LintEnvironments(evidence.environments, options).findings;
  PreflightCheck check{"environment", CheckLevel::ok, {}, "no problem in the environment variables", ""};
  size_t warnings = 0;
  for (const LintFinding& finding : findings) {
    if (finding.level != LintLevel::warning) continue;
    ++warnings;
    // What must be equal and is not ends in a hang; the rest is worth a look.
    if (finding.kind == LintKind::differs && check.level != CheckLevel::fail) {
      check = {"environment", CheckLevel::fail, {}, finding.headline, finding.advice};
      for (const LintPlace& place : finding.places)
        for (const PreflightHost& host : evidence.hosts)
          if (place.holder.ends_with(" on " + host.name)) check.hosts.push_back(host.name);
    }
  }
  if (warnings > 0 && check.level == CheckLevel::ok)
    check = {"environment",
             CheckLevel::warn,
             {},
             std::to_string(warnings) + (warnings == 1 ? " setting is worth checking" : " settings are worth checking"),
             "'tacet lint' shows them"};
  return check;
}

}  // namespace

std::string_view Name(CheckLevel level) {
  switch (level) {
    case CheckLevel::ok: return "ok";
    case CheckLevel::warn: return "warn";
    case CheckLevel::fail: return "fail";
    case CheckLevel::skipped: return "skipped";
  }
  return "";
}

std::string_view Name(PreflightVerdict verdict) {
  switch (verdict) {
    case PreflightVerdict::go: return "go";
    case PreflightVerdict::no_go: return "no-go";
    case PreflightVerdict::undetermined: return "undetermined";
  }
  return "";
}

std::string HostList(const std::vector<std::string>& hosts) {
  constexpr size_t kMostNamed = 4;
  if (hosts.empty()) return "no host";
  std::string words = hosts[0];
  const size_t shown = std::min(hosts.size(), kMostNamed);
  for (size_t i = 1; i < shown; ++i) words += (i + 1 == shown && shown == hosts.size() ? " and " : ", ") + hosts[i];
  if (shown < hosts.size()) words += " and " + std::to_string(hosts.size() - shown) + " more";
  return words;
}

OddOnes FindOddOnes(const std::map<std::string, std::vector<std::string>>& by_value) {
  OddOnes odd;
  if (by_value.size() < 2) return odd;
  const auto usual = std::max_element(by_value.begin(), by_value.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool tie = std::count_if(by_value.begin(), by_value.end(),
                                 [&](const auto& one) { return one.second.size() == usual->second.size(); }) > 1;
  for (const auto& [value, hosts] : by_value) {
    if (!tie && value == usual->first) continue;
    odd.hosts.insert(odd.hosts.end(), hosts.begin(), hosts.end());
    odd.says += (odd.says.empty() ? "" : ", ") + HostList(hosts) + (hosts.size() == 1 ? " has " : " have ") +
                (value.empty() ? "none" : value);
  }
  if (!tie) {
    const size_t others = usual->second.size();
    odd.says += ", " + (others == 1 ? usual->second[0] + " has " : std::to_string(others) + " others have ") +
                (usual->first.empty() ? "none" : usual->first);
  }
  return odd;
}

// "32768 60999", as the kernel writes a range of ports, is shown as "32768 to 60999".
static std::string ShownValue(const HostFacts& facts, const std::string& key) {
  std::string value = facts.Value(key);
  if (key != "port_range") return value;
  const size_t first = value.find_first_of(" \t"), next = value.find_first_not_of(" \t", first);
  if (first != std::string::npos && next != std::string::npos) value.replace(first, next - first, " to ");
  return value;
}

// What the checks are for, and no host has: said, so that GO is not read as "the GPUs are fine".
static void TellAbsent(const PreflightEvidence& evidence, const EqualKey& one, std::vector<PreflightCheck>& checks) {
  const std::string_view key = one.key;
  const bool broken = std::any_of(evidence.hosts.begin(), evidence.hosts.end(),
                                  [](const PreflightHost& host) { return !host.facts.Value("gpu_problem").empty(); });
  if (evidence.hosts.empty()) return;
  const std::string where = evidence.hosts.size() > 1 ? " on any host" : "";
  if (key == "gpus" && !broken)
    checks.push_back(
        {one.id, CheckLevel::skipped, {}, "nvidia-smi was not found" + where + ", so GPUs were not checked", ""});
  if (key != "torch") return;
  const bool unasked = std::all_of(evidence.hosts.begin(), evidence.hosts.end(),
                                   [](const PreflightHost& host) { return host.facts.Value(kPythonSkipped) == "1"; });
  checks.push_back(
      {one.id,
       CheckLevel::skipped,
       {},
       unasked ? "PyTorch was not checked (--python none)" : "PyTorch was not found" + where + ", so it was not checked",
       ""});
}

void JudgeVersions(const PreflightEvidence& evidence, std::vector<PreflightCheck>& checks) {
  for (const EqualKey& one : kEqualKeys) {
    std::map<std::string, std::vector<std::string>> by_value;
    for (const PreflightHost& host : evidence.hosts) by_value[ShownValue(host.facts, one.key)].push_back(host.name);
    if (by_value.empty() || (by_value.size() == 1 && by_value.begin()->first.empty())) {  // nobody has it
      TellAbsent(evidence, one, checks);
      continue;
    }
    const OddOnes odd = FindOddOnes(by_value);
    if (odd.found())
      checks.push_back({one.id, one.level, odd.hosts,
                        std::string(one.what) +
                            (one.what[std::string_view(one.what).size() - 1] == 's' ? " differ: " : " differs: ") +
                            odd.says,
                        one.advice});
    else
      checks.push_back({one.id,
                        CheckLevel::ok,
                        {},
                        by_value.begin()->first + (evidence.hosts.size() > 1 ? " on all hosts" : ""),
                        ""});
  }
}

PreflightReport JudgePreflight(PreflightEvidence evidence) {
  PreflightReport report;
  JudgeArrival(evidence, report.checks);
  JudgeVersions(evidence, report.checks);
  JudgeResources(evidence, report.checks);
  JudgeNames(evidence, report.checks);
  report.checks.push_back(LintCheck(evidence, report.lint));
  JudgeLinks(evidence, report.checks);
  JudgeSpeed(evidence, report.checks);
  const auto order = [](CheckLevel level) {
    return level == CheckLevel::fail ? 0 : level == CheckLevel::warn ? 1 : level == CheckLevel::skipped ? 2 : 3;
  };
  std::stable_sort(report.checks.begin(), report.checks.end(),
                   [&](const PreflightCheck& a, const PreflightCheck& b) { return order(a.level) < order(b.level); });
  const bool failed = !report.checks.empty() && report.checks[0].level == CheckLevel::fail;
  report.verdict = failed                   ? PreflightVerdict::no_go
                   : evidence.hosts.empty() ? PreflightVerdict::undetermined
                                            : PreflightVerdict::go;
  report.evidence = std::move(evidence);
  return report;
}

}  // namespace tacet
