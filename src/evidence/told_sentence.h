// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Words and hardly anything else: no brackets, times or assignments, and at least four words.
bool IsSentence(std::string_view line);

}  // namespace tacet
