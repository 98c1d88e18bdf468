// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "model/fragment.h"

namespace tacet {

// A log reaches its reader through runtimes, shippers, web pages and mails, and each puts something around its lines.
// The layers are taken off one by one, outermost first, before any format is asked.
struct TextLayer {
  std::string text;       // without the layer; a line keeps the number it has in the file, as far as possible
  std::string done;       // for the user: "unpacked from Docker's JSON log"
  bool limited = false;   // there was more than `most`
};

// Nothing where the text is as its writer wrote it.
std::optional<TextLayer> TakeOffLayer(std::string_view bytes, size_t most);

// From the first bytes of a file.
bool HasLayer(std::string_view prefix);

// Lines were read from a text without its layers: what they cite is where the same line begins in the file itself.
void CiteOuterText(std::string_view outer, Fragment& fragment);

}  // namespace tacet
