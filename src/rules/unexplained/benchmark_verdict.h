// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// "16 MiB", "1000 B": sizes as benchmarks sweep them.
std::string SizeWords(int64_t bytes);
// A tool for the network alone, without NCCL or MPI.
bool MeasuresNetwork(const BenchmarkRun& run);
// "all_reduce of 8 ranks".
std::string BenchmarkWords(const BenchmarkRun& run);
// Somebody looked at the values of all lines.
bool IsChecked(const BenchmarkRun& run);
// Lines with wrong values.
size_t CountWrongLines(const BenchmarkRun& run);

// A benchmark that stopped with an error: no cause is known for it, but nobody may call it healthy.
std::optional<Finding> FindFailedBenchmark(const Incident& incident);

// Processes that were started together and ran the benchmark each by itself: nothing crossed the network.
std::optional<Finding> FindSeparateBenchmarks(const Incident& incident);

// "; bus bandwidth levels off at 49.7 GB/s from 256 MiB on"; empty where nothing was measured.
std::string LevelWords(const BenchmarkRun& run);
// Large sizes reach less than half of what smaller ones do.
std::optional<Finding> FindFallingBenchmark(const Incident& incident);

// Where the evidence is of benchmarks and of nothing else, settles the verdict; false where it is not.
bool SettleBenchmarks(const Incident& incident, Diagnosis& diagnosis);

}  // namespace tacet
