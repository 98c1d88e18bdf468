// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "render/text_layout.h"
#include "report/report.h"

namespace tacet {

// "Read 16 files, 2.1 MB: 4 flight_recorder, 12 nccl_log. 0.3 % of the bytes were not recognized."
void AddInputLine(TextPage& page, std::string_view first, const Report& report);
// That line and what was wrong with the files, alike remarks folded; with `verbose` every file and every remark.
void AddInputs(TextPage& page, const Report& report, bool verbose);

}  // namespace tacet
