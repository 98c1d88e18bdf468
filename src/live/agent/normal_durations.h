// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "live/agent/box_watch.h"

namespace tacet {

// How long operations took, in steps of a quarter of a doubling from 1 us to about 4 days. Older ones fade.
class DurationHistory {
 public:
  void Add(int64_t ns);
  uint64_t count() const { return total_; }
  // What all but the longest 1 % took at the most, and never fewer than the two longest left out: a first step and one
  // pause must not count as normal. -1 before there are enough.
  int64_t NormalNs() const;

 private:
  static constexpr uint32_t kEnough = 8, kFadeAt = 8192;
  std::array<uint32_t, 160> counts_{};
  uint32_t total_ = 0;
};

// By process, communicator, operation and size class: from issue to end.
class NormalDurations {
 public:
  void Add(const FinishedOperation& finished);
  int64_t NormalNs(const std::string& box, const OperationState& op) const;
  void ForgetBoxesNotIn(const HostState& state);

 private:
  static constexpr size_t kMostHistories = 65536, kMostOfUser = 8192;
  using Key = std::tuple<std::string, uint64_t, OpKind, int>;
  std::map<Key, DurationHistory> histories_;
  std::map<int64_t, size_t> counts_;  // histories, by user
};

}  // namespace tacet
