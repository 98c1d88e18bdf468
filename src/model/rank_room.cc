// SPDX-License-Identifier: Apache-2.0
#include "model/rank_room.h"

#include <algorithm>

namespace tacet {
namespace {

// A place costs up to about 120 bytes and a rank up to about 900, all tables and the written report together. These
// many are free, so that one log of a job of 16,384 ranks with its largest groups is told in full (about 30 MB).
constexpr int64_t kFreePlaces = 1 << 18;
// Beyond them: 120 bytes a place against 8 bytes of memory for each byte of input.
constexpr uint64_t kBytesPerPlace = 16;

}  // namespace

RankRoom::RankRoom(uint64_t input_bytes)
    : left_(kFreePlaces + static_cast<int64_t>(std::min(input_bytes / kBytesPerPlace, uint64_t{1} << 40))) {}

bool RankRoom::Take(int64_t count, int64_t price) {
  if (count < 0 || count > left_ / price) return false;
  left_ -= count * price;
  return true;
}

}  // namespace tacet
