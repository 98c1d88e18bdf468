// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/thread_owner.h"

#include <string>

#include "rules/words/activity_words.h"
#include "rules/words/exception_advice.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

bool TellOwnerOfThread(const Case& facts, const Event& exception, Finding& finding) {
  const auto& of_threads = facts.analyses.nameless.of_threads;
  const auto& told = facts.analyses.told;
  if (of_threads.size() != 1 || of_threads.front() != &exception || told.size() != 1 ||
      told.front().waiters.size() + 1 != facts.analyses.life.ranks.size())
    return false;
  const Rank rank = told.front().rank;
  const std::string who = RankWords({rank}), others = RankWords(told.front().waiters);
  const std::string place = RaisedPlaceWords(exception), text = MessageWords(exception.text);
  finding.ranks = {rank};
  finding.affected_ranks = told.front().waiters;
  finding.headline = who + " most likely raised " + exception.As<Raised>().type +
                     (place.empty() ? "" : " in " + place) + (text.empty() ? "" : ": " + text);
  finding.evidence = {CiteEvent(exception, "the exception; its rank is unknown, and only " + who + " did not time out"),
                      {told.front().source, "", others + " waited in vain"}};
  TellEndedThread(false, finding);
  return true;
}

}  // namespace tacet
