// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// How the first step of a rule about calls begins, where no call site is known.
inline constexpr std::string_view kFindTheCall = "Find the call in the program (a flight record names its line): ";

// A step of a rule as it stands; where flight records are here, without the advice to take some.
std::string PlainStep(const Incident& incident, std::string_view step);

// The steps of the cause's rule for this call: "Look at train_step (train.py:88): ..." where its record holds the call
// site, else "Find where rank 2 issues all_reduce of 65536 float64 ...". Leaves steps that the finding has already.
void NameCallInSteps(const Case& facts, const Call& call, const std::vector<Rank>& ranks, Finding& finding);

}  // namespace tacet
