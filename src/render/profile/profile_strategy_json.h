// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_writer.h"
#include "report/profile/profile_report.h"

namespace tacet {

// The members "pipeline", "what_if", "ddp", "fsdp" and "utilisation"; null where the job has none.
void WriteStrategies(JsonWriter& json, const ProfileReport& profile);

}  // namespace tacet
