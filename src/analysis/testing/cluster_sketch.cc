// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/cluster_sketch.h"

#include <cstdio>
#include <utility>

namespace tacet {
namespace {

NcclGraphSearch GraphLike(NcclAlgorithm algorithm, int32_t pattern, int32_t channels) {
  NcclGraphSearch graph;
  graph.algorithm = algorithm;
  graph.pattern = pattern;
  graph.channels = channels;
  graph.bw_intra = graph.bw_inter = 48;
  graph.type_intra = NcclPath::nvl;
  graph.type_inter = NcclPath::pxb;
  return graph;
}

Hardware HardwareOf(const ClusterPlan& plan, uint32_t process) {
  Hardware hardware;
  hardware.speaker = process;
  const auto add = [&](DeviceKind kind, uint64_t id, int32_t parent, double gbs) {
    HardwareDevice device;
    device.kind = kind;
    device.id = id;
    device.parent = parent;
    device.link_gbs = gbs;
    hardware.devices.push_back(device);
    return static_cast<int32_t>(hardware.devices.size() - 1);
  };
  const int32_t cpu = add(DeviceKind::cpu, 0, -1, 0);
  add(DeviceKind::nvswitch, 0, -1, 0);
  for (int32_t g = 0; g < plan.gpus; ++g) {
    const int32_t bridge = add(DeviceKind::pci, 0x900000 + static_cast<uint64_t>(g), cpu, 48);
    const int32_t gpu = add(DeviceKind::gpu, 0x1000 * (1 + static_cast<uint64_t>(g)), bridge, 48);
    hardware.devices[static_cast<size_t>(gpu)].nvlink_gbs = 370.8;
    const int32_t nic = add(DeviceKind::nic, 0xa00000 + static_cast<uint64_t>(g), bridge, 48);
    const int32_t net = add(DeviceKind::net, static_cast<uint64_t>(g), nic, 50);
    hardware.devices[static_cast<size_t>(net)].number = g;
    hardware.devices[static_cast<size_t>(net)].speed_gbs = 50;
  }
  DerivePaths(hardware);
  return hardware;
}

}  // namespace

uint32_t WayOf(Incident& incident, const std::string& via) {
  for (uint32_t i = 0; i < incident.transports.size(); ++i)
    if (incident.transports[i].text == via) return i;
  incident.transports.push_back(ParseTransport(via));
  return static_cast<uint32_t>(incident.transports.size() - 1);
}

ChannelUse* UseOf(Incident& incident, int32_t from, int32_t to, ChannelUse::Direction direction) {
  const int32_t own = direction == ChannelUse::Direction::receive ? to : from;
  for (ChannelUse& use : incident.rank_channels[static_cast<size_t>(own)].uses)
    if (use.from == from && use.to == to && use.direction == direction) return &use;
  return nullptr;
}

void SetVariable(Incident& incident, const std::string& name, const std::string& value) {
  Event event;
  event.kind = EventKind::environment;
  event.Make<EnvironmentSetting>() = {name, value};
  event.speaker = 0;
  event.rank = Rank{0};
  incident.events.push_back(event);
}

Incident CopyOf(const Incident& sketch) {
  Incident copy;
  for (uint32_t i = 0; i < sketch.strings.size(); ++i)
    copy.strings.Intern(sketch.strings.Get(static_cast<StringId>(i)));
  copy.world_size = sketch.world_size;
  copy.files = sketch.files;
  copy.processes = sketch.processes;
  copy.process_of = sketch.process_of;
  copy.groups = sketch.groups;
  copy.events = sketch.events;
  copy.nccl_setups = sketch.nccl_setups;
  copy.transports = sketch.transports;
  copy.rank_channels = sketch.rank_channels;
  copy.net_devices = sketch.net_devices;
  copy.hardware = sketch.hardware;
  return copy;
}

Incident SketchCluster(const ClusterPlan& plan) {
  Incident incident;
  const int32_t world = plan.nodes * plan.gpus, channels = 2 * plan.gpus;
  incident.world_size = world;
  Group group;
  group.name = "0";
  group.comm_id = 9;
  group.size = world;
  for (int32_t r = 0; r < world; ++r) group.members.push_back(Rank{r});
  incident.groups.push_back(group);
  const StringId version = incident.strings.Intern("2.27.7+cuda12.9");
  for (int32_t r = 0; r < world; ++r) {
    const auto index = static_cast<uint32_t>(r);
    const int32_t node = r / plan.gpus, gpu = r % plan.gpus;
    incident.files.push_back({"nccl_" + std::to_string(r) + ".log", "nccl_log", Rank{r}, {}, kNoTime, false});
    incident.processes.push_back(
        {Rank{r}, Certainty::stated, "node" + std::to_string(node), 100 + r, gpu, {FileId{index}}});
    incident.process_of[Rank{r}] = index;

    NcclSetup setup;
    setup.speaker = index;
    setup.rank = Rank{r};
    setup.group = GroupIndex{0};
    setup.group_rank = GroupRank{r};
    setup.version = version;
    setup.ranks = world;
    setup.nodes = plan.nodes;
    setup.local_ranks = plan.gpus;
    setup.local_rank = setup.device = gpu;
    char bus[16];
    std::snprintf(bus, sizeof bus, "%x", 0x1000 * (1 + gpu));
    setup.bus_id = incident.strings.Intern(bus);
    setup.coll_channels = channels;
    setup.nvls_channels = 16;
    setup.graphs = {GraphLike(NcclAlgorithm::ring, kPatternRing, plan.gpus),
                    GraphLike(NcclAlgorithm::tree, kPatternBalancedTree, plan.gpus)};
    if (r == 0) {
      NcclTuningTable table;
      const auto op = static_cast<size_t>(NcclTunedIndex(OpKind::all_reduce));
      const auto ring = static_cast<size_t>(NcclAlgorithm::ring);
      table.has[op][ring] = true;
      for (NcclTuningCell& cell : table.cells[op][ring]) cell.bandwidth_gbps = 100;
      setup.tables.push_back(table);
    }
    incident.nccl_setups.push_back(std::move(setup));
    incident.hardware.push_back(HardwareOf(plan, index));
    NetDevices devices;
    devices.speaker = index;
    devices.net = "IB";
    for (int32_t n = 0; n < plan.gpus; ++n) devices.devices.push_back({n, "mlx5_" + std::to_string(n), "IB", 1});
    incident.net_devices.push_back(std::move(devices));

    RankChannels record;
    record.speaker = index;
    record.rank = Rank{r};
    record.group = GroupIndex{0};
    record.group_rank = GroupRank{r};
    record.ranks = world;
    record.file = FileId{index};
    record.nvls_multicast = 1;
    record.nvls_connected = record.rings_connected = record.connected_in_setup = true;
    for (int32_t c = 0; c < channels; ++c) {
      // Channel c enters a node at GPU c and goes round once.
      const int32_t first = c % plan.gpus, at = (gpu - first + plan.gpus) % plan.gpus;
      const auto rank_at = [&](int32_t n, int32_t place) {
        return (n + plan.nodes) % plan.nodes * plan.gpus + (first + place) % plan.gpus;
      };
      const int32_t next = at + 1 < plan.gpus ? rank_at(node, at + 1) : rank_at(node + 1, 0);
      const int32_t before = at > 0 ? rank_at(node, at - 1) : rank_at(node - 1, plan.gpus - 1);
      record.rings.push_back({c, before, next});
      const std::string nic = "NET/IB/" + std::to_string(first);
      ChannelUse use;
      use.channels.Add(c);
      use.from = r;
      use.to = next;
      const bool leaves = next / plan.gpus != node;
      use.direction = leaves ? ChannelUse::Direction::send : ChannelUse::Direction::both;
      const std::string relay = "(" + std::to_string(node * plan.gpus + first) + ")";
      use.transport = WayOf(incident, leaves ? nic + relay + "/GDRDMA" : "P2P/CUMEM");
      record.uses.push_back(use);
      if (before / plan.gpus != node) {
        use.from = before;
        use.to = r;
        use.direction = ChannelUse::Direction::receive;
        use.transport = WayOf(incident, nic + "/GDRDMA");
        record.uses.push_back(use);
      }
    }
    incident.rank_channels.push_back(std::move(record));
  }
  return incident;
}

}  // namespace tacet
