// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace tacet {

// "2210" stays as it is, "65535" becomes "65,535": digits are grouped from 10,000 on. The text is a whole number
// without a sign.
inline std::string GroupDigits(std::string digits) {
  constexpr size_t kLeast = 5, kGroup = 3;
  if (digits.size() < kLeast) return digits;
  for (size_t at = digits.size(); at > kGroup;) digits.insert(at -= kGroup, ",");
  return digits;
}

}  // namespace tacet
