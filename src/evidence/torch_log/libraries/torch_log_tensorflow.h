// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// The end of a data set, as TensorFlow tells it. Every epoch ends with one; it matters only where the others of a
// collective were cancelled by it.
LineUse ReadEndOfData(const LogLine& line, RecordList& out);

// Takes away those that nobody was cancelled by.
void DropUsualEndsOfData(TorchLog& log);

}  // namespace tacet
