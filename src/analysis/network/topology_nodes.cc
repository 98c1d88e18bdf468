// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "analysis/network/shared_gpu.h"
#include "analysis/network/topology_view.h"
#include "base/text_scan.h"

namespace tacet {

bool IsNear(NcclPath path) {
  return path == NcclPath::loc || path == NcclPath::pix || path == NcclPath::pxb || path == NcclPath::p2c ||
         path == NcclPath::c2c;
}

const NicView* NodeView::Nic(int32_t index) const {
  for (const NicView& nic : nics)
    if (nic.index == index) return &nic;
  return nullptr;
}

const GpuView* NodeView::GpuOf(Rank rank) const {
  for (const GpuView& gpu : gpus)
    if (gpu.rank == rank && rank.known()) return &gpu;
  return nullptr;
}

uint32_t TopologyView::NodeOfProcess(uint32_t process) const {
  const auto found = node_of_process.find(process);
  return found == node_of_process.end() ? kNoIndex : found->second;
}

uint32_t TopologyView::NodeOf(const CommView& comm, int32_t group_rank) const {
  const auto found = comm.process_of.find(group_rank);
  return found == comm.process_of.end() ? kNoIndex : NodeOfProcess(found->second);
}

namespace {

// Two processes of one host that are alone on their nodes in one communicator are two nodes to NCCL (NCCL_HOSTID).
std::set<uint32_t> AloneOnTheirNode(const Incident& incident) {
  std::map<std::pair<GroupIndex, std::string>, std::vector<uint32_t>> alone;
  for (const NcclSetup& setup : incident.nccl_setups)
    if (setup.local_ranks == 1 && setup.speaker < incident.processes.size())
      alone[{setup.group, incident.processes[setup.speaker].host}].push_back(setup.speaker);
  std::set<uint32_t> split;
  for (const auto& [key, processes] : alone)
    if (processes.size() > 1) split.insert(processes.begin(), processes.end());
  return split;
}

void NameNodes(const Incident& incident, TopologyView& view) {
  std::set<uint32_t> speakers;
  for (const NcclSetup& setup : incident.nccl_setups) speakers.insert(setup.speaker);
  for (const RankChannels& record : incident.rank_channels) speakers.insert(record.speaker);
  const std::set<uint32_t> split = AloneOnTheirNode(incident);
  const auto ids = HostIdsOf(incident);
  std::map<std::string, uint32_t> node_of_key;
  // Nodes in the order of their first rank.
  std::vector<uint32_t> ordered;
  for (const uint32_t process : speakers)
    if (process < incident.processes.size()) ordered.push_back(process);
  const auto place = [&](uint32_t process) {
    const Rank rank = incident.processes[process].rank;
    return rank.known() ? rank.value : INT32_MAX;
  };
  std::stable_sort(ordered.begin(), ordered.end(), [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
  for (const uint32_t process : ordered) {
    const Process& one = incident.processes[process];
    std::string key = one.host, name = one.host.empty() ? "an unnamed host" : one.host;
    const auto id = ids.find(process);
    if (id != ids.end()) {
      key += "/" + id->second;
      name += "/" + id->second;
    } else if (split.contains(process)) {
      key += "#" + std::to_string(process);
      if (one.rank.known()) name += "#" + std::to_string(one.rank.value);
    }
    const auto [found, is_new] = node_of_key.try_emplace(key, static_cast<uint32_t>(view.nodes.size()));
    if (is_new) view.nodes.emplace_back().name = name;
    view.nodes[found->second].processes.push_back(process);
    if (one.rank.known()) view.nodes[found->second].ranks.push_back(one.rank);
    view.node_of_process[process] = found->second;
  }
  for (NodeView& node : view.nodes) std::sort(node.ranks.begin(), node.ranks.end());
}

size_t CountOf(const Hardware& hardware, DeviceKind kind) {
  return static_cast<size_t>(std::count_if(hardware.devices.begin(), hardware.devices.end(),
                                           [&](const HardwareDevice& device) { return device.kind == kind; }));
}

// Of several dumps of one host the fullest: those of small communicators show only their own GPUs.
void ChooseHardware(const Incident& incident, TopologyView& view) {
  for (const Hardware& hardware : incident.hardware) {
    const uint32_t node = view.NodeOfProcess(hardware.speaker);
    if (node == kNoIndex) continue;
    const Hardware*& best = view.nodes[node].hardware;
    if (!best || CountOf(hardware, DeviceKind::gpu) > CountOf(*best, DeviceKind::gpu)) best = &hardware;
  }
  for (const NetDevices& devices : incident.net_devices) {
    const uint32_t node = view.NodeOfProcess(devices.speaker);
    if (node == kNoIndex) continue;
    const NetDevices*& best = view.nodes[node].devices;
    if (!best || devices.devices.size() > best->devices.size()) best = &devices;
  }
}

// A topology file says whose ranks it holds, not on which host. It goes to the node of these ranks where that printed
// no tree itself; where there are no logs at all, it is a node of its own, named after the file.
void PlaceLoneHardware(const Incident& incident, TopologyView& view) {
  const bool logs = !view.nodes.empty();
  for (const Hardware& hardware : incident.hardware) {
    if (hardware.speaker != kNobody) continue;
    std::vector<Rank> ranks;
    for (const HardwareDevice& device : hardware.devices)
      if (device.kind == DeviceKind::gpu && device.parent >= 0) ranks.push_back(Rank{device.number});
    if (!logs) {
      NodeView& node = view.nodes.emplace_back();
      node.name = incident.PathOf(hardware.source.file);
      node.of_file = true;
      node.hardware = &hardware;
      continue;
    }
    for (NodeView& node : view.nodes) {
      const bool same = !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
        return std::binary_search(node.ranks.begin(), node.ranks.end(), rank);
      });
      if (same && !node.hardware) node.hardware = &hardware;
    }
  }
}

uint64_t BusOf(const Incident& incident, const NcclSetup& setup) {
  std::string_view text = incident.strings.Get(setup.bus_id);
  uint64_t bus = 0;
  TakeHex(text, &bus);
  return bus;
}

GpuView& GpuAt(NodeView& node, uint64_t bus) {
  for (GpuView& gpu : node.gpus)
    if (gpu.bus == bus) return gpu;
  node.gpus.emplace_back().bus = bus;
  return node.gpus.back();
}

// Ranks of their GPUs from the init lines; speeds and paths from the dump.
void FillGpus(const Incident& incident, TopologyView& view) {
  for (NodeView& node : view.nodes) {
    if (!node.hardware) continue;
    for (const HardwareDevice& device : node.hardware->devices) {
      node.has_nvswitch |= device.kind == DeviceKind::nvswitch;
      if (device.kind != DeviceKind::gpu) continue;
      GpuView& gpu = GpuAt(node, device.id);
      gpu.nvlink_gbs = device.nvlink_gbs;
      gpu.pci_gbs = device.link_gbs;
      gpu.name = device.name;
      // Only a topology file tells ranks itself; its numbers are those of the communicator that wrote it.
      if (node.processes.empty() && device.parent >= 0) gpu.rank = Rank{device.number};
    }
    if (!node.processes.empty()) continue;
    for (const GpuView& gpu : node.gpus)
      if (gpu.rank.known()) node.ranks.push_back(gpu.rank);
    std::sort(node.ranks.begin(), node.ranks.end());
  }
  for (const NcclSetup& setup : incident.nccl_setups) {
    const uint32_t index = view.NodeOfProcess(setup.speaker);
    if (index == kNoIndex) continue;
    NodeView& node = view.nodes[index];
    node.local_ranks = std::max(node.local_ranks, setup.local_ranks);
    const uint64_t bus = BusOf(incident, setup);
    if (bus == 0) continue;
    GpuView& gpu = GpuAt(node, bus);
    if (setup.rank.known()) gpu.rank = setup.rank;
    gpu.device = setup.device;
  }
  for (NodeView& node : view.nodes) {
    std::sort(node.gpus.begin(), node.gpus.end(), [](const GpuView& a, const GpuView& b) { return a.bus < b.bus; });
    node.has_nvlink = node.has_nvswitch || std::any_of(node.gpus.begin(), node.gpus.end(),
                                                       [](const GpuView& gpu) { return gpu.nvlink_gbs > 0; });
  }
}

// Where no list of devices is printed (plugins), the name of the network is.
void NameNetworks(const Incident& incident, TopologyView& view) {
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::network) continue;
    const uint32_t node = view.NodeOfProcess(event.speaker);
    if (node != kNoIndex && view.nodes[node].net.empty()) view.nodes[node].net = event.As<NetworkName>().name;
  }
}

void FillNics(NodeView& node) {
  if (node.devices) {
    node.net = node.devices->net;
    for (const NetDevice& device : node.devices->devices)
      node.nics.push_back({device.index, device.name, device.link, 0, 0, device.gdr, NcclPath::unknown, 0});
  }
  if (!node.hardware) return;
  const Hardware& hardware = *node.hardware;
  for (const HardwareDevice& device : hardware.devices) {
    if (device.kind != DeviceKind::net) continue;
    auto nic = std::find_if(node.nics.begin(), node.nics.end(),
                            [&](const NicView& one) { return one.index == device.number; });
    if (nic == node.nics.end()) {
      node.nics.push_back({device.number, device.name, "", 0, 0, device.gdr, NcclPath::unknown, 0});
      nic = node.nics.end() - 1;
    }
    nic->speed_gbs = device.speed_gbs > 0 ? device.speed_gbs : device.link_gbs;
    // A damaged file may name parents in a circle, or some that are not there.
    size_t left = hardware.devices.size();
    for (int32_t up = device.parent; up >= 0 && static_cast<size_t>(up) < hardware.devices.size() && left-- > 0;
         up = hardware.devices[static_cast<size_t>(up)].parent) {
      const HardwareDevice& above = hardware.devices[static_cast<size_t>(up)];
      if (above.kind == DeviceKind::cpu) break;
      if (above.link_gbs > 0 && (nic->pci_gbs == 0 || above.link_gbs < nic->pci_gbs)) nic->pci_gbs = above.link_gbs;
    }
  }
}

void FillPaths(NodeView& node) {
  if (!node.hardware) return;
  const Hardware& hardware = *node.hardware;
  for (const HardwarePath& path : hardware.paths) {
    if (hardware.devices[path.from].kind != DeviceKind::gpu || hardware.devices[path.to].kind != DeviceKind::net)
      continue;
    node.knows_paths = true;
    GpuView& gpu = GpuAt(node, hardware.devices[path.from].id);
    const int32_t number = hardware.devices[path.to].number;
    for (uint32_t i = 0; i < node.nics.size(); ++i) {
      NicView& nic = node.nics[i];
      if (nic.index != number) continue;
      if (nic.nearest == NcclPath::unknown || path.type < nic.nearest) nic.nearest = path.type;
      if (gpu.nearest == NcclPath::unknown || path.type < gpu.nearest) {
        gpu.nearest = path.type;
        gpu.nearest_nics.clear();
      }
      if (path.type == gpu.nearest) gpu.nearest_nics.push_back(i);
    }
  }
}

}  // namespace

void FindNodes(const Incident& incident, TopologyView& view) {
  NameNodes(incident, view);
  ChooseHardware(incident, view);
  PlaceLoneHardware(incident, view);
  FillGpus(incident, view);
  for (NodeView& node : view.nodes) {
    FillNics(node);
    FillPaths(node);
  }
  NameNetworks(incident, view);
}

TopologyView ReadTopology(const Incident& incident) {
  TopologyView view;
  if (incident.nccl_setups.empty() && incident.rank_channels.empty() && incident.hardware.empty()) return view;
  FindNodes(incident, view);
  FindComms(incident, view);
  for (CommView& comm : view.comms)
    for (const uint32_t index : comm.setups)
      comm.setups_of_node[view.NodeOfProcess(incident.nccl_setups[index].speaker)].push_back(index);
  return view;
}

}  // namespace tacet
