// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// The figures that a job prints with its steps: loss, pace, values that were not finite. Empty where it prints none.
std::string TrainingFigures(const Incident& incident);

// Steps that rise line by line up to the end of what was pasted, and no sign of an error anywhere. That says that it
// trained as far as the text goes; not that every rank did right.
// Empty where they do not.
std::string TrainingWords(const Case& facts);

// "The output ends with 'training finished'.", "The last progress line shows step 320 of 320; ...": empty where nothing
// is seen of the end.
std::string EndSeenWords(const Case& facts);

// A line of the program, and no exception: "Loss is nan, stopping training".
inline bool SaysThatItStops(const Event& event) {
  return event.kind == EventKind::exception && event.Means(Meaning::diverged) && event.Means(Meaning::reported);
}

// "one restart by torchrun (local rank 2 had been ended by SIGSEGV, line 2)"; empty where none is told.
std::string RestartWords(const Incident& incident);

}  // namespace tacet
