// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/told/told_lines.h"
#include "model/fragment.h"

namespace tacet {

// The event ends a process, or tells why it ended.
bool EndsOrFails(const Event& event);

// The error that a sentence around a log tells: "I get `CommError: Run initialization has timed out` on process 0",
// "it fails with a RuntimeError", "I see the following error:" and its words below. It names what a traceback that is
// cut before its last line does not; where the log shows no end at all it is an exception of its own.
void AddToldError(std::string_view bytes, const AroundTheLog& around, Fragment& fragment);

}  // namespace tacet
