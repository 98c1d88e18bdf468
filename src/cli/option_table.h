// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// One option as the help of its command tells it. The help is the one table of options: the parser, completions, man
// pages and docs/commands.md are all read from it.
struct OptionRow {
  std::string name;                  // "--format"
  char letter = 0;                   // 'f'; 0 for none
  std::string value;                 // "FILE"; empty for a switch
  std::string text;                  // what it does, on one line
  std::vector<std::string> choices;  // "text", "json", ... where the text lists the values
};

// The rows of a help text:
//   -f, --format F      text (default), json, html, junit or sarif
//       --gdr on|off    GPUDirect RDMA (default on)
//       --algo L, --proto L
//                       NCCL_ALGO and NCCL_PROTO
// A value starts with a capital letter or has '|' in it, one space behind the name.
std::vector<OptionRow> ReadOptionRows(std::string_view help);

}  // namespace tacet
