// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What XLA says of itself when it is slow: threads that wait for others before an operation, a compilation that takes
// minutes. Both are warnings, until it gives up.
LineUse ReadXlaWait(const LogLine& line, RecordList& out);

// A TPU that halted or whose driver reports a fatal error.
LineUse ReadTpuFault(const LogLine& line, RecordList& out);

}  // namespace tacet
