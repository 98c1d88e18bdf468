// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/collective_match.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// A kernel that begins this soon behind another one on its stream was waiting for it.
constexpr int64_t kQueueGapNs = 50'000;

// One operation of one rank on one group; several operations of one kernel are one.
struct Item {
  uint32_t timeline = kNoIndex, collective = kNoIndex;
  OpKind kind = OpKind::unknown;
  DataType type = DataType::unknown;
  int64_t step = -1, seq = -1, bytes = -1;
  int32_t n = -1;
  bool coalesced = false;
  RoundMember member;
  // What all ranks must agree in. Ranks of an all-to-all may send different amounts: experts are not equally busy.
  std::pair<OpKind, int64_t> signature() const { return {kind, kind == OpKind::all_to_all ? -1 : bytes}; }
};

// The number of the step in which the host issued it; before the first step nothing is known.
int64_t StepAt(const Timeline& timeline, int64_t ns) {
  auto after = std::upper_bound(timeline.steps.begin(), timeline.steps.end(), ns,
                                [](int64_t value, const TrainingStep& step) { return value < step.start_ns; });
  return after == timeline.steps.begin() ? INT64_MIN : std::prev(after)->number;
}

// For every GPU event of communication: when the communication kernel before it on its stream ended.
std::vector<int64_t> EndsBefore(const Timeline& timeline) {
  std::vector<int64_t> last(timeline.streams.size(), INT64_MIN), out(timeline.gpu.size(), INT64_MIN);
  for (size_t i = 0; i < timeline.gpu.size(); ++i) {
    const GpuEvent& event = timeline.gpu[i];
    if (event.work != GpuWork::communication) continue;
    out[i] = last[event.stream];
    last[event.stream] = std::max(last[event.stream], event.end_ns);
  }
  return out;
}

Item ToItem(const Timeline& timeline, uint32_t t, uint32_t c, const std::vector<int64_t>& ends_before,
            std::span<const Group> groups) {
  const TraceCollective& operation = timeline.collectives[c];
  Item item;
  item.timeline = t;
  item.collective = c;
  item.kind = operation.kind;
  item.type = operation.type;
  item.seq = operation.seq;
  item.n = operation.group_size;
  if (operation.group != GroupIndex::none && !groups[static_cast<uint32_t>(operation.group)].members.empty())
    item.n = static_cast<int32_t>(groups[static_cast<uint32_t>(operation.group)].members.size());
  item.bytes = OperationBytes(operation.kind, operation.in_elements, operation.out_elements, operation.type, item.n);
  item.step = timeline.steps.empty() ? -1 : StepAt(timeline, operation.enter_ns);
  item.coalesced = operation.coalesced;
  item.member = {timeline.rank, operation.enter_ns, kNoTime, kNoTime, -1, false, t, c};
  if (operation.gpu_event != kNoIndex) {
    const GpuEvent& event = timeline.gpu[operation.gpu_event];
    item.member.start_ns = event.start_ns;
    item.member.end_ns = event.end_ns;
    item.member.duration_ns = event.end_ns - event.start_ns;
    const int64_t before = ends_before[operation.gpu_event];
    item.member.queued = before != INT64_MIN && event.start_ns - before < kQueueGapNs && operation.enter_ns < before;
  }
  return item;
}

// How far `other` is to be moved so that its operations agree with `reference`: most equal signatures, then least
// distance in time. Profilers of different ranks do not begin at the same operation.
ptrdiff_t FindShift(const std::vector<Item>& reference, const std::vector<Item>& other) {
  constexpr ptrdiff_t kFarthest = 64;
  std::vector<std::pair<ptrdiff_t, size_t>> scores;
  size_t best = 0;
  for (ptrdiff_t shift = -kFarthest; shift <= kFarthest; ++shift) {
    size_t equal = 0;
    for (size_t i = 0; i < other.size(); ++i) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(i) + shift;
      if (at >= 0 && at < static_cast<ptrdiff_t>(reference.size()) &&
          reference[static_cast<size_t>(at)].signature() == other[i].signature())
        ++equal;
    }
    scores.emplace_back(shift, equal);
    best = std::max(best, equal);
  }
  ptrdiff_t chosen = 0;
  double least = -1;
  for (const auto& [shift, equal] : scores) {
    if (equal == 0 || equal * 10 < best * 9) continue;
    std::vector<double> distances;
    for (size_t i = 0; i < other.size(); ++i) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(i) + shift;
      if (at < 0 || at >= static_cast<ptrdiff_t>(reference.size())) continue;
      const RoundMember &a = reference[static_cast<size_t>(at)].member, &b = other[i].member;
      const bool ends = a.end_ns != kNoTime && b.end_ns != kNoTime;
      distances.push_back(std::abs(static_cast<double>(ends ? a.end_ns - b.end_ns : a.enter_ns - b.enter_ns)));
    }
    const double distance = Median(std::move(distances));
    if (least >= 0 && distance >= least) continue;
    least = distance;
    chosen = shift;
  }
  return chosen;
}

void AddMember(CollectiveRound& round, const Item& item) {
  round.members.push_back(item.member);
  round.coalesced |= item.coalesced;
  round.bytes = std::max(round.bytes, item.bytes);  // they differ in an all-to-all: the busiest rank sets its time
}

CollectiveRound NewRound(GroupIndex group, const Item& item, int64_t seq) {
  CollectiveRound round;
  round.group = group;
  round.kind = item.kind;
  round.type = item.type;
  round.step = item.step == INT64_MIN ? -1 : item.step;
  round.seq = item.seq >= 0 ? item.seq : seq;
  round.bytes = item.bytes;
  round.group_size = item.n;
  return round;
}

// The lists of all ranks of one group, or of the senders and receivers of one pair, become rounds.
void JoinLists(GroupIndex group, std::vector<std::vector<Item>>& lists, std::vector<CollectiveRound>& out) {
  const auto longest =
      std::max_element(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::map<std::pair<int64_t, int64_t>, std::vector<const Item*>> places;  // (step, index or seq)
  for (const auto& list : lists) {
    const bool numbered = std::all_of(list.begin(), list.end(), [](const Item& item) { return item.seq >= 0; });
    const bool stepped = std::all_of(list.begin(), list.end(), [](const Item& item) { return item.step != -1; });
    ptrdiff_t index = !numbered && !stepped ? FindShift(*longest, list) : 0;
    int64_t step = INT64_MIN;
    for (const Item& item : list) {
      if (stepped && !numbered && item.step != step) {
        step = item.step;
        index = 0;
      }
      const int64_t place = numbered ? item.seq : index++;
      if (stepped && item.step == INT64_MIN) continue;
      places[{numbered ? 0 : item.step, place}].push_back(&item);
    }
  }
  for (const auto& [place, items] : places) {
    if (items.size() < 2 && lists.size() > 1) continue;
    const bool agree = std::all_of(items.begin(), items.end(),
                                   [&](const Item* item) { return item->signature() == items[0]->signature(); });
    if (!agree) continue;
    CollectiveRound round = NewRound(group, *items[0], place.second);
    for (const Item* item : items) AddMember(round, *item);
    std::sort(round.members.begin(), round.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    out.push_back(std::move(round));
  }
}

using PairKey = std::tuple<GroupIndex, Rank, Rank>;  // sender, receiver

void JoinPairs(std::map<PairKey, std::pair<std::vector<Item>, std::vector<Item>>>& pairs,
               std::vector<CollectiveRound>& out) {
  for (auto& [key, sides] : pairs) {
    std::vector<std::vector<Item>> lists;
    for (Item& item : sides.second) item.kind = OpKind::send;  // one name for both ends
    lists.push_back(std::move(sides.first));
    lists.push_back(std::move(sides.second));
    const size_t before = out.size();
    JoinLists(std::get<0>(key), lists, out);
    for (size_t i = before; i < out.size(); ++i) {
      out[i].group_size = 2;
      if (out[i].members.size() == 2 && out[i].members[0].rank != std::get<1>(key))
        std::swap(out[i].members[0], out[i].members[1]);
    }
  }
}

}  // namespace

bool CollectiveRound::synchronises() const {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::reduce_scatter ||
         kind == OpKind::all_to_all || kind == OpKind::barrier;
}

int64_t OperationBytes(OpKind kind, int64_t in_elements, int64_t out_elements, DataType type, int32_t n) {
  const int64_t size = BytesOf(type);
  int64_t elements = in_elements;
  if (kind == OpKind::all_gather) {
    elements = out_elements;
    if (elements < 0 && in_elements >= 0 && n > 0 &&
        __builtin_mul_overflow(in_elements, static_cast<int64_t>(n), &elements))
      elements = -1;
  }
  int64_t bytes = -1;
  if (elements < 0 || size == 0 || __builtin_mul_overflow(elements, size, &bytes)) return -1;
  return bytes;
}

std::vector<CollectiveRound> MatchCollectives(std::span<const Timeline> timelines, std::span<const Group> groups) {
  std::map<GroupIndex, std::map<uint32_t, std::vector<Item>>> by_group;
  std::map<PairKey, std::pair<std::vector<Item>, std::vector<Item>>> pairs;
  for (uint32_t t = 0; t < timelines.size(); ++t) {
    const Timeline& timeline = timelines[t];
    const auto ends_before = EndsBefore(timeline);
    for (uint32_t c = 0; c < timeline.collectives.size(); ++c) {
      const TraceCollective& operation = timeline.collectives[c];
      if (operation.kind == OpKind::unknown || operation.kind == OpKind::coalesced ||
          operation.group == GroupIndex::none)
        continue;
      Item item = ToItem(timeline, t, c, ends_before, groups);
      if (IsPointToPoint(operation.kind)) {
        const auto& members = groups[static_cast<uint32_t>(operation.group)].members;
        const auto peer = static_cast<size_t>(operation.peer.value);
        if (!operation.peer.known() || peer >= members.size()) continue;
        const bool sends = operation.kind == OpKind::send;
        const PairKey key{operation.group, sends ? timeline.rank : members[peer],
                          sends ? members[peer] : timeline.rank};
        (sends ? pairs[key].first : pairs[key].second).push_back(std::move(item));
        continue;
      }
      auto& list = by_group[operation.group][t];
      // Operations of one group in one kernel are one round of their joint size.
      if (operation.coalesced && !list.empty() && list.back().coalesced && list.back().kind == item.kind &&
          item.bytes >= 0 && timeline.collectives[list.back().collective].gpu_event == operation.gpu_event &&
          operation.gpu_event != kNoIndex) {
        list.back().bytes += item.bytes;
        continue;
      }
      list.push_back(std::move(item));
    }
  }
  std::vector<CollectiveRound> out;
  for (auto& [group, ranks] : by_group) {
    std::vector<std::vector<Item>> lists;
    for (auto& [timeline, list] : ranks) lists.push_back(std::move(list));
    JoinLists(group, lists, out);
  }
  JoinPairs(pairs, out);
  std::stable_sort(out.begin(), out.end(), [](const CollectiveRound& a, const CollectiveRound& b) {
    return std::tuple(a.step, a.members[0].enter_ns) < std::tuple(b.step, b.members[0].enter_ns);
  });
  return out;
}

RoundTiming TimeRound(const CollectiveRound& round) {
  RoundTiming timing;
  const auto& members = round.members;
  if (members.empty()) return timing;
  const bool starts = std::all_of(members.begin(), members.end(),
                                  [](const auto& m) { return m.start_ns != kNoTime && m.end_ns != kNoTime; });
  const bool durations = std::all_of(members.begin(), members.end(), [](const auto& m) { return m.duration_ns >= 0; });
  if (!starts && !durations) return timing;
  // Later is larger, whichever is known: the one who comes last has the shortest kernel.
  const auto arrival = [&](const RoundMember& m) { return starts ? m.start_ns : -m.duration_ns; };
  int64_t last = INT64_MIN, second = INT64_MIN, end = INT64_MIN;
  for (const RoundMember& m : members) {
    if (arrival(m) > last) {
      second = last;
      last = arrival(m);
      timing.last = m.rank;
    } else {
      second = std::max(second, arrival(m));
    }
    if (starts) end = std::max(end, m.end_ns);
  }
  timing.excess_ns = members.size() > 1 ? last - second : 0;
  timing.transfer_ns = starts ? std::max<int64_t>(0, end - last) : -last;
  for (const RoundMember& m : members) timing.total_wait_ns += last - arrival(m);
  return timing;
}

}  // namespace tacet
