// SPDX-License-Identifier: Apache-2.0
#include "nsys_steps.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "Iteration: 12" gives "iteration" and leaves "12".
std::string TakeLowerWord(std::string_view& text) {
  std::string word;
  while (!text.empty() && word.size() < 32) {
    const char lower = LowerCase(text.front());
    if ((lower < 'a' || lower > 'z') && !(lower == '_' && !word.empty())) break;
    word += lower;
    text.remove_prefix(1);
  }
  while (word.ends_with('_')) word.pop_back();
  return word;
}

bool IsStepWord(std::string_view word) {
  for (const std::string_view one : {"step", "iter", "iteration", "profilerstep", "train_step", "training_step",
                                     "train_iter", "train_iteration", "batch", "train_batch"})
    if (word == one) return true;
  return false;
}

}  // namespace

bool NsysStepMarks::Add(std::string_view text, uint32_t thread, int64_t start_ns, int64_t end_ns) {
  const std::string word = TakeLowerWord(text);
  if (!IsStepWord(word)) return false;
  while (!text.empty() && std::string_view(" #:=-_([").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  int64_t number = -1;
  if (!text.empty() && !TakeNumber(text, &number)) return false;  // "step forward" is a part of a step
  if (!text.empty() && std::string_view("])/,; ").find(text.front()) == std::string_view::npos) return false;
  if (marks_ >= kMaxMarks) return true;
  ++marks_;
  by_kind_[word + "@" + std::to_string(thread)].push_back({number, start_ns, end_ns});
  return true;
}

std::vector<TrainingStep> NsysStepMarks::Find() const {
  std::vector<TrainingStep> best;
  int64_t longest = 0;
  for (const auto& [kind, marks] : by_kind_) {
    std::vector<TrainingStep> steps = marks;
    std::sort(steps.begin(), steps.end(),
              [](const TrainingStep& a, const TrainingStep& b) { return a.start_ns < b.start_ns; });
    int64_t covered = 0, last_end = INT64_MIN, last_number = INT64_MIN;
    bool nested = false, rising = true;
    for (const TrainingStep& step : steps) {
      nested |= step.start_ns < last_end;
      rising &= step.number >= 0 && step.number > last_number;
      last_end = step.end_ns;
      last_number = step.number;
      covered += step.end_ns - step.start_ns;
    }
    // Equal cover: the map has no order, so the earlier one wins.
    const bool better = covered > longest || (covered == longest && !best.empty() && !steps.empty() &&
                                              steps.front().start_ns < best.front().start_ns);
    if (nested || steps.size() < 2 || !better) continue;
    // Without numbers, or with such that begin again, they are counted.
    if (!rising)
      for (size_t i = 0; i < steps.size(); ++i) steps[i].number = static_cast<int64_t>(i);
    best = std::move(steps);
    longest = covered;
  }
  return best;
}

}  // namespace tacet
