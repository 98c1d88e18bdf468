// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "rules/words/topology_words.h"

namespace tacet {
namespace {

// NCCL does not use NVLS for a pair of GPUs, and small communicators gain nothing from it.
constexpr int32_t kFewestLocalRanks = 4;

RuleAnswer JudgeNvls(const Case& facts) {
  RuleAnswer answer;
  const TopologyView& view = facts.analyses.topology;
  const TopologyChecks& checks = facts.analyses.topology_checks;
  for (const std::string_view name : {"NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_CUMEM_ENABLE", "NCCL_P2P_DISABLE"})
    if (checks.Setting(name)) return answer;
  for (const CommView& comm : view.comms) {
    const RankChannels* available = nullptr;
    uint32_t record = kNoIndex;
    bool connected = false, in_setup = !comm.records.empty(), somewhere_not = false;
    for (const uint32_t index : comm.records) {
      const RankChannels& one = facts.incident.rank_channels[index];
      connected |= one.nvls_connected;
      in_setup &= one.connected_in_setup;
      somewhere_not |= one.nvls_multicast == 0;
      if (one.nvls_multicast == 1 && !available) available = &one, record = index;
    }
    int32_t local_ranks = -1;
    for (const uint32_t setup : comm.setups)
      local_ranks = std::max(local_ranks, facts.incident.nccl_setups[setup].local_ranks);
    if (!available || somewhere_not || local_ranks < kFewestLocalRanks || comm.nvls_channels < 0) continue;
    constexpr int kFirstOverNodes = 18;
    const int minor = MinorReleaseOf(facts.incident, comm);
    if (comm.nodes > 1 && minor >= 0 && minor < kFirstOverNodes) continue;
    const bool no_channels = comm.nvls_channels == 0;
    if (!no_channels && (connected || !in_setup)) continue;
    Finding finding = DegradedFinding("nvls-not-connected");
    finding.group = comm.group;
    finding.headline = no_channels ? "NVLink SHARP is available on these GPUs, but NCCL set up no NVLS channels"
                                   : "NVLS channels were planned, but never connected";
    finding.headline += ": all_reduce inside a node loses up to a third of its bandwidth";
    finding.evidence.push_back(CiteRecord(facts, record, available->multicast_line,
                                          "NVLS multicast support is available", "the GPUs and the driver support it"));
    if (!no_channels)
      finding.evidence.push_back(CiteRecord(facts, record, available->connected_line, "Connected all rings",
                                            "rings are connected during setup, and no line says the same of NVLS"));
    answer.findings.push_back(std::move(finding));
    break;
  }
  return answer;
}

}  // namespace

extern const Rule kNvlsNotConnectedRule;
const Rule kNvlsNotConnectedRule = {
    "nvls-not-connected",
    "NVLink SHARP is available but not used",
    "NCCL logs (INIT, NVLS) of the ranks of a node",
    "NVSwitches of Hopper and later reduce data in the switch (NVLS). The GPUs report multicast support, but the "
    "communicator has no NVLS channels, or does not connect them.",
    "Communicators with fewer than 4 ranks per node do not use it. Since 2.22 NCCL connects an algorithm when it is "
    "first used: a missing line is then no fault. NCCL_NVLS_ENABLE=0 is reported as environment-cripples.",
    {"Check the fabric manager (`systemctl status nvidia-fabricmanager`, the same version as the driver) and "
     "`nvidia-smi "
     "-q | grep -A2 Fabric`: the state must be Completed.",
     "All GPUs of the NVSwitch partition must be healthy; a GPU in use by another container may hold the multicast "
     "resources.",
     "Look for NVLS warnings with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS."},
    {"Run all_reduce_perf on each node after driver updates: with NVLS 8 H100 GPUs reach about 480 GB/s, without it "
     "about 370."},
    JudgeNvls};

}  // namespace tacet
