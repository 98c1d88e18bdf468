// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "model/benchmark_run.h"

namespace tacet {

// What was measured: all that must be equal before two figures may be compared.
struct BenchmarkKey {
  std::string operation;
  DataType type = DataType::unknown;
  ReduceOp reduction = ReduceOp::unknown;
  int32_t root = -1;
  int64_t bytes = 0;
  bool in_place = false;
  std::string variant;  // "8 ranks", "Ring LL128", where a side holds several: these are never pooled
  auto operator<=>(const BenchmarkKey&) const = default;
};

// Times of one thing in ns, a value for each run; or, of a single run, for each iteration.
struct BenchmarkSamples {
  std::vector<double> runs, iterations;
  std::vector<double> bus_gbs;  // a value for each run that tells it
};
using BenchmarkTable = std::map<BenchmarkKey, BenchmarkSamples>;

// What runs of one side differ in, so that they may not be pooled.
struct BenchmarkVariants {
  bool ranks = false, ways = false;
};
BenchmarkVariants FindVariants(const std::vector<BenchmarkRun>& runs);
BenchmarkTable CollectLines(const std::vector<BenchmarkRun>& runs, const BenchmarkVariants& variants = {});

// Small messages are latency, large ones bandwidth; NCCL changes its protocol between them.
enum class SizeRange { small, middle, large };
SizeRange RangeOf(int64_t bytes);

// What does not differ in either table need not be told.
struct BenchmarkNaming {
  bool type = false, reduction = false, root = false;
};
BenchmarkNaming FindNaming(const BenchmarkTable& a, const BenchmarkTable& b);
std::string NameLine(const BenchmarkKey& key, const BenchmarkNaming& naming);
std::string NameClass(const BenchmarkKey& any_of_it, const BenchmarkNaming& naming, size_t sizes);

}  // namespace tacet
