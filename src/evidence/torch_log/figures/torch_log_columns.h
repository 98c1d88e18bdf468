// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/torch_log/figures/torch_log_figure_names.h"
#include "evidence/torch_log/figures/torch_log_named_numbers.h"

namespace tacet {

// A table that a program prints row by row under a heading that stands above it once or now and then, with bars, commas
// or blanks between the cells:
//   rank | data ms | compute ms | sync ms       iter   temp    d_loss    g_loss       step,rank,fwd_s,comm_s
//      0 |     0.2 |        2.7 |   468.6          0   1.00    1.4536    0.7642       12,3,0.0411,0.3900
class ColumnReader {
 public:
  enum class Line : uint8_t { none, heading, row };
  // Takes lines one by one, in their order. The names of a row's values live as long as this reader and its heading.
  Line Read(std::string_view text, std::vector<NamedNumber>& row);

 private:
  bool ReadHeading(std::string_view text);

  std::vector<std::string> headings_;
  FigureNames names_;
  char mark_ = 0;  // '|', ',' or ' ' between cells
};

}  // namespace tacet
