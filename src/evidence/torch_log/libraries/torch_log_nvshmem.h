// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// NVSHMEM, which expert-parallel kernels use between hosts: what its transports over InfiniBand cannot set up.
LineUse ReadNvshmem(const LogLine& line, RecordList& out);
// A transport that was missing, where ranks tell rates further down: they did without it.
void DropPassedTransports(TorchLog& log, uint32_t last_rate_line);

}  // namespace tacet
