// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "analysis/printed/plain_figures.h"
#include "rules/findings/bandwidth_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string PlainRate(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g GB/s", gbs);
  return text;
}

// A list may leave the unit out.
std::string PairFigure(const PairRate& pair) {
  std::string words = PlainRate(pair.gbs);
  return pair.unit_told ? words : words.substr(0, words.find(' '));
}

bool IsNumber(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

// "node 1" of a bare number, a name as it is.
std::string NodeWord(const std::string& name) { return IsNumber(name) ? "node " + name : name; }

std::string PairWord(const std::string& one, const std::string& other) {
  return (IsNumber(one) && IsNumber(other) ? "nodes " : "hosts ") + one + " and " + other;
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
    finding.headline = PairWord(pair->slow->one, pair->slow->other) + " reach " + PairFigure(*pair->slow) + ", " +
                       PairWord(pair->fast->one, pair->fast->other) + " reach " + PairFigure(*pair->fast) + ": " +
                       NodeWord(pair->shared) + " is in both pairs, so look at " + NodeWord(pair->suspect) +
                       " and at the path between " + pair->shared + " and " + pair->suspect;
    finding.evidence.push_back({pair->slow->source, PairFigure(*pair->slow), "the slow pair"});
    if (pair->fast->source.line != pair->slow->source.line)
      finding.evidence.push_back({pair->fast->source, PairFigure(*pair->fast), "the faster pair"});
    finding.fix = {"Measure between " + pair->suspect + " and " + pair->other +
                       " with the same command: if that is slow as well, " + NodeWord(pair->suspect) +
                       " is at fault; if not, the path between " + pair->shared + " and " + pair->suspect + " is.",
                   "Compare the adapters of " + pair->suspect +
                       " with those of the others: rate and state (ibstat, ethtool), PCIe width (lspci -vv), the NIC "
                       "that NCCL chooses for each GPU."};
  } else {
    return;
  }
  answer.findings.push_back(std::move(finding));
}

// iblinkinfo compares both ends of each link: "Could be 4X".
void JudgeNarrowLinks(const Case& facts, RuleAnswer& answer) {
  Finding finding;
  size_t links = 0, narrow = 0;
  for (const Event& event : facts.incident.events) {
    const auto& port = event.As<PortState>();
    links += !port.link.empty();
    if (port.link.empty() || port.better.empty()) continue;
    if (++narrow == 1)
      finding.headline = "the link of " + port.device + " port " + std::to_string(port.port) + " runs at " + port.link +
                         ", below what both ends can do (" + port.better + ")";
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(event, "both ends can do more"));
  }
  if (narrow == 0) return;
  finding.headline += narrow > 1
                          ? "; so do " + std::to_string(narrow - 1) + " more of " + std::to_string(links) + " links"
                      : links > 2  ? "; the other " + std::to_string(links - 1) + " links listed run as they should"
                      : links == 2 ? "; the other link listed runs as it should"
                                   : "";
  finding.cause = "slow-link";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::certain;
  finding.fix = {
      "Reseat or replace the cable or transceiver of that link, then bring the port down and up (mlxlink -d DEVICE -p "
      "PORT -a TG, or ibportstate).",
      "Look at its error counters (perfquery, mlxlink -c): symbol errors and link recoveries rise on a bad cable.",
      "Until then keep the host out of the job, or the adapter out of NCCL (NCCL_IB_HCA=^DEVICE): all ranks wait for "
      "the "
      "slowest link."};
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
  JudgeNarrowLinks(facts, answer);
  return answer;
}

}  // namespace

extern const Rule kSlowLinkRule;
const Rule kSlowLinkRule = {
    "slow-link",
    "One pair, device or host is slower than comparable ones",
    "a matrix of pairs: nvbandwidth, p2pBandwidthLatencyTest, or tests between three or more hosts (iperf3, perftest, "
    "nccl-tests); rates of the same operation in plain lines; iblinkinfo",
    "In a matrix of pairs a cell, a row or a column reaches less than 80 % of what comparable cells do. A single slow "
    "cell is a link; a slow row or column is a device or host that is slow in one direction; a slow row and column of "
    "the same device or host mean that it is slow in both.",
    "Links that differ by design are spread evenly over rows and columns (NVLink pairs among PCIe, near and far "
    "sockets) "
    "and are not a fault. If the whole matrix is slow, no single link is to blame: see bandwidth-below-model.",
    {"GPUs: `nvidia-smi nvlink -s` and `nvidia-smi -q | grep -A5 Link` on the host: inactive NVLinks, a slot that "
     "trained "
     "to fewer lanes or an older generation.",
     "Hosts: compare `ibstat` or `ethtool`, cables and counters of the slow host with those of its neighbors; measure "
     "the "
     "pair again in the other direction.",
     "Keep the host out of the job (--exclude, cordon) until it is repaired: a collective is as slow as its slowest "
     "link."},
    {"Run pairs before long jobs and after maintenance, and keep the matrix."},
    JudgeSlowLink};

}  // namespace tacet
