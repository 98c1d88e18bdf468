// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacet {

// A table that a log store exported: the first row names the columns, one of them holds the lines.
//   Date,Host,Service,Message
//   "2026-11-15T00:20:00.123Z","i-0aa1","train","step 1, loss ""2.5"""
bool IsCsvLog(std::string_view prefix);

// The column of lines alone; each stands at the number its row has in `bytes`.
std::string TakeCsvLines(std::string_view bytes, size_t most);

}  // namespace tacet
