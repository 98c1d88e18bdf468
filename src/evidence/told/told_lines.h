// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Words and hardly anything else: no brackets, times or assignments, and at least four words.
bool IsSentence(std::string_view line);

// A poster's line without what is no prose: marks of lists and quotes in front, code in backticks, settings
// (NCCL_P2P_DISABLE=1) and options (--nproc-per-node).
std::string ProseOf(std::string_view line);
// What is left of a list's entry may be short: "a pod hangs:".
bool IsProse(std::string_view prose);

// Which lines stand around the log and are not of it: those outside of its fence; without one, the sentences at the
// top and at the end. Programs print sentences, too, but between their other lines. The command that starts the job
// is neither.
class AroundTheLog {
 public:
  explicit AroundTheLog(std::string_view bytes);
  // Lines in their order.
  bool Holds(std::string_view line, uint32_t number);
  // Not inside of a fence; where there is none nobody knows.
  bool MayHold() const { return !fenced_ || !inside_; }

 private:
  bool fenced_ = false, inside_ = false;
  uint32_t top_ = 0, last_log_ = 0;
};

}  // namespace tacet
