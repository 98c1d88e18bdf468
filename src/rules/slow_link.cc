// SPDX-License-Identifier: Apache-2.0
#include "rules/bandwidth_finding.h"

namespace tacet {
namespace {

RuleAnswer JudgeSlowLink(const Case& facts) {
  RuleAnswer answer = AnswerFromBenchmarks(facts, "slow-link");
  const BandwidthView& view = facts.analyses.bandwidth;
  // A sweep below the model asks which link it is; without pairs nobody can say.
  bool below = false;
  for (const ModelCheck& check : view.checks) below = below || (check.large_points >= 2 && check.share < 0.7);
  if (below && view.matrices.empty())
    answer.open.push_back({"Which link or node makes the collective slow?",
                           "rounds of pairs: `tacet bandwidth --run nccl-tests --pairs --hostfile HOSTS -o FOLDER`"});
  return answer;
}

}  // namespace

extern const Rule kSlowLinkRule;
const Rule kSlowLinkRule = {
    "slow-link",
    "One pair, device or host is slower than comparable ones",
    "a matrix of pairs: nvbandwidth, p2pBandwidthLatencyTest, or tests between three or more hosts (iperf3, perftest, "
    "nccl-tests)",
    "In a matrix of pairs a cell, a row or a column reaches less than 80 % of what comparable cells do. A single slow "
    "cell is a link; a slow row or column is a device or host that is slow in one direction; both together are a slow "
    "device or host.",
    "Links that differ by design are spread evenly over rows and columns (NVLink pairs among PCIe, near and far "
    "sockets) "
    "and are not a fault. If the whole matrix is slow, no single link is to blame: see bandwidth-below-model.",
    {"GPUs: `nvidia-smi nvlink -s` and `nvidia-smi -q | grep -A5 Link` on the host: inactive NVLinks, a slot that "
     "trained "
     "to fewer lanes or an older generation.",
     "Hosts: compare `ibstat` or `ethtool`, cables and counters of the slow host with those of its neighbours; measure "
     "the "
     "pair again in the other direction.",
     "Keep the host out of the job (--exclude, cordon) until it is repaired: a collective is as slow as its slowest "
     "link."},
    {"Run pairs before long jobs and after maintenance, and keep the matrix."},
    JudgeSlowLink};

}  // namespace tacet
