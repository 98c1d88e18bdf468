// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/printed/output_front.h"
#include "analysis/process/signs_of_life.h"
#include "analysis/timeouts/nameless_waits.h"

namespace tacet {

// Ranks whose program came to its own end, without an error, while others were still waiting for them.
struct EarlyLeavers {
  std::vector<Rank> ranks;
  std::vector<Rank> waiters;      // who noticed: a time that was up, a connection that closed
  const Event* left = nullptr;    // the first of their ends
  const Event* felt = nullptr;    // the first that the others tell
  const OwnLine* last = nullptr;  // where nothing else tells of the end: the last line of the one that went
  bool listed = false;            // ... by the launcher's list of failures, on which it is not
  explicit operator bool() const { return left != nullptr || last != nullptr; }
};

// PyTorch says when a program ends that has not left its groups. In a job that ends well nobody waits then; whoever
// ends because of an error tells that error, and whoever ends last has noticed that the others went.
// Where gloo's ranks tell of nothing but connections that closed, the first that closed was that of the one who tells
// of none: its own words say that it is done, the launcher does not list it among those that failed, or, where
// tracebacks have no names, it alone printed lines behind those of all others.
EarlyLeavers FindEarlyLeavers(const SignsOfLife& signs, const Outcome& outcome, const PrintedLines& printed = {},
                              const OutputFront& front = {}, const NamelessWaits& nameless = {});

}  // namespace tacet
