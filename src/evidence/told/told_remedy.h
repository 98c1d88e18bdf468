// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "model/events/event_detail.h"

namespace tacet {

// A sentence of whoever pasted the text that says that a setting helps: "NCCL_P2P_DISABLE=1 works around it", "hangs
// without NCCL_P2P_DISABLE=1". Not one that asks, advises, or says that it does not help.
std::optional<ToldRemedy> ReadRemedy(std::string_view line);

}  // namespace tacet
