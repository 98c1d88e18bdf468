// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// The table of `dcgmi diag`.
class DcgmTable {
 public:
  // | Diagnostic                | Result                                         |
  static bool IsHead(std::string_view line);

  // Whether the line is a row of the table that has begun.
  bool TakeRow(std::string_view line);
  // What the row says of a GPU that failed a test of the hardware: "GPU Memory: Fail - GPU: 6"; empty: nothing new.
  const std::string& failed() const { return failed_; }

 private:
  bool inside_ = false;
  std::string test_;  // of the rows below: DCGM 4 lists the GPUs one by one
  std::string failed_;
};

}  // namespace tacet
