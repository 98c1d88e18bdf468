// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/log_outline.h"

namespace tacet {

// A table that a program prints of its own ranks, one row each, with or without lines of a box around it:
//   rank | data ms | compute ms | sync ms | loss
//      0 |     0.2 |        2.7 |   468.6 | 2.10
// Times without a unit in their heading are taken for seconds.
class RankTableReader {
 public:
  // Takes lines one by one, in their order. True for the heading and the rows of such a table.
  bool Read(std::string_view text, const SourceRef& source, LogOutline& out);

 private:
  enum class Column : uint8_t { other, rank, data, work, wait, whole };
  struct Field {
    Column column = Column::other;
    double seconds = 1;  // of one unit
  };
  static Field FieldOf(std::string_view heading);
  bool ReadHeading(const std::vector<std::string_view>& cells);

  std::vector<Field> fields_;
};

}  // namespace tacet
