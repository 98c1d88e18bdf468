// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_identity.h"

namespace tacet {
namespace {

// No communicator of this process tells: fall back on what stands outside the messages.
RankVerdict WithoutCommunicator(const RankEvidence& evidence) {
  RankVerdict verdict;
  const std::optional<Rank> outside = evidence.task_number                                  ? evidence.task_number
                                      : evidence.in_file_name                               ? evidence.in_file_name
                                      : evidence.comm_size < 0 && evidence.largest_size < 0 ? evidence.by_proxy
                                                                                            : std::nullopt;
  if (outside) {
    verdict.rank = *outside;
    verdict.certainty = Certainty::assumed;
  }
  return verdict;
}

}  // namespace

RankVerdict ResolveRank(const RankEvidence& evidence) {
  const bool has_comm = evidence.comm_size > 1 && evidence.comm_rank >= 0;
  RankVerdict verdict;
  if (evidence.stated_by_label) {
    verdict = {*evidence.stated_by_label, Certainty::stated};
  } else if (!has_comm || evidence.comm_size < evidence.largest_size) {
    verdict = WithoutCommunicator(evidence);
  } else {
    verdict = {Rank{evidence.comm_rank}, Certainty::stated};
    const bool by_name = evidence.in_file_name && evidence.name_says_rank;
    const std::optional<Rank> outside = by_name ? evidence.in_file_name : evidence.task_number;
    if (outside && *outside != verdict.rank) {
      // A communicator that has no place for the number outside is a part of the job.
      const bool is_part = outside->value >= evidence.comm_size;
      verdict.refused = is_part ? verdict.rank : *outside;
      if (is_part) verdict.rank = *outside;
      verdict.certainty = Certainty::assumed;
    }
  }
  if (evidence.largest_size > 1 && verdict.rank.value < evidence.largest_size)
    verdict.world_size = evidence.largest_size;
  return verdict;
}

}  // namespace tacet
