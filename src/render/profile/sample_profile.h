// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "report/profile/profile_comparison.h"
#include "report/profile/profile_report.h"
#include "report/profile/profile_series.h"

// Profiles and comparisons built by hand, for the tests of the pages and for looking at them. Not part of the product.

namespace tacet {

inline constexpr int64_t kSampleMs = 1'000'000;

// A data-parallel job in which one rank computes half as long again as the others; they wait for it.
inline ProfileReport SampleProfile(int ranks, int steps) {
  ProfileReport profile;
  const int late = ranks / 3;
  profile.source = "profiler traces";
  profile.world_size = ranks;
  profile.steps = static_cast<size_t>(steps);
  profile.step_ns = 100 * kSampleMs;
  profile.verdict = ProfileVerdict::communication_bound;
  profile.headline = "Compute takes 60 % of the step, exposed communication 30 %; no kernel runs in 6.0 %; rank " +
                     std::to_string(late) + " makes the others wait";
  profile.advice = {{"Bring rank " + std::to_string(late) + " to the pace of the others", "its GPU works longer", 0.2,
                     false, 0.0, 0.35}};
  profile.setup = "All ranks share one GPU";
  profile.mean = {55 * kSampleMs, 5 * kSampleMs, 30 * kSampleMs, 4 * kSampleMs,
                  3 * kSampleMs,  2 * kSampleMs, 1 * kSampleMs};
  profile.overlap_ratio = 0.14, profile.overlap_efficiency = 0.33, profile.wait_share = 0.4;
  profile.wait_known = true;
  for (int rank = 0; rank < ranks; ++rank) {
    profile.ranks.push_back(rank);
    ProfileRank one;
    one.rank = Rank{rank};
    one.host = "node-" + std::to_string(rank / 8);
    one.device = "NVIDIA H200";
    one.steps = profile.steps;
    one.mean = profile.mean;
    const int64_t more = rank == late ? 25 * kSampleMs : rank % 7 * 100'000;
    one.mean.compute_only_ns += more;
    one.mean.exposed_ns -= more;
    one.step_ns = one.mean.total_ns();
    one.overlap = {35 * kSampleMs, 60 * kSampleMs + more, 5 * kSampleMs};
    profile.budgets.push_back(one);
    RankLateness lateness{.rank = Rank{rank}, .rounds = 40, .steps = profile.steps};
    lateness.mean_ns = more;
    lateness.worst_ns = 2 * more;
    lateness.share = static_cast<double>(more) / 1e8;
    if (rank == late) lateness.last = 39, lateness.late_steps = profile.steps;
    profile.stragglers.ranks.push_back(lateness);
  }
  profile.stragglers.rounds = 40;
  profile.stragglers.cost_share = 0.2;
  profile.stragglers.stragglers = {{.rank = Rank{late},
                                    .origin = StragglerOrigin::gpu_work,
                                    .trust = Trust::likely,
                                    .share = 0.25,
                                    .late_ns = 25 * kSampleMs,
                                    .late_steps = profile.steps,
                                    .steps = profile.steps,
                                    .cost = 0.2,
                                    .low = 0.0,
                                    .high = 0.35}};
  ProfileTableRow line;
  line.group = "default_pg";
  line.row = {.kind = OpKind::all_reduce,
              .group_size = ranks,
              .size_class = 1 << 25,
              .calls = 40,
              .bytes = 40 << 24,
              .wait_ns = ranks * 12 * kSampleMs,
              .mean_wait_ns = 12 * kSampleMs,
              .compared = 40,
              .whole = 40,
              .transfer_ns = 18 * kSampleMs,
              .member_transfer_ns = ranks * 18 * kSampleMs,
              .algorithm_gbs = 37.3,
              .bus_gbs = 65.2};
  profile.table = profile.table_by_role = {line};
  ProfileSeries times{"step time", {}};
  for (int step = 0; step < steps; ++step) times.values.push_back(step == steps / 2 ? 4e8 : 1e8 + 1e6 * std::sin(step));
  profile.series.push_back(times);
  for (const BudgetPart& part : BudgetParts())
    profile.series.push_back(
        {std::string(part.name),
         std::vector<double>(static_cast<size_t>(steps), static_cast<double>(profile.mean.*part.value))});
  profile.remarks = {"2 traces ended early; what was complete is used"};
  return profile;
}

// What a trace of one kernel tells: a budget of one rank, no steps, no peers.
inline ProfileReport SampleTinyProfile() {
  ProfileReport profile;
  profile.source = "profiler traces";
  profile.headline = "one kernel";
  profile.ranks = {0};
  ProfileRank rank;
  rank.rank = Rank{0};
  rank.steps = 1;
  rank.mean.compute_only_ns = rank.step_ns = 12'000;
  profile.mean = rank.mean;
  profile.budgets = {rank};
  profile.steps = 1;
  profile.step_ns = 12'000;
  profile.series = {{"step time", {12'000}}};
  return profile;
}

// What a group, a host or a job may be called by an attacker.
inline ProfileReport SampleHostileProfile() {
  const std::string bad =
      "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[31m";
  ProfileReport profile = SampleProfile(20, 4);
  profile.job = profile.headline = profile.setup = bad;
  for (ProfileRank& rank : profile.budgets) rank.host = rank.device = bad;
  profile.table_by_role[0].group = bad;
  profile.remarks = {bad};
  profile.advice = {{bad, bad, 0.1, true}};
  profile.groups = {{bad, 1, 4, 8, 0.3}, {"__proto__", 1, 4, 8, 0.2}};
  return profile;
}

inline ProfileComparison SampleComparison() {
  ProfileComparison comparison;
  comparison.name_a = "before/<b>";
  comparison.name_b = "after";
  const auto line = [&](std::string name, double a, double b, double spread, double p, ChangeKind kind) {
    ComparisonLine one;
    one.name = std::move(name);
    one.count_a = one.count_b = 20;
    one.mean_a = a, one.mean_b = b;
    one.change = b / a - 1;
    one.low = one.change - spread, one.high = one.change + spread;
    one.p = one.adjusted_p = p;
    one.kind = kind;
    comparison.lines.push_back(one);
  };
  line("step time", 1e8, 1.2e8, 0.02, 1e-9, ChangeKind::slower);
  for (const BudgetPart& part : BudgetParts())
    line(std::string(part.name), 1e7, part.name == "exposed communication" ? 3e7 : 1e7, 0.03,
         part.name == "exposed communication" ? 1e-7 : 0.8,
         part.name == "exposed communication" ? ChangeKind::slower : ChangeKind::none);
  line("all_reduce on default_pg: transfer", 2e7, 1.6e7, 0.01, 1e-4, ChangeKind::faster);
  line("all_gather on default_pg: transfer", 0, 1e7, 0, 1, ChangeKind::only_b);
  comparison.lines.back().count_a = 0;
  comparison.tested = 9, comparison.slower = 2, comparison.faster = 1;
  comparison.remarks = {"other devices"};
  return comparison;
}

}  // namespace tacet
