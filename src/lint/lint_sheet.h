// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "lint/environment_lint.h"

namespace tacet {

// Findings while they are collected: what many ranks have in common is one finding with many places.
class LintSheet {
 public:
  // A new finding is filled with what is known of the variable.
  void Add(LintKind kind, LintLevel level, const GivenEnvironment& environment, const GivenVariable& variable,
           std::string headline, std::string advice);
  void AddPlace(LintFinding& finding, const GivenEnvironment& environment, const GivenVariable& variable);
  bool Has(const std::string& name, const std::string& value) const;
  std::vector<LintFinding> Take();
  // NearestVariable, once per name: a name may stand in a thousand environments, and a hostile file may hold a million.
  std::string_view Nearest(const std::string& name);

 private:
  static constexpr size_t kMostSearches = 1000;
  std::map<std::string, std::string_view, std::less<>> nearest_;
  std::map<std::tuple<LintKind, std::string, std::string, std::string>, LintFinding> findings_;
};

LintFinding DescribeVariable(LintKind kind, LintLevel level, std::string_view name, std::string_view value);

// Variables of InfiniBand have no effect there: it is forbidden, or sockets are chosen.
bool HasNoInfiniBand(const GivenEnvironment& environment);
bool IsOfInfiniBand(std::string_view name);

// What looks at one variable by itself.
struct VariableView {
  const GivenEnvironment& environment;
  const GivenVariable& given;
  const Variable* known;
  std::string value;   // as NCCL reads it, for numbers
  ReleaseNumber nccl;  // 0: not known
  bool one_host;
  bool lone;  // NCCL_HOSTID makes the process a host of its own
};
void CheckVariable(const VariableView& view, LintSheet& sheet);

// What looks at variables together: of one environment, and of one with another.
void CheckCombinations(const GivenEnvironment& environment, ReleaseNumber nccl, LintSheet& sheet);
void CheckOverridden(std::span<const GivenEnvironment> environments, LintSheet& sheet);
void CheckDifferences(std::span<const GivenEnvironment> environments, LintSheet& sheet);
// Processes that share a host with others, and whose NCCL_HOSTID no other process has.
std::set<const GivenEnvironment*> FindLoneProcesses(std::span<const GivenEnvironment> environments);
void CheckSplitHosts(std::span<const GivenEnvironment> environments, LintSheet& sheet);
void CheckPartlySet(std::span<const GivenEnvironment> environments, LintSheet& sheet);
void CheckSharedFiles(std::span<const GivenEnvironment> environments, LintSheet& sheet);

const GivenVariable* FindGiven(const GivenEnvironment& environment, std::string_view name);

}  // namespace tacet
