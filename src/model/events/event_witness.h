// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "model/events/event.h"

namespace tacet {

// Who tells it. The process itself knows most of what it did and nothing of its own end; peers know only that it does
// not answer; the kernel, the launcher and the scheduler saw it end. A reporter is whoever
// pasted the log.
enum class Witness : uint8_t { self, peer, launcher, kernel, scheduler, tool, reporter };

std::string_view Name(Witness witness);

Witness WitnessOf(const Event& event);

}  // namespace tacet
