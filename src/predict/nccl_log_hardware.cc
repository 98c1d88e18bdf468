// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_log_hardware.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text_scan.h"

namespace tacet {
namespace {

// CPU/0-ffffffffffffff (1/1/4): architecture, vendor and model.
void ReadCpu(std::string_view row, LoggedHardware* seen) {
  const size_t open = row.find(" (");
  if (open == std::string_view::npos) return;
  row.remove_prefix(open + 2);
  int arch = 0, vendor = 0;
  if (!TakeNumber(row, &arch) || !TakeLiteral(row, "/") || !TakeNumber(row, &vendor)) return;
  const auto own_arch = arch >= 1 && arch <= 3 ? static_cast<CpuArch>(arch) : CpuArch::unknown;
  const auto own_vendor = vendor >= 1 && vendor <= 3 ? static_cast<CpuVendor>(vendor) : CpuVendor::unknown;
  if (seen->arch != CpuArch::unknown && seen->arch != own_arch)
    seen->arch = CpuArch::mixed;
  else
    seen->arch = own_arch;
  if (seen->vendor != CpuVendor::unknown && seen->vendor != own_vendor)
    seen->vendor = CpuVendor::mixed;
  else
    seen->vendor = own_vendor;
}

// + NVL[370.8] - NVS/0-0, + XGMI[...] of RCCL
void ReadLink(std::string_view row, LoggedHardware* seen) {
  SkipBlanks(row);
  if (!TakeLiteral(row, "+ NVL[") && !TakeLiteral(row, "+ XGMI[")) return;
  double bw = 0;
  if (!TakeDouble(row, &bw)) return;
  seen->nvlink_gbps = std::max(seen->nvlink_gbps, bw);
  if (Contains(row, "NVS/")) seen->nvswitch = true;
}

bool IsMultiple(double bw, double per_link, int most) {
  const double links = bw / per_link;
  return links > 0.9 && links < most + 0.1 && std::abs(links - std::round(links)) * per_link < 0.06;
}

std::vector<int> PossibleCapabilities(double nvlink) {
  if (nvlink <= 0) return {90, 80, 100, 70};
  if (IsMultiple(nvlink, 40.1, 18) || std::abs(nvlink - 720) < 0.1) return {100};
  if (IsMultiple(nvlink, 20.6, 18) || (nvlink > 264.1 && nvlink < 371)) return {90};
  if (nvlink >= 159.9) return {80};
  return {80, 70};
}

}  // namespace

LoggedHardware ReadLoggedHardware(const Incident& incident, const std::vector<const NcclSetup*>& setups) {
  LoggedHardware seen;
  for (const NcclSetup* setup : setups)
    for (const StringId id : setup->system_rows) {
      const std::string_view row = incident.strings.Get(id);
      if (row.starts_with("CPU/"))
        ReadCpu(row, &seen);
      else
        ReadLink(row, &seen);
    }
  seen.capabilities = PossibleCapabilities(seen.nvlink_gbps);
  return seen;
}

int CountSystemGpus(const Incident& incident, const NcclSetup& setup) {
  // A GPU with several parents is listed below each, but has one row of paths.
  int paths = 0;
  for (const StringId id : setup.path_rows) paths += incident.strings.Get(id).starts_with("GPU/") ? 1 : 0;
  if (paths > 0) return paths;
  int gpus = 0;
  for (const StringId id : setup.system_rows) gpus += Contains(incident.strings.Get(id), "- GPU/") ? 1 : 0;
  return gpus;
}

}  // namespace tacet
