// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/bandwidth_view.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// An interval this far below the others is a dip.
constexpr double kDip = 0.3;

StreamView StreamOf(const BenchmarkRun& run) {
  StreamView view;
  view.run = &run;
  view.retransmits = run.retransmits;
  std::vector<double> rates, slowness;
  for (const BenchmarkRate& rate : run.rates)
    if (rate.gbs >= 0) rates.push_back(rate.gbs);
  view.mean_gbs = run.received_gbs >= 0 ? run.received_gbs : rates.empty() ? -1 : Mean(rates);
  if (rates.empty()) return view;
  view.median_gbs = Median(rates);
  view.least_gbs = *std::min_element(rates.begin(), rates.end());
  view.most_gbs = *std::max_element(rates.begin(), rates.end());
  view.p5_gbs = Quantile(rates, 0.05);
  if (rates.size() >= 2 && Mean(rates) > 0) view.spread = std::sqrt(Variance(rates)) / Mean(rates);
  view.shift = FindLevelShift(rates);
  if (view.shift && view.shift->after > view.shift->before) view.shift.reset();  // TCP starts slowly
  for (const double rate : rates) slowness.push_back(rate > 0 ? 1 / rate : 1e9);
  if (!view.shift) view.dips = FindSpikes(slowness, kDip / (1 - kDip));
  return view;
}

struct Modelled {
  const NcclGroupModel* model = nullptr;
  size_t source = 0;
  bool same_processes = false;  // as those of the sweep that it was chosen for
};

// The communicator of a sweep: as many ranks, on as many nodes, and best of all with the very processes.
Modelled ModelFor(const Sweep& sweep, const std::vector<Modelled>& models,
                  const std::vector<BandwidthSource>& sources) {
  Modelled best;
  int best_worth = -1;
  std::set<std::pair<std::string_view, int64_t>> processes_of_sweep;
  for (const BenchmarkRun* run : sweep.runs)
    for (const BenchmarkDevice& device : run->devices)
      if (device.pid > 0) processes_of_sweep.emplace(device.host, device.pid);
  for (const Modelled& one : models) {
    const NcclCommunicator& c = one.model->communicator;
    if (c.ranks != sweep.ranks || !one.model->told_by) continue;
    const uint32_t speaker = one.model->told_by->speaker;
    const auto& processes = sources[one.source].incident->processes;
    const bool same =
        speaker < processes.size() && processes_of_sweep.contains({processes[speaker].host, processes[speaker].pid});
    // NCCL_HOSTID makes nodes of the processes of one host: the log of these very processes counts them as NCCL does.
    if (!same && sweep.Nodes() > 0 && c.nodes != sweep.Nodes() && sweep.Nodes() != c.ranks) continue;
    int worth = (one.model->is_modelled ? 2 : 1) + (same ? 4 : 0);
    if (one.source == sweep.incident) worth += 1;
    if (worth > best_worth) best = {one.model, one.source, same}, best_worth = worth;
  }
  return best;
}

// The release of the log, where the benchmark ran with a different one: "2.28.9" beside "2.28.3".
std::string OtherRelease(const Sweep& sweep, const NcclRelease& of_log) {
  const NcclRelease of_run = ParseNcclRelease(sweep.library);
  const bool same = of_run.minor == of_log.minor && of_run.patch == of_log.patch;
  return same || !of_run.known() || !of_log.known() ? "" : of_log.Text();
}

bool HasCosts(const NcclGroupModel& model) {
  return model.is_modelled || (model.told_by && !model.told_by->tables.empty());
}

}  // namespace

const ModelCheck* BandwidthView::CheckOf(size_t sweep) const {
  for (const ModelCheck& check : checks)
    if (check.sweep == sweep) return &check;
  return nullptr;
}

BandwidthView MeasureBandwidth(const std::vector<BandwidthSource>& sources) {
  BandwidthView view;
  std::vector<const Incident*> incidents;
  std::vector<const BenchmarkRun*> runs;
  for (const BandwidthSource& source : sources) {
    incidents.push_back(source.incident);
    for (const BenchmarkRun& run : source.incident->benchmark_runs) runs.push_back(&run);
    view.has_logs = view.has_logs || !source.incident->nccl_setups.empty();
  }
  if (runs.empty()) return view;
  view.sweeps = CollectSweeps(incidents);
  for (const BenchmarkRun* run : runs) {
    if (!run->rates.empty() || (run->lines.empty() && run->received_gbs >= 0)) view.streams.push_back(StreamOf(*run));
    for (const BenchmarkMatrix& matrix : run->matrices) {
      view.matrices.push_back(ReadPairMatrix(matrix));
      view.matrices.back().tool = run->tool;
      view.matrices.back().operation = run->operation;
      view.matrices.back().run = run;
    }
  }
  for (PairMatrixView& matrix : MatricesOfHosts(runs)) view.matrices.push_back(std::move(matrix));
  for (PairMatrixView& matrix : view.matrices)
    for (size_t i = 0; i < sources.size(); ++i)
      for (const BenchmarkRun& run : sources[i].incident->benchmark_runs)
        if (&run == matrix.run) matrix.incident = i;
  std::vector<NcclGroupModel> all;
  std::vector<size_t> source_of;
  for (size_t i = 0; i < sources.size(); ++i)
    for (NcclGroupModel& model : ModelCommunicators(*sources[i].incident, {})) {
      if (!HasCosts(model)) {
        view.ranks_without_search.insert(model.communicator.ranks);
        continue;
      }
      all.push_back(std::move(model));
      source_of.push_back(i);
    }
  view.models = std::make_shared<const std::vector<NcclGroupModel>>(std::move(all));
  std::vector<Modelled> models;
  for (size_t i = 0; i < source_of.size(); ++i) models.push_back({&(*view.models)[i], source_of[i]});
  for (size_t i = 0; i < view.sweeps.size(); ++i) {
    const Sweep& sweep = view.sweeps[i];
    if (sweep.tool != "nccl-tests" || NcclTunedIndex(sweep.kind) < 0 || sweep.ranks < 2) continue;
    if (sweep.runs.front()->host_times) continue;  // until the call came back: no time of the operation
    const Modelled found = ModelFor(sweep, models, sources);
    if (!found.model) continue;
    const BandwidthSource& source = sources[found.source];
    ModelCheck check = CheckAgainstModel(sweep, i, *found.model, *source.topology, *source.checks);
    if (!found.same_processes) check.other_release = OtherRelease(sweep, found.model->communicator.release);
    if (!check.points.empty()) view.checks.push_back(std::move(check));
  }
  view.better = FindBetterWays(view.sweeps, view.checks);
  CountCallsPerStep(incidents, view.sweeps, view.better);
  return view;
}

}  // namespace tacet
