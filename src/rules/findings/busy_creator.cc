// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/busy_creator.h"

#include <string>

#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

static void TellBusyCreator(const Case& facts, Rank creator, Finding& finding) {
  const RankLife* life = facts.analyses.life.Of(creator);
  if (!life || !life->has_output || !life->exited || IsFirstHandEnd(*life->exited)) return;
  finding.cause = "rank-stuck-on-host";
  finding.headline += "; its process was alive, so its own code is most likely stuck or slow";
  finding.explanation =
      "The first collective creates the communicator, and rank 0 sends its id to the others. A rank that loads or "
      "downloads data before that makes all others wait; the first rank to time out ends the job.";
  const auto& lines = facts.analyses.printed.LastOf(creator);
  if (!lines.empty())
    finding.evidence.push_back(
        {lines.back()->source, lines.back()->text, "the last line that " + RankWords({creator}) + " printed itself"});
  finding.fix = {"See what " + RankWords({creator}) +
                     " does between init_process_group and its first collective (a download, tokenizing, a cache, a "
                     "lock): " +
                     (lines.empty() ? "its output" : "its last line is " + QuotedLine(*lines.back())) + ".",
                 "Prepare the data before the job starts, or before init_process_group.",
                 "If it is only slow: raise the limit with init_process_group(timeout=...)."};
}

void TellMissingCreator(const Case& facts, const Event& wait, Finding& finding) {
  const std::string creator = RankWords({wait.peer}), waiter = RankWords({wait.rank});
  const int64_t limit_ms = wait.As<StoreWait>().timeout_ms;
  finding.affected_ranks = {wait.rank};
  finding.headline = creator + " had not reached the job's first collective when " + waiter +
                     " gave up waiting for it" + (limit_ms > 0 ? " after " + DurationWords(limit_ms * 1'000'000) : "");
  finding.evidence.push_back(CiteEvent(wait, waiter + " waited for the communicator that " + creator + " creates"));
  TellBusyCreator(facts, wait.peer, finding);
}

}  // namespace tacet
