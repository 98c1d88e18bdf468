// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// An operation in which the time of these ranks was up.
struct TimedOutCall {
  std::string group;  // as the watchdogs name it; empty: they do not
  OpKind op = OpKind::unknown;
  int64_t seq = -1;
  std::vector<Rank> ranks;       // sorted
  const Event* first = nullptr;  // a line that tells it, the watchdog's own timeout before any other
};

// Who timed out where, by the watchdogs' words. One rank may print "Watchdog caught collective operation timeout" and
// nothing more, another only "detected by watchdog at work: 1580": both waited in #1580.
struct TimeoutCensus {
  std::vector<TimedOutCall> calls;  // that of the most ranks first; each rank is in one of them
  std::vector<Rank> unheard;        // no line of any kind is from them

  explicit operator bool() const { return !calls.empty(); }
  const TimedOutCall* Of(Rank rank) const;
};

TimeoutCensus CountTimeouts(const Incident& incident);

}  // namespace tacet
