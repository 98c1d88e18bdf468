// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_parse.h"
#include "model/events/event.h"

namespace tacet {

// What a record tells, as the payload of its event.
EventDetail DetailOf(const TorchLogRecord& record);

// The kind of the event that a record becomes.
EventKind EventKindOf(TorchLogKind kind);

}  // namespace tacet
