// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_step_figures.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_values.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {
namespace {

constexpr size_t kMostShares = 400'000, kMostFigures = 100'000;  // of one text
constexpr size_t kMostSeries = 4096;
constexpr size_t kLongestLine = 1000;

bool IsWholeNumber(const NamedNumber& number) {
  return number.unit.empty() && !number.digest && number.value >= 0 && number.value < 1e15 &&
         number.word.find_first_of(".eE") == std::string_view::npos && std::isfinite(number.value);
}

// What a line says in another sentence is no figure: "loss of 3" by blanks alone needs a name of one or two words.
bool IsProse(const NamedNumber& number) {
  return !number.marked && std::count(number.name.begin(), number.name.end(), ' ') > 2;
}

// "Process 2 | iter 30 | ...", as the first thing that a line tells; larger numbers are pids.
constexpr double kMostProcesses = 4096;
bool IsProcess(std::string_view name) {
  const std::string low = LowerCase(name);
  return low == "process" || low == "proc" || low == "worker";
}

// "reward", "train/reward_std", "critic/rewards/mean": the whole of it, not one of the functions that it is made of.
// Until a line shows another value, it is 0.
FigureSeries::Kind KindOfReward(std::string_view name) {
  for (const std::string_view one : {"train/", "critic/", "objective/"}) TakeLiteral(name, one);
  for (const std::string_view one : {"reward", "rewards/mean", "mean_reward", "reward_mean"})
    if (name == one) return FigureSeries::Kind::no_reward;
  return name == "reward_std" || name == "rewards/std" ? FigureSeries::Kind::no_spread : FigureSeries::Kind::other;
}

constexpr size_t kMostKept = 6;  // values of one line
bool IsLearningRate(std::string_view name) {
  const std::string low = LowerCase(name);
  return low == "lr" || low == "learning rate" || low == "learning_rate";
}

void Add(double& sum, double seconds) { sum = std::max(sum, 0.0) + seconds; }

}  // namespace

// One line, taken apart.
struct FigureReader::Parts {
  StepShare share;
  double told = -1, told_sum = -1;  // the whole step, by the line; by a word that may mean the run as well
  double backward = -1;             // shared work
  bool inner = false, of_evaluation = false, sums = false;  // sums: a norm or checksum of the parameters
  std::string at;                                           // "epoch 3, step 120"
  const NamedNumber* loss = nullptr;
  std::vector<const NamedNumber*> kept;  // of the parameters, and settings
  std::vector<std::pair<const NamedNumber*, FigureName>> values;
};

// Where in the run, whose, and what remains.
void FigureReader::ReadPlace(std::string_view text, Parts& parts) {
  std::string epoch, step;
  bool timed = false;
  std::vector<std::pair<const NamedNumber*, FigureName>> all;
  for (const NamedNumber& number : numbers_) {
    FigureName name = names_.Of(number.name);
    if (IsProse(number) && name.kind != FigureKind::rank) continue;
    const bool whole = IsWholeNumber(number);
    const bool of_time = SecondsOf(number, name, 1, false) >= 0;
    // "step 0.706 s"
    if (name.kind == FigureKind::step && of_time && !whole) name.kind = FigureKind::whole;
    if (!of_time && whole && name.counted && name.kind == FigureKind::shared) name.kind = FigureKind::step;
    timed = timed || (of_time && name.kind >= FigureKind::whole && name.kind <= FigureKind::wait);
    if (number.index >= 0) {
      all.emplace_back(&number, name);
    } else if (name.kind == FigureKind::rank && whole && number.value < 1e6) {
      parts.share.rank = static_cast<int32_t>(number.value);
    } else if (&number == numbers_.data() && parts.share.rank < 0 && whole && number.value < kMostProcesses &&
               IsProcess(number.name)) {
      parts.share.rank = static_cast<int32_t>(number.value);
    } else if (name.kind == FigureKind::stage && whole && number.value < 1e6) {
      parts.share.stage = static_cast<int32_t>(number.value);
    } else if (name.kind == FigureKind::step && whole) {
      if (!step.empty()) continue;
      parts.share.place = static_cast<int64_t>(number.value);
      step = "step " + std::string(number.word);
    } else if (name.kind == FigureKind::epoch && !number.digest && std::isfinite(number.value)) {
      if (!epoch.empty()) continue;
      parts.share.epoch = static_cast<int64_t>(number.value);
      epoch = "epoch " + std::string(number.word);
    } else if (number.name.empty() && number.of_total) {
      // "[1/5][200/500]"
      if (parts.share.place >= 0 && parts.share.epoch < 0)
        parts.share.epoch = parts.share.place, epoch = "epoch" + step.substr(4);
      parts.share.place = static_cast<int64_t>(number.value);
      step = "step " + std::string(number.word);
    } else {
      all.emplace_back(&number, name);
    }
  }
  // "time (ms) | fwd: 120.1 | bwd: 310.2"
  const double unit = ContainsAny(text.substr(0, 200), {"time (ms)", "times (ms)", "(ms) |"}) ? 1e-3 : usual_unit_;
  for (const auto& [number, name] : all) {
    const double seconds = SecondsOf(*number, name, unit, timed);
    StepShare& share = parts.share;
    parts.inner = parts.inner || name.inner;
    if (number->index >= 0 || name.kind < FigureKind::whole || name.kind > FigureKind::wait) {
      parts.values.emplace_back(number, name);
      continue;
    }
    if (seconds < 0 || (name.sums && !name.timed && number->unit.empty())) {
      parts.values.emplace_back(number, FigureName{});  // "total 2.31" of a table of losses
      if (seconds < 0) continue;
    }
    switch (name.kind) {
      case FigureKind::whole:
        (name.sums ? parts.told_sum : parts.told) = std::max(name.sums ? parts.told_sum : parts.told, seconds);
        break;
      case FigureKind::work: Add(share.work, seconds); break;
      case FigureKind::shared: Add(share.shared, seconds); break;
      case FigureKind::data: Add(share.data, seconds); break;
      case FigureKind::wait: Add(share.wait, seconds); break;
      default: break;
    }
  }
  parts.at = epoch + (epoch.empty() || step.empty() ? "" : ", ") + step;
  parts.of_evaluation = IsOfEvaluation(text);
}

bool FigureReader::AddShare(Parts& parts, const SourceRef& source, LogOutline& out) {
  StepShare& share = parts.share;
  // "bwd: 500, bwd_inner: 48, bwd_allreduce: 452": the first holds the others.
  if (parts.inner) share.shared = -1;
  if (share.wait >= 0 && share.shared >= 0) {
    Add(share.work, share.shared);
    share.shared = -1;
  }
  const bool has_part = share.data >= 0 || share.work >= 0 || share.wait >= 0 || share.shared >= 0;
  double sum = 0;
  for (const double part : {share.data, share.work, share.wait, share.shared}) sum += std::max(part, 0.0);
  const bool named = share.rank >= 0 || share.stage >= 0;
  share.whole = parts.told;
  // "total=0.40s" beside its parts is theirs; a sum of the whole run is not.
  constexpr double kRest = 3, kRounded = 0.998;
  if (share.whole < 0 && has_part && parts.told_sum >= kRounded * sum && parts.told_sum < kRest * sum + 1)
    share.whole = std::max(parts.told_sum, sum);
  share.told = share.whole >= 0;
  const bool both = share.data >= 0 && (share.work >= 0 || share.shared >= 0);
  if (share.whole < 0 && (both || (named && share.data < 0 && has_part) || (named && share.wait >= 0 && has_part)))
    share.whole = sum;
  if (share.whole >= 0 && share.data > share.whole) share.whole += share.data;
  if (share.whole >= 0 && share.whole < sum && share.wait >= 0) share.whole = sum;
  // A step and what of it is a wait: the rest is its own.
  if (share.wait >= 0 && share.work < 0 && share.whole > share.wait && parts.told >= 0)
    share.work = share.whole - share.wait - std::max(share.data, 0.0);
  const bool placed = share.epoch >= 0 && share.place >= 0;
  const bool of_rank = named && (share.work >= 0 || share.shared >= 0 || share.wait >= 0);
  if (parts.of_evaluation || share.whole <= 0 || (share.data < 0 && !placed && !of_rank)) return false;
  if (out.steps.size() >= kMostShares) return false;
  share.source = source;
  if (share.place < 0 && share.rank >= 0) share.place = PlaceOf(share.rank);
  out.steps.push_back(share);
  return true;
}

// The step of a line that tells none: a line above it does, for one line of each rank, or else lines are counted.
int64_t FigureReader::PlaceOf(int32_t rank) {
  if (told_step_ >= 0 && told_ranks_.insert(rank).second) return told_step_;
  told_step_ = -1;
  return counted_[rank]++;
}

void FigureReader::AddValues(Parts& parts, const SourceRef& source, LogOutline& out) {
  const int32_t rank = parts.share.rank;
  for (const auto& [number, name] : parts.values) {
    if (number->index >= 0) continue;
    const bool whole_name = number->name == "loss" || number->name == "Loss";
    if (name.kind == FigureKind::loss && !name.held_out && !number->digest && (!parts.loss || whole_name))
      parts.loss = number;
    const bool of_setting = name.kind == FigureKind::setting && IsLearningRate(number->name);
    if ((name.kind == FigureKind::parameters || of_setting) && parts.kept.size() < kMostKept)
      parts.kept.push_back(number);
    parts.sums = parts.sums || name.kind == FigureKind::parameters;
  }
  if (out.values.size() + 1 + parts.kept.size() > kMostFigures) return;
  const std::string at = parts.at.empty() && told_step_ >= 0 ? "step " + std::to_string(told_step_) : parts.at;
  if (at.empty()) return;
  using Kind = RankValue::Kind;
  if (parts.loss && rank >= 0) out.values.push_back({rank, Kind::loss, at, LowerCase(parts.loss->word), source, ""});
  for (const NamedNumber* one : parts.kept)
    out.values.push_back({rank, IsLearningRate(one->name) ? Kind::setting : Kind::parameters, at, LowerCase(one->word),
                          source, std::string(one->name)});
}

void FigureReader::AddSeries(Parts& parts, const SourceRef& source, LogOutline& out) {
  for (const auto& [number, name] : parts.values) {
    if (number->index >= 0 || number->digest || number->name.empty()) continue;
    const bool of_reward = KindOfReward(number->name) != FigureSeries::Kind::other;
    if (name.kind != FigureKind::loss && name.kind != FigureKind::gradient && name.kind != FigureKind::other &&
        !of_reward)
      continue;
    if (name.kind == FigureKind::other && !number->marked && Contains(number->name, " ")) continue;
    const std::pair<int32_t, std::string> key{parts.share.rank, std::string(number->name)};
    auto known = series_of_.find(key);
    if (known == series_of_.end()) {
      if (out.series.size() >= kMostSeries) continue;
      known = series_of_.emplace(key, out.series.size()).first;
      FigureSeries& added = out.series.emplace_back();
      added.rank = key.first;
      added.name = key.second;
      added.held_out = name.held_out;
      added.kind = name.kind == FigureKind::loss       ? FigureSeries::Kind::loss
                   : name.kind == FigureKind::gradient ? FigureSeries::Kind::gradient
                                                       : KindOfReward(added.name);
    }
    FigureSeries& series = out.series[known->second];
    if (number->value != 0 && series.kind == FigureSeries::Kind::no_reward) series.kind = FigureSeries::Kind::reward;
    if (number->value != 0 && series.kind == FigureSeries::Kind::no_spread)
      series.kind = FigureSeries::Kind::reward_spread;
    AddTrainingValue(series.value, number->value, LowerCase(number->word), parts.share.place, source);
    series.last = source;
  }
}

// What a rank tells of a step under names without a known meaning: bare decimals, which may be times. A line without
// the number of a step is that of the next one.
void FigureReader::AddDecimals(const Parts& parts, bool of_table, const SourceRef& source, LogOutline& out) {
  constexpr size_t kMostNames = 32, kFewest = 2;
  if (parts.of_evaluation || out.decimals.size() >= kMostFigures) return;
  std::vector<StepDecimal> found;
  for (const NamedNumber& number : numbers_) {
    if (number.index >= 0 || number.digest || number.name.empty() || (!number.marked && !of_table)) continue;
    if (!number.unit.empty() && number.unit != "s" && number.unit != "ms") continue;
    const FigureName meaning = names_.Of(number.name);
    const bool of_time = !number.unit.empty() || meaning.has_unit;
    if (!(number.value >= 0) || !std::isfinite(number.value) || (!of_time && !Contains(number.word, "."))) continue;
    const FigureKind kind = meaning.kind;
    if (meaning.held_out || kind == FigureKind::loss || kind == FigureKind::gradient || kind == FigureKind::setting ||
        kind == FigureKind::parameters || kind == FigureKind::epoch)
      continue;
    // "r0 s019 local": whose it is stands before it.
    std::string_view word = number.name;
    if (const size_t digit = word.find_last_of("0123456789"); digit != std::string_view::npos)
      if (const size_t blank = word.find(' ', digit); blank != std::string_view::npos) word.remove_prefix(blank + 1);
    const auto known = std::find(out.decimal_names.begin(), out.decimal_names.end(), word);
    if (known == out.decimal_names.end() && out.decimal_names.size() >= kMostNames) return;
    const auto name = static_cast<uint32_t>(known - out.decimal_names.begin());
    if (known == out.decimal_names.end()) out.decimal_names.emplace_back(word);
    const double seconds = number.unit == "ms"  ? number.value * 1e-3
                           : number.unit == "s" ? number.value
                                                : number.value * (meaning.has_unit ? meaning.seconds : 1);
    found.push_back({parts.share.rank, parts.share.epoch, parts.share.place, name, seconds, source});
  }
  if (found.size() < kFewest) return;
  if (parts.share.place < 0) {
    const int64_t place = decimal_lines_[parts.share.rank]++;
    for (StepDecimal& one : found) one.place = place;
  }
  out.decimals.insert(out.decimals.end(), found.begin(), found.end());
}

// "compute_ms per rank: [31.2, 30.8, 92.1, 31.0]"
bool FigureReader::ReadLists(Parts& parts, const SourceRef& source, LogOutline& out) {
  bool any = false;
  for (const auto& [number, name] : parts.values) {
    const std::string low = LowerCase(number->name);
    if (number->index < 0 || !ContainsAny(low, {"rank", "worker", "gpu", "process"})) continue;
    // The words that say so are no part of its meaning.
    std::string bare = low;
    for (const std::string_view words :
         {"per rank", "by rank", "per_rank", "across ranks", "of ranks", "per worker", "per gpu", "all ranks", "ranks"})
      if (const size_t at = bare.find(words); at != std::string::npos) bare.erase(at, words.size());
    const FigureName meaning = names_.Of(bare);
    Parts one;
    one.share.rank = number->index;
    one.share.epoch = parts.share.epoch;
    one.share.place = parts.share.place;
    one.at = parts.at;
    if (meaning.kind == FigureKind::parameters && !parts.at.empty() && out.values.size() < kMostFigures) {
      out.values.push_back(
          {number->index, RankValue::Kind::parameters, parts.at, LowerCase(number->word), source, bare});
      any = true;
      continue;
    }
    const double seconds = SecondsOf(*number, meaning, usual_unit_, true);
    if (seconds < 0) continue;
    if (meaning.kind == FigureKind::work)
      one.share.work = seconds;
    else if (meaning.kind == FigureKind::data)
      one.share.data = seconds, one.told = parts.told;
    else if (meaning.kind == FigureKind::shared)
      one.share.shared = seconds;
    else
      continue;
    any = AddShare(one, source, out) || any;
  }
  return any;
}

// Megatron: "times across ranks (ms):", "forward-compute:", "rank  0: 120.34"
void FigureReader::ReadTitle(std::string_view text) {
  text = Trim(text);
  const bool digits = std::any_of(text.begin(), text.end(), IsDigit);
  if (ContainsAny(text, {"(ms)", "[ms]", "in ms"}))
    usual_unit_ = 1e-3;
  else if (ContainsAny(text, {"(s)", "[s]", "in seconds"}))
    usual_unit_ = 1;
  if (digits || text.size() > 60 || !text.ends_with(':')) return;
  title_ = std::string(text.substr(0, text.size() - 1));
  if (ContainsAny(title_, {"rank", "time"})) titled_.clear();
}

bool FigureReader::ReadTitled(const Parts& parts, const SourceRef& source, LogOutline& out) {
  if (title_.empty() || parts.share.rank < 0 || numbers_.size() != 2) return false;
  const NamedNumber& number = numbers_.back();
  if (!number.name.empty()) return false;
  const FigureName name = names_.Of(title_);
  const double seconds = SecondsOf(number, name, usual_unit_, true);
  if (seconds < 0 || name.kind < FigureKind::work || name.kind > FigureKind::wait) return false;
  const auto [known, is_new] = titled_.try_emplace(parts.share.rank);
  TitledRows& rows = known->second;
  if (is_new) {
    if (out.steps.size() >= kMostShares) return titled_.erase(known), false;
    rows.at = out.steps.size();
    rows.told.rank = parts.share.rank;
    rows.told.place = PlaceOf(parts.share.rank);
    rows.told.source = source;
    out.steps.emplace_back();
  }
  double& part = name.kind == FigureKind::work     ? rows.told.work
                 : name.kind == FigureKind::shared ? rows.told.shared
                 : name.kind == FigureKind::data   ? rows.told.data
                                                   : rows.told.wait;
  Add(part, seconds);
  StepShare& share = out.steps[rows.at] = rows.told;
  // "forward-backward" holds "forward-compute" where both are told; beside waits it is the rank's own.
  if (share.shared >= 0 && share.work >= 0 && share.shared >= share.work) share.shared = -1;
  if (share.shared >= 0 && share.wait >= 0) {
    Add(share.work, share.shared);
    share.shared = -1;
  }
  for (const double one : {share.data, share.work, share.shared, share.wait}) share.whole += std::max(one, 0.0);
  return true;
}

// "--- rank 2 step 10", "  forward: 0.52 s", "  all-reduce: 0.01 s": one part on each line, until another line comes.
bool FigureReader::ReadBlock(const Parts& parts, bool of_times, const SourceRef& source, LogOutline& out) {
  if (parts.share.rank >= 0 || !parts.at.empty() || !of_times || !parts.values.empty()) {
    in_block_ = !of_times && parts.values.empty() && parts.share.rank >= 0 && parts.share.place >= 0;
    block_kept_ = false;
    if (in_block_) block_ = parts.share;
    return false;
  }
  if (!in_block_ || out.steps.size() >= kMostShares) return false;
  if (!block_kept_) {
    out.steps.push_back(block_);
    out.steps.back().source = source;
    block_kept_ = true;
  }
  StepShare& share = out.steps.back();
  const auto take = [&](double StepShare::*part) {
    if (parts.share.*part < 0) return;
    Add(share.*part, parts.share.*part);
    share.whole += parts.share.*part;
  };
  for (const auto part : {&StepShare::data, &StepShare::work, &StepShare::shared, &StepShare::wait}) take(part);
  return true;
}

FigureReader::Line FigureReader::Read(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out) {
  if (text.size() > kLongestLine) return Line::none;
  const ColumnReader::Line cells = columns_.Read(text, numbers_);
  if (cells == ColumnReader::Line::heading) return Line::table;
  const bool of_table = cells == ColumnReader::Line::row;
  if (!of_table) FindNamedNumbers(text, numbers_);
  Parts parts;
  parts.share.rank = rank;
  ReadPlace(text, parts);
  const StepShare& share = parts.share;
  const bool of_times = parts.told >= 0 || share.work >= 0 || share.data >= 0 || share.shared >= 0 || share.wait >= 0;
  if (!of_table && !of_times && parts.values.empty()) ReadTitle(text);
  if (!of_table && !of_times && share.place >= 0) told_step_ = share.place, told_ranks_.clear();
  if (numbers_.empty()) {
    in_block_ = false;
    return Line::none;
  }
  if (ReadTitled(parts, source, out) || ReadLists(parts, source, out) ||
      (!of_table && ReadBlock(parts, of_times, source, out))) {
    ++training_lines_;
    return Line::figures;
  }
  AddValues(parts, source, out);
  AddSeries(parts, source, out);
  const bool of_step = parts.sums || share.work >= 0 || share.data >= 0 || (of_table && parts.values.size() > 1);
  training_rows_ += of_table && parts.loss != nullptr && share.place >= 0;
  training_lines_ += parts.loss != nullptr || (of_step && !parts.at.empty());
  const bool added = AddShare(parts, source, out);
  AddDecimals(parts, of_table, source, out);
  return of_table ? Line::table : added ? Line::figures : Line::none;
}

}  // namespace tacet
