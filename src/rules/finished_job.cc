// SPDX-License-Identifier: Apache-2.0
#include "rules/finished_job.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "rules/message_words.h"
#include "rules/outline_words.h"
#include "rules/told_trouble.h"

namespace tacet {
namespace {

constexpr size_t kMostOfFinish = 120;

// The program says it first, its launcher and the scheduler say it again.
struct FinishLines {
  const Event *first = nullptr, *last = nullptr;
};

std::map<FileId, FinishLines> FinishesByFile(const Incident& incident) {
  std::map<FileId, FinishLines> finishes;
  for (const Event& event : incident.events) {
    const auto& finish = event.As<ProcessFinish>();
    if (event.kind != EventKind::process_finished || !finish.of_job || !finish.said) continue;
    auto& [first, last] = finishes[event.source.file];
    if (!first || event.source.line < first->source.line) first = &event;
    if (!last || last->source.line < event.source.line) last = &event;
  }
  return finishes;
}

bool IsComplaint(const Event& event) {
  return event.kind == EventKind::unread_error || event.kind == EventKind::told_hang ||
         event.kind == EventKind::told_stop || event.kind == EventKind::told_slow;
}

// Rank 0, which runs the store, may leave first.
bool IsFarewellAfter(const Event& event, const Event& finish) {
  return (event.kind == EventKind::store_lost || event.kind == EventKind::connection_lost) &&
         event.source.file == finish.source.file && event.source.line > finish.source.line;
}

}  // namespace

const Event* FindToldFinish(const Case& facts, const Diagnosis& diagnosis) {
  const Incident& incident = facts.incident;
  const JobEnding kind = facts.analyses.end.kind;
  if ((kind != JobEnding::open && kind != JobEnding::finished) || facts.analyses.outcome.unfinished_calls ||
      facts.analyses.outcome.first_timeout || !incident.threads.empty() || IsTroubleTold(incident))
    return nullptr;
  if (!HasNotesOnly(diagnosis)) return nullptr;
  const std::map<FileId, FinishLines> finishes = FinishesByFile(incident);
  if (finishes.empty()) return nullptr;
  for (size_t i = 0; i < incident.files.size(); ++i) {
    const InputFile& file = incident.files[i];
    if (IsReadAs(file, "torch_log") && file.bytes.understood > 0 &&
        !finishes.contains(FileId{static_cast<uint32_t>(i)}))
      return nullptr;
  }
  for (const Event& event : incident.events) {
    if (!IsComplaint(event)) continue;
    const auto finish = finishes.find(event.source.file);
    if (finish == finishes.end() || finish->second.last->source.line < event.source.line) return nullptr;
  }
  return finishes.begin()->second.first;
}

void SettleFinished(const Case& facts, const Event& finish, Diagnosis& diagnosis) {
  const auto& events = facts.incident.events;
  diagnosis.status = Status::healthy;
  diagnosis.confidence = Confidence::likely;
  diagnosis.headline =
      "The job finished ('" + MessageWords(finish.text, kMostOfFinish) + "'), and no line reports a fault";
  if (std::any_of(events.begin(), events.end(), [&](const Event& event) { return IsFarewellAfter(event, finish); }))
    diagnosis.headline +=
        "; connections that close after that line are harmless: rank 0, which runs the store, left first";
  if (const std::string_view words = HarmlessAtExit(facts.incident); !words.empty())
    diagnosis.headline += ". " + std::string(words);
}

}  // namespace tacet
