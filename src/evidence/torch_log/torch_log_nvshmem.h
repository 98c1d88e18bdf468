// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// NVSHMEM, which expert-parallel kernels use between hosts: what its transports over InfiniBand cannot set up.
LineUse ReadNvshmem(const LogLine& line, RecordList& out);

}  // namespace tacet
