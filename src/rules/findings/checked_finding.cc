// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/checked_finding.h"

#include <algorithm>
#include <cstdint>

#include "analysis/timeouts/parted_waits.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

void TellByOperation(const CheckedStranger& found, Finding& finding) {
  const auto& sizes = found.report->As<MismatchReport>();
  const std::string who = RankWords({found.odd}), place = RaisedPlaceWords(*found.others);
  const bool backward = found.others->op == OpKind::unknown;
  const std::string call = backward ? "the backward pass" : std::string(Name(found.others->op));
  finding.headline = who + " was in a different operation from its peers, which were in " + call +
                     (place.empty() ? "" : ", called in " + place) + ": it expected " + sizes.tensor +
                     " and received " + sizes.other_tensor + ", and gloo's check ended it";
  finding.evidence.push_back(CiteEvent(*found.others, "where its peers were when they lost " + who));
  finding.fix = {"Find out which call " + who + " makes where the others " +
                     (backward ? "reduce their gradients" : "are in " + call) +
                     ": fewer batches than the others, a step that it skips after an error, a call under 'if rank == "
                     "0'.",
                 "Give all ranks the same number of steps (drop_last=True, DistributedSampler, or model.join()), and "
                 "decide on a skipped step together (all_reduce a flag before backward)."};
}

void TellByError(const CheckedStranger& found, Finding& finding) {
  const auto& sizes = found.report->As<MismatchReport>();
  const std::string who = RankWords({found.odd}), place = RaisedPlaceWords(*found.raised);
  const std::string message = MessageWords(found.raised->text);
  const std::string error = found.raised->As<Raised>().type + (place.empty() ? "" : " in " + place);
  finding.headline = who + " raised " + error + (message.empty() ? "" : ": " + message) +
                     ". It continued with other calls than its peers: " + RankWords({found.stopped}) + " expected " +
                     sizes.tensor + " and received " + sizes.other_tensor + ", and gloo's check stopped the job";
  finding.evidence.push_back(CiteEvent(*found.raised, "the error after which " + who + " continued"));
  finding.fix = {
      "Fix the error" + (place.empty() ? "" : " in " + place) + " on " + who +
          ": only this rank raised it, so look at its data, its configuration and its file system.",
      "Keep collectives out of blocks whose errors are caught: the rank that raises skips them, and its next "
      "collective meets an earlier one of the others. Catch the error before the collective, and exchange whether one "
      "occurred."};
}

}  // namespace

std::string SidesOfCheck(const Event& report) {
  const auto& sizes = report.As<MismatchReport>();
  if (!(sizes.by_gloo || sizes.by_horovod) || sizes.tensor.empty() || sizes.other_tensor.empty()) return "";
  // Horovod tells all ranks what its coordinator found, gloo the one that received too much.
  const bool own = sizes.by_gloo && report.rank.known();
  return ": " + sizes.tensor + " on " + (own ? RankWords({report.rank}) : "one rank") + ", " + sizes.other_tensor +
         " on another" + (own ? " rank" : "");
}

bool TellCheckedStranger(const Case& facts, Finding& finding) {
  const CheckedStranger found = FindCheckedStranger(facts.incident, facts.analyses.life, facts.analyses.nameless);
  if (!found) return false;
  finding.ranks = {found.odd};
  finding.affected_ranks.clear();
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (rank != found.odd) finding.affected_ranks.push_back(rank);
  finding.confidence = Confidence::likely;
  if (found.raised)
    TellByError(found, finding);
  else
    TellByOperation(found, finding);
  return true;
}

void TellWiderType(const Event& report, Finding& finding) {
  constexpr int64_t kFewestBytes = 64;  // of a few elements it is chance
  const auto& sizes = report.As<MismatchReport>();
  const int64_t less = std::min(sizes.elements, sizes.expected), more = std::max(sizes.elements, sizes.expected);
  if (!sizes.by_gloo || less < kFewestBytes || more != 2 * less || finding.fix.empty()) return;
  finding.fix.insert(finding.fix.begin() + 1,
                     "One size is exactly twice the other: compare the data types, too (float32 on one rank, float16 "
                     "or bfloat16 on another). They may depend on a configuration file or a flag of the host.");
}

}  // namespace tacet
