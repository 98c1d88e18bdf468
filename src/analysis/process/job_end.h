// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/printed/output_front.h"
#include "analysis/process/said_end.h"
#include "analysis/process/signs_of_life.h"

namespace tacet {

enum class JobEnding {
  open,      // nothing tells
  finished,  // it went on, or says that it came to its end
  crashed,   // processes ended with an error, or were ended
  hung,      // somebody waited until a limit was reached, or output stopped for long
};

// What happened to the job, told by how it ended and what moved last, never by who did it. Needs no rank.
struct JobEnd {
  JobEnding kind = JobEnding::open;
  const Event* told = nullptr;  // the first sign of it; null where only records or the absence of output tell
  int64_t quiet_ns = 0;         // the output stopped for so long before something ended the job
  bool looked_at = false;       // somebody took the stacks of all ranks before that
  SaidEnd said;                 // open and finished only: the output says that the job is done
};

JobEnd ReadJobEnd(const Incident& incident, const SignsOfLife& life, const Outcome& outcome,
                  const OutputFront& front = {});

// A sign that a process did not survive, whatever the reason: an uncaught error, a signal, an exit code, a kill.
bool IsSignOfCrash(const Event& event);
// A sign that somebody waited in vain for longer than a limit.
bool IsSignOfHang(const Event& event);

}  // namespace tacet
