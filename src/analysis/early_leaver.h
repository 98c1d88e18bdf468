// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/signs_of_life.h"

namespace tacet {

// Ranks whose program came to its own end, without an error, while others were still waiting for them.
struct EarlyLeavers {
  std::vector<Rank> ranks;
  std::vector<Rank> waiters;    // who noticed: a time that was up, a connection that closed
  const Event* left = nullptr;  // the first of their ends
  const Event* felt = nullptr;  // the first that the others tell
  explicit operator bool() const { return left != nullptr; }
};

// PyTorch says when a program ends that has not left its groups. In a job that ends well nobody waits then; whoever
// ends because of an error tells that error, and whoever ends last has noticed that the others went.
EarlyLeavers FindEarlyLeavers(const SignsOfLife& signs, const Outcome& outcome);

}  // namespace tacet
