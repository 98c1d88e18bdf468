// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evidence/flight_recorder/flight_recorder_parse.h"

namespace tacet {

// Finds equal things by hash: open addressing over indices into a table that the owner keeps.
class IndexByHash {
 public:
  // The index of the element for which `equal(index)` holds, else `next`, which is then remembered.
  template <typename Equal>
  uint32_t FindOrAdd(uint64_t hash, uint32_t next, Equal equal) {
    if ((count_ + 1) * 2 > slots_.size()) Grow();
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.index_plus_one == 0) {
        slot = {static_cast<uint32_t>(hash), tag, next + 1};
        ++count_;
        return next;
      }
      if (slot.tag == tag && equal(slot.index_plus_one - 1)) return slot.index_plus_one - 1;
    }
  }

 private:
  struct Slot {
    uint32_t home = 0, tag = 0, index_plus_one = 0;
  };
  void Grow();

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// Every distinct frame, stack and shape of a dump once. Thousands of entries share a handful of them.
class FlightTables {
 public:
  // A tensor list: how many elements, and its text "[[262144]]" (capped).
  struct Shape {
    int64_t elements = -1;
    StringId text{};
  };
  // More dimensions than torch itself takes; what claims more is no shape.
  static constexpr size_t kMaxDimensions = 64;

  FlightTables(FlightDump& dump, StringTable& strings) : dump_(dump), strings_(strings) {
    dump_.stacks.assign(1, FlightStack{});
  }

  uint32_t IndexOfFrame(const FlightFrame& frame);
  uint32_t IndexOfStack(std::span<const uint32_t> frames);
  // `code` is, for each tensor, the number of its dimensions and then the dimensions.
  Shape ShapeOf(std::span<const int64_t> code);

 private:
  static constexpr size_t kMaxCachedShapes = 1 << 16;
  static constexpr size_t kMaxCachedCode = 4096;
  struct CachedShape {
    size_t begin, count;
    Shape shape;
  };
  Shape Measure(std::span<const int64_t> code);

  FlightDump& dump_;
  StringTable& strings_;
  IndexByHash frame_index_, stack_index_, shape_index_;
  std::vector<CachedShape> shapes_;
  std::vector<int64_t> shape_code_;
  std::string text_;
};

}  // namespace tacet
