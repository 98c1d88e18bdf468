// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_reading.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/calls/call_alignment.h"
#include "analysis/calls/call_compare.h"

namespace tacet {
namespace {

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
    if (!SameCallAtSite(a, b)) {
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
    if (back > 0 && same_place && KnowCallSites(*own, *same_place) && own->stack != same_place->stack &&
        own->stack != others->stack)
      return true;  // the call that is too many
    if (!SameCall(own, others) || !KnowCallSites(*own, *others) || own->stack != others->stack) return false;
  }
  return false;
}

// The others stand in the call, so that nothing shows how they would go on; but the odd one goes on as everybody did
// before: it left this call out.
//     usual  a b a b c        odd  a b a b a b
bool GoesOnWithout(const MemberCalls& odd, const MemberCalls& usual, uint32_t seq) {
  constexpr uint32_t kFarthest = 512;
  if (usual.Find(seq + 1) || !odd.Find(seq + 1) || SameCallAtSite(odd.Find(seq + 1), usual.Find(seq))) return false;
  for (uint32_t back = 2; back < std::min(seq, kFarthest); ++back)
    if (SameCallAtSite(odd.Find(seq), usual.Find(seq - back)) &&
        SameCallAtSite(odd.Find(seq + 1), usual.Find(seq - back + 1)))
      return true;
  return false;
}

constexpr uint32_t kLongestRound = 512;

bool Repeats(const MemberCalls& member, uint32_t from, uint32_t length) {
  for (uint32_t k = 0; k < length; ++k)
    if (!SameCall(member.Find(from + k), member.Find(from + length + k))) return false;
  return true;
}

// The number of the last call like `call` below `seq`, 0 none.
uint32_t LastLike(const MemberCalls& member, const Call& call, uint32_t seq) {
  for (uint32_t back = 1; back <= 16 * kLongestRound && back < seq; ++back) {
    const Call* earlier = member.Find(seq - back);
    if (!earlier) return 0;
    if (SameCall(earlier, &call)) return seq - back;
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
    if (SameCall(call, usual.Find(seq + length)) && Repeats(usual, seq - length, length) &&
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
      if (const Call* call = member.Find(seq + i); first && call && !SameCall(first, call)) return false;
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
      longer.size(), shorter.size(), [&](size_t a, size_t b) { return SameCallAtSite(longer[a], shorter[b]); },
      [&](size_t a, size_t b) { return SameCallAtSite(longer[a], longer[b]); });
}

// Whether the calls that were taken out explain more than that each of them was issued in place of another.
//     longer  x a x a x a        shorter  a a a a a a
bool ExplainsMore(const CallAlignment& alignment, const std::vector<const Call*>& longer,
                  const std::vector<const Call*>& shorter) {
  const size_t both = std::min(longer.size(), shorter.size());
  size_t differ = 0;
  for (size_t i = 0; i < both; ++i) differ += !SameCall(longer[i], shorter[i]);
  const auto dropped = static_cast<size_t>(
      std::count_if(alignment.dropped.begin(), alignment.dropped.end(), [&](size_t place) { return place < both; }));
  if (differ != dropped) return differ > dropped;
  const Call &own = *longer.front(), &others = *shorter.front();
  return KnowCallSites(own, others) ? own.stack != others.stack : own.kind != others.kind;
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

// Calls that are too many may look like those that the others issue at the same place, so that the difference shows
// only later. A line of the program that none of the others passes shows where they begin.
//     usual  a@58 a@58 b@58        odd  a@42 a@42 a@58 a@58 b@58
void BeginAtForeignSite(const GroupCalls& group, CallDifference& difference) {
  constexpr uint32_t kFarthest = 256;
  const MemberCalls* odd = MemberOfRank(group, difference.odd.front());
  const MemberCalls* usual = MemberOfRank(group, difference.sides[0].ranks.front());
  if (!odd || !usual) return;
  std::set<StackId> sites;
  for (size_t i = 0; i < usual->calls.size(); ++i) sites.insert(usual->At(i).stack);
  uint32_t begin = 0;
  for (uint32_t back = 1; back < std::min(difference.seq, kFarthest); ++back) {
    const Call* own = odd->Find(difference.seq - back);
    const Call* others = usual->Find(difference.seq - back);
    if (!own || !others) break;
    const bool foreign = KnowCallSites(*own, *others) && !sites.contains(own->stack);
    if (!foreign && begin > 0) break;
    if (foreign) begin = difference.seq - back;
  }
  if (begin == 0) return;
  const auto alignment = Align(CallsFrom(*odd, begin), CallsFrom(*usual, begin));
  if (!alignment || alignment->dropped.front() != 0 || alignment->dropped.back() + 1 != alignment->dropped.size())
    return;
  difference.seq = begin;
  difference.count = static_cast<uint32_t>(alignment->dropped.size());
  difference.every = 0;
  difference.alike = alignment->alike;
  for (CallSide& side : difference.sides)
    if (const MemberCalls* member = MemberOfRank(group, side.ranks.front()))
      if (const Call* call = member->Find(begin)) side.call = call;
}

}  // namespace

void ReadCallContinuation(const GroupCalls& group, CallDifference& difference) {
  if (difference.odd.empty()) {
    difference.reordered = ReorderedCalls(group, difference.seq);
    return;
  }
  const MemberCalls* odd = MemberOfRank(group, difference.odd.front());
  const MemberCalls* usual = MemberOfRank(group, difference.sides[0].ranks.front());
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

void BeginWhereItBegan(const GroupCalls& group, CallDifference& difference) {
  if (difference.reading == CallDifference::Reading::extra && difference.odd.size() == 1)
    BeginAtForeignSite(group, difference);
}

}  // namespace tacet
