// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/shifted_wait.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

using Values = std::map<uint32_t, const StepDecimal*>;  // by name
using Step = std::map<int32_t, Values>;                 // by rank

struct Shift {
  int32_t rank = -1;
  uint32_t own_name = 0, wait_name = 0;
  double own = 0, others = 0, wait = 0;
  const StepDecimal* line = nullptr;
};

// About how long the step took: one part holds most of it, or a column tells the whole.
double LongestOf(const Values& values) {
  double longest = 0;
  for (const auto& [name, one] : values) longest = std::max(longest, one->value);
  return longest;
}

double ValueOf(const Values& values, uint32_t name) {
  const auto found = values.find(name);
  return found == values.end() ? -1 : found->second->value;
}

// All others take as much longer in this other part as the rank takes in its own.
bool OthersWait(const Step& step, int32_t rank, uint32_t part, double longer, double* least) {
  constexpr double kLeastShare = 0.6;
  const double own = ValueOf(step.at(rank), part);
  *least = -1;
  for (const auto& [other, values] : step) {
    const double value = ValueOf(values, part);
    if (other == rank) continue;
    if (own < 0 || value < 0 || value - own < kLeastShare * longer) return false;
    *least = *least < 0 ? value : std::min(*least, value);
  }
  return true;
}

std::optional<Shift> ShiftOf(const Step& step, size_t names, double usual) {
  constexpr double kTimesOthers = 3, kOfAStep = 0.3;
  for (uint32_t name = 0; name < names; ++name) {
    Shift shift{.own_name = name, .own = -1, .others = -1};
    bool whole = true;
    for (const auto& [rank, values] : step) {
      const double value = ValueOf(values, name);
      whole = whole && value >= 0;
      shift.others = std::max(shift.others, std::min(value, shift.own));
      if (value > shift.own) shift.own = value, shift.rank = rank;
    }
    const double longer = shift.own - shift.others;
    if (!whole || shift.own < kTimesOthers * shift.others || longer < kOfAStep * usual) continue;
    for (uint32_t part = 0; part < names; ++part)
      if (part != name && OthersWait(step, shift.rank, part, longer, &shift.wait)) {
        shift.wait_name = part;
        shift.line = step.at(shift.rank).at(name);
        return shift;
      }
  }
  return std::nullopt;
}

// The rank's own part in all steps, in their order: most are longer than the one before, and the last is far longer
// than the first.
void TellGrowth(const std::vector<Step>& steps, uint32_t name, ShiftedWait& wait) {
  constexpr double kRising = 0.8, kTimesFirst = 2;
  double first = -1, before = -1;
  size_t rises = 0, pairs = 0;
  for (const Step& step : steps) {
    const double value = ValueOf(step.at(wait.rank.value), name);
    if (value < 0) return;
    if (before >= 0) ++pairs, rises += value > before ? 1 : 0;
    if (first < 0) first = value;
    before = value;
  }
  if (first <= 0 || before < kTimesFirst * first || static_cast<double>(rises) < kRising * static_cast<double>(pairs))
    return;
  wait.grows_from = first;
  wait.grows_to = before;
}

std::optional<ShiftedWait> ShiftIn(const std::vector<std::string>& names, const std::vector<Step>& steps,
                                   const Patience& patience) {
  constexpr size_t kFewestSteps = 6, kFewestEvents = 3;
  constexpr double kSameRank = 0.9;
  if (steps.size() < kFewestSteps) return std::nullopt;
  std::vector<double> sums;
  double total = 0;
  for (const Step& step : steps) {
    double longest = 0;
    for (const auto& [rank, values] : step) longest = std::max(longest, LongestOf(values));
    sums.push_back(longest);
    total += longest;
  }
  const double usual = Median(std::move(sums));
  std::map<std::tuple<int32_t, uint32_t, uint32_t>, std::vector<Shift>> found;
  size_t all = 0;
  for (const Step& step : steps)
    if (const auto shift = ShiftOf(step, names.size(), usual)) {
      found[{shift->rank, shift->own_name, shift->wait_name}].push_back(*shift);
      ++all;
    }
  const auto most = std::max_element(found.begin(), found.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == found.end() || most->second.size() < kFewestEvents ||
      static_cast<double>(most->second.size()) < kSameRank * static_cast<double>(all))
    return std::nullopt;
  ShiftedWait wait;
  std::vector<double> own, others, waits;
  double cost = 0;
  for (const Shift& shift : most->second) {
    own.push_back(shift.own);
    others.push_back(shift.others);
    waits.push_back(shift.wait);
    cost += shift.own - shift.others;
  }
  wait.rank = Rank{most->second.front().rank};
  wait.own_name = names[most->second.front().own_name];
  wait.wait_name = names[most->second.front().wait_name];
  wait.events = most->second.size();
  wait.steps = steps.size();
  wait.ranks = steps.front().size();
  wait.own = Median(std::move(own));
  wait.others = Median(std::move(others));
  wait.wait = Median(std::move(waits));
  wait.share = total > 0 ? cost / total : 0;
  wait.last = most->second.back().line;
  if (wait.share < patience.printed_share) return std::nullopt;
  TellGrowth(steps, most->second.front().own_name, wait);
  return wait;
}

}  // namespace

std::optional<ShiftedWait> FindShiftedWait(const Incident& incident) {
  // Each text numbers its names by itself: here they have one numbering.
  std::map<std::pair<int64_t, int64_t>, Step> steps;
  std::set<int32_t> ranks;
  std::vector<std::string> names;
  for (const LogOutline& outline : incident.outlines)
    for (const StepDecimal& one : outline.decimals) {
      if (one.rank < 0) continue;
      const std::string& name = outline.decimal_names[one.name];
      auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end()) {
        names.push_back(name);
        at = std::prev(names.end());
      }
      ranks.insert(one.rank);
      steps[{one.epoch, one.place}][one.rank].try_emplace(static_cast<uint32_t>(at - names.begin()), &one);
    }
  if (ranks.size() < 2 || names.size() < 2) return std::nullopt;
  std::vector<Step> whole;
  for (auto& [place, step] : steps)
    if (step.size() == ranks.size()) whole.push_back(std::move(step));
  if (!whole.empty()) whole.erase(whole.begin());  // the first step is always slow
  return ShiftIn(names, whole, incident.patience);
}

}  // namespace tacet
