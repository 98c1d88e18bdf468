// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/format.h"

namespace tacet {

// Reads one Flight Recorder dump into `out`.
void ImportFlightRecorder(const FileView& file, Fragment& out);

}  // namespace tacet
