// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/network/topology_view.h"

namespace tacet {
namespace {

constexpr size_t kMostBreaks = 16;  // of one ring; more say nothing more

// One statement about a ring: `to` follows `from`.
struct Step {
  int32_t channel, from, to;
  uint32_t record;
};

// How ranks reach each other, by the pair of them.
class WaysOfComm {
 public:
  WaysOfComm(const Incident& incident, const CommView& comm) {
    for (const uint32_t record : comm.records)
      for (const ChannelUse& use : incident.rank_channels[record].uses)
        if (!use.point_to_point) uses_.emplace(Key(use.from, use.to), &use);
  }
  void Fill(Hop& hop, int32_t channel) const {
    const auto [begin, end] = uses_.equal_range(Key(hop.from, hop.to));
    for (auto it = begin; it != end; ++it) {
      const ChannelUse& use = *it->second;
      if (!use.channels.Has(channel)) continue;
      if (use.direction != ChannelUse::Direction::receive) hop.sends = use.transport;
      if (use.direction != ChannelUse::Direction::send) hop.receives = use.transport;
    }
  }

 private:
  static uint64_t Key(int32_t from, int32_t to) {
    return static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
  }
  std::unordered_multimap<uint64_t, const ChannelUse*> uses_;
};

std::vector<Step> StepsOf(const Incident& incident, const CommView& comm) {
  std::vector<Step> steps;
  for (const uint32_t index : comm.records) {
    const RankChannels& record = incident.rank_channels[index];
    const int32_t own = record.group_rank.value;
    for (const RingPlace& place : record.rings) {
      if (own < 0) continue;
      steps.push_back({place.channel, place.previous, own, index});
      steps.push_back({place.channel, own, place.next, index});
    }
    for (const RingOrder& order : record.orders) {
      for (size_t i = 0; i + 1 < order.ranks.size(); ++i)
        steps.push_back({order.channel, order.ranks[i], order.ranks[i + 1], index});
      const bool whole = !order.cut && order.ranks.size() == static_cast<size_t>(std::max(comm.ranks, 0));
      if (whole && order.ranks.size() > 1)
        steps.push_back({order.channel, order.ranks.back(), order.ranks.front(), index});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.channel, a.from, a.to) < std::tie(b.channel, b.from, b.to);
  });
  return steps;
}

// Each successor once; two different ones of a rank, or two predecessors, break the ring.
std::map<int32_t, int32_t> SettleSteps(const std::vector<Step>& steps, size_t begin, size_t end, RingView& ring) {
  std::map<int32_t, int32_t> next;
  std::unordered_map<int32_t, std::pair<int32_t, uint32_t>> previous;
  for (size_t i = begin; i < end; ++i) {
    const Step& step = steps[i];
    const auto [place, is_new] = next.try_emplace(step.from, step.to);
    if (!is_new) {
      if (place->second != step.to && ring.breaks.size() < kMostBreaks)
        ring.breaks.push_back({RingView::Break::Kind::two_next, step.from, place->second, step.to, step.record});
      continue;
    }
    const auto [before, first] = previous.try_emplace(step.to, step.from, step.record);
    if (!first && before->second.first != step.from && ring.breaks.size() < kMostBreaks)
      ring.breaks.push_back(
          {RingView::Break::Kind::two_previous, step.to, before->second.first, step.from, step.record});
  }
  return next;
}

void CountEntries(const TopologyView& view, const CommView& comm, RingView& ring) {
  std::map<uint32_t, int> entries;
  for (const Hop& hop : ring.hops) {
    const uint32_t from = view.NodeOf(comm, hop.from), to = view.NodeOf(comm, hop.to);
    if (from == kNoIndex || to == kNoIndex) return;  // of an unknown rank nothing can be said
    if (from != to) ++entries[to];
  }
  for (const auto& [node, times] : entries)
    if (times > 1) ring.reentered.emplace_back(node, times);
}

RingView BuildRing(const TopologyView& view, const CommView& comm, const WaysOfComm& ways,
                   const std::vector<Step>& steps, size_t begin, size_t end) {
  RingView ring;
  ring.channel = steps[begin].channel;
  const auto next = SettleSteps(steps, begin, end, ring);
  const bool all_known = comm.ranks > 0 && next.size() == static_cast<size_t>(comm.ranks);
  if (all_known && ring.breaks.empty()) {
    int32_t at = next.begin()->first;
    do {
      const auto found = next.find(at);
      if (found == next.end()) break;
      ring.hops.push_back({at, found->second, kNoIndex, kNoIndex});
      at = found->second;
    } while (at != next.begin()->first && ring.hops.size() < next.size());
    ring.whole = ring.hops.size() == next.size() && at == next.begin()->first;
    if (!ring.whole)
      ring.breaks.push_back({RingView::Break::Kind::closes_early, at, static_cast<int32_t>(ring.hops.size()),
                             comm.ranks, steps[begin].record});
  }
  if (!ring.whole) {
    ring.hops.clear();
    for (const auto& [from, to] : next) ring.hops.push_back({from, to, kNoIndex, kNoIndex});
  }
  for (Hop& hop : ring.hops) ways.Fill(hop, ring.channel);
  if (ring.whole && !comm.mnnvl) CountEntries(view, comm, ring);
  return ring;
}

void BuildRings(const Incident& incident, const TopologyView& view, CommView& comm) {
  const WaysOfComm ways(incident, comm);
  const std::vector<Step> steps = StepsOf(incident, comm);
  // A rank that speaks twice may have done so in two runs that no id tells apart: their differences are no break.
  std::set<int32_t> spoken;
  bool repeated = false;
  for (const uint32_t record : comm.records)
    repeated |= !spoken.insert(incident.rank_channels[record].group_rank.value).second;
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    while (end < steps.size() && steps[end].channel == steps[begin].channel) ++end;
    comm.rings.push_back(BuildRing(view, comm, ways, steps, begin, end));
    if (repeated) comm.rings.back().breaks.clear();
    begin = end;
  }
}

void BuildTrees(const Incident& incident, CommView& comm) {
  std::map<int32_t, TreeView> trees;
  for (const uint32_t index : comm.records) {
    const RankChannels& record = incident.rank_channels[index];
    for (const TreePlace& place : record.trees) {
      TreeView& tree = trees[place.channel];
      tree.channel = place.channel;
      if (place.up < 0) tree.root = record.group_rank.value;
      tree.parents.emplace_back(record.group_rank.value, place.up);
      for (const int32_t down : place.down)
        if (down >= 0) tree.parents.emplace_back(down, record.group_rank.value);
    }
  }
  for (auto& [channel, tree] : trees) {
    std::sort(tree.parents.begin(), tree.parents.end());
    tree.parents.erase(std::unique(tree.parents.begin(), tree.parents.end()), tree.parents.end());
    comm.trees.push_back(std::move(tree));
  }
}

void CountNicUse(const Incident& incident, TopologyView& view) {
  for (const CommView& comm : view.comms)
    for (const RingView& ring : comm.rings)
      for (const Hop& hop : ring.hops) {
        if (hop.sends == kNoIndex) continue;
        const Transport& transport = incident.transports[hop.sends];
        const uint32_t from = view.NodeOf(comm, hop.from);
        if (transport.kind != TransportKind::net || from == kNoIndex || from == view.NodeOf(comm, hop.to)) continue;
        if (!transport.fast_net() && view.nodes[from].net != "Socket") continue;  // numbers of other devices
        for (NicView& nic : view.nodes[from].nics)
          if (nic.index == transport.device) ++nic.ring_sends;
      }
}

}  // namespace

void FindComms(const Incident& incident, TopologyView& view) {
  // Communicators that nobody named are told apart by their process and size only: each is one of its own.
  std::map<std::tuple<GroupIndex, uint32_t, int32_t>, CommView> comms;
  const auto comm_of = [&](GroupIndex group, uint32_t speaker, int32_t ranks) -> CommView& {
    const bool known = group != GroupIndex::none;
    CommView& comm = comms[{group, known ? 0 : speaker, known ? 0 : ranks}];
    comm.group = group;
    comm.ranks = std::max(comm.ranks, ranks);
    return comm;
  };
  for (uint32_t i = 0; i < incident.nccl_setups.size(); ++i) {
    const NcclSetup& setup = incident.nccl_setups[i];
    // A graph file names no communicator: each is one of its own, told apart by its place here.
    const bool lone = setup.speaker == kNobody && setup.group == GroupIndex::none;
    CommView& comm = comm_of(setup.group, lone ? ~i : setup.speaker, setup.ranks);
    comm.setups.push_back(i);
    comm.nodes = std::max(comm.nodes, setup.nodes);
    comm.mnnvl |= setup.mnnvl > 0;
    const auto lower = [](int32_t& kept, int32_t value) {
      kept = kept < 0 || value < 0 ? std::max(kept, value) : std::min(kept, value);
    };
    lower(comm.coll_channels, setup.coll_channels);
    lower(comm.nvls_channels, setup.nvls_channels);
    lower(comm.collnet_channels, setup.collnet_channels);
    if (setup.group_rank.known()) comm.process_of.emplace(setup.group_rank.value, setup.speaker);
  }
  for (uint32_t i = 0; i < incident.rank_channels.size(); ++i) {
    const RankChannels& record = incident.rank_channels[i];
    CommView& comm = comm_of(record.group, record.speaker, record.ranks);
    comm.records.push_back(i);
    if (record.group_rank.known()) comm.process_of.emplace(record.group_rank.value, record.speaker);
  }
  for (auto& [key, comm] : comms) {
    const bool graphs = !comm.setups.empty() && !incident.nccl_setups[comm.setups.front()].graphs.empty();
    if (comm.ranks < 2 && comm.records.empty() && !graphs) continue;
    BuildRings(incident, view, comm);
    BuildTrees(incident, comm);
    view.comms.push_back(std::move(comm));
  }
  std::stable_sort(view.comms.begin(), view.comms.end(),
                   [](const CommView& a, const CommView& b) { return a.ranks > b.ranks; });
  CountNicUse(incident, view);
}

}  // namespace tacet
