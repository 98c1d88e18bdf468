// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/timing/collective_match.h"

namespace tacet {

// What one rank did in the all-to-alls of its group, per step.
struct ExpertMember {
  Rank rank;
  int64_t sent_bytes = -1, received_bytes = -1;  // -1 where the trace has no sizes
  int64_t kernel_ns = 0;                         // in the kernels, waiting included
  int64_t wait_ns = 0;                           // of that, for the last member to come
};

// How even the all-to-alls of a group are: those of experts (tokens to the rank that holds their expert, and back), of
// sequence parallelism or of sharded embeddings. Nothing in a trace tells them apart; the first are the uneven ones.
struct ExpertReport {
  bool found = false;
  GroupIndex group = GroupIndex::none;
  int32_t ranks = 0;
  double calls = 0;                   // per step
  std::vector<ExpertMember> members;  // by rank
  bool sized = false;                 // sizes are known: what is received, else what is sent
  // Of one call: the most that a rank receives over the mean, and calls weighted by their bytes. 1 is even. The last to
  // receive its share ends the call for everybody.
  double imbalance = 1;
  // The same of the sums over all calls: a rank whose experts are always the busy ones.
  double lasting_imbalance = 1;
  Rank busiest;               // most in total
  int64_t transfer_ns = 0;    // of a step, without waiting
  double transfer_share = 0;  // of the step
  // Share of the step that even calls would save: transfers shrink by the imbalance.
  double balance_gain = 0;
};

// The group with most time in all-to-alls. Expects aligned rounds.
ExpertReport AnalyseExperts(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines);

}  // namespace tacet
