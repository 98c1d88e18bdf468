// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// Errors of JAX, XLA and TensorFlow: memory that ran out, a coordination service that cannot be reached, a process that
// did not come.
LineUse ReadJax(const LogLine& line, RecordList& out);

}  // namespace tacet
