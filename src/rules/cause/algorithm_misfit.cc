// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/bandwidth_finding.h"

namespace tacet {
namespace {

RuleAnswer JudgeMisfit(const Case& facts) {
  RuleAnswer answer = AnswerFromBenchmarks(facts, "algorithm-misfit");
  // Forced runs without the one in which NCCL chose for itself leave the question half answered.
  const BandwidthView& view = facts.analyses.bandwidth;
  bool forced = false, chosen = false;
  for (const Sweep& sweep : view.sweeps) {
    if (sweep.tool != "nccl-tests" || sweep.ranks < 2) continue;
    const bool plain = sweep.algorithm.empty() && sweep.protocol.empty();
    (plain ? chosen : forced) = true;
  }
  if (forced && !chosen)
    answer.open.push_back({"Is NCCL's own choice the fastest?", "the same sweep without NCCL_ALGO and NCCL_PROTO"});
  return answer;
}

}  // namespace

extern const Rule kAlgorithmMisfitRule;
const Rule kAlgorithmMisfitRule = {
    "algorithm-misfit",
    "Another algorithm or protocol would be faster",
    "output of nccl-tests without NCCL_ALGO and NCCL_PROTO, and with them set, of the same ranks and hosts",
    "For some sizes a run with NCCL_ALGO or NCCL_PROTO forced was faster than the one in which NCCL chose for itself, "
    "by "
    "more than 5 % and by more than three times the noise of both. NCCL's cost model does not fit this machine there.",
    "A difference within the noise does not count; runs with other ranks, hosts or releases are not compared. A choice "
    "that is faster at some sizes and slower at others should not be forced for all sizes: that is "
    "environment-cripples.",
    {"`tacet bandwidth --tuner FILE` writes the rows for NCCL's tuner plugin: those sizes only; unset "
     "NCCL_TUNER_PLUGIN to undo it.",
     "Newer releases of NCCL have different constants: measure with one before pinning anything."},
    {"Repeat the sweep after every change of NCCL, driver or topology: a pinned choice does not follow."},
    JudgeMisfit};

}  // namespace tacet
