// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/host_listing.h"

namespace tacet {

// The table of `dcgmi diag`: one row per test, and below one that failed what it says of it.
class DcgmTable {
 public:
  // | Diagnostic                | Result                                         |
  static bool IsHead(std::string_view line);

  bool TakeHead(std::string_view line);
  // A row of the table; `check` is empty where the row tells of no test. `about`: the row belongs to the test before it
  // and tells the GPUs that failed in it, "GPU1: Fail".
  bool TakeRow(std::string_view line, GpuCheck& check, bool& about);

 private:
  bool inside_ = false, of_setup_ = false, failed_ = false;
  std::string test_;  // the last one
};

}  // namespace tacet
