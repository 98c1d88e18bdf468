// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/incident.h"

namespace tacet {

// The words by which a job, its launcher or its scheduler says that it came to its end.
struct SaidEnd {
  const Event* first = nullptr;  // the program says it first, its launcher and the scheduler say it again
  const Event* last = nullptr;
  bool of_job = false;    // every output holds such a line, and it can mean nothing but the whole job
  int64_t errors = 0;     // that lines before it report, behind which the job went on
  std::string first_error;  // the words of one of them, where they are known
  explicit operator bool() const { return first != nullptr; }
};

// Empty where no line says so, or where something speaks against it: steps or errors that come after it, text around
// the log that tells of trouble. Words that may mean less than the job ("done") count only as the end of its one
// output: of ranks whose outputs are seen one by one calls are asked for, since they may all end well with wrong
// results.
SaidEnd FindSaidEnd(const Incident& incident);

// The record of the whole run says that its command exited with 0.
bool HasRecordedFinish(const Incident& incident);

// Rank 0, which runs the store, may leave first when all are done, and steps of Slurm are ended: behind the words of
// the end this is harmless.
bool IsFarewell(const Event& event);

// Slurm ended a step and gives no reason. Behind the words of the end it is one that ran beside the program, such as a
// monitor, or what was left of it.
bool IsStepEnd(const Event& event);

}  // namespace tacet
