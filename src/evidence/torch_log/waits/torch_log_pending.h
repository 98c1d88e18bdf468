// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What Ray, Kubernetes and Slurm say of a job that they have not started: demands that are pending, pods that cannot be
// scheduled, rows of squeue. Of the record: host = who says it, object = pod or job, function = the demand, subject =
// its reason, value = PendingWhy, value2 = seconds, count / count_out = GPUs used / at all, seq = GPUs asked for.
LineUse ReadPending(const LogLine& line, RecordList& out);

// Takes away what was started after all, and tables in which nothing waits.
void DropSettledWaits(TorchLog& log);

}  // namespace tacet
