// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// Why the text is not well-formed XML; empty when it is. Knows what a renderer may write: declaration, elements,
// attributes, text, character references, comments and CDATA. No DTD.
std::string FindXmlError(std::string_view xml);

// Why the text must not reach a terminal or a strict reader: malformed UTF-8, or a control character that is neither
// line break nor tab.
std::string FindByteError(std::string_view text);

}  // namespace tacet
