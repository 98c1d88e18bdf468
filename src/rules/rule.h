// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/process/standstill.h"
#include "rules/finding.h"

namespace tacet {

// All that rules may read: the job and the answers of the analyses, nothing else.
struct Case {
  const Incident& incident;
  const Analyses& analyses;
  const StandstillView& standstill;
};

// Fired: findings. Unknown: an open question. Clear: neither.
struct RuleAnswer {
  std::vector<Finding> findings;
  std::vector<CannotTell> open;
};

// One cause. The texts serve `tacet explain`, docs/causes and the report alike.
struct Rule {
  std::string_view id;
  std::string_view title;
  std::string_view needs;        // evidence it reads
  std::string_view meaning;      // what it means
  std::string_view look_alikes;  // how it is told from its neighbours
  std::vector<std::string_view> fix;
  std::vector<std::string_view> prevent;
  RuleAnswer (*judge)(const Case& facts);
};

// What a reader of the list of causes looks for.
enum class RuleGroup : uint8_t { processes, devices, calls, numbers, start, network, steps, paths, settings };
constexpr RuleGroup kLastRuleGroup = RuleGroup::settings;
std::string_view Name(RuleGroup group);
std::vector<const Rule*> RulesIn(RuleGroup group);

// Every rule, in the order of the design's table.
std::span<const Rule* const> AllRules();
const Rule* FindRule(std::string_view id);

}  // namespace tacet
