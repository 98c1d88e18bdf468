// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text_scan.h"
#include "predict/hardware.h"
#include "predict/prediction.h"

namespace tacet {
namespace {

// The machine that a communicator's graphs look like, for a new search with something else changed.
ClusterHardware LikelyHardware(const NcclCommunicator& c) {
  ClusterHardware hardware;
  const bool nvlink = c.ring.type_intra == NcclPath::nvl || c.ring.type_intra == NcclPath::nvb;
  const int usual = c.min_capability >= 90 ? 18 : c.min_capability >= 80 ? 12 : 6;
  const double per_link = NvlinkGbps(c.release, c.min_capability);
  hardware.gpu.capability = c.min_capability;
  hardware.gpu.nvlinks = !nvlink ? 0 : c.link_gbps > 0 ? static_cast<int>(std::lround(c.link_gbps / per_link)) : usual;
  hardware.gpu.nvswitch = c.nvswitch || c.nvls.channels > 0;
  hardware.gpu.pcie_gbps = c.min_capability >= 90 ? 48 : c.min_capability >= 80 ? 24 : 12;
  hardware.gpus_per_node = std::max(1, c.LocalRanks());
  hardware.nodes = c.nodes;
  hardware.nics_per_node = std::max(1, c.ring.channels);
  hardware.nic_gbit = c.ring.bw_inter * 8;
  hardware.gdr = c.ring.type_inter < NcclPath::phb;
  hardware.cpu = c.cpu;
  return hardware;
}

struct Change {
  std::string_view key, value;
};

Error Refuse(const Change& change, std::string hint) {
  return Error{"--what-if: '" + std::string(change.key) + "=" + std::string(change.value) + "' is not understood",
               std::move(hint)};
}

void SetPaths(NcclCommunicator& c, bool gdr) {
  for (NcclModelGraph* graph : {&c.ring, &c.tree, &c.nvls, &c.collnet_direct, &c.collnet_chain}) {
    if (graph->channels == 0 || c.nodes <= 1) continue;
    if (gdr && graph->type_inter > NcclPath::pxn) graph->type_inter = NcclPath::pxb;
    if (!gdr && graph->type_inter < NcclPath::phb) graph->type_inter = NcclPath::phb;
  }
}

// Settings that need no new search.
bool ApplySetting(const Change& change, NcclCommunicator& c, std::vector<std::string>* assumptions) {
  if (change.key == "algo") {
    c.settings.algo = change.value;
  } else if (change.key == "proto") {
    c.settings.proto = change.value;
  } else if (change.key == "pat") {
    c.settings.pat_enable = change.value == "1" || change.value == "on" ? 1 : 0;
  } else if (change.key == "cpu") {
    c.cpu = change.value == "amd" ? CpuVendor::amd : CpuVendor::intel;
  } else if (change.key == "gdr") {
    SetPaths(c, change.value == "on" || change.value == "1");
    assumptions->push_back("gdr=" + std::string(change.value) +
                           " changes only which protocols NCCL may choose; the bandwidth lost by staging data in host "
                           "memory is not modeled");
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<NcclCommunicator> ApplyChange(NcclCommunicator c, const std::vector<std::string>& changes,
                                     std::vector<std::string>* assumptions) {
  ClusterHardware hardware = LikelyHardware(c);
  bool search = false;
  for (const std::string& text : changes) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return Error{"--what-if takes changes like nics=8x400G, not '" + text + "'",
                   "keys: nics gdr nodes version channels algo proto cpu gpus pat"};
    const Change change{std::string_view(text).substr(0, equals), std::string_view(text).substr(equals + 1)};
    std::string_view value = change.value;
    int number = 0;
    if (change.key == "version") {
      const NcclRelease release = ParseNcclRelease(value);
      if (!HasCostModel(release)) return Refuse(change, "a release from 2.12 to 2.30, for example version=2.24");
      c.release = release;
    } else if (change.key == "nodes") {
      if (!TakeNumber(value, &number) || !value.empty() || number < 1 || number > 1 << 20)
        return Refuse(change, "a number of nodes");
      const int local = std::max(1, c.LocalRanks());
      search |= (number > 1) != (c.nodes > 1);
      hardware.nodes = number;
      c.nodes = number;
      c.ranks = number * local;
    } else if (change.key == "nics") {
      auto nics = ParseNics(value);
      if (!nics) return nics.error();
      hardware.nics_per_node = nics->first;
      hardware.nic_gbit = nics->second;
      search = true;
    } else if (change.key == "gpus") {
      auto gpus = ParseGpus(value);
      if (!gpus) return gpus.error();
      hardware.gpus_per_node = gpus->first;
      hardware.gpu = *gpus->second;
      search = true;
    } else if (change.key == "channels") {
      if (!TakeNumber(value, &number) || !value.empty() || number < 1 || number > 1024)
        return Refuse(change, "a number of channels, as NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS set them");
      c.channels = number;
      assumptions->push_back(
          "NCCL's model counts the channels of its search; more or fewer of them change its "
          "choice little and the real speed more");
    } else if (!ApplySetting(change, c, assumptions)) {
      return Refuse(change, "keys: nics gdr nodes version channels algo proto cpu gpus pat");
    }
  }
  if (!search) return c;
  hardware.cpu = c.cpu;
  NcclCommunicator fresh = SearchGraphs(c.release, hardware, assumptions);
  fresh.settings = c.settings;
  const bool gdr_named =
      std::any_of(changes.begin(), changes.end(), [](const std::string& text) { return text.starts_with("gdr="); });
  if (gdr_named) SetPaths(fresh, c.ring.type_inter < NcclPath::phb);
  return fresh;
}

}  // namespace tacet
