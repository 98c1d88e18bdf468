// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// What a sentence that tells of a hang or of idle GPUs is about. All but BlamesATool take small letters.

// "jobs are forever pending": they wait for their turn, and none of them runs.
bool SpeaksOfAQueue(std::string_view part);
// Of a tool that somebody runs beside the job, and not of the job: "nvidia-bug-report.sh freezes", "py-spy hangs".
bool SpeaksOfATool(std::string_view part);
// ... where its name stands in backticks. Takes the line as it is written.
bool BlamesATool(std::string_view line);

// "a lot of GPU idle time between each iteration": what a step waits for is on the host.
bool StatesIdleBetweenSteps(std::string_view part);
// "the GPU utilization of 6 of 8 GPUs goes to 100 %, while the remaining 2 go down to 0 %"
bool StatesThatSomeAreIdle(std::string_view line);

}  // namespace tacet
