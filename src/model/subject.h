// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// Whom a statement is about, as far as the evidence goes: a rank, else a process by host and pid, else a host, else
// nobody in particular. "Process 4121 on gpu17" is an answer where no line tells a rank.
struct Subject {
  Rank rank;
  std::string host;
  int64_t pid = -1;
  int32_t device = -1;
  int32_t local_rank = -1;  // rank on its node, where only that is told

  bool known() const { return rank.known() || pid >= 0 || local_rank >= 0 || !host.empty(); }
  friend bool operator==(const Subject&, const Subject&) = default;
};

Subject SubjectOf(const Incident& incident, const Event& event);
Subject SubjectOf(const Incident& incident, Rank rank);

// Where a rank ran: by its own lines, else by those of the launcher that tells of its end. Empty where nothing does.
// Looks through all events.
std::string ToldHostOf(const Incident& incident, Rank rank);

// Everybody once, in the order in which they come.
std::vector<Subject> SubjectsOf(const Incident& incident, const std::vector<const Event*>& events);

// "rank 3", "local rank 3 (process 4121)", "process 4121 on gpu17", "a process on gpu17", "a process".
std::string SubjectWords(const Subject& subject);
// The same of several: "ranks 0 and 3", "process 4121 on gpu17 and 2 others".
std::string SubjectWords(const std::vector<Subject>& subjects);

}  // namespace tacet
