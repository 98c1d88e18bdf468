// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/failed_check.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "rules/words/topology_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// The rows of tests, or what is said below them.
std::vector<const Event*> ChecksOf(const Incident& incident, bool remarks) {
  std::vector<const Event*> found;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::gpu_check && event.As<GpuCheck>().remark == remarks) found.push_back(&event);
  return found;
}

// "GPU 6", "GPUs 1, 6", "the GPUs" where the table does not tell which.
std::string GpuWords(const std::set<std::string>& gpus) {
  if (gpus.contains("all")) return "all GPUs";
  if (gpus.size() != 1) return "several GPUs";
  const std::string& list = *gpus.begin();
  return list.empty() ? "the GPUs" : (list.find(',') == std::string::npos ? "GPU " : "GPUs ") + list;
}

std::vector<std::string> StepsFor(const std::set<std::string>& gpus) {
  const bool one = gpus.size() == 1 && !gpus.contains("all") && !gpus.begin()->empty() &&
                   gpus.begin()->find(',') == std::string::npos;
  const std::string which = one ? " -i " + *gpus.begin() : "";
  return {one ? "Drain the node, so that no job gets this GPU." : "Drain the node, so that no job gets these GPUs.",
          "Look at the driver's counters: nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT" + which +
              ", and the Xid lines of the kernel log (dmesg -T | grep Xid).",
          "Reset the GPU (nvidia-smi --gpu-reset" + which +
              ") or reboot the node, and run dcgmi diag -r 3 again. If a test fails again, have the GPU replaced."};
}

}  // namespace

void JudgeFailedChecks(const Case& facts, RuleAnswer& answer) {
  constexpr size_t kMostCited = 4;
  Finding finding;
  std::vector<std::string> tests;
  std::set<std::string> gpus;
  for (const Event* event : ChecksOf(facts.incident, false)) {
    const auto& check = event->As<GpuCheck>();
    if (!check.failed || check.of_setup) continue;
    tests.push_back(check.test);
    gpus.insert(check.gpus);
    if (finding.evidence.size() < kMostCited)
      finding.evidence.push_back(CiteEvent(*event, "the " + check.test + " test failed"));
  }
  if (tests.empty()) return;
  if (gpus.size() > 1) gpus.erase("");
  std::set<std::string> told;
  for (const Event* event : ChecksOf(facts.incident, true))
    if (const auto& check = event->As<GpuCheck>();
        !check.of_setup && finding.evidence.size() < kMostCited && told.insert(check.test).second)
      finding.evidence.push_back(CiteEvent(*event, "the reason given by the " + check.test + " test"));
  finding.cause = "gpu-fault";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::likely;
  finding.headline = GpuWords(gpus) + " failed the " + ListWords(tests) +
                     (tests.size() == 1 ? " test of dcgmi diag" : " tests of dcgmi diag");
  finding.fix = StepsFor(gpus);
  answer.findings.push_back(std::move(finding));
}

std::string CheckWords(const Incident& incident) {
  size_t passed = 0;
  std::vector<std::string> failed;
  for (const Event* event : ChecksOf(incident, false)) {
    const auto& check = event->As<GpuCheck>();
    if (check.failed)
      failed.push_back(check.test);
    else
      ++passed;
  }
  if (!failed.empty())
    return "the " + ListWords(failed) + (failed.size() == 1 ? " test" : " tests") +
           " of dcgmi diag failed, which is about the software of the host and not about a GPU";
  if (passed == 0)
    for (const Event* event : ChecksOf(incident, true))
      if (event->As<GpuCheck>().of_setup) return event->As<GpuCheck>().test;
  if (passed == 0) return "";
  return "no test of dcgmi diag failed (" + std::to_string(passed) + " passed)";
}

}  // namespace tacet
