// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/straggler_finding.h"

namespace tacet {

static bool IsStragglerData(const Straggler& straggler) {
  return (straggler.origin == StragglerOrigin::data_loading || straggler.origin == StragglerOrigin::uneven_input) &&
         straggler.pattern == StragglerPattern::persistent;
}

static RuleAnswer JudgeStragglerData(const Case& facts) {
  return JudgeStragglers(facts, IsStragglerData, "straggler-data", "its input is larger or arrives late",
                         "their input is larger or arrives late");
}

extern const Rule kStragglerDataRule;
const Rule kStragglerDataRule = {
    "straggler-data",
    "Input is uneven or late",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "Ranks wait because batches differ in size (long sequences, ragged shapes), so a different rank is late each time, "
    "or because one rank's loader is late.",
    "A compute straggler is always the same rank, and its input is like that of the others.",
    {"Balance batches by tokens, not by samples; bucket sequences by length.",
     "A late loader: more workers, prefetch, faster storage for that host."},
    {"Log tokens per rank and step."},
    JudgeStragglerData};

}  // namespace tacet
