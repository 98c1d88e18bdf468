// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// The answer for one job: all findings, causes before what they explain, and what stays open.
struct Diagnosis {
  Status status = Status::undetermined;
  std::string cause;              // empty: none named
  std::vector<Rank> ranks;        // guilty, or suspected when nothing is proven
  std::vector<Subject> subjects;  // the same, and processes or hosts where no rank is known
  Confidence confidence = Confidence::possible;
  std::string headline;
  bool progresses = false;  // of an undetermined one: no line reports a fault, and the job was seen to make progress
  std::vector<Finding> findings;  // findings[0] carries the verdict
  std::vector<CannotTell> open;
};

// Judges one job by every rule and settles the verdict: the cause that nothing explains, else who is suspected, else
// what happened to the job, else whether the evidence suffices to call the job healthy.
Diagnosis Diagnose(const Incident& incident, const Analyses& analyses, const StandstillView& standstill);

}  // namespace tacet
