// SPDX-License-Identifier: Apache-2.0
#include "report/topology_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "analysis/network/shared_gpu.h"
#include "report/make_topology_report.h"

namespace tacet {
namespace {

std::string HexOf(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string_view KindName(TransportKind kind) {
  static constexpr std::string_view kNames[] = {"p2p", "shm", "net", "collnet", "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

std::string PathName(NcclPath path) { return path == NcclPath::unknown ? "" : std::string(Name(path)); }

// The switch below the CPU on which a device hangs, and the CPU itself: (place, cpu), -1 where not told.
std::pair<int, int> PlaceOf(const Hardware& hardware, int32_t device) {
  int place = -1;
  for (int steps = 0; device >= 0 && steps < 32; ++steps) {
    const HardwareDevice& one = hardware.devices[static_cast<size_t>(device)];
    if (one.kind == DeviceKind::cpu) return {place, device};
    if (one.kind == DeviceKind::pci) place = device;
    device = one.parent;
  }
  return {place, -1};
}

int CountOthers(const ChannelSet& channels, ChannelSet known) {
  const int before = known.Count();
  known.Merge(channels);
  return known.Count() - before;
}

class Describer {
 public:
  Describer(const Incident& incident, const Analyses& analyses, const std::vector<int>& guilty)
      : incident_(incident),
        view_(analyses.topology),
        checks_(analyses.topology_checks),
        guilty_(guilty.begin(), guilty.end()) {}

  TopologyReport Run() {
    ListTransports();
    for (const SlowPair& pair : checks_.slow_pairs)
      slow_.emplace(incident_.rank_channels[pair.record].group, pair.from, pair.to);
    for (const CrossedHop& crossed : checks_.crossed)
      slow_.emplace(view_.comms[crossed.comm].group, crossed.hop.from, crossed.hop.to);
    for (const SlowPair& pair : checks_.staged) staged_.insert(incident_.rank_channels[pair.record].speaker);
    for (const NodeView& node : view_.nodes) out_.nodes.push_back(NodeOf(node));
    for (const CommView& comm : view_.comms) out_.comms.push_back(CommOf(comm));
    FillUses();
    MarkSharedGpus();
    FoldNodes();
    return std::move(out_);
  }

 private:
  // By name, so that the order of the lines in the logs does not matter.
  void ListTransports() {
    std::map<std::string, TransportKind> classes;
    for (const Transport& transport : incident_.transports) classes.emplace(transport.Class(), transport.kind);
    for (const auto& [text, kind] : classes) {
      class_of_text_.emplace(text, static_cast<int>(out_.transports.size()));
      out_.transports.push_back({text, std::string(KindName(kind))});
    }
    for (const Transport& transport : incident_.transports)
      class_of_.push_back(class_of_text_.find(transport.Class())->second);
  }

  TopologyNode NodeOf(const NodeView& node) const {
    TopologyNode out;
    out.name = node.name;
    out.of_file = node.of_file;
    out.net = node.net;
    out.nvlink = node.has_nvlink;
    out.nvswitch = node.has_nvswitch;
    for (const Rank rank : node.ranks) out.ranks.push_back(rank.value);
    out.guilty = !out.ranks.empty() &&
                 std::all_of(out.ranks.begin(), out.ranks.end(), [&](int rank) { return guilty_.contains(rank); });
    for (const GpuView& gpu : node.gpus) {
      TopologyGpu one;
      one.rank = gpu.rank.value;
      one.device = gpu.device;
      one.bus = HexOf(gpu.bus);
      one.nvlink_gbs = gpu.nvlink_gbs;
      one.pci_gbs = gpu.pci_gbs;
      one.nearest = PathName(gpu.nearest);
      for (const uint32_t nic : gpu.nearest_nics) one.nics.push_back(node.nics[nic].index);
      if (node.hardware)
        std::tie(one.place, one.cpu) = PlaceOf(*node.hardware, node.hardware->Find(DeviceKind::gpu, gpu.bus));
      out.gpus.push_back(std::move(one));
    }
    for (const NicView& nic : node.nics) {
      TopologyNic one{nic.index,      nic.name, nic.link, PathName(nic.nearest), nic.speed_gbs, nic.gdr,
                      nic.ring_sends, -1,       -1};
      if (node.hardware)
        for (size_t i = 0; i < node.hardware->devices.size(); ++i)
          if (node.hardware->devices[i].kind == DeviceKind::net && node.hardware->devices[i].number == nic.index)
            std::tie(one.place, one.cpu) = PlaceOf(*node.hardware, static_cast<int32_t>(i));
      out.nics.push_back(std::move(one));
    }
    return out;
  }

  int JobRankOf(const CommView& comm, int32_t group_rank) const {
    const auto process = comm.process_of.find(group_rank);
    if (process != comm.process_of.end() && process->second < incident_.processes.size() &&
        incident_.processes[process->second].rank.known())
      return incident_.processes[process->second].rank.value;
    if (comm.group != GroupIndex::none) {
      const Group& group = incident_.groups[static_cast<uint32_t>(comm.group)];
      const auto place = static_cast<size_t>(group_rank);
      if (place < group.members.size() && group.members[place].known()) return group.members[place].value;
    }
    return group_rank;
  }

  bool IsSlow(const CommView& comm, const Hop& hop) const {
    if (slow_.contains({comm.group, hop.from, hop.to})) return true;
    const auto process = comm.process_of.find(hop.from);
    return hop.sends != kNoIndex && incident_.transports[hop.sends].fast_net() &&
           !incident_.transports[hop.sends].gdr && process != comm.process_of.end() &&
           staged_.contains(process->second);
  }

  TopologyRing RingOf(const CommView& comm, const RingView& ring) const {
    TopologyRing out;
    out.channel = ring.channel;
    out.whole = ring.whole;
    for (size_t i = 0; i < ring.hops.size(); ++i) {
      const Hop& hop = ring.hops[i];
      if (ring.whole)
        out.order.push_back(JobRankOf(comm, hop.from));
      else
        out.hops.emplace_back(JobRankOf(comm, hop.from), JobRankOf(comm, hop.to));
      const uint32_t way = hop.sends != kNoIndex ? hop.sends : hop.receives;
      out.ways.push_back(way == kNoIndex ? -1 : class_of_[way]);
      if (IsSlow(comm, hop)) out.slow.push_back(static_cast<int>(i));
    }
    for (const RingView::Break& one : ring.breaks) {
      std::string words = one.kind == RingView::Break::Kind::closes_early
                              ? "it closes after " + std::to_string(one.one) + " ranks"
                              : "rank " + std::to_string(JobRankOf(comm, one.rank)) +
                                    " has two neighbors on one side: " + std::to_string(JobRankOf(comm, one.one)) +
                                    " and " + std::to_string(JobRankOf(comm, one.other));
      if (std::find(out.breaks.begin(), out.breaks.end(), words) == out.breaks.end())
        out.breaks.push_back(std::move(words));
    }
    return out;
  }

  // The log of one end does not place the other; shared memory, one node, and NVLink or PCIe without MNNVL do.
  bool IsInside(const CommView& comm, const ChannelUse& use) const {
    const uint32_t from = view_.NodeOf(comm, use.from), to = view_.NodeOf(comm, use.to);
    if (from != kNoIndex && to != kNoIndex) return from == to;
    const TransportKind kind = incident_.transports[use.transport].kind;
    return comm.nodes == 1 || kind == TransportKind::shm || (kind == TransportKind::p2p && !comm.mnnvl);
  }

  // Both ends log a hop over a network: it counts once, also where the log of one end alone is here.
  void AddWays(const CommView& comm, TopologyComm& out) const {
    std::map<int, TopologyWay> ways;
    std::map<std::pair<int32_t, int32_t>, ChannelSet> counted;
    for (const bool receives : {false, true})
      for (const uint32_t record : comm.records)
        for (const ChannelUse& use : incident_.rank_channels[record].uses) {
          if (use.point_to_point || (use.direction == ChannelUse::Direction::receive) != receives) continue;
          ChannelSet& before = counted[{use.from, use.to}];
          const int channels = receives ? CountOthers(use.channels, before) : use.channels.Count();
          before.Merge(use.channels);
          if (channels == 0) continue;
          TopologyWay& way = ways[class_of_[use.transport]];
          way.transport = class_of_[use.transport];
          (IsInside(comm, use) ? way.inside : way.between) += static_cast<unsigned>(channels);
        }
    for (const auto& [transport, way] : ways) out.ways.push_back(way);
  }

  void AddGraphs(const CommView& comm, TopologyComm& out) const {
    static constexpr NcclAlgorithm kGraphs[] = {NcclAlgorithm::ring, NcclAlgorithm::tree, NcclAlgorithm::nvls,
                                                NcclAlgorithm::collnet_direct};
    for (const NcclAlgorithm algorithm : kGraphs) {
      TopologyGraph graph;
      NcclPath intra = NcclPath::unknown, inter = NcclPath::unknown;
      bool any = false;
      for (const uint32_t index : comm.setups) {
        const NcclGraphSearch* own = incident_.nccl_setups[index].GraphOf(algorithm);
        if (!own) continue;
        graph.channels = any ? std::min(graph.channels, own->channels) : own->channels;
        graph.intra_gbs = any ? std::min(graph.intra_gbs, own->bw_intra) : own->bw_intra;
        graph.inter_gbs = any ? std::min(graph.inter_gbs, own->bw_inter) : own->bw_inter;
        graph.cross_nic = std::max(graph.cross_nic, own->cross_nic);
        intra = std::max(intra, own->type_intra);
        inter = std::max(inter, own->type_inter);
        any = true;
      }
      if (!any || graph.channels <= 0) continue;
      graph.name = Name(algorithm);
      graph.type_intra = PathName(intra);
      graph.type_inter = PathName(inter);
      for (const LowerNode& lower : checks_.lower_nodes)
        if (&view_.comms[lower.comm] == &comm && lower.graph == algorithm)
          graph.lowered_by += (graph.lowered_by.empty() ? "" : ", ") + view_.nodes[lower.node].name;
      out.graphs.push_back(std::move(graph));
    }
  }

  TopologyComm CommOf(const CommView& comm) const {
    TopologyComm out;
    const bool known = comm.group != GroupIndex::none,
               from_file = !known && comm.records.empty() && !comm.setups.empty();
    if (from_file)
      out.label = incident_.PathOf(incident_.nccl_setups[comm.setups.front()].source.file);
    else
      out.label = known ? incident_.groups[static_cast<uint32_t>(comm.group)].Label() : "communicator";
    out.ranks = comm.ranks;
    out.nodes = comm.nodes;
    out.seen = static_cast<int>(comm.process_of.size());
    out.channels = comm.coll_channels > 0 ? comm.coll_channels : static_cast<int>(comm.rings.size());
    out.nvls_channels = comm.nvls_channels;
    out.collnet_channels = comm.collnet_channels;
    out.mnnvl = comm.mnnvl;
    for (const RingView& ring : comm.rings) {
      TopologyRing one = RingOf(comm, ring);
      for (const TopologyRing& earlier : out.rings)
        if (earlier.same_as < 0 && earlier.whole == one.whole && earlier.order == one.order &&
            earlier.hops == one.hops && earlier.ways == one.ways && one.breaks.empty()) {
          const int channel = one.channel;
          one = TopologyRing();
          one.channel = channel;
          one.whole = earlier.whole;
          one.same_as = earlier.channel;
          break;
        }
      out.rings.push_back(std::move(one));
    }
    for (const TreeView& tree : comm.trees) {
      TopologyTree one{tree.channel, -1, tree.root < 0 ? -1 : JobRankOf(comm, tree.root), {}};
      for (const auto& [rank, parent] : tree.parents)
        one.parents.emplace_back(JobRankOf(comm, rank), parent < 0 ? -1 : JobRankOf(comm, parent));
      for (const TopologyTree& earlier : out.trees)
        if (earlier.same_as < 0 && earlier.parents == one.parents) {
          one.parents.clear();
          one.same_as = earlier.channel;
          break;
        }
      out.trees.push_back(std::move(one));
    }
    AddWays(comm, out);
    AddGraphs(comm, out);
    bool rings = false, trees = false, nvls = false, collnet = false;
    for (const uint32_t record : comm.records) {
      const RankChannels& one = incident_.rank_channels[record];
      rings |= one.rings_connected, trees |= one.trees_connected;
      nvls |= one.nvls_connected, collnet |= one.collnet_connected;
    }
    const std::pair<bool, const char*> kinds[] = {
        {rings, "rings"}, {trees, "trees"}, {nvls, "NVLS"}, {collnet, "CollNet"}};
    for (const auto& [is, name] : kinds)
      if (is) out.connected += (out.connected.empty() ? "" : ", ") + std::string(name);
    return out;
  }

  // Through which NICs each rank sends to other nodes.
  void FillUses() {
    constexpr int kMostNics = 64;
    std::map<int, std::set<int>> nics;
    for (const RankChannels& record : incident_.rank_channels) {
      uint64_t seen = 0;  // most uses repeat a device
      for (const ChannelUse& use : record.uses) {
        const Transport& transport = incident_.transports[use.transport];
        if (transport.device >= 0 && transport.device < kMostNics) {
          if (seen >> transport.device & 1) continue;
          if (use.direction != ChannelUse::Direction::receive) seen |= uint64_t{1} << transport.device;
        }
        if (transport.kind == TransportKind::net && use.direction != ChannelUse::Direction::receive &&
            record.rank.known())
          nics[record.rank.value].insert(transport.device);
      }
    }
    for (TopologyNode& node : out_.nodes)
      for (TopologyGpu& gpu : node.gpus)
        if (const auto found = nics.find(gpu.rank); found != nics.end())
          gpu.uses.assign(found->second.begin(), found->second.end());
  }

  // NCCL_HOSTID makes nodes of ranks of one host: their GPU may be that of another node.
  void MarkSharedGpus() {
    for (const std::vector<Rank>& ranks : FindSharedGpus(incident_)) {
      std::set<size_t> nodes;
      for (size_t i = 0; i < out_.nodes.size() && i < view_.nodes.size(); ++i)
        if (std::any_of(ranks.begin(), ranks.end(), [&](Rank rank) {
              return std::binary_search(view_.nodes[i].ranks.begin(), view_.nodes[i].ranks.end(), rank);
            }))
          nodes.insert(i);
      for (const size_t i : nodes) out_.nodes[i].shares_gpus |= nodes.size() > 1;
    }
  }

  // Nodes that cannot be told apart but for their names and ranks are drawn once.
  void FoldNodes() {
    std::map<std::string, int> first;
    for (size_t i = 0; i < out_.nodes.size(); ++i) {
      TopologyNode& node = out_.nodes[i];
      std::string key = node.net + (node.nvlink ? "n" : "") + (node.nvswitch ? "s" : "") +
                        (node.shares_gpus ? "h" : "") + (node.guilty ? "g" : "");
      const auto add = [&](double value) { key += "," + std::to_string(value); };
      for (const TopologyGpu& gpu : node.gpus) {
        key += ";g" + gpu.nearest + gpu.bus;
        add(gpu.nvlink_gbs), add(gpu.pci_gbs), add(gpu.place), add(gpu.rank >= 0), add(guilty_.contains(gpu.rank));
        for (const int nic : gpu.nics) add(nic);
      }
      for (const TopologyNic& nic : node.nics) {
        key += ";n" + nic.name + nic.link + nic.nearest;
        add(nic.speed_gbs), add(nic.ring_sends), add(nic.place);
      }
      node.like = first.try_emplace(std::move(key), static_cast<int>(i)).first->second;
    }
  }

  const Incident& incident_;
  const TopologyView& view_;
  const TopologyChecks& checks_;
  std::set<int> guilty_;
  TopologyReport out_;
  std::map<std::string, int> class_of_text_;
  std::vector<int> class_of_;
  std::set<std::tuple<GroupIndex, int32_t, int32_t>> slow_;
  std::set<uint32_t> staged_;  // processes
};

}  // namespace

TopologyReport DescribeTopology(const Incident& incident, const Analyses& analyses, const std::vector<int>& guilty) {
  return Describer(incident, analyses, guilty).Run();
}

}  // namespace tacet
