// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/peer_access.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

// The name of a matrix up to the word that tells the way: "Unidirectional P2P=Enabled Bandwidth (P2P Writes)".
bool IsOfWay(const BenchmarkMatrix& matrix, std::string_view way) {
  return !matrix.is_latency && Contains(matrix.title, way) && Contains(matrix.title, "Bandwidth");
}
std::string_view DirectionOf(const BenchmarkMatrix& matrix) {
  return std::string_view(matrix.title).substr(0, matrix.title.find("P2P="));
}

struct Pairs {
  std::vector<double> direct, by_host;  // of the pairs that both matrices show
};

Pairs PairsOf(const BenchmarkMatrix& direct, const BenchmarkMatrix& by_host) {
  Pairs pairs;
  for (size_t row = 0; row < std::min(direct.cells.size(), by_host.cells.size()); ++row)
    for (size_t column = 0; column < std::min(direct.cells[row].size(), by_host.cells[row].size()); ++column) {
      const double one = direct.cells[row][column], other = by_host.cells[row][column];
      if (row == column || !std::isfinite(one) || !std::isfinite(other) || one <= 0 || other <= 0) continue;
      pairs.direct.push_back(one);
      pairs.by_host.push_back(other);
    }
  return pairs;
}

double MiddleOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string Rate(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB/s", gbs);
  return text;
}

}  // namespace

std::optional<Finding> FindSlowPeerAccess(const Incident& incident) {
  constexpr size_t kFewestPairs = 2;
  constexpr double kSlower = 0.8;  // two ways over the same links differ by some percent
  for (const BenchmarkRun& run : incident.benchmark_runs)
    for (const BenchmarkMatrix& direct : run.matrices)
      for (const BenchmarkMatrix& by_host : run.matrices) {
        if (!IsOfWay(direct, "P2P=Enabled") || !IsOfWay(by_host, "P2P=Disabled")) continue;
        if (DirectionOf(direct) != DirectionOf(by_host)) continue;
        const Pairs pairs = PairsOf(direct, by_host);
        if (pairs.direct.size() < kFewestPairs) continue;
        const double one = MiddleOf(pairs.direct), other = MiddleOf(pairs.by_host);
        if (one >= kSlower * other) continue;
        Finding finding;
        finding.status = Status::degraded;
        finding.severity = Severity::warning;
        finding.confidence = Confidence::likely;
        finding.headline =
            "Direct access between the GPUs (P2P) is slower than the path through host memory: " + Rate(one) +
            " against " + Rate(other) + " (median of " + std::to_string(pairs.direct.size()) + " pairs)";
        finding.explanation =
            "Direct access saves a copy and should be faster. Where it is not, the PCIe path between the GPUs leads "
            "through the root complex or between two sockets: access control (ACS), an IOMMU, or no common switch.";
        finding.evidence.push_back({direct.source, "", "with direct access"});
        finding.evidence.push_back({by_host.source, "", "without it"});
        finding.fix = {
            "See how the GPUs are connected: nvidia-smi topo -m. Pairs marked PHB, NODE or SYS have no PCIe switch in "
            "common.",
            "Switch off ACS on the PCIe bridges (lspci -vvv | grep ACSCtl) and the IOMMU (intel_iommu=off or "
            "iommu=pt), "
            "unless virtual machines need them.",
            "Until then compare NCCL_P2P_LEVEL=PIX, or NCCL_P2P_DISABLE=1, with the default in all_reduce_perf."};
        return finding;
      }
  return std::nullopt;
}

}  // namespace tacet
