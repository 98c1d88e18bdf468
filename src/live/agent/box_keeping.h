// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "live/agent/box_state.h"

namespace tacet {

struct KeepRule {
  int64_t orderly_ns = int64_t{10} * 60 * 1'000'000'000;  // after a process ended by itself
  int64_t other_ns = int64_t{24} * 3600 * 1'000'000'000;  // after it vanished, or its box fell silent
};

// Decides which boxes may go. A box of a process that lives never goes, nor one of another host or boot, nor
// one of a job that was suspected to hang: that is evidence.
class BoxKeeping {
 public:
  explicit BoxKeeping(KeepRule rule = {}) : rule_(rule) {}
  // Names of the boxes to remove now. `evidence` are those marked as such already.
  std::vector<std::string> FindExpired(const HostState& state, const std::set<std::string>& evidence) const;

 private:
  KeepRule rule_;
};

}  // namespace tacet
