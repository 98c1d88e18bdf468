// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/bandwidth/sweep.h"
#include "analysis/bandwidth/waterfall.h"

namespace tacet {

// A size at which another algorithm or protocol was measured to be faster than what NCCL chooses.
struct BetterCell {
  int64_t bytes = 0;
  std::string chosen;               // "Ring Simple"; empty where nothing tells what NCCL took
  double chosen_us = 0;             // of the faster run, where that way was also forced
  std::string algorithm, protocol;  // the faster one
  double better_us = 0;
  double noise = 0;           // standard deviation of the ratio of the two
  uint64_t calls = 0;         // of this size, where the log counts them
  double calls_per_step = 0;  // of about this size, where traces count them
  double Gain() const { return 1 - better_us / chosen_us; }
};

// One size, measured twice by the same algorithm and protocol: as NCCL's own choice and forced.
struct TwinRuns {
  int64_t bytes = 0;
  std::string way;
  double chosen_us = 0, forced_us = 0;
  double Apart() const { return 1 - std::min(chosen_us, forced_us) / std::max(chosen_us, forced_us); }
};

// All such sizes of one operation among the same ranks.
struct BetterWay {
  size_t sweep = 0;  // the default
  std::string operation;
  int32_t ranks = -1, nodes = -1;
  size_t ways = 0;     // that were measured beside the default
  double step_us = 0;  // a training step, where calls_per_step are told
  // What two runs of one way differ by says what the machine adds by itself, whatever is chosen.
  double run_noise = 0;  // median over the sizes that were measured twice, as a share of the longer time
  size_t twin_sizes = 0;
  TwinRuns worst_twin;
  std::vector<BetterCell> cells;
};

// Compares sweeps that differ in nothing but NCCL_ALGO and NCCL_PROTO. `checks` tell what NCCL chooses, where they can.
std::vector<BetterWay> FindBetterWays(const std::vector<Sweep>& sweeps, const std::vector<ModelCheck>& checks);

// How often a training step makes each call, from traces with steps of groups of as many ranks: what another way would
// save per step. Sizes of training are rarely those of a sweep; each call counts for the nearest size measured.
void CountCallsPerStep(const std::vector<const Incident*>& incidents, const std::vector<Sweep>& sweeps,
                       std::vector<BetterWay>& ways);

// The file of NCCL's tuner plugin: one row for neighbouring cells of one way, and nothing else. Collective, bytes from
// and to, algorithm, protocol, channels, nodes, ranks, aggregated operations, registered buffers; -1 is any.
std::string TunerFile(const std::vector<BetterWay>& ways);

}  // namespace tacet
