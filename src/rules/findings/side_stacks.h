// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The ranks of one side of a difference, and what tells of their call: a watchdog's timeout, or a recorded call.
struct CallerSide {
  const std::vector<Rank>& ranks;
  const Event* timeout = nullptr;
  const Call* call = nullptr;
};

// "rank 0 is in save_all (train.py:340), ranks 1-3 are in train_step (train.py:94)", of stacks that are at hand. Empty
// where one side has none.
std::string SideStackWords(const Case& facts, const CallerSide& odd, const CallerSide& usual);

// A step, and whether it is about the very call that differs.
struct ThreadStep {
  std::string words;
  std::string place;  // of the thread's call: "publish (meter.py:41)"
  bool proven = false;
};

// What comes first where a thread beside the main one issues one of the calls: threads of a process share the
// order of a group's calls, and each rank's threads may take turns differently. Empty where nothing shows such a
// thread.
ThreadStep SecondThreadStep(const Case& facts, const CallerSide& odd, const CallerSide& usual);

// "loop_tensor (trainjob.py:142)": who called the operation that timed out. Empty where no line tells it.
std::string CallerPlaceWords(const Event& timeout);

// Two timeouts are of two places in the program, or, where the places are not told, of sizes that no one call has.
bool AreDifferentCalls(const Event& timeout, const Event& other);

// Sizes of one call that grow with a batch have a factor in common, or are alike; others are of two calls.
bool LooksLikeAnotherCall(int64_t elements, int64_t other);

}  // namespace tacet
