// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/events/event_detail.h"

namespace tacet {

// A sentence of whoever pasted the text that says that a setting helps: "NCCL_P2P_DISABLE=1 works around it", "hangs
// without NCCL_P2P_DISABLE=1". Not one that asks, advises, or says that it does not help.
std::optional<ToldRemedy> ReadRemedy(std::string_view line);

// A sentence that says that a setting makes the job slower, and that it is no remedy: "with NCCL_IB_DISABLE=1 the steps
// take twice as long", "it is 3 times faster without NCCL_P2P_DISABLE=1". As it is written; empty where it does not.
std::string ReadSlowSetting(std::string_view line);

}  // namespace tacet
