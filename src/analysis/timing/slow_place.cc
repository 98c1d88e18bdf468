// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/slow_place.h"

#include <algorithm>
#include <map>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr size_t kMinLaunches = 10, kMinComparedSteps = 5, kMostOthers = 16;

// The host's own time before each launch of one step and behind the last one.
struct IssuedStep {
  std::vector<double> before_ns;
  size_t first_launch = 0;
};

// How much of [begin, end) the host waited for its GPU. `waits` are sorted by start; `at` only moves on.
int64_t WaitedWithin(const std::vector<const HostRange*>& waits, size_t& at, int64_t begin, int64_t end) {
  while (at < waits.size() && waits[at]->end_ns <= begin) ++at;
  int64_t waited = 0, covered = begin;
  for (size_t i = at; i < waits.size() && waits[i]->start_ns < end; ++i) {
    const int64_t from = std::max(covered, waits[i]->start_ns), to = std::min(end, waits[i]->end_ns);
    if (to <= from) continue;
    waited += to - from;
    covered = to;
  }
  return waited;
}

std::map<int64_t, IssuedStep> IssuedSteps(const Timeline& timeline) {
  std::vector<const HostRange*> waits;
  for (const HostRange& range : timeline.ranges)
    if (range.work == HostWork::device_wait) waits.push_back(&range);
  std::map<int64_t, IssuedStep> out;
  for (const TrainingStep& step : timeline.steps) {
    IssuedStep one;
    size_t at = 0;
    auto launch = std::lower_bound(timeline.launches.begin(), timeline.launches.end(), step.start_ns,
                                   [](const Launch& a, int64_t ns) { return a.start_ns < ns; });
    one.first_launch = static_cast<size_t>(launch - timeline.launches.begin());
    int64_t from = step.start_ns;
    const auto take = [&](int64_t to) {
      const int64_t own = std::max<int64_t>(0, to - from);
      one.before_ns.push_back(static_cast<double>(own - (own > 0 ? WaitedWithin(waits, at, from, to) : 0)));
    };
    for (; launch != timeline.launches.end() && launch->start_ns < step.end_ns; ++launch) {
      take(launch->start_ns);
      // A launch or a copy that does not return waits for the GPU.
      from = std::max(from, launch->start_ns + static_cast<int64_t>(launch->duration_ns));
    }
    take(step.end_ns);
    out.emplace(step.number, std::move(one));
  }
  return out;
}

std::string NameOfLaunch(const Timeline& timeline, size_t launch) {
  for (const GpuEvent& event : timeline.gpu)
    if (event.launch == launch) return std::string(timeline.names.Get(event.name));
  return {};
}

}  // namespace

bool SlowPlace::HoldsMostOf(double lateness_ns) const {
  // Recorded delays: 38 % and more, and at least 0.5 ms; ranks of healthy jobs lose at most 0.25 ms in one place.
  constexpr double kPart = 0.33, kMost = 0.5, kLeastNs = 400'000;
  return late_ns >= kLeastNs && share >= kPart && late_ns >= kMost * lateness_ns;
}

std::string SlowPlace::Words() const {
  constexpr size_t kMostOfName = 60;
  if (launch >= launches) return "at the end of the step, after its last launch";
  if (launch == 0) return "at the beginning of the step, before its first launch";
  // "void at::native::elementwise_kernel<4, ...>(int)": the arguments of the template and of the call say little.
  std::string_view name = before;
  if (name.starts_with("void ")) name.remove_prefix(5);
  name = name.substr(0, name.find_first_of("<("));
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::string number = "launch " + std::to_string(launch + 1) + " of " + std::to_string(launches);
  return name.empty() ? "before " + number : "before " + number + " (" + std::string(name.substr(0, kMostOfName)) + ")";
}

SlowPlace FindSlowPlace(std::span<const Timeline> timelines, Rank rank) {
  const auto own_timeline =
      std::find_if(timelines.begin(), timelines.end(), [&](const Timeline& one) { return one.rank == rank; });
  if (own_timeline == timelines.end() || timelines.size() < 2) return {};
  const std::map<int64_t, IssuedStep> own = IssuedSteps(*own_timeline);
  // So many, all over the job, tell what is usual as well as thousands do.
  const size_t stride = (timelines.size() + kMostOthers - 1) / kMostOthers;
  std::vector<std::map<int64_t, IssuedStep>> others;
  for (size_t i = 0; i < timelines.size(); i += stride)
    if (timelines[i].rank != rank) others.push_back(IssuedSteps(timelines[i]));
  SlowPlace out;
  if (own.empty()) return out;
  std::vector<double> counts;
  for (const auto& [number, step] : own) counts.push_back(static_cast<double>(step.before_ns.size()));
  const auto places = static_cast<size_t>(Quantile(std::move(counts), 0.5));
  if (places < kMinLaunches) return out;
  std::vector<std::vector<double>> late(places);  // by place: of each step
  size_t first_launch = 0;
  for (const auto& [number, step] : own) {
    if (step.before_ns.size() != places) continue;
    std::vector<const IssuedStep*> peers;
    for (const auto& other : others)
      if (const auto found = other.find(number); found != other.end() && found->second.before_ns.size() == places)
        peers.push_back(&found->second);
    if (peers.empty() || peers.size() * 2 < others.size()) continue;
    for (size_t i = 0; i < places; ++i) {
      std::vector<double> values;
      values.reserve(peers.size());
      for (const IssuedStep* peer : peers) values.push_back(peer->before_ns[i]);
      late[i].push_back(step.before_ns[i] - Median(std::move(values)));
    }
    first_launch = step.first_launch;
  }
  if (late[0].size() < kMinComparedSteps) return out;
  out.steps = late[0].size();
  out.launches = places - 1;
  double all = 0;
  for (size_t i = 0; i < places; ++i) {
    const double typical = Median(std::move(late[i]));
    if (typical <= 0) continue;
    all += typical;
    if (typical > out.late_ns) out.late_ns = typical, out.launch = i;
  }
  out.share = all > 0 ? out.late_ns / all : 0;
  if (out.launch < out.launches) out.before = NameOfLaunch(*own_timeline, first_launch + out.launch);
  return out;
}

}  // namespace tacet
