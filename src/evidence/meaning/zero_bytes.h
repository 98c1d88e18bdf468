// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// A text with zero bytes in it: a node that went down leaves them where the last lines should be, logrotate's
// copytruncate leaves them in front of a log whose writer goes on at its old place.
struct TextWithZeros {
  std::string text;  // without them
  uint64_t left_out = 0;
  bool ends_in_zeros = false;
  bool limited = false;  // there was more text than `most`
};

bool HasZeros(std::string_view bytes);
bool IsAllZeros(std::string_view bytes);

// The beginning of such a text without its zeros; empty when what is left is no text.
std::string PeekBesidesZeros(std::string_view bytes, size_t most);
TextWithZeros TakeOutZeros(std::string_view bytes, size_t most);

}  // namespace tacet
