// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// Frameworks print once for each process that it joins ("GLOBAL_RANK: 0, MEMBER: 1/4"). Where the text ends there, the
// others did not start, or print elsewhere.
struct FewJoined {
  std::vector<Rank> came, missing;
  SourceRef source;  // the last line of those that came
  std::string text;
  std::string words;  // "only rank 0 of 4"
};
// `end`: what the output holds from this line on is told by somebody else, as by a scheduler; 0: nothing is.
std::optional<FewJoined> FindFewJoined(const LogOutline& outline, uint32_t end = 0);

// The same of all outputs of a job, where the last line of every rank says that it waits for the others
// ("rank 2 of 4: waiting for everybody").
std::optional<FewJoined> FindFewWaiting(const Incident& incident);

inline constexpr std::string_view kLaunchAllStep =
    "Check that the launcher starts as many processes as the program expects: with Slurm --ntasks-per-node must be "
    "the number of GPUs per node, with srun before the program; ps shows what runs.";

}  // namespace tacet
