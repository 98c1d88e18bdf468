// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/torch_log_line.h"
#include "model/events/event.h"

namespace tacet {

// A launcher that could not start the ranks. What is told first tells the reason; later lines repeat it.
void AddLaunchFailure(const LogLine& line, LaunchProblem problem, std::string_view reason, std::string_view host,
                      RecordList& out);

// The daemons of mpirun, as a shell on another node does not find them: "bash: orted: command not found".
LineUse ReadMissingDaemon(const LogLine& line, RecordList& out);

// What stands behind "srun: error: ".
LineUse ReadSrunFailure(const LogLine& line, std::string_view text, RecordList& out);

// Steps of a training show that ranks were started: what could not be was another step, or was tried again.
void DropPassedLaunches(TorchLog& log);

}  // namespace tacet
