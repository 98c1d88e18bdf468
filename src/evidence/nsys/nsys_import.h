// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/format.h"

namespace tacet {

// Reads a SQLite export of Nsight Systems. Every process that used a device becomes a speaker with a timeline.
void ReadNsys(const FileView& file, Fragment& out);

}  // namespace tacet
