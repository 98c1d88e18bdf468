// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tacet {

// Characters to look for, as a table: std::string_view::find_first_of asks the C library about each character.
class CharSet {
 public:
  constexpr explicit CharSet(std::string_view characters) {
    for (const char c : characters) holds_[static_cast<unsigned char>(c)] = true;
  }
  constexpr bool Holds(char c) const { return holds_[static_cast<unsigned char>(c)]; }
  // The first place at `from` or behind it; npos for none.
  constexpr size_t FindIn(std::string_view text, size_t from = 0) const {
    for (size_t at = from; at < text.size(); ++at)
      if (Holds(text[at])) return at;
    return std::string_view::npos;
  }

 private:
  std::array<bool, 256> holds_{};
};

}  // namespace tacet
