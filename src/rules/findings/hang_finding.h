// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// A hang that one rank brought about with or without `operation`: whoever else waits is affected. Words and evidence
// are the rule's.
Finding HangFinding(std::string_view cause, Rank guilty, const Call& operation, const WaitGraph& waits);

}  // namespace tacet
