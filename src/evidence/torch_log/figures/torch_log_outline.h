// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/log_outline.h"
#include "model/fragment.h"

namespace tacet {

// What a text shows by the shape of its lines alone: levels, times of day, ranks that print them, warnings that are no
// fault. Texts of more than one MiB are not looked at.
LogOutline FindOutline(std::string_view bytes);

// It is the log of a job: enough of its lines have that shape, and one at least speaks of ranks, GPUs or training.
bool IsOutlineOfAJob(std::string_view bytes);

// Adds it to what was read. Lines that only the outline understands count where no other line was understood.
void AddOutline(std::string_view bytes, Fragment& out);

}  // namespace tacet
