// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/refusal_finding.h"

#include <algorithm>
#include <variant>

#include "model/events/refusals.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {

bool IsOfARepeatedStep(const Event& exception) {
  return exception.As<Raised>().refusal == "result-repeats" || exception.As<Raised>().refusal == "result-right";
}

std::string RefusalWords(const Event& exception) {
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  return refusal ? std::string(refusal->sentence) : std::string();
}

std::vector<std::string> RefusalSteps(const Event& exception) {
  std::vector<std::string> steps;
  if (const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal))
    for (const std::string_view step : refusal->steps)
      if (!step.empty()) steps.emplace_back(step);
  return steps;
}

std::string ObjectWords(const Event& exception) {
  const auto* object = std::get_if<ErrorObject>(&exception.As<Raised>().about);
  return object ? object->words : std::string();
}

std::string RefusalWithObject(const Event& exception) {
  const std::string sentence = RefusalWords(exception), object = ObjectWords(exception);
  if (object.empty()) return sentence;
  const size_t colon = sentence.find(": ");
  return colon == std::string::npos ? sentence + " (" + object + ")" : sentence.substr(0, colon) + ": " + object;
}

bool SaysAll(const Event& exception) {
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  return refusal && refusal->says_all;
}

std::string PlacesOfRanks(const std::vector<const Event*>& events, const Event& sample) {
  const std::string place = RaisedPlaceWords(sample);
  if (place.empty()) return "";
  std::vector<Rank> there;
  for (const Event* event : events)
    if (!RaisedPlaceWords(*event).empty()) there.push_back(event->rank);
  return there.size() == events.size() ? " in " + place : ", " + RankWords(there) + " in " + place;
}

size_t TimesTold(std::string_view text) {
  const size_t open = text.ends_with(" times)") ? text.rfind('(') : std::string_view::npos;
  size_t times = 0;
  if (open != std::string_view::npos)
    for (size_t i = open + 1; i < text.size() && text[i] >= '0' && text[i] <= '9' && times < 1'000'000; ++i)
      times = 10 * times + static_cast<size_t>(text[i] - '0');
  return std::max<size_t>(times, 1);
}

std::string CommandLineWords(const Case& facts, const Event& exception, std::vector<Rank> ranks) {
  const std::string_view refusal = exception.As<Raised>().refusal;
  if (refusal != "command-line" && refusal != "unknown-argument") return "";
  constexpr int64_t kCodeOfUsageErrors = 2;
  if (ranks.empty())
    for (const auto& [rank, life] : facts.analyses.life.ranks)
      if (life.exited && life.exited->As<ProcessEnd>().code == kCodeOfUsageErrors) ranks.push_back(rank);
  // One output of all ranks names few of those that say so.
  const size_t times = TimesTold(exception.text);
  const bool more = times > std::max<size_t>(ranks.size(), 1);
  const std::string text =
      MessageWords(times > 1 ? exception.text.substr(0, exception.text.rfind(" (")) : exception.text);
  return (more            ? std::to_string(times) + " processes"
          : ranks.empty() ? std::string("the program")
                          : RankWords(ranks)) +
         " rejected " + (more || ranks.size() > 1 ? "their" : "its") + " command line" +
         (text.empty() ? "" : ": " + text);
}

bool IsOfOneFile(const Event& exception) {
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  return refusal && refusal->of_one_file;
}

bool IsRefusedStart(const Event& exception) {
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  return refusal && refusal->not_started;
}

std::string TitleOfRefusal(const Event& exception) {
  // Calls that the program makes at the wrong time or with the wrong values, wherever it is started.
  constexpr std::string_view kOfCode[] = {
      "group-not-initialised", "group-twice",      "cpu-tensor",   "mpi-before-init", "marked-twice",
      "mpi-after-finalize",    "gradients-differ", "heap-damaged", "object-damaged",  "kernel-resources"};
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  if (!refusal || refusal->of_program ||
      std::find(std::begin(kOfCode), std::end(kOfCode), refusal->id) != std::end(kOfCode))
    return "";
  return refusal->not_started ? "The job could not be started" : "The setup or the environment of the job is at fault";
}

std::string ReportedWords(const Event& exception, const std::string& text) {
  constexpr std::string_view kOf = "an error of ";
  const std::string& type = exception.As<Raised>().type;
  if (!type.starts_with(kOf) || type == "an error of its command line") return type + (text.empty() ? "" : ": " + text);
  const std::string name = type.substr(kOf.size());
  return text.empty() ? type : text.starts_with(name) ? text : name + ": " + text;
}

bool IsOfTheProgram(const Event& exception) {
  const Refusal* refusal = FindRefusal(exception.As<Raised>().refusal);
  return refusal && refusal->of_program;
}

bool IsOddOne(const Case& facts, Rank rank) {
  const auto& ranks = facts.analyses.life.ranks;
  // Of errors that came later nothing is told.
  if (const RankLife* own = facts.analyses.life.Of(rank);
      own && own->exception && own->exception->As<Raised>().first_only)
    return false;
  return std::any_of(ranks.begin(), ranks.end(), [&](const auto& one) {
    const RankLife& life = one.second;
    return one.first != rank && life.any() && !life.exception && !IsExplained(life);
  });
}

std::vector<Rank> RanksCutOff(const Case& facts) {
  std::vector<Rank> ranks;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    const Event* cut = life.exception ? nullptr : life.consequence;
    if (cut && cut->text.empty() && cut->Means(Meaning::reported) && !cut->As<Raised>().place.file.empty())
      ranks.push_back(rank);
  }
  return ranks;
}

std::string JoinToRefusal(const std::string& refusal, bool has_object, const std::string& raised) {
  if (has_object) return refusal + "; " + raised;
  return refusal + (refusal.find(": ") == std::string::npos ? ": " + raised : ". " + Capitalised(raised));
}

Rank OnlyRankWithoutError(const Case& facts, const std::vector<Rank>& raised) {
  Rank calm;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (std::find(raised.begin(), raised.end(), rank) != raised.end()) continue;
    const bool reports = life.exception || life.consequence || life.timeout || life.lost_peer || life.init_error;
    if (calm.known() || reports || !life.any()) return {};
    calm = rank;
  }
  return calm;
}

const Event& ReasonOf(const Case& facts, const Event& first) {
  constexpr uint32_t kNear = 60;  // lines: a traceback or two
  if (!first.As<Raised>().refusal.empty()) return first;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::exception && event.As<Raised>().refusal == "open-files" &&
        event.source.file == first.source.file && event.rank == first.rank && event.source.line > first.source.line &&
        event.source.line - first.source.line <= kNear)
      return event;
  return first;
}

}  // namespace tacet
