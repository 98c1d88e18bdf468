// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace tacet {
namespace {

std::string Print(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string_view HeadingWord(const ProfileReport& profile) {
  const StragglerReport& found = profile.stragglers;
  // Communication that mostly waits for somebody who is named is not what bounds the step.
  const bool of_late_ranks = profile.verdict == ProfileVerdict::communication_bound &&
                             profile.wait_share > kMostlyWaiting && !found.stragglers.empty();
  if ((profile.verdict != ProfileVerdict::undetermined && !of_late_ranks) || !profile.mixed.empty())
    return Name(profile.verdict);
  if (!found.stragglers.empty()) return found.stragglers.size() == 1 ? "straggler" : "stragglers";
  return profile.wait_known && found.steps > 1 && WhyNotJudged(profile).empty() ? "no straggler found"
                                                                                : Name(profile.verdict);
}

std::string WhyNotJudged(const ProfileReport& profile) {
  if (profile.times_wrong) return "recorded times that cannot be right do not show which rank is late";
  // A share of the step means nothing where no step is known.
  if (profile.step_ns <= 0) return "steps could not be separated";
  if (profile.stragglers.steps == 1) return "one step does not show which rank is always late; record several";
  if (profile.stragglers.ranks.size() >= 2 || profile.stragglers.rounds > 0) return "";
  if (std::any_of(profile.table.begin(), profile.table.end(),
                  [](const ProfileTableRow& line) { return IsPointToPoint(line.row.kind); }))
    return std::string("sends and receives alone do not show which rank is late") +
           (profile.pipeline.found ? "; the stage times below do" : "");
  return profile.budgets.size() == 1 ? "only one rank's trace was given"
                                     : "no operation was recorded by two ranks or more";
}

std::string DescribeTime(double ns) {
  const double size = std::fabs(ns);
  if (size < 1e3) return Print("%.0f ns", ns);
  if (size < 1e6) return Print(size < 1e4 ? "%.2f µs" : "%.1f µs", ns / 1e3);
  if (size < 1e9) return Print(size < 1e7 ? "%.2f ms" : "%.1f ms", ns / 1e6);
  return Print("%.2f s", ns / 1e9);
}

std::string DescribeSize(int64_t bytes) {
  static constexpr const char* kUnits[] = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return Print(value < 99.95 ? "%.1f" : "%.0f", value) + kUnits[unit];
}

std::string DescribeShare(double share) { return Print("%.1f %%", share * 100); }

std::string DescribeSmallShare(double share) { return share > 0 && share < 0.0005 ? "< 0.1 %" : DescribeShare(share); }

std::string DescribeNumber(double number) { return Print("%.3g", number); }

std::string DescribeFactor(double factor) { return Print("%.2f", std::fabs(factor) < 0.005 ? 0.0 : factor); }

// "0.300" and "23.0", so that the figures of a column have the same digits.
std::string DescribeRate(double gbs) {
  if (gbs > 0 && gbs < 0.001) return "< 0.001";
  if (gbs >= 99.95) return Print("%.0f", gbs);
  return gbs > 0 ? Print(gbs < 0.01 ? "%#.2g" : "%#.3g", gbs) : "0";
}

std::string DescribeFlops(double flops) {
  static constexpr struct {
    double from;
    const char* unit;
  } kUnits[] = {{1e15, " PFLOP"}, {1e12, " TFLOP"}, {1e9, " GFLOP"}, {1e6, " MFLOP"}};
  for (const auto& one : kUnits)
    if (flops >= 0.9995 * one.from) return Print("%.3g", flops / one.from) + one.unit;
  return Print("%.3g", flops) + " FLOP";
}

std::string_view Name(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::unknown: return "unknown";
    case PipelineSchedule::gpipe: return "GPipe";
    case PipelineSchedule::one_forward_one_backward: return "1F1B";
    case PipelineSchedule::interleaved: return "interleaved 1F1B";
  }
  return "unknown";
}

std::string_view Name(StragglerPattern pattern) {
  return pattern == StragglerPattern::persistent ? "persistent" : "intermittent";
}

std::string_view Name(StragglerOrigin origin) {
  switch (origin) {
    case StragglerOrigin::unknown: return "unknown";
    case StragglerOrigin::gpu_work: return "GPU work";
    case StragglerOrigin::host: return "host";
    case StragglerOrigin::data_loading: return "data loading";
    case StragglerOrigin::uneven_input: return "uneven input";
    case StragglerOrigin::stage: return "overloaded stage";
  }
  return "unknown";
}

std::string_view Name(Trust trust) {
  switch (trust) {
    case Trust::possible: return "possible";
    case Trust::likely: return "likely";
    case Trust::certain: return "certain";
  }
  return "possible";
}

}  // namespace tacet
