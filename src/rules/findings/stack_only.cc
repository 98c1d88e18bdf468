// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/stack_only.h"

#include <algorithm>

namespace tacet {

bool OnlyStacksTell(const Case& facts) {
  const std::vector<StackReading>& stacks = facts.analyses.stacks;
  if (!facts.analyses.outcome.hangs() || stacks.size() < 2 || stacks.size() != facts.analyses.life.ranks.size())
    return false;
  for (const SourceAnalysis& source : facts.analyses.sources)
    if (!source.groups.empty()) return false;
  // With NCCL the host's stack does not show what the GPU waits for.
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.timeout || life.has_nccl_log) return false;
  return std::all_of(stacks.begin(), stacks.end(), [](const StackReading& reading) { return reading.whole; });
}

std::string_view PointToPointCallOf(const Case& facts, const StackReading& reading) {
  if (reading.place != StackReading::Place::communication) return {};
  const std::string_view function = facts.incident.strings.Get(reading.decisive.function);
  return function == "send" || function == "recv" ? function : std::string_view();
}

bool WaitsByStack(const StackReading& reading) {
  return reading.place == StackReading::Place::communication || reading.in_library;
}

}  // namespace tacet
