// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacet {

enum class BenchmarkTool { nccl_tests, perftest, iperf3 };
enum class BenchmarkLauncher { local, mpirun, srun, ssh };

struct BenchmarkHost {
  std::string name;
  int slots = 1;  // GPUs
};

// What is to be measured, and how programs are started.
struct BenchmarkWish {
  BenchmarkTool tool = BenchmarkTool::nccl_tests;
  BenchmarkLauncher launcher = BenchmarkLauncher::local;
  std::vector<BenchmarkHost> hosts;
  std::vector<std::string> operations;  // "all_reduce", "ib_write_bw"
  std::string first = "8", last = "1G";
  std::vector<int> ranks;                                 // empty: all slots
  std::vector<std::pair<std::string, std::string>> ways;  // NCCL_ALGO and NCCL_PROTO, beside NCCL's own choice
  bool pairs = false;
  int rounds = 0;                      // of pairs; 0: as many as isolate one bad host
  std::string folder;                  // of the programs; empty: PATH
  std::vector<std::string> arguments;  // for every program
};

// One program, or a server and its client.
struct BenchmarkStep {
  std::string file;                 // to save its output in: "all_reduce_16_ring_ll.txt"
  std::string says;                 // "all_reduce, 16 ranks, Ring LL"
  std::string head;                 // first line of the file: "# pair gpu1 gpu2"
  std::vector<std::string> server;  // empty: none
  std::vector<std::string> command;
};
// Steps of one round touch different hosts and may run side by side.
using BenchmarkRound = std::vector<BenchmarkStep>;

Result<std::vector<BenchmarkRound>> PlanBenchmarks(const BenchmarkWish& wish);

// "gpu1", "gpu1 slots=8", "gpu1:8"; what follows # is a comment.
Result<std::vector<BenchmarkHost>> ParseHosts(std::string_view text);

// All pairs of `hosts` in rounds in which each host is met at most once (the circle method).
std::vector<std::vector<std::pair<size_t, size_t>>> PairRounds(size_t hosts);
// Two rounds name a bad host among an even number; of an odd number one sits out each round, so that it takes three.
int RoundsToIsolate(size_t hosts);

}  // namespace tacet
