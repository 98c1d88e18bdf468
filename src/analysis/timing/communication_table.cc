// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/communication_table.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr double kHalfBandwidthBytes = 0.5e6;
// A measured latency outside of these multiples of a megabyte's time is noise of the fit.
constexpr double kLeastLatencyBytes = 1e3, kMostLatencyBytes = 8e6;

int64_t SizeClass(int64_t bytes) {
  if (bytes <= 0) return 0;
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(bytes, int64_t{1} << 61))));
}

}  // namespace

// Beyond the memory bandwidth of any GPU that a collective could use.
constexpr double kFastestLinkGbs = 2000;

std::vector<CommunicationRow> SummariseCommunication(const std::vector<CollectiveRound>& rounds) {
  std::map<std::tuple<GroupIndex, OpKind, int64_t>, CommunicationRow> rows;
  for (const CollectiveRound& round : rounds) {
    const RoundTiming timing = TimeRound(round);
    if (timing.transfer_ns < 0) continue;
    const int64_t size_class = SizeClass(round.bytes);
    CommunicationRow& row = rows[{round.group, round.kind, size_class}];
    row.group = round.group;
    row.kind = round.kind;
    row.group_size = round.group_size;
    row.size_class = size_class;
    ++row.calls;
    row.wait_ns += timing.total_wait_ns;
    row.mean_wait_ns += timing.total_wait_ns / std::max<int64_t>(1, static_cast<int64_t>(round.members.size()));
    row.compared += round.members.size() > 1;
    row.whole += round.whole() || (IsPointToPoint(round.kind) && round.members.size() == 2);
    row.transfer_ns += timing.transfer_ns;
    if (round.members.size() > 1)
      row.member_transfer_ns += timing.transfer_ns * static_cast<int64_t>(round.members.size());
    if (round.bytes <= 0 || timing.transfer_ns == 0) continue;
    row.bytes += round.bytes;
    const double rate = static_cast<double>(round.bytes) / static_cast<double>(timing.transfer_ns);
    row.best_bus_gbs = std::max(row.best_bus_gbs, rate * BusFactor(round.kind, round.group_size));
  }
  std::vector<CommunicationRow> out;
  for (auto& [key, row] : rows) {
    if (row.transfer_ns > 0) row.algorithm_gbs = static_cast<double>(row.bytes) / static_cast<double>(row.transfer_ns);
    row.bus_gbs = row.algorithm_gbs * BusFactor(row.kind, row.group_size);
    if (row.bus_gbs > kFastestLinkGbs) {
      row.plausible = false;
      row.algorithm_gbs = row.bus_gbs = row.best_bus_gbs = 0;
    }
    out.push_back(row);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.transfer_ns > b.transfer_ns; });
  return out;
}

LatencyBandwidthFit FitLatencyBandwidth(const std::vector<CollectiveRound>& rounds, GroupIndex group, OpKind kind) {
  std::vector<double> bytes, times;
  for (const CollectiveRound& round : rounds) {
    if (round.group != group || round.kind != kind || round.bytes <= 0) continue;
    const RoundTiming timing = TimeRound(round);
    if (timing.transfer_ns <= 0) continue;
    bytes.push_back(static_cast<double>(round.bytes));
    times.push_back(static_cast<double>(timing.transfer_ns));
  }
  LatencyBandwidthFit fit;
  fit.rounds = bytes.size();
  if (bytes.empty()) return fit;
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  if (*most >= 2 * *least && bytes.size() >= 4) {
    const LinearFit line = FitLineRobustly(bytes, times);
    const double latency_bytes = line.slope > 0 ? line.intercept / line.slope : -1;
    if (latency_bytes >= kLeastLatencyBytes && latency_bytes <= kMostLatencyBytes) {
      fit.valid = fit.latency_measured = true;
      fit.latency_ns = line.intercept;
      fit.per_byte_ns = line.slope;
      return fit;
    }
  }
  // Bandwidth from the sums, the latency assumed.
  double total_bytes = 0, total_ns = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    total_bytes += bytes[i] + kHalfBandwidthBytes;
    total_ns += times[i];
  }
  fit.valid = true;
  fit.per_byte_ns = total_ns / total_bytes;
  fit.latency_ns = fit.per_byte_ns * kHalfBandwidthBytes;
  return fit;
}

}  // namespace tacet
