// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "rules/rule.h"

namespace tacet {

// What the rules about ranks that stand still share: the finding with ranks, operation, group, victims, and the
// evidence of the wait itself. Empty when no rank stands still for this reason. Ranks of which nothing at all was
// collected are named along when `with_absent`.
std::optional<Finding> StandstillFinding(const Case& facts, StandstillKind kind, std::string_view cause);

// "rank 2 has issued 32, its peers wait in all_reduce #33 on default_pg".
std::string WaitWords(const Case& facts);

}  // namespace tacet
