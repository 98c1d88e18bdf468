// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// What the rules about ranks that stand still share: the finding with ranks, operation, group, victims, and the
// evidence of the wait itself. Empty when no rank stands still for this reason. Ranks of which nothing at all was
// collected are named along when `with_absent`.
std::optional<Finding> StandstillFinding(const Case& facts, StandstillKind kind, std::string_view cause);

// What the ranks of this kind owe: "not issued all_reduce #33 on default_pg"; of a message, "not sent what rank 3 waits
// for in recv #97 on default_pg", since the operation is the half of the rank that waits.
std::string OwedWords(const Case& facts, StandstillKind kind);

// "ranks 0, 1 and 3 wait in all_reduce #33 on default_pg"; "failed in" where these ranks are `gone`, all others ended
// with an error and nobody's time was up: then nobody waits anymore.
std::string WaitWords(const Case& facts, const std::vector<Rank>& gone = {});

}  // namespace tacet
