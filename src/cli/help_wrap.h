// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// A help text in lines of at most `width` columns: paragraphs are wrapped, descriptions stay in the column behind their
// options, and examples are continued with a backslash. A text that fits is left as it is.
std::string FitHelp(std::string_view help, size_t width);

}  // namespace tacet
