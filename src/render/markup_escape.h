// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// Text as it stands between tags or inside a quoted attribute of HTML.
std::string EscapeForHtml(std::string_view text);
// The same for XML, with what XML cannot hold at all made visible. `attribute`: line breaks are kept by a reference.
std::string EscapeForXml(std::string_view raw, bool attribute);

}  // namespace tacet
