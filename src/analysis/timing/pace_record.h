// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// An operation that has no place among a rank's usual steps.
inline constexpr size_t kUnnumbered = SIZE_MAX;

// One rank's part in a round. Times in ns, from the first one of the record.
struct PaceOp {
  uint32_t round = 0;
  uint32_t id = 0;  // among those of all ranks
  int64_t step = 0;
  double enter = 0, end = 0, duration = 0;
  double start = 0;            // of the kernel
  uint32_t before = kNoIndex;  // id of the one before it on the same group and rank
  double before_end = -1e300;  // when that had ended here
  double all_end = -1e300;     // when everything before it had ended here
  bool behind_all = false;     // it began after that, so it may depend on any of them
  bool host_waited = false;    // for that, before it was issued
  // What the replay takes from the record: how long after the one before, or after everything had ended, the host
  // issues it; and how long its GPU has to work first, after what it waits for had ended and after it was issued.
  double host_gap = 0, after_end = 0, after_issue = 0;
  size_t number = kUnnumbered;  // step by step: that of the step times the usual number, and its place
};

// The operations of a record as a replay needs them: rank by rank in the order of issue, round by round in an order
// that is every rank's own, and numbered by the steps of one rank. Rounds that are not wholly known are left out.
class PaceRecord {
 public:
  // The rounds must outlive it.
  PaceRecord(const std::vector<CollectiveRound>& rounds, Rank rank);
  PaceRecord(const PaceRecord&) = delete;
  PaceRecord& operator=(const PaceRecord&) = delete;

  // False where the rank has too little in it, or where ranks issued operations in different orders.
  bool Read();

  bool HasSeveralGroups() const;
  const PaceOp* At(Rank rank, size_t turn, size_t place) const { return table_.at(rank)[good_[turn] * usual_ + place]; }

 protected:
  const Rank rank_;
  bool has_starts_ = true;
  std::vector<const CollectiveRound*> rounds_;
  std::map<Rank, std::vector<PaceOp>> ops_;  // in the order in which they were issued
  std::vector<uint32_t> order_;
  std::vector<std::vector<PaceOp*>> members_;  // by round, as the round has them
  size_t all_ops_ = 0;
  size_t usual_ = 0;               // operations of the rank in a step
  std::vector<Rank> peers_;        // that have as many, the rank among them
  size_t steps_ = 0;               // with so many
  std::vector<size_t> good_;       // of these, those of which every peer has all, and which were no pause
  std::map<size_t, size_t> turn_;  // where a step stands in that list
  std::map<Rank, std::vector<const PaceOp*>> table_;  // of the peers, by number

 private:
  void TakeRounds(const std::vector<CollectiveRound>& rounds);
  bool FindOrder();
  void FindEnds();
  static void TakeLatestBefore(const std::vector<PaceOp>& ops, PaceOp& op);
  void NumberOperations();
  void NumberOwn(std::vector<PaceOp>& own);
  void FindSteps();
};

}  // namespace tacet
