// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/incident.h"

namespace tacet {

// An NCCL log that ends behind a whole line looks like that of a rank which stopped there. Where other files of the
// same rank show that it went on, the log was cut: what it does not hold proves no absence (CallStream::cut).
void MarkCutLogs(Incident& incident);

}  // namespace tacet
