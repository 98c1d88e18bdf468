// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// All rounds of one operation on one group within one size class.
struct CommunicationRow {
  GroupIndex group = GroupIndex::none;
  OpKind kind = OpKind::unknown;
  int32_t group_size = -1;
  int64_t size_class = 0;  // upper bound of the class in bytes: a power of two; 0 where sizes are not known
  size_t calls = 0;
  int64_t bytes = 0;         // S of nccl-tests, summed
  int64_t wait_ns = 0;       // own start to the last member's start, summed over members and calls
  int64_t mean_wait_ns = 0;  // the same of the mean member, summed over calls
  size_t compared = 0;       // calls of which two members or more were recorded: of no other the waiting is known
  size_t whole = 0;          // calls of which all members were recorded: in any other waiting may count as transfer
  int64_t transfer_ns = 0;   // last start to last end, summed over calls
  // The same of every recorded member, of the calls of which the waiting is known: what members that left no record
  // waited is not in `wait_ns`, either.
  int64_t member_transfer_ns = 0;
  // Bytes over transfer time, GB/s = 1e9; bus bandwidth by nccl-tests' factors. 0 where sizes are not known.
  double algorithm_gbs = 0, bus_gbs = 0;
  double best_bus_gbs = 0;  // of the best call
  // False where the times give more bandwidth than any link has: then neither they nor the bandwidths are used.
  bool plausible = true;
};

// Rows by transfer time, longest first. Expects aligned rounds.
std::vector<CommunicationRow> SummariseCommunication(const std::vector<CollectiveRound>& rounds);

// Time of an operation of S bytes = latency + S * per_byte, fitted over all rounds of one group and operation. The
// latency is measured only where sizes differ at least twofold; else it is taken as the time of half a megabyte, which
// is where TCP reaches half of its bandwidth (faster networks need more).
struct LatencyBandwidthFit {
  bool valid = false;
  bool latency_measured = false;
  double latency_ns = 0, per_byte_ns = 0;
  size_t rounds = 0;
  double Time(double bytes) const { return latency_ns + per_byte_ns * bytes; }
};
LatencyBandwidthFit FitLatencyBandwidth(const std::vector<CollectiveRound>& rounds, GroupIndex group, OpKind kind);

}  // namespace tacet
