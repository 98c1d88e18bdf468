// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/source_ref.h"
#include "model/ids.h"
#include "model/operation.h"

namespace tacet {

// What a benchmark measured for one size, one way of laying out the buffers. Negative: not measured.
struct BenchmarkFigure {
  double time_us = -1;  // of one operation, the mean over the iterations
  double algorithm_gbs = -1, bus_gbs = -1;
  double wrong = -1;                  // elements with a wrong value; -1 where nobody looked
  std::vector<double> iterations_us;  // each iteration by itself, where the benchmark tells
};

struct BenchmarkLine {
  int64_t bytes = -1;
  DataType type = DataType::unknown;
  ReduceOp reduction = ReduceOp::unknown;  // unknown where the operation has none
  int32_t root = -1;
  BenchmarkFigure out_of_place, in_place;
  SourceRef source;
};

struct BenchmarkDevice {
  Rank rank;
  std::string host, name;  // name: "NVIDIA H200"
  int64_t pid = -1;
  int32_t device = -1;
};

// One table of a communication benchmark: one operation over a range of sizes.
struct BenchmarkRun {
  std::string tool;                // "nccl-tests"
  std::string version;             // of the tool; may be empty
  std::string library;             // "2.28.3"; may be empty
  std::string operation;           // "all_reduce", "sendrecv", "alltoallv"; empty where nothing tells it
  bool operation_assumed = false;  // told by the file's name or the figures, not by the benchmark
  int32_t ranks = -1;
  std::vector<BenchmarkDevice> devices;
  std::vector<BenchmarkLine> lines;
  int64_t failed_checks = -1;  // the benchmark's own count of lines with wrong values; -1 where it did not end
  double average_bus_gbs = -1;
  bool average_too_low = false;  // below what the benchmark was told to expect
  bool host_times = false;       // times until the call came back, not until the data was there
  bool concluded = false;        // the closing lines were seen
  std::string failure;           // "unhandled system error": why it stopped; empty where it did not
  SourceRef source, summary, failed_at;
};

}  // namespace tacet
