// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What gRPC adds below an error of TensorFlow or JAX, and its own word for a peer that cannot be reached.
LineUse ReadGrpc(const LogLine& line, RecordList& out);

}  // namespace tacet
