// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/incident.h"
#include "model/subject.h"

namespace tacet {

// An operation in which the time of these ranks was up.
struct TimedOutCall {
  std::string group;  // as the watchdogs name it; empty: they do not
  OpKind op = OpKind::unknown;
  int64_t seq = -1;
  std::vector<Rank> ranks;       // sorted
  const Event* first = nullptr;  // a line that tells it, the watchdog's own timeout before any other
  int64_t group_size = -1;       // as the numbers of elements tell it
  std::string name{};            // the description of the group, where a line has one
};

// How many ranks take part, by the elements that go in and come out of an all_gather or a reduce_scatter; -1 where they
// do not tell it.
int64_t GroupSizeOf(const Event& timeout);

// An all_reduce of one element: PyTorch's barrier is one, and little else.
bool IsLikeABarrier(const Event& timeout);

// The watchdog looks at its operations every second or so. One that it finds overdue long after the limit shows that
// it stood still itself.
bool IsFoundLate(const Event& timeout);

// Who timed out where, by the watchdogs' words. One rank may print "Watchdog caught collective operation timeout" and
// nothing more, another only "detected by watchdog at work: 1580": both waited in #1580.
struct TimeoutCensus {
  std::vector<TimedOutCall> calls;  // that of the most ranks first; each rank is in one of them
  std::vector<Rank> unheard;        // no line of any kind is from them, and they may be members of such a group
  std::vector<Rank> outside;        // no line is from them either, and they are members of none of these groups
  std::vector<Rank> printing;       // the program's own lines are from them, and none of a timeout or of another event
  size_t heard = 0;                 // of how many ranks there are lines
  std::vector<Subject> nameless;    // processes of the job whose lines tell no rank: each is one of the unheard
  std::vector<Rank> completed;      // by their counters they have completed the lowest of these calls
  const Event* proof_of_completed = nullptr;
  std::string bar;              // work that goes on in the same output meanwhile: "Tokenizing: 36%"
  std::vector<Rank> bar_ranks;  // whose it is, where lines tell it (Event::ranks of a watchdog's timeout)

  explicit operator bool() const { return !calls.empty(); }
  const TimedOutCall* Of(Rank rank) const;
};

// Processes of the job that speak, and of which no line tells the rank.
std::vector<Subject> NamelessProcesses(const Incident& incident);

TimeoutCensus CountTimeouts(const Incident& incident);

}  // namespace tacet
