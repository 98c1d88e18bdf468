// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  // As the benchmark tells them, of its iterations.
  double min_us = -1, median_us = -1, p95_us = -1, p99_us = -1, max_us = -1;
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
  SourceRef source;
};

// What passed in one interval of a test that runs for a time.
struct BenchmarkRate {
  double start_s = 0, end_s = 0;
  double gbs = -1;
  int64_t retransmits = -1;
};

// Every device against every other: nvbandwidth, p2pBandwidthLatencyTest, rounds of pairs.
struct BenchmarkMatrix {
  std::string title;                       // "memcpy CE GPU(row) -> GPU(column)"
  std::string row_kind, column_kind;       // "GPU", "CPU"; host names have none
  std::vector<std::string> rows, columns;  // "0", "1", or host names
  std::vector<std::vector<double>> cells;  // GB/s or us; NaN where nothing was measured
  bool is_latency = false;                 // us, and less is better
  double told_sum = -1;                    // the benchmark's own sum; GB/s or us
  SourceRef source;
};

// One table of a communication benchmark: one operation over a range of sizes.
struct BenchmarkRun {
  std::string tool;                // "nccl-tests"
  std::string version;             // of the tool; may be empty
  std::string library;             // "2.28.3"; may be empty
  std::string operation;           // "all_reduce", "sendrecv", "alltoallv"; empty where nothing tells it
  bool operation_assumed = false;  // told by the file's name or the figures, not by the benchmark
  bool ranks_assumed = false;      // told by the figures or the command line, not by the benchmark
  std::string_view operation_clue, ranks_clue;  // what told an assumed one: "the file's name"
  bool checks_results = true;      // the tool can check what arrives; most only measure
  bool way_assumed = false;        // the way below is told by the file's name alone
  int32_t ranks = -1;
  std::vector<BenchmarkDevice> devices;
  std::vector<BenchmarkLine> lines;
  int64_t failed_checks = -1;  // the benchmark's own count of lines with wrong values; -1 where it did not end
  double average_bus_gbs = -1;
  int64_t largest_bytes = -1;    // the last size it was asked for
  bool average_too_low = false;  // below what the benchmark was told to expect
  bool host_times = false;       // times until the call came back, not until the data was there
  bool concluded = false;        // the closing lines were seen
  bool reached_largest = false;  // its table has that size: nothing but closing lines can be missing
  int32_t separate_runs = 0;     // so many processes ran it, each by itself; 0: one run, as it should be
  std::string failure;           // "unhandled system error": why it stopped; empty where it did not
  // The way that the run was made to take: "Ring", "LL128". Empty where NCCL chose for itself, as far as it is told.
  std::string algorithm, protocol;
  std::string from, to;        // hosts of a test between two
  std::string network_device;  // "mlx5_0"
  std::string link;            // "IB", "Ethernet", "TCP", "UDP"
  std::vector<BenchmarkRate> rates;
  double sent_gbs = -1, received_gbs = -1;  // of the whole time
  int64_t retransmits = -1;
  double lost_share = -1;  // of datagrams
  std::vector<BenchmarkMatrix> matrices;
  SourceRef source, summary, failed_at;
};

}  // namespace tacet
