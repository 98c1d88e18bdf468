// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/diagnosis.h"

namespace tacet {

// What is known of a hang or crash whose cause no rule names: the deciding line, and where to begin. Puts that finding
// first; without a line that tells it there is none. It blames nobody. `before`: a line that reports an error no rule
// knows.
void AddOpenFinding(const Case& facts, const Event* told, Diagnosis& diagnosis, const Event* before = nullptr);

// "Is the process alive (ps)? ...": what to look at in a process that is waited for; dmesg only where no kernel log is
// here. Of a job that is gone nothing but what it left can be read.
std::string AliveQuestions(const Incident& incident, bool one, bool gone = false);

// The record of a whole run: it tells the exit code of its command and nothing of its processes.
bool IsEndOfRun(const Event& event);

// The line tells what could not be started: "the shell cannot find torchrun".
inline bool NeverStarted(const Event& told) {
  return told.kind == EventKind::process_exited && told.Means(Meaning::reported);
}

// Some line tells that a process of the job has ended.
bool IsGone(const Case& facts);

// Lines at INFO level of NCCL's log are among the files: nobody need be told to ask for them.
bool HasNcclInfo(const Incident& incident);

// The same process goes on with its setup behind the warning: nothing followed from it.
bool SetupWentOn(const Incident& incident, const Event& warning);

// A warning of NCCL's for which no rule has a word, in a log that does not tell how the job ended: it is quoted, as a
// note; else RCCL's advice on the host. False where there is none.
bool QuoteUnknownWarning(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
