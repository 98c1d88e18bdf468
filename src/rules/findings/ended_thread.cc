// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/ended_thread.h"

#include <algorithm>
#include <string>

#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "in thread Thread-1 (produce) 'text'" -> "'text'": the sentence names the thread by its place in the code.
std::string WordsOfError(const SurvivedError& error) {
  constexpr size_t kMostQuoted = 100;
  std::string_view words = error.words;
  if (words.starts_with("in thread ")) {
    const size_t name = words.find(')');
    const size_t end = name != std::string_view::npos ? name + 1 : words.find(' ', 10);
    words.remove_prefix(std::min(end, words.size()));
  }
  const size_t begin = words.find_first_not_of(" :");
  return begin == std::string_view::npos ? "" : ": " + MessageWords(words.substr(begin), kMostQuoted);
}

}  // namespace

void TellThreadBeforeHang(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.status != Status::hang || diagnosis.findings.empty()) return;
  Finding& first = diagnosis.findings.front();
  if (!first.cause.empty() && first.cause != "rank-stuck-on-host") return;
  const auto& survived = facts.incident.survived;
  const auto error =
      std::find_if(survived.begin(), survived.end(), [](const SurvivedError& one) { return one.raised.in_thread; });
  if (error == survived.end()) return;
  const std::string place = CodePlaceWords(error->raised.place);
  const std::string in = place.empty() ? "" : " in " + place;
  if (first.headline.ends_with('.')) first.headline.pop_back();
  first.headline += ". Before that, " + error->raised.type + " ended a thread" + in + WordsOfError(*error) +
                    "; its process continued without it";
  diagnosis.headline = first.headline;
  first.evidence.insert(
      first.evidence.begin() + (first.evidence.empty() ? 0 : 1),
      {error->source, "",
       "an uncaught exception ended this thread, not its process; whose it is the line does not say"});
  first.fix.insert(
      first.fix.begin(),
      "Look at the thread that ended" + in +
          " first: what it should have done (loading data, saving, sending) was not done anymore, and its "
          "rank may wait for it. Pass the exception on to the main thread, so that the job fails at once.");
}

}  // namespace tacet
