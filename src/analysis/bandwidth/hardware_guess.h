// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/bandwidth/sweep.h"

namespace tacet {

// What NCCL's model expects of a machine that the benchmark's own header describes. An orientation: without NCCL's log
// nobody knows the graph that it really found.
struct HardwareGuess {
  std::string machine;      // "8 x H100 on one node"
  int64_t bytes = 0;        // where the sweep has its highest bus bandwidth
  double expected_gbs = 0;  // bus bandwidth there
  double measured_gbs = 0;
};

// Of a default sweep of nccl-tests whose header names one host and as many GPUs of one known model as there are ranks.
std::optional<HardwareGuess> GuessFromHardware(const Sweep& sweep);

}  // namespace tacet
