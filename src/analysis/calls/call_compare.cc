// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/call_compare.h"

#include <algorithm>

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

template <typename T>
bool Differ(T a, T b, T unknown) {
  return a != unknown && b != unknown && a != b;
}

}  // namespace

bool IsComparable(const Call& call) {
  return call.kind != OpKind::unknown && call.kind != OpKind::coalesced && !call.has(kCoalescedMember) &&
         !call.has(kCoalescedEnd);
}

std::optional<CallAspect> CompareCalls(const Call& a, const Call& b) {
  if (!IsComparable(a) || !IsComparable(b)) return std::nullopt;
  if (a.kind != b.kind) return CallAspect::operation;
  if (a.kind == OpKind::barrier) return std::nullopt;
  if (Differ(AgreedElements(a), AgreedElements(b), int64_t{-1})) return CallAspect::size;
  if (Differ(a.type, b.type, DataType::unknown)) return CallAspect::type;
  if (ReducesData(a.kind) && Differ(a.reduction, b.reduction, ReduceOp::unknown)) return CallAspect::reduction;
  if (HasRoot(a.kind) && Differ(a.peer.value, b.peer.value, -1)) return CallAspect::root;
  return std::nullopt;
}

bool SameCall(const Call* a, const Call* b) { return a && b && !CompareCalls(*a, *b); }

bool KnowCallSites(const Call& a, const Call& b) { return a.stack != StackId{} && b.stack != StackId{}; }
bool SameCallAtSite(const Call* a, const Call* b) {
  return SameCall(a, b) && (!KnowCallSites(*a, *b) || a->stack == b->stack);
}

bool AllAreRecorded(const GroupCalls& group) {
  return std::all_of(group.members.begin(), group.members.end(), [](const MemberCalls& m) { return m.stream; });
}

const MemberCalls* MemberOfRank(const GroupCalls& group, Rank rank) {
  for (const MemberCalls& member : group.members)
    if (member.rank == rank) return &member;
  return nullptr;
}

}  // namespace tacet
