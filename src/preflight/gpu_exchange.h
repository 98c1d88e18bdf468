// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// An all-reduce of all GPUs of some hosts, through the job's own PyTorch or, inside one host, nccl-tests.
struct GpuExchangePlan {
  std::string python;  // empty: only nccl-tests
  int gpus = 0;        // of this host
  int first_rank = 0, world = 0;
  std::string address = "127.0.0.1";  // of the first rank
  int port = 0;
};

struct GpuExchange {
  std::string error;  // empty: it went well
  double small_us = 0, bus_bytes_per_s = 0;
};

GpuExchange RunGpuExchange(const GpuExchangePlan& plan);

// "# Avg bus bandwidth    : 123.4" of nccl-tests, in bytes per second; 0: it is not there.
double ParseAverageBusBandwidth(std::string_view output);
// "tacet-gpu-exchange 25.1 1.2e+11" of our own script.
bool ParseExchangeLine(std::string_view output, GpuExchange* exchange);

}  // namespace tacet
