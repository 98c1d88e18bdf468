// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// A rank that somebody else's report names as lagging: NCCL RAS by its launch counts, PyTorch's desync report,
// monitored_barrier, or the watchdogs' words. Weaker than a record of the calls: counts are those of one moment, and
// reports name victims too.
struct ToldLaggard {
  Rank rank;
  SourceRef source;
  std::string words;  // "has launched 12 all_reduce where its peers launched 13"
  std::vector<Rank> waiters;
  GroupIndex group = GroupIndex::none;
  bool stands = false;             // asked twice, and neither it nor its peers launched anything in between
  bool not_issued = false;         // surely: by its own counts when the others' time was up, or by a monitored barrier
  const Event* arrived = nullptr;  // it issued the operation after all, when the time of the others was up
  bool momentary = false;  // one operation behind, asked once or while all go on: so is somebody in most running jobs
};

// Most ranks of a communicator are behind a few, and the report names only the few: all that it tells is who leads.
struct ToldLead {
  std::vector<Rank> leaders;
  int64_t behind = 0;  // how many ranks have launched less
  int64_t most = 0, least = 0;
  std::string operation;  // "all_gather", "operations" where the report tells no kinds apart
  SourceRef source;
  bool stands = false;  // asked twice, and nobody launched anything in between
  explicit operator bool() const { return behind > 0; }
};
ToldLead FindToldLead(const Incident& incident);

// Sorted by rank. A rank that is behind in one communicator but ahead in another waits itself and is not listed.
std::vector<ToldLaggard> FindToldLaggards(const Incident& incident);

}  // namespace tacet
