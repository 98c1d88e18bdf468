// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tacet {

// "outer 23: residuals 3.7e-03 -3.6e-03": lines that begin with the same word and a number that grows are how far a
// program came, whatever it counts.
class CountingLines {
 public:
  // Takes lines one by one, in their order. True from the third of a series on.
  bool Read(std::string_view text);

 private:
  struct Count {
    int64_t last = -1;
    size_t run = 0;
  };
  std::map<std::string, Count, std::less<>> seen_;
};

}  // namespace tacet
