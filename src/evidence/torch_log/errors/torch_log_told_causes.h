// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/torch_log_line.h"
#include "model/events/event.h"

namespace tacet {

// Subjects of what is told of the fabric manager.
inline constexpr std::string_view kNoSwitch = "no NVSwitch", kFabricManagerStopped = "not running";

// Lines that say in so many words what is wrong: a full disk or /dev/shm, a port that is taken, GPUs or adapters that
// cannot reach memory, a model that differs between ranks.
LineUse ReadToldCause(const LogLine& line, RecordList& out);

// Lines of Kubernetes, of a cloud or of torchrun that tell that somebody outside ended the job. Slurm, PBS and LSF have
// readers of their own, which add the same record.
LineUse ReadOutsideKill(const LogLine& line, RecordList& out);

void AddSchedulerKill(const LogLine& line, SchedulerKill kind, std::string_view object, RecordList& out,
                      std::string_view use = {});

// "[gpu17:4121:0] ...", "[gpu17:4121 :0:4121] ...": the process that UCX speaks in.
void TakeUcxOwner(std::string_view text, TorchLogRecord& record);

// True where one of the two above makes a record of the line: then it stands in the output of a job.
bool TellsCause(std::string_view text, const KeywordSet& keywords);

}  // namespace tacet
