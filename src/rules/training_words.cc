// SPDX-License-Identifier: Apache-2.0
#include "rules/training_words.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace tacet {

std::string TrainingFigures(const Incident& incident) {
  if (incident.training.empty()) return "";
  const TrainingRecord& record = incident.training.front();
  char text[160];
  std::string words;
  if (record.loss.lines - record.loss.run > 1) {
    std::snprintf(text, sizeof text, "the loss went from %.4g to %.4g", record.loss.first, record.loss.last);
    words = text;
  }
  if (record.times.size() > 1) {
    const double seconds = record.times.back().seconds;
    if (record.unit == "step")
      std::snprintf(text, sizeof text, seconds < 1 ? "a step takes %.3g ms" : "a step takes %.4g s",
                    seconds < 1 ? seconds * 1e3 : seconds);
    else
      std::snprintf(text, sizeof text, "%.4g %ss per second", 1 / seconds, record.unit.c_str());
    words += (words.empty() ? "" : ", ") + std::string(text);
  }
  if (record.scale.drops > 0) {
    std::snprintf(text, sizeof text,
                  "the loss scale fell from %.6g to %.6g, as it does while mixed precision looks for it",
                  record.scale.from, record.scale.to);
    words += (words.empty() ? "" : ", ") + std::string(text);
  }
  // A NaN that finite values follow is a question that readers have.
  for (const auto& [value, name] : {std::pair{&record.loss, "loss"}, std::pair{&record.gradient, "gradient norm"}})
    if (value->finite_since > 0)
      words += (words.empty() ? "" : "; ") +
               ("the " + std::string(name) + " was " + value->word + " at first and is finite in the last " +
                (value->finite_since == 1 ? "line" : std::to_string(value->finite_since) + " lines") +
                (value == &record.gradient ? ": usual while mixed precision looks for its scale" : ""));
  return words;
}

std::string TrainingWords(const Case& facts) {
  constexpr int64_t kEnoughSteps = 3;     // fewer are a start-up
  constexpr uint64_t kLinesBehind = 600;  // bytes: a line or two of other output
  const Event* last = nullptr;
  for (const Event& event : facts.incident.events) {
    if (IsSignOfCrash(event) || IsSignOfHang(event)) return "";
    const int64_t rising = event.As<Progress>().rising;
    if (rising >= kEnoughSteps && (!last || rising > last->As<Progress>().rising)) last = &event;
  }
  if (!last || facts.analyses.end.kind != JobEnding::open) return "";
  const auto file = static_cast<size_t>(last->source.file);
  if (file >= facts.incident.files.size()) return "";
  const uint64_t total = facts.incident.files[file].bytes.total;
  if (total > last->source.offset && total - last->source.offset > kLinesBehind) return "";
  const std::string figures = TrainingFigures(facts.incident);
  return "training made progress up to step " + std::to_string(last->As<Progress>().step) + " (" +
         std::to_string(last->As<Progress>().rising) + " lines)" + (figures.empty() ? "" : "; " + figures) +
         "; no later line reports a fault; the text does not show how the job ended";
}

}  // namespace tacet
