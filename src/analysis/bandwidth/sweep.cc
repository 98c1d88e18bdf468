// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/bandwidth/sweep_outliers.h"
#include "analysis/timing/statistics.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr double kBytesPerUsOfOneGbs = 1000;

// "ring" and "RING" are one algorithm; lists and exclusions stay as written.
std::string AlgorithmName(const std::string& written) {
  const NcclAlgorithm algorithm = ParseNcclAlgorithm(written);
  return algorithm == NcclAlgorithm::unknown ? written : std::string(Name(algorithm));
}
std::string ProtocolName(const std::string& written) {
  const NcclProtocol protocol = ParseNcclProtocol(written);
  return protocol == NcclProtocol::unknown ? written : std::string(Name(protocol));
}

// What the processes of a run were told, where NCCL's own log beside it says so.
void TakeWayFromLog(const Incident& incident, const BenchmarkRun& run, std::string& algorithm, std::string& protocol) {
  if (run.devices.empty() || !run.algorithm.empty() || !run.protocol.empty()) return;
  std::set<int64_t> pids;
  for (const BenchmarkDevice& device : run.devices)
    if (device.pid > 0) pids.insert(device.pid);
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::environment || event.speaker == kNobody) continue;
    if (event.speaker >= incident.processes.size() || !pids.contains(incident.processes[event.speaker].pid)) continue;
    const auto& setting = event.As<EnvironmentSetting>();
    if (setting.name == "NCCL_ALGO") algorithm = Trim(setting.value);
    if (setting.name == "NCCL_PROTO") protocol = Trim(setting.value);
  }
}

std::vector<std::string> HostsOf(const BenchmarkRun& run) {
  std::set<std::string> hosts;
  for (const BenchmarkDevice& device : run.devices)
    if (!device.host.empty()) hosts.insert(device.host);
  if (!run.from.empty()) hosts.insert(run.from);
  if (!run.to.empty()) hosts.insert(run.to);
  return {hosts.begin(), hosts.end()};
}

struct Gathered {
  std::vector<const BenchmarkFigure*> figures;
  SourceRef source;
};
using PointKey = std::pair<int64_t, bool>;

double MeanOf(const std::vector<const BenchmarkFigure*>& figures, double BenchmarkFigure::*member) {
  double sum = 0;
  size_t count = 0;
  for (const BenchmarkFigure* one : figures)
    if (one->*member >= 0) sum += one->*member, ++count;
  return count > 0 ? sum / static_cast<double>(count) : -1;
}

double ExtremeOf(const std::vector<const BenchmarkFigure*>& figures, double BenchmarkFigure::*member, bool least) {
  double value = -1;
  for (const BenchmarkFigure* one : figures)
    if (one->*member >= 0 && (value < 0 || (least ? one->*member < value : one->*member > value))) value = one->*member;
  return value;
}

void FillPercentiles(const std::vector<const BenchmarkFigure*>& figures, SweepPoint& point) {
  const std::vector<double>& times = point.iterations_us;
  if (times.size() >= 2) {
    point.min_us = *std::min_element(times.begin(), times.end());
    point.max_us = *std::max_element(times.begin(), times.end());
    point.median_us = Quantile(times, 0.5);
    point.p95_us = Quantile(times, 0.95);
    point.p99_us = Quantile(times, 0.99);
    return;
  }
  point.min_us = ExtremeOf(figures, &BenchmarkFigure::min_us, true);
  point.max_us = ExtremeOf(figures, &BenchmarkFigure::max_us, false);
  point.median_us = MeanOf(figures, &BenchmarkFigure::median_us);
  point.p95_us = MeanOf(figures, &BenchmarkFigure::p95_us);
  point.p99_us = MeanOf(figures, &BenchmarkFigure::p99_us);
}

double SpreadOf(const std::vector<double>& values) {
  const double mean = Mean(values);
  return values.size() >= 2 && mean > 0 ? std::sqrt(Variance(values)) / mean : -1;
}

// Tables have two decimals: of a few kB nothing is left but "0.00" or "0.01". Where the time gives the same figure with
// more digits, those are taken.
void TakeRoundingBack(SweepPoint& point, double bus_factor) {
  constexpr double kHalfDigit = 0.0051;
  if (point.time_us <= 0 || point.bytes <= 0) return;
  const double exact = static_cast<double>(point.bytes) / point.time_us / kBytesPerUsOfOneGbs;
  if (point.algorithm_gbs < 0 || std::fabs(exact - point.algorithm_gbs) > kHalfDigit) return;
  if (point.bus_gbs >= 0 && std::fabs(exact * bus_factor - point.bus_gbs) > kHalfDigit) return;
  point.algorithm_gbs = exact;
  if (point.bus_gbs >= 0) point.bus_gbs = exact * bus_factor;
}

// Figures stay those of the file; only what it does not tell is worked out.
SweepPoint PointOf(PointKey key, const Gathered& gathered, double bus_factor) {
  SweepPoint point;
  point.bytes = key.first;
  point.in_place = key.second;
  point.source = gathered.source;
  for (const BenchmarkFigure* one : gathered.figures) {
    if (one->time_us > 0) point.times_us.push_back(one->time_us);
    for (const double time : one->iterations_us)
      if (time > 0) point.iterations_us.push_back(time);
  }
  point.time_us = point.times_us.empty() ? -1 : Mean(point.times_us);
  point.algorithm_gbs = MeanOf(gathered.figures, &BenchmarkFigure::algorithm_gbs);
  point.bus_gbs = MeanOf(gathered.figures, &BenchmarkFigure::bus_gbs);
  TakeRoundingBack(point, bus_factor);
  const auto bytes = static_cast<double>(point.bytes);
  if (point.time_us > 0 && point.algorithm_gbs < 0 && point.bus_gbs < 0 && bytes > 0)
    point.algorithm_gbs = bytes / point.time_us / kBytesPerUsOfOneGbs;
  if (point.bus_gbs < 0 && point.algorithm_gbs >= 0 && bus_factor > 0) point.bus_gbs = point.algorithm_gbs * bus_factor;
  if (point.time_us <= 0) {
    for (const BenchmarkFigure* one : gathered.figures)
      if (one->algorithm_gbs > 0 && bytes > 0)
        point.times_us.push_back(bytes / one->algorithm_gbs / kBytesPerUsOfOneGbs);
    if (!point.times_us.empty()) point.time_us = Mean(point.times_us), point.time_derived = true;
  }
  FillPercentiles(gathered.figures, point);
  point.spread = point.iterations_us.size() >= 2 ? SpreadOf(point.iterations_us) : SpreadOf(point.times_us);
  return point;
}

// In place and out of place may be fitted together where they do not differ by more than their own noise.
bool AreAlike(const Sweep& sweep, double* median_ratio) {
  std::map<int64_t, double> out_of_place;
  std::vector<double> logs;
  for (const SweepPoint& point : sweep.points) {
    if (point.time_us <= 0) continue;
    if (!point.in_place) out_of_place[point.bytes] = point.time_us;
    if (const auto found = out_of_place.find(point.bytes); point.in_place && found != out_of_place.end())
      logs.push_back(std::log(found->second / point.time_us));
  }
  if (logs.empty()) return false;
  const double middle = Median(logs);
  *median_ratio = std::exp(middle);
  const double error = 1.25 * RobustDeviation(logs) / std::sqrt(static_cast<double>(logs.size()));
  return std::fabs(middle) < 2 * error + 0.01;
}

void FitSweep(Sweep& sweep) {
  std::vector<FitObservation> observed;
  sweep.fit_joins_layouts = AreAlike(sweep, &sweep.in_place_ratio);
  const bool has_out = std::any_of(sweep.points.begin(), sweep.points.end(),
                                   [](const SweepPoint& p) { return !p.in_place && p.time_us > 0; });
  for (const SweepPoint& point : sweep.points) {
    if (point.in_place && has_out && !sweep.fit_joins_layouts) continue;
    // Iterations are the finest that is measured; the mean of a run is one figure.
    const std::vector<double>& times = point.iterations_us.size() >= 2 ? point.iterations_us : point.times_us;
    for (const double time : times) observed.push_back({static_cast<double>(point.bytes), time});
  }
  sweep.fit = FitPiecewise(observed);
  sweep.outliers = FindSweepOutliers(sweep);
}

using SweepKey = std::tuple<std::string, std::string, int32_t, std::vector<std::string>, DataType, int32_t, std::string,
                            std::string, std::string, std::string, std::string, std::string, bool>;

}  // namespace

double BusFactorOf(const std::string& operation, int32_t ranks) {
  if (operation == "sendrecv" || operation == "broadcast" || operation == "reduce" || operation.starts_with("ib_") ||
      operation.starts_with("osu_"))
    return 1;
  if (ranks < 2) return 0;
  const double share = (ranks - 1.0) / ranks;
  if (operation == "all_reduce") return 2 * share;
  for (const std::string_view one : {"all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "gather", "scatter"})
    if (operation == one) return share;
  return 0;
}

bool Sweep::IsLatencyTest() const {
  return operation.ends_with("_lat") || operation.find("_latency") != std::string::npos;
}

bool Sweep::FitTells() const {
  return std::any_of(fit.segments.begin(), fit.segments.end(),
                     [](const FitSegment& one) { return one.TellsAlpha() || one.TellsBandwidth(); });
}

const SweepPoint* Sweep::Quickest() const {
  const SweepPoint* least = nullptr;
  for (const SweepPoint& point : points)
    if (point.time_us >= 0 && (!least || point.time_us < least->time_us)) least = &point;
  return least;
}

const SweepPoint* Sweep::Peak() const {
  const SweepPoint* best = nullptr;
  const auto rate = [](const SweepPoint& point) { return point.bus_gbs >= 0 ? point.bus_gbs : point.algorithm_gbs; };
  for (const SweepPoint& point : points)
    if (rate(point) > 0 && (!best || rate(point) > rate(*best))) best = &point;
  return best;
}

std::vector<Sweep> CollectSweeps(const std::vector<const Incident*>& incidents) {
  std::map<SweepKey, std::pair<Sweep, std::map<PointKey, Gathered>>> all;
  for (size_t at = 0; at < incidents.size(); ++at)
    for (const BenchmarkRun& run : incidents[at]->benchmark_runs) {
      std::string algorithm = run.algorithm, protocol = run.protocol;
      TakeWayFromLog(*incidents[at], run, algorithm, protocol);
      algorithm = AlgorithmName(algorithm), protocol = ProtocolName(protocol);
      const std::vector<std::string> hosts = HostsOf(run);
      for (const BenchmarkLine& line : run.lines) {
        if (line.bytes <= 0) continue;  // less than one element per rank
        const SweepKey key{run.tool, run.operation, run.ranks,          hosts,    line.type, line.root,     algorithm,
                           protocol, run.library,   run.network_device, run.from, run.to,    run.host_times};
        auto& [sweep, points] = all[key];
        if (sweep.runs.empty()) {
          sweep.tool = run.tool, sweep.operation = run.operation, sweep.library = run.library;
          sweep.kind = run.operation == "all_to_all_v" ? OpKind::all_to_all : ParseOpKind(run.operation);
          sweep.ranks = run.ranks, sweep.hosts = hosts, sweep.type = line.type;
          sweep.algorithm = algorithm, sweep.protocol = protocol, sweep.way_assumed = run.way_assumed;
          sweep.network_device = run.network_device, sweep.link = run.link, sweep.from = run.from, sweep.to = run.to;
          sweep.incident = at;
        }
        if (sweep.runs.empty() || sweep.runs.back() != &run) sweep.runs.push_back(&run);
        for (const bool in_place : {false, true}) {
          const BenchmarkFigure& figure = in_place ? line.in_place : line.out_of_place;
          if (figure.time_us < 0 && figure.algorithm_gbs < 0 && figure.bus_gbs < 0) continue;
          Gathered& gathered = points[{line.bytes, in_place}];
          if (gathered.figures.empty()) gathered.source = line.source;
          gathered.figures.push_back(&figure);
        }
      }
    }
  std::vector<Sweep> sweeps;
  for (auto& [key, entry] : all) {
    Sweep sweep = std::move(entry.first);
    const double factor = BusFactorOf(sweep.operation, sweep.ranks);
    for (const auto& [point, gathered] : entry.second) sweep.points.push_back(PointOf(point, gathered, factor));
    FitSweep(sweep);
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

bool Sweep::IsPipelined() const {
  return (tool == "perftest" || tool == "OSU micro-benchmarks") &&
         (operation.ends_with("_bw") || operation.ends_with("_bibw") || operation.ends_with("_mbw_mr"));
}

std::string SweepWords(const Sweep& sweep) {
  std::string out = sweep.operation.empty() ? "an unnamed operation" : sweep.operation;
  if (!sweep.from.empty() && !sweep.to.empty())
    out += " from " + sweep.from + " to " + sweep.to;
  else if (sweep.ranks > 0 && sweep.tool != "perftest")  // a client and a server, often on one host
    out += ", " + std::to_string(sweep.ranks) + (sweep.ranks == 1 ? " rank" : " ranks");
  if (sweep.from.empty() && sweep.hosts.size() > 1) out += " on " + std::to_string(sweep.hosts.size()) + " nodes";
  if (!sweep.network_device.empty()) out += ", " + sweep.network_device;
  if (sweep.type != DataType::unknown) out += ", " + std::string(Name(sweep.type));
  if (!sweep.algorithm.empty() || !sweep.protocol.empty())
    out += ", " + sweep.algorithm + (sweep.algorithm.empty() || sweep.protocol.empty() ? "" : " ") + sweep.protocol;
  return out;
}

std::string SweepSubject(const Sweep& sweep) {
  const std::string words = SweepWords(sweep);
  const size_t comma = words.find(", ");
  return comma == std::string::npos ? words : words.substr(0, comma) + " (" + words.substr(comma + 2) + ")";
}

}  // namespace tacet
