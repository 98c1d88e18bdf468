// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace tacet {

// Which lines stand in a fenced block below a heading such as "### Expected behavior": the writer wishes for them, and
// nothing printed them. Empty lines are none.
std::vector<bool> FindExpectedBlocks(const std::vector<std::string_view>& lines);
bool HasExpectedBlock(const std::vector<std::string_view>& lines);

}  // namespace tacet
