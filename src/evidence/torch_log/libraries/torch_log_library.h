// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// A line of a communication library that the table (torch_log_library_table.h) knows.
LineUse ReadLibraryLine(const LogLine& line, RecordList& out);

// Whether the words of an exception are those of such a line: the line says what happened, the exception only passes it
// on.
bool PassesOnLibraryWords(std::string_view text);

// What a kernel does that gave up waiting: it stops itself, and CUDA reports a launch failure.
void DropTrapsOfWaits(TorchLog& log);

}  // namespace tacet
