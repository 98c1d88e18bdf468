// SPDX-License-Identifier: Apache-2.0
#include "rules/words/training_words.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/process/job_end.h"
#include "base/text_scan.h"
#include "rules/unexplained/passed_trouble.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/message_words.h"
#include "rules/words/outline_words.h"
#include "rules/words/words.h"

namespace tacet {

namespace {

// The first step compiles and connects. It counts only where it is like the others, or where there are few.
std::pair<double, double> RangeOfTimes(const std::vector<StepTime>& times) {
  constexpr double kWarmUp = 1.5;
  const auto slower = [](const StepTime& a, const StepTime& b) { return a.seconds < b.seconds; };
  auto [least, most] = std::minmax_element(times.begin() + 1, times.end(), slower);
  if (times.size() > 3 && times.front().seconds > kWarmUp * most->seconds) return {least->seconds, most->seconds};
  return {std::min(least->seconds, times.front().seconds), std::max(most->seconds, times.front().seconds)};
}

// "iteration 40/ 40", "step 40 of 40": the number of the last step, where it is that of all. -1: it is not.
int64_t LastOfAllSteps(const Incident& incident) {
  const Event* last = nullptr;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::progress && !event.As<Progress>().of_epoch &&
        (!last || last->source.line < event.source.line))
      last = &event;
  const int64_t step = last ? last->As<Progress>().step : -1;
  if (step <= 0) return -1;
  const std::string_view text = last->text;
  const std::string number = std::to_string(step);
  for (size_t at = text.find(number); at != std::string_view::npos; at = text.find(number, at + 1)) {
    if (at > 0 && (IsDigit(text[at - 1]) || text[at - 1] == '.')) continue;
    std::string_view rest = text.substr(at + number.size());
    SkipBlanks(rest);
    int64_t all = 0;
    if (!TakeLiteral(rest, "/") && !TakeLiteral(rest, "of ")) continue;
    SkipBlanks(rest);
    if (TakeNumber(rest, &all) && all == step) return step;
  }
  return -1;
}

// Scales are powers of two: "2^32", and "65536" up to there.
std::string ScaleWords(double scale) {
  int exponent = 0;
  char text[40];
  if (std::frexp(scale, &exponent) == 0.5 && exponent > 17)
    std::snprintf(text, sizeof text, "2^%d", exponent - 1);
  else
    std::snprintf(text, sizeof text, "%.10g", scale);
  return text;
}

// Both with as many digits behind the point as the one that needs more: "2.500", "2.506".
std::pair<std::string, std::string> EvenDigits(double first, double last) {
  char one[40], other[40];
  std::snprintf(one, sizeof one, "%.4g", first);
  std::snprintf(other, sizeof other, "%.4g", last);
  const auto digits = [](std::string_view text) {
    const size_t point = text.find('.');
    return point == std::string_view::npos ? 0 : static_cast<int>(text.size() - point - 1);
  };
  const bool plain = std::string_view(one).find_first_not_of("-0123456789.") == std::string_view::npos &&
                     std::string_view(other).find_first_not_of("-0123456789.") == std::string_view::npos;
  // A loss that fell to a small part of itself needs digits that the first one has not.
  const bool alike = std::fabs(first) < 10 * std::fabs(last) && std::fabs(last) < 10 * std::fabs(first);
  if (plain && alike) {
    const int most = std::max(digits(one), digits(other));
    std::snprintf(one, sizeof one, "%.*f", most, first);
    std::snprintf(other, sizeof other, "%.*f", most, last);
  }
  return {one, other};
}

// "A step takes 125.9 to 129.7 s.", "The rate is 7.9 to 8.1 samples per second."; one figure where they differ by less
// than 1 %.
std::string PaceRange(const TrainingRecord& record) {
  const auto [least, most] = RangeOfTimes(record.times);
  const bool steps = record.unit == "step" || record.unit == "report", small = steps && most < 1;
  const double factor = small ? 1e3 : 1;
  const double low = steps ? least * factor : 1 / most, high = steps ? most * factor : 1 / least;
  const auto [from, to] = EvenDigits(low, high);
  const std::string text = high - low < 0.01 * high ? to : from + " to " + to;
  if (record.unit == "report") return "A progress line appears every " + text + " s.";
  if (!steps)
    return "The rate is " + text + " " + record.unit + "s per second" + (record.per_gpu ? " on each GPU." : ".");
  return "A step takes " + text + (small ? " ms." : " s.");
}

// A few lines show no trend, unless the value moves a lot.
std::string LossWords(const TrainingValue& loss, int64_t lines) {
  constexpr int64_t kFewLines = 5;
  constexpr double kClearMove = 0.05, kPeak = 5;
  const double first = loss.first, last = loss.last;
  char text[160];
  if (lines < kFewLines && std::fabs(last - first) < kClearMove * std::fabs(first)) {
    std::snprintf(text, sizeof text, "The last loss is %.4g.", last);
    return text;
  }
  const auto [from, to] = EvenDigits(first, last);
  std::string peak;
  if (first > 0 && last > 0 && loss.most > kPeak * std::max(first, last)) {
    std::snprintf(text, sizeof text, ", with a peak of %.4g in between", loss.most);
    peak = text;
  }
  return "The loss went from " + from + " to " + to + peak + ".";
}

}  // namespace

std::string EndSeenWords(const Case& facts) {
  if (std::string words = FinishedRanksWords(facts); !words.empty()) return Capitalised(std::move(words)) + ".";
  if (const Event* last = facts.analyses.end.said.last)
    return "The output ends with '" + last->text.substr(0, 120) + "'.";
  for (const LogOutline& outline : facts.incident.outlines)
    if (!outline.says_done.empty()) return "The output ends with '" + outline.says_done + "', but shows no exit code.";
  const int64_t last = LastOfAllSteps(facts.incident);
  return last < 0 ? ""
                  : "The last progress line shows step " + std::to_string(last) + " of " + std::to_string(last) +
                        "; the text does not show how the job ended.";
}

// " The output ends with 'training finished'."
static std::string EndWords(const Case& facts) {
  const std::string seen = EndSeenWords(facts);
  return " " + (seen.empty() ? "The text does not show how the job ended." : seen);
}

std::string RestartWords(const Incident& incident) {
  const auto& runs = incident.earlier_runs;
  const auto restarted = [](const EarlierRun& one) { return one.restarts > 0; };
  // The files of the attempt itself tell more than the launcher does.
  auto run = std::find_if(runs.begin(), runs.end(), [&](const EarlierRun& one) {
    return restarted(one) && !one.end.empty() && one.line_of_end == 0;
  });
  if (run == runs.end()) run = std::find_if(runs.begin(), runs.end(), restarted);
  if (run == runs.end()) return "";
  const std::string line = run->line_of_end > 0 ? ", line " + std::to_string(run->line_of_end) : std::string();
  return (run->restarts == 1 ? std::string("one restart") : std::to_string(run->restarts) + " restarts") +
         " by torchrun" +
         (run->end.empty()     ? " (line " + std::to_string(run->source.line) + ")"
          : run->restarts == 1 ? " (" + run->end + line + ")"
                               : " (before the last one " + run->end + line + ")");
}

static std::string NonFiniteWord(const TrainingValue& value) { return value.word == "nan" ? "NaN" : value.word; }

// "The reward went from 1.717 to 1.969." A policy's loss is near 0 by its definition, so the reward tells how it
// learns.
static std::string RewardWords(const Incident& incident) {
  for (const LogOutline& outline : incident.outlines)
    for (const FigureSeries& figure : outline.series) {
      if (figure.kind != FigureSeries::Kind::reward) continue;
      const TrainingValue& value = figure.value;
      if (value.lines - value.run < 2) continue;
      const auto [from, to] = EvenDigits(value.first, value.last);
      return "The reward went from " + from + " to " + to + ".";
    }
  return "";
}

// A scale of thousands is found by trying; below 1 it shrinks what it should enlarge.
static std::string ScaleFellWords(const LossScaleDrop& scale) {
  constexpr double kLowest = 1;
  constexpr int64_t kManyDrops = 8;
  const std::string fell = "The loss scale fell from " + ScaleWords(scale.from) + " to " + ScaleWords(scale.to);
  if (scale.to < kLowest)
    return fell + ": below 1 it makes gradients smaller instead of larger, so look for values that are not finite.";
  if (scale.drops >= kManyDrops && scale.values_before > 0)
    return fell + " in " + std::to_string(scale.drops) + " drops in a row: the steps between them were skipped.";
  return fell + ", which is normal while the scaler is still searching for its level.";
}

// The last lines show it, too few of them for a finding.
static std::string LostAtTheEndWords(const TrainingValue& value, bool is_loss) {
  if (value.run == 0 || value.run >= value.lines) return "";
  std::string words = std::string("The ") + (is_loss ? "loss" : "gradient norm") + " is " + NonFiniteWord(value) +
                      (value.run == 1 ? " in the last line that shows it"
                                      : " in the last " + std::to_string(value.run) + " lines that show it") +
                      (value.run_step >= 0 ? " (step " + std::to_string(value.run_step) + ")" : "");
  if (is_loss) return words + "; training is lost if it persists.";
  return words + ": with float16 one such step is skipped, but training is lost if it persists.";
}

std::string TrainingFigures(const Incident& incident) {
  if (incident.training.empty()) return "";
  const TrainingRecord& record = incident.training.front();
  std::string words;
  const auto say = [&](const std::string& sentence) { words += (words.empty() ? "" : " ") + sentence; };
  const bool all_zero = record.loss.first == 0 && record.loss.last == 0 && record.zero_loss.lines == 0;
  if (const int64_t lines = record.loss.lines - record.loss.run; lines > 1 && !all_zero)
    // Steps that end below where they begin are of two runs: their losses show no trend.
    if (record.last_step >= record.first_step) say(LossWords(record.loss, lines));
  if (record.times.size() > 1) say(PaceRange(record));
  if (const std::string reward = RewardWords(incident); !reward.empty()) say(reward);
  if (record.scale.drops > 0) say(ScaleFellWords(record.scale));
  for (const TrainingValue* value : {&record.loss, &record.gradient})
    if (const std::string lost = LostAtTheEndWords(*value, value == &record.loss); !lost.empty()) say(lost);
  // A NaN that finite values follow is a question that readers have; that of a loss stands among the passed troubles.
  if (const TrainingValue& gradient = record.gradient; gradient.finite_since > 0)
    say("A first " + NonFiniteWord(gradient) +
        " gradient norm is normal while mixed precision searches for its scale; the last " +
        (gradient.finite_since == 1 ? "one is" : std::to_string(gradient.finite_since) + " are") + " finite.");
  return words;
}

// A line behind this one is marked as an error, whatever it says.
static bool HasLaterErrorLine(const Incident& incident, const Event& step) {
  return std::any_of(incident.outlines.begin(), incident.outlines.end(), [&](const LogOutline& one) {
    return one.errors > 0 && one.last_error.file == step.source.file && one.last_error.line > step.source.line;
  });
}

std::string TrainingWords(const Case& facts) {
  constexpr int64_t kEnoughSteps = 3;  // fewer are a start-up
  constexpr size_t kMostOfEnd = 80;
  constexpr uint64_t kLinesBehind = 600;  // bytes: a line or two of other output
  const Event* last = nullptr;
  for (const Event& event : facts.incident.events) {
    if (IsSignOfCrash(event) || IsSignOfHang(event)) return "";
    const int64_t rising = event.As<Progress>().rising;
    if (rising >= kEnoughSteps && (!last || rising > last->As<Progress>().rising)) last = &event;
  }
  if (!last || facts.analyses.end.kind != JobEnding::open) return "";
  // An error in other words is quoted instead.
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::unread_error && event.source.file == last->source.file &&
        event.source.line > last->source.line)
      return "";
  const auto file = static_cast<size_t>(last->source.file);
  if (file >= facts.incident.files.size()) return "";
  const uint64_t total = facts.incident.files[file].bytes.total;
  if (total > last->source.offset && total - last->source.offset > kLinesBehind) return "";
  const std::string figures = TrainingFigures(facts.incident);
  std::string before;
  for (const EarlierRun& run : facts.incident.earlier_runs)
    if (run.restarts == 0 && run.source.file == last->source.file)
      before = "steps up to " + std::to_string(run.last_step) + " ended with '" + MessageWords(run.end, kMostOfEnd) +
               "' (line " + std::to_string(run.source.line) + "); then the step numbers start again. ";
  const std::string restarts = RestartWords(facts.incident);
  const std::vector<std::string> passed = PassedTroubles(facts.incident);
  const auto& survived = facts.incident.survived;
  return before + (before.empty() ? "training" : "Training") + " made progress up to " +
         (last->As<Progress>().of_epoch ? "epoch " : "step ") + std::to_string(last->As<Progress>().step) + " (" +
         std::to_string(last->As<Progress>().rising) + " progress lines)" +
         (restarts.empty() ? "" : " after " + restarts) + "." + (figures.empty() ? "" : " " + figures) +
         (passed.empty() ? "" : " " + Capitalised(PassedWords(passed)) + ".") +
         (survived.empty()
              ? ""
              : " " + SurvivedWords(static_cast<int64_t>(survived.size()), FirstSurvived(facts.incident)) + ".") +
         (HasLaterErrorLine(facts.incident, *last) ? " A line after the last step is marked as an error."
                                                   : " No line after the last step reports a fault.") +
         (IsTroubleTold(facts.incident) ? "" : EndWords(facts));
}

}  // namespace tacet
