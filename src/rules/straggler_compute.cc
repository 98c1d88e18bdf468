// SPDX-License-Identifier: Apache-2.0
#include "rules/straggler_finding.h"

namespace tacet {

static bool IsStragglerCompute(const Straggler& straggler) {
  return (straggler.origin == StragglerOrigin::gpu_work || straggler.origin == StragglerOrigin::unknown) &&
         straggler.pattern == StragglerPattern::persistent;
}

static RuleAnswer JudgeStragglerCompute(const Case& facts) {
  return JudgeStragglers(facts, IsStragglerCompute, "straggler-compute", "its GPU work takes longer",
                         "their GPU work takes longer");
}

extern const Rule kStragglerComputeRule;
const Rule kStragglerComputeRule = {
    "straggler-compute",
    "A rank's GPU work takes longer",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "In every step one rank reaches the collectives later than the others because its kernels take longer or there are "
    "more of them. All ranks wait for it, so the whole job runs at its pace. Its own collectives look short: the last "
    "to arrive waits least.",
    "A slow host leaves the GPU idle before the collective. An intermittent straggler is late only now and then. A "
    "pipeline stage with more layers is late by design: rebalance it. A slow link delays all members alike.",
    {"Compare the named rank's kernels with another rank's (same names, longer: clocks, thermal throttling, ECC, "
     "another process on the GPU; more kernels: extra work in the code).",
     "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC on its host; look for throttle reasons.",
     "If the delay follows the node: drain the node. If it follows the rank: look at the code and the data of that "
     "rank."},
    {"Watch GPU clocks and throttle reasons of all nodes.",
     "Run a short matmul benchmark on every node before long jobs."},
    JudgeStragglerCompute};

}  // namespace tacet
