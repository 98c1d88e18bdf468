// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// An error that is written inside of something else, on one line:
//   {"level": "error", "ts": 1794700812.1, "msg": "step failed", "error": "CUDA error: ...", "stacktrace": "..."}
//   {"error": {"message": "... CUDA error: uncorrectable ECC error encountered\n ...", "type": "api_error"}}
//   Error code: 500 - {'error': {'message': 'CUDA out of memory. ...', 'code': 500}}
//   Run k2 errored: RuntimeError('Caught RuntimeError in worker process 0.\nTraceback (most recent call last):\n ...
// Becomes the lines that would have been printed without: message, error, traceback. They stay one line of the text
// (with '\r' between them, as a terminal draws a line anew), so that all of them cite the line they come from.
// False for any other line, and for a record of which nothing failed.
bool ReadWrappedError(std::string_view line, std::string* text);

// From the first bytes of a text; not of a document in JSON, which has a reader of its own.
bool HasWrappedErrors(std::string_view prefix);

// The whole text with these lines opened. Every line keeps its number.
std::string OpenWrappedErrors(std::string_view bytes);

}  // namespace tacet
