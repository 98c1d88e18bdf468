// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/overdue.h"

#include <algorithm>
#include <set>

#include "analysis/calls/group_calls.h"

namespace tacet {
namespace {

// How long a rank that had something to wait for saw nothing end.
struct Quiet {
  int64_t longest_ns = 0;  // between two ends
  int64_t now_ns = 0;      // since the last one; 0 while nothing is open
  size_t ends = 0;
};

Quiet MeasureQuiet(const CallStream& stream) {
  Quiet quiet;
  int64_t last_end = kNoTime;
  const Call* open = nullptr;
  std::set<GroupIndex> used;  // the first operation of a group makes its connections: no measure of anything
  for (const Call& call : stream.calls) {
    if (call.enter_wall_ns == kNoTime) continue;
    if (!IsFinished(call)) {
      if (!open) open = &call;
      continue;
    }
    const bool first = used.insert(call.group).second;
    if (call.finish_wall_ns == kNoTime) continue;
    const int64_t since = last_end == kNoTime ? call.enter_wall_ns : std::max(last_end, call.enter_wall_ns);
    if (!first) quiet.longest_ns = std::max(quiet.longest_ns, call.finish_wall_ns - since);
    last_end = last_end == kNoTime ? call.finish_wall_ns : std::max(last_end, call.finish_wall_ns);
    ++quiet.ends;
  }
  if (open && last_end != kNoTime && used.contains(open->group))
    quiet.now_ns = stream.captured_wall_ns - std::max(last_end, open->enter_wall_ns);
  return quiet;
}

}  // namespace

bool IsOverdue(const Incident& incident) {
  Quiet all;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::black_box || !stream.knows_finish || stream.captured_wall_ns == kNoTime) continue;
    const Quiet one = MeasureQuiet(stream);
    all.longest_ns = std::max(all.longest_ns, one.longest_ns);
    all.now_ns = std::max(all.now_ns, one.now_ns);
    all.ends = std::max(all.ends, one.ends);
  }
  const Patience& limits = incident.patience;
  return all.ends >= limits.overdue_ends && all.now_ns >= limits.overdue_ns &&
         all.now_ns / limits.overdue_times >= all.longest_ns;
}

bool HasEndedNothing(const CallStream& stream) {
  return std::none_of(stream.calls.begin(), stream.calls.end(), [](const Call& call) { return IsFinished(call); });
}

bool IsFirstOfItsShape(const CallStream& stream, const Call& call) {
  return std::none_of(stream.calls.begin(), stream.calls.end(), [&](const Call& other) {
    return IsFinished(other) && other.group == call.group && other.kind == call.kind && other.peer == call.peer &&
           other.in_elements == call.in_elements && other.type == call.type;
  });
}

}  // namespace tacet
