// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rules/findings/bandwidth_finding.h"
#include "rules/unexplained/benchmark_verdict.h"

namespace tacet {
namespace {

RuleAnswer JudgeBelowModel(const Case& facts) {
  RuleAnswer answer = AnswerFromBenchmarks(facts, "bandwidth-below-model");
  const BandwidthView& view = facts.analyses.bandwidth;
  // The bandwidth of wrong results is nobody's question.
  const auto& runs = facts.incident.benchmark_runs;
  if (std::any_of(runs.begin(), runs.end(), [](const BenchmarkRun& run) { return CountWrongLines(run) > 0; }))
    return answer;
  bool collective = false;
  for (const Sweep& sweep : view.sweeps)
    collective = collective || (sweep.tool == "nccl-tests" && sweep.ranks > 1 && NcclTunedIndex(sweep.kind) >= 0);
  if (collective && view.checks.empty())
    answer.open.push_back({"Is this bandwidth what the machine should reach?",
                           "NCCL's log of the benchmark: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING"});
  return answer;
}

}  // namespace

extern const Rule kBandwidthBelowModelRule;
const Rule kBandwidthBelowModelRule = {
    "bandwidth-below-model",
    "Less bandwidth than NCCL's model predicts for this machine",
    "output of nccl-tests with large sizes, and NCCL's log of the same number of ranks (INIT, GRAPH)",
    "NCCL's own cost model, fed with the graph that NCCL found on this machine, predicts more bus bandwidth at large "
    "sizes than was measured: less than 70 % of it was reached. What the graph itself lacks (NICs, channels, paths) is "
    "already in the model; this loss has another reason: a slow link, congestion, host staging, throttled clocks, "
    "other jobs.",
    "Small sizes measure latency and are not judged. A sweep of host times (-C 1) is not judged. A poor graph lowers "
    "the model as well: see the causes about topology.",
    {"`tacet bandwidth` on the same files shows the steps from line rate to what was measured.",
     "Measure pairs (`tacet bandwidth --run nccl-tests --pairs`): one slow host slows every ring.",
     "Look at GPU clocks and throttle reasons (`nvidia-smi -q -d PERFORMANCE`), PFC and ECN counters, other jobs on "
     "the "
     "network."},
    {"Keep a sweep of the healthy machine beside its NCCL log, and compare with `tacet compare`."},
    JudgeBelowModel};

}  // namespace tacet
