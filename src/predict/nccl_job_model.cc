// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_job_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text_scan.h"
#include "predict/nccl_log_hardware.h"

namespace tacet {
namespace {

// The variables that change the model, by process.
std::map<uint32_t, NcclSettings> SettingsByProcess(const Incident& incident) {
  std::map<uint32_t, NcclSettings> all;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::environment || event.speaker == kNobody) continue;
    const auto& setting = event.As<EnvironmentSetting>();
    if (!setting.name.starts_with("NCCL_")) continue;
    NcclSettings& set = all[event.speaker];
    const std::string_view name = setting.name, value = Trim(setting.value);
    const auto number = [&](int* out) {
      std::string_view rest = value;
      TakeNumber(rest, out);
    };
    if (name == "NCCL_ALGO") set.algo = value;
    if (name == "NCCL_PROTO") set.proto = value;
    if (name == "NCCL_PAT_ENABLE") number(&set.pat_enable);
    if (name == "NCCL_NET_OVERHEAD") number(&set.net_overhead_ns);
    if (name == "NCCL_NTHREADS") number(&set.nthreads);
    if (name == "NCCL_LL128_NTHREADS") number(&set.ll128_nthreads);
    if (name == "NCCL_LL128_C2C") set.ll128_c2c = value != "0";
    if (name == "NCCL_THREAD_THRESHOLDS") set.thread_thresholds = value;
  }
  return all;
}

using Setups = std::vector<const NcclSetup*>;

const NcclSetup* TellerOf(const Setups& setups) {
  const auto better = [](const NcclSetup* a, const NcclSetup* b) {
    const auto worth = [](const NcclSetup* s) {
      return std::tuple(!s->tables.empty(), !s->choices.empty(), !s->graphs.empty(), s->nodes > 0,
                        -s->group_rank.value);
    };
    return worth(a) < worth(b);
  };
  return *std::max_element(setups.begin(), setups.end(), better);
}

NcclRelease ReleaseOf(const Incident& incident, const Setups& setups) {
  for (const NcclSetup* setup : setups)
    if (const NcclRelease release = ParseNcclRelease(incident.strings.Get(setup->version)); release.known())
      return release;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::nccl_version)
      if (const NcclRelease release = ParseNcclRelease(event.As<Version>().number); release.known()) return release;
  return {};
}

// nNodes is printed since 2.20; before, hosts are counted, or the GPUs of a node.
int NodesOf(const Incident& incident, const Setups& setups, int ranks, std::vector<std::string>* assumptions) {
  for (const NcclSetup* setup : setups)
    if (setup->nodes > 0) return setup->nodes;
  std::set<std::string_view> hosts;
  for (const NcclSetup* setup : setups) hosts.insert(incident.strings.Get(setup->host));
  if (setups.size() >= static_cast<size_t>(ranks)) return static_cast<int>(hosts.size());
  for (const NcclSetup* setup : setups) {
    const int local = CountSystemGpus(incident, *setup);
    if (local <= 0 || ranks % local != 0) continue;
    assumptions->push_back("all nodes have " + std::to_string(local) + (local == 1 ? " rank" : " ranks") +
                           ", like the node of the log");
    return ranks / local;
  }
  const int nodes = static_cast<int>(hosts.size());
  assumptions->push_back("the job has " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes") +
                         ": the log does not say (--nodes sets it)");
  return nodes;
}

void FillGraphs(const Setups& setups, NcclCommunicator& c) {
  c.ring = AgreeOnGraph(setups, NcclAlgorithm::ring);
  c.tree = AgreeOnGraph(setups, NcclAlgorithm::tree);
  c.collnet_direct = AgreeOnGraph(setups, NcclAlgorithm::collnet_direct);
  c.collnet_chain = AgreeOnGraph(setups, NcclAlgorithm::collnet_chain);
  c.nvls = AgreeOnGraph(setups, NcclAlgorithm::nvls);
  if (c.ring.channels > 0 && c.tree.channels > 0)
    c.ring.channels = c.tree.channels = std::min(c.ring.channels, c.tree.channels);
  c.collnet = c.collnet_direct.channels > 0 || c.collnet_chain.channels > 0;
  c.collnet_heads = c.collnet_direct.channels;
  for (const NcclSetup* setup : setups) {
    c.channels = std::max(c.channels, setup->coll_channels);
    c.nvls_channels = std::max(c.nvls_channels, setup->nvls_channels);
    c.max_local_ranks = std::max(c.max_local_ranks, setup->local_ranks);
    c.mnnvl = c.mnnvl || setup->mnnvl > 0;
  }
  const bool told =
      std::any_of(setups.begin(), setups.end(), [](const auto* setup) { return setup->nvls_channels >= 0; });
  if (!told && c.nvls.channels > 0) c.nvls_channels = 16;
  c.multicast = c.nvls.channels > 0 && c.nvls_channels > 0;
}

NcclCostTable PrintedCosts(const NcclCommunicator& c, const NcclTuningTable& printed) {
  NcclCostTable costs = ComputeNcclCosts(c);  // for threads and thresholds
  for (int f = 0; f < kNcclTuned; ++f)
    for (int a = 0; a < kNcclAlgorithms; ++a)
      for (int p = 0; p < kNcclProtocols; ++p) {
        NcclCell& cell = costs.cells[f][a][p];
        cell = {};
        if (!printed.has[f][a]) continue;
        const NcclTuningCell& told = printed.cells[f][a][p];
        cell.latency_us = static_cast<float>(told.latency_us);
        cell.bandwidth = cell.bandwidth_free = static_cast<float>(told.bandwidth_gbps);
        cell.obstacle = told.bandwidth_gbps > 0 ? NcclObstacle::none
                        : told.latency_us > 0   ? NcclObstacle::printed_zero
                                                : NcclObstacle::not_made;
      }
  return costs;
}

// Of the values that the log leaves open, those that reproduce most of the printed table.
void FitToTable(const NcclTuningTable& table, bool cpu_is_open, const std::vector<int>& capabilities,
                NcclGroupModel& model) {
  size_t fewest = SIZE_MAX;
  NcclCommunicator best = model.communicator;
  for (const int capability : capabilities)
    for (const CpuVendor cpu : {CpuVendor::intel, CpuVendor::amd})
      for (const bool gathers : {false, true}) {
        if (!cpu_is_open && cpu != model.communicator.cpu && !(cpu == CpuVendor::intel)) continue;
        if (gathers && !model.communicator.collnet) continue;
        NcclGroupModel tried = model;
        tried.communicator.min_capability = tried.communicator.max_capability = capability;
        if (cpu_is_open) tried.communicator.cpu = cpu;
        tried.communicator.collnet_gathers = gathers;
        tried.costs = ComputeNcclCosts(tried.communicator);
        const size_t differences = CheckTable(tried, table).differences.size();
        if (differences >= fewest) continue;
        fewest = differences;
        best = tried.communicator;
      }
  model.communicator = best;
}

void SettleHardware(const Incident& incident, const Setups& setups, const NcclModelHints& hints,
                    NcclGroupModel& model) {
  NcclCommunicator& c = model.communicator;
  const LoggedHardware seen = ReadLoggedHardware(incident, setups);
  c.nvswitch = seen.nvswitch;
  c.link_gbps = seen.nvlink_gbps;
  c.cpu_arch = seen.arch == CpuArch::unknown ? CpuArch::x86 : seen.arch;
  c.cpu = hints.cpu.value_or(seen.vendor);
  const bool cpu_is_open = c.cpu == CpuVendor::unknown;
  if (cpu_is_open) c.cpu = CpuVendor::intel;
  std::vector<int> capabilities = seen.capabilities;
  if (c.multicast) std::erase_if(capabilities, [](int one) { return one < 90; });
  if (hints.capability) capabilities = {*hints.capability};
  if (capabilities.empty()) capabilities = {90};
  c.min_capability = c.max_capability = capabilities.front();
  const bool fits = model.has_graphs && HasCostModel(c.release) && !model.told_by->tables.empty();
  if (fits && (cpu_is_open || capabilities.size() > 1 || c.collnet))
    FitToTable(model.told_by->tables.front(), cpu_is_open, capabilities, model);
  if (capabilities.size() > 1)
    model.assumptions.push_back(
        "compute capability " + std::to_string(c.min_capability / 10) + "." + std::to_string(c.min_capability % 10) +
        (fits ? ", the first that agrees with the printed table" : ": the log does not say") + " (--gpus sets it)");
  if (cpu_is_open && c.nodes > 1)
    model.assumptions.push_back(std::string(c.cpu == CpuVendor::amd ? "AMD" : "Intel") + " processors" +
                                (fits ? ", by the printed table" : ": the log does not say (--cpu sets it)"));
}

// A graph file names no ranks: the GPUs of a channel are those of a node, and networks in it tell of other nodes.
void SettleGraphFile(const Incident& incident, const NcclModelHints& hints, NcclGroupModel& model) {
  NcclCommunicator& c = model.communicator;
  const NcclGraphSearch* ring = model.told_by->GraphOf(NcclAlgorithm::ring);
  int gpus = 0;
  bool networks = false;
  if (ring && !ring->rows.empty()) {
    const std::string_view row = incident.strings.Get(ring->rows.front());
    for (size_t at = row.find("GPU/"); at != std::string_view::npos; at = row.find("GPU/", at + 1)) ++gpus;
    networks = Contains(row, "NET/");
  }
  gpus = std::max(1, gpus);
  c.nodes = hints.nodes.value_or(networks ? 2 : 1);
  c.ranks = c.nodes * gpus;
  c.max_local_ranks = gpus;
  model.label = "graph file";
  if (networks && !hints.nodes) model.assumptions.push_back("2 nodes: a graph file does not say (--nodes sets it)");
  if (hints.release) return;
  c.release = ParseNcclRelease("2.30.7");
  model.assumptions.push_back("NCCL 2.30.7: a graph file does not say (--nccl sets it)");
}

bool IsGraphFile(const NcclSetup& setup) {
  return setup.ranks < 0 && setup.group == GroupIndex::none && !setup.graphs.empty();
}

NcclGroupModel ModelOf(const Incident& incident, const Setups& setups, const std::map<uint32_t, NcclSettings>& settings,
                       const NcclModelHints& hints) {
  NcclGroupModel model;
  model.told_by = TellerOf(setups);
  NcclCommunicator& c = model.communicator;
  const GroupIndex group = model.told_by->group;
  model.label = group == GroupIndex::none ? "communicator" : incident.groups[static_cast<uint32_t>(group)].Label();
  c.release = hints.release.value_or(ReleaseOf(incident, setups));
  c.ranks = model.told_by->ranks;
  const bool from_file = IsGraphFile(*model.told_by);
  if (from_file)
    SettleGraphFile(incident, hints, model);
  else
    c.nodes = hints.nodes ? *hints.nodes : NodesOf(incident, setups, c.ranks, &model.assumptions);
  c.nodes = std::clamp(c.nodes, 1, std::max(1, c.ranks));
  FillGraphs(setups, c);
  for (const NcclSetup* setup : setups) model.ranks_seen += setup->graphs.empty() ? 0 : 1;
  model.has_graphs = c.ring.channels > 0;
  if (c.channels <= 0 && model.has_graphs) {
    c.channels = 2 * c.ring.channels;
    model.assumptions.push_back(std::to_string(c.channels) + " channels, twice those of the search: the " +
                                (from_file ? "graph file" : "log") + " does not say");
  }
  if (const auto found = settings.find(model.told_by->speaker); found != settings.end()) c.settings = found->second;
  if (!from_file && model.has_graphs && model.ranks_seen < static_cast<size_t>(c.ranks))
    model.assumptions.push_back("the ranks whose logs are missing found no worse paths than the " +
                                (model.ranks_seen == 1 ? "one" : std::to_string(model.ranks_seen)) +
                                (model.ranks_seen == 1 ? " that was seen" : " that were seen"));
  SettleHardware(incident, setups, hints, model);
  model.is_modelled = model.has_graphs && HasCostModel(c.release);
  model.costs = model.is_modelled                ? ComputeNcclCosts(c)
                : !model.told_by->tables.empty() ? PrintedCosts(c, model.told_by->tables.front())
                                                 : NcclCostTable();
  return model;
}

}  // namespace

NcclModelGraph AgreeOnGraph(const Setups& setups, NcclAlgorithm algorithm) {
  NcclModelGraph agreed;
  bool first = true;
  for (const NcclSetup* setup : setups) {
    const NcclGraphSearch* graph = setup->GraphOf(algorithm);
    if (!graph) continue;
    const auto intra = static_cast<float>(graph->bw_intra), inter = static_cast<float>(graph->bw_inter);
    if (first) {
      agreed = {graph->channels,
                intra,
                inter,
                graph->type_intra,
                graph->type_inter,
                graph->pattern,
                graph->same_channels != 0,
                static_cast<float>(graph->latency_inter_us)};
    } else {
      agreed.channels = std::min(agreed.channels, graph->channels);
      agreed.bw_intra = std::min(agreed.bw_intra, intra);
      agreed.bw_inter = std::min(agreed.bw_inter, inter);
      agreed.type_intra = std::max(agreed.type_intra, graph->type_intra);
      agreed.type_inter = std::max(agreed.type_inter, graph->type_inter);
      agreed.same_channels = agreed.same_channels && graph->same_channels != 0;
      agreed.pattern = std::max(agreed.pattern, graph->pattern);
    }
    first = false;
  }
  return agreed;
}

std::vector<NcclGroupModel> ModelCommunicators(const Incident& incident, const NcclModelHints& hints) {
  std::vector<Setups> groups;
  std::map<GroupIndex, size_t> place;
  for (const NcclSetup& setup : incident.nccl_setups) {
    if (setup.ranks <= 1 && !IsGraphFile(setup)) continue;
    if (setup.group != GroupIndex::none) {
      const auto [found, is_new] = place.try_emplace(setup.group, groups.size());
      if (!is_new) {
        groups[found->second].push_back(&setup);
        continue;
      }
    }
    groups.push_back({&setup});
  }
  const auto settings = SettingsByProcess(incident);
  std::vector<NcclGroupModel> models;
  models.reserve(groups.size());
  for (const Setups& setups : groups) models.push_back(ModelOf(incident, setups, settings, hints));
  return models;
}

}  // namespace tacet
