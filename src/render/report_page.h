// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// The page of web/ with its style and scripts inside, joined at build time. It holds the marks {{title}}, {{plain}} and
// {{report}}, which RenderHtml fills.
std::string_view ReportPage();

}  // namespace tacet
