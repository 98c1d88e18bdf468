// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/failed_restart.h"

#include <algorithm>
#include <string>

#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

bool IsFailureOfWorker(const Event& event) {
  const auto& end = event.As<ProcessEnd>();
  return event.kind == EventKind::process_exited && end.local_rank >= 0 && end.code != 0 && event.pid > 0;
}

// The ranks of one node have their own numbers there.
bool IsOnOneNode(const Case& facts) {
  int32_t highest_local = -1;
  for (const Event& event : facts.incident.events) {
    const int32_t local = event.As<ProcessEnd>().local_rank;
    if (local < 0) continue;
    if (event.rank.known() && event.rank.value != local) return false;
    highest_local = std::max(highest_local, local);
  }
  const auto& ranks = facts.analyses.life.ranks;
  return !ranks.empty() && ranks.rbegin()->first.value == highest_local;
}

const Event* FirstBehind(const Incident& incident, const Event& before, bool (*matches)(const Event&)) {
  const Event* first = nullptr;
  for (const Event& event : incident.events)
    if (event.source.file == before.source.file && event.source.line > before.source.line && matches(event) &&
        (!first || event.source.line < first->source.line))
      first = &event;
  return first;
}

}  // namespace

std::optional<FailedRestart> FindFailedRestart(const Case& facts, const Event& first) {
  const Incident& incident = facts.incident;
  const Event* ended = FirstBehind(incident, first, IsFailureOfWorker);
  if (!ended || ended->As<ProcessEnd>().first_failure || !IsOnOneNode(facts)) return std::nullopt;
  const Event* error = FirstBehind(incident, *ended, [](const Event& event) {
    return event.kind == EventKind::exception && !IsConsequence(event) && !event.Means(Meaning::reported);
  });
  if (!error) return std::nullopt;
  // torchrun's list is of the last attempt alone.
  for (const Event& event : incident.events) {
    if (event.source.file == ended->source.file && event.source.line > error->source.line && IsFailureOfWorker(event) &&
        event.pid != ended->pid && event.As<ProcessEnd>().first_failure.value_or(false))
      return FailedRestart{error, &event};
  }
  return std::nullopt;
}

void TellFailedRestart(const FailedRestart& restart, Finding& finding) {
  const auto& raised = restart.error->As<Raised>();
  const std::string who = restart.error->rank.known() ? RankWords({restart.error->rank})
                          : restart.end->rank.known() ? RankWords({restart.end->rank})
                                                      : std::string("a rank");
  const std::string place = RaisedPlaceWords(*restart.error), where = place.empty() ? "" : " in " + place;
  const std::string message = MessageWords(restart.error->text);
  if (finding.headline.ends_with('.')) finding.headline.pop_back();
  finding.headline += "; torchrun restarted the job, and the restart failed, too: " + who + " raised " + raised.type +
                      where + (message.empty() ? "" : ": " + message);
  finding.evidence.push_back(CiteEvent(*restart.error, "the error after the restart"));
  finding.evidence.push_back(CiteEvent(*restart.end, "the end of the restarted job"));
  finding.fix.push_back(
      restart.error->Means(Meaning::cuda_failed)
          ? "The restart failed because of a GPU: look with nvidia-smi whether a process of the first attempt still "
            "held it."
          : "The restart failed because of another error" + (where.empty() ? "" : "," + where) + ": fix it as well.");
}

const Event* FirstFailureElsewhere(const Case& facts, const std::vector<Rank>& ranks) {
  for (const Event& event : facts.incident.events) {
    if (!IsFailureOfWorker(event) || !event.As<ProcessEnd>().first_failure.value_or(false)) continue;
    const RankLife* life = facts.analyses.life.Of(event.rank);
    const bool told = life && (life->exception || life->consequence || life->gpu_error || life->cuda_oom ||
                               life->host_memory || life->lost_peer || life->timeout || life->unused_parameters);
    if (event.rank.known() && event.As<ProcessEnd>().code > 0 && !told &&
        std::find(ranks.begin(), ranks.end(), event.rank) == ranks.end())
      return &event;
  }
  return nullptr;
}

}  // namespace tacet
