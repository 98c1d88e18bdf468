// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_finding.h"
#include "rules/words/topology_words.h"

namespace tacet {
namespace {

std::string BreakWords(const Case& facts, const CommView& comm, const RingView::Break& broken) {
  const std::string who = PlaceWords(facts, comm, broken.rank);
  if (broken.kind == RingView::Break::Kind::closes_early)
    return "it closes after " + std::to_string(broken.one) + " of " + std::to_string(broken.other) + " ranks";
  const std::string one = PlaceWords(facts, comm, broken.one), other = PlaceWords(facts, comm, broken.other);
  return broken.kind == RingView::Break::Kind::two_next ? who + " is followed by " + one + " and by " + other
                                                        : who + " follows both " + one + " and " + other;
}

// Error : ring 0 does not loop back to start (3 != 0)
// NCCL checks the rings that it has built, and gives up.
void JudgeRefusedRing(const Case& facts, RuleAnswer& answer) {
  const ToldEvents told =
      CollectTold(facts, [](const Event& event) { return IsFatalWarning(event, {"ring-inconsistent"}); });
  if (!told) return;
  Finding finding = ToldFinding(facts, "ring-broken", told, "NCCL's check of the ring fails");
  finding.headline = "NCCL built a ring that does not visit every rank once, " + AtTellerWords(told) +
                     ": the ranks disagree on who follows whom" + RankUnknownWords(told);
  answer.findings.push_back(std::move(finding));
}

RuleAnswer JudgeBrokenRings(const Case& facts) {
  RuleAnswer answer;
  for (const CommView& comm : facts.analyses.topology.comms) {
    std::vector<std::string> channels;
    const RingView* first = nullptr;
    for (const RingView& ring : comm.rings)
      if (!ring.breaks.empty()) {
        channels.push_back(std::to_string(ring.channel));
        if (!first) first = &ring;
      }
    if (!first) continue;
    Finding finding = DegradedFinding("ring-broken");
    finding.group = comm.group;
    const RingView::Break& broken = first->breaks.front();
    if (const Rank rank = JobRank(facts, comm, broken.rank); rank.known()) finding.ranks = {rank};
    finding.headline =
        "The ring of channel " + std::to_string(first->channel) + " is broken: " + BreakWords(facts, comm, broken);
    if (channels.size() > 1) finding.headline += "; channels " + ListWords(channels, 8) + " are affected";
    for (const RingView::Break& one : first->breaks)
      if (finding.evidence.size() < 4)
        finding.evidence.push_back(CiteRecord(facts, one.record, facts.incident.rank_channels[one.record].rings_line,
                                              "", BreakWords(facts, comm, one)));
    answer.findings.push_back(std::move(finding));
  }
  if (answer.findings.empty()) JudgeRefusedRing(facts, answer);
  return answer;
}

}  // namespace

extern const Rule kRingBrokenRule;
const Rule kRingBrokenRule = {
    "ring-broken",
    "A ring does not visit every rank once",
    "NCCL logs (INIT, GRAPH) of the ranks concerned",
    "The ranks of a communicator disagree on which rank follows which in a ring. A ring must visit every rank once and "
    "close; "
    "ranks with different views of it exchange data with the wrong neighbor, or wait for one that never answers.",
    "Logs of two runs in one folder can look like this, but their communicators have different ids. A ring of which "
    "only some ranks left logs is incomplete, not broken.",
    {"Make sure that all ranks run the same NCCL and the same NCCL_* settings: NCCL_GRAPH_FILE, NCCL_TOPO_FILE, "
     "NCCL_RINGS.",
     "Remove NCCL_GRAPH_FILE and hand-made topology files, and start again."},
    {"Ship topology files with the image, the same for all nodes of a kind."},
    JudgeBrokenRings};

}  // namespace tacet
