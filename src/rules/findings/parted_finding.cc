// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/parted_finding.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/timeouts/parted_waits.h"
#include "rules/words/activity_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "barrier in best_model (train.py:723)", "the backward pass in train_epoch (train.py:704)".
std::string WaitWords(const PartedWait& wait) {
  const std::string place = RaisedPlaceWords(*wait.raised);
  const std::string operation =
      wait.raised->As<Raised>().during == Activity::backward ? "the backward pass" : std::string(Name(wait.raised->op));
  return operation + (place.empty() ? "" : ", called in " + place);
}

std::string ListOf(const std::vector<PartedWait>& waits) {
  std::string list;
  for (size_t i = 0; i < waits.size(); ++i) {
    list += i == 0 ? "" : i + 1 == waits.size() ? "; and " : "; ";
    list += (waits[i].ranks.empty() ? i == 0 ? "one or more in " : "others in " : RankWords(waits[i].ranks) + " in ") +
            WaitWords(waits[i]);
  }
  return list;
}

void TellCollectives(const std::vector<PartedWait>& waits, Finding& finding) {
  const bool alone = waits.size() == 2 && waits[1].ranks.size() == 1 && waits[0].ranks.size() > 1;
  if (alone) {
    finding.ranks = waits[1].ranks;
    finding.affected_ranks = waits[0].ranks;
    finding.headline = RankWords(waits[1].ranks) + " waited in " + WaitWords(waits[1]) + ", while " +
                       RankWords(waits[0].ranks) + " waited in " + WaitWords(waits[0]) +
                       ": they issued different operations, so none of them could finish";
  } else {
    finding.headline = "ranks waited in different operations, so none of them could finish: " + ListOf(waits);
  }
  finding.fix = {
      "Find out why " +
          (alone ? RankWords(waits[1].ranks) + " reaches " + WaitWords(waits[1]) + " while the others are in " +
                       WaitWords(waits[0])
                 : std::string("ranks issue different operations")) +
          ": fewer batches on one rank, a branch on a local value, a call under 'if rank == 0'.",
      "Decide such branches on values that are equal on all ranks (broadcast the condition first), and give all ranks "
      "the same number of steps.",
      "TORCH_DISTRIBUTED_DEBUG=DETAIL in a short run names the first call that differs."};
}

void TellMessages(const std::vector<PartedWait>& waits, bool circle, Finding& finding) {
  finding.headline = (circle ? "all ranks waited in a send or a receive, so some of them wait for each other: "
                             : "a message was not taken: ") +
                     ListOf(waits);
  finding.fix = {
      circle ? "Compare the order of sends and receives on neighboring ranks: where both send first, neither "
               "receives. Let one of each pair receive first, or use batch_isend_irecv."
             : "Compare the sends and receives of this rank with those of its peer: how many there are, with "
               "which ranks (dst, src) and tags, and in which order.",
      "Print rank, peer and number of each send and receive in a short run: the last lines show which one has "
      "no partner."};
}

}  // namespace

std::optional<Finding> PartedFinding(const Case& facts, std::string_view cause) {
  const std::vector<PartedWait> waits = FindPartedWaits(facts.analyses.life, facts.analyses.nameless);
  // A rank that was left alone, or one whose setting differs, says more.
  if (waits.empty() || !facts.analyses.told.empty() || facts.analyses.stated) return std::nullopt;
  const auto messages = static_cast<size_t>(std::count_if(waits.begin(), waits.end(), IsMessageWait));
  const std::string_view found = messages == 0              ? "collective-mismatch-operation"
                                 : messages == waits.size() ? "p2p-cycle"
                                                            : "p2p-unmatched";
  // Where several collectives and messages stand side by side, nothing is known of either.
  if (found != cause || (messages > 0 && messages < waits.size() && waits.size() > 2)) return std::nullopt;
  Finding finding;
  finding.cause = cause;
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  if (messages == 0)
    TellCollectives(waits, finding);
  else
    TellMessages(waits, messages == waits.size(), finding);
  if (finding.ranks.empty())
    for (const PartedWait& wait : waits)
      finding.affected_ranks.insert(finding.affected_ranks.end(), wait.ranks.begin(), wait.ranks.end());
  for (const PartedWait& wait : waits)
    finding.evidence.push_back(CiteEvent(
        *wait.raised, wait.ranks.empty() ? "where a rank waited" : "where " + RankWords(wait.ranks) + " waited"));
  return finding;
}

}  // namespace tacet
