// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// What an error says is known by its words, whatever stands around them: an exception, a warning of NCCL, the output of
// a benchmark, a sentence, a quotation. Adds the error that an unread line or a title tells in such words.
// `titled`: the line is the title; `outside`: it is of whoever pasted the text, and not of the log.
void AddToldPhrase(std::string_view line, bool titled, bool outside, const SourceRef& source, Fragment& fragment);

// A line that waits for a peer at an address, in the words of any program: in a job that is said to hang, or where it
// is said again and again up to the end. A peer that does not answer, as connect_failed.
void AddAwaitedAddress(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
