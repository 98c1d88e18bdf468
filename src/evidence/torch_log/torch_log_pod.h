// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What Kubernetes and its operators tell of the end of a pod's process.
LineUse ReadPodEnd(const LogLine& line, RecordList& out);

}  // namespace tacet
