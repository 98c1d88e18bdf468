// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_parse.h"
#include "model/event_detail.h"

namespace tacet {

// What a record tells, as the payload of its event.
EventDetail DetailOf(const TorchLogRecord& record);

}  // namespace tacet
