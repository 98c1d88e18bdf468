// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/format.h"

namespace tacet {

// Reads a trace that lies in memory.
void ReadTorchTrace(const FileView& file, Fragment& out);

// Reads the raw bytes of a .json, .json.gz or .json.zst without ever holding the text: memory follows what is kept.
void ReadTorchTraceStream(const FileView& file, Fragment& out);

}  // namespace tacet
