// SPDX-License-Identifier: Apache-2.0
#include "predict/hardware.h"

#include <algorithm>
#include <cctype>

#include "base/text_scan.h"

namespace tacet {
namespace {

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// "8xH100" -> 8 and "H100"; "H100" -> `otherwise` and "H100".
int TakeCount(std::string_view& text, int otherwise) {
  std::string_view rest = text;
  int count = 0;
  if (!TakeNumber(rest, &count) || (!TakeLiteral(rest, "x") && !TakeLiteral(rest, "X"))) return otherwise;
  text = rest;
  return count;
}

}  // namespace

const std::vector<GpuModel>& KnownGpus() {
  static const std::vector<GpuModel> kGpus = {
      {"V100", 70, 6, true, 12, 125, 32},      {"T4", 75, 0, false, 12, 65, 16},
      {"A100", 80, 12, true, 24, 312, 80},     {"A800", 80, 8, true, 24, 312, 80},
      {"A30", 80, 4, false, 24, 165, 24},      {"A10", 86, 0, false, 24, 125, 24},
      {"A40", 86, 4, false, 24, 149.7, 48},    {"L4", 89, 0, false, 24, 121, 24},
      {"L40S", 89, 0, false, 24, 362, 48},     {"RTX4090", 89, 0, false, 24, 165, 24},
      {"H100", 90, 18, true, 48, 989, 80},     {"H200", 90, 18, true, 48, 989, 141},
      {"H800", 90, 8, true, 48, 989, 80},      {"H20", 90, 18, true, 48, 148, 96},
      {"GH200", 90, 18, true, 48, 989, 96},    {"B200", 100, 18, true, 48, 2250, 180},
      {"GB200", 100, 18, true, 48, 2500, 186}, {"B300", 103, 18, true, 96, 2250, 270},
      {"GB300", 103, 18, true, 96, 2500, 279}, {"RTX6000PRO", 120, 0, false, 48, 503, 96},
  };
  return kGpus;
}

const GpuModel* FindGpu(std::string_view name) {
  const std::string wanted = Upper(name);
  const GpuModel* found = nullptr;
  for (const GpuModel& gpu : KnownGpus()) {
    if (wanted == gpu.name) return &gpu;
    // "H100-SXM5-80GB": the longest name that it begins with.
    if (wanted.starts_with(gpu.name) && (!found || gpu.name.size() > found->name.size())) found = &gpu;
  }
  return found;
}

double NvlinkGbps(const NcclRelease& release, int capability) {
  if (capability >= 100) return release.Before(27) ? 40.0 : 40.1;
  if (capability >= 90) return release.AtLeast(20) ? 20.6 : 20.0;
  if (capability == 86 || capability == 89) return 12;
  if (capability >= 70) return release.Before(17) ? 22 : 20;
  return 18;
}

Result<std::pair<int, const GpuModel*>> ParseGpus(std::string_view text) {
  const int count = TakeCount(text, 8);
  const GpuModel* gpu = FindGpu(text);
  if (!gpu) {
    std::string known;
    for (const GpuModel& one : KnownGpus()) known += (known.empty() ? "" : " ") + std::string(one.name);
    return Error{"no GPU is known as '" + std::string(text) + "'", "known: " + known};
  }
  if (count < 1 || count > 1024) return Error{"a node has 1 to 1024 GPUs, not " + std::to_string(count), ""};
  return std::pair(count, gpu);
}

Result<std::pair<int, double>> ParseNics(std::string_view text) {
  const std::string given(text);
  const int count = TakeCount(text, 1);
  double gbit = 0;
  if (count < 0 || count > 1024 || !TakeDouble(text, &gbit) || gbit <= 0 || gbit > 100000)
    return Error{"'" + given + "' does not describe NICs", "write the number per node and the speed of each: 8x400G"};
  if (!text.empty() && text != "G" && text != "g" && text != "Gb" && text != "Gbit" && text != "Gbps" && text != "Gb/s")
    return Error{"'" + given + "': the speed of a NIC is given in Gbit/s", "for example 8x400G"};
  return std::pair(count, gbit);
}

}  // namespace tacet
