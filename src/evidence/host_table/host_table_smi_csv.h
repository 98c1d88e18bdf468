// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host_listing.h"

namespace tacet {

// The rows of `nvidia-smi --query-gpu=... --format=csv`, whose first line names the columns.
class SmiCsv {
 public:
  // index, name, temperature.gpu, clocks.sm [MHz], power.draw [W]
  static bool IsHead(std::string_view line);

  bool TakeHead(std::string_view line);
  // `text`: what was asked for and is of use, with the names of the columns: "index=5, temperature.gpu=88, ...".
  bool TakeRow(std::string_view line, GpuLoad& load, std::string& text) const;

 private:
  std::vector<std::string> columns_;  // without their units
};

}  // namespace tacet
