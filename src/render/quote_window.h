// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// The part of a long line that holds most of what is said about it: names and numbers of `about` that stand in the
// line. A part that does not begin with the line begins with "...". A line that fits into `room` bytes, or has nothing
// of it further behind, is given whole.
std::string QuoteWindow(std::string_view line, std::string_view about, size_t room);

}  // namespace tacet
