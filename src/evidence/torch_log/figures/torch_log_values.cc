// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "base/pair_set.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kValuesLookAhead = 4000;  // Megatron's and verl's lines are long
constexpr size_t kMostTimes = 96;          // of one voice; an even sample of longer ones
constexpr int64_t kAllOfFirst = 256, kOneIn = 16;
constexpr size_t kMostTrainings = 4096;  // of one file

char SmallLetter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsPartOfName(char c) {
  return IsDigit(c) || (SmallLetter(c) >= 'a' && SmallLetter(c) <= 'z') || c == '_' || c == '/';
}

// Whether `word` (small letters) stands at `at`, in any case.
bool StandsAt(std::string_view text, size_t at, std::string_view word) {
  if (text.size() - at < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i)
    if (SmallLetter(text[at + i]) != word[i]) return false;
  return true;
}

// The value behind a name: ": 5.51", "=nan", "': 2.3E+00", " 0.31", ":  5,851".
struct FoundValue {
  double value = 0;
  std::string_view word;
  bool whole_name = false;  // "loss", "lm loss", not "aux_loss"
};

std::optional<FoundValue> ValueBehind(std::string_view text) {
  size_t at = 0, marks = 0;
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == ':' || text[at] == '=' ||
                              text[at] == '\'' || text[at] == '"')) {
    marks += text[at] != ' ' && text[at] != '\t';
    if (++at > 12 || marks > 3) return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  // tensor(nan, device='cuda:0')
  if (text.substr(at).starts_with("tensor(")) at += 7;
  const size_t begin = at;
  std::string_view rest = text.substr(at);
  std::string_view bare = rest;
  if (bare.starts_with('-') || bare.starts_with('+')) bare.remove_prefix(1);
  for (const std::string_view word : {"nan", "inf"}) {
    if (!StandsAt(bare, 0, word)) continue;
    size_t length = 3;
    if (word == "inf" && StandsAt(bare, 0, "infinity")) length = 8;
    if (bare.size() > length && IsPartOfName(bare[length])) return std::nullopt;  // "info"
    const double value =
        word == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    return FoundValue{value, text.substr(begin, static_cast<size_t>(bare.data() - rest.data()) + length)};
  }
  std::array<char, 40> digits;
  size_t size = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == ',' && size > 0 && IsDigit(digits[size - 1])) {
      // "5,851" is one number, "5, 851" are two; what follows a comma of thousands are three digits.
      const size_t next = i + 1;
      const bool thousands = rest.size() >= next + 3 && IsDigit(rest[next]) && IsDigit(rest[next + 1]) &&
                             IsDigit(rest[next + 2]) && (rest.size() == next + 3 || !IsDigit(rest[next + 3]));
      if (!thousands) break;
      continue;
    }
    if (!IsDigit(c) && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E') break;
    if (size == digits.size()) return std::nullopt;
    digits[size++] = c;
  }
  double value = 0;
  const auto [end, error] = ParseDouble(digits.data(), digits.data() + size, value);
  if (error != std::errc() || end == digits.data()) return std::nullopt;
  return FoundValue{value, rest.substr(0, size)};
}

// "valid_", "eval/", "val " in front of a name: of data that is held out, and of no step.
bool IsOfHeldOut(std::string_view before) {
  if (before.ends_with(' ')) before.remove_suffix(1);
  size_t begin = before.size();
  while (begin > 0 && IsPartOfName(before[begin - 1])) --begin;
  const std::string_view word = before.substr(begin);
  for (const std::string_view one : {"val", "valid", "validation", "eval", "evaluation", "test", "dev"})
    if (StandsAt(word, 0, one) && (word.size() == one.size() || word[one.size()] == '_' || word[one.size()] == '/'))
      return true;
  return false;
}

// The value of the first of these names. A name may be the end of a longer one ("train_loss", "lm loss"), but not its
// beginning ("loss_scale", "loss scale").
std::optional<FoundValue> ValueOf(std::string_view text, std::string_view name) {
  std::optional<FoundValue> of_part;
  const std::string_view tail = name.substr(1);  // the first letter may be a capital
  for (size_t found = text.find(tail); found != std::string_view::npos; found = text.find(tail, found + 1)) {
    if (found == 0 || SmallLetter(text[found - 1]) != name[0]) continue;
    const size_t at = found - 1;
    const char before = at == 0 ? ' ' : SmallLetter(text[at - 1]);
    if (before >= 'a' && before <= 'z') continue;  // "gloss"
    auto value = ValueBehind(text.substr(at + name.size()));
    if (!value || IsOfHeldOut(text.substr(0, at))) continue;
    if (!IsPartOfName(before)) {  // the sum, not one of its parts
      value->whole_name = true;
      return value;
    }
    if (!of_part) of_part = value;
  }
  return of_part;
}

// The number that stands before a unit: "36.1it/s", "355.87 samples/sec", "131.88s/it".
double NumberBefore(std::string_view text, std::string_view unit) {
  const size_t at = text.rfind(unit);
  if (at == std::string_view::npos) return 0;
  size_t end = at;
  while (end > 0 && text[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && (IsDigit(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  double value = 0;
  const auto [last, error] = ParseDouble(text.data() + begin, text.data() + end, value);
  return error == std::errc() && last == text.data() + end ? value : 0;
}

void FindTime(std::string_view text, LineValues& found) {
  const auto take = [&](double seconds, std::string_view unit) {
    if (!std::isfinite(seconds) || seconds <= 0 || seconds > 1e9) return false;
    found.seconds = seconds;
    found.unit = unit;
    return true;
  };
  const auto named = [&](std::string_view name) {
    const auto value = ValueOf(text, name);
    return value ? value->value : 0;
  };
  const auto rate = [&](double each, std::string_view unit) { return each > 0 && take(1 / each, unit); };
  if (Contains(text, "elapsed time per iteration (ms)") &&
      take(named("elapsed time per iteration (ms)") / 1000, "step")) {
    found.exact = true;
    return;
  }
  if (Contains(text, "samples") &&
      (rate(NumberBefore(text, "samples/s"), "sample") || rate(named("samples per second"), "sample")))
    return;
  if (rate(NumberBefore(text, "tokens/s"), "token")) return;
  if (rate(named("tps"), "token")) {
    // torchtitan counts the tokens of one GPU: "memory: 61.20GiB(77.1%)  tps: 6,120"
    found.per_gpu = Contains(text, "memory: ") && Contains(text, "GiB(");
    return;
  }
  if (take(NumberBefore(text, "s/it"), "step") || rate(NumberBefore(text, "it/s"), "step")) return;
  if (take(NumberBefore(text, "s/step"), "step") || take(NumberBefore(text, "sec/step"), "step") ||
      take(NumberBefore(text, "s/batch"), "step") || take(NumberBefore(text, "sec/batch"), "step") ||
      take(NumberBefore(text, "ms/batch") / 1000, "step") || take(NumberBefore(text, "ms/step") / 1000, "step") ||
      rate(NumberBefore(text, "steps/s"), "step"))
    return;
  // "Iteration took 31.2 s."
  for (const std::string_view name : {"teration took ", "ter took ", "tep took ", "atch took "})
    if (auto rest = After(text, name)) {
      double seconds = 0;
      if (!TakeDouble(*rest, &seconds)) continue;
      SkipBlanks(*rest);
      if (rest->starts_with("ms")) seconds /= 1000;
      if ((rest->starts_with("ms") || rest->starts_with("s")) && take(seconds, "step")) {
        found.exact = true;
        return;
      }
    }
  if (!Contains(text, "tim")) return;
  for (const std::string_view name :
       {"train_step_timing in s", "step_time", "step time", "iter_time", "time/step", "batch_time"})
    if (take(named(name), "step")) {
      found.exact = true;
      return;
    }
  // "time(s): 307.7 s" of a line every 100 steps: for how many it is the line does not tell.
  for (const std::string_view name : {"time(s)", "time (s)", "time[s]"})
    if (take(named(name), "report")) return;
}

// "3.4176" -> 4; a number with an exponent has as many as anybody wants.
int DecimalsOf(std::string_view word) {
  if (word.find_first_of("eE") != std::string_view::npos) return 9;
  const size_t point = word.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(std::min<size_t>(word.size() - point - 1, 9));
}

size_t CountDigits(std::string_view word) {
  return static_cast<size_t>(std::count_if(word.begin(), word.end(), IsDigit));
}

}  // namespace

void AddTrainingValue(TrainingValue& value, double number, std::string_view word, int64_t step,
                      const SourceRef& source) {
  if (std::isfinite(number)) {
    if (value.lines == value.run) value.first = value.least = value.most = number;  // the first number of all
    value.least = std::min(value.least, number);
    value.most = std::max(value.most, number);
    constexpr double kFar = 10;
    if (value.least <= 0 || number < kFar * value.least)
      value.far = 0;
    else if (++value.far == 1)
      value.far_step = step, value.far_source = source;
    value.last = number;
    value.finite_since = value.run > 0 || value.finite_since > 0 ? value.finite_since + 1 : 0;
    value.run = 0;
    value.reports = 0;
    value.finite_step = step;
    ++value.lines;
    return;
  }
  if (value.run == 0) {
    value.run_step = step;
    value.run_source = source;
    value.word = word;
  }
  ++value.run;
  ++value.lines;
  value.finite_since = 0;
}

LineValues FindValues(std::string_view text) {
  text = text.substr(0, kValuesLookAhead);
  LineValues found;
  // verl: "actor/entropy_loss:0.41 - actor/pg_loss:nan": the loss that is trained on, not the first one.
  auto loss = ValueOf(text, "loss");
  for (const std::string_view name : {"pg_loss", "policy_loss"})
    if (const auto policy = loss ? ValueOf(text, name) : std::nullopt) loss = policy;
  if (loss) {
    found.loss = loss->value;
    found.loss_word = loss->word;
    found.whole_loss = loss->whole_name;
  }
  const bool has_norm = Contains(text, "norm");
  for (const std::string_view name : {"grad norm", "grad_norm", "gradient norm", "gnorm"}) {
    if (!has_norm) break;
    if (const auto norm = found.gradient ? std::nullopt : ValueOf(text, name))
      found.gradient = norm->value, found.gradient_word = norm->word;
  }
  const auto skipped = Contains(text, "skipped") ? ValueOf(text, "skipped iterations") : std::nullopt;
  found.skipped = skipped && skipped->value > 0;
  FindTime(text, found);
  return found;
}

// What a line says of a scale that it lowers: "reducing loss scale to 32768.0", "overflow detected, setting loss scale
// to: 0.25", "Loss scale is decreased to 4096".
static std::optional<FoundValue> LoweredScale(std::string_view text) {
  if (!ContainsAny(text, {"reduc", "Reduc", "overflow", "Overflow", "OVERFLOW", "lower", "decreas", "halv"}))
    return std::nullopt;
  // apex: "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0"
  for (auto behind = After(text, "oss scale"); behind; behind = After(*behind, "oss scale")) {
    std::string_view rest = *behind;
    for (const std::string_view link :
         {" is", " was", " has been", " decreased", " reduced", " lowered", " halved", " adjusted", " set"})
      TakeLiteral(rest, link);
    if (TakeLiteral(rest, " to")) return ValueBehind(rest);
  }
  return std::nullopt;
}

std::optional<ScaleChange> FindScaleDrop(std::string_view text) {
  // DeepSpeed: Attempted loss scale: 64, reducing to 32.
  ScaleChange change;
  if (const auto from = After(text, "ttempted loss scale")) {
    const auto to = After(*from, "reducing to");
    const auto first = ValueBehind(*from), second = to ? ValueBehind(*to) : std::nullopt;
    if (!first || !second) return std::nullopt;
    change = {first->value, second->value, IntAfter<int32_t>(text, "OVERFLOW! Rank ").value_or(-1)};
  } else if (const auto value = LoweredScale(text)) {
    change = {2 * value->value, value->value, -1, false};
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(change.from) || !std::isfinite(change.to) || change.to > change.from) return std::nullopt;
  return change;
}

void TrainingReader::AddTime(const StepTime& time) {
  last_time_ = time;
  if (skipped_++ % stride_ != 0) return;
  record_.times.push_back(time);
  if (record_.times.size() < kMostTimes) return;
  size_t kept = 0;
  for (size_t i = 0; i < record_.times.size(); i += 2) record_.times[kept++] = record_.times[i];
  record_.times.resize(kept);
  stride_ *= 2;
}

// Of a long run some lines are enough, as long as its figures are finite.
bool TrainingReader::IsWorthALook(std::string_view text) const {
  return record_.lines <= kAllOfFirst || record_.lines % kOneIn == 0 || record_.loss.run > 0 ||
         record_.gradient.run > 0 || Contains(text, "nan") || Contains(text, "NaN") || Contains(text, "inf");
}

// A loss that was far above what its digits can show, and then is 0: labels that are all masked, a value that is not
// filled in, an overflow that is cut off. One that is small already is rounded to 0, as it should be, and that of a
// small problem falls to 0 within a few steps: it must have moved slowly before, or the gradient norm must be stuck as
// well.
void TrainingReader::WatchLoss(const LineValues& values, const LogLine& line, int64_t step) {
  constexpr double kNotSmall = 0.1, kLeastUnits = 100, kSlowly = 3;
  OddValue& zero = record_.zero_loss;
  if (*values.loss != 0) {
    zero = {};
    loss_before_ = record_.loss.lines > record_.loss.run ? record_.loss.last : 0;
    loss_decimals_ = DecimalsOf(values.loss_word);
  } else if (zero.lines > 0) {
    ++zero.lines;
  } else if (values.whole_loss && record_.loss.lines > 0 && record_.loss.run == 0) {
    const double before = std::fabs(record_.loss.last);
    const double ratio = std::fabs(loss_before_) / before;
    const bool slow = ratio > 1 / kSlowly && ratio < kSlowly;
    if (!slow && record_.same_gradient.lines == 0) return;
    if (before < kNotSmall || before * std::pow(10, loss_decimals_) < kLeastUnits) return;
    zero = {1, step, std::string(values.loss_word), record_.loss.last, line.source};
  }
}

// Two steps never have the same norm in seven digits and more. A norm that is clipped before it is printed has: a round
// number. What several ranks print of one step is one report.
void TrainingReader::WatchGradient(const LineValues& values, const LogLine& line, int64_t step) {
  const double norm = *values.gradient;
  const bool anew = (step >= 0 && step > gradient_step_) || values.loss != gradient_loss_;
  if (!anew) return;
  OddValue& same = record_.same_gradient;
  const bool round = std::fabs(norm * 10 - std::round(norm * 10)) < 1e-3;
  if (values.gradient_word != gradient_word_ || round || CountDigits(values.gradient_word) < 7)
    same = {};
  else if (same.lines > 0)
    ++same.lines;
  else
    same = {2, step, gradient_word_, norm, line.source};
  gradient_word_ = values.gradient_word;
  gradient_step_ = step;
  gradient_loss_ = values.loss;
}

// "it comes to loss=0 and grad_norm=NaN at 8285/11043, and I have checked the data": whoever pasted the log tells it.
// Names of figures are of a few words each.
bool IsSomebodysSentence(std::string_view text) {
  constexpr size_t kMostOfAName = 6, kChineseWords = 12;
  size_t words = 0, chinese = 0;
  bool in_word = false;
  for (const char c : text.substr(0, 400)) {
    const char small = SmallLetter(c);
    const auto byte = static_cast<unsigned char>(c);
    chinese += byte >= 0xE3 && byte <= 0xE9;
    if ((small >= 'a' && small <= 'z') || c == '\'') {
      words += !in_word;
      in_word = true;
    } else {
      in_word = false;
      if (c != ' ' && c != ',') words = 0;
    }
    if (words > kMostOfAName || chinese >= kChineseWords) return true;
  }
  return false;
}

bool IsOfEvaluation(std::string_view text) {
  const std::string low = LowerCase(text.substr(0, 120));
  return PairSet(low).HoldsAny(
      {"(val)", "(test)", "test:", "eval:", "evaluat", "validat", "val:", "valid on '", "| valid |"});
}

void TrainingReader::ReadStep(const LogLine& line, int64_t step) {
  ++record_.lines;
  if (record_.first_step < 0) record_.first_step = step;
  record_.last_step = step;
  record_.source = line.source;
  if (!IsWorthALook(line.text) || IsSomebodysSentence(line.text)) return;
  LineValues values = FindValues(line.text);
  if (values.loss && IsOfEvaluation(line.text) && !ContainsAny(line.text, {"train", "Train"})) values.loss.reset();
  if (values.gradient && !values.skipped && std::isfinite(*values.gradient)) {
    ++finite_norms_;
    WatchGradient(values, line, step);
  }
  if (values.loss) {
    if (std::isfinite(*values.loss)) WatchLoss(values, line, step);
    AddTrainingValue(record_.loss, *values.loss, values.loss_word, step, line.source);
  }
  if (values.gradient && !values.skipped)
    AddTrainingValue(record_.gradient, *values.gradient, values.gradient_word, step, line.source);
  if (values.seconds <= 0) return;
  // Another bar begins: of an epoch, of an evaluation, of files that are loaded.
  const bool begins_anew = step >= 0 && step <= last_time_.step;
  if (record_.unit != values.unit || begins_anew) {
    record_.times.clear();
    stride_ = 1;
    skipped_ = 0;
    record_.unit = values.unit;
    record_.per_gpu = values.per_gpu;
  }
  record_.exact_times = values.exact;
  AddTime({step, values.seconds, line.source});
}

void TrainingReader::ReadScale(const LogLine& line, const ScaleChange& change) {
  LossScaleDrop& scale = record_.scale;
  // Another process tells the same drop: no step lies between the two lines.
  const bool again = !change.from_told && scale.drops > 0 && change.to == scale.to && record_.lines == lines_at_drop_;
  lines_at_drop_ = record_.lines;
  // A step between two drops gave finite gradients: they are not in a row.
  if (finite_norms_ > norms_at_drop_ && scale.drops + scale.at_floor > 0 && !again) scale = {};
  norms_at_drop_ = finite_norms_;
  if (change.from > scale.to && !again) scale = {};  // it has grown again: there were good steps
  if (change.to == change.from) {
    // At its minimum: the step is skipped, and nothing is left to try.
    if (scale.drops + scale.at_floor == 0) {
      scale.from = change.from;
      scale.first = line.source;
    }
    if (scale.at_floor == 0) {
      scale.floor_step = record_.last_step;
      scale.floor_rank = change.rank;
    }
    scale.at_floor += change.rank == scale.floor_rank;
    scale.last_step = record_.last_step;
    scale.to = change.to;
    scale.last = line.source;
    return;
  }
  if (scale.drops == 0) {
    scale.from = change.from;
    scale.first = line.source;
    scale.first_step = record_.last_step;
    scale.values_before = record_.loss.lines - record_.loss.run;
  }
  // Every rank may print it: only a scale that is lower than the last one is another drop.
  if (scale.drops == 0 || change.to < scale.to) ++scale.drops;
  scale.to = change.to;
  scale.last = line.source;
}

std::optional<NotFinite> FindNotFinite(std::string_view text) {
  text = text.substr(0, 400);
  std::string low(text);
  for (char& c : low) c = SmallLetter(c);
  // Advice and settings speak of it as well.
  if (ContainsAny(low,
                  {"if ", "avoid", "check", "?", "whether", "no longer", "not nan", "isn't", "ignore", ": 0", "=0"}))
    return std::nullopt;
  const bool says = ContainsAny(low, {"not finite", "non-finite", "nonfinite"});
  const bool names = ContainsAny(low, {"is nan", "is inf", "nan detected", "inf detected", "nan or inf", "nan/inf"});
  if (!says && !names) return std::nullopt;
  const bool of_loss = !Contains(low, "grad");
  if (of_loss && !Contains(low, "loss")) return std::nullopt;
  // Of an evaluation, which may have had nothing to evaluate.
  if (of_loss && (IsOfEvaluation(low) || ContainsAny(low, {"val_loss", "eval_loss", "valid_loss", "val loss",
                                                           "eval loss", "test_loss", "test loss", "not counted"})))
    return std::nullopt;
  std::string_view word = "not finite";
  for (const std::string_view one : {"nan", "inf"})
    for (size_t at = low.find(one); at != std::string::npos && word == "not finite"; at = low.find(one, at + 1)) {
      const bool begins = at == 0 || !IsPartOfName(low[at - 1]);
      if (begins && (at + 3 == low.size() || !IsPartOfName(low[at + 3]))) word = text.substr(at, 3);
    }
  if (!says && word == "not finite") return std::nullopt;  // "the loss is infinitely better"
  return NotFinite{of_loss, word};
}

void TrainingReader::ReadNotFinite(const LogLine& line, const NotFinite& report) {
  TrainingValue& value = report.of_loss ? record_.loss : record_.gradient;
  AddTrainingValue(value, std::numeric_limits<double>::quiet_NaN(), report.word, record_.last_step, line.source);
  ++value.reports;
}

void TrainingReader::Finish(TorchLog& log) {
  if (!record_.times.empty() && record_.times.back().source.offset != last_time_.source.offset)
    record_.times.push_back(last_time_);
  const bool tells = record_.loss.lines + record_.gradient.lines + record_.scale.drops + record_.scale.at_floor > 0 ||
                     record_.times.size() > 1;
  if (tells && log.training.size() < kMostTrainings) log.training.push_back(std::move(record_));
}

}  // namespace tacet
