// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/bandwidth/better_way.h"
#include "analysis/bandwidth/pair_matrix.h"
#include "analysis/bandwidth/sweep.h"
#include "analysis/bandwidth/sweep_outliers.h"
#include "analysis/bandwidth/waterfall.h"

namespace tacet {

// A test that runs for a time: rates instead of sizes.
struct StreamView {
  const BenchmarkRun* run = nullptr;
  double mean_gbs = -1, median_gbs = -1, least_gbs = -1, p5_gbs = -1, most_gbs = -1;
  double spread = -1;
  std::optional<LevelShift> shift;  // in GB/s
  std::vector<size_t> dips;         // intervals far below the others, passing
  int64_t retransmits = -1;
};

// All that benchmarks say of one or several jobs, beside what the jobs' own graphs promise.
struct BandwidthView {
  std::vector<Sweep> sweeps;
  std::vector<StreamView> streams;
  std::vector<PairMatrixView> matrices;
  std::shared_ptr<const std::vector<NcclGroupModel>> models;  // ModelCheck points here
  std::vector<ModelCheck> checks;                             // of the sweeps for which there is a model
  std::vector<BetterWay> better;
  bool has_logs = false;               // some NCCL log lies beside the benchmarks
  std::set<int> ranks_without_search;  // of communicators whose logs do not show how NCCL chose rings and trees
  bool empty() const { return sweeps.empty() && streams.empty() && matrices.empty(); }
  const ModelCheck* CheckOf(size_t sweep) const;
};

// What one job brings. The views must belong to the incident, which must outlive the result.
struct BandwidthSource {
  const Incident* incident = nullptr;
  const TopologyView* topology = nullptr;
  const TopologyChecks* checks = nullptr;
};

BandwidthView MeasureBandwidth(const std::vector<BandwidthSource>& sources);

}  // namespace tacet
