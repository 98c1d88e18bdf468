// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// A line of a program that reports an error, by its shape alone: "ERROR: ...", "Assertion failed", "exited with code
// 3". Not a line that says itself that it is less ("INFO", "WARNING"), and not a sentence.
bool ReportsError(std::string_view line);

// "  File "/venv/app.py", line 109, in main", also where a logger marks each line of a traceback.
bool IsFrame(std::string_view line);

// Its program does not go on behind such a line: an assertion, a fatal line of a logger, a panic.
bool EndsItsProgram(std::string_view line);

// How a process ended, and the launcher's own words about it: what follows from an error.
bool ReportsAnEnd(std::string_view line);

}  // namespace tacet
