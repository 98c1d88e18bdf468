// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/process/signs_of_life.h"
#include "analysis/timeouts/nameless_waits.h"

namespace tacet {

// Gloo's ranks raise where they wait, when their time is up or when the first of them has gone. Where all ranks of a
// job raised so, and not all in the same operation, they issue different operations: each waits for the others in its
// own.
struct PartedWait {
  const Event* raised = nullptr;  // the first that tells it
  std::vector<Rank> ranks;        // empty where tracebacks have no names
};

// IsMessageWait: it is exchanged with one other rank, which the traceback does not name.
bool IsMessageWait(const PartedWait& wait);

// At least two, or one of messages; those of most ranks first. Empty where all are in one collective, and where a
// traceback does not tell what it is.
std::vector<PartedWait> FindPartedWaits(const SignsOfLife& life, const NamelessWaits& nameless);

// Gloo ends a process that receives more bytes than it expects. Its peers lose it, and their tracebacks tell where they
// were. It was elsewhere where all of them were in the backward pass, since the sizes there are those of the model,
// which DDP compares before the first step; or where all of them were in one call of the program and it expected next
// to nothing. Where one rank alone had raised an error of its own before, and had continued, that one was elsewhere.
struct CheckedStranger {
  Rank odd;
  Rank stopped;                   // whom the check ended
  const Event* report = nullptr;  // of the check
  const Event* raised = nullptr;  // what the odd one continued after; null where the others' operation tells
  const Event* others = nullptr;  // where the others were; null where an error of its own tells
  explicit operator bool() const { return odd.known(); }
};

CheckedStranger FindCheckedStranger(const Incident& incident, const SignsOfLife& life, const NamelessWaits& nameless);

}  // namespace tacet
