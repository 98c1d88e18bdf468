// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// The pages of web/ with their style and scripts inside, joined at build time. Each holds the marks {{connect}},
// {{title}}, {{plain}} and {{report}}, which FillPage fills.
std::string_view ReportPage();
std::string_view ProfilePage();
std::string_view ComparisonPage();
std::string_view TopologyPage();
std::string_view BandwidthPage();

}  // namespace tacet
