// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/ras/ras_parse.h"

namespace tacet {

struct RasDocument {
  size_t end = 0;         // offset just behind what was read as JSON
  size_t understood = 0;  // of it, from the beginning: all, or up to the last whole part of a cut document
  bool is_ras = false;    // an answer or a monitor event
  bool is_answer = false;
  bool truncated = false;
};

// Reads the JSON document that begins at `begin`. `line` is the line of `begin`; records get their own lines from it.
RasDocument ParseRasDocument(std::string_view text, size_t begin, uint32_t line, uint32_t answer,
                             std::vector<RasRecord>& records);

}  // namespace tacet
