// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/hardware_guess.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "predict/hardware.h"
#include "predict/prediction.h"

namespace tacet {
namespace {

constexpr std::string_view kReleaseOfGuess = "2.27.5";  // where the header names none
constexpr int64_t kLargeMessage = 32 << 20;             // below it latency decides

// "NVIDIA H100 80GB HBM3" is an H100 with NVLink; an "H100 PCIe" or "H100 NVL" is another machine.
const GpuModel* ModelOfDevice(std::string_view name) {
  if (name.find("PCIe") != std::string_view::npos || name.find("NVL") != std::string_view::npos ||
      name.find("MIG") != std::string_view::npos)
    return nullptr;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find(' ', at), name.size());
    if (const GpuModel* gpu = FindGpu(name.substr(at, end - at))) return gpu;
    at = end + 1;
  }
  return nullptr;
}

const GpuModel* ModelOfAll(const std::vector<BenchmarkDevice>& devices) {
  std::vector<int32_t> numbers;
  for (const BenchmarkDevice& device : devices) {
    if (device.name != devices.front().name || device.host != devices.front().host) return nullptr;
    numbers.push_back(device.device);
  }
  std::sort(numbers.begin(), numbers.end());
  if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) return nullptr;  // ranks share a GPU
  return ModelOfDevice(devices.front().name);
}

}  // namespace

std::optional<HardwareGuess> GuessFromHardware(const Sweep& sweep) {
  const SweepPoint* peak = sweep.Peak();
  if (sweep.tool != "nccl-tests" || sweep.runs.empty() || sweep.ranks < 2 || sweep.hosts.size() != 1 || !peak ||
      peak->bus_gbs <= 0 || peak->bytes < kLargeMessage || !sweep.algorithm.empty() || !sweep.protocol.empty())
    return std::nullopt;
  const auto& devices = sweep.runs.front()->devices;
  if (devices.size() != static_cast<size_t>(sweep.ranks)) return std::nullopt;
  const GpuModel* gpu = ModelOfAll(devices);
  if (!gpu || gpu->nvlinks == 0) return std::nullopt;
  NcclRelease release = ParseNcclRelease(sweep.library);
  if (!release.known() || !HasCostModel(release)) release = ParseNcclRelease(kReleaseOfGuess);
  ClusterHardware hardware;
  hardware.gpu = *gpu;
  hardware.gpus_per_node = sweep.ranks;
  std::vector<std::string> assumptions;
  const CommunicatorPrediction one =
      PredictCommunicator(SearchGraphs(release, hardware, &assumptions), "", {{sweep.kind}, {peak->bytes}});
  if (one.points.empty() || one.points.front().decision.bus_bandwidth <= 0) return std::nullopt;
  return HardwareGuess{std::to_string(sweep.ranks) + " x " + std::string(gpu->name) + " on one node", peak->bytes,
                       one.points.front().decision.bus_bandwidth, peak->bus_gbs};
}

}  // namespace tacet
