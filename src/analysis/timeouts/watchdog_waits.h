// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/printed/told_laggards.h"
#include "model/incident.h"

namespace tacet {

// Collective WorkNCCL(SeqNum=29, OpType=ALLGATHER, ...) raised the following async exception: NCCL error: invalid usage
// A message of another length than expected ends so: the rank issued this call, and waits no more.
bool IsRefusedWork(const Event& event);

// Where the ranks of one group wait, by nothing but the words of their watchdogs: often all that is left of a hang.
struct WatchdogGroup {
  std::string name;                       // "" where the release prints no group: then all are taken for one
  bool whole_job = false;                 // the default group, or the only one there is
  std::map<Rank, const Event*> waits;     // first timeout of each rank
  std::map<Rank, const Event*> enqueued;  // the line that tells the last number a rank has enqueued
  std::map<Rank, const Event*> failed;    // NCCL's error in an operation: its rank issued that one, too
  // How far a rank was when it learned that somebody's time was up. What it did after that it did too late.
  std::map<Rank, const Event*> at_signal;
  int64_t LastEnqueued(Rank rank) const;
};

// Groups whose members cannot be told apart (two groups of one name) are left out.
std::vector<WatchdogGroup> ReadWatchdogGroups(const Incident& incident);

// Ranks that wait in another call than most of the group at the same number.
struct WatchdogDifference {
  bool size = false;  // another size of the same operation, else another operation
  bool tied = false;  // as many wait in the one as in the other: nobody is the odd one
  const Event* usual = nullptr;
  const Event* odd = nullptr;
  std::vector<Rank> usual_ranks, odd_ranks;
  // By the counters each of the odd ranks has enqueued more than any of the others: the hosts of ranks that issue the
  // same calls, only with another size, stop at the same number.
  bool odd_is_ahead = false;
  const Event* ahead = nullptr;      // the line that tells it
  std::vector<const Event*> failed;  // calls that failed: their ranks do not wait
  int64_t others_enqueued = -1;      // the last number that any of the others has enqueued
};
std::vector<WatchdogDifference> FindWatchdogDifferences(const Incident& incident);

// NumelIn of the operation that a rank waited or failed in; -1 where the line does not tell it.
int64_t ElementsOf(const Event& call);

// Operations of which every rank passes the same number of elements.
bool HasEvenSizes(OpKind kind);
// Only of these does an end on one rank prove that all others came.
bool EndsForAllAtOnce(OpKind op);

// All ranks but this one wait in one call of the whole job, and what it issued under that number is not told. It is
// another call: either this rank completed it, which nobody can before all have issued it, or NCCL found that
// messages of the ranks do not fit.
struct WatchdogStranger {
  Rank rank;
  std::vector<Rank> others;
  const Event* wait = nullptr;      // of the others
  const Event* counters = nullptr;  // of this rank
  const Event* misfit = nullptr;    // NCCL's word; null: the rank completed its call
  explicit operator bool() const { return rank.known(); }
};
WatchdogStranger FindWatchdogStranger(const Incident& incident);

// One rank alone has issued the operation in which its time was up: when the others learned of it, each of them had
// completed all that it had issued, up to the operation before.
struct LoneIssuer {
  Rank rank;
  std::vector<Rank> others;
  int64_t number = -1;            // of the operation
  const Event* wait = nullptr;    // the report of its watchdog; null where only the counters are there
  const Event* own = nullptr;     // its counters
  const Event* theirs = nullptr;  // those of one of the others
  explicit operator bool() const { return rank.known(); }
};
LoneIssuer FindLoneIssuer(const Incident& incident);

// Ranks that have not enqueued what the others wait in, or that report nothing while all others wait in one operation.
std::vector<ToldLaggard> FindWatchdogLaggards(const Incident& incident);

}  // namespace tacet
