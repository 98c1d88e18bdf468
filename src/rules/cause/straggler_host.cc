// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/shifted_wait_finding.h"
#include "rules/findings/straggler_finding.h"

namespace tacet {

static bool IsStragglerHost(const Straggler& straggler) {
  return straggler.origin == StragglerOrigin::host && straggler.pattern == StragglerPattern::persistent;
}

static RuleAnswer JudgeStragglerHost(const Case& facts) {
  RuleAnswer answer = JudgeStragglers(facts, IsStragglerHost, "straggler-host", "its host is slow to issue work",
                                      "their hosts are slow to issue work");
  if (answer.findings.empty()) TellShiftedWait(facts, "straggler-host", answer);
  return answer;
}

extern const Rule kStragglerHostRule;
const Rule kStragglerHostRule = {
    "straggler-host",
    "A rank's host is slow to issue work",
    "torch.profiler traces of all ranks; NCCL Inspector files or flight records with timing show less",
    "In every step one rank arrives late although its GPU had nothing to do: its host was slow to launch the work. "
    "Usual reasons: Python overhead, logging, a busy CPU, wrong CPU affinity, synchronous file access.",
    "With slow GPU work the device is busy until the collective. Waiting for data is reported separately where the "
    "trace shows the loader.",
    {"Look at what the named rank's host does in the gap (py-spy record, the trace's CPU rows).",
     "Check CPU affinity and load of its host: one core for all ranks, another job, frequency scaling.",
     "Move per-step work that only this rank does (logging, metrics, sleep, .item()) out of the step."},
    {"Pin ranks to the cores of their GPU's NUMA node.", "Avoid synchronization and I/O in the step."},
    JudgeStragglerHost};

}  // namespace tacet
