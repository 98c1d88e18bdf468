// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/text_scan.h"

namespace tacet {

// A cursor over a call line. These lines are by far the most frequent, so they are read by hand: literals of known
// length and plain digit loops, all in one function, cost half of what std::from_chars and string_view do here. Every
// step says whether it fitted.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  template <size_t N>
  [[gnu::always_inline]] bool Literal(const char (&literal)[N]) {
    if (static_cast<size_t>(end_ - at_) < N - 1 || std::memcmp(at_, literal, N - 1) != 0) return false;
    at_ += N - 1;
    return true;
  }
  // Skips an address and takes `literal` behind it. Most addresses have the length of "0x7f7e1d800000".
  template <size_t N>
  [[gnu::always_inline]] bool AfterAddress(const char (&literal)[N]) {
    constexpr size_t kUsual = 14;
    if (static_cast<size_t>(end_ - at_) >= kUsual + N - 1 && std::memcmp(at_ + kUsual, literal, N - 1) == 0) {
      at_ += kUsual + N - 1;
      return true;
    }
    while (at_ != end_ && *at_ != ' ') ++at_;
    return Literal(literal);
  }
  // More digits than fit are no number.
  [[gnu::always_inline]] bool Decimal(uint64_t* value) {
    const char* const from = at_;
    uint64_t number = 0;
    for (; at_ != end_ && at_ - from < 19; ++at_) {
      const auto digit = static_cast<unsigned char>(*at_ - '0');
      if (digit > 9) break;
      number = number * 10 + digit;
    }
    *value = number;
    return at_ != from && at_ - from < 19;
  }
  [[gnu::always_inline]] bool Small(int32_t* value) {
    const bool minus = at_ != end_ && *at_ == '-';
    if (minus) ++at_;
    uint64_t number = 0;
    if (!Decimal(&number) || number > INT32_MAX) return false;
    *value = minus ? -static_cast<int32_t>(number) : static_cast<int32_t>(number);
    return true;
  }
  [[gnu::always_inline]] bool Hex(uint64_t* value) {
    const char* const from = at_;
    uint64_t number = 0;
    for (; at_ != end_ && at_ - from < 17; ++at_) {
      unsigned digit = static_cast<unsigned char>(*at_ - '0');
      if (digit > 9) digit = static_cast<unsigned char>((*at_ | 0x20) - 'a') + 10u;
      if (digit > 15) break;
      number = number << 4 | digit;
    }
    *value = number;
    return at_ != from && at_ - from < 17;
  }
  // "[0]" or "[c8000]", whatever it holds.
  [[gnu::always_inline]] bool Bracket() {
    if (at_ == end_ || *at_ != '[') return false;
    while (at_ != end_ && *at_ != ']') ++at_;
    if (at_ == end_) return false;
    ++at_;
    return true;
  }
  // "0x7f10", "(nil)", "7f10".
  [[gnu::always_inline]] bool Address(uint64_t* value) {
    *value = 0;
    if (Literal("0x")) return Hex(value);
    return Literal("(nil)") || Hex(value);
  }
  [[gnu::always_inline]] bool Count(int64_t* count) {
    uint64_t value = 0;
    if (!Decimal(&value) || value > kMaxCount) return false;
    *count = static_cast<int64_t>(value);
    return true;
  }

 private:
  // Beyond this a count is no count, and count times element size would leave 64 bits.
  static constexpr uint64_t kMaxCount = uint64_t{1} << 58;

  const char* at_;
  const char* end_;
};

inline bool TakeAddress(std::string_view& text, uint64_t* address) {
  FieldCursor cursor(text);
  if (!cursor.Address(address)) return false;
  text = cursor.rest();
  return true;
}

// One argument of "(7f2a,7f2b,1024,7,0,0,0x55,0x56)".
inline std::string_view TakeArgument(std::string_view& text) {
  std::string_view argument = TakeUntil(text, ',');
  if (!text.empty()) text.remove_prefix(1);
  return Trim(argument);
}

template <typename T>
bool TakeNumberArgument(std::string_view& text, T* value) {
  std::string_view argument = TakeArgument(text);
  return TakeNumber(argument, value);
}

inline bool TakeAddressArgument(std::string_view& text, uint64_t* value) {
  std::string_view argument = TakeArgument(text);
  return TakeAddress(argument, value);
}

}  // namespace tacet
