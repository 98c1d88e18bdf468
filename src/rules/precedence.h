// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rules/finding.h"

namespace tacet {

// One line of the table: where `cause` is found, findings of `explains` are its consequences.
struct Explanation {
  std::string_view cause;
  std::vector<std::string_view> explains;
  bool only_weaker = false;  // not those that are surer than `cause` itself
  bool only_milder = false;  // those that their own rule has set below `cause`, as it holds them for its consequence
  bool same_ranks = false;   // only those of ranks that `cause` names: what they did not do, they did not do for it
};

std::span<const Explanation> ExplanationTable();

// Causes that may be found together though neither explains the other.
struct IndependentPair {
  std::string_view a, b;
};
std::span<const IndependentPair> IndependentPairs();

// By the table, directly or through others. Lines that hold only for a less sure finding do not count.
bool Explains(std::string_view cause, std::string_view other);
bool AreIndependent(std::string_view a, std::string_view b);

// Puts findings into the order in which they explain each other: by severity, what nothing explains first, then the
// surer; marks what is explained (`Finding::explained_by`). Findings that tie keep their order.
void OrderByPrecedence(std::vector<Finding>& findings);

}  // namespace tacet
