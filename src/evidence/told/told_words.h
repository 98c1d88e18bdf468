// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// A sentence of whoever pasted the text, saying that the job stands still: "it hangs after two epochs". Not one that
// asks, supposes or denies it.
bool SaysItHangs(std::string_view line);
bool SaysItHangs(std::string_view line, std::string_view prose);  // ProseOf(line)

// ... that the job stops somewhere, which may be a hang or an end: "it still stops at the checkpoint".
bool SaysItStops(std::string_view line);

// ... that the job is slower than it should be: "twice as slow as before", "busbw is at 12, I would expect 180".
bool SaysItIsSlow(std::string_view line);

// ... that a collective gives wrong results.
bool SaysItIsWrong(std::string_view line);

// ... that its loss or its gradients are NaN or infinite.
bool SaysItIsNotFinite(std::string_view line);

// Adds what a pasted text says beside the lines that its readers understood: that the job hangs, stops, is slow or
// diverges, the error it ends with, and the first line that reports an error and that nobody read.
void AddToldWords(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
