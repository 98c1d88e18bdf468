// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

struct Iperf3Rate {
  double start_s = 0, end_s = 0, gbs = 0;  // GB/s = 1e9 bytes
  int64_t retransmits = -1;
};

// One direction of one test.
struct Iperf3Test {
  std::string local, remote;  // addresses
  std::string protocol;       // "TCP", "UDP", "SCTP"; empty where not told
  std::string role;           // "TX-C" of --bidir; empty otherwise
  bool reverse = false;       // the server sent
  int64_t streams = 0;
  std::vector<Iperf3Rate> rates;
  double sent_gbs = -1, received_gbs = -1;
  int64_t retransmits = -1;
  double lost_share = -1;
  std::string error;
  bool concluded = false;
  uint32_t line = 0;
  uint64_t offset = 0;
};

struct Iperf3Output {
  std::string version;
  std::vector<Iperf3Test> tests;
  uint64_t understood = 0, ignored = 0, not_understood = 0;
};

// -J, and --json-stream with one event per line.
bool IsIperf3Json(std::string_view prefix);
Iperf3Output ParseIperf3Json(std::string_view bytes);
bool IsIperf3Line(std::string_view line);
Iperf3Output ParseIperf3Text(std::string_view bytes);

}  // namespace tacet
