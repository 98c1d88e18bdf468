// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// What a row of nvidia-smi tells of a GPU's clock and heat; below 0: not told. Its plain table tells the heat alone.
struct GpuState {
  double mhz = -1, most_mhz = -1;
  double celsius = -1;
  std::string_view slowed_by;  // what holds the clock down and should not; empty: nothing
  bool reasons_told = false;   // the row lists what may hold the clock down
  bool power_capped = false;   // the limit that somebody set holds it: usual under load
};

// "index=5, temperature.gpu=88, clocks.sm=855 MHz, clocks.max.sm=1980 MHz, clocks_event_reasons.hw_slowdown=Active"
GpuState ReadGpuState(std::string_view row);

}  // namespace tacet
