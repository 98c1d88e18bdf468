// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/late_finish.h"

#include <map>

namespace tacet {
namespace {

// Every member's output needs every member's input: one cannot end it without the others.
bool IsSymmetric(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::all_gather || kind == OpKind::reduce_scatter ||
         kind == OpKind::barrier || kind == OpKind::all_to_all;
}

struct Operation {
  CallSource source;
  GroupIndex group;
  uint32_t seq;
  auto operator<=>(const Operation&) const = default;
};

// The whole limit had passed when the member came; a tenth is left to clocks.
bool CameAfterTheLimit(const Call& marked, const Call& other) {
  const int64_t limit = int64_t{marked.timeout_ms} * 1'000'000;
  return other.enter_wall_ns != kNoTime && other.enter_wall_ns / 2 - marked.enter_wall_ns / 2 >= limit / 2 * 9 / 10;
}

}  // namespace

void ForgiveLateFinishes(std::vector<CallStream>& streams) {
  std::map<Operation, std::vector<Call*>> marked;
  for (CallStream& stream : streams)
    for (Call& call : stream.calls)
      if (call.has(kEndedByAbort) && IsSymmetric(call.kind) && call.enter_wall_ns != kNoTime)
        marked[{stream.source, call.group, call.seq}].push_back(&call);
  if (marked.empty()) return;
  for (const CallStream& stream : streams) {
    for (const Call& call : stream.calls) {
      if (call.state != CallState::completed || call.has(kEndedByAbort) || call.has(kPointToPoint)) continue;
      const auto found = marked.find({stream.source, call.group, call.seq});
      if (found == marked.end()) continue;
      for (Call* one : found->second)
        if (one->kind == call.kind && one->in_elements == call.in_elements && CameAfterTheLimit(*one, call))
          one->flags = static_cast<uint8_t>(one->flags & ~kEndedByAbort);
    }
  }
}

}  // namespace tacet
