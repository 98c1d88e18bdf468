// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/benchmark_run.h"
#include "report/profile/profile_comparison.h"

namespace tacet {

// The runs of one side: every table of every file.
struct BenchmarkSide {
  std::string name;
  std::vector<BenchmarkRun> runs;
};

// Compares every line (operation, size, in or out of place) that both sides measured, and the size classes of each
// operation. With repeated runs the runs are the samples of Welch's test. With one run on a side a line has no noise to
// be measured against: then only the size classes are judged, by the ratios of their sizes, and small shifts of a whole
// class count as the difference between two launches.
// An error where they have no line in common.
Result<ProfileComparison> CompareBenchmarks(const BenchmarkSide& a, const BenchmarkSide& b,
                                            const ComparisonOptions& options);

}  // namespace tacet
