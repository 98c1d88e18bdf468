// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "analysis/bandwidth/waterfall.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Above this share of the predicted time the transfer decides, not the latency.
constexpr double kTransferDecides = 0.7;

double RateOf(const SweepPoint& point, OpKind op, int ranks) {
  return point.bus_gbs > 0 && !point.time_derived ? BusBandwidth(op, ranks, point.bytes, point.time_us) : point.bus_gbs;
}

// Of two nodes NCCL's model takes the speed inside them. What passes between them cannot be faster than the network: a
// ring crosses it with every byte, a tree over two nodes with half of them. Nor does it know of caps on channels.
double CapOf(const NcclCommunicator& c, NcclAlgorithm algorithm) {
  const double used = UsedChannels(c);
  if (used <= 0) return HUGE_VAL;
  const bool ring = algorithm == NcclAlgorithm::ring || algorithm == NcclAlgorithm::pat;
  const double between = used * static_cast<double>(c.ring.bw_inter),
               within = used * static_cast<double>(c.ring.bw_intra);
  if (c.nodes == 2 && between > 0) return ring ? between : 2 * between;
  return ring && used < c.ring.channels ? (c.nodes > 1 ? between : within) : HUGE_VAL;
}

ModelPoint PointAt(const ModelCheck& check, const SweepPoint& measured, const Sweep& sweep) {
  ModelPoint point;
  point.bytes = measured.bytes;
  point.measured_us = measured.time_us;
  point.measured_gbs = RateOf(measured, sweep.kind, sweep.ranks);
  const NcclDecision decision =
      DecideNccl(check.forced, check.costs, {sweep.kind, measured.bytes, sweep.type, ReduceOp::sum, 1});
  const NcclCandidate* best = decision.best();
  if (!best || best->time_us <= 0) return point;
  point.predicted_us = best->time_us;
  point.predicted_gbs = std::min(decision.bus_bandwidth, CapOf(check.forced, best->algorithm));
  point.algorithm = best->algorithm;
  point.protocol = best->protocol;
  const double transfer = best->bandwidth > 0 ? static_cast<double>(measured.bytes) / 1000 / best->bandwidth : 0;
  point.bandwidth_bound = transfer > kTransferDecides * best->time_us;
  return point;
}

}  // namespace

double UsedChannels(const NcclCommunicator& c) {
  return c.channels > 0 ? std::min(c.channels, c.ring.channels) : c.ring.channels;
}

ModelCheck CheckAgainstModel(const Sweep& sweep, size_t index, const NcclGroupModel& model,
                             const TopologyView& topology, const TopologyChecks& checks) {
  ModelCheck check;
  check.sweep = index;
  check.communicator = model.label;
  check.model = &model;
  check.forced = model.communicator;
  check.assumptions = model.assumptions;
  check.costs = model.costs;
  const bool other_way = (!sweep.algorithm.empty() && check.forced.settings.algo != sweep.algorithm) ||
                         (!sweep.protocol.empty() && check.forced.settings.proto != sweep.protocol);
  if (other_way && model.is_modelled) {
    check.forced.settings.algo = sweep.algorithm;
    check.forced.settings.proto = sweep.protocol;
    check.costs = ComputeNcclCosts(check.forced);
  }
  std::vector<double> shares, delays;
  const ModelPoint* best = nullptr;
  for (const SweepPoint& measured : sweep.points) {
    if (measured.in_place || measured.time_us <= 0 || measured.time_derived) continue;
    const ModelPoint point = PointAt(check, measured, sweep);
    if (point.predicted_us > 0) check.points.push_back(point);
  }
  for (const ModelPoint& point : check.points) {
    if (point.bandwidth_bound)
      shares.push_back(point.Share());
    else
      delays.push_back(point.measured_us / point.predicted_us);
    if (!best || point.measured_gbs > best->measured_gbs) best = &point;
  }
  check.large_points = shares.size();
  check.share = Median(shares);
  check.latency_ratio = Median(delays);
  if (best) BuildWaterfall(check, *best, topology, checks, sweep.kind, check.waterfall);
  return check;
}

}  // namespace tacet
