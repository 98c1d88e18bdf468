// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "analysis/plain_figures.h"
#include "rules/bandwidth_finding.h"

namespace tacet {
namespace {

std::string PlainRate(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g GB/s", gbs);
  return text;
}

// Rates that a job, or whoever writes, tells in plain lines.
void JudgePlainRates(const Case& facts, RuleAnswer& answer) {
  Finding finding;
  finding.cause = "slow-link";
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  if (const auto span = FindSlowSpan(facts.incident)) {
    finding.headline = "The same operation (" + span->wide->operation + ") reaches " + PlainRate(span->wide->gbs) +
                       " over " + std::to_string(span->wide->members) + " members and " + PlainRate(span->narrow->gbs) +
                       " over " + std::to_string(span->narrow->members) +
                       ": the path that the larger group adds is slow, most likely the network between hosts";
    finding.evidence.push_back({span->wide->source, PlainRate(span->wide->gbs), "the larger group"});
    finding.evidence.push_back({span->narrow->source, PlainRate(span->narrow->gbs), "a smaller one"});
    finding.fix = {
        "See how NCCL connects the hosts: run with NCCL_DEBUG=INFO and look for 'via NET/'; NET/Socket is TCP, where "
        "NET/IB or a plugin of the cloud should be.",
        "Measure the network by itself: ib_write_bw or iperf3 between the hosts, and nccl-tests with one GPU per "
        "host."};
  } else if (const auto pair = FindUnequalPairs(facts.incident)) {
    finding.headline = "Between " + pair->slow->one + " and " + pair->slow->other + " " + PlainRate(pair->slow->gbs) +
                       ", between " + pair->fast->one + " and " + pair->fast->other + " " + PlainRate(pair->fast->gbs) +
                       ": " + pair->shared + " is in both, so look at " + pair->suspect + " and at the path between " +
                       pair->shared + " and " + pair->suspect;
    finding.evidence.push_back({pair->slow->source, PlainRate(pair->slow->gbs), "the slow pair"});
    if (pair->fast->source.line != pair->slow->source.line)
      finding.evidence.push_back({pair->fast->source, PlainRate(pair->fast->gbs), "the faster pair"});
    finding.fix = {"Measure " + pair->suspect + " with " + pair->other +
                       " by the same command: if it is slow as well, " + pair->suspect +
                       " is; if not, the path between " + pair->shared + " and " + pair->suspect + " is.",
                   "Compare the adapters of " + pair->suspect +
                       " with those of the others: rate and state (ibstat, ethtool), PCIe width (lspci -vv), the NIC "
                       "that NCCL chooses for each GPU."};
  } else {
    return;
  }
  answer.findings.push_back(std::move(finding));
}

RuleAnswer JudgeSlowLink(const Case& facts) {
  RuleAnswer answer = AnswerFromBenchmarks(facts, "slow-link");
  const BandwidthView& view = facts.analyses.bandwidth;
  // A sweep below the model asks which link it is; without pairs nobody can say.
  bool below = false;
  for (const ModelCheck& check : view.checks) below = below || (check.large_points >= 2 && check.share < 0.7);
  if (below && view.matrices.empty())
    answer.open.push_back({"Which link or node makes the collective slow?",
                           "rounds of pairs: `tacet bandwidth --run nccl-tests --pairs --hostfile HOSTS -o FOLDER`"});
  JudgePlainRates(facts, answer);
  return answer;
}

}  // namespace

extern const Rule kSlowLinkRule;
const Rule kSlowLinkRule = {
    "slow-link",
    "One pair, device or host is slower than comparable ones",
    "a matrix of pairs: nvbandwidth, p2pBandwidthLatencyTest, or tests between three or more hosts (iperf3, perftest, "
    "nccl-tests); or rates of the same operation in plain lines",
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
