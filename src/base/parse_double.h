// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>
#include <version>

namespace tacet {

// For libc++ before release 20, whose from_chars knows no double. The text is not terminated, so strtod gets a copy of
// the number alone; nothing here changes the locale.
inline std::from_chars_result ParseDoubleByStrtod(const char* first, const char* last, double& value) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const char* at = first;
  if (at != last && *at == '-') ++at;
  const auto skip_digits = [&] {
    const char* begin = at;
    while (at != last && is_digit(*at)) ++at;
    return at - begin;
  };
  std::ptrdiff_t digits = skip_digits();
  if (at != last && *at == '.') {
    ++at;
    digits += skip_digits();
  }
  if (digits > 0 && at != last && (*at == 'e' || *at == 'E')) {
    const char* whole = at++;
    if (at != last && (*at == '-' || *at == '+')) ++at;
    if (skip_digits() == 0) at = whole;
  } else if (digits == 0) {
    at = first;
    if (at != last && *at == '-') ++at;
    const char* word = at;
    while (at != last && at - word < 8 && ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z')) ++at;  // "infinity"
  }
  const std::string copy(first, at);
  char* end = nullptr;
  const double read = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end == copy.c_str()) return {first, std::errc::invalid_argument};
  const char* behind = first + (end - copy.c_str());
  const bool too_small = read == 0 && copy.find_first_of("123456789") < copy.find_first_of("eE");
  if ((std::isinf(read) && digits > 0) || too_small) return {behind, std::errc::result_out_of_range};
  value = read;
  return {behind, std::errc()};
}

// std::from_chars for a double: "1.5e3", "-0", "inf", "nan"; no space and no plus in front.
inline std::from_chars_result ParseDouble(const char* first, const char* last, double& value) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(first, last, value);
#else
  return ParseDoubleByStrtod(first, last, value);
#endif
}

}  // namespace tacet
