// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/timeline.h"

namespace tacet {

// Finds the ranges that mark the iterations of a training loop. There is no agreed name, so a range counts when its
// text begins like an iteration and may end in a number:
//   ProfilerStep#12    step 12    Iteration: 3    iter_7    train_step    training_step    batch 5
class NsysStepMarks {
 public:
  // True when the text looks like a mark.
  bool Add(std::string_view text, uint32_t thread, int64_t start_ns, int64_t end_ns);
  // The marks of one kind and thread that cover most time, at least two, not nested in each other.
  std::vector<TrainingStep> Find() const;

 private:
  static constexpr size_t kMaxMarks = size_t{1} << 20;
  std::unordered_map<std::string, std::vector<TrainingStep>> by_kind_;  // word and thread
  size_t marks_ = 0;
};

}  // namespace tacet
