// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tacet {

// A number and the name that a line gives it, whatever the program's style:
//   sync=0.374s    "busy_ms": 234    Time  0.532 ( 0.739)    loss 2.31 | data 3 ms    Epoch: [1][ 24/600]    'loss': nan
struct NamedNumber {
  std::string_view name;  // as written; empty where the line gives none
  std::string_view word;  // the value as written: "0.374", "nan", "9f3a77c2"
  double value = 0;       // NaN and infinity as such
  std::string_view unit;  // right behind it: "s", "ms", "it/s", "%"
  bool marked = false;    // a colon or an equals sign stands between name and value
  bool digest = false;    // no number: the digits of a checksum
  bool of_total = false;  // "/600" follows
  int32_t index = -1;     // its place in a list: "[31.2, 30.8, 92.1]"
};

// All of a line, in their order. Dates, times of day, versions, addresses and the mean in parentheses behind a value
// are none.
void FindNamedNumbers(std::string_view line, std::vector<NamedNumber>& out);

// One value alone, as a cell of a table holds it: "0.51", "1.4s", "12 ms", "nan", "0.51 (0.65)". False where it is none.
bool ReadValue(std::string_view cell, NamedNumber& out);

}  // namespace tacet
