// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "rules/findings/standstill_finding.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {

static RuleAnswer JudgeGpuStalled(const Case& facts) {
  RuleAnswer answer;
  auto finding = StandstillFinding(facts, StandstillKind::gpu, "gpu-stalled");
  if (!finding) return answer;
  bool behind = false;
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != StandstillKind::gpu) continue;
    behind |= still.root->kind == RootKind::gpu_behind;
    if (still.stack)
      finding->evidence.push_back(
          CiteStack(facts.incident, *still.stack->thread, RankWords({still.rank}) + " waits for its own GPU"));
    if (still.root->kind == RootKind::gpu_behind && still.root->call)
      finding->evidence.push_back(CiteCall(
          facts.incident, *still.root->stream, *still.root->call,
          RankWords({still.rank}) + " has not finished this, while a peer has finished later ones of the same group"));
  }
  if (behind) finding->confidence = std::max(finding->confidence, Confidence::likely);
  if (!facts.analyses.outcome.hangs()) finding->confidence = Confidence::possible;
  const std::string who = RankWords(finding->ranks);
  const std::string operation =
      facts.standstill.operation ? OperationWords(facts.incident, *facts.standstill.operation) : "the collective";
  const bool one = finding->ranks.size() == 1;
  const GroupIndex group = facts.standstill.group;
  const bool replayed =
      group != GroupIndex::none && facts.incident.groups[static_cast<uint32_t>(group)].replays_of != 0;
  const std::string gpu = (one ? "the GPU of " : "the GPUs of ") + who;
  finding->headline = behind ? gpu + (one ? " is stalled: its peers" : " are stalled: their peers") +
                                   " finished collectives of the same group that " + (one ? "it has" : "they have") +
                                   " not, starting with " + operation
                             : gpu + " never started " + operation +
                                   (replayed ? ", although the host launched the graph that holds it"
                                             : ", although the host issued it") +
                                   ": an earlier kernel probably does not finish";
  answer.findings.push_back(std::move(*finding));
  return answer;
}

extern const Rule kGpuStalledRule;
const Rule kGpuStalledRule = {
    "gpu-stalled",
    "A GPU does not start the collective",
    "flight records with timing (TORCH_NCCL_ENABLE_TIMING=1) or black boxes of all members",
    "The host has issued the collective, but that rank's GPU has not started it, or no longer reports what it "
    "finished. An earlier kernel on the stream does not finish (an endless loop, a spin wait, a huge kernel), the "
    "device waits for an event that is never recorded, or it has a fault.",
    "A rank stuck on the host has not issued the collective. In a transport stall all GPUs have started it. Without "
    "timing in the flight record a running kernel is recorded as scheduled, and the two look the same.",
    {"On that host look at the GPU: nvidia-smi (utilization, pstate), nvidia-smi -q -d ECC,ROW_REMAPPER, dmesg | "
     "grep -i xid.",
     "Find the kernel: cuda-gdb -p PID then 'info cuda kernels', or a profiler trace of the step before.",
     "If several runs stall on the same GPU, drain that node and run dcgmi diag -r 3."},
    {"Record with TORCH_NCCL_ENABLE_TIMING=1, so that started and finished operations can be told apart.",
     "Watch Xid and ECC counters of all nodes."},
    JudgeGpuStalled};

}  // namespace tacet
