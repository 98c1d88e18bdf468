// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// One sharded unit (a wrapped layer), told by its size and its place in the step.
struct FsdpUnit {
  int64_t bytes = 0;      // of all its parameters, unsharded
  double gathers = 0;     // per step: 2 when it is resharded after the forward pass, 1 when it is kept
  int64_t gather_ns = 0;  // kernel time of one gather, median over ranks and steps, waiting included
  double hidden = 0;      // share of its gathers' time that compute ran beside
};

// Volume of a job that shards its parameters (FSDP, ZeRO-3), per step, as whole (unsharded) bytes. Theory, with P the
// bytes of all parameters in the type of the communication: reduce-scatter P; all-gather 2 P less the units that are
// kept after the forward pass. A rank moves (n - 1) / n of it.
struct FsdpReport {
  bool found = false;
  GroupIndex group = GroupIndex::none;
  int32_t ranks = 0;
  int64_t gather_bytes = 0, scatter_bytes = 0;  // measured
  int64_t parameter_bytes = 0;                  // P: from the gradients in the trace, else from the reduce-scatters
  bool parameters_known = false;                // P comes from the gradients
  int64_t kept_bytes = 0;                       // units gathered once
  int64_t expected_gather_bytes = 0, expected_scatter_bytes = 0;
  double gather_ratio = 0, scatter_ratio = 0;      // measured over expected
  double hidden_gathers = 0, hidden_scatters = 0;  // share of their kernel time under compute
  std::vector<FsdpUnit> units;                     // in order of their reduce-scatters, the last layer first
};

FsdpReport AnalyseFsdp(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines);

}  // namespace tacet
