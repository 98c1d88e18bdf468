// SPDX-License-Identifier: Apache-2.0
#include "model/events/gpu_state.h"

#include "base/text_scan.h"

namespace tacet {

GpuState ReadGpuState(std::string_view row) {
  const auto number = [&](std::string_view name) {
    auto rest = After(row, name);
    double value = 0;
    return rest && TakeDouble(*rest, &value) && value >= 0 && value < 1e6 ? value : -1.0;
  };
  GpuState state;
  for (const std::string_view name : {"clocks.sm=", "clocks.current.sm=", "clocks.gr=", "clocks.current.graphics="})
    if (state.mhz < 0) state.mhz = number(name);
  state.most_mhz = number("clocks.max.sm=");
  state.celsius = number("temperature.gpu=");
  // "| N/A   91C    P0   212W / 700W | ...", and of gpustat "| 41'C, 100 %"
  const size_t bar = row.find('|');
  for (const std::string_view mark : {"C ", "'C,"}) {
    const std::string_view cell = bar == std::string_view::npos ? "" : row.substr(bar + 1, 40);
    const size_t end = cell.find(mark);
    size_t begin = end == std::string_view::npos ? 0 : end;
    while (begin > 0 && IsDigit(cell[begin - 1])) --begin;
    std::string_view digits = end == std::string_view::npos ? "" : cell.substr(begin, end - begin);
    double value = 0;
    if (state.celsius < 0 && !digits.empty() && digits.size() < 4 && TakeDouble(digits, &value)) state.celsius = value;
  }
  // A power cap in software is the limit that somebody set, and an idle GPU lowers its clock by itself: both are usual.
  struct Reason {
    std::string_view name, words;
  };
  state.reasons_told = Contains(row, "hw_slowdown=") || Contains(row, "sw_power_cap=");
  state.power_capped = Contains(row, "sw_power_cap=Active");
  constexpr Reason kReasons[] = {{"hw_thermal_slowdown=Active", "a hardware thermal slowdown"},
                                 {"sw_thermal_slowdown=Active", "a software thermal slowdown"},
                                 {"hw_power_brake_slowdown=Active", "a power brake"},
                                 {"hw_slowdown=Active", "a hardware slowdown"}};
  for (const Reason& reason : kReasons)
    if (state.slowed_by.empty() && Contains(row, reason.name)) state.slowed_by = reason.words;
  return state;
}

}  // namespace tacet
