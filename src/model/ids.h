// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tacet {

// A global rank. Distinct from a group rank and from a sequence number, so one cannot be passed for another.
struct Rank {
  int32_t value = -1;
  constexpr bool known() const { return value >= 0; }
  friend constexpr auto operator<=>(Rank, Rank) = default;
};

// A rank's index inside one group.
struct GroupRank {
  int32_t value = -1;
  constexpr bool known() const { return value >= 0; }
  friend constexpr auto operator<=>(GroupRank, GroupRank) = default;
};

enum class GroupIndex : uint32_t { none = 0xffffffffu };
enum class StackId : uint32_t {};  // StackId{} is the empty stack

inline constexpr int64_t kNoTime = INT64_MIN;  // a time that was not recorded

}  // namespace tacet

template <>
struct std::hash<tacet::Rank> {
  size_t operator()(tacet::Rank rank) const { return std::hash<int32_t>()(rank.value); }
};
