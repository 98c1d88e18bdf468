// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/finished_job.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "rules/unexplained/passed_trouble.h"
#include "rules/words/message_words.h"
#include "rules/words/outline_words.h"
#include "rules/words/training_words.h"

namespace tacet {
namespace {

constexpr size_t kMostOfFinish = 120;

std::string ErrorsBefore(const Incident& incident, const SaidEnd& said) {
  const std::vector<std::string> passed = PassedTroubles(incident);
  const std::string words = (passed.empty() ? "" : "; ") + PassedWords(passed);
  if (said.errors > 0) return words + "; " + SurvivedWords(said.errors, said.first_error);
  return words + (passed.empty() ? ", and " : "; ") + NoFaultReported(passed);
}

std::string WordsOfJob(const Case& facts, const SaidEnd& said) {
  const auto& events = facts.incident.events;
  std::string words = "The job finished ('" + MessageWords(said.first->text, kMostOfFinish) + "')";
  const std::string restarts = RestartWords(facts.incident);
  words += restarts.empty() ? ErrorsBefore(facts.incident, said) : " after " + restarts;
  const auto any_behind = [&](bool of_step) {
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return IsFarewell(event) && IsStepEnd(event) == of_step && event.source.file == said.first->source.file &&
             event.source.line > said.first->source.line;
    });
  };
  if (any_behind(true)) words += "; Slurm canceled a job step afterward, which did not affect the program";
  if (any_behind(false))
    words += "; connections that close after that line are harmless: rank 0, which runs the store, exited first";
  if (const std::string_view harmless = HarmlessAtExit(facts.incident); !harmless.empty())
    words.append(". ").append(harmless);
  return words;
}

std::string WordsOfOutput(const Case& facts, const SaidEnd& said) {
  std::string words = TrainingWords(facts);
  if (!words.empty()) return words;  // they quote the last line
  words = said.last->rank.known() ? FinishedRanksWords(facts) : "";
  if (words.empty()) words = "the output ends with '" + said.last->text.substr(0, kMostOfFinish) + "'";
  const std::string restarts = RestartWords(facts.incident);
  words += restarts.empty() ? ErrorsBefore(facts.incident, said) : ", after " + restarts;
  if (const std::string figures = TrainingFigures(facts.incident); !figures.empty()) words.append(". ").append(figures);
  return words;
}

}  // namespace

bool SettleFinished(const Case& facts, Diagnosis& diagnosis) {
  const SaidEnd& said = facts.analyses.end.said;
  if (!said || !HasNotesOnly(diagnosis)) return false;
  diagnosis.status = Status::healthy;
  diagnosis.confidence = said.of_job ? Confidence::likely : Confidence::possible;
  diagnosis.headline = said.of_job ? WordsOfJob(facts, said) : WordsOfOutput(facts, said);
  return true;
}

}  // namespace tacet
