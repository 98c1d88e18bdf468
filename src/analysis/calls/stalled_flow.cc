// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/stalled_flow.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace tacet {
namespace {

Rank RankOf(const Incident& incident, GroupIndex group, GroupRank place) {
  if (group == GroupIndex::none || static_cast<uint32_t>(group) >= incident.groups.size()) return {};
  const auto& members = incident.groups[static_cast<uint32_t>(group)].members;
  const bool inside = place.value >= 0 && static_cast<size_t>(place.value) < members.size();
  return inside ? members[static_cast<size_t>(place.value)] : Rank{};
}

// The sender knows best: its wait tells the network from the receiver.
int Order(FlowWait wait) {
  switch (wait) {
    case FlowWait::network: return 0;
    case FlowWait::peer_credit: return 1;
    case FlowWait::data: return 2;
    default: return 3;
  }
}

std::vector<StalledFlow> CollectFlows(const Incident& incident, GroupIndex group, uint32_t seq) {
  std::vector<StalledFlow> flows;
  for (const InFlight& flight : incident.in_flight) {
    if (flight.group != group || flight.seq != seq || IsPointToPoint(flight.kind) || !flight.rank.known()) continue;
    for (const Flow& flow : flight.flows) {
      const Rank peer = RankOf(incident, group, flow.peer);
      const bool tells =
          flow.waiting == FlowWait::network || flow.waiting == FlowWait::peer_credit || flow.waiting == FlowWait::data;
      if (!peer.known() || !tells || flow.steps_done >= flow.steps_total) continue;
      StalledFlow stalled{
          .waiting = flow.waiting, .steps_done = flow.steps_done, .steps_total = flow.steps_total, .flight = &flight};
      stalled.from = flow.send ? flight.rank : peer;
      stalled.to = flow.send ? peer : flight.rank;
      flows.push_back(stalled);
    }
  }
  return flows;
}

// The sender is still in the operation, and has no transfer to that receiver left in it.
bool HasSentAll(const Incident& incident, const StalledFlow& way) {
  for (const InFlight& flight : incident.in_flight) {
    const bool same = flight.rank == way.from && flight.group == way.flight->group && flight.seq == way.flight->seq &&
                      flight.kind == way.flight->kind;
    if (!same || flight.channels_started == 0 || flight.flows.empty()) continue;
    return std::none_of(flight.flows.begin(), flight.flows.end(), [&](const Flow& flow) {
      return flow.send && RankOf(incident, flight.group, flow.peer) == way.to && flow.steps_done < flow.steps_total;
    });
  }
  return false;
}

bool SameWay(const StalledFlow& a, const StalledFlow& b) { return a.from == b.from && a.to == b.to; }

}  // namespace

std::optional<StalledFlow> FindStalledFlow(const Incident& incident, GroupIndex group, uint32_t seq) {
  std::vector<StalledFlow> flows = CollectFlows(incident, group, seq);
  if (flows.empty()) return std::nullopt;
  const auto key = [](const StalledFlow& f) { return std::tuple(f.steps_done, Order(f.waiting), f.from, f.to); };
  std::stable_sort(flows.begin(), flows.end(),
                   [&](const StalledFlow& a, const StalledFlow& b) { return key(a) < key(b); });
  StalledFlow& least = flows.front();
  const bool receiver =
      least.waiting == FlowWait::peer_credit || (least.waiting == FlowWait::data && HasSentAll(incident, least));
  least.suspect = receiver ? least.to : least.from;
  // Several ways that stand equally still: an end they share is the reason; without one nobody is named.
  bool shares_from = true, shares_to = true, others = false;
  for (const StalledFlow& flow : flows) {
    if (flow.steps_done != least.steps_done || flow.waiting != least.waiting || SameWay(flow, least)) continue;
    others = true;
    shares_from &= flow.from == least.from || flow.to == least.from;
    shares_to &= flow.from == least.to || flow.to == least.to;
  }
  if (others) least.suspect = shares_from ? least.from : shares_to ? least.to : Rank{};
  return least;
}

}  // namespace tacet
