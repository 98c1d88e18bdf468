// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "render/text_layout.h"
#include "report/profile/profile_report.h"

namespace tacet {

// Pipeline, replay, DDP, FSDP, utilisation and memory, each only where the job has it.
void AddStrategies(TextPage& page, const ProfileReport& profile, bool verbose);

}  // namespace tacet
