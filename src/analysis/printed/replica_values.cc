// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/replica_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

// Of all ranks at one step.
using ValuesOfStep = std::map<int32_t, const RankValue*>;
// One figure, in the order in which the steps are printed.
using ValuesOfFigure = std::vector<ValuesOfStep>;

// By name.
std::map<std::string_view, ValuesOfFigure> FiguresOf(const Incident& incident, RankValue::Kind kind) {
  std::map<std::string_view, ValuesOfFigure> figures;
  std::map<std::pair<std::string_view, std::string_view>, size_t> place;
  for (const LogOutline& outline : incident.outlines)
    for (const RankValue& value : outline.values) {
      if (value.kind != kind) continue;
      ValuesOfFigure& steps = figures[value.name];
      const auto [at, is_new] = place.try_emplace({value.name, value.at}, steps.size());
      if (is_new) steps.emplace_back();
      steps[at->second].try_emplace(value.rank, &value);
    }
  return figures;
}

bool IsFiniteValue(const RankValue& value) {
  return value.value != "nan" && value.value.find("inf") == std::string::npos;
}

// Numbers that differ in the last digit that is printed, or by the order of a sum, are one value; digests must be
// equal.
bool IsSameValue(std::string_view one, std::string_view other, double tolerance) {
  if (one == other) return true;
  double a = 0, b = 0;
  if (!IsWholeNumber(one, &a) || !IsWholeNumber(other, &b)) return false;
  const size_t point = one.find('.');
  const double digits = point == std::string_view::npos ? 0 : static_cast<double>(one.size() - point - 1);
  const double last_digit = point == std::string_view::npos ? 0 : 1.5 * std::pow(10, -digits);
  return std::fabs(a - b) <= std::max(last_digit, tolerance * std::max(std::fabs(a), std::fabs(b)));
}

// Those with the same value, the larger side first.
using Sides = std::vector<std::vector<const RankValue*>>;
Sides SidesOf(const ValuesOfStep& step, double tolerance) {
  Sides sides;
  for (const auto& [rank, value] : step) {
    const auto same = std::find_if(sides.begin(), sides.end(), [&](const auto& side) {
      return IsSameValue(side.front()->value, value->value, tolerance);
    });
    if (same == sides.end())
      sides.push_back({value});
    else
      same->push_back(value);
  }
  std::stable_sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return sides;
}

// With so many digits two values are not equal by accident.
bool IsPrecise(std::string_view value) {
  constexpr std::ptrdiff_t kFewestDigits = 5;
  double number = 0;
  if (!IsWholeNumber(value, &number)) return value.size() > kFewestDigits;  // a digest
  value.remove_prefix(std::min(value.find_first_not_of("-0."), value.size()));
  value = value.substr(0, value.find('e'));
  return std::count_if(value.begin(), value.end(), IsDigit) >= kFewestDigits;
}

std::optional<DriftedReplica> DriftOf(const ValuesOfFigure& figure, double tolerance) {
  constexpr size_t kFewSteps = 2, kFewAgreedOfTwo = 2, kFewStepsFromTheStart = 3;
  DriftedReplica found;
  const ValuesOfStep* before = nullptr;
  size_t agreed = 0;
  bool precise = true;
  size_t most = 0;
  for (const ValuesOfStep& step : figure) most = std::max(most, step.size());
  for (const ValuesOfStep& step : figure) {
    // Two that differ tell nothing where a third one's line is missing, or never was.
    if (step.size() < 2 || (step.size() < most && !before)) continue;
    const Sides sides = SidesOf(step, tolerance);
    if (sides.size() == 1) {
      if (found.odd) return std::nullopt;  // they agree again
      before = &step;
      ++agreed;
      continue;
    }
    // What was never equal needs two that are: each may hold its own part of the model.
    if (sides.size() != 2 || sides.back().size() != 1 || (!before && sides.front().size() < 2)) return std::nullopt;
    const RankValue* odd = sides.back().front();
    if (found.odd && found.odd->rank != odd->rank) return std::nullopt;
    if (!found.odd) {
      if (before) {
        const auto earlier = before->find(odd->rank);
        if (earlier == before->end()) return std::nullopt;
        found.agreed = earlier->second;
      }
      found.odd = odd;
      found.usual = sides.front().front();
    }
    precise = precise && IsPrecise(sides.front().front()->value);
    found.ranks = std::max(found.ranks, step.size());
    ++found.steps;
  }
  if (!found.odd || found.steps < kFewSteps) return std::nullopt;
  if (!before) return found.steps >= kFewStepsFromTheStart && precise ? std::optional(found) : std::nullopt;
  return found.which() || agreed >= kFewAgreedOfTwo ? std::optional(found) : std::nullopt;
}

// Equal on all ranks at each step, with digits enough to tell.
bool IsEqualOnAll(const ValuesOfFigure& figure, double tolerance) {
  constexpr size_t kFewSteps = 3;
  size_t steps = 0;
  for (const ValuesOfStep& step : figure) {
    if (step.size() < 2) continue;
    if (SidesOf(step, tolerance).size() > 1 || !IsPrecise(step.begin()->second->value)) return false;
    ++steps;
  }
  return steps >= kFewSteps;
}

// A setting that one rank has another value of at each step, and the others the same.
void AddSetting(const Incident& incident, DriftedReplica& drift) {
  constexpr size_t kFewestRanks = 3;
  for (const auto& [name, figure] : FiguresOf(incident, RankValue::Kind::setting)) {
    const RankValue *odd = nullptr, *usual = nullptr;
    bool differs = !figure.empty();
    for (const ValuesOfStep& step : figure) {
      if (step.size() < kFewestRanks) continue;
      const Sides sides = SidesOf(step, 0);
      differs =
          differs && sides.size() == 2 && sides.back().size() == 1 && sides.back().front()->rank == drift.odd->rank;
      if (!odd && differs) odd = sides.back().front(), usual = sides.front().front();
    }
    if (!odd || !differs) continue;
    drift.setting = odd;
    drift.usual_setting = usual;
  }
}

}  // namespace

// What one rank prints into a file of its own. Null for ranks that share a file, or that have several.
static std::map<Rank, const TrainingRecord*> RecordsByRank(const Incident& incident) {
  std::map<FileId, std::vector<Rank>> ranks_of;
  for (const Process& process : incident.processes)
    for (const FileId file : process.files)
      if (process.rank.known()) ranks_of[file].push_back(process.rank);
  std::map<Rank, const TrainingRecord*> records;
  for (const TrainingRecord& record : incident.training) {
    const auto ranks = ranks_of.find(record.source.file);
    if (ranks == ranks_of.end() || ranks->second.size() != 1 || record.loss.lines == 0) continue;
    const auto [at, is_new] = records.try_emplace(ranks->second.front(), &record);
    if (!is_new) at->second = nullptr;
  }
  return records;
}

// The same, where the lines name no rank since each rank has a file of its own.
static std::optional<FirstNonFinite> FirstOfFiles(const Incident& incident) {
  std::optional<FirstNonFinite> found;
  const auto records = RecordsByRank(incident);
  int64_t first = -1;
  size_t lost = 0, others = 0;
  for (const auto& [rank, record] : records) {
    if (!record || record->loss.run == 0) continue;
    const TrainingValue& loss = record->loss;
    if (loss.run_step < 0 || loss.run == loss.lines) return std::nullopt;
    ++lost;
    if (first >= 0 && loss.run_step >= first) continue;
    first = loss.run_step;
    found = FirstNonFinite{rank, loss.word, "step " + std::to_string(first), loss.run_source, 0};
  }
  // Behind that step the others have it, too: a loss of its own that stays with one rank is another thing.
  if (lost < 2) return std::nullopt;
  for (const auto& [rank, record] : records) {
    if (!record || rank == found->rank) continue;
    ++others;
    found->finite += record->loss.finite_step >= first;
  }
  return found->finite == others ? found : std::nullopt;
}

std::optional<FirstNonFinite> FindFirstNonFinite(const Incident& incident) {
  if (auto found = FirstOfFiles(incident)) return found;
  std::optional<FirstNonFinite> found;
  for (const auto& [name, figure] : FiguresOf(incident, RankValue::Kind::loss))
    for (const ValuesOfStep& step : figure) {
      std::vector<const RankValue*> lost;
      for (const auto& [rank, value] : step)
        if (!IsFiniteValue(*value)) lost.push_back(value);
      // Behind that step the others have it, too: a loss of its own that stays with one rank is another thing.
      if (found) return lost.size() > 1 ? found : std::nullopt;
      if (lost.empty()) continue;
      if (lost.size() != 1 || step.size() < 2) return std::nullopt;
      const RankValue& first = *lost.front();
      found = FirstNonFinite{Rank{first.rank}, first.value, first.at, first.source, step.size() - 1};
    }
  return std::nullopt;
}

// Every rank's loss is that of its own samples, unless all were equal in so many digits more than once.
static bool IsCommonLoss(const ValuesOfFigure& figure, const DriftedReplica& drift) {
  constexpr size_t kFewAgreed = 2;
  size_t agreed = 0;
  for (const ValuesOfStep& step : figure) {
    if (step.size() < 2 || SidesOf(step, 0).size() > 1) continue;
    agreed += IsPrecise(step.begin()->second->value);
  }
  return drift.which() && drift.agreed && agreed >= kFewAgreed;
}

std::optional<DriftedReplica> FindDriftedReplica(const Incident& incident) {
  std::optional<DriftedReplica> found;
  for (const RankValue::Kind kind : {RankValue::Kind::parameters, RankValue::Kind::loss}) {
    if (found) break;
    for (const auto& [name, figure] : FiguresOf(incident, kind)) {
      auto drift = DriftOf(figure, incident.patience.replica_tolerance);
      if (!drift || (kind == RankValue::Kind::loss && !IsCommonLoss(figure, *drift))) continue;
      if (found && found->odd->rank != drift->odd->rank) return std::nullopt;
      if (!found || drift->steps > found->steps) found = std::move(drift);
    }
  }
  if (found) AddSetting(incident, *found);
  return found;
}

std::optional<UnsharedParameters> FindUnsharedParameters(const Incident& incident) {
  constexpr size_t kFewSteps = 3;
  const double tolerance = incident.patience.replica_tolerance;
  const auto figures = FiguresOf(incident, RankValue::Kind::parameters);
  const auto equal = std::find_if(figures.begin(), figures.end(),
                                  [&](const auto& one) { return IsEqualOnAll(one.second, tolerance); });
  if (equal == figures.end()) return std::nullopt;
  for (const auto& [name, figure] : figures) {
    UnsharedParameters found;
    size_t apart = 0;  // steps at which no two are equal
    bool differs = true;
    for (const ValuesOfStep& step : figure) {
      if (step.size() < 2) continue;
      const Sides sides = SidesOf(step, tolerance);
      differs = differs && sides.size() > 1;
      if (!differs) break;
      ++found.steps;
      apart += sides.size() == step.size();
      found.ranks = std::max(found.ranks, step.size());
      if (found.one) continue;
      found.one = sides[0].front();
      found.other = sides[1].front();
      for (const ValuesOfStep& same : equal->second)
        if (const auto own = same.find(found.one->rank); own != same.end() && own->second->at == found.one->at)
          found.equal = own->second;
    }
    if (differs && found.equal && apart >= kFewSteps && 2 * apart > found.steps) return found;
  }
  return std::nullopt;
}

}  // namespace tacet
