// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/events/event.h"

namespace tacet {

// When something happened, as closely as its line tells: one that is written with whole seconds may have been printed
// at any moment of that second. Both are kNoTime where the line has no time.
struct TimeSpan {
  int64_t earliest_ns = kNoTime, latest_ns = kNoTime;
  bool known() const { return earliest_ns != kNoTime; }
};

TimeSpan TimeOf(const Event& event);

enum class TimeOrder : uint8_t { unordered, before, after };

// Of a against b. Unordered where a time is missing or the spans overlap.
TimeOrder OrderOf(const Event& a, const Event& b);

}  // namespace tacet
