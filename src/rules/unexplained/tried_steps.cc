// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/tried_steps.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "NCCL_P2P_DISABLE" of a step that says NCCL_P2P_DISABLE=1, and "--shm-size" of "--shm-size=16g"; not MASTER_PORT of
// MASTER_PORTS.
bool NamesSetting(std::string_view step, std::string_view setting) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_' || c == '-';
  };
  for (size_t at = step.find(setting); at != std::string_view::npos; at = step.find(setting, at + 1)) {
    const size_t end = at + setting.size();
    if ((at == 0 || !is_part(step[at - 1])) && (end == step.size() || !is_part(step[end]))) return true;
  }
  return false;
}

}  // namespace

void PutTriedStepsLast(const Incident& incident, std::vector<Finding>& findings) {
  std::vector<std::string_view> tried;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::environment && event.Means(Meaning::in_prose))
      tried.push_back(event.As<EnvironmentSetting>().name);
  if (tried.empty()) return;
  const auto is_new = [&](const std::string& step) {
    return std::none_of(tried.begin(), tried.end(),
                        [&](std::string_view setting) { return NamesSetting(step, setting); });
  };
  for (Finding& finding : findings) {
    const auto first = std::stable_partition(finding.fix.begin(), finding.fix.end(), is_new);
    for (auto step = first; step != finding.fix.end(); ++step)
      *step = "Tried already, as the text says, at least in part: " + *step;
  }
}

}  // namespace tacet
