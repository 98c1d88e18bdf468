// SPDX-License-Identifier: Apache-2.0
#include "analysis/call_difference.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "analysis/call_alignment.h"

namespace tacet {
namespace {

bool ReducesData(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce || kind == OpKind::reduce_scatter;
}

bool HasRoot(OpKind kind) {
  return kind == OpKind::broadcast || kind == OpKind::reduce || kind == OpKind::gather || kind == OpKind::scatter;
}

// The number of elements that must agree on all ranks; -1 where ranks may differ. all_to_all splits, gather and scatter
// are uneven by nature. An all_gather or reduce_scatter of unequal shards is legal; what must agree is the whole.
int64_t AgreedElements(const Call& call) {
  switch (call.kind) {
    case OpKind::all_reduce:
    case OpKind::broadcast:
    case OpKind::reduce: return call.in_elements;
    case OpKind::all_gather: return call.out_elements >= 0 ? call.out_elements : call.in_elements;
    case OpKind::reduce_scatter: return call.in_elements;
    default: return -1;
  }
}

bool IsComparable(const Call& call) {
  return call.kind != OpKind::unknown && call.kind != OpKind::coalesced && !call.has(kCoalescedMember) &&
         !call.has(kCoalescedEnd);
}

template <typename T>
bool Differ(T a, T b, T unknown) {
  return a != unknown && b != unknown && a != b;
}

std::optional<CallAspect> Compare(const Call& a, const Call& b) {
  if (!IsComparable(a) || !IsComparable(b)) return std::nullopt;
  if (a.kind != b.kind) return CallAspect::operation;
  if (a.kind == OpKind::barrier) return std::nullopt;
  if (Differ(AgreedElements(a), AgreedElements(b), int64_t{-1})) return CallAspect::size;
  if (Differ(a.type, b.type, DataType::unknown)) return CallAspect::type;
  if (ReducesData(a.kind) && Differ(a.reduction, b.reduction, ReduceOp::unknown)) return CallAspect::reduction;
  if (HasRoot(a.kind) && Differ(a.peer.value, b.peer.value, -1)) return CallAspect::root;
  return std::nullopt;
}

bool Same(const Call* a, const Call* b) { return a && b && !Compare(*a, *b); }

// Equal-looking calls from different lines of the program are different calls. Where a call has no stack (DDP's own
// reductions, NCCL's log) nothing speaks against it.
bool KnowSites(const Call& a, const Call& b) { return a.stack != StackId{} && b.stack != StackId{}; }
bool SameAtSite(const Call* a, const Call* b) { return Same(a, b) && (!KnowSites(*a, *b) || a->stack == b->stack); }

// Groups the members by what they issued at `seq`; empty unless somebody differs.
std::vector<CallSide> SidesAt(const GroupCalls& group, uint32_t seq) {
  std::vector<CallSide> sides;
  for (const MemberCalls& member : group.members) {
    const Call* call = member.Find(seq);
    if (!call || !IsComparable(*call)) continue;
    auto side = std::find_if(sides.begin(), sides.end(), [&](const CallSide& s) { return !Compare(*s.call, *call); });
    if (side == sides.end()) side = sides.insert(side, CallSide{{}, call, member.stream});
    side->ranks.push_back(member.rank);
  }
  std::stable_sort(sides.begin(), sides.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

// How many times all members issued something like `call` on this group: the habit of the job.
size_t CountLike(const GroupCalls& group, const Call& call) {
  size_t count = 0;
  for (const MemberCalls& member : group.members)
    for (size_t i = 0; i < member.calls.size(); ++i)
      if (Same(&member.At(i), &call)) ++count;
  return count;
}

bool AllAreRecorded(const GroupCalls& group) {
  return std::all_of(group.members.begin(), group.members.end(), [](const MemberCalls& m) { return m.stream; });
}

void NameTheOdd(const GroupCalls& group, CallDifference& difference) {
  auto& sides = difference.sides;
  if (sides[0].ranks.size() == sides[1].ranks.size()) {
    // No majority. What the job does all the time is right, what it does only here is wrong.
    const size_t first = CountLike(group, *sides[0].call), second = CountLike(group, *sides[1].call);
    if (sides.size() > 2 || std::max(first, second) < 2 * std::min(first, second) + 2) return;
    // Another size or type that occurs only here is wrong; another operation may be one that all whose records are
    // missing issued as well.
    if (sides[0].call->kind != sides[1].call->kind && !AllAreRecorded(group)) return;
    if (first < second) std::swap(sides[0], sides[1]);
    difference.decided_by_habit = true;
  }
  // Of three ways or more the commonest is right only where most ranks took it.
  size_t all = 0;
  for (const CallSide& side : sides) all += side.ranks.size();
  if (sides.size() > 2 && 2 * sides[0].ranks.size() <= all) return;
  for (size_t i = 1; i < sides.size(); ++i)
    difference.odd.insert(difference.odd.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  std::sort(difference.odd.begin(), difference.odd.end());
}

const MemberCalls* MemberOf(const GroupCalls& group, Rank rank) {
  for (const MemberCalls& member : group.members)
    if (member.rank == rank) return &member;
  return nullptr;
}

// Compares how two orders go on: odd[seq + odd_shift + k] against usual[seq + usual_shift + k]. Counts places that
// agree before the first that does not; an end of either record ends the comparison without a verdict.
struct CallContinuation {
  int agree = 0;
  bool broke = false;
};
CallContinuation Follow(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq, uint32_t odd_shift,
                        uint32_t usual_shift) {
  CallContinuation result;
  constexpr uint32_t kLook = 12;
  for (uint32_t k = 0; k < kLook; ++k) {
    const Call* a = odd.Find(seq + odd_shift + k);
    const Call* b = usual.Find(seq + usual_shift + k);
    if (!a || !b) break;
    if (!SameAtSite(a, b)) {
      result.broke = true;
      break;
    }
    ++result.agree;
  }
  return result;
}

// The difference shows late: before it, the odd one issued what looks alike from another line, and since then it is one
// place behind the others.
//     usual  ... a@142 | b        odd  ... a@85 | a@142
bool SlippedBefore(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq) {
  constexpr uint32_t kFarthest = 64;
  for (uint32_t back = 0; back < kFarthest && back + 1 < seq; ++back) {
    const uint32_t at = seq - back;
    const Call* own = odd.Find(at);
    const Call* others = usual.Find(at - 1);
    if (!own || !others) return false;
    const Call* same_place = usual.Find(at);
    if (back > 0 && same_place && KnowSites(*own, *same_place) && own->stack != same_place->stack &&
        own->stack != others->stack)
      return true;  // the call that is too many
    if (!Same(own, others) || !KnowSites(*own, *others) || own->stack != others->stack) return false;
  }
  return false;
}

// The others stand in the call, so that nothing shows how they would go on; but the odd one goes on as everybody did
// before: it left this call out.
//     usual  a b a b c        odd  a b a b a b
bool GoesOnWithout(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq) {
  constexpr uint32_t kFarthest = 512;
  if (usual.Find(seq + 1) || !odd.Find(seq + 1) || SameAtSite(odd.Find(seq + 1), usual.Find(seq))) return false;
  for (uint32_t back = 2; back < std::min(seq, kFarthest); ++back)
    if (SameAtSite(odd.Find(seq), usual.Find(seq - back)) && SameAtSite(odd.Find(seq + 1), usual.Find(seq - back + 1)))
      return true;
  return false;
}

constexpr uint32_t kLongestRound = 512;

bool Repeats(const MemberCalls& member, uint32_t from, uint32_t length) {
  for (uint32_t k = 0; k < length; ++k)
    if (!Same(member.Find(from + k), member.Find(from + length + k))) return false;
  return true;
}

// The number of the last call like `call` below `seq`, 0 none.
uint32_t LastLike(const MemberCalls& member, const Call& call, uint32_t seq) {
  for (uint32_t back = 1; back <= 16 * kLongestRound && back < seq; ++back) {
    const Call* earlier = member.Find(seq - back);
    if (!earlier) return 0;
    if (Same(earlier, &call)) return seq - back;
  }
  return 0;
}

// The others stand still before one can see how they go on, but the call comes every so many rounds, and here it comes
// one round too early.
uint32_t RoundTooEarly(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq) {
  const Call& call = *odd.Find(seq);
  const uint32_t last = LastLike(usual, call, seq);
  const uint32_t before = last > 0 ? LastLike(usual, call, last) : 0;
  if (before == 0 || last - before <= seq - last) return 0;
  const uint32_t length = last - before - (seq - last);
  const bool is_round =
      length >= 2 && length <= kLongestRound && seq > 2 * length && Repeats(usual, seq - 2 * length, length);
  return is_round ? length : 0;
}

// The odd one goes on as the others do after one more round of what they did last: it left a whole round out, and the
// call that seems to be too many is the one that follows the round.
//     usual  a b c | a b c | d        odd  a b c | d
uint32_t RoundLeftOut(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq) {
  const Call* call = odd.Find(seq);
  for (uint32_t length = 2; length <= kLongestRound && length < seq && usual.Find(seq + length); ++length)
    if (Same(call, usual.Find(seq + length)) && Repeats(usual, seq - length, length) &&
        !Follow(odd, usual, seq, 0, length).broke)
      return length;
  return 0;
}

// What all members have recorded of the next calls is the same on all.
bool AgreeFrom(const GroupCalls& group, uint32_t seq) {
  constexpr uint32_t kEnough = 16;
  for (uint32_t i = 0; i < kEnough; ++i) {
    const Call* first = group.members.front().Find(seq + i);
    for (const MemberCalls& member : group.members)
      if (const Call* call = member.Find(seq + i); first && call && !Same(first, call)) return false;
  }
  return true;
}

// The same calls on all members, in an order of their own: over a set, a dictionary or a listing of files.
//     a b c d        c a d b
uint32_t ReorderedCalls(const GroupCalls& group, uint32_t seq) {
  constexpr uint32_t kMost = 64;
  constexpr size_t kMostMembers = 256;
  if (group.members.size() > kMostMembers || !AllAreRecorded(group)) return 0;
  const auto less = [](const Call* a, const Call* b) {
    return std::tuple(a->kind, a->type, a->in_elements, a->out_elements) <
           std::tuple(b->kind, b->type, b->in_elements, b->out_elements);
  };
  const auto calls_of = [&](const MemberCalls& member, uint32_t length) {
    std::vector<const Call*> calls;
    for (uint32_t i = 0; i < length; ++i)
      if (const Call* call = member.Find(seq + i)) calls.push_back(call);
    std::sort(calls.begin(), calls.end(), less);
    return calls;
  };
  const auto same = [&](const Call* a, const Call* b) { return !less(a, b) && !less(b, a); };
  for (uint32_t length = 2; length <= kMost; ++length) {
    const std::vector<const Call*> first = calls_of(group.members.front(), length);
    if (first.size() < length) return 0;
    bool equal = true;
    for (const MemberCalls& member : group.members) {
      const std::vector<const Call*> calls = calls_of(member, length);
      if (calls.size() < length) return 0;
      equal = equal && std::equal(calls.begin(), calls.end(), first.begin(), same);
    }
    if (equal) return AgreeFrom(group, seq + length) ? length : 0;
  }
  return 0;
}

// The calls of a member from one number on, as far as no number is missing.
std::vector<const Call*> CallsFrom(const MemberCalls& member, uint32_t seq) {
  std::vector<const Call*> calls;
  for (size_t i = 0; i < member.calls.size(); ++i) {
    const Call& call = member.At(i);
    if (call.seq < seq) continue;
    if (call.seq != seq + calls.size()) break;
    calls.push_back(&call);
  }
  return calls;
}

std::optional<CallAlignment> Align(const std::vector<const Call*>& longer, const std::vector<const Call*>& shorter) {
  return AlignByDropping(
      longer.size(), shorter.size(), [&](size_t a, size_t b) { return SameAtSite(longer[a], shorter[b]); },
      [&](size_t a, size_t b) { return SameAtSite(longer[a], longer[b]); });
}

// Whether the calls that were taken out explain more than that each of them was issued in place of another.
//     longer  x a x a x a        shorter  a a a a a a
bool ExplainsMore(const CallAlignment& alignment, const std::vector<const Call*>& longer,
                  const std::vector<const Call*>& shorter) {
  const size_t both = std::min(longer.size(), shorter.size());
  size_t differ = 0;
  for (size_t i = 0; i < both; ++i) differ += !Same(longer[i], shorter[i]);
  const auto dropped = static_cast<size_t>(
      std::count_if(alignment.dropped.begin(), alignment.dropped.end(), [&](size_t place) { return place < both; }));
  if (differ != dropped) return differ > dropped;
  const Call &own = *longer.front(), &others = *shorter.front();
  return KnowSites(own, others) ? own.stack != others.stack : own.kind != others.kind;
}

// Calls that are too many or left out again and again: each step has one of them, and the numbers drift apart.
//     usual  a b c a b c a b c        odd  a b c x a b c x a b c x
void ReadDrift(const MemberCalls& odd_member, const MemberCalls& usual_member, CallDifference& difference) {
  const std::vector<const Call*> odd = CallsFrom(odd_member, difference.seq),
                                 usual = CallsFrom(usual_member, difference.seq);
  using Reading = CallDifference::Reading;
  std::optional<CallAlignment> extra, skipped;
  if (difference.reading != Reading::skipped) extra = Align(odd, usual);
  if (difference.reading != Reading::extra) skipped = Align(usual, odd);
  if (difference.reading == Reading::substituted) {
    if (extra && !ExplainsMore(*extra, odd, usual)) extra.reset();
    if (skipped && !ExplainsMore(*skipped, usual, odd)) skipped.reset();
  }
  // Where both would do, the one that changes less.
  if (extra && skipped)
    (extra->dropped.size() * skipped->matched <= skipped->dropped.size() * extra->matched ? skipped : extra).reset();
  if (!extra && !skipped) return;
  const CallAlignment& alignment = extra ? *extra : *skipped;
  difference.reading = extra ? Reading::extra : Reading::skipped;
  difference.count = static_cast<uint32_t>(alignment.dropped.size());
  difference.every = static_cast<uint32_t>(alignment.every);
  difference.alike = alignment.alike;
}

void ReadCallContinuation(const GroupCalls& group, CallDifference& difference) {
  if (difference.odd.empty()) {
    difference.reordered = ReorderedCalls(group, difference.seq);
    return;
  }
  const MemberCalls* odd = MemberOf(group, difference.odd.front());
  const MemberCalls* usual = MemberOf(group, difference.sides[0].ranks.front());
  if (!odd || !usual) return;
  const CallContinuation same = Follow(*odd, *usual, difference.seq, 1, 1);
  if (!same.broke && same.agree > 0) return;  // goes on in step: this one call was another
  const CallContinuation skipped = Follow(*odd, *usual, difference.seq, 0, 1);
  const CallContinuation extra = Follow(*odd, *usual, difference.seq, 1, 0);
  if (!skipped.broke && skipped.agree > same.agree && skipped.agree >= extra.agree)
    difference.reading = CallDifference::Reading::skipped;
  if (!extra.broke && extra.agree > same.agree && extra.agree > skipped.agree)
    difference.reading = CallDifference::Reading::extra;
  if (difference.reading == CallDifference::Reading::substituted && SlippedBefore(*odd, *usual, difference.seq))
    difference.reading = CallDifference::Reading::extra;
  if (difference.reading == CallDifference::Reading::substituted && GoesOnWithout(*odd, *usual, difference.seq))
    difference.reading = CallDifference::Reading::skipped;
  if (difference.reading == CallDifference::Reading::skipped) return ReadDrift(*odd, *usual, difference);
  difference.round = RoundLeftOut(*odd, *usual, difference.seq);
  if (difference.round == 0 && difference.reading == CallDifference::Reading::extra)
    difference.round = RoundTooEarly(*odd, *usual, difference.seq);
  if (difference.round > 0)
    difference.reading = CallDifference::Reading::skipped;
  else
    ReadDrift(*odd, *usual, difference);
  // One call more or less in a pattern that repeats gives the same calls in another order, too: only where neither is
  // seen, it is the order.
  if (difference.reading == CallDifference::Reading::substituted)
    difference.reordered = ReorderedCalls(group, difference.seq);
}

std::optional<CallDifference> FirstDifference(const GroupCalls& group) {
  // Walk the calls of all members in parallel: each member advances a cursor, so the whole is linear in the calls.
  std::vector<size_t> cursor(group.members.size(), 0);
  while (true) {
    uint32_t seq = UINT32_MAX;
    for (size_t m = 0; m < cursor.size(); ++m)
      if (cursor[m] < group.members[m].calls.size()) seq = std::min(seq, group.members[m].At(cursor[m]).seq);
    if (seq == UINT32_MAX) return std::nullopt;
    const Call* first = nullptr;
    bool differs = false;
    for (size_t m = 0; m < cursor.size(); ++m) {
      const MemberCalls& member = group.members[m];
      if (cursor[m] >= member.calls.size() || member.At(cursor[m]).seq != seq) continue;
      const Call& call = member.At(cursor[m]++);
      if (!IsComparable(call)) continue;
      if (!first)
        first = &call;
      else if (Compare(*first, call))
        differs = true;
    }
    if (!differs) continue;
    CallDifference difference{.group = group.group, .source = group.source, .seq = seq, .sides = SidesAt(group, seq)};
    if (difference.sides.size() < 2) continue;
    NameTheOdd(group, difference);
    difference.aspect = *Compare(*difference.sides[0].call, *difference.sides[1].call);
    ReadCallContinuation(group, difference);
    for (const CallSide& side : difference.sides) {
      const int64_t enter = side.call->enter_wall_ns;
      if (enter != kNoTime && (difference.enter_wall_ns == kNoTime || enter < difference.enter_wall_ns))
        difference.enter_wall_ns = enter;
    }
    return difference;
  }
}

}  // namespace

std::vector<CallDifference> FindDifferences(const Incident&, const std::vector<GroupCalls>& groups) {
  std::vector<CallDifference> differences;
  for (const GroupCalls& group : groups)
    if (auto difference = FirstDifference(group)) differences.push_back(std::move(*difference));
  return differences;
}

}  // namespace tacet
