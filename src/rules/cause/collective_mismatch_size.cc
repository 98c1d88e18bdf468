// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "rules/findings/mismatch_finding.h"
#include "rules/words/words.h"

namespace tacet {

static std::string AmountWords(const Call& call) {
  return std::to_string(std::max(call.in_elements, call.out_elements)) + " " + std::string(Name(call.type));
}

// Sends and receives of NCCL's log are parts of an all-to-all where a better record shows ranks in one. Which of
// several it is the two do not tell: they count differently.
static const SourceAnalysis* EnclosingExchange(const Case& facts, const P2pLink& link) {
  for (const SourceAnalysis& source : facts.analyses.sources)
    for (const Rank rank : {link.receiver, link.sender}) {
      const auto blocked = source.waits.blocked_in.find(rank);
      if (blocked != source.waits.blocked_in.end() && blocked->second->kind == OpKind::all_to_all) return &source;
    }
  return nullptr;
}

// Steps of a message whose two ends disagree; those of a collective, in which all pass one size, do not fit.
static std::vector<std::string> HalvesAdvice(const P2pLink& link, bool exchange) {
  const std::string sender = RankWords({link.sender}), receiver = RankWords({link.receiver});
  const std::string discard = "Discard results computed after this point: they may be wrong even if the job continued.";
  if (exchange)
    return {"Look at the splits that both ranks pass to all_to_all: what " + sender + " sends to " + receiver +
                " (input_split_sizes) must be what " + receiver + " expects from it (output_split_sizes).",
            "Exchange the sizes first (an all_to_all of the counts), and compute output_split_sizes from them.",
            discard};
  return {
      "Compare how both ranks compute the shape of this message: the length of a sequence, the last batch, a "
      "different configuration file?",
      "Send the shape before the data, or use one of fixed size.", discard};
}

// A send meets a receive of another size: the splits of an all-to-all do not agree, or two pipeline stages differ about
// a shape. The rank that does so towards several peers is at fault; between two, nobody can say whose size is wrong.
static RuleAnswer JudgeUnequalHalves(const Case& facts) {
  RuleAnswer answer;
  if (FirstDifferenceOf(facts) || !(facts.analyses.outcome.hangs() || facts.analyses.outcome.first_failure))
    return answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    std::map<Rank, std::set<Rank>> partners;
    const P2pLink* first = nullptr;
    for (const P2pLink& link : source.links) {
      if (!link.unequal_send || link.sender == link.receiver) continue;
      partners[link.sender].insert(link.receiver);
      partners[link.receiver].insert(link.sender);
      if (!first || link.unequal_send->seq < first->unequal_send->seq) first = &link;
    }
    if (!first) continue;
    Finding finding;
    for (const auto& [rank, others] : partners)
      if (others.size() >= 2) finding.ranks.push_back(rank);
    if (finding.ranks.size() > 1) finding.ranks.clear();
    finding.cause = "collective-mismatch-size";
    finding.status = finding.ranks.empty() ? Status::undetermined : StatusAfterDisagreement(facts);
    finding.severity = Severity::critical;
    finding.confidence = finding.ranks.empty() ? Confidence::possible : Confidence::likely;
    finding.group = first->group;
    const SourceAnalysis* exchange = EnclosingExchange(facts, *first);
    finding.operation = exchange ? OperationRef{OpKind::all_to_all, -1, -1} : RefOf(*first->unequal_send);
    std::set<Rank> affected;
    for (const auto& [rank, others] : partners) affected.insert(rank);
    if (exchange)
      for (const auto& [rank, call] : exchange->waits.blocked_in) affected.insert(rank);
    for (const Rank rank : affected)
      if (finding.ranks.empty() || rank != finding.ranks[0]) finding.affected_ranks.push_back(rank);
    finding.fix = HalvesAdvice(*first, exchange != nullptr);
    finding.headline = std::string(exchange ? "in an all_to_all " : "") + RankWords({first->sender}) + " sends " +
                       AmountWords(*first->unequal_send) + " to " + RankWords({first->receiver}) + ", which receives " +
                       AmountWords(*first->unequal_recv) + ": the sizes differ";
    finding.evidence.push_back(CiteCall(facts.incident, *first->send_stream, *first->unequal_send,
                                        RankWords({first->sender}) + " sends this"));
    finding.evidence.push_back(CiteCall(facts.incident, *first->recv_stream, *first->unequal_recv,
                                        RankWords({first->receiver}) + " receives this"));
    if (finding.ranks.empty())
      answer.open.push_back({"Which of the two sizes is wrong?",
                             "the code at both call sites: how each rank computes its splits or shapes"});
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  return answer;
}

// The network notices when a message is longer than what was waited for. Different calls do that, and different
// settings.
static void JudgeTruncatedMessages(const Case& facts, RuleAnswer& answer) {
  for (const SourceAnalysis& source : facts.analyses.sources)
    if (!source.differences.empty()) return;
  for (const Event& event : facts.incident.events) {
    const std::string_view id = event.As<Warning>().id;
    if (event.kind != EventKind::nccl_warning || (id != "message-truncated" && id != "ib-size-mismatch")) continue;
    Finding finding;
    finding.cause = "collective-mismatch-size";
    finding.status = Status::undetermined;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::possible;
    finding.headline =
        "a message was longer than the receiver expected: ranks passed different sizes to one collective, skipped or "
        "added a collective, or have different NCCL settings";
    if (event.rank.known()) finding.affected_ranks.push_back(event.rank);
    finding.evidence.push_back(CiteEvent(event, "the network saw a message of a different size"));
    answer.open.push_back({"Which rank passed a different size?",
                           "flight records or NCCL logs (NCCL_DEBUG_SUBSYS=INIT,ENV,COLL) of all ranks"});
    answer.findings.push_back(std::move(finding));
    return;
  }
}

static RuleAnswer JudgeCollectiveMismatchSize(const Case& facts) {
  RuleAnswer answer = JudgeMismatch(facts, CallAspect::size, "collective-mismatch-size");
  if (answer.findings.empty()) answer = JudgeUnequalHalves(facts);
  if (answer.findings.empty()) JudgeTruncatedMessages(facts, answer);
  return answer;
}

extern const Rule kCollectiveMismatchSizeRule;
const Rule kCollectiveMismatchSizeRule = {
    "collective-mismatch-size",
    "Ranks pass different sizes to one collective",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of at least two members",
    "At one place in a group's sequence a rank passed a different number of elements. NCCL does not check this: data "
    "is misplaced, later collectives pair up wrongly, and the job stalls much later or ends with wrong numbers.",
    "all_to_all with uneven splits and gathers of unequal shards are legal and not reported, unless a send meets a "
    "receive of a different size. A different data type of the same size is a separate cause.",
    {"Find the call in the program (a flight record names its line): typical reasons are an uneven last batch, "
     "padding, a parameter that exists on one rank only, or a different configuration file.",
     "Pad or drop the last batch (drop_last=True), or gather the sizes first.",
     "Discard results computed after this point: they may be wrong even if the job continued."},
    {"Run a short job with TORCH_DISTRIBUTED_DEBUG=DETAIL after changes.",
     "Assert equal shapes across ranks once at start."},
    JudgeCollectiveMismatchSize};

}  // namespace tacet
