// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace tacet {

// Commands and options of one scheduler, or of all where nothing tells which one ran the job.
struct SchedulerWords {
  std::string_view record;   // what shows how it ended the job
  std::string_view time;     // what asks for more time
  std::string_view requeue;  // what lets it start the job again
  std::string_view cancel;   // who cancels a job
};

// Of the scheduler that tells of this end or, where it does not say who it is, of another one.
const SchedulerWords& WordsOfScheduler(const Incident& incident, const Event& kill);

// The last line of progress before the job was ended, where the times of both are known and it is so young that the
// job was most likely still running; nullptr: not told, or it hung before.
const Event* ProgressShortlyBefore(const Case& facts, const Event& kill);

}  // namespace tacet
