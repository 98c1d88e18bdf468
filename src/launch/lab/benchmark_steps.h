// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/lab/benchmark_plan.h"

namespace tacet {

struct BenchmarkOutcome {
  std::string file;     // saved, in the folder
  std::string problem;  // empty where it went well
};

// Runs rounds one after the other and the steps of a round side by side; saves what each writes. A step that fails is
// told and the others go on.
std::vector<BenchmarkOutcome> RunBenchmarks(
    const std::vector<BenchmarkRound>& rounds, const std::string& folder, int64_t limit_ms,
    const std::function<void(size_t done, size_t total, const BenchmarkStep&)>& progress);

}  // namespace tacet
