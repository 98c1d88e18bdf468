// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// The first line of a text, where an empty one or the log in its fence follows it; empty where there is none.
std::string_view TitleOf(std::string_view bytes);

// A title without what stands in front of it ("# ", "[Bug]: ", "Question:") and without settings and options.
std::string TitleWords(std::string_view title);

// "[BUG] server hang", "Hang using the compiled tokenizer", "NCCL test hangs on two GPUs"
bool TitleSaysItHangs(std::string_view title);

}  // namespace tacet
