// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "model/fragment.h"

namespace tacet {

// What a file tells about one process's place in the job.
struct RankEvidence {
  static constexpr int32_t kSeveral = -2;
  std::optional<Rank> stated_by_label;  // "[rank3]:" before its lines
  std::optional<Rank> task_number;      // srun's or mpirun's number, where each process has its own
  std::optional<Rank> in_file_name;     // only where the file has one process
  bool name_says_rank = false;          // "nccl_rank3.log"; the 3 of "node3.log" may number anything
  // "[Proxy Service 2] Failed to execute ...", "Channel 00 : 3[b1000] -> 2[1a000] [receive]": the rank in the
  // communicator, or in the one it was split from.
  std::optional<Rank> by_proxy;
  int32_t comm_rank = -1;  // in its largest communicator, as init lines tell it; kSeveral: in several, unlike
  int32_t comm_size = -1;
  int32_t largest_size = -1;  // of any communicator of any process in this file
};

struct RankVerdict {
  Rank rank;
  Certainty certainty = Certainty::none;
  int64_t world_size = -1;
  // Set where two pieces of evidence disagree: the number that was not taken.
  std::optional<Rank> refused;
};

// A process's rank in the largest communicator of the job is its global rank. Whether the largest one in *this file* is
// the job's largest cannot be seen from here; README.md, "Who is which rank", says how each case is settled and why.
RankVerdict ResolveRank(const RankEvidence& evidence);

}  // namespace tacet
