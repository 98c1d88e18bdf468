// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// A release of NCCL, as logs and people write it: "2.28.9+cuda13.0", "2.24", "22809", "RCCL 2.22.3".
struct NcclRelease {
  int minor = -1, patch = 0;  // of 2.<minor>.<patch>; -1 unknown
  int cuda = 0;               // 1108 for CUDA 11.8; 0 unknown
  bool rccl = false;

  bool known() const { return minor >= 0; }
  bool AtLeast(int other_minor, int other_patch = 0) const {
    return minor > other_minor || (minor == other_minor && patch >= other_patch);
  }
  bool Before(int other_minor, int other_patch = 0) const { return !AtLeast(other_minor, other_patch); }
  std::string Text() const;  // "NCCL 2.28.9"
};

NcclRelease ParseNcclRelease(std::string_view text);

// The releases whose cost model is known: 2.12 to 2.30. Later ones print their own expectation of every operation.
inline constexpr int kFirstModelled = 12, kLastModelled = 30;
bool HasCostModel(const NcclRelease& release);

}  // namespace tacet
