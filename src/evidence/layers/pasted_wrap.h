// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// Does a log line, and not the rest of one, begin like this?
bool LooksLikeLineBegin(std::string_view line);

// Lines that a terminal cut at one width, or a mail before the word that would not fit.
bool IsWrapped(const std::vector<std::string_view>& lines);

// The lines in one piece again; what follows keeps its number.
std::string JoinWrapped(const std::vector<std::string_view>& lines);

}  // namespace tacet
