// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tacet {

// How many ranks that no file speaks of may be written out, for all jobs of one input together. A line of a hundred
// bytes may claim two thousand million ranks: what a claim costs has to stay in proportion to the bytes that make it. A
// job that is too large for its input keeps its number of ranks, and lists those that were seen.
class RankRoom {
 public:
  explicit RankRoom(uint64_t input_bytes);
  // One place in the member list of a group: a few words in the model, the analyses and the report.
  bool TakeMembers(int64_t count) { return Take(count, 1); }
  // One rank of a job: a row in each table of ranks.
  bool TakeRanks(int64_t count) { return Take(count, kPlacesPerRank); }
  // One rank of which something is told, in words of its own.
  bool TakeToldRank() { return Take(1, 2 * kPlacesPerRank); }

 private:
  static constexpr int64_t kPlacesPerRank = 8;
  bool Take(int64_t count, int64_t price);
  int64_t left_;
};

}  // namespace tacet
