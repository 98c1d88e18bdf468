// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/straggler_origin.h"

#include <algorithm>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// An origin is named when it accounts for at least half of the lateness.
constexpr double kExplains = 0.5;

// The end of the last communication kernel of a rank that ended before `ns`, else the beginning of the trace.
int64_t LastSyncBefore(const BudgetMeter& meter, const Timeline& timeline, int64_t ns) {
  const IntervalSet& communication = meter.activity().communication;
  auto at = std::lower_bound(communication.begin(), communication.end(), ns,
                             [](const Interval& interval, int64_t value) { return interval.begin < value; });
  while (at != communication.begin()) {
    --at;
    if (at->end <= ns) return at->end;
  }
  return timeline.begin_ns == kNoTime ? ns : timeline.begin_ns;
}

struct Explanation {
  double late = 0, compute = 0, host = 0, data = 0;
};

void Add(const TimeBudget& own, const std::vector<TimeBudget>& others, double late, Explanation& out) {
  const auto excess = [&](auto part) {
    std::vector<double> values;
    for (const TimeBudget& other : others) values.push_back(static_cast<double>(part(other)));
    return static_cast<double>(part(own)) - Median(std::move(values));
  };
  out.late += late;
  out.compute += excess([](const TimeBudget& b) { return b.compute_ns() + b.copies_ns; });
  out.host += excess([](const TimeBudget& b) { return b.host_wait_ns + b.launch_ns; });
  out.data += excess([](const TimeBudget& b) { return b.data_wait_ns; });
}

// One lateness shows in every operation that was ready before the last one ended, but its origin only once: no more is
// to be explained than the rank was late in all.
void Conclude(const Explanation& sum, Straggler& straggler) {
  const bool always = straggler.pattern == StragglerPattern::persistent;
  const double whole = static_cast<double>(straggler.late_ns) * static_cast<double>(straggler.steps);
  const double late = always && whole > 0 ? std::min(sum.late, whole) : sum.late;
  if (late <= 0) return;
  struct Candidate {
    StragglerOrigin origin;
    double ns;
  };
  const Candidate candidates[] = {{StragglerOrigin::gpu_work, sum.compute},
                                  {StragglerOrigin::host, sum.host},
                                  {StragglerOrigin::data_loading, sum.data}};
  const auto best = std::max_element(std::begin(candidates), std::end(candidates),
                                     [](const auto& a, const auto& b) { return a.ns < b.ns; });
  straggler.explained = std::clamp(best->ns / late, 0.0, 1.0);
  if (straggler.explained >= kExplains) straggler.origin = best->origin;
}

// The others' hosts issue the operation while their GPUs are still busy, so it starts a while later. A rank that issues
// late and whose kernel starts at once has no work left on its GPU: its host had waited for the GPU. (A host that is
// held up after it launched its work looks the same, so this is never certain.)
bool HostWaitedForGpu(const std::vector<double>& own_lags, const std::vector<double>& other_lags, int64_t late_ns) {
  if (own_lags.empty() || other_lags.empty()) return false;
  const double own = Median(own_lags), others = Median(other_lags);
  return own <= kExplains * others && others - own >= 0.5 * kExplains * static_cast<double>(late_ns);
}

}  // namespace

void ExplainFromTraces(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                       StragglerReport& report) {
  if (report.stragglers.empty()) return;
  std::vector<BudgetMeter> meters;
  meters.reserve(timelines.size());
  for (const Timeline& timeline : timelines) meters.emplace_back(timeline);
  for (Straggler& straggler : report.stragglers) {
    Explanation sum;
    for (const CollectiveRound& round : rounds) {
      const RoundMember* own = nullptr;
      std::vector<double> starts;
      std::vector<TimeBudget> others;
      if (IsPointToPoint(round.kind)) continue;
      for (const RoundMember& m : round.members) {
        if (m.timeline == kNoIndex || m.start_ns == kNoTime) continue;
        if (m.rank == straggler.rank) own = &m;
        starts.push_back(static_cast<double>(m.start_ns));
      }
      if (!own || own->queued || starts.size() < 2) continue;
      const double late = static_cast<double>(own->start_ns) - Median(starts);
      if (late <= 0) continue;
      // Windows are of the member's own clock: the trace's times, not the aligned ones.
      const auto measure = [&](const RoundMember& m) {
        const Timeline& timeline = timelines[m.timeline];
        const int64_t start = timeline.gpu[timeline.collectives[m.collective].gpu_event].start_ns;
        return meters[m.timeline].Measure({LastSyncBefore(meters[m.timeline], timeline, start), start});
      };
      for (const RoundMember& m : round.members)
        if (m.timeline != kNoIndex && m.start_ns != kNoTime && m.rank != straggler.rank) others.push_back(measure(m));
      Add(measure(*own), others, late, sum);
    }
    Conclude(sum, straggler);
  }
}

void ExplainFromEnters(const std::vector<CollectiveRound>& rounds, StragglerReport& report, bool starts_tell) {
  for (Straggler& straggler : report.stragglers) {
    if (straggler.origin != StragglerOrigin::unknown) continue;
    double late = 0, late_on_host = 0;
    std::vector<double> own_lags, other_lags;
    for (const CollectiveRound& round : rounds) {
      std::vector<double> enters, durations;
      const RoundMember* own = nullptr;
      for (const RoundMember& m : round.members) {
        if (m.enter_ns == kNoTime || m.enter_is_estimate || m.duration_ns < 0 || m.queued) continue;
        if (m.rank == straggler.rank) own = &m;
        enters.push_back(static_cast<double>(m.enter_ns));
        durations.push_back(static_cast<double>(m.duration_ns));
        if (m.start_ns != kNoTime)
          (m.rank == straggler.rank ? own_lags : other_lags).push_back(static_cast<double>(m.start_ns - m.enter_ns));
      }
      if (!own || enters.size() < 2) continue;
      const double shorter = Median(durations) - static_cast<double>(own->duration_ns);
      if (shorter <= 0) continue;
      late += shorter;
      late_on_host += std::clamp(static_cast<double>(own->enter_ns) - Median(enters), 0.0, shorter);
    }
    if (late <= 0) continue;
    if (late_on_host / late <= 1 - kExplains) {
      straggler.origin = StragglerOrigin::gpu_work;
      straggler.explained = 1 - late_on_host / late;
    } else if (starts_tell && HostWaitedForGpu(own_lags, other_lags, straggler.late_ns)) {
      straggler.origin = StragglerOrigin::gpu_work;
      straggler.explained = kExplains;
      straggler.trust = std::min(straggler.trust, Trust::likely);
    }
  }
}

}  // namespace tacet
